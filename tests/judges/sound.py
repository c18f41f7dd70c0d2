"""One environment, computed by WaVeSim and by BELLHOP: the paths of both, matched one by one, and their differences.

An environment is a vertical section: range and depth. WaVeSim computes it in three dimensions, with the same water and
the same bed at every distance across the section. Its paths come from the kernels of the medium, which also compute
the receptions of a run.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.judges.path_kernel import (
    ARRIVAL,
    BOTTOM,
    BOTTOM_LOSS,
    CAUSTICS,
    LAUNCH,
    LENGTH,
    SPREAD,
    SURFACE,
    TIME,
    TURNED,
    find_paths,
)
from tests.judges.test_judges import absent
from tests.physics.sea import PLAIN, sea
from wavesim_sdk.arrays import Floats
from wavesim_server import Simulation
from wavesim_server.acoustics.medium_arrays import FOUND
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean import sound
from wavesim_world.ocean.sound import absorption

Make = Callable[..., LoadedConfig]
CAUSTIC_DB = 13.0  #: gain of a tube that is narrower than 5 % of its width in free water
UNSURE_S, UNSURE_DB = 4e-5, 1.0  #: differences between two runs of BELLHOP that leave a path uncertain
CLOSE_DEG, NEAR_DEG = 0.3, 0.1  #: half the width of a narrow bundle, and how near its rays are to a path in doubt
STRONG_DB = 20.0  #: paths weaker than this below the strongest are not compared
EDGE_DEG = 0.05  #: launch angles so close to the limits of the fan are not compared
WIDE = 3000.0  #: half the width of a section across its range in m


@dataclass(frozen=True)
class Case:
    """An environment: a source, receivers (range, depth), water, bed, and bottom (speed in m/s, density relative to the
    water, attenuation in dB per wavelength).

    ``speeds`` are the sound speeds at ``depths`` or, if they change along the path, at (depths, ranges). ``bed`` is the
    bed in the words of the configuration, and BELLHOP's points (range, depth); without points, it is level. ``angles``
    limit the launch angles in deg, to either side of ``middle``. Only paths with at most ``order`` bounces are compared.
    """

    name: str
    source: float
    receivers: Sequence[tuple[float, float]]
    depths: Sequence[float]
    speeds: Any
    bed: tuple[str, Sequence[tuple[float, float]]]
    bottom: tuple[float, float, float]
    angles: float
    ranges: Sequence[float] = ()
    middle: float = 0.0  #: launch angle in the middle of the fan in deg
    box: float = 0.0  #: range in m at which BELLHOP drops a ray; 0 = a little beyond the last receiver
    parts: int = 1  #: parts into which each cell of a grid is divided for WaVeSim
    order: int = 6
    frequency: float = 5000.0  #: of the arrivals: BELLHOP joins arrivals whose phases are nearly equal
    coherent: float = 0.0  #: frequency in Hz at which pressures are also added with their phases; 0 = not
    thorp: bool = False
    beams: int = 4000
    step: float = 0.0
    curved: bool = False  #: whether the bed between its points is curved
    surface: bool = True  #: whether paths that meet the surface are compared
    constant: bool = False  #: whether WaVeSim uses image sources instead of rays


@dataclass(frozen=True)
class Path_:
    """One path: travel time in s, launch and arrival angles in deg (positive downwards), level in dB re 1 m, phase in
    rad without travel, bounces, whether a caustic is near, and whether BELLHOP is uncertain about the path.
    """

    time: float
    launch: float
    arrival: float
    level: float
    phase: float
    surface: int
    bottom: int
    length: float = 0.0  #: m; only of ours
    lost: float = 0.0  #: dB at the bottom; only of ours
    caustic: bool = False
    uncertain: bool = False


# ------------------------------------------------------------------ WaVeSim


def simulation(config: Make, folder: Path, case: Case) -> Simulation:
    """A simulation in the environment of a case."""
    speed, density, attenuation = case.bottom
    extra = 'sum="coherent" paths="256" ' + ('absorption_model="thorp"' if case.thorp else 'absorption="0 dB/m"')
    world = case.bed[0]
    if not world:
        points = [(-WIDE, case.bed[1][0][1]), *case.bed[1], (case.bed[1][-1][0] + WIDE, case.bed[1][-1][1])]
        lines = [f"{x} {y} {z}" for x, z in points for y in (-WIDE, 0.0, WIDE)]
        (folder / "bed.xyz").write_text("\n".join(lines) + "\n")
        world = f'<soundings file="{folder / "bed.xyz"}"/>'
    if case.constant or len(case.ranges):
        extra += f' sound_speed="{case.speeds[0] if case.constant else 1500.0} m/s"'
    else:
        rows = zip(case.depths, case.speeds, strict=True)
        (folder / "c.txt").write_text("".join(f"{z} {c}\n" for z, c in rows))
        extra += f' profile="file" file="{folder / "c.txt"}"'
    echoes = (
        f'<multipath order="{case.order}" bottom_speed="{speed} m/s" bottom_density="{density}" '
        f'bottom_attenuation="{attenuation}"/>'
    )
    with pytest.MonkeyPatch.context() as patch:
        if len(case.ranges):
            patch.setattr(sound, "sound_speed_volume", lambda *_: volume(case))
        return sea(config, "100 ms", PLAIN, world=world, extra=extra, inner=echoes)


def volume(case: Case) -> sound.SoundSpeedVolume:
    """The water of a case on a grid whose cells are those of the case, divided by ``parts`` in range and depth."""
    depths, ranges = (_divided(np.asarray(k, float), case.parts) for k in (case.depths, case.ranges))
    c = np.asarray(case.speeds, float)
    if c.ndim == 1:
        c = np.repeat(c[:, None], len(case.ranges), axis=1)
    c = np.array([np.interp(depths, case.depths, column) for column in c.T]).T
    c = np.array([np.interp(ranges, case.ranges, row) for row in c])
    spacing = float(ranges[1] - ranges[0])
    assert np.allclose(np.diff(ranges), spacing), "the grid of the volume is regular"
    return sound.SoundSpeedVolume(
        np.repeat(c[None, :, :, None], 2, axis=3), depths, np.zeros(1), (float(ranges[0]), -WIDE), (spacing, 2.0 * WIDE)
    )


def _divided(knots: Floats, parts: int) -> Floats:
    return np.interp(np.arange((len(knots) - 1) * parts + 1) / parts, np.arange(len(knots)), knots)


def ours(config: Make, folder: Path, case: Case) -> list[list[Path_]]:
    """The paths to each receiver of a case."""
    sim = simulation(config, folder, case)
    channel, out, found = sim.channel, np.zeros((FOUND, 10)), []
    signal = channel.medium.signals[0]
    signal.x, signal.y, signal.z = 0.0, 0.0, case.source
    loss = absorption(sim.loaded.config.acoustics, case.coherent or case.frequency) if case.thorp else 0.0
    for x, z in case.receivers:
        n = find_paths(channel.table, sim.tick_executor.scene, x, 0.0, z, out)
        found.append([_path(row, loss) for row in out[:n].tolist()])
    return found


def _path(row: list[float], loss: float) -> Path_:
    straight = 20.0 * math.log10(row[LENGTH])
    spread = row[SPREAD] if row[SPREAD] >= 0.0 else straight
    surface, bottom = int(row[SURFACE]), int(row[BOTTOM])
    phase = math.pi * surface + 0.5 * math.pi * row[CAUSTICS] + row[TURNED]
    launch, arrival = (math.degrees(row[k]) for k in (LAUNCH, ARRIVAL))
    level = -spread - row[BOTTOM_LOSS] - loss * row[LENGTH]
    return Path_(
        row[TIME],
        launch,
        arrival,
        level,
        phase,
        surface,
        bottom,
        row[LENGTH],
        row[BOTTOM_LOSS],
        spread < straight - CAUSTIC_DB,
    )


# ------------------------------------------------------------------ BELLHOP


def speed_at(case: Case, x: float, z: float) -> float:
    """The sound speed of a case at a range and a depth."""
    c = np.asarray(case.speeds, float)
    column = c if c.ndim == 1 else [np.interp(x, case.ranges, row) for row in c]
    return float(np.interp(z, case.depths, column))


def kraken_case(case: Case) -> dict[str, Any]:
    """A case whose receivers form a grid, for KRAKEN."""
    made = bellhop_case(case)
    far = max(x for x, _ in case.receivers)
    del made["bellhop"], made["interpolation"]
    made["receivers"] = {k: sorted({r[n] for r in case.receivers}) for n, k in enumerate(("range", "depth"))}
    options = {"solver": "kraken", "phase_speed": [1400.0, case.bottom[0]], "max_range": 1.2 * far}
    return made | {"model": "kraken", "frequency": [case.coherent], "interpolation": "c_linear", "kraken": options}


def bellhop_case(case: Case) -> dict[str, Any]:
    """The environment as a case of pelagic."""
    depths, speeds = np.asarray(case.depths, float), np.asarray(case.speeds, float)
    points = [list(map(float, p)) for p in case.bed[1]]
    far = max(x for x, _ in case.receivers)
    deep = max(z for _, z in points) if points else depths[-1]
    if deep < depths[-1]:
        last = [np.interp(deep, depths, column) for column in np.atleast_2d(speeds.T)]
        keep = depths < deep
        depths = np.append(depths[keep], deep)
        speeds = np.concatenate([speeds[keep], np.reshape(last, (1, *speeds.shape[1:]))])
    one = speeds if speeds.ndim == 1 else speeds[:, 0]
    medium: dict[str, Any] = {
        "to": float(deep),
        "ssp": [[z, c] for z, c in zip(depths.tolist(), one.tolist(), strict=True)],
    }
    if speeds.ndim == 2:
        medium["range_dependent"] = {"ranges": list(map(float, case.ranges)), "c": speeds.tolist()}
    speed, density, attenuation = case.bottom
    bottom: dict[str, Any] = {"type": "halfspace", "cs": 0.0, "cp": speed, "rho": density, "ap": attenuation}
    if points:
        bottom["shape"] = {"points": points}
        if case.curved:
            bottom["shape"]["interpolation"] = "curvilinear"
    made = {
        "pelagic": 2,
        "model": "bellhop",
        "title": case.name,
        "frequency": case.coherent or case.frequency if case.thorp else case.frequency,
        "interpolation": "quadrilateral" if speeds.ndim == 2 else "c_linear",
        "media": [medium],
        "surface": "vacuum",
        "bottom": bottom,
        "source": {"depth": [case.source]},
        "receivers": {
            "depth": [float(z) for _, z in case.receivers],
            "range": [float(x) for x, _ in case.receivers],
            "grid": "irregular",
        },
        "bellhop": {
            "run": "arrivals",
            "beam": "geometric_hat_cartesian",
            "angles": {"from": case.middle - case.angles, "to": case.middle + case.angles, "count": case.beams},
            "step": case.step,
            "box": {"depth": 1.1 * float(deep), "range": case.box or 1.02 * far},
        },
    }
    if case.thorp:
        made["attenuation"] = {"volume": "thorp"}
    return made


def theirs(root: Path, folder: Path, cases: Sequence[Case]) -> list[list[list[Path_]]]:
    """The arrivals at each receiver of each case, by BELLHOP.

    BELLHOP computes each case twice, the second time with half the step and 1.4 times as many beams. The result is that
    of the second run. A path is uncertain if the first run does not have it, or not the same.
    """
    coarse = [replace(case, step=2.0 * case.step, beams=round(case.beams / 1.4)) for case in cases]
    both = [case for pair in zip(coarse, cases, strict=True) for case in pair]
    joined = arrivals(root, folder, both)
    return [
        [_checked(p, q) for p, q in zip(*pair, strict=True)] for pair in zip(joined[::2], joined[1::2], strict=True)
    ]


def arrivals(root: Path, folder: Path, cases: Sequence[Case]) -> list[list[list[Path_]]]:
    """The paths to each receiver of each case, by one run of BELLHOP."""
    found = ask(root, folder, "bellhop.py", [bellhop_case(case) for case in cases])
    return [[_joined(case, some) for some in receivers] for case, receivers in zip(cases, found, strict=True)]


def _checked(coarse: list[Path_], fine: list[Path_]) -> list[Path_]:
    """The fine paths, uncertain where the coarse ones differ from them."""
    pairs, _ = _matched(fine, coarse)
    sure = {id(p) for p, q in pairs if abs(p.time - q.time) < UNSURE_S and abs(p.level - q.level) < UNSURE_DB}
    return [replace(p, uncertain=id(p) not in sure) for p in fine]


def ask(root: Path, folder: Path, script: str, cases: list[dict[str, Any]]) -> Any:
    """The answer of a script that runs in the environment of pelagic."""
    program = root / ".venv-bellhop/bin/python"
    if not program.exists():
        absent("pelagic is not installed (`make test-bellhop` does it)")
    (folder / "cases.json").write_text(json.dumps(cases))
    files = [folder / "cases.json", folder / "found.json"]
    subprocess.run([program, root / "tests/judges" / script, *files], check=True, timeout=300)
    return json.loads((folder / "found.json").read_text())


def _joined(case: Case, arrivals: list[dict[str, float]]) -> list[Path_]:
    """The paths of BELLHOP's arrivals: each of two neighbouring beams can leave a part of one path."""
    frequency = case.coherent or case.frequency if case.thorp else case.frequency
    spacing = 2.0 * case.angles / (case.beams - 1)
    paths: list[Path_] = []
    amplitudes: list[float] = []
    for one in sorted(arrivals, key=lambda k: (k["top_bounces"], k["bottom_bounces"], k["source_angle_degrees"])):
        amplitude = one["amplitude"] * math.exp(2.0 * math.pi * frequency * one["attenuation_time_s"])
        if amplitude <= 0.0:
            continue
        new = Path_(
            one["travel_time_s"],
            one["source_angle_degrees"],
            one["receiver_angle_degrees"],
            20.0 * math.log10(amplitude),
            one["phase_radians"],
            int(one["top_bounces"]),
            int(one["bottom_bounces"]),
        )
        last = paths[-1] if paths else None
        if (
            last is not None
            and (last.surface, last.bottom) == (new.surface, new.bottom)
            and abs(last.time - new.time) < 5e-5
            and abs(last.launch - new.launch) < 2.5 * spacing
            and abs(last.phase - new.phase) < 0.1
        ):
            total = amplitudes[-1] + amplitude
            u, v = amplitudes[-1] / total, amplitude / total
            paths[-1] = replace(
                last,
                time=u * last.time + v * new.time,
                launch=u * last.launch + v * new.launch,
                arrival=u * last.arrival + v * new.arrival,
                level=20.0 * math.log10(total),
            )
            amplitudes[-1] = total
        else:
            paths.append(new)
            amplitudes.append(amplitude)
    return paths


