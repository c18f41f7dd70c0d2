"""Score of an estimate from another program against true poses, with alignment of the clocks, interpolation, and hints
at common mistakes (axes, clocks, origins).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wavesim_sdk import axes, frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.epoch import EPOCH
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log
from wavesim_studies.navigation import metrics
from wavesim_studies.navigation.metrics import NavigationScore, rms_distance
from wavesim_studies.navigation.pose_tracks import PoseTrack, epoch_time

__all__ = ["EstimateScore", "common_clock", "compare_estimates", "score_estimate"]

GAP_S = 2.0  #: default maximum length in s of a gap that is interpolated
LAG_S, LAG_STEP_S = 5.0, 0.05  #: largest clock offset that is tested, and the step between the tested offsets, in s
#: fraction of the error: a hint is given if no more than this remains with another axis order or clock
HINT = 0.5
REFERENCE = "reference filter"  #: name of the reference filter in a comparison
TIME_ORIGIN = "time_origin_ns"  #: metadata key of imported logs: civil time in ns at simulation time 0


@dataclass(frozen=True)
class EstimateScore:
    """Score of an estimate over the times that it covers."""

    name: str
    score: NavigationScore
    coverage: float  #: fraction of the true poses that the estimate covers
    begin: float  #: first and last covered time in s
    end: float
    aligned_rms: float | None  #: RMS horizontal error in m after alignment; None if it was not requested
    notes: list[str]


def time_origin(log: Log | None) -> float:
    """Return the civil time (s since 1970) at simulation time 0 of a log."""
    text = log.metadata.get(TIME_ORIGIN, "") if log is not None else ""
    return int(text) * 1e-9 if text.lstrip("-").isdigit() else EPOCH.timestamp()


def common_clock(track: PoseTrack, first: float, last: float, origin: float) -> PoseTrack:
    """Return a track with its times converted to the clock of the true poses, which cover the times from ``first`` to
    ``last``.

    If the track has civil times and the true poses do not, ``origin`` is subtracted. Raise LogError if the two do not
    overlap in time.
    """
    a, b = float(track.time[0]), float(track.time[-1])
    if (b < first or a > last) and epoch_time(a) and not epoch_time(first):
        track = track.shifted(-origin, f"times are civil times; {origin:.3f} s were subtracted")
        a, b = float(track.time[0]), float(track.time[-1])
    if b >= first and a <= last:
        return track
    hint = "pass the difference between the clocks with --offset"
    for unit, factor in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3)):
        if a * factor <= last and b * factor >= first and b * factor > a * factor + 1.0:
            hint = f"if the times in the file are in {unit}, pass --layout unit={unit} or time=COLUMN:{unit}"
            break
    raise LogError(
        f"'{track.name}' covers {a:.3f} to {b:.3f} s, but the true track covers {first:.3f} to {last:.3f} s; {hint}"
    )


def covered(time: Floats, at: Floats, gap: float) -> Any:
    """Return a mask of the times ``at`` that are between two values at most ``gap`` s apart, or equal to the time of a
    value.
    """
    after = np.clip(np.searchsorted(time, at, side="left"), 1, len(time) - 1)
    before, later = time[after - 1], time[after]
    inside = (at >= before) & (at <= later) & (later - before <= gap)
    near = np.minimum(np.abs(at - before), np.abs(at - later)) < 1e-6
    return inside | near


def interpolated(track: PoseTrack, at: Floats) -> PoseTrack:
    """Interpolate a track at other times: positions and covariances linearly, attitudes along the shortest rotation."""
    at = np.clip(at, track.time[0], track.time[-1])
    k = np.clip(np.searchsorted(track.time, at, side="right") - 1, 0, len(track.time) - 2)
    s = (at - track.time[k]) / (track.time[k + 1] - track.time[k])

    def linear(x: Floats) -> Floats:
        weight = s.reshape(-1, *[1] * (x.ndim - 1))
        return np.asarray(x[k] + weight * (x[k + 1] - x[k]))

    p = linear(track.p)
    if track.v is not None and track.q is not None:  # cubic Hermite: exact even in turns
        h = (track.time[k + 1] - track.time[k])[:, None]
        v = np.einsum("tij,tj->ti", frames.rotation(track.q), track.v)
        u = s[:, None]
        p = (1 + 2 * u) * (1 - u) ** 2 * track.p[k] + u * (1 - u) ** 2 * h * v[k]
        p = p + u**2 * (3 - 2 * u) * track.p[k + 1] + u**2 * (u - 1) * h * v[k + 1]
    q = track.q
    if q is not None:
        sign = np.where((q[k] * q[k + 1]).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
        q = q[k] + s[:, None] * (sign * q[k + 1] - q[k])
        q = q / np.linalg.norm(q, axis=1)[:, None]
    covariance = None if track.covariance is None else linear(track.covariance)
    return replace(track, time=at, p=p, q=q, covariance=covariance, v=None, w=None)


def _at_true_times(track: PoseTrack, truth: PoseTrack, at: Floats) -> tuple[PoseTrack, Floats]:
    """Return the estimate at the times ``at``, and its errors (T, 3).

    The error is interpolated instead of the position, because the error changes slowly even where the vehicle turns.
    """
    there = track.part((track.time >= truth.time[0] - 1e-6) & (track.time <= truth.time[-1] + 1e-6))
    if len(there.time) < 2:
        there = track
    error = there.p - interpolated(truth, there.time).p
    found = interpolated(track, at)
    e = np.stack([np.interp(at, there.time, axis) for axis in error.T], axis=1)
    return found, e


def score_estimate(
    track: PoseTrack, truth: PoseTrack, gap: float = GAP_S, align: bool = False, at: Any = None
) -> EstimateScore:
    """Score a track against true poses at the times of these poses.

    The estimate is interpolated only in gaps of at most ``gap`` s; true poses in longer gaps are not scored. ``at`` is a
    mask of the true poses to score; by default, those that the estimate covers. Raise LogError if there are fewer than
    two of them.
    """
    mask = covered(track.time, truth.time, gap)
    share = float(mask.mean())
    if at is not None:
        mask = mask & at
    if mask.sum() < 2:
        period = float(np.median(np.diff(track.time)))
        raise LogError(
            f"'{track.name}' covers {int(mask.sum())} of {len(truth.time)} true poses: its poses are {period:.3g} s "
            f"apart (median), and gaps longer than {gap:g} s are not interpolated; increase --gap"
        )
    true = truth.part(mask)
    found, error = _at_true_times(track, truth, true.time)
    p = true.p + error
    flat = np.nan_to_num(p[:, 2] - true.p[:, 2])
    result = metrics.score(p, found.q, true.p, true.q, found.covariance)
    aligned = None
    if align:
        level = np.stack([p[:, 0], p[:, 1], true.p[:, 2] + flat], axis=1)
        aligned = rms_distance((metrics.aligned(level, np.nan_to_num(true.p)) - true.p)[:, :2])
    notes = [*track.notes, *(f"truth: {note}" for note in truth.notes), *_hints(track, truth, true, p, result)]
    return EstimateScore(track.name, result, share, float(true.time[0]), float(true.time[-1]), aligned, notes)


def compare_estimates(
    tracks: list[PoseTrack], truth: PoseTrack, gap: float = GAP_S, align: bool = False
) -> list[EstimateScore]:
    """Score several tracks against the same true poses: those that all tracks cover."""
    common = np.ones(len(truth.time), bool)
    for track in tracks:
        common &= covered(track.time, truth.time, gap)
    if common.sum() < 2:
        common[:] = True  # each track then reports its own coverage
    return [score_estimate(track, truth, gap, align, common) for track in tracks]


# ------------------------------------------------------------------ hints


def _hints(track: PoseTrack, truth: PoseTrack, true: PoseTrack, p: Floats, result: NavigationScore) -> list[str]:
    """Return hints at mistakes that would explain most of the error."""
    notes = []
    now = result.rms
    if now > 1.0:
        swapped = rms_distance((axes.ned_to_enu(p) - true.p)[:, :2])
        if swapped < HINT * now:
            notes.append(
                f"with north and east swapped, the RMS error is {swapped:.2f} m instead of {now:.2f} m: "
                "are the axes ENU (--layout frame=enu) or NED (frame=ned)?"
            )
        else:
            mean = (p - true.p)[:, :2].mean(axis=0)
            rest = rms_distance((p - true.p)[:, :2] - mean)
            if rest < HINT * now:
                notes.append(
                    f"a constant offset of {mean[0]:.2f} m north, {mean[1]:.2f} m east explains most of the error "
                    f"(rest: {rest:.2f} m RMS): another origin, or another point of the vehicle?"
                )
    down = p[:, 2] - true.p[:, 2]
    mirrored = float(np.sqrt(np.mean(np.square(p[:, 2] + true.p[:, 2]))))
    if np.isfinite(down).all() and result.depth_rms > 1.0 and mirrored < HINT * result.depth_rms:
        notes.append("the third coordinate has the opposite sign: up instead of down?")
    if (lag := clock_offset(track, truth)) is not None:
        seconds, rest = lag
        if rest < HINT * now and now > 0.05:
            notes.append(
                f"with --offset {seconds:.2f} the RMS error is {rest:.2f} m instead of {now:.2f} m: the clock of the estimate "
                f"is {'ahead' if seconds < 0.0 else 'behind'} by about {abs(seconds):.2f} s"
            )
    return notes


def clock_offset(track: PoseTrack, truth: PoseTrack) -> tuple[float, float] | None:
    """Return the offset in s (at most 5 s) of the estimate's clock that minimises its RMS error, and this minimum error
    in m. Return None if the track is too short.
    """
    few = track.part(slice(None, None, max(len(track.time) // 2000, 1)))
    keep = (few.time > truth.time[0] + LAG_S) & (few.time < truth.time[-1] - LAG_S)
    if keep.sum() < 10:
        return None
    few = few.part(keep)
    offsets = np.arange(-LAG_S, LAG_S + 1e-9, LAG_STEP_S)
    found = []
    for offset in offsets:
        true = np.stack([np.interp(few.time + offset, truth.time, axis) for axis in truth.p[:, :2].T], axis=1)
        found.append(rms_distance(few.p[:, :2] - true))
    best = int(np.argmin(found))
    return float(offsets[best]), found[best]


def reference_track(case: Any, track: Any) -> PoseTrack:
    """Run the reference filter and return the track of the body's origin."""
    return PoseTrack(REFERENCE, case.time, track.at(case.lever), track.q, case.covariance(track))


def plain(found: EstimateScore) -> dict[str, Any]:
    """Return a score as a dict of plain values, for JSON."""
    values = {**found.score.__dict__, "coverage": found.coverage, "begin": found.begin, "end": found.end}
    if found.aligned_rms is not None:
        values["aligned_rms"] = found.aligned_rms
    values["notes"] = found.notes
    return values
