"""LBL, USBL, one-way ranging and modems in a volume whose sound speed is linear in space: against closed forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import ANSWERS, PLAIN, heard, node, run, sea
from tests.sdk.test_sound_volume import DEGREE, HEAD
from wavesim_sdk.log import straight_line_errors
from wavesim_sdk.tables import SIGNALS, SignalKind
from wavesim_server import Simulation
from wavesim_server.acoustics import medium_arrays
from wavesim_server.logbook.report import exchange_errors
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.volume import SPEED_COLUMN

Make = Callable[..., LoadedConfig]
GRADIENT = np.array([6e-3, -2e-3, 0.03])  #: 1/s to the north, east and down
SURFACE, PER_HOUR = 1490.0, 5.0  #: sound speed at the origin in m/s, and its increase in an hour
A, B = np.array([-900.0, -200.0, 60.0]), np.array([900.0, 300.0, 100.0])
PHONES = "".join(f'<hydrophone position="{p} m"/>' for p in ("0.1 0 0", "-0.1 0 0", "0 0.1 0", "0 0 0.1"))
WORLD = '<bed depth="200 m"/><volume file="v.csv" latitude="0 deg" longitude="0 deg"/>'


def speed(p: Any, time: float = 0.0) -> float:
    return float(SURFACE + GRADIENT @ np.asarray(p) + PER_HOUR * time / 3600.0)


def in_plane(a: Any, b: Any) -> Any:
    """Gradient without its part across the vertical plane through two points, which does not bend rays."""
    north, east, _ = np.subtract(b, a) / np.hypot(*np.subtract(b, a)[:2])
    across = np.array([-east, north, 0.0])
    return GRADIENT - (GRADIENT @ across) * across


def travel(a: Any, b: Any, time: float = 0.0) -> float:
    """Travel time along the arc between two points in water with one gradient."""
    g, d = float(np.linalg.norm(in_plane(a, b))), float(np.linalg.norm(np.subtract(b, a)))
    return math.acosh(1.0 + g * g * d * d / (2.0 * speed(a, time) * speed(b, time))) / g


def arriving(a: Any, b: Any) -> Any:
    """Direction in which the arc from a to b arrives: of length 1, in the plane of the chord and the gradient."""
    chord, gradient = np.subtract(b, a), in_plane(a, b)
    g = float(np.linalg.norm(gradient))
    d = float(np.linalg.norm(chord))
    u = chord / d
    across = gradient - (gradient @ u) * u
    curvature = float(np.linalg.norm(across)) / g  # of the plane's coordinates: the centre lies on c = 0
    n = across / np.linalg.norm(across)
    along, height = float(gradient @ u) / g, curvature
    depth_a, depth_b = speed(a) / g, speed(b) / g  # distances from the plane c = 0
    # centre a + x u + y n with equal distances to both ends, and on the plane: (x along + y height) + depth_a = 0
    x = 0.5 * d
    y = -(depth_a + x * along) / height
    radius = np.array(b) - (np.array(a) + x * u + y * n)
    assert abs(float(np.linalg.norm(radius)) - math.hypot(x, y)) < 1e-6 * depth_b
    tangent = np.cross(np.cross(u, n), radius)
    tangent *= np.sign(tangent @ u)
    return tangent / np.linalg.norm(tangent)


@pytest.fixture
def water(config: Make, tmp_path: Path) -> Callable[..., Simulation]:
    """A sea of 4 km x 4 km with one gradient of the sound speed."""

    def make(*transducers: Any, tick: str = "20 ms", **more: Any) -> Simulation:
        rows = [f"{HEAD},{SPEED_COLUMN}"]
        for time, z, n, e in itertools.product(
            (0, 3600), (0, 70, 200), range(-2000, 2001, 500), range(-2000, 2001, 500)
        ):
            rows.append(f"{time},{z},{n * DEGREE!r},{e * DEGREE!r},10,35,0,0,{speed((n, e, z), time)!r}")
        (tmp_path / "v.csv").write_text("\n".join(rows))
        return sea(config, tick, *transducers, world=WORLD, extra='profile="volume"', **more)

    return make


@pytest.mark.compiled
def test_long_baseline(water: Callable[..., Simulation]) -> None:
    """A moving vehicle asks a transponder: each leg takes the time of its own arc, from its emission to its arrival."""
    sim = water(PLAIN, ANSWERS.format(tat=15))
    auv, beacon = node(sim, "auv", 0, A[0], 2.0, y=A[1], z=A[2]), node(sim, "beacon", 1, B[0], y=B[1], z=B[2])
    for _ in range(3):
        sim.ping(auv, 25e3)
        sim.advance(250)
    sent, found = run(sim, 3.0)
    there, back = heard(found, beacon), heard(found, auv)
    assert len(there) == len(back) == 3
    ends = {int(s["id"]): s["origin_W"] for s in sent}
    for r in (*there, *back):
        exact = travel(ends[int(r["id"])], r["position_W"], r["emission_ns"] * 1e-9)
        assert (r["arrival_ns"] - r["emission_ns"]) * 1e-9 == pytest.approx(exact, abs=2e-9)
    error = straight_line_errors(back, 1500.0)
    assert back["measured"] - 0.5 * (there["distance"] + back["distance"]) == pytest.approx(
        0.5 * (straight_line_errors(there, 1500.0) + error), abs=1e-5
    ), "without noise, the error of a range is that of the water"
    assert exchange_errors(found, 1500.0) == pytest.approx(0.5 * (straight_line_errors(there, 1500.0) + error))
    assert abs(float(error[0])) > 1.0


@pytest.mark.compiled
def test_one_way_ranging_and_modems(water: Callable[..., Simulation]) -> None:
    sim = water((PLAIN, '<modem address="1"/>'), (PLAIN, '<modem address="2"/>'))
    a, b = node(sim, "a", 0, A[0], y=A[1], z=A[2]), node(sim, "b", 1, B[0], -1.0, y=B[1], z=B[2])
    sim.send(a, b"hello", 2)
    sim.advance(100)
    sim.range_request(a, 2)
    _, found = run(sim, 5.0)
    (packet, request), (reply,) = heard(found, b), heard(found, a)
    assert [int(r["kind"]) for r in (packet, request, reply)] == [
        SignalKind.DATA,
        SignalKind.RANGE_REQUEST,
        SignalKind.RANGE_REPLY,
    ]
    exact = travel(A, packet["position_W"])
    assert packet["one_way"] == pytest.approx(1500.0 * exact, abs=1e-5)
    legs = (
        travel(A, request["position_W"], request["emission_ns"] * 1e-9)
        + (reply["arrival_ns"] - reply["emission_ns"]) * 1e-9
    )
    assert reply["measured"] == pytest.approx(750.0 * legs, abs=1e-5)


@pytest.mark.compiled
def test_a_usbl_head_sees_the_bent_ray(water: Callable[..., Simulation]) -> None:
    sim = water(PLAIN, (PLAIN, f"<head>{PHONES}</head>"))
    a, b = node(sim, "a", 0, A[0], y=A[1], z=A[2]), node(sim, "b", 1, B[0], y=B[1], z=B[2])
    sim.ping(a, 25e3)
    _, found = run(sim, 3.0)
    (r,) = heard(found, b)
    seen, exact = (float(r["azimuth"]), float(r["elevation"])), -arriving(A, B)
    azimuth, elevation = math.atan2(exact[1], exact[0]), math.asin(exact[2])
    assert seen == pytest.approx((azimuth, elevation), abs=2e-4)
    straight = (A - B) / np.linalg.norm(A - B)
    assert abs(seen[1] - math.asin(straight[2])) > 0.01, "the ray is bent downwards and upwards again"
    assert seen[0] == pytest.approx(math.atan2(straight[1], straight[0]), abs=2e-4), "but not to the side"


@pytest.mark.compiled
def test_ticks_and_live_signals(water: Callable[..., Simulation]) -> None:
    """The times do not depend on the tick, and the page receives the signals in transit."""
    logs = []
    for tick in ("4 ms", "20 ms"):
        sim = water(PLAIN, tick=tick)
        a, b = node(sim, "a", 0, A[0], 2.0, y=A[1], z=A[2]), node(sim, "b", 0, B[0], -2.0, y=B[1], z=B[2])
        sim.ping(a, 25e3)
        sim.advance(round(0.5e9 / sim.step_ns))
        live = np.zeros(4, SIGNALS.dtype)
        sim.channel.live_signals(live, sim.time_s)
        assert live["id"].tolist() == [1, 0, 0, 0]
        assert live["radius"][0] == pytest.approx(0.5 * sim.channel.medium.water[0].fastest, rel=1e-3)
        _, found = run(sim, 2.0)
        (r,) = heard(found, b)
        logs.append(int(r["arrival_ns"]))
    assert sim.channel.medium.water[0].mode == medium_arrays.VOLUME
    assert abs(logs[0] - logs[1]) <= 1