# ------------------------------------------------------------------ comparison


@dataclass
class Differences:
    """What differs in a case: numbers of paths, and the largest differences."""

    name: str
    receivers: int = 0
    paths: int = 0
    caustics: int = 0
    uncertain: int = 0
    time: float = 0.0  #: s
    launch: float = 0.0  #: deg
    arrival: float = 0.0  #: deg
    level: float = 0.0  #: dB, of one path
    total: float = 0.0  #: dB, of all paths, added incoherently
    coherent: float = math.nan  #: dB
    lacking: tuple[str, ...] = ()  #: strong paths that only one of the two has

    HEAD = (
        f"{'case':22} {'receivers':>9} {'paths':>6} {'caustic':>7} {'unsure':>6} {'time us':>8} {'launch deg':>10} "
        f"{'arrival deg':>11} {'path dB':>8} {'sum dB':>7} {'coherent dB':>11} lacking"
    )

    def __str__(self) -> str:
        return (
            f"{self.name:22} {self.receivers:9} {self.paths:6} {self.caustics:7} {self.uncertain:6} {1e6 * self.time:8.2f} "
            f"{self.launch:10.4f} {self.arrival:11.4f} {self.level:8.3f} {self.total:7.3f} {self.coherent:11.3f} "
            f"{len(self.lacking)}"
        )


