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
from typing import Any

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
class SoundPath:
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


def ours(config: Make, folder: Path, case: Case) -> list[list[SoundPath]]:
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


def _path(row: list[float], loss: float) -> SoundPath:
    straight = 20.0 * math.log10(row[LENGTH])
    spread = row[SPREAD] if row[SPREAD] >= 0.0 else straight
    surface, bottom = int(row[SURFACE]), int(row[BOTTOM])
    phase = math.pi * surface + 0.5 * math.pi * row[CAUSTICS] + row[TURNED]
    launch, arrival = (math.degrees(row[k]) for k in (LAUNCH, ARRIVAL))
    level = -spread - row[BOTTOM_LOSS] - loss * row[LENGTH]
    return SoundPath(
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


def theirs(root: Path, folder: Path, cases: Sequence[Case]) -> list[list[list[SoundPath]]]:
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


def arrivals(root: Path, folder: Path, cases: Sequence[Case]) -> list[list[list[SoundPath]]]:
    """The paths to each receiver of each case, by one run of BELLHOP."""
    found = ask(root, folder, "bellhop.py", [bellhop_case(case) for case in cases])
    return [[_joined(case, some) for some in receivers] for case, receivers in zip(cases, found, strict=True)]


def _checked(coarse: list[SoundPath], fine: list[SoundPath]) -> list[SoundPath]:
    """The fine paths, uncertain where the coarse ones differ from them."""
    pairs, _ = matched(fine, coarse)
    sure = {id(p) for p, q in pairs if abs(p.time - q.time) < UNSURE_S and abs(p.level - q.level) < UNSURE_DB}
    return [replace(p, uncertain=id(p) not in sure) for p in fine]


def ask(root: Path, folder: Path, script: str, cases: list[dict[str, Any]]) -> Any:
    """The answer of a script that runs in the environment of pelagic."""
    program = root / ".venv-bellhop/bin/python"
    if not program.exists():
        absent("pelagic is not installed (`make test-bellhop` does it)")
    (folder / "cases.json").write_text(json.dumps(cases))
    files = [folder / "cases.json", folder / "found.json"]
    subprocess.run([program, root / "tests/judges" / script, *files], check=True, timeout=900)
    return json.loads((folder / "found.json").read_text())


def _joined(case: Case, arrivals: list[dict[str, float]]) -> list[SoundPath]:
    """The paths of BELLHOP's arrivals: each of two neighbouring beams can leave a part of one path."""
    frequency = case.coherent or case.frequency if case.thorp else case.frequency
    spacing = 2.0 * case.angles / (case.beams - 1)
    paths: list[SoundPath] = []
    amplitudes: list[float] = []
    for one in sorted(arrivals, key=lambda k: (k["top_bounces"], k["bottom_bounces"], k["source_angle_degrees"])):
        amplitude = one["amplitude"] * math.exp(2.0 * math.pi * frequency * one["attenuation_time_s"])
        if amplitude <= 0.0:
            continue
        new = SoundPath(
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


def matched(here: list[SoundPath], there: list[SoundPath]) -> tuple[list[tuple[SoundPath, SoundPath]], list[SoundPath]]:
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
