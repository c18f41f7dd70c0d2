"""Levels along rays: against a dense bundle of rays counted by their arrival depth, closed forms, and published
formulas.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks import bellhop

from tests.physics.sea import PLAIN, find_eigenrays, heard, node, records, run, sea
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, image_paths, ray_tubes, rays
from wavesim_server.acoustics.eigenrays import EigenraySearch
from wavesim_server.acoustics.types import SoundSpeedProfile
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.sound import munk

Make = Callable[..., LoadedConfig]


def bundle(z: Floats, c: Floats, source: float, receiver: float, distance: float, width: float) -> float:
    """Transmission loss in dB (incoherent) at a depth, over ranges `distance` +- `width`, by counting: rays of equal steps in
    launch angle carry power as cos(angle) and cross the receiver's depth; no derivative, no Snell's law by layers.

    Power through a ring of the level z = receiver is that between its rays; intensity is that over the ring's area across
    the ray: |p|^2 = c_r / c_s sum (cos a da) / (x dx sin a_r).
    """
    angles = np.linspace(-1.45, 1.45, 8001)
    angles = angles[np.abs(angles) > 1e-6]
    da, ca = 2.9 / 8000, np.interp(source, z, c)
    xs, depth = np.zeros_like(angles), np.full_like(angles, source)
    slope = np.tan(angles)
    g = np.diff(c) / np.diff(z)
    invariant = np.cos(angles) / ca
    bounced = np.zeros(len(angles), int)
    total = 0.0
    step = distance / 4000
    while xs[0] < distance + width:  # dz/dx = tan, d(angle)/dx = -c'/c: a leap frog in range
        middle = np.abs(depth + 0.5 * step * slope)
        middle = np.where(middle > z[-1], 2 * z[-1] - middle, middle)
        k = np.clip(np.searchsorted(z, middle) - 1, 0, len(g) - 1)
        cm = c[k] + g[k] * (middle - z[k])
        slope = slope - step * g[k] / cm * (1.0 + slope * slope)
        after = depth + step * slope
        new = np.abs(after)
        bounced += (after < 0.0) | (new > z[-1])
        slope = np.where(after < 0.0, -slope, slope)
        slope = np.where(new > z[-1], -slope, slope)
        new = np.where(new > z[-1], 2 * z[-1] - new, new)
        xs += step
        if abs(xs[0] - distance) <= width:
            crossed = ((depth - receiver) * (new - receiver) < 0.0) & (bounced <= BOUNCES)
            cr = np.interp(receiver, z, c)
            sine = np.sqrt(np.maximum(1.0 - (invariant[crossed] * cr) ** 2, 1e-9))
            total += float((np.cos(angles[crossed]) * da / (xs[0] * 2 * width * sine)).sum() * cr / ca)
        depth = new
    return -10.0 * math.log10(total)


def rayed(z: Floats, c: Floats, source: float, receiver: float, distance: float, bounces: int) -> list[float]:
    """The loss of each eigenray."""
    water, out, none = SoundSpeedProfile(z, c), records(rays.RAY, 1), np.zeros((0, 2))
    link = rays.make_link(water, source, receiver, distance)
    losses = []
    for theta, down, reversals, *_ in find_eigenrays(link, bounces).tolist():
        assert rays.trace_ray(link, theta, down > 0, reversals, none, out[0], True)
        losses.append(ray_tubes.tube_spreading(link, down > 0, reversals, out[0])[0])
    return losses


def mean_loss(
    z: Floats, c: Floats, source: float, receiver: float, distance: float, width: float, bounces: int
) -> float:
    """Of the incoherent sum of all rays, over the same ranges as the bundle's."""
    power = [
        sum(10 ** (-0.1 * loss) for loss in rayed(z, c, source, receiver, x, bounces))
        for x in np.linspace(distance - width, distance + width, 21)
    ]
    return -10.0 * math.log10(float(np.mean(power)))


ZM = np.linspace(0.0, 5000.0, 501)
ZT = np.array([0.0, 20.0, 30.0, 40.0, 50.0, 60.0, 200.0])
BOUNCES = 8
CASES = {
    "munk 20 km": (ZM, munk(ZM), 1000.0, 2000.0, 20e3, 400.0),
    "munk 50 km": (ZM, munk(ZM), 1000.0, 1500.0, 50e3, 500.0),
    "thermocline 1.5 km": (
        ZT,
        np.array([1520.0, 1519.5, 1512.0, 1503.0, 1497.0, 1495.0, 1493.0]),
        10.0,
        80.0,
        1.5e3,
        40.0,
    ),
    "thermocline 3 km": (ZT, np.array([1520.0, 1519.5, 1512.0, 1503.0, 1497.0, 1495.0, 1493.0]), 10.0, 80.0, 3e3, 80.0),
}


