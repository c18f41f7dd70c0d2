"""The examples of Panisim's manual with the model boat: PID path following, and turning radii at several rudder angles.

The model has no thruster. As in the manual, the surge speed is maintained from outside; here an external force holds it.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from wavesim_sdk.frames import euler, wrap
from wavesim_server import Lab

SPEED = 0.5  #: m/s
ACCEPTANCE = 0.5  #: m, as in the manual
RUDDER_LIMIT = math.radians(35.0)
#: north and east (m), as in the manual: four corners, of which the last is the start
WAYPOINTS = [(0.0, 0.0), (-4.0, -10.0), (8.0, -5.0), (9.0, 9.0), (0.0, 0.0)]
PERIOD = 0.1  #: s between commands


class Boat:
    """The model boat in a Lab; an external surge force holds its speed."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.row = self.lab.enter("boat", "sookshma")
        self.integral = 0.0

    @property
    def position(self) -> np.ndarray:
        return self.lab.state()["p_WB_W"][self.row, :2].copy()

    @property
    def heading(self) -> float:
        return float(euler(self.lab.state()["q_WB"][self.row])[2])

    @property
    def yaw_rate(self) -> float:
        return float(self.lab.state()["w_WB_B"][self.row, 2])

    def advance(self, rudder: float) -> None:
        """Advance by one period with this rudder angle (rad)."""
        error = SPEED - self.lab.state()["v_WB_B"][self.row, 0]
        self.integral += PERIOD * error
        self.lab.push(self.row, (10.0 * error + 2.0 * self.integral, 0.0, 0.0))
        self.lab.commands({"boat": {"rudder": rudder}})
        self.lab.run(PERIOD)


def rudder_command(boat: Boat, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Rudder angle (rad) from the cross-track error (outer loop) and the heading error (inner loop), with the manual's gains."""
    leg = np.subtract(end, start)
    course = math.atan2(leg[1], leg[0])
    north, east = boat.position - np.array(start)
    cross_track = east * math.cos(course) - north * math.sin(course)
    desired = course - 0.6 * cross_track
    command = 0.7 * wrap(desired - boat.heading) - 0.5 * boat.yaw_rate
    # positive rudder turns this boat to port
    return -min(max(command, -RUDDER_LIMIT), RUDDER_LIMIT)


def test_the_manuals_controller_passes_all_waypoints() -> None:
    """Each corner within half a metre and in order; the times are those of the legs at 0.5 m/s and of the turns."""
    boat, reached = Boat(), []
    for start, end in itertools.pairwise(WAYPOINTS):
        while np.hypot(*(boat.position - end)) >= ACCEPTANCE:
            boat.advance(rudder_command(boat, start, end))
            assert boat.lab.time_s < 120.0, f"{len(reached)} way-points were reached"
        reached.append(boat.lab.time_s)
    legs = np.cumsum([math.dist(a, b) for a, b in itertools.pairwise(WAYPOINTS)]) / SPEED
    assert reached == pytest.approx(legs + [2.5, 5.1, 5.5, 8.2], abs=0.5), "each turn costs some seconds"


def test_turning_radii() -> None:
    """Radii at 5 to 35 deg of rudder, by the track over the last turns; both sides alike."""
    radii = {}
    for degrees in (5, 10, 20, 30, 35, -20):
        boat = Boat()
        for _ in range(600):
            boat.advance(math.radians(degrees))
        track = []
        for _ in range(400):
            boat.advance(math.radians(degrees))
            track.append(boat.position)
        # circle through the points by linear least squares
        points = np.array(track)
        unknown = np.linalg.lstsq(
            np.column_stack([2.0 * points, np.ones(len(points))]), (points * points).sum(axis=1), rcond=None
        )[0]
        radii[degrees] = math.sqrt(unknown[2] + unknown[0] ** 2 + unknown[1] ** 2)
    assert radii.pop(-20) == pytest.approx(radii[20], rel=1e-3)
    assert list(radii.values()) == pytest.approx([2.86, 1.46, 0.78, 0.57, 0.52], rel=0.01)