class Doubt(NamedTuple):
    """A path that only one side has, or about which BELLHOP is uncertain. A bundle of rays near it decides."""

    receiver: tuple[float, float]
    path: Path_
    ours: bool
    matched: bool


def compare(
    case: Case, mine: list[list[Path_]], bellhop: list[list[Path_]], look_closer: Callable[[list[Case]], Any]
) -> Differences:
    """Match the paths of both sides at each receiver. ``look_closer`` returns the paths of BELLHOP in cases."""
    found, doubts = Differences(case.name, len(case.receivers)), []
    for receiver, here, there in zip(case.receivers, mine, bellhop, strict=True):
        doubts += _compare_receiver(case, receiver, _counted(case, here), _counted(case, there), found)
    close = [
        replace(
            case,
            receivers=(doubt.receiver,),
            middle=doubt.path.launch,
            angles=CLOSE_DEG,
            beams=800,
            step=0.5 * case.step,
        )
        for doubt in doubts
    ]
    for doubt, (arrivals,) in zip(doubts, look_closer(close) if close else (), strict=True):
        _decide(case, doubt, arrivals, found)
    return found


def _counted(case: Case, paths: list[Path_]) -> list[Path_]:
    """The paths that both sides can have."""
    return [
        p
        for p in paths
        if abs(p.launch - case.middle) < case.angles - EDGE_DEG
        and p.surface + p.bottom <= case.order
        and (case.surface or p.surface == 0)
    ]


