"""Rays through a grid of sound speeds: closed forms, the layered rays, reciprocity, and a Runge-Kutta twin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import find_eigenrays, records
from tests.physics.volume_sea import VolumeSea, bed, volume
from wavesim_server.acoustics import ray_tubes, rays
from wavesim_server.acoustics.types import SoundSpeedProfile

#: gradient along the path and with depth (1/s), source and receiver (range, depth), time (s), speed at the origin
TILTED = [
    (0.0, 0.016, (0.0, 10.0), (1000.0, 100.0), 0.668965643, 1500.0),
    (0.002, 0.016, (0.0, 50.0), (5000.0, 50.0), 3.320115900, 1500.0),
    # 10 m deeper than published, in the same water: the published arc rises 0.3 m above the surface
    (-0.004, -0.05, (0.0, 30.0), (3000.0, 70.0), 2.010073205, 1500.5),
    (0.005, 0.05, (0.0, 100.0), (2000.0, 300.0), 1.326499575, 1500.0),
    (0.001, 0.0, (0.0, 30.0), (10000.0, 30.0), 6.734032181, 1480.0),
]


def closed_form(speed: Any, gradient: tuple[float, float, float], a: Any, b: Any) -> tuple[float, float]:
    """(time, spreading loss) where the sound speed is linear in space: every ray is an arc of a circle."""
    g, d, ca, cb = np.linalg.norm(gradient), np.linalg.norm(np.subtract(a, b)), speed(*a), speed(*b)
    half = g * d / (2.0 * math.sqrt(ca * cb))
    return 2.0 / g * math.asinh(half), 20.0 * math.log10(d * math.sqrt(1.0 + half * half))


@pytest.mark.parametrize("bearing", [0.0, 0.7, 2.5])
@pytest.mark.parametrize(("step", "levels"), [(5000.0, 3), (700.0, 11), (130.0, 41)])
@pytest.mark.parametrize("row", range(5))
def test_a_linear_speed(row: int, step: float, levels: int, bearing: float) -> None:
    """To 1 ns and 1e-4 dB for any size of the cells and any bearing."""
    along, down, (_, z), (far, deep), time, start = TILTED[row]
    cosine, sine = math.cos(bearing), math.sin(bearing)

    def speed(n: Any, e: Any, z: Any) -> Any:
        return start + along * (n * cosine + e * sine) + down * z

    water = volume(speed, np.linspace(0.0, 2000.0, levels), (step, 0.8 * step), far + 100.0)
    a, b = (0.0, 0.0, z), (far * cosine, far * sine, deep)
    (path,) = VolumeSea(water, bed(2000.0)).paths(a, b)
    exact, spread = closed_form(speed, (along, 0.0, down), a, b)
    assert path.time == pytest.approx(time, abs=1e-9) and path.time == pytest.approx(exact, abs=1e-11)
    assert path.spread == pytest.approx(spread, abs=1e-4)
    assert path.surface == path.bottom == path.caustics == 0


@pytest.mark.parametrize("across", [0.002, 0.02, -0.05])
def test_a_gradient_across_the_path(across: float) -> None:
    """Refraction out of the vertical plane is neglected: the time is the closed form in this plane, and longer than that
    in space by at most t (g L / c)^2 / 24."""

    def speed(n: Any, e: Any, z: Any) -> Any:
        return 1500.0 + across * e + 0.016 * z

    water = volume(speed, np.linspace(0.0, 900.0, 7), (333.0, 250.0), 4200.0)
    a, b = (0.0, 0.0, 300.0), (4000.0, 0.0, 350.0)
    (path,) = VolumeSea(water, bed(900.0)).paths(a, b)
    time, spread = closed_form(speed, (0.0, 0.0, 0.016), a, b)
    assert path.time == pytest.approx(time, abs=1e-11)
    assert path.spread == pytest.approx(spread, abs=1e-4)
    shorter, _ = closed_form(speed, (0.0, across, 0.016), a, b)
    assert 0.0 <= path.time - shorter < 1.01 * time * (across * 4000.0 / 1500.0) ** 2 / 24.0
    assert path.leaves[1] == 0.0


@pytest.mark.parametrize("eddy", [2.0, -2.0, 0.2, -0.2])
@pytest.mark.parametrize("aside", [0.0, 0.01, 3.0])
def test_ends_on_a_line_of_the_grid(eddy: float, aside: float) -> None:
    """A ridge or a trough of the sound speed along the path: all paths exist, with the same times in both directions."""

    def speed(n: Any, e: Any, z: Any) -> Any:
        return 1500.0 + 0.01 * z + eddy * np.exp(-(n * n + e * e) / 1000.0**2)

    sea = VolumeSea(volume(speed, np.linspace(0.0, 200.0, 5), (500.0, 500.0), 3000.0), bed(200.0), 2)
    a, b = (-900.0, aside, 50.0), (900.0, aside, 30.0)
    there, back = sea.paths(a, b), sea.paths(b, a)
    assert len(there) == len(back) == 5
    assert np.allclose([p.time for p in there], [p.time for p in back], rtol=0.0, atol=1e-9)
    assert np.allclose([p.spread for p in there], [p.spread for p in back], rtol=0.0, atol=2e-3)


def test_a_vertical_path() -> None:
    """Its level is that of its neighbours, downwards and upwards."""

    def speed(n: Any, e: Any, z: Any) -> Any:
        return 1500.0 + 0.002 * n + 0.016 * z

    sea = VolumeSea(volume(speed, np.linspace(0.0, 200.0, 5), (500.0, 400.0), 1000.0), bed(200.0))
    for a, b in (((10.0, 20.0, 20.0), (10.0, 20.0, 180.0)), ((0.0, 0.0, 180.0), (0.0, 0.0, 20.0))):
        (path,) = sea.paths(a, b)
        assert path.spread == pytest.approx(20.0 * math.log10(160.0), abs=1e-3)


def test_the_grid_continues_at_its_edges() -> None:
    water = volume(lambda n, e, z: 1500.0 + 0.01 * n + 0.0 * z, np.array([0.0, 50.0]), (100.0, 100.0), 500.0)
    sea = VolumeSea(water, bed(400.0))
    assert sea.paths((2000.0, -3000.0, 20.0), (3000.0, -3000.0, 90.0))[0].time == pytest.approx(
        math.hypot(1000.0, 70.0) / 1505.0, abs=1e-12
    )
    assert sea.paths((-2000.0, 3000.0, 20.0), (-2000.0, 2000.0, 20.0))[0].time == pytest.approx(
        1000.0 / 1495.0, abs=1e-12
    )


def test_no_ray_passes_through_a_ridge() -> None:
    """The ridge hides the receiver; the straight line to it stays in one tetrahedron, and meets the bed in it."""
    plain = bed(100.0)
    bumps = np.array([[-70.0, 500.0, 0.0, 0.01, 1e-9]])
    scene = plain._replace(bed=plain.bed._replace(bumps=bumps, max_slope=0.61))
    water = volume(lambda n, e, z: 1500.0 + 0.01 * z, np.array([0.0, 200.0]), (4000.0, 4000.0), 4000.0)
    kinds = {(p.surface, p.bottom) for p in VolumeSea(water, scene, 1).paths((0.0, 0.0, 60.0), (1000.0, 0.0, 60.0))}
    assert (1, 0) in kinds and (0, 0) not in kinds


def test_the_time_of_the_grid_is_the_emission() -> None:
    water = volume(lambda n, e, z: 1500.0 + 0.0 * z, np.array([0.0, 50.0]), (100.0, 100.0), 500.0, (10.0, 12.0, 20.0))
    sea = VolumeSea(water, bed(50.0))
    for time, speed in ((0.0, 1510.0), (10.0, 1510.0), (11.5, 1511.5), (12.0, 1512.0), (18.0, 1518.0), (30.0, 1520.0)):
        (path,) = sea.paths((0.0, 0.0, 20.0), (1200.0, 0.0, 20.0), time)
        assert path.time == pytest.approx(1200.0 / speed, abs=1e-12)


def front(n: Any, e: Any, z: Any) -> Any:
    """A thermocline that is deeper beyond a front."""
    depth = 35.0 + 10.0 * np.tanh((n + 0.2 * e - 900.0) / 400.0)
    return 1500.0 - 12.0 * np.tanh((z - depth) / 12.0) + 0.016 * z


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.01, -0.006)])
def test_reciprocity(slope: tuple[float, float]) -> None:
    """To 1e-9 s and 1e-3 dB, through a front and over a level or an uneven bed."""
    sea = VolumeSea(volume(front, np.linspace(0.0, 130.0, 14), (200.0, 200.0), 3000.0), bed(110.0, slope), 3)
    a, b = (0.0, 50.0, 40.0), (1800.0, 700.0, 15.0)
    out, back = sea.paths(a, b), sea.paths(b, a)
    assert len(out) == len(back) >= 6
    for p, q in zip(out, back, strict=True):
        assert p.time == pytest.approx(q.time, abs=1e-9)
        assert (p.surface, p.bottom, p.caustics) == (q.surface, q.bottom, q.caustics)
        # the same tube seen from either end: areas over c^2 at the other end
        assert p.spread == pytest.approx(q.spread, abs=2e-3), (p, q)
        assert np.allclose(p.leaves, np.negative(q.arrives), atol=1e-7)


@pytest.mark.parametrize("bearing", [0.3, 4.0])
def test_equal_columns_are_layers(bearing: float) -> None:
    """Times to 2 ns and levels to 0.01 dB of the layered rays, for each path within 20 dB of the strongest."""
    z = np.array([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 80.0, 100.0])
    c = np.interp(z, [0.0, 20.0, 40.0, 60.0, 100.0], [1520.0, 1519.0, 1500.0, 1497.0, 1499.0])
    water = volume(lambda n, e, d: np.interp(d, z, c), z, (300.0, 500.0), 2500.0)
    far, source, receiver = 2000.0, 30.0, 45.0
    a = (3.0, 7.0, source)
    b = (3.0 + far * math.cos(bearing), 7.0 + far * math.sin(bearing), receiver)
    found = VolumeSea(water, bed(100.0), 3).paths(a, b)
    link = rays.link_in_water(SoundSpeedProfile(z, c), source, receiver, far)
    layered = []
    for e in find_eigenrays(link, 3):
        ray, down, reversals = records(rays.RAY, 1)[0], e.down > 0, int(e.reversals)
        rays.trace_ray(link, float(e.angle), down, reversals, np.zeros((0, 2)), ray, True)
        spread, caustics = ray_tubes.tube_spreading(link, down, reversals, ray)
        layered.append((float(e.time), int(ray.surface), int(ray.bottom), spread, caustics))
    best = min(path[3] for path in layered)
    strong = [path for path in layered if path[3] < best + 20.0]
    assert len(strong) >= 5
    for time, surface, bottom, spread, caustics in strong:
        same = [p for p in found if abs(p.time - time) < 2e-9]
        assert [(p.surface, p.bottom, p.caustics) for p in same] == [(surface, bottom, caustics)], time
        assert same[0].spread == pytest.approx(spread, abs=0.01)


# ------------------------------------------------------------------ a twin that integrates in the smooth field


def eddy(n: Any, e: Any, z: Any) -> Any:
    """A sound channel with a cold eddy beside the path, so that rays bend to the side."""
    away = ((n - 1500.0) / 900.0) ** 2 + ((e - 500.0) / 900.0) ** 2 + (z / 120.0) ** 2
    return 1500.0 + 0.0012 * (z - 90.0) ** 2 - 8.0 * np.exp(-away)


def integrate(speed: Any, source: Any, direction: Any, target: Any, step: float = 10.0) -> tuple[Any, Any, Any]:
    """(time, position, direction) at which each of many rays (n, 3) is nearest to a target: Runge-Kutta, in length.

    The gradient comes from differences of the speed, so nothing of the grid enters.
    """

    def slope(state: Any) -> Any:
        p, t = state[:, :3], state[:, 3:6]
        c, h = speed(*p.T), 1e-2
        g = np.stack([(speed(*(p + d).T) - speed(*(p - d).T)) / (2.0 * h) for d in np.eye(3) * h], axis=1)
        bend = -(g - (g * t).sum(1, keepdims=True) * t) / c[:, None]
        return np.concatenate([t, bend, 1.0 / c[:, None]], axis=1)

    def step_by(state: Any, h: Any) -> Any:
        k1 = slope(state)
        k2 = slope(state + 0.5 * h * k1)
        k3 = slope(state + 0.5 * h * k2)
        k4 = slope(state + h * k3)
        return state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    count = len(direction)
    state = np.concatenate([np.tile(source, (count, 1)), direction, np.zeros((count, 1))], axis=1)
    while True:
        left = ((target - state[:, :3]) * state[:, 3:6]).sum(1)
        if left.max() < 1e-7:
            return state[:, 6], state[:, :3], state[:, 3:6]
        state = step_by(state, np.clip(left, 0.0, step)[:, None])


def twin(speed: Any, a: Any, b: Any, leaves: Any) -> tuple[float, float]:
    """(time, spreading loss) of the ray near a direction that reaches b."""
    t = np.array(leaves)
    for _ in range(6):
        side = np.array([-t[1], t[0], 0.0]) / math.hypot(t[0], t[1])
        tilt, d = np.cross(t, side), 1e-5
        fan = np.array([t, t + d * tilt, t - d * tilt, t + d * side, t - d * side])
        fan /= np.linalg.norm(fan, axis=1)[:, None]
        time, at, r = integrate(speed, np.array(a), fan, np.array(b))
        edges = np.array([at[1] - at[2], at[3] - at[4]]) / (2.0 * d)
        miss = np.array(b) - at[0]
        move = np.linalg.lstsq(edges.T, miss, rcond=None)[0]
        if np.linalg.norm(miss) < 1e-4:
            break
        t = t + move[0] * tilt + move[1] * side
        t /= np.linalg.norm(t)
    assert np.linalg.norm(miss) < 1e-4
    area = abs(r[0] @ np.cross(*edges))
    return float(time[0]), 10.0 * math.log10(area * speed(*a) / speed(*b))


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("speed", "a", "b", "levels"),
    [(eddy, (0.0, 0.0, 60.0), (3000.0, 300.0, 110.0), 13), (front, (0.0, 50.0, 60.0), (1800.0, 300.0, 90.0), 26)],
    ids=["eddy", "front"],
)
def test_a_smooth_field(speed: Any, a: Any, b: Any, levels: int) -> None:
    """To 20 us and 1 dB on the finest of three grids, with errors of the time that fall by the square of the step."""
    found = []
    for finer in (4, 2, 1):
        water = volume(speed, np.linspace(0.0, 200.0, levels * finer + 1), (200.0 / finer, 200.0 / finer), 3400.0)
        found.append(VolumeSea(water, bed(200.0)).paths(a, b)[0])
    time, spread = twin(speed, a, b, found[0].leaves)
    fine, middle, coarse = (abs(path.time - time) for path in found)
    assert fine < 20e-6 and abs(found[0].spread - spread) < 1.0
    assert fine < 0.5 * middle < 0.25 * coarse
