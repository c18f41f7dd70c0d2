"""Propagation paths: complete against dense fans, the strongest of many, and their phases in a coherent sum."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import PLAIN, node, records, run, sea
from tests.physics.test_slopes import A, B, wedge
from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import eigenrays, fans, image_paths, medium_arrays, range_dependent_rays, rays, waveguides
from wavesim_server.acoustics.types import SoundSpeedProfile, Vector
from wavesim_server.acoustics.waveguides import RayStart
from wavesim_server.elementary import cos, sin
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.sound import munk

Make = Callable[..., LoadedConfig]
#: heard on every path, however weak
WEAK = PLAIN.replace("10 kHz", "1 Hz").replace("60 dB", "-200 dB")
LONG = WEAK.replace("10 ms", "3 s")
SUMMER = ((0.0, 1520.0), (15.0, 1519.0), (25.0, 1508.0), (40.0, 1500.0), (120.0, 1501.0))
WEDGE = '<bed depth="45 m" slope_north="0.03"/>'


def receptions(
    config: Make,
    tmp_path: Path,
    knots: Any,
    a: Floats,
    b: Floats,
    order: int,
    world: str,
    more: str = "",
    frequency: float = 25e3,
    transducer: str = WEAK,
    bottom: str = "",
) -> tuple[Any, int]:
    """(receptions of one signal of 200 dB in order of time, paths left out)."""
    extra = f'absorption="0 dB/m" {more}'
    if knots is not None:
        (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in knots))
        extra += f' profile="file" file="{tmp_path / "c.txt"}"'
    inner = f'<multipath order="{order}" {bottom}/>'
    sim = sea(config, "100 ms", transducer, world=world, noise="-200 dB", extra=extra, inner=inner)
    sender, hearer = node(sim, "a", 0, a[0], y=a[1], z=a[2]), node(sim, "b", 0, b[0], y=b[1], z=b[2])
    sim.ping(sender, frequency)
    _, found = run(sim, math.dist(a, b) / 1400.0 + 5.0)
    return np.sort(found[found["receiver"] == hearer], order="arrival_ns"), sim.channel.paths_dropped


@pytest.mark.compiled
def test_a_higher_order_never_gives_fewer_echoes(config: Make, tmp_path: Path) -> None:
    a, b = np.array([0.0, 0.0, 30.0]), np.array([1500.0, 0.0, 60.0])
    before: list[Any] = []
    for order in range(1, 7):
        found, dropped = receptions(config, tmp_path, SUMMER, a, b, order, WEDGE)
        now = found[["surface", "bottom", "arrival_ns", "level"]].tolist()
        for s, k, time, level in before:
            near = [n for n in now if n[:2] == (s, k) and abs(n[2] - time) <= 2]
            assert near and near[0][3] == pytest.approx(level, abs=0.02), (order, s, k)
        assert dropped == 0 and len(now) > len(before)
        before = now
    assert len(before) > 16
    assert sum(n[:2] == (1, 2) for n in before) == 3


@pytest.mark.compiled
@pytest.mark.parametrize("most", [1, 4, 9])
def test_the_strongest_are_followed_and_the_others_counted(config: Make, tmp_path: Path, most: int) -> None:
    a, b = np.array([0.0, 0.0, 30.0]), np.array([1500.0, 0.0, 60.0])
    every, none = receptions(config, tmp_path, SUMMER, a, b, 5, WEDGE)
    found, dropped = receptions(config, tmp_path, SUMMER, a, b, 5, WEDGE, more=f'paths="{most}"')
    assert none == 0 and dropped == len(every) - most and len(found) == most
    wanted = sorted([every["level"][0], *sorted(every["level"][1:])[::-1][: most - 1]])
    assert sorted(found["level"]) == pytest.approx(wanted, abs=1e-6)
    assert found["arrival_ns"][0] == every["arrival_ns"][0], "the first to arrive gives the range"


def test_many_nodes_in_a_profile(config: Make, tmp_path: Path) -> None:
    """An emission makes room for its paths to all nodes; it once waited for ever for that of 4096 records."""
    (tmp_path / "c.txt").write_text("0 1500\n100 1510\n")
    sim = sea(
        config,
        "100 ms",
        PLAIN,
        world='<bed depth="60 m"/>',
        extra=f'profile="file" file="{tmp_path / "c.txt"}"',
        inner='<multipath order="2"/>',
        rest='<shared vehicles="600"/><log faded="no"/>',
    )
    node(sim, "a", 0, 0.0, z=20.0)
    node(sim, "b", 0, 300.0, z=20.0)
    sim.ping(0, 25e3)
    _, found = run(sim, 1.0)
    assert len(found) >= 4


# ------------------------------------------------------------------ all paths over a level bed


def half(z: Floats, c: Floats, p: Floats, start: float, down: bool) -> tuple[Floats, Floats, Floats]:
    """(range, depth, whether that is a boundary) of the first reversal of rays, layer by layer."""
    x, here, ca = np.zeros_like(p), np.full_like(p, start), np.full_like(p, np.interp(start, z, c))
    alive = np.ones(len(p), bool)
    for k in range(len(z) - 1) if down else range(len(z) - 2, -1, -1):
        if (start >= z[k + 1]) if down else (start <= z[k]):
            continue
        g, end = (c[k + 1] - c[k]) / (z[k + 1] - z[k]), k + 1 if down else k
        turns = alive & (p * c[end] >= 1.0) & ((g > 0.0) == down) & (g != 0.0)
        cb = np.where(turns, 1.0 / p, c[end])
        target = np.where(turns, here + (cb - ca) / (g or 1.0), z[end])
        sines = [np.sqrt(np.maximum((1.0 - p * s) * (1.0 + p * s), 0.0)) for s in (ca, cb)]
        dx = p * (ca + cb) / np.maximum(sines[0] + sines[1], 1e-300) * np.abs(target - here)
        x, here, ca = np.where(alive, x + dx, x), np.where(alive, target, here), np.where(alive, cb, ca)
        alive &= ~turns
    return x, here, alive


def between(z: Floats, c: Floats, p: Floats, upper: float, lower: float) -> Floats:
    """Range from a depth to a lower one; NaN if a ray turns on its way."""
    x, there = np.zeros_like(p), np.ones(len(p), bool)
    for k in range(len(z) - 1):
        top, end = max(z[k], upper), min(z[k + 1], lower)
        if end > top:
            ca, cb = (c[k] + (c[k + 1] - c[k]) * (d - z[k]) / (z[k + 1] - z[k]) for d in (top, end))
            there &= (p * ca < 1.0) & (p * cb < 1.0)
            sines = [np.sqrt(np.maximum((1.0 - p * s) * (1.0 + p * s), 0.0)) for s in (ca, cb)]
            x += p * (ca + cb) / np.maximum(sines[0] + sines[1], 1e-300) * (end - top)
    return np.where(there, x, np.nan)


def dense(
    z: Floats, c: Floats, source: float, receiver: float, distance: float, order: int
) -> list[tuple[int, int, float, float]]:
    """(down, reversals, launch angle, spreading loss) of all rays between two of 60 000, the loss by what they move."""
    angles = np.concatenate([np.geomspace(1e-5, 0.02, 10_000), np.linspace(0.02, 1.5706, 50_001)[1:]])
    cs, cr = np.interp([source, receiver], z, c)
    p = np.cos(angles) / cs
    ux, high, surface = half(z, c, p, source, False)
    lx, low, bed = half(z, c, p, source, True)
    way = between(z, c, p, min(source, receiver), max(source, receiver)) * (1.0 if receiver > source else -1.0)
    way[(receiver < high) | (receiver > low)] = np.nan
    kind, sine = surface + 2 * bed, np.sqrt(np.maximum(1.0 - (p * cr) ** 2, 0.0))
    found = []
    for down in (False, True):
        for r in range(eigenrays.REVERSALS + 1):
            if r == 0:
                x = np.abs(way) if (receiver > source) == down else np.full_like(way, np.nan)
            else:
                last = lx - way if down == (r % 2 == 1) else ux + way
                x = (lx if down else ux) + (r - 1) * (ux + lx) + last
            lower = (r + 1) // 2 if down else r // 2
            f = np.where(bed * lower + surface * (r - lower) <= order, x - distance, np.nan)
            # a ray that turns deeper by far than its neighbour has passed a crest of the speed: no ray lies between
            jump = (np.abs(np.diff(low)) > 1.0) | (np.abs(np.diff(high)) > 1.0)
            for k in np.flatnonzero((f[1:] * f[:-1] <= 0.0) & (kind[1:] == kind[:-1]) & ~jump):
                u = f[k] / (f[k] - f[k + 1])
                slope, s = (f[k + 1] - f[k]) / (angles[k + 1] - angles[k]), sine[k] + u * (sine[k + 1] - sine[k])
                power = math.cos(angles[k]) * cr / cs / max(distance * abs(slope) * s, 1e-12)
                found.append((int(down), r, angles[k] + u * (angles[k + 1] - angles[k]), -10.0 * math.log10(power)))
    return found


def searched(
    z: Floats, c: Floats, source: float, receiver: float, distance: float, order: int
) -> list[tuple[int, int, float]]:
    """(down, reversals, launch angle) of all rays that the medium finds."""
    fan, found = records(eigenrays.FAN, eigenrays.fan_size(len(z))), records(eigenrays.EIGENRAY, 512)
    water = SoundSpeedProfile(z, c)
    n = eigenrays.launch_fan(water, source, fan)
    search = eigenrays.EigenraySearch(
        rays.make_link(water, source, receiver, distance),
        order,
        True,
        fan,
        found,
        np.zeros((0, 2)),
        records(rays.RAY, 1),
    )
    count, left = eigenrays.find_eigenrays(search, n)
    assert left == 0 or count == 512 or any(e.reversals > 25 for e in found[:count])
    return [(int(e.down), int(e.reversals), float(e.angle)) for e in found[:count]]


def missed(wanted: list[tuple[int, int, float, float]], found: list[tuple[int, int, float]]) -> tuple[int, int]:
    """(rays within 20 dB of the strongest, how many of them have not been found)."""
    best, free, strong, lacking = min((w[3] for w in wanted), default=0.0), list(found), 0, 0
    for down, r, angle, loss in sorted(wanted, key=lambda w: w[3]):
        if loss <= best + 20.0:
            strong += 1
            near = [f for f in free if f[:2] == (down, r) and abs(f[2] - angle) < 1e-5 + 1e-4 * angle]
            if near:
                free.remove(near[0])
            else:
                lacking += 1
    return strong, lacking


def profile(rng: np.random.Generator, kind: int, deep: float) -> tuple[Floats, Floats]:
    """Of random layers, a thermocline, a channel, or nearly linear."""
    z = np.concatenate([[0.0], np.sort(rng.uniform(2.0, deep - 2.0, int(rng.integers(3, 25)))), [deep]])
    z = z[np.concatenate([[True], np.diff(z) > 0.5])]
    c = (
        1500.0 + np.cumsum(rng.normal(0.0, 2.0, len(z))),
        1520.0 - 20.0 / (1.0 + np.exp(-(z - 0.3 * deep) / (0.05 * deep))) + 0.016 * z + rng.normal(0.0, 0.2, len(z)),
        1490.0 + np.abs(z - deep * rng.uniform(0.2, 0.8)) * rng.uniform(0.05, 1.0),
        1500.0 + 0.016 * z + rng.normal(0.0, 0.05, len(z)),
    )[kind]
    return z, np.ascontiguousarray(c)


@pytest.mark.compiled
def test_all_paths_of_random_profiles() -> None:
    rng, strong, lacking = np.random.default_rng(20), 0, 0
    for scene in range(16):
        deep = rng.uniform(50.0, 400.0)
        z, c = profile(rng, scene % 4, deep)
        at = *rng.uniform(1.0, deep - 1.0, 2), rng.uniform(200.0, 8000.0), int(rng.integers(1, 7))
        one = missed(dense(z, c, *at), searched(z, c, *at))
        strong, lacking = strong + one[0], lacking + one[1]
    assert strong > 80 and lacking <= 0.01 * strong, (strong, lacking)


CHANNEL = (np.array([0.0, 40, 50, 60, 70, 80]), np.array([1500.0, 1500, 1490, 1482, 1490, 1500]), 60.0, 62.0, 2e3, 4)
DUCT = (np.array([0.0, 60, 200]), np.array([1500.0, 1501, 1490]), 20.0, 40.0, 16e3, 6)
ZM = np.linspace(0.0, 5000.0, 81)
DEEP = (ZM, munk(ZM), 1000.0, 900.0, 40e3, 2)


@pytest.mark.compiled
@pytest.mark.parametrize(("case", "turns"), [(CHANNEL, 10), (DUCT, 3), (DEEP, 2)], ids=["channel", "duct", "munk"])
def test_turns_are_no_bounces(case: Any, turns: int) -> None:
    """Every ray of a channel, of a surface duct and of the deep sea, and as many of its turns as it makes."""
    found = searched(*case)
    strong, lacking = missed(dense(*case), found)
    assert lacking == 0 and strong >= 5
    assert max(r for _, r, _ in found) >= turns


# ------------------------------------------------------------------ and over one that is not level


@kernel
def shot(
    guide: Any,
    source: float,
    receiver: float,
    sign: float,
    angles: Floats,
    legs: Floats,
    none: Floats,
    out: Any,
    x: Floats,
    kinds: Floats,
    beds: Floats,
) -> None:
    """Where each leg of rays comes, what they have met till there, and how often the bed."""
    last = waveguides.MAX_LEGS - 1
    for k in range(len(angles)):
        start = RayStart(Vector(0.0, 0.0, source), Vector(cos(angles[k]), 0.0, sign * sin(angles[k])))
        range_dependent_rays.trace_ray(guide, start, receiver, last, False, legs, none, out)
        for r in range(waveguides.MAX_LEGS):
            x[k, r], kinds[k, r], beds[k, r] = (
                legs[r, waveguides.X],
                legs[r, waveguides.HISTORY],
                legs[r, waveguides.BEDS_MET],
            )


def waveguide_of(sim: Any, order: int, distance: float) -> Any:
    """Water and bed from the origin to a point north of it."""
    m = sim.channel.medium
    return waveguides.waveguide_between(
        SoundSpeedProfile(m.profile_z, m.profile_c),
        medium_arrays.sound_field(m, 0.0),
        sim.tick_executor.scene,
        order,
        Vector(0.0, 0.0, 0.0),
        Vector(distance, 0.0, 0.0),
    )


def bundle(sim: Any, source: float, receiver: float, distance: float) -> list[tuple[int, float, float]]:
    """(reversals, time, loss) of the rays over the bed between two of 15 000 to each side, each then aimed."""
    m = sim.channel.medium
    legs, out = waveguides.legs_view(m.legs), records(waveguides.SHOT, 1)[0]
    a, b = Vector(0.0, 0.0, source), Vector(distance, 0.0, receiver)
    guide = waveguide_of(sim, int(m.water[0].order), distance)
    angles = np.concatenate([np.geomspace(1e-5, 0.02, 3000), np.linspace(0.02, 2.1, 12_001)[1:]])
    found: list[tuple[int, float, float]] = []
    for sign in (-1.0, 1.0):
        ahead, kinds, beds = np.full((3, len(angles), waveguides.MAX_LEGS), np.nan)
        shot(guide, source, receiver, sign, angles, legs[0], m.no_points, out, ahead, kinds, beds)
        ahead -= distance
        for k, r in np.argwhere((kinds[1:] == kinds[:-1]) & (beds[1:] > 0) & (ahead[1:] * ahead[:-1] <= 0.0)):
            angle = angles[k] + ahead[k, r] / (ahead[k, r] - ahead[k + 1, r]) * (angles[k + 1] - angles[k])
            direction = Vector(math.cos(angle), 0.0, sign * math.sin(angle))
            if range_dependent_rays.aim_ray(guide, a, b, int(r), direction, legs, m.no_points, out):
                loss = waveguides.bed_loss(legs[waveguides.NOW], int(out.bottom), 1.9, 1500.0 / 1650.0, 0.8, False)[0]
                if not any(f[0] == r and abs(f[1] - out.time) < 2e-9 for f in found):
                    found.append((int(r), float(out.time), float(out.spread) + loss))
    return found


def ground(rng: np.random.Generator, kind: int) -> tuple[str, Any, float, float, float, int]:
    """(world, knots, source and receiver depth, distance, order): a thermocline, a channel, a duct or layers over slopes and bumps."""
    deep, far, slope = rng.uniform(40.0, 120.0), rng.uniform(300.0, 2500.0), rng.uniform(-0.04, 0.04)
    deep = max(deep, 40.0 - min(slope, 0.0) * far)
    bumps = "".join(
        f'<bump height="{rng.uniform(-8, 8):.3f} m" north="{rng.uniform(0, far):.1f} m" east="0 m" '
        f'alpha="{rng.uniform(0.004, 0.02):.5f} 1/m" beta="1e-9 1/m"/>'
        for _ in range(rng.integers(0, 4))
    )
    mid, w, top, low = rng.uniform(10, 35), rng.uniform(3, 10), rng.uniform(1505, 1530), rng.uniform(1490, 1503)
    layers = np.sort(rng.uniform(1.0, 100.0, 12))
    knots = (
        [(0.0, top), (mid - w, top - 0.5), (mid, 0.5 * (top + low)), (mid + w, low), (400.0, low + 3.0)],
        [
            (0.0, 1500.0),
            (mid, 1500.5),
            (mid + w, 1485.0),
            (mid + 2 * w, 1490.0),
            (mid + 4 * w, 1500.0),
            (400.0, 1502.0),
        ],
        [(0.0, 1500.0), (mid, 1502.0), (mid + w, 1494.0), (400.0, 1500.0)],
        [(0.0, 1510.0), *zip(layers, 1510.0 - 0.15 * layers + rng.normal(0.0, 1.0, 12), strict=True), (400.0, 1500.0)],
    )[kind]
    world = f'<bed depth="{deep:.3f} m" slope_north="{slope:.5f}">{bumps}</bed>'
    return world, knots, rng.uniform(3, 35), rng.uniform(3, 35), far, int(rng.integers(2, 6))


def over_ground(config: Make, tmp_path: Path, seed: int, scenes: int) -> tuple[int, int]:
    """(rays within 20 dB of the strongest over random grounds, how many of them the medium does not find)."""
    rng, strong, lacking = np.random.default_rng(seed), 0, 0
    for scene in range(scenes):
        world, knots, source, receiver, far, order = ground(rng, scene % 4)
        (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in knots))
        extra = f'absorption="0 dB/m" profile="file" file="{tmp_path / "c.txt"}"'
        sim = sea(config, "100 ms", PLAIN, world=world, extra=extra, inner=f'<multipath order="{order}"/>')
        m = sim.channel.medium
        found, out = records(eigenrays.EIGENRAY, 512), records(waveguides.SHOT, 1)[0]
        count, left = fans.scan(
            waveguide_of(sim, order, far),
            Vector(0.0, 0.0, source),
            Vector(far, 0.0, receiver),
            found,
            0,
            waveguides.legs_view(m.legs),
            m.no_points,
            out,
        )
        assert left == 0
        free = [(int(e.reversals), float(e.time)) for e in found[:count]]
        wanted = bundle(sim, source, receiver, far)
        best = min((w[2] for w in wanted), default=0.0)
        for r, time, loss in wanted:
            if loss <= best + 20.0:
                strong += 1
                near = [f for f in free if f[0] == r and abs(f[1] - time) < 5e-8]
                if near:
                    free.remove(near[0])
                else:
                    lacking += 1
    return strong, lacking


@pytest.mark.compiled
def test_all_paths_over_random_grounds(config: Make, tmp_path: Path) -> None:
    strong, lacking = over_ground(config, tmp_path, 2, 8)
    assert strong > 35 and lacking <= 0.01 * strong, (strong, lacking)


@pytest.mark.long
@pytest.mark.compiled
def test_all_paths_over_many_random_grounds(config: Make, tmp_path: Path) -> None:
    strong, lacking = over_ground(config, tmp_path, 5, 80)
    assert strong > 400 and lacking <= 0.01 * strong, (strong, lacking)


# ------------------------------------------------------------------ phases


def coefficient(sine: float, density: float, speed: float, attenuation: float) -> complex:
    """Rayleigh's where pressures are as exp(+i w t): a wave exp(-i k x) fades by a negative imaginary part of the index, and so does
    one in the bottom on its way down."""
    index = speed * (1.0 - 1j * attenuation / (40.0 * math.pi * math.log10(math.e)))
    root = cmath.sqrt(index**2 - (1.0 - sine * sine))
    root = root if root.imag <= 0.0 else -root
    return (density * sine - root) / (density * sine + root)


@pytest.mark.parametrize("sine", [0.05, 0.2, 0.46, 0.48, 0.9])
def test_the_phase_of_the_bottom(sine: float) -> None:
    wanted = coefficient(sine, 1.8, 1500.0 / 1700.0, 0.5)
    assert image_paths.bottom_loss(sine, 1.8, 1500.0 / 1700.0, 0.5) == pytest.approx(
        -20 * math.log10(abs(wanted)), abs=1e-9
    )
    turn = image_paths.bottom_phase(sine, 1.8, 1500.0 / 1700.0, 0.5) - cmath.phase(wanted)
    assert abs(cmath.exp(1j * turn) - 1.0) < 1e-9


@pytest.mark.parametrize("mode", ["constant", "file"])
def test_a_pekeris_waveguide_coherently(config: Make, tmp_path: Path, mode: str) -> None:
    """By hand, image by image, to six bounces; with the opposite phase at the bottom it would be 148.36 dB."""
    total = 0j
    for bounces in range(7):
        for first in ("s", "b") if bounces else ("s",):
            z, hits = 20.0, 0
            for k in range(bounces):
                at_bottom = (first == "b") == (k % 2 == 0)
                z, hits = (200.0 - z, hits + 1) if at_bottom else (-z, hits)
            far = math.hypot(1000.0, z - 50.0)
            bottom = coefficient(abs(z - 50.0) / far, 1.8, 1500.0 / 1700.0, 0.5) ** hits * (-1.0) ** (bounces - hits)
            total += bottom / far * cmath.exp(-2j * math.pi * 500.0 * far / 1500.0)
    wanted = 200.0 + 20.0 * math.log10(abs(total))
    assert wanted == pytest.approx(142.91, abs=0.01)
    knots = ((0.0, 1500.0), (50.0, 1500.0), (100.0, 1500.0)) if mode == "file" else None
    more = 'sum="coherent"' + (' sound_speed="1500 m/s"' if mode == "constant" else "")
    found, _ = receptions(
        config,
        tmp_path,
        knots,
        np.array([0.0, 0.0, 20.0]),
        np.array([1000.0, 0.0, 50.0]),
        6,
        '<bed depth="100 m"/>',
        more,
        500.0,
        LONG,
        'bottom_speed="1700 m/s" bottom_density="1.8" bottom_attenuation="0.5"',
    )
    assert found["level"][0] == pytest.approx(wanted, abs=0.01)


@pytest.mark.compiled
@pytest.mark.parametrize("mode", ["constant", "file"])
def test_each_bounce_in_a_wedge_has_its_own_phase(config: Make, tmp_path: Path, mode: str) -> None:
    slope = (-0.12, 0.1)
    total = 1.0 / math.dist(A, B) * cmath.exp(-2j * math.pi * 700.0 * math.dist(A, B) / 1500.0)
    for (surface, _), ways in wedge(3, 60.0, slope).items():
        for far, sines in ways:
            size = (-1.0) ** surface / far * cmath.exp(-2j * math.pi * 700.0 * far / 1500.0)
            total += size * np.prod([coefficient(s, 1.8, 1500.0 / 1700.0, 0.5) for s in sines])
    knots = ((0.0, 1500.0), (50.0, 1500.0), (200.0, 1500.0)) if mode == "file" else None
    more = 'sum="coherent"' + (' sound_speed="1500 m/s"' if mode == "constant" else "")
    world = f'<bed depth="60 m" slope_north="{slope[0]}" slope_east="{slope[1]}"/>'
    found, _ = receptions(
        config,
        tmp_path,
        knots,
        A,
        B,
        3,
        world,
        more,
        700.0,
        LONG,
        'bottom_speed="1700 m/s" bottom_density="1.8" bottom_attenuation="0.5"',
    )
    assert found["level"][0] == pytest.approx(200.0 + 20.0 * math.log10(abs(total)), abs=0.01)