def _compare_receiver(
    case: Case, receiver: tuple[float, float], here: list[Path_], there: list[Path_], found: Differences
) -> list[Doubt]:
    """Add the differences at one receiver; return the paths that are in doubt."""
    pairs, rest = _matched(here, there)
    pairs = [(p, _straight_across(case, receiver[0], p, q)) for p, q in pairs]
    strongest = max((p.level for p in here if not p.caustic), default=-math.inf)
    near = [p for p in here if p.caustic]
    doubts = [
        Doubt(receiver, p, any(p is q for q in here), False)
        for p in rest
        if not p.caustic and p.level > strongest - STRONG_DB and not _beside(p, near)
    ]
    sure = []
    for p, q in pairs:
        if p.caustic:
            found.caustics += p.level > strongest - STRONG_DB
        elif not q.uncertain:
            sure.append((p, q))
            if p.level > strongest - STRONG_DB:
                _note(found, p, q)
        elif p.level > strongest - STRONG_DB:
            doubts.append(Doubt(receiver, p, True, True))
    if sure:
        mine, others = zip(*sure, strict=True)
        found.total = max(found.total, abs(_power(mine) - _power(others)))
        if case.coherent:
            sums = [abs(_pressure(side, case.coherent)) for side in (mine, others)]
            # where paths cancel, a level means little
            if sums[1] > 0.3 * 10.0 ** (0.05 * _power(others)):
                gap = abs(20.0 * math.log10(sums[0] / sums[1]))
                found.coherent = gap if math.isnan(found.coherent) else max(found.coherent, gap)
    return doubts


