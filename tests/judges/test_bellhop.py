"""BELLHOP (in the package pelagic) checks propagation paths, arrival times, levels and phases."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.judges import sound
from tests.physics.sea import PLAIN, node, run, sea
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.sound import munk

Make = Callable[..., LoadedConfig]
Judge = Callable[..., list[list[dict[str, float]]]]
pytestmark = pytest.mark.bellhop
#: long and loud, heard on every path and however weak
WIDE = PLAIN.replace("10 kHz", "1 Hz").replace("60 dB", "-200 dB").replace('pulse="10 ms"', 'pulse="{pulse} s"')
BOTTOM = {"cp": 1700.0, "rho": 1.8, "ap": 0.5}
SUMMER = ((0.0, 1520.0), (15.0, 1519.0), (25.0, 1508.0), (40.0, 1500.0), (120.0, 1501.0))
CHANNEL = ((0.0, 1500.0), (40.0, 1500.0), (50.0, 1490.0), (60.0, 1482.0), (70.0, 1490.0), (80.0, 1500.0))
DUCT = ((0.0, 1500.0), (60.0, 1501.0), (200.0, 1490.0))
MUNK = tuple((float(z), float(munk(np.array([z]))[0])) for z in np.linspace(0.0, 5000.0, 81))


@pytest.fixture
def judge(root: Path, tmp_path: Path) -> Judge:
    """What BELLHOP makes of cases."""

    def ask(*cases: dict[str, Any]) -> list[list[dict[str, float]]]:
        found = sound.ask(root, tmp_path, "bellhop.py", list(cases))
        return [[arrival for receiver in case for arrival in receiver] for case in found]

    return ask


def case(
    frequency: float,
    knots: Any,
    source: float,
    receiver: float,
    distance: float,
    angles: float,
    count: int,
    bed: Any = (),
    step: float = 0.0,
) -> dict[str, Any]:
    """A case of BELLHOP; ``bed``: its depth at ranges, if it is not level."""
    deep = max([z for _, z in bed] or [knots[-1][0]])
    ssp = [[z, c] for z, c in knots if z < deep] + [[deep, float(np.interp(deep, *np.array(knots).T))]]
    bottom: dict[str, Any] = {"type": "halfspace", "cs": 0.0, **BOTTOM}
    if bed:
        bottom["shape"] = {"points": [list(p) for p in bed]}
    return {
        "pelagic": 2,
        "model": "bellhop",
        "title": "case",
        "frequency": frequency,
        "interpolation": "c_linear",
        "media": [{"to": deep, "ssp": ssp}],
        "surface": "vacuum",
        "bottom": bottom,
        "source": {"depth": [source]},
        "receivers": {"depth": [receiver], "range": [distance], "grid": "irregular"},
        "bellhop": {
            "run": "arrivals",
            "beam": "geometric_hat_cartesian",
            "angles": {"from": -angles, "to": angles, "count": count},
            "step": step,
            "box": {"depth": 1.2 * deep, "range": 1.05 * distance},
        },
    }


def ours(
    config: Make,
    tmp_path: Path,
    frequency: float,
    knots: Any,
    source: float,
    receiver: float,
    distance: float,
    order: int,
    world: str,
    way: str = "first",
) -> Any:
    """The receptions of one signal of 200 dB, in order of time."""
    extra = f'absorption="0 dB/m" sum="{way}" paths="256"'
    if knots is None:
        extra += ' sound_speed="1500 m/s"'
    else:
        (tmp_path / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in knots))
        extra += f' profile="file" file="{tmp_path / "c.txt"}"'
    echoes = f'<multipath order="{order}" bottom_speed="1700 m/s" bottom_density="1.8" bottom_attenuation="0.5"/>'
    sim = sea(config, "100 ms", WIDE.format(pulse=3.0), world=world, noise="-200 dB", extra=extra, inner=echoes)
    a, b = node(sim, "a", 0, 0.0, z=source), node(sim, "b", 0, distance, z=receiver)
    sim.ping(a, frequency)
    _, receptions = run(sim, distance / 1400.0 + 6.0)
    assert sim.channel.paths_dropped == 0
    return np.sort(receptions[receptions["receiver"] == b], order="arrival_ns")


def pressure(arrivals: list[dict[str, float]], frequency: float) -> complex:
    """Of arrivals together, at 1 m from a source of 1: travel is exp(-i w tau) in BELLHOP."""
    return sum(
        (
            a["amplitude"] * np.exp(1j * (a["phase_radians"] - 2.0 * math.pi * frequency * a["travel_time_s"]))
            for a in arrivals
        ),
        0j,
    )


@pytest.mark.parametrize("profile", ["constant", "file"])
def test_a_pekeris_waveguide_coherently(config: Make, tmp_path: Path, judge: Judge, profile: str) -> None:
    """Six bounces off surface and bottom; with the phase of the bottom the other way round it is 5.4 dB more."""
    knots = ((0.0, 1500.0), (100.0, 1500.0))
    (arrivals,) = judge(case(500.0, knots, 20.0, 50.0, 1000.0, 60.0, 8001))
    some = [a for a in arrivals if a["top_bounces"] + a["bottom_bounces"] <= 6]
    wanted = 200.0 + 20.0 * math.log10(abs(pressure(some, 500.0)))
    given = knots if profile == "file" else None
    found = ours(config, tmp_path, 500.0, given, 20.0, 50.0, 1000.0, 6, '<bed depth="100 m"/>', "coherent")
    assert wanted == pytest.approx(142.91, abs=0.03)
    assert found["level"][0] == pytest.approx(wanted, abs=0.03)


@pytest.mark.parametrize("receiver", [850.0, 950.0, 1100.0])
def test_caustics_coherently(config: Make, tmp_path: Path, judge: Judge, receiver: float) -> None:
    """Two rays of the deep sea, one of which has passed a caustic; the opposite phase there would change their sum by decibels."""
    source, distance, frequency = 1000.0, 40e3, 100.0
    (arrivals,) = judge(case(frequency, MUNK, source, receiver, distance, 20.0, 6000, step=40.0))
    some = [a for a in arrivals if a["top_bounces"] + a["bottom_bounces"] == 0]
    assert sorted(round(a["phase_radians"] / (0.5 * math.pi), 3) for a in some) == [0.0, 1.0]
    wanted = 200.0 + 20.0 * math.log10(abs(pressure(some, frequency)))
    wrong = 200.0 + 20.0 * math.log10(
        abs(pressure([{**a, "phase_radians": -a["phase_radians"]} for a in some], frequency))
    )
    found = ours(config, tmp_path, frequency, MUNK, source, receiver, distance, 0, '<bed depth="5000 m"/>', "coherent")
    assert abs(wrong - wanted) > 1.5
    assert found["level"][0] == pytest.approx(wanted, abs=0.2)


def plane(depth: float, slope: float, distance: float) -> tuple[str, list[tuple[float, float]]]:
    bed = [(x, depth + slope * x) for x in (0.0, 0.5 * distance, 1.1 * distance)]
    return f'<bed depth="{depth} m" slope_north="{slope}"/>', bed


def ridge(depth: float, slope: float, height: float, at: float, width: float, distance: float) -> Any:
    """The bed, and itself at each metre."""
    x = np.arange(0.0, 1.1 * distance, 1.0)
    bed = depth + slope * x + height * np.exp(-((width * (x - at)) ** 2))
    bump = f'<bump height="{height} m" north="{at} m" east="0 m" alpha="{width} 1/m" beta="1e-9 1/m"/>'
    return f'<bed depth="{depth} m" slope_north="{slope}">{bump}</bed>', list(
        zip(x.tolist(), bed.tolist(), strict=True)
    )


#: knots, source and receiver depth, distance, order, the bed, launch angles in deg
SCENES: dict[str, Any] = {
    "channel": (CHANNEL, 60.5, 62.0, 2e3, 4, ('<bed depth="80 m"/>', []), 30.0),
    "duct": (DUCT, 20.0, 40.0, 16e3, 6, ('<bed depth="200 m"/>', []), 20.0),
    "wedge": (SUMMER, 30.0, 60.0, 1500.0, 6, plane(45.0, 0.03, 1500.0), 60.0),
    "ridge": (SUMMER, 12.0, 30.0, 700.0, 3, ridge(55.0, 0.02, -7.0, 260.0, 0.011, 700.0), 60.0),
    "hollow": (SUMMER, 12.0, 40.0, 900.0, 3, ridge(55.0, 0.0, 6.0, 400.0, 0.006, 900.0), 60.0),
}


@pytest.mark.parametrize("scene", SCENES)
def test_every_strong_arrival(config: Make, tmp_path: Path, judge: Judge, scene: str) -> None:
    """What BELLHOP has within 15 dB of the strongest, there are here too, at the same time; and both carry the same power."""
    knots, source, receiver, distance, order, (world, bed), angles = SCENES[scene]
    (arrivals,) = judge(
        case(10e3, knots, source, receiver, distance, angles, 5000 if len(bed) > 9 else 12000, bed, step=distance / 800)
    )
    theirs = [a for a in arrivals if a["top_bounces"] + a["bottom_bounces"] <= order]
    mine = ours(config, tmp_path, 10e3, knots, source, receiver, distance, order, world)
    strongest = max(a["amplitude"] for a in theirs)
    lacking = []
    for a in theirs:
        key = a["top_bounces"], a["bottom_bounces"]
        times = mine["arrival_ns"][(mine["surface"] == key[0]) & (mine["bottom"] == key[1])] * 1e-9
        if a["amplitude"] > strongest * 10 ** (-15.0 / 20.0) and not np.any(np.abs(times - a["travel_time_s"]) < 2e-5):
            lacking.append((*key, a["travel_time_s"], -20.0 * math.log10(a["amplitude"])))
    power = 10.0 * math.log10(sum(a["amplitude"] ** 2 for a in theirs))
    here = 10.0 * math.log10(float(np.sum(10.0 ** (0.1 * (mine["level"] - 200.0)))))
    print(scene, len(theirs), len(mine), lacking, power, here)
    assert not lacking
    assert here == pytest.approx(power, abs=1.0)
