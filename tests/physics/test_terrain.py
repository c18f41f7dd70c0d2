"""Echoes from a bed that is not level under a sound-speed profile: against images in three dimensions, the search for
level beds, and a dense bundle of rays that are followed step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.physics.sea import PLAIN, node, run, sea
from tests.physics.test_slopes import SAND, A, B, wedge
from wavesim_sdk.arrays import Floats
from wavesim_server.acoustics import image_paths
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
THERMOCLINE = ((0.0, 1520.0), (15.0, 1519.0), (25.0, 1508.0), (40.0, 1500.0), (120.0, 1501.0))
SLOPE, HILL, MIDDLE, NARROW = 0.02, -7.0, 260.0, 0.011  #: of the ridge: m, m, 1/m
RIDGE = (
    f'<bed depth="55 m" slope_north="{SLOPE}"><bump height="{HILL} m" north="{MIDDLE} m" east="0 m" '
    f'alpha="{NARROW} 1/m" beta="1e-9 1/m"/></bed>'
)


def echoes(
    config: Make,
    tmp_path: Path,
    world: str,
    order: int,
    knots: Any,
    a: Floats,
    b: Floats,
    tick: str = "20 ms",
    v: float = 0.0,
    bottom: str = SAND,
    more: str = "",
    heard: bool = False,
) -> list[tuple[int, int, float, float, int]]:
    """(surface, bottom, range, level, arrival in ns) of the receptions that have met the bed (``heard``: or have not), in order of time."""
    (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in knots))
    extra = f'absorption="0 dB/m" sound_speed="1500 m/s" profile="file" file="{tmp_path / "c.txt"}" {more}'
    sim = sea(config, tick, PLAIN, world=world, extra=extra, inner=bottom.format(order=order))
    sender, hearer = node(sim, "a", 0, a[0], y=a[1], z=a[2]), node(sim, "b", 0, b[0], v=v, y=b[1], z=b[2])
    sim.ping(sender, 25e3)
    _, receptions = run(sim, 1.5)
    mine = receptions[(receptions["receiver"] == hearer) & (heard | (receptions["bottom"] > 0))]
    return [
        (int(k["surface"]), int(k["bottom"]), float(k["range"]), float(k["level"]), int(k["arrival_ns"]))
        for k in np.sort(mine, order="arrival_ns")
    ]


@pytest.mark.parametrize("slope", [(0.06, -0.03), (-0.12, 0.1)])
def test_a_wedge_by_images(config: Make, tmp_path: Path, slope: tuple[float, float]) -> None:
    """A profile of one speed: lengths to a micrometre, levels to 1e-3 dB, up to three bounces, across the slope too."""
    world = f'<bed depth="60 m" slope_north="{slope[0]}" slope_east="{slope[1]}"/>'
    knots = ((0, 1500), (40, 1500), (90, 1500), (200, 1500))
    found = echoes(config, tmp_path, world, 3, knots, A, B)
    wanted = sorted((far, sines, *key) for key, ways in wedge(3, 60.0, slope).items() for far, sines in ways if key[1])
    assert [k[:2] for k in found] == [(surface, bottom) for _, _, surface, bottom in wanted]
    for (_, _, length, level, arrival), (far, sines, _, _) in zip(found, wanted, strict=True):
        assert length == pytest.approx(far, abs=1e-6) and arrival == pytest.approx(far / 1500.0 * 1e9, abs=1.5)
        lost = 20.0 * math.log10(far) + sum(image_paths.bottom_loss(sine, 1.9, 1500.0 / 1650.0, 0.8) for sine in sines)
        assert level == pytest.approx(200.0 - lost, abs=1e-3)


@pytest.mark.parametrize("way", ["first", "coherent"])
@pytest.mark.parametrize("distance", [700.0, 1400.0])
def test_a_level_bed_by_the_search_for_level_beds(config: Make, tmp_path: Path, distance: float, way: str) -> None:
    """A bed that falls by a micrometre gives the echoes of a level one: through a thermocline with turning rays and caustics, with
    their phases too."""
    worlds = ('<bed depth="110 m"/>', '<bed depth="110 m" slope_north="1e-9"/>')
    a, b = np.array([0.0, 0.0, 10.0]), np.array([distance, 0.0, 60.0])
    knots = (*THERMOCLINE[:-1], (300.0, 1505.0))
    level, falling = (echoes(config, tmp_path, w, 3, knots, a, b, more=f'sum="{way}"', heard=True) for w in worlds)
    assert [k[:2] for k in level] == [k[:2] for k in falling] and len(level) >= 4
    for one, other in zip(level, falling, strict=True):
        assert other[2] == pytest.approx(one[2], abs=1e-4) and other[4] == pytest.approx(one[4], abs=2)
        assert other[3] == pytest.approx(one[3], abs=0.01)


def bed_at(x: Floats) -> Floats:
    return 55.0 + SLOPE * x + HILL * np.exp(-((NARROW * (x - MIDDLE)) ** 2))


def follow(knots: Any, source: float, angles: Floats, distance: float, order: int, h: float) -> tuple[Floats, Floats]:
    """Bounces (2, n) off surface and bed, (depth, time, angle) (3, n) at a distance, of rays from (0, source): the ray equations by
    Runge and Kutta in steps of h, mirrored where they meet surface and bed. NaN: it does not come there."""
    depths, speeds = np.array(knots).T
    slopes = np.diff(speeds) / np.diff(depths)
    state = np.array([np.zeros_like(angles), np.full_like(angles, source), angles, np.zeros_like(angles)])
    hits, ended = np.zeros((2, len(angles)), int), np.full((3, len(angles)), np.nan)

    def rate(s: Floats) -> Floats:
        c, cosine = np.interp(s[1], depths, speeds), np.cos(s[2])
        g = slopes[np.clip(np.searchsorted(depths, s[1]) - 1, 0, len(slopes) - 1)]
        return np.array([cosine, np.sin(s[2]), -g / c * cosine, 1.0 / c])

    def step(s: Floats, h: Any) -> Floats:
        k1 = rate(s)
        k2 = rate(s + 0.5 * h * k1)
        k3 = rate(s + 0.5 * h * k2)
        k4 = rate(s + h * k3)
        return np.asarray(s + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))

    def outside(s: Floats) -> Floats:
        return np.asarray((s[1] < 0.0) | (s[1] > bed_at(s[0])))

    alive = np.ones(len(angles), bool)
    while alive.any():
        i = np.flatnonzero(alive)
        old = state[:, i]
        new = step(old, h)
        j = np.flatnonzero(outside(new))
        if len(j):
            low, high = np.zeros(len(j)), np.full(len(j), h)
            for _ in range(22):
                middle = 0.5 * (low + high)
                beyond = outside(step(old[:, j], middle))
                low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
            new[:, j] = step(old[:, j], low)
        passed = new[0] >= distance
        part = (distance - old[0][passed]) / (new[0] - old[0])[passed]
        ended[:, i[passed]] = (old[:, passed] + part * (new - old)[:, passed])[[1, 3, 2]]
        j = j[~passed[j]]
        top = new[1, j] < 1.0
        hits[0, i[j]] += top
        hits[1, i[j]] += ~top
        tilt = np.arctan((bed_at(new[0, j] + 1e-4) - bed_at(new[0, j] - 1e-4)) / 2e-4)
        new[2, j] = np.where(top, 0.0, 2.0 * tilt) - new[2, j]
        state[:, i] = new
        alive[i] = ~passed & (hits[:, i].sum(axis=0) <= order) & (np.abs(new[2]) < 1.5)
    return hits, ended


def bundle(
    knots: Any, source: float, receiver: float, distance: float, order: int
) -> list[tuple[int, int, float, float]]:
    """(surface, bottom, time, transmission loss without that at the bed) of the rays that have met the bed, between each two of
    which the receiver lies: of a bundle, and then of nine rays between each two of it, by a parabola through their depths."""
    depths, speeds = np.array(knots).T
    cs, cr = np.interp([source, receiver], depths, speeds)
    angles, found = np.linspace(-0.9, 0.9, 601), []
    hits, ended = follow(knots, source, angles, distance, order, 1.0)
    over = ended[0] > receiver
    pairs = np.flatnonzero((over[1:] != over[:-1]) & (hits[:, 1:] == hits[:, :-1]).all(axis=0) & (hits[1, 1:] > 0))
    pairs = pairs[np.isfinite(ended[0, pairs] + ended[0, pairs + 1])]
    near = np.linspace(angles[pairs], angles[pairs + 1], 9, axis=1)
    hits, ended = follow(knots, source, near.ravel(), distance, order, 0.2)
    for k, some in enumerate(near):
        z, t, lean = ended[:, 9 * k : 9 * k + 9]
        m = int(np.flatnonzero((z[1:] > receiver) != (z[:-1] > receiver))[0])
        part = (receiver - z[m]) / (z[m + 1] - z[m])
        middle = some.mean()
        slope = np.polyval(np.polyder(np.polyfit(some - middle, z, 2)), some[m] - middle)
        power = math.cos(some[m]) / (distance * abs(slope) * math.cos(lean[m])) * cr / cs
        found.append((*hits[:, 9 * k].tolist(), t[m] + part * (t[m + 1] - t[m]), -10.0 * math.log10(power)))
    return sorted(found)


#: every echo over the ridge that meets the bed, by Bellhop (as in test_levels; arrivals of 20001 rays, the bed every half metre, rigid):
#: its bounces off the bed, time in s, loss in dB
BELLHOP = {
    (500.0, 30.0, 2): ((1, 0.3352919, 58.13), (1, 0.3377130, 57.38), (1, 0.3419246, 55.27)),
    (350.0, 40.0, 3): (
        (1, 0.2353455, 54.09),
        (1, 0.2378959, 53.96),
        (1, 0.2502071, 50.57),
        (1, 0.2560993, 49.85),
        (2, 0.2591381, 52.17),
    ),
}
#: below the critical angle of 75 deg it reflects all
HARD = '<multipath order="{order}" bottom_speed="6000 m/s" bottom_attenuation="0"/>'


@pytest.mark.parametrize("case", BELLHOP)
def test_a_ridge_under_a_thermocline_by_bellhop(config: Make, tmp_path: Path, case: tuple[float, float, int]) -> None:
    distance, depth, order = case
    b = np.array([distance, 0.0, depth])
    found = echoes(config, tmp_path, RIDGE, order, THERMOCLINE, np.array([0.0, 0.0, 12.0]), b, bottom=HARD)
    for (_, bottom, _, level, arrival), (bounces, time, loss) in zip(found, BELLHOP[case], strict=True):
        assert bottom == bounces and arrival * 1e-9 == pytest.approx(time, abs=2e-7)
        assert 200.0 - level == pytest.approx(loss, abs=0.2)


def test_a_ridge_under_a_thermocline_by_a_bundle(config: Make, tmp_path: Path) -> None:
    """Every path: times to a tenth of a microsecond, levels to 1 dB (the steps across knots leave the bundle some tenths)."""
    found = echoes(
        config, tmp_path, RIDGE, 3, THERMOCLINE, np.array([0.0, 0.0, 12.0]), np.array([350.0, 0.0, 40.0]), bottom=HARD
    )
    wanted = sorted(bundle(THERMOCLINE, 12.0, 40.0, 350.0, 3), key=lambda k: k[2])
    assert [k[:2] for k in found] == [k[:2] for k in wanted] and len(wanted) == 5
    for (_, _, _, level, arrival), (_, _, time, loss) in zip(found, wanted, strict=True):
        assert arrival * 1e-9 == pytest.approx(time, abs=1e-7) and 200.0 - level == pytest.approx(loss, abs=1.0)


def test_the_tick_does_not_matter(config: Make, tmp_path: Path) -> None:
    """A receiver that moves over the ridge hears its echoes at the same nanosecond whatever the tick; by soundings of the same bed too,
    to what their triangles differ from it."""
    a, b = np.array([0.0, 0.0, 12.0]), np.array([350.0, 0.0, 40.0])
    runs = [echoes(config, tmp_path, RIDGE, 2, THERMOCLINE, a, b, tick, 1.5) for tick in ("4 ms", "100 ms")]
    assert len(runs[0]) >= 3 and [k[4] for k in runs[0]] == [k[4] for k in runs[1]]
    x = np.arange(-100.0, 501.0, 4.0)
    lines = [f"{u} {y} {d}" for u, d in zip(x, bed_at(x), strict=True) for y in (-200.0, 0.0, 200.0)]
    (tmp_path / "s.xyz").write_text("\n".join(lines))
    world = f'<soundings file="{tmp_path / "s.xyz"}"/>'
    triangles = echoes(config, tmp_path, world, 2, THERMOCLINE, a, b, "20 ms", 1.5)
    for surface, bottom, length, _, _ in runs[0]:
        assert min(abs(k[2] - length) for k in triangles if k[:2] == (surface, bottom)) < 0.3


def test_over_a_level_bed_nothing_of_it_is_computed(config: Make, tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("0 1500\n100 1510\n")
    extra = f'profile="file" file="{tmp_path / "c.txt"}"'
    for world, uneven in (('<bed depth="60 m"/>', 0), ('<bed depth="60 m" slope_north="0.01"/>', 1)):
        sim = sea(config, "20 ms", PLAIN, world=world, extra=extra, inner=SAND.format(order=2))
        assert sim.channel.medium.water[0].uneven == uneven
        assert sim.channel.medium.profile_z[-1] == (120.0 if uneven else 60.0)