@pytest.mark.compiled
@pytest.mark.parametrize("case", CASES)
def test_levels_against_a_dense_bundle(case: str) -> None:
    """Surface and bottom reflect all here, so that nothing but the tubes is compared."""
    z, c, source, receiver, distance, width = CASES[case]
    assert mean_loss(z, c, source, receiver, distance, width, BOUNCES) == pytest.approx(
        bundle(z, c, source, receiver, distance, width), abs=1.0
    )


#: depth and range in m; loss in dB, incoherent, mean over +- 1 km, by Bellhop (Acoustics Toolbox of May 2023, built with
#: gfortran, run by `python -m benchmarks.bellhop` on 2026-11-23) for the toolbox's case Munk: 50 Hz, 1000 m, +-20.3 deg
BELLHOP = {(800.0, 35e3): 91.54, (2000.0, 35e3): 83.36, (3500.0, 20e3): 82.34, (3500.0, 50e3): 89.76}


@pytest.mark.compiled
def test_levels_against_bellhop() -> None:
    """Away from caustics; bottom of Rayleigh's coefficient at the angle of each bounce."""
    case = bellhop.CASES["Munk"]
    receivers = tuple((z, x, 1000.0) for z, x in BELLHOP)
    losses, marked = bellhop.ours(dataclasses.replace(case, receivers=receivers), steps=21)
    assert not any(marked) and losses == pytest.approx(list(BELLHOP.values()), abs=0.3)


def circles(source: float, receiver: float, distance: float, width: float) -> float:
    """Loss in dB of the rays that the surface duct of `sduct` holds (c = 1497 + 0.02 z down to 250 m): each is a chain of one circle, so
    every place where it crosses the receiver's depth is known in closed form; power counted as in :func:`bundle`."""
    c0, g = 1497.0, 0.02
    cs, cr = c0 + g * source, c0 + g * receiver
    step = 1e-6
    angles = np.arange(-0.0776 + 0.5 * step, 0.0776, step)
    p = np.cos(angles) / cs
    held = (p > 1.0 / 1502.0) & (p * cr < 1.0)
    angles, p = angles[held], p[held]
    half, down, up = (np.sqrt(np.maximum(1.0 - (p * c) ** 2, 0.0)) / (p * g) for c in (c0, cs, cr))
    first = np.where(angles > 0.0, down, 2.0 * half - down)  # range to the first turn
    sine, total = np.sqrt(np.maximum(1.0 - (p * cr) ** 2, 1e-12)), 0.0
    for turn in range(int((distance + width) / (2.0 * half.min())) + 2):
        for side in (-1.0, 1.0):
            x = first + 2.0 * half * turn + side * up
            near = np.abs(x - distance) <= width
            total += float((np.cos(angles[near]) * step / (x[near] * 2.0 * width * sine[near])).sum()) * cr / cs
    return -10.0 * math.log10(total)


def test_a_leaky_duct_by_circles() -> None:
    """Between the rays that the duct holds and those that leave it none leads to the receiver: a search that took the jump of the
    range for an eigenray was 6.5 dB too loud here. (A caustic lies in every window; Bellhop has 81.31 dB.)"""
    case = bellhop.CASES["sduct"]
    (mine,), _ = bellhop.ours(dataclasses.replace(case, receivers=((100.0, 40e3, 1000.0),)), steps=21)
    true = circles(25.0, 100.0, 40e3, 1000.0)
    assert true == pytest.approx(81.31, abs=0.05) and mine == pytest.approx(true, abs=1.0)


def test_an_eigenray_meets_its_receiver() -> None:
    """All that the search finds in the duct, at the range asked for."""
    z, c, none = bellhop.DUCT_Z, bellhop.DUCT_C, np.zeros((0, 2))
    fan, found, out = (
        records(eigenrays.FAN, eigenrays.fan_size(len(z))),
        records(eigenrays.EIGENRAY, 64),
        records(rays.RAY, 1),
    )
    water = SoundSpeedProfile(z, c)
    link = rays.make_link(water, 25.0, 100.0, 40e3)
    n = eigenrays.launch_fan(water, 25.0, fan)
    count, _ = eigenrays.find_eigenrays(EigenraySearch(link, 6, True, fan, found, none, out), n)
    assert count >= 8
    for theta, down, reversals, *_ in found[:count].tolist():
        assert rays.trace_ray(link, theta, down > 0, reversals, none, out[0], True)
        assert out[0].x == pytest.approx(40e3, abs=eigenrays.MAX_MISS)


