"""Score of an estimate in one case of the exam."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import __version__
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.tables import ESTIMATE
from wavesim_studies.exam.baseline import NAME, baseline
from wavesim_studies.exam.bound import position_bound
from wavesim_studies.exam.live import FACTS
from wavesim_studies.exam.run import ExamRun, simulate
from wavesim_studies.exam.scenario import AlteredScenario, Scenario, scenario
from wavesim_studies.navigation import metrics
from wavesim_studies.navigation.estimate_score import GAP_S, common_clock, covered, interpolated
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_studies.navigation.track_files import read_track

__all__ = ["Job", "case_result", "score_track"]

HOLD_S = 10.0  #: time in s for which the error must stay within the requirement after the first fix
DIGITS = 6  #: significant digits of the numbers in a result


def score_track(track: PoseTrack, truth: PoseTrack, scenario: Scenario) -> dict[str, Any]:
    """Return the metrics of an estimated track. Times without an estimate count as not available.

    The errors are horizontal. ``rms``, ``p95`` and ``nees`` refer to the times from ``score_from`` that the estimate
    covers, ``available`` to all times from ``score_from``, and ``first_fix`` to the whole run.
    """
    track = common_clock(track, float(truth.time[0]), float(truth.time[-1]), 0.0)
    known = covered(track.time, truth.time, GAP_S)
    late = known & (truth.time >= scenario.score_from - 1e-9)
    if late.sum() < 2:
        raise LogError(
            f"'{track.name}' covers no time after {scenario.score_from:g} s of scenario '{scenario.name}': check the times"
        )
    error = _errors(track, truth)
    size = np.where(known, np.hypot(error[:, 0], error[:, 1]), np.inf)
    after = truth.time >= scenario.score_from - 1e-9
    found: dict[str, Any] = {
        "rms": float(np.sqrt(np.mean(np.square(size[late])))),
        "p95": float(np.percentile(size[late], 95)),
        "worst": float(size[late].max()),
        "coverage": float(known[after].mean()),
        "available": float((size[after] <= scenario.requirement).mean()),
        "first_fix": first_fix(truth.time, size, scenario.requirement),
    }
    if track.covariance is not None:
        P = interpolated(track, truth.time[late]).covariance
        assert P is not None
        low, high = metrics.mean_bounds(error[late], P)
        found |= {"nees": float(metrics.nees(error[late], P).mean()), "nees_low": low, "nees_high": high}
    return found


def _errors(track: PoseTrack, truth: PoseTrack) -> Floats:
    """Return the horizontal errors (T, 2) at the true times. The error is interpolated instead of the position, because
    it changes slowly even where the vehicle turns.
    """
    inside = track.part((track.time >= truth.time[0] - 1e-6) & (track.time <= truth.time[-1] + 1e-6))
    inside = inside if len(inside.time) > 1 else track
    error = (inside.p - interpolated(truth, inside.time).p)[:, :2]
    return np.stack([np.interp(truth.time, inside.time, axis) for axis in error.T], axis=1)


def first_fix(time: Floats, error: Floats, requirement: float) -> float | None:
    """Return the time in s from which the error stays within the requirement for ten seconds, or None."""
    good = error <= requirement
    for k in np.flatnonzero(good):
        until = time <= time[k] + HOLD_S
        if time[-1] >= time[k] + HOLD_S - 1e-6 and good[k:][until[k:]].all():
            return float(time[k] - time[0])
    return None


@dataclass(frozen=True)
class Job:
    """One case to run: a scenario at a level with a seed, and the filter that is scored.

    ``estimates`` contains the file of an estimate for each scored vehicle. Without ``program`` and ``estimates``, the
    reference filter is scored.
    """

    scenario: str
    level: str
    seed: int
    program: Path | None = None
    estimates: tuple[Path, ...] = ()
    layout: str = ""
    name: str = ""

    @property
    def filter_name(self) -> str:
        """Name of the filter in the result."""
        return self.name or (self.program.stem if self.program is not None else NAME)


def case_result(job: Job) -> dict[str, Any]:
    """Simulate a case, score it and return its result as plain values."""
    s = scenario(job.scenario)
    tracks: dict[str, PoseTrack] = {}
    if job.estimates:  # mistakes in files are found before the simulation
        if len(job.estimates) != len(s.vehicles):
            raise LogError(
                f"scenario '{s.name}' needs an estimate for each of: {', '.join(s.vehicles)}, in this order; got "
                f"{len(job.estimates)} file(s)"
            )
        files = zip(s.vehicles, job.estimates, strict=True)
        tracks = {v: read_track(path, job.layout, v) for v, path in files}
    run = simulate(s, job.level, job.seed, job.program)
    for file in job.estimates:
        check_export(file.parent / FACTS, run)
    extra: dict[str, dict[str, Any]] = {}
    if job.program is not None:
        tracks = {v: _published(run, v) for v in s.vehicles}
    elif not tracks:
        found = baseline(run)
        tracks = {v: found[v].poses for v in s.vehicles}
        extra = {v: dict(zip(("nis", "nis_count"), found[v].acoustic_nis, strict=True)) for v in s.vehicles}
    vehicles = {v: {**score_track(tracks[v], run.truth(v), s), **extra.get(v, {})} for v in s.vehicles}
    for v, values in vehicles.items():
        values["ping_energy"] = run.ping_energy(v)
    result: dict[str, Any] = _rounded(
        {
            "scenario": s.name,
            "level": job.level,
            "seed": job.seed,
            "digest": s.digest,
            "filter": job.filter_name,
            "content_hash": run.log.content_hash,
            "truth_hash": run.truth_hash,
            "versions": {"wavesim": __version__, "numpy": np.__version__, "python": platform.python_version()},
            "requirement": s.requirement,
            "vehicles": vehicles,
            **_bounds(run),
        }
    )
    return result


def check_export(facts: Path, run: ExamRun) -> None:
    """Raise AlteredScenario if the estimate beside an exported file of facts belongs to another run of the same case.

    The simulator can change although the files of the scenario do not. A file of facts that is absent, or that belongs
    to another case, is ignored: an estimate may be anywhere.
    """
    try:
        known = json.loads(facts.read_text())
        case = known["scenario"], known["level"], known["seed"]
        exported = str(known.get("content_hash", "unknown"))  # exports of earlier versions lack it
    except (OSError, ValueError, KeyError, TypeError):
        return
    if case == (run.scenario.name, run.level, run.seed) and exported != run.log.content_hash:
        raise AlteredScenario(
            f"{facts.parent} was exported by another version of the simulator (content hash {exported[:12]}, now "
            f"{run.log.content_hash[:12]}): export it again and run your filter again"
        )


def _published(run: ExamRun, vehicle: str) -> PoseTrack:
    """Return the estimates that a live program published."""
    if not len(run.log.get(f"/estimate/{vehicle}", ESTIMATE).time_ns):
        raise LogError(
            f"the program published no estimate of '{vehicle}': pass an Estimate to Broker.answer, see docs/exam.md"
        )
    return read_track(run.log, "", vehicle)


def _bounds(run: ExamRun) -> dict[str, dict[str, float]]:
    """Return the RMS bound in m of each scored vehicle, from the time at which the score begins, and the RMS error of the
    same estimator if it takes paths as straight and beacons as undisplaced.
    """
    bound, straight = {}, {}
    for vehicle, b in position_bound(run).items():
        late = b.time >= run.scenario.score_from - 1e-9
        variance = float(np.trace(b.P[late], axis1=1, axis2=2).mean())
        bound[vehicle] = math.sqrt(variance)
        straight[vehicle] = math.sqrt(variance + float(np.square(b.errors[late]).sum(axis=1).mean()))
    return {"bound": bound, "straight": straight}


def _rounded(x: Any) -> Any:
    if isinstance(x, dict):
        return {k: _rounded(v) for k, v in x.items()}
    if isinstance(x, float):
        return float(f"{x:.{DIGITS}g}") if np.isfinite(x) else None
    return x
