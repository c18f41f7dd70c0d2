"""Control and guidance: their effect on simple plants, and their behaviour at limits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wavesim_sdk.guidance.control import (
    CrabAngle,
    DepthController,
    HeadingController,
    LineOfSight,
    SpeedController,
    Waypoint,
)


def test_speed_is_reached_without_an_error_and_without_wind_up() -> None:
    """A mass of 20 kg with 10 N per m/s of drag: 1.5 m/s need 15 N."""
    speed, u, dt = SpeedController(12.0, 4.0, 0.0, 20.0), 0.0, 0.1
    peak = 0.0
    for _ in range(600):
        u += dt * (speed.thrust(1.5, u, dt) - 10.0 * u) / 20.0
        peak = max(peak, u)
    assert u == pytest.approx(1.5, abs=1e-3) and peak < 1.65
    assert speed.thrust(100.0, 0.0, dt) == 20.0 and speed.thrust(-100.0, 0.0, dt) == 0.0


def test_heading_turns_the_short_way() -> None:
    heading = HeadingController(1.0, 0.0, 0.3)
    assert heading.control_action(math.radians(-170.0), math.radians(170.0), 0.0) == pytest.approx(0.3), (
        "to starboard, through south"
    )
    assert heading.control_action(0.1, 0.0, 0.0) == pytest.approx(0.1)
    assert HeadingController(1.0, 2.0, 1.0).control_action(0.1, 0.0, 0.05) == pytest.approx(0.0), "the rate damps"


def test_depth_pitches_the_nose_down_to_go_down() -> None:
    depth = DepthController()
    assert depth.planes(20.0, 5.0, 0.0, 0.0, 0.1) == pytest.approx(-depth.limit), "far away: as steep as it may"
    assert depth.planes(5.0, 5.0, 0.1, 0.0, 0.1) < 0.0, "on its depth, nose up: down with it"
    assert depth.planes(5.0, 5.0, 0.0, 0.1, 0.1) < 0.0, "and against the rate"


def test_legs_are_followed_one_after_the_other() -> None:
    """A boat that follows its commands comes onto each leg, and round again."""
    corners = [Waypoint(north=n, east=e) for n, e in ((100.0, 0.0), (100.0, 100.0), (0.0, 100.0), (0.0, 0.0))]
    los = LineOfSight(corners, (0.0, 0.0), lookahead=12.0, acceptance=5.0)
    n, e, off, seen = 0.0, 20.0, [], []
    for step in range(900):
        course = los.course(n, e)
        n, e = n + 0.5 * math.cos(course), e + 0.5 * math.sin(course)
        seen += [los.target] if not seen or seen[-1] is not los.target else []
        if 120 < step < 180:
            off.append(abs(los.cross_track))
    assert seen[:5] == [*corners, corners[0]]
    assert max(off) < 1.0, "after some lookaheads it is on the line"
    with pytest.raises(ValueError, match="at least one waypoint"):
        LineOfSight([], (0.0, 0.0))


def test_the_crab_angle_holds_a_course_across_a_current() -> None:
    """At 1 m/s with half a metre of current from the west, a course north needs 30 degrees of crab."""
    crab, heading = CrabAngle(tau=5.0), 0.0
    for _ in range(1000):
        heading = crab.heading(0.0, heading, 1.0, 0.0, (0.0, 0.5), 0.1)
    assert math.degrees(heading) == pytest.approx(-30.0, abs=0.5)


@pytest.mark.parametrize("east", [200.0, -200.0])
def test_an_arc_leads_from_leg_to_leg(east: float) -> None:
    """Who goes where guidance says stays on the legs and on the arc between them, which begins R tan(turn/2) before the corner."""
    corners = [Waypoint(north=n, east=e, depth=0.0, speed=1.0) for n, e in ((200.0, 0.0), (200.0, east), (0.0, east))]
    los, side = LineOfSight(corners, (0.0, 0.0), lookahead=20.0, radius=50.0), math.copysign(1.0, east)
    north, here, places, bends = 0.0, 0.0, [], []
    for _ in range(2200):
        course = los.course(north, here)
        places.append((north, here))
        bends.append(los.curvature)
        north, here = north + 0.2 * math.cos(course), here + 0.2 * math.sin(course)
    found = np.array(places)
    assert {round(b, 9) for b in bends} == {0.0, side / 50.0}
    turning = found[np.array(bends) != 0.0]
    assert turning[0] == pytest.approx([150.0, 0.0], abs=0.3)
    first = turning[(turning[:, 0] > 145.0) & (np.abs(turning[:, 1]) < 60.0)]
    assert np.abs(np.hypot(first[:, 0] - 150.0, first[:, 1] - side * 50.0) - 50.0).max() < 0.3
    assert first[-1] == pytest.approx([200.0, side * 50.0], abs=0.5)
    between = found[(np.abs(found[:, 1]) > 60.0) & (np.abs(found[:, 1]) < 140.0) & (found[:, 0] > 100.0)]
    assert np.abs(between[:, 0] - 200.0).max() < 0.5
