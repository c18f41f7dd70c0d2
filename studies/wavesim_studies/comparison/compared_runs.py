"""Runs to compare: a real run in any format that the navigation commands read, and simulated runs from logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from wavesim_sdk.errors import ConfigError, LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, read
from wavesim_sdk.names import suggest_name
from wavesim_studies.comparison.channels import Channel, motion_channels, sensor_channels
from wavesim_studies.navigation import foreign_logs
from wavesim_studies.navigation.clock_checks import gaps_text
from wavesim_studies.navigation.estimate_score import time_origin
from wavesim_studies.navigation.pose_tracks import PoseTrack, track_of_log
from wavesim_studies.navigation.score_estimates import read_log
from wavesim_studies.navigation.track_files import is_wavesim_log, read_track
from wavesim_world.config.standalone_xml import load_standalone

__all__ = ["ComparedRun", "RealSource", "of_log", "read_real", "read_simulated"]

TRACK_FILES = (".csv", ".tum", ".txt")  #: files that contain a track and no instruments
#: beginnings of the notes of an import that also concern a comparison
IMPORT_NOTES = ("the origin", "simulation time 0", "truth: ")


@dataclass(frozen=True)
class RealSource:
    """File or folder with the real run, and the options for reading it."""

    path: Path
    map_file: Path | None = None
    truth: str = ""
    layout: str = ""
    frame: str = "enu"


@dataclass(frozen=True)
class ComparedRun:
    """One run of one vehicle: its track, if it has one, its channels, and its log, if it comes from one."""

    name: str
    vehicle: str
    track: PoseTrack | None
    log: Log | None = None
    origin: Origin | None = None  #: origin of the frame W; None if it is not stated
    civil_s: float = 0.0  #: civil time in s since 1970 at time 0
    notes: tuple[str, ...] = ()
    motion: dict[str, Channel] = field(default_factory=dict)
    sensors: dict[str, dict[str, Channel]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  #: type of each instrument

    @property
    def channels(self) -> dict[str, Channel]:
        """All channels of the run by name."""
        return self.motion | {c.name: c for columns in self.sensors.values() for c in columns.values()}

    @property
    def begin(self) -> float:
        """First time in s of any channel."""
        return min(float(c.time[0]) for c in self.channels.values())

    @property
    def end(self) -> float:
        """Last time in s of any channel."""
        return max(float(c.time[-1]) for c in self.channels.values())

    def with_track(self, track: PoseTrack) -> ComparedRun:
        """Return the run with another track, for example in another frame."""
        return replace(self, track=track, motion=motion_channels(track))

    def shifted(self, seconds: float) -> ComparedRun:
        """Return the run with ``seconds`` added to its times."""
        return replace(
            self,
            track=None if self.track is None else self.track.shifted(seconds),
            motion={k: c.shifted(seconds) for k, c in self.motion.items()},
            sensors={i: {k: c.shifted(seconds) for k, c in columns.items()} for i, columns in self.sensors.items()},
        )


def kind_of(source: RealSource) -> str:
    """Return what the real run is: `a WaVeSim log`, `a track`, or `a recording`. A missing file is a recording."""
    suffix = source.path.suffix.lower()
    if suffix == ".mcap" and source.path.exists() and is_wavesim_log(source.path):
        return "a WaVeSim log"
    return "a track" if suffix in TRACK_FILES and source.map_file is None else "a recording"


def read_real(source: RealSource, vehicle: str, simulated: str) -> ComparedRun:
    """Read the real run of a vehicle. If ``vehicle`` is empty, it is the one with the name of the ``simulated`` vehicle.
    Raise LogError if the run cannot be used.
    """
    path, name = source.path, vehicle or simulated
    if not path.exists():
        raise LogError(f"cannot read {path}: No such file or directory")
    kind = kind_of(source)
    if kind == "a WaVeSim log":
        log = read(path)
        there = vehicles_of(log)
        if there and name not in there and not vehicle:
            raise LogError(
                f"no common vehicle: {path} has {', '.join(there)}, the simulated logs have {simulated}; select them with "
                "--vehicle and --real-vehicle"
            )
        return of_log(log, name)
    if kind == "a track":
        track = read_track(path, source.layout, vehicle, true=True)
        return _checked(ComparedRun(path.name, name, track, notes=track.notes))
    # a map names its vehicle
    chosen = vehicle or ("" if source.map_file is not None else simulated)
    try:
        made = foreign_logs.import_log(path, source.map_file, vehicle=chosen, truth=source.truth, frame=source.frame)
    except LogError as error:
        if source.map_file is not None or source.truth:
            raise
        try:  # a bag can contain a track and no instruments
            track = read_track(path, source.layout or f"frame={source.frame}", vehicle, true=True)
        except LogError:
            raise error from None
        notes = (*track.notes, f"instruments are not compared: {error}")
        return _checked(ComparedRun(path.name, name, track, notes=notes))
    instruments = [f"{r.name}: {note}" for r in made.recordings for note in r.notes]
    run = of_log(made.log, made.vehicle)
    if source.layout:
        raise LogError(
            "--layout applies to REAL only if it is a track (.csv, TUM); describe its instruments with --map"
        )
    general = [note for note in made.notes if note.startswith(IMPORT_NOTES)]  # the others concern the filter
    return replace(run, name=path.name, notes=(*run.notes, *instruments, *general))


def read_simulated(paths: Sequence[Path], vehicle: str) -> list[ComparedRun]:
    """Read the simulated runs. A folder stands for all logs in it. Raise LogError if they cannot be used together."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.glob("**/*.mcap"))
            if not inside:
                raise LogError(f"{path} contains no logs (.mcap)")
            files += inside
        elif path.suffix.lower() in TRACK_FILES:
            raise LogError(f"{path} is a track or a table; SIM must be the log of a simulation (.mcap)")
        else:
            files.append(path)
    logs = [read_log(path) for path in files]
    common = [n for n in vehicles_of(logs[0]) if all(n in vehicles_of(log) for log in logs)]
    if not vehicle:
        if len(common) != 1:
            listed = ", ".join(common) or "none"
            raise LogError(f"the simulated logs have these vehicles in common: {listed}; select one with --vehicle")
        vehicle = common[0]
    for log in logs:
        if vehicle not in vehicles_of(log):
            there = vehicles_of(log)
            raise LogError(f"{log.path} has no vehicle '{vehicle}'{suggest_name(vehicle, there)}")
    hashes = [log.content_hash for log in logs]
    if (twice := next((k for k, h in enumerate(hashes) if h in hashes[:k]), None)) is not None:
        other = logs[hashes.index(hashes[twice])].path
        raise LogError(f"{logs[twice].path} and {other} are the same run; each run of an ensemble needs its own seed")
    return [of_log(log, vehicle) for log in logs]


def vehicles_of(log: Log) -> list[str]:
    """Return the vehicles with states or instruments in a log. Buoys are not vehicles."""
    buoys = {b["name"] for b in log.bodies.values() if b.get("type") == "buoy"}
    having = {
        t.split("/")[2] for t, s in log.series.items() if t.startswith(("/state/", "/sensor/")) and len(s.time_ns)
    }
    return [name for name in log.names if name in having and name not in buoys]


def of_log(log: Log, vehicle: str) -> ComparedRun:
    if vehicle not in vehicles_of(log):
        there = vehicles_of(log)
        hint = suggest_name(vehicle, there) if there else "; it has neither states nor instrument values"
        raise LogError(f"{log.path} has no vehicle '{vehicle}'{hint}")
    track, notes = None, []
    if _rows(log, f"/state/{vehicle}"):
        track = track_of_log(log, vehicle, true=True)
    elif _rows(log, f"/estimate/{vehicle}"):
        track = track_of_log(log, vehicle, true=False)
        notes.append(f"{log.path.name}: the track is the estimate of the on-board program; true states are missing")
    try:
        world = load_standalone(log.metadata.get("configuration", ""))[0].config.world
    except ConfigError as error:
        raise LogError(f"{log.path}: invalid configuration: {error}") from None
    stated = (world.latitude, world.longitude) != (0.0, 0.0)
    origin = Origin(world.latitude, world.longitude) if stated else None
    types = {i: s.type for i, s in log.sensors(vehicle).items()}
    run = ComparedRun(log.path.name, vehicle, track, log, origin, time_origin(log), tuple(notes), types=types)
    return _checked(replace(run, sensors=sensor_channels(log, vehicle)))


def _rows(log: Log, topic: str) -> int:
    return len(log.series[topic].time_ns) if topic in log.series else 0


def _checked(run: ComparedRun) -> ComparedRun:
    """Return the run with the channels of its motion. Raise LogError if it is empty or if a clock runs backwards."""
    if run.track is not None:
        run = replace(run, motion=motion_channels(run.track)) if len(run.track.time) > 1 else replace(run, track=None)
    if not run.channels:
        raise LogError(f"{run.name} has neither a track nor values of an instrument of '{run.vehicle}'; it is empty")
    notes = []
    for c in run.channels.values():
        steps = np.diff(c.time)
        if not (steps > 0.0).all():
            at = float(c.time[int(np.argmin(steps))])
            raise LogError(
                f"{run.name}: the clock of '{c.name}' jumps back by {-float(steps.min()):.3f} s after t = {at:.3f} s; "
                "split the recording there"
            )
    if run.track is not None and (note := gap_note(run.track.time, "the track")):
        notes.append(f"{run.name}: {note}{_jump(run.track)}")
    return replace(run, notes=(*run.notes, *notes))


def gap_note(time: np.ndarray, what: str) -> str:
    """Return a note about gaps of a minute or more; empty if there are none."""
    text = gaps_text(time)
    return f"{what} has {text}; gaps are not compared" if text else ""


def _jump(track: PoseTrack) -> str:
    """Return a hint if the vehicle hardly moved during the longest gap, although it moved before and after: then the
    clock jumped.
    """
    steps, p = np.diff(track.time), track.p[:, :2]
    k, usual = int(np.argmax(steps)), float(np.median(steps))
    moved = np.linalg.norm(np.diff(p, axis=0), axis=1)
    speed = float(np.median(moved / steps))
    if speed > 0.05 and moved[k] < 0.05 * speed * steps[k] + 5.0 * speed * usual:
        return f"; the vehicle moved only {moved[k]:.1f} m meanwhile, so the clock probably jumped: split the recording there"
    return ""
