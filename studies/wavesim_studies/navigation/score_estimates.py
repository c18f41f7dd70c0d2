"""Implementation of `wavesim nav score`: it scores estimates from other programs and prints the report."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wavesim_sdk.errors import LogError
from wavesim_sdk.log import Log, read
from wavesim_sdk.names import suggest_name
from wavesim_sdk.terminal_text import echo, finite_json
from wavesim_studies.navigation import logs
from wavesim_studies.navigation.estimate_score import (
    REFERENCE,
    EstimateScore,
    common_clock,
    compare_estimates,
    plain,
    reference_track,
    time_origin,
)
from wavesim_studies.navigation.metrics import NavigationScore
from wavesim_studies.navigation.pose_tracks import PoseTrack
from wavesim_studies.navigation.score_report import HEAD, detail_lines, score_line, sensor_lines
from wavesim_studies.navigation.track_files import is_wavesim_log, read_track
from wavesim_studies.navigation.true_states import with_truth

LATE_S = 2.0  #: time in s after which a notice informs the user that the filter is being compiled


@dataclass(frozen=True)
class EstimateTask:
    """Estimates to score, the true track, and the options for matching their times."""

    log: Log | None
    only: tuple[str, ...]
    estimates: tuple[Path, ...]
    layout: str
    truth: Path | None
    truth_layout: str
    offset: float
    gap: float
    align: bool

    @property
    def body(self) -> str:
        """Name of the vehicle, or an empty string."""
        if len(self.only) > 1:
            raise LogError("an estimate belongs to one vehicle; give --vehicle only once")
        if self.log is not None and self.only and self.only[0] not in self.log.names:
            raise LogError(
                f"{self.log.path} has no vehicle '{self.only[0]}'{suggest_name(self.only[0], self.log.names)}"
            )
        return self.only[0] if self.only else ""


def read_log(file: Path) -> Log:
    """Read a log, or a recording from another program. Raise LogError, with a hint, if it is only a track or a table."""
    if file.suffix.lower() in (".csv", ".tum", ".txt") and not file.is_dir():
        raise LogError(
            f"{file} is not a log; to convert tables from another program, use `wavesim nav import`; to score a track, "
            "use --estimate"
        )
    return read(file)


def log_with_truth(log: Log, only: tuple[str, ...], truth: Path | None, layout: str) -> Log:
    """Return a log with the true states of one vehicle from a file, or the log itself."""
    if truth is None:
        if layout:
            raise LogError("--truth-layout requires --truth")
        return log
    name = _one_vehicle(log, only)
    notes: list[str] = []
    made = with_truth(log, name, read_track(truth, layout, name, true=True), notes)
    for note in notes:
        echo(f"note: {note}", err=True)
    return made


def _one_vehicle(log: Log, only: tuple[str, ...]) -> str:
    """Return the vehicle to which the true track in a file belongs."""
    names = list(only) or vehicles_without_truth(log) or logs.vehicles(log)
    if len(names) != 1:
        raise LogError(f"--truth belongs to one vehicle; select one with --vehicle: {', '.join(names) or 'none'}")
    if names[0] not in log.names:
        raise LogError(f"{log.path} has no vehicle '{names[0]}'{suggest_name(names[0], log.names)}")
    return names[0]


def vehicles_without_truth(log: Log) -> list[str]:
    """Return the vehicles with an IMU or AHRS but without true states."""
    able = {body: None for kind in ("imu", "ahrs") for body, _ in log.by_type(kind)}
    return [name for name in able if f"/state/{name}" not in log.series]


@contextmanager
def _notice(text: str, quiet: bool) -> Iterator[None]:
    """Print a notice if the work takes longer than two seconds."""
    timer = threading.Timer(LATE_S, lambda: echo(text, err=True))
    timer.daemon = True
    if not quiet:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def prepare_filter(quiet: bool = False) -> None:
    """Load or compile the filter. If this takes long, print a notice."""
    from wavesim_studies.navigation.filter import compile_filter

    with _notice("preparing the reference filter (the first use compiles it, about 15 s)", quiet):
        compile_filter()


def run(task: EstimateTask, selection: logs.Selection | None, smooth: bool, as_json: bool) -> None:
    """Score estimates, and the reference filter if there is a selection of instruments, and print the report."""
    if selection is not None and task.log is None:
        raise LogError("--reference requires FILE (a log with measurements)")
    names = _bodies(task)
    values: dict[str, Any] = {}
    lines: list[str] = []
    for name in names:
        part = replace(task, only=(name,)) if name else task
        found, extra = _scored(part, selection, smooth, as_json)
        label = f"{name} " if len(names) > 1 else ""
        for s in found:
            values[label + s.name] = plain(s) | (extra if s.name == REFERENCE else {})
            lines += [f"{label + s.name}\0{score_line('', s.score)[12:]}"]
            lines += [f"  {line}" for line in detail_lines(s.score, plain(s))]
            lines += [f"  note: {note}" for note in s.notes]
        lines += [f"  {line}" for line in sensor_lines(extra.get("sensors", {}), extra.get("unused", {}))]
    if as_json:
        echo(finite_json(values, 2))
        return
    width = max(12, *(len(name) + 2 for name in values))
    echo(" " * (width - 12) + HEAD)
    for line in lines:
        name, row, numbers = line.partition("\0")
        echo(f"{name:{width}}{numbers}" if row else line)


def _bodies(task: EstimateTask) -> list[str]:
    """Return the vehicles to score: the vehicle given by --vehicle or, if the estimates are in a log, all vehicles with
    estimates.
    """
    if task.only or not all(path.suffix.lower() == ".mcap" and is_wavesim_log(path) for path in task.estimates):
        return [task.body]
    having = [
        [t.split("/")[2] for t, s in read(path).series.items() if t.startswith("/estimate/") and len(s.time_ns)]
        for path in task.estimates
    ]
    return [name for name in having[0] if all(name in other for other in having)] or [""]


def _scored(
    task: EstimateTask, selection: logs.Selection | None, smooth: bool, as_json: bool
) -> tuple[list[EstimateScore], dict[str, Any]]:
    """Return the scores of all estimates of one vehicle, and the instruments of the reference filter."""
    truth, log = _truth(task)
    origin = time_origin(task.log)
    tracks = []
    alike = len({path.name for path in task.estimates}) < len(task.estimates)
    for path in task.estimates:
        track = read_track(path, task.layout, task.body or (truth.name if task.log is not None else ""))
        track = replace(track, name=str(path) if alike else path.name)
        track = track.shifted(task.offset) if task.offset else track
        tracks.append(common_clock(track, float(truth.time[0]), float(truth.time[-1]), origin))
    extra: dict[str, Any] = {}
    if selection is not None and log is not None:
        prepare_filter(as_json)
        case = logs.estimation_case(log, truth.name, selection=selection)
        result = case.run(smooth)
        tracks.append(reference_track(case, result))
        extra = {"sensors": logs.counts(case, result), "unused": case.unused}
    return compare_estimates(tracks, truth, task.gap, task.align), extra


def _truth(task: EstimateTask) -> tuple[PoseTrack, Log | None]:
    """Return the true track, and the log for the reference filter with its true states taken from this track."""
    if task.truth is None:
        if task.truth_layout:
            raise LogError("--truth-layout requires --truth")
        if task.log is None:
            raise LogError("give FILE (a log with true states), or give the true track with --truth")
        body = task.body
        able = logs.vehicles(task.log)
        if not body and len(able) > 1:
            raise LogError(f"{task.log.path} has several vehicles: {', '.join(able)}; select one with --vehicle")
        body = body or (able[0] if able else "")
        return read_track(task.log, "", body, true=True), task.log
    truth = read_track(task.truth, task.truth_layout, task.body, true=True)
    if task.log is None:
        return truth, None
    name = _one_vehicle(task.log, task.only)
    log = with_truth(task.log, name, truth)
    return replace(read_track(log, "", name, true=True), notes=truth.notes), log


def show(found: Mapping[str, Any]) -> None:
    """Print the scores of the reference filter as a table."""
    echo(HEAD)
    fields = NavigationScore.__dataclass_fields__
    for name, s in found.items():
        result = NavigationScore(**{k: s[k] for k in fields})
        echo(score_line(name, result))
        for line in detail_lines(result):
            echo(f"  {line}")
        echo(f"  {s['inertial']:14}propagates {s['states']} states")
        for line in sensor_lines(s["sensors"], s["unused"]):
            echo(f"  {line}")