def _note(found: Differences, p: Path_, q: Path_) -> None:
    """Add the differences between a path of ours and one of BELLHOP."""
    found.paths += 1
    found.time = max(found.time, abs(p.time - q.time))
    found.launch = max(found.launch, abs(p.launch - q.launch))
    found.arrival = max(found.arrival, abs(p.arrival - q.arrival))
    found.level = max(found.level, abs(p.level - q.level))


def _decide(case: Case, doubt: Doubt, arrivals: list[Path_], found: Differences) -> None:
    """Add what a narrow bundle of BELLHOP's rays says about a path in doubt."""
    p = doubt.path
    same = [
        q for q in arrivals if (q.surface, q.bottom) == (p.surface, p.bottom) and abs(q.launch - p.launch) < NEAR_DEG
    ]
    q = min(same, key=lambda q: abs(q.time - p.time), default=None)
    agrees = q is not None and abs(q.time - p.time) < UNSURE_S
    if agrees and doubt.ours:
        _note(found, p, _straight_across(case, doubt.receiver[0], p, q))
    elif doubt.matched or not (agrees or doubt.ours):
        found.uncertain += 1  # BELLHOP's two bundles contradict each other
    else:
        side = "ours" if doubt.ours else "BELLHOP's"
        found.lacking += (
            f"{doubt.receiver}: only {side} {p.time:.7f} s, launch {p.launch:.3f} deg, {p.level:.2f} dB, "
            f"bounces {p.surface}+{p.bottom}",
        )


def _straight_across(case: Case, x: float, p: Path_, q: Path_) -> Path_:
    """An arrival of BELLHOP with the spreading of water and bed that are the same across the section.

    To BELLHOP, a section is a body of revolution about the source, so the width of a tube across the section is x / cos
    per radian. Across a straight section, it is the integral of c / c0 over the path.
    """
    c0 = speed_at(case, 0.0, case.source)
    round_about = abs(x / math.cos(math.radians(q.launch)))
    return replace(q, level=q.level + 10.0 * math.log10(round_about * c0 * p.time / p.length**2))


def _beside(p: Path_, near: list[Path_]) -> bool:
    """Whether a path is the other one of a pair that meets in a caustic."""
    return any((p.surface, p.bottom) == (q.surface, q.bottom) and abs(p.launch - q.launch) < 0.5 for q in near)


def _matched(here: list[Path_], there: list[Path_]) -> tuple[list[tuple[Path_, Path_]], list[Path_]]:
    """Pairs of paths with the same bounces, nearest in time first, and the paths without a partner."""
    options = sorted(
        (abs(p.time - q.time) + 1e-3 * abs(p.launch - q.launch), i, j)
        for i, p in enumerate(here)
        for j, q in enumerate(there)
        if (p.surface, p.bottom) == (q.surface, q.bottom) and abs(p.time - q.time) < 1e-3
    )
    mine, others, pairs = set(range(len(here))), set(range(len(there))), []
    for _, i, j in options:
        if i in mine and j in others:
            mine.remove(i)
            others.remove(j)
            pairs.append((here[i], there[j]))
    return pairs, [here[i] for i in sorted(mine)] + [there[j] for j in sorted(others)]


def _power(paths: Sequence[Path_]) -> float:
    return 10.0 * math.log10(sum(10.0 ** (0.1 * p.level) for p in paths))


def _pressure(paths: Sequence[Path_], frequency: float) -> complex:
    return sum(
        (10.0 ** (0.05 * p.level) * np.exp(1j * (p.phase - 2.0 * math.pi * frequency * p.time)) for p in paths),
        0j,
    )