def test_tubes_are_spheres_in_still_water_and_know_an_arc_in_closed_form() -> None:
    z, out = np.array([0.0, 40.0, 200.0]), records(rays.RAY, 1)[0]
    images = [20.0 * math.log10(math.hypot(3e3, up)) for up in (95.0, 145.0, 255.0, 305.0, 495.0)]
    assert sorted(rayed(z, np.full(3, 1500.0), 25.0, 120.0, 3e3, 2)) == pytest.approx(images, abs=1e-6)
    deep, c = np.array([0.0, 9000.0]), np.array([1500.0, 1644.0])
    for source, receiver, x in ((1000.0, 3000.0, 5e3), (3000.0, 2900.0, 9e3)):
        direct = min(rayed(deep, c, source, receiver, x, 0))
        assert rays.gradient_arc(1500.0, 0.016, 9000.0, source, receiver, x, out)
        cs, cr = 1500.0 + 0.016 * source, 1500.0 + 0.016 * receiver
        assert ray_tubes.arc_spreading(x, out.length, out.sin_source, cs, cr) == pytest.approx(direct, abs=1e-6)


MIRROR = '<multipath order="1" surface="{surface}"/>'


@pytest.mark.parametrize("profile", ["constant", "file"])
@pytest.mark.parametrize("way", ["first", "incoherent", "coherent"])
def test_lloyds_mirror(config: Make, tmp_path: Path, profile: str, way: str) -> None:
    """Direct sound and that from the surface, against their sum by hand; by images and by rays."""
    (tmp_path / "c.txt").write_text("0 1500\n9000 1500\n")
    extra = f'sound_speed="1500 m/s" absorption="0 dB/m" sum="{way}"'
    if profile == "file":
        extra += f' profile="file" file="{tmp_path / "c.txt"}"'
    sim = sea(config, "4 ms", PLAIN, extra=extra, inner=MIRROR.format(surface="flat"))
    node(sim, "a", 0, 0.0, z=3.0)
    places = [(220.0, 2.0), (250.0, 2.5), (301.0, 4.0)]
    rows = [node(sim, f"b{k}", 0, x, z=z) for k, (x, z) in enumerate(places)]
    sim.ping(0, 25e3, 200.0)
    _, receptions = run(sim, 0.6)
    for row, (x, z) in zip(rows, places, strict=True):
        near, far = math.hypot(x, z - 3.0), math.hypot(x, z + 3.0)
        wave = 2.0 * math.pi * 25e3 / 1500.0
        wanted = {
            "first": near**-2,
            "incoherent": near**-2 + far**-2,
            "coherent": abs(np.exp(1j * wave * near) / near - np.exp(1j * wave * far) / far) ** 2,
        }[way]
        (mine,) = heard(receptions, row)
        assert mine["level"] == pytest.approx(200.0 + 10.0 * math.log10(wanted), abs=0.02)
        assert mine["heard_level"] == mine["level"]


@pytest.mark.parametrize("surface", ["rough", "bubbles"])
def test_what_a_rough_surface_takes(config: Make, surface: str) -> None:
    """At 2 kHz by waves of Hs 0.4 m (Eckart), at 25 kHz by the bubbles of a wind of 8 m/s (APL-UW)."""
    frequency = 2e3 if surface == "rough" else 25e3
    world = '<bed depth="9000 m"/><wind speed="8 m/s"/><waves height="0.4 m" peak="0.9 rad/s"/>'
    plain = PLAIN.replace("10 kHz", "1 kHz")
    sim = sea(
        config,
        "4 ms",
        plain,
        extra='sound_speed="1500 m/s" absorption="0 dB/m"',
        inner=MIRROR.format(surface=surface),
        world=world,
    )
    node(sim, "a", 0, 0.0, z=1000.0)
    b = node(sim, "b", 0, 3000.0, z=900.0)
    sim.ping(0, frequency, 220.0)
    _, receptions = run(sim, 3.0)
    (echo,) = receptions[(receptions["receiver"] == b) & (receptions["surface"] == 1)]
    length, sine = math.hypot(3000.0, 1900.0), 1900.0 / math.hypot(3000.0, 1900.0)
    loss = (
        -20.0 * math.log10(math.exp(-2.0 * (2.0 * math.pi * frequency / 1500.0 * 0.1 * sine) ** 2))
        if surface == "rough"
        else 1.26e-3 * 8.0**1.57 * 25.0**0.85 / sine
    )
    assert echo["level"] == pytest.approx(220.0 - 20.0 * math.log10(length) - loss, abs=0.01)
    assert loss > 0.5


def test_the_bottoms_phase_and_loss_are_one_coefficient() -> None:
    """Rayleigh's: no loss, and a phase that goes from 180 degrees to 0, between grazing and the critical angle."""
    for sine in (0.05, 0.2, 0.3):
        assert image_paths.bottom_loss(sine, 1.9, 1500.0 / 1650.0, 0.0) == pytest.approx(0.0, abs=1e-9)
    phases = [
        abs(image_paths.bottom_phase(s, 1.9, 1500.0 / 1650.0, 0.0)) for s in (1e-4, 0.1, 0.2, 0.3, 0.41, 0.43, 0.9)
    ]
    assert phases[0] == pytest.approx(math.pi, abs=1e-2) and phases[-1] == phases[-2] == 0.0
    assert np.all(np.diff(phases) <= 0.0)
