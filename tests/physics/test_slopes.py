"""Echoes from a bed that is not level: a wedge by images, a hill by Fermat's principle and by a bundle of rays, and
soundings.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.physics.sea import PLAIN, node, run, sea
from wavesim_server.acoustics import image_paths
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
A, B = np.array([0.0, 0.0, 12.0]), np.array([260.0, 90.0, 30.0])
QUIET = 'absorption="0 dB/m"'
SAND = '<multipath order="{order}" bottom_speed="1650 m/s" bottom_density="1.9" bottom_attenuation="0.8 "/>'


def echoes(config: Make, world: str, order: int, tick: str = "20 ms", a: np.ndarray = A, b: np.ndarray = B) -> dict:
    """(surface, bottom) bounces -> the ranges and levels of the receptions."""
    sim = sea(config, tick, PLAIN, world=world, extra=QUIET, inner=SAND.format(order=order))
    sender, hearer = node(sim, "a", 0, a[0], y=a[1], z=a[2]), node(sim, "b", 0, b[0], y=b[1], z=b[2])
    sim.ping(sender, 25e3)
    _, receptions = run(sim, 1.5)
    found: dict = {}
    for k in receptions[receptions["receiver"] == hearer]:
        found.setdefault((int(k["surface"]), int(k["bottom"])), []).append((float(k["range"]), float(k["level"])))
    return {key: sorted(v) for key, v in found.items()}


def wedge(order: int, depth: float, slope: tuple[float, float]) -> dict:
    """Every path by images in two planes, in three dimensions: its length, and each sine at which it meets the bed."""
    n = np.array([*slope, -1.0]) / math.hypot(*slope, 1.0)  # z = depth + slope . (x, y)
    planes = {"s": (np.array([0.0, 0.0, 1.0]), 0.0), "b": (n, float(n[2] * depth))}
    found: dict = {}
    for bounces in range(1, order + 1):
        for first in "sb":
            sequence = [first if i % 2 == 0 else "bs"[first == "b"] for i in range(bounces)]
            images = [A]
            for p in sequence:
                m, d = planes[p]
                images.append(images[-1] - 2 * (m @ images[-1] - d) * m)
            at, sines = B, []
            for p, image in zip(reversed(sequence), reversed(images[1:]), strict=True):
                m, d = planes[p]
                here, there = m @ at - d, m @ image - d
                assert here * there < 0
                if p == "b":
                    sines.append(abs(m @ (image - at)) / np.linalg.norm(image - at))
                at = at + here / (here - there) * (image - at)
            key = sequence.count("s"), sequence.count("b")
            found.setdefault(key, []).append((float(np.linalg.norm(images[-1] - B)), tuple(sines)))
    return found


@pytest.mark.parametrize("slope", [(0.0, 0.0), (0.06, -0.03), (-0.12, 0.1)])
def test_a_wedge_by_images(config: Make, slope: tuple[float, float]) -> None:
    """Times to a millimetre and levels to 1e-4 dB, up to three bounces, across the slope too. The path that meets the
    steep bed twice does so at two angles: the loss at their mean is another by more than that."""
    world = f'<bed depth="60 m" slope_north="{slope[0]}" slope_east="{slope[1]}"/>'
    found, wanted = echoes(config, world, 3), wedge(3, 60.0, slope)
    assert {k: len(v) for k, v in found.items() if k != (0, 0)} == {k: len(v) for k, v in wanted.items()}
    for key, ways in wanted.items():
        for (length, level), (far, sines) in zip(found[key], sorted(ways), strict=True):
            assert length == pytest.approx(far, abs=1e-3), key
            lost = 20 * math.log10(far) + sum(image_paths.bottom_loss(s, 1.9, 1500.0 / 1650.0, 0.8) for s in sines)
            assert level == pytest.approx(200.0 - lost, abs=1e-4), key


def hill(x: float, y: float) -> float:
    return 55.0 - 18.0 * math.exp(-((0.012 * (x - 150.0)) ** 2) - (0.015 * (y - 20.0)) ** 2)


HILL = '<bed depth="55 m"><bump height="-18 m" north="150 m" east="20 m" alpha="0.012 1/m" beta="0.015 1/m"/></bed>'


@pytest.mark.parametrize(
    "place", [np.array([230.0, -60.0, 25.0]), np.array([180.0, -60.0, 20.0]), np.array([90.0, 30.0, 15.0])]
)
def test_a_hill_by_fermat(config: Make, place: np.ndarray) -> None:
    """One bounce: the way over the bed whose length is stationary; level ground would be metres off."""
    found = echoes(config, HILL, 1, b=place)[0, 1]

    def length(p: np.ndarray) -> float:
        at = np.array([*p, hill(*p)])
        return float(np.linalg.norm(at - A) + np.linalg.norm(place - at))

    best = minimize(length, 0.5 * (A + place)[:2], method="BFGS", options={"gtol": 1e-9})
    assert found[0][0] == pytest.approx(best.fun, abs=0.01)
    flat = math.hypot(*(place - A)[:2], 110.0 - A[2] - place[2])
    assert abs(best.fun - flat) > 1.0


def test_a_ridge_by_a_bundle_of_rays(config: Make) -> None:
    """In the plane of a long ridge: 8001 rays that are followed step by step and mirrored where they meet surface and bed;
    those that come to the receiver give the lengths of all paths with up to three bounces."""
    world = '<bed depth="50 m" slope_north="0.03"><bump height="-6 m" north="160 m" east="0 m" alpha="0.012 1/m" beta="1e-9 1/m"/></bed>'
    far, deep = 300.0, 25.0
    found = echoes(config, world, 3, a=np.array([0.0, 0.0, 12.0]), b=np.array([far, 0.0, deep]))

    def bed(x: np.ndarray) -> np.ndarray:
        return 50.0 + 0.03 * x - 6.0 * np.exp(-((0.012 * (x - 160.0)) ** 2))

    angles = np.linspace(-1.2, 1.2, 8001)
    x, z, s = np.zeros_like(angles), np.full_like(angles, 12.0), np.zeros_like(angles)
    vx, vz = np.cos(angles), np.sin(angles)
    hits = np.zeros((2, len(angles)), int)
    depth_at, length_at = np.full(len(angles), np.nan), np.full(len(angles), np.nan)
    step = 0.4
    for _ in range(2200):
        nx, nz = x + step * vx, z + step * vz
        crossed = (x < far) & (nx >= far)
        t = (far - x[crossed]) / vx[crossed]
        depth_at[crossed], length_at[crossed] = z[crossed] + t * vz[crossed], s[crossed] + t
        x, z, s = nx, nz, s + step
        up = z < 0.0
        z[up], vz[up] = -z[up], -vz[up]
        hits[0] += up & np.isnan(depth_at)
        low = z > bed(x)
        slope = (bed(x[low] + 0.01) - bed(x[low] - 0.01)) / 0.02
        mx, mz = slope / np.hypot(1.0, slope), -1.0 / np.hypot(1.0, slope)
        along = vx[low] * mx + vz[low] * mz
        vx[low], vz[low] = vx[low] - 2 * along * mx, vz[low] - 2 * along * mz
        under = (z[low] - bed(x[low])) * mz
        x[low], z[low] = x[low] - 2 * under * mx, z[low] - 2 * under * mz
        hits[1] += low & np.isnan(depth_at)
    for key, ways in found.items():
        if key == (0, 0):
            continue
        mine = np.flatnonzero((hits[0] == key[0]) & (hits[1] == key[1]))
        lengths = []
        for i, j in itertools.pairwise(mine):
            if j == i + 1 and (depth_at[i] - deep) * (depth_at[j] - deep) < 0.0:
                k = (deep - depth_at[i]) / (depth_at[j] - depth_at[i])
                lengths.append(length_at[i] + k * (length_at[j] - length_at[i]))
        for length, _ in ways:
            assert min(abs(np.array(lengths) - length), default=np.inf) < 0.1, (key, length, lengths)


def test_soundings(config: Make, tmp_path: Path) -> None:
    """A sloping plane as soundings gives the echoes of the plane."""
    grid = [(x, y) for x in range(-100, 401, 50) for y in range(-100, 201, 50)]
    (tmp_path / "s.xyz").write_text("".join(f"{x} {y} {60 + 0.06 * x - 0.03 * y}\n" for x, y in grid))
    plane = echoes(config, '<bed depth="60 m" slope_north="0.06" slope_east="-0.03"/>', 2)
    world = f'<soundings file="{tmp_path / "s.xyz"}"/>'
    found = echoes(config, world, 2)
    assert found.keys() == plane.keys()
    for key, ways in plane.items():
        assert np.allclose(found[key], ways, atol=2e-3), key


@pytest.mark.parametrize("tick", ["4 ms", "100 ms"])
def test_the_tick_does_not_matter(config: Make, tick: str) -> None:
    """A receiver that moves over the hill hears its echo at the same nanosecond whatever the tick."""
    times = []
    for t in (tick, "20 ms"):
        sim = sea(config, t, PLAIN, world=HILL, extra=QUIET, inner=SAND.format(order=1))
        a, b = node(sim, "a", 0, 0.0, z=12.0), node(sim, "b", 0, 180.0, v=1.5, y=-60.0, z=20.0)
        sim.ping(a, 25e3)
        _, receptions = run(sim, 1.0)
        mine = receptions[(receptions["receiver"] == b) & (receptions["bottom"] == 1)]
        times.append(mine["arrival_ns"].tolist())
    assert len(times[0]) == 1 and times[0] == times[1]
