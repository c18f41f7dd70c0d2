"""BELLHOP and KRAKEN (in the package pelagic) judge the paths of sound in published environments and in ours.

Each row of the table is one environment; `make test-bellhop` prints it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.judges import sound
from tests.judges.sound import Case
from tests.judges.sound_cases import ENERGY, KRAKEN, MISSED, OURS, PUBLISHED, UNRESOLVED
from tests.judges.sound_comparison import Differences, compare
from wavesim_world.config import LoadedConfig

Make = Callable[..., LoadedConfig]
pytestmark = [pytest.mark.bellhop, pytest.mark.xdist_group("sound")]
TIME_S, ANGLE_DEG, LEVEL_DB = 2e-5, 0.05, 1.0
CASES = {case.name: case for case in (*PUBLISHED, *OURS, *MISSED)}


@pytest.fixture(scope="module")
def bellhop(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[list[sound.SoundPath]]]:
    """The arrivals of all cases: BELLHOP computes them side by side."""
    found = sound.theirs(root, tmp_path_factory.mktemp("bellhop"), list(CASES.values()))
    return dict(zip(CASES, found, strict=True))


@pytest.fixture(scope="module")
def table(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    """The rows of the table, printed at the end."""
    rows: list[str] = []
    yield rows
    reporter = request.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None and rows:
        reporter.write_line("")
        for row in (Differences.HEAD, *rows):
            reporter.write_line(row)


def closer(root: Path, folder: Path) -> Callable[[list[Case]], Any]:
    return lambda cases: sound.arrivals(root, folder, cases)


def marked(names: Any) -> list[Any]:
    return [
        pytest.param(n, marks=pytest.mark.xfail(strict=True, reason=UNRESOLVED[n])) if n in UNRESOLVED else n
        for n in names
    ]


@pytest.mark.parametrize("name", marked(CASES))
def test_every_path(
    config: Make,
    root: Path,
    tmp_path: Path,
    bellhop: dict[str, list[list[sound.SoundPath]]],
    table: list[str],
    name: str,
) -> None:
    """Every path within 20 dB of the strongest is there, at the same time and with the same angles and bounces, and all
    of them together have the same level.
    """
    case = CASES[name]
    found = compare(case, sound.ours(config, tmp_path, case), bellhop[name], closer(root, tmp_path))
    table.append(str(found))
    assert not found.lacking, "\n".join(found.lacking)
    assert found.paths > found.uncertain
    assert found.time < TIME_S
    assert found.launch < ANGLE_DEG
    assert found.total < LEVEL_DB
    assert math.isnan(found.coherent) or found.coherent < LEVEL_DB


def test_the_grid_is_halved_until_both_agree(
    config: Make, root: Path, tmp_path: Path, bellhop: dict[str, list[list[sound.SoundPath]]]
) -> None:
    """BELLHOP's water is bilinear in each cell, ours linear in tetrahedra: the difference falls with the square of the
    cell.
    """
    name = "Gulf/GulfB_rd_geo"
    found = [
        compare(case, sound.ours(config, tmp_path, case), bellhop[name], closer(root, tmp_path))
        for case in (replace(CASES[name], parts=parts) for parts in (4, 8, 16))
    ]
    times = [k.time for k in found]
    print("cells divided by 4, 8, 16: time differences in us", [round(1e6 * t, 2) for t in times])
    assert times[0] > 2.5 * times[1] > 6.0 * times[2] and times[2] < TIME_S


@pytest.mark.parametrize("name", [case.name for case in ENERGY])
def test_the_energy_through_a_vertical_line(config: Make, tmp_path: Path, name: str) -> None:
    """Between rigid boundaries and without absorption, the power of all rays of a fan passes every vertical line.

    A ray of level L that arrives at the angle b carries 10^(L/10) cos(b) / (density c) through a unit of area. Over the
    depth and all bearings, this is the integral of the cosine of the launch angle.
    """
    (case,) = [c for c in ENERGY if c.name == name]
    sent = 2.0 * math.sin(math.radians(case.angles))
    ranges = sorted({x for x, _ in case.receivers})
    powers = dict.fromkeys(ranges, 0.0)
    for (x, z), paths in zip(case.receivers, sound.ours(config, tmp_path, case), strict=True):
        mine = [p for p in paths if abs(p.launch) < case.angles]
        deep = case.depths[-1]
        per_line = sum(1 for u, _ in case.receivers if u == x)
        c_source, c = (sound.speed_at(case, u, d) for u, d in ((0.0, case.source), (x, z)))
        across = [p.length**2 / (p.time * c_source) for p in mine]  # width across the section per rad
        powers[x] += (
            sum(
                10.0 ** (0.1 * (p.level + p.lost)) * math.cos(math.radians(p.arrival)) * w * c_source / c
                for p, w in zip(mine, across, strict=True)
            )
            * deep
            / per_line
        )
    levels = [10.0 * math.log10(power / sent) for power in powers.values()]
    print(name, "power through vertical lines in dB:", dict(zip(ranges, np.round(levels, 3).tolist(), strict=True)))
    assert max(map(abs, levels)) < 0.2


@pytest.mark.parametrize("name", [case.name for case in KRAKEN])
def test_the_field_of_kraken(config: Make, tmp_path: Path, root: Path, name: str) -> None:
    """Averaged over ranges and depths, the incoherent sum of our paths has the level of KRAKEN's modes."""
    (case,) = [c for c in KRAKEN if c.name == name]
    (modes,) = sound.ask(root, tmp_path, "kraken.py", [sound.kraken_case(case)])
    depths = sorted({z for _, z in case.receivers})
    ranges = sorted({x for x, _ in case.receivers})
    theirs = 10.0 ** (-0.1 * np.array(modes))
    mine = np.zeros_like(theirs)
    for (x, z), paths in zip(case.receivers, sound.ours(config, tmp_path, case), strict=True):
        mine[depths.index(z), ranges.index(x)] = sum(10.0 ** (0.1 * p.level) for p in paths)
    a, b = (10.0 * math.log10(float(k.mean())) for k in (mine, theirs))
    print(f"{name}: mean level {a:.2f} dB, KRAKEN {b:.2f} dB")
    assert a == pytest.approx(b, abs=LEVEL_DB)
