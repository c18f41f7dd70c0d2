"""Comparison of a real run with one or several simulations of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_studies.comparison.acoustic_comparison import (
    DetectionShare,
    RangeDifference,
    acoustic_run,
    compare_detections,
    compare_ranges,
)
from wavesim_studies.comparison.channels import Channel
from wavesim_studies.comparison.compared_runs import ComparedRun
from wavesim_studies.comparison.differences import (
    LEAST_RUNS,
    LEAST_VALUES,
    QuantityDifference,
    coverage,
    difference,
    ensemble_at,
    summary,
)
from wavesim_studies.comparison.frame_alignment import FrameAlignment, aligned, in_frame, moved
from wavesim_studies.comparison.time_alignment import LEAST_S, TimeOffset, find_offset
from wavesim_studies.navigation.estimate_score import covered
from wavesim_studies.navigation.metrics import rms_distance
from wavesim_studies.navigation.pose_tracks import PoseTrack, epoch_time

__all__ = ["Comparison", "ComparisonOptions", "compare"]

MOST_VALUES = 5000  #: largest number of values of one quantity that are compared
#: states and columns of instruments whose correlation gives the offset between the clocks
SIGNALS = ("speed", "yaw rate", "pitch rate", "vertical speed")
SIGNAL_COLUMNS = ("rates_x", "rates_y", "rates_z", "v_FB_B_x", "bottom_x")
STILL = 0.05  #: speed in m/s below which the course is taken from the heading
COURSE_S = 1.0  #: time in s over which the course is computed
OPPOSITE = -0.8  #: correlation below which a note suggests a wrong sign


@dataclass(frozen=True)
class ComparisonOptions:
    """Options of a comparison: the offset between the clocks, and the alignment of the tracks."""

    offset: float | None = None  #: offset in s to add to the real times; None: from the correlation
    search: float = 10.0  #: largest offset in s that is searched
    gap: float = 2.0  #: longest gap in s that is interpolated
    align: str = "none"


@dataclass(frozen=True)
class TrackErrors:
    """Differences of position at common times: real minus simulated, along and across the course of the real run, and
    down. ``members`` (M, T, 3) are the simulated runs minus their mean, in the same axes.
    """

    time: Floats
    errors: Floats  #: (T, 3) in m; down is NaN if unknown
    members: Floats


@dataclass(frozen=True)
class Comparison:
    """Result of a comparison."""

    real: ComparedRun  #: the real run on the clock and in the frame of the simulation
    simulated: list[ComparedRun]
    offset: TimeOffset
    frame: FrameAlignment
    begin: float  #: compared period in s, by the clock of the simulation
    end: float
    #: differences by quantity: first those of the track and the motion, then those of the instruments
    quantities: dict[str, QuantityDifference]
    ranges: list[RangeDifference] = field(default_factory=list)
    detections: list[DetectionShare] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    track: TrackErrors | None = None

    def plain(self) -> dict[str, Any]:
        """Return the result as plain values in SI units, for JSON."""
        return {
            "real": {"file": self.real.name, "vehicle": self.real.vehicle},
            "simulated": [{"file": str(_file(s)), "vehicle": s.vehicle, "seed": _seed(s)} for s in self.simulated],
            "offset": dataclasses.asdict(self.offset),
            "frame": dataclasses.asdict(self.frame),
            "begin": self.begin,
            "end": self.end,
            "quantities": {name: _plain(q) for name, q in self.quantities.items()},
            "ranges": [_plain(r) for r in self.ranges],
            "detections": [_plain(d) for d in self.detections],
            "notes": self.notes,
        }


def _plain(value: Any) -> dict[str, Any]:
    """Return a dataclass as a dict in which an interval is a dict of value, low and high."""

    def convert(x: Any) -> Any:
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return {f.name: convert(getattr(x, f.name)) for f in dataclasses.fields(x)}
        if isinstance(x, tuple) and hasattr(x, "_asdict"):
            return x._asdict()
        if isinstance(x, dict):
            return {k: convert(v) for k, v in x.items()}
        return x

    made: dict[str, Any] = convert(value)
    return made


def _file(run: ComparedRun) -> Any:
    return run.name if run.log is None else run.log.path


def _seed(run: ComparedRun) -> str:
    return "" if run.log is None else run.log.metadata.get("seed", "")


def compare(real: ComparedRun, simulated: Sequence[ComparedRun], options: ComparisonOptions) -> Comparison:
    """Compare a real run with simulated runs of one configuration. Raise LogError if they cannot be compared."""
    first = simulated[0]
    notes: list[str] = list(real.notes)
    for run in simulated:
        notes += run.notes
    if epoch_time(real.begin) and not epoch_time(first.begin):
        real = real.shifted(-first.civil_s)
        notes.append(f"times of {real.name} are civil times; {first.civil_s:.3f} s were subtracted")
    if real.log is not None and real.log.content_hash:
        same = [
            _file(run) for run in simulated if run.log is not None and run.log.content_hash == real.log.content_hash
        ]
        notes += [f"{path} is the same run as {real.name}: a run is always similar to itself" for path in same]
    members = [renamed(run, real) for run in simulated]
    offset = _offset(real, members, options)
    notes += offset.notes
    real = real.shifted(offset.seconds)
    window = (max(run.begin for run in simulated), min(run.end for run in simulated))
    window = (max(window[0], real.begin), min(window[1], real.end))
    real, frame, track = _same_frame(real, members, window, options)
    quantities: dict[str, QuantityDifference] = {}
    if track is not None:
        quantities |= _track_quantities(track)
        notes += _axis_hint(real, members, track, frame)
    for name, channel in real.channels.items():
        if track is not None and name in ("north", "east", "down"):
            continue
        having = [m.channels[name] for m in members if name in m.channels]
        if len(having) < len(members):
            continue
        found = difference(channel, having, window, options.gap, MOST_VALUES)
        if found is not None:
            quantities[name] = found
            if found.correlation < OPPOSITE:
                notes.append(
                    f"{name} of the real run and of the simulation have opposite signs: are the axes FRD or FLU?"
                )
    if not quantities:
        raise LogError(
            f"{real.name} and {first.name} have fewer than {LEAST_VALUES} values of any quantity in common; {_there(real, first)}"
        )
    notes += _not_compared(real, members)
    equal = [q.name for q in quantities.values() if q.coverage is None and q.name != "track"]
    if 1 < len(members) < LEAST_RUNS:
        notes.append(f"coverage needs {LEAST_RUNS} simulated runs or more")
    elif len(members) > 1 and equal:
        notes.append(f"the simulated runs hardly differ in {', '.join(equal)}; their coverage is not computed")
    made = Comparison(real, list(simulated), offset, frame, *window, quantities, notes=notes, track=track)
    return _with_acoustics(made)


def _there(real: ComparedRun, simulated: ComparedRun) -> str:
    mine, theirs = ", ".join(real.channels), ", ".join(simulated.channels)
    return f"the real run has {mine[:160]}; the simulation has {theirs[:160]}"


def renamed(run: ComparedRun, real: ComparedRun) -> ComparedRun:
    """Return a simulated run whose instruments have the names of those in the real run. An instrument belongs to that of
    the same name and type or, if there is none, to the only one of the same type.
    """
    found: dict[str, dict[str, Channel]] = {}
    for instrument in real.sensors:
        kind = real.types[instrument]
        alike = [i for i in run.sensors if run.types[i] == kind]
        mine = instrument if instrument in alike else alike[0] if len(alike) == 1 else ""
        if mine:
            found[instrument] = {k: replace(c, name=f"{instrument}.{k}") for k, c in run.sensors[mine].items()}
    return replace(run, sensors=found)


def _not_compared(real: ComparedRun, members: Sequence[ComparedRun]) -> list[str]:
    """Return notes about instruments and motion of the real run that the simulation lacks."""
    lacking = [f"{i} ({real.types[i]})" for i in real.sensors if any(i not in m.sensors for m in members)]
    notes = [f"not simulated: {', '.join(lacking)}"] if lacking else []
    if real.track is None:
        notes.append("the real run has no track; only instruments are compared (--truth adds a track to a recording)")
    elif any(m.track is None for m in members):
        notes.append("the simulated logs have no true states; only instruments are compared")
    elif real.track.q is None:
        notes.append("the real track has no attitudes")
    return notes


# ------------------------------------------------------------------ time


def signals(run: ComparedRun) -> dict[str, Channel]:
    """Return the speeds and rates of a run, from which the offset between clocks follows."""
    found = {name: run.motion[name] for name in SIGNALS if name in run.motion}
    if (down := run.motion.get("down")) is not None and len(down.time) > 3:
        found["vertical speed"] = replace(
            down, name="vertical speed", unit="m/s", values=np.gradient(down.values, down.time)
        )
    for columns in run.sensors.values():
        found |= {c.name: c for column, c in columns.items() if column in SIGNAL_COLUMNS}
    return found


def _offset(real: ComparedRun, members: Sequence[ComparedRun], options: ComparisonOptions) -> TimeOffset:
    first = members[0]
    begin, end = max(m.begin for m in members), min(m.end for m in members)
    if options.offset is None:
        if real.end + options.search < begin or real.begin - options.search > end:
            raise LogError(
                f"{real.name} covers {real.begin:.1f} to {real.end:.1f} s, but the simulation covers {begin:.1f} to "
                f"{end:.1f} s: no common time. If both begin at the same moment, give --offset {first.begin - real.begin:.3f}"
            )
        theirs = [signals(m) for m in members]
        return find_offset(signals(real), _mean_signals(theirs), options.search, options.gap)
    common = min(real.end + options.offset, end) - max(real.begin + options.offset, begin)
    if common < LEAST_S:
        raise LogError(
            f"with --offset {options.offset:g}, {real.name} covers {real.begin + options.offset:.1f} to "
            f"{real.end + options.offset:.1f} s, but the simulation covers {begin:.1f} to {end:.1f} s: no common time"
        )
    return TimeOffset(options.offset, given=True)


def _mean_signals(members: Sequence[Mapping[str, Channel]]) -> dict[str, Channel]:
    """Return the signals of one run, or the means of the signals of several runs."""
    if len(members) == 1:
        return dict(members[0])
    found = {}
    for name, c in members[0].items():
        if all(name in m for m in members):
            values = np.mean([np.interp(c.time, m[name].time, m[name].values) for m in members], axis=0)
            found[name] = replace(c, values=values)
    return found


# ------------------------------------------------------------------ track


def _same_frame(
    real: ComparedRun, members: Sequence[ComparedRun], window: tuple[float, float], options: ComparisonOptions
) -> tuple[ComparedRun, FrameAlignment, TrackErrors | None]:
    """Return the real run in the frame of the simulation, the alignment, and the differences of position."""
    tracks = [m.track for m in members if m.track is not None]
    if real.track is None or len(tracks) < len(members):
        if options.align != "none":
            raise LogError(f"--align {options.align} needs a track in the real run and in each simulated log")
        return real, FrameAlignment(), None
    track, origins = in_frame(real.track, real.origin, members[0].origin, options.align != "none")
    inside = (track.time >= window[0]) & (track.time <= window[1])
    for t in tracks:
        inside &= covered(t.time, track.time, options.gap)
    if inside.sum() < LEAST_VALUES:
        raise LogError(
            f"{real.name} and the simulated logs have {int(inside.sum())} poses in common; at least {LEAST_VALUES} are needed "
            f"(gaps longer than {options.gap:g} s are not interpolated; see --gap)"
        )
    part = track.part(np.flatnonzero(inside)[:: max(int(inside.sum()) // MOST_VALUES, 1)])
    p = _positions(tracks, part.time)
    heading = None
    if all("heading" in m.motion for m in members):
        heading = ensemble_at([m.motion["heading"] for m in members], part.time, options.gap).mean(axis=0)
    frame = aligned(part, p.mean(axis=0), heading, options.align, origins)
    part = moved(part, frame)
    return real.with_track(moved(track, frame)), frame, _errors(part, p)


def _positions(tracks: Sequence[PoseTrack], time: Floats) -> Floats:
    """Return the positions (M, T, 3) of several tracks."""
    return np.stack([np.stack([np.interp(time, t.time, t.p[:, k]) for k in range(3)], axis=1) for t in tracks])


def _errors(real: PoseTrack, p: Floats) -> TrackErrors:
    mean = p.mean(axis=0)
    t, h = real.time, 0.5 * COURSE_S
    a, b = np.clip(t - h, t[0], t[-1]), np.clip(t + h, t[0], t[-1])
    way = np.stack([np.interp(b, t, real.p[:, k]) - np.interp(a, t, real.p[:, k]) for k in (0, 1)], axis=1)
    course = np.arctan2(way[:, 1], way[:, 0])
    still = np.linalg.norm(way, axis=1) < STILL * (b - a)
    if still.any():
        course[still] = frames.euler(real.q)[still, 2] if real.q is not None else _held(course, still)[still]
    c, s = np.cos(course), np.sin(course)

    def rotated(x: Floats) -> Floats:
        return np.stack([c * x[..., 0] + s * x[..., 1], c * x[..., 1] - s * x[..., 0], x[..., 2]], axis=-1)

    return TrackErrors(t, rotated(real.p - mean), rotated(p - mean))


def _held(course: Floats, still: Any) -> Floats:
    """Return courses in which the last moving course is held while the vehicle is still."""
    index = np.where(still, 0, np.arange(len(course)))
    return np.asarray(course[np.maximum.accumulate(index)])


def _track_quantities(track: TrackErrors) -> dict[str, QuantityDifference]:
    e = track.errors
    flat = np.linalg.norm(e[:, :2], axis=1)
    found = {"track": summary("track", "m", flat)}
    for k, name in enumerate(("along-track", "cross-track", "vertical")):
        if not np.isfinite(e[:, k]).all():
            continue
        made = summary(name, "m", e[:, k])
        found[name] = replace(made, coverage=coverage(e[:, k], track.members[:, :, k]))
    return found


def _axis_hint(
    real: ComparedRun, members: Sequence[ComparedRun], track: TrackErrors, frame: FrameAlignment
) -> list[str]:
    """Return a hint if another order of the axes, or a constant offset, explains most of the difference."""
    now = rms_distance(track.errors[:, :2])
    tracks = [m.track for m in members if m.track is not None]
    if real.track is None or now < 1.0 or frame.kind != "none":
        return []
    p = np.stack([np.interp(track.time, real.track.time, real.track.p[:, k]) for k in (0, 1)], axis=1)
    mean = _positions(tracks, track.time).mean(axis=0)[:, :2]
    exchanged = rms_distance(p[:, ::-1] - mean)
    if exchanged < 0.5 * now:
        return [
            f"with north and east exchanged, the rms difference is {exchanged:.2f} m instead of {now:.2f} m: are the axes ENU "
            "or NED (--layout frame=...)?"
        ]
    shift = (p - mean).mean(axis=0)
    rest = rms_distance(p - mean - shift)
    if rest < 0.5 * now:
        return [
            f"a constant offset of {shift[0]:.2f} m north, {shift[1]:.2f} m east explains most of the difference (rest: "
            f"{rest:.2f} m rms): another origin? See --align"
        ]
    return []


# ------------------------------------------------------------------ acoustics


def _with_acoustics(made: Comparison) -> Comparison:
    """Return the comparison with ranges and detections, if the real and the simulated logs contain them."""
    if made.real.log is None:
        return made
    shift = made.offset.seconds
    mine = acoustic_run(made.real.log, made.begin - shift, made.end - shift)
    theirs = [acoustic_run(s.log, made.begin, made.end) for s in made.simulated if s.log is not None]
    others = [s for s in theirs if s is not None]
    if mine is None or not others:
        return made
    ranges, detections = compare_ranges(mine, others), compare_detections(mine, others)
    notes = list(made.notes)
    if not ranges:
        notes.append(
            "both logs contain acoustic signals, but no pair of nodes has enough ranges in both; compare the names of the nodes"
        )
    return replace(made, ranges=ranges, detections=detections, notes=notes)
