"""Import of recordings from other programs as WaVeSim logs: MAVLink, ArduPilot, PX4 and DUNE logs, ROS bags, and
folders with CSV files.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import axes, frames
from wavesim_sdk.errors import LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, Series
from wavesim_sdk.log_tables import UNKNOWN_TRUTH
from wavesim_sdk.names import suggest_name
from wavesim_sdk.recorded_messages import suffix_of
from wavesim_sdk.sensors import sensor_table_of
from wavesim_studies.navigation import bags
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.clock_checks import common_gaps
from wavesim_studies.navigation.estimate_score import TIME_ORIGIN
from wavesim_studies.navigation.fix_checks import FAR_M, check_course, without_far_fixes
from wavesim_studies.navigation.import_map import ImportedTable, ImportMap, read_map
from wavesim_studies.navigation.imported_vehicle import configuration_of, load_made
from wavesim_studies.navigation.pose_tracks import PoseTrack, epoch_time
from wavesim_studies.navigation.recordings import (
    BODY_VECTORS,
    FIELDS,
    InstrumentRecording,
    correlation,
    names_of_values,
)
from wavesim_studies.navigation.track_files import is_wavesim_log, read_track
from wavesim_studies.navigation.true_states import with_truth
from wavesim_studies.navigation.vehicle_logs import NO_TRACK, OWN_ESTIMATE, RecordedTrack, read_vehicle_log
from wavesim_world.config import LoadedConfig, load
from wavesim_world.config.sensors import InstrumentConfig
from wavesim_world.ocean.water import pressure

__all__ = ["ImportedLog", "import_log", "read_log", "report_lines", "write_log"]

MAP = "import.xml"  #: name of an import map in a folder; that of a file is NAME.import.xml
TRUTH = "truth"
FEW_SECONDS = 12  #: shortest recording in s in which the turn rates of two instruments are compared
NAME_ONE = "name one with <topic sensor=...> or <table sensor=...>"


@dataclass
class ImportedLog:
    """Result of an import: a log in memory, with notes for the user."""

    log: Log
    vehicle: str
    recordings: list[InstrumentRecording]
    loaded: LoadedConfig
    #: for each topic or file that is not used: the reason
    unused: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class _Source:
    """Content of a recording from another program."""

    recordings: list[InstrumentRecording]
    unused: dict[str, str]
    truth: PoseTrack | None = None
    track: RecordedTrack | None = None  #: track in the frame of the recording
    origin: tuple[float, float] | None = None  #: latitude and longitude in rad of the origin of this frame
    notes: list[str] = field(default_factory=list)


def read_log(path: Path) -> Log:
    """Return a recording from another program as a log in memory. An import map with the name `NAME.import.xml` (in a
    folder: `import.xml`) is used. ``notes`` of the log state its assumptions and what is missing. Raise LogError if the
    recording cannot be used.
    """
    beside = path / MAP if path.is_dir() else path.with_name(f"{path.name}.{MAP}")
    truth = ""
    if suffix_of(path) == "" and (not path.is_dir() or (path / "metadata.yaml").exists()):
        poses = [topic for topic, kind in bags.topics_of(path).items() if kind in bags.POSES]
        truth = poses[0] if len(poses) == 1 else ""
    exported = {p.name.split(".")[1] for p in path.glob("sensor.*.*.csv")} if path.is_dir() else set()
    vehicle = exported.pop() if len(exported) == 1 and not beside.exists() else ""
    made = import_log(path, beside if beside.exists() else None, vehicle=vehicle, truth=truth)
    if truth:
        made.notes.append(
            f"the poses of {truth} are used as the true track; to use another one, run `wavesim nav import`"
        )
    return replace(made.log, notes=tuple(report_lines(made)))


def report_lines(made: ImportedLog) -> list[str]:
    """Return the content of an imported log as lines of text: its instruments, and all notes and reasons."""
    lines = []
    for r in made.recordings:
        label = r.name if r.name == r.type else f"{r.name} ({r.type})"
        lines.append(f"{label:24}{len(r.time):8} values{1.0 / r.period:9.2f} Hz  {r.source}")
        lines += [f"  note: {note}" for note in r.notes]
    state = made.log.series.get(f"/state/{made.vehicle}")
    if state is not None:
        own = any(OWN_ESTIMATE in note for note in made.notes)
        lines.append(f"{'own estimate' if own else 'truth':24}{len(state.time_ns):8} poses")
    lines += [f"{name:24}not used: {reason}" for name, reason in made.unused.items()]
    return lines + [f"note: {note}" for note in made.notes]


def import_log(
    source: Path,
    map_file: Path | None = None,
    *,
    vehicle: str = "",
    configuration: Path | None = None,
    truth: str = "",
    frame: str = "enu",
) -> ImportedLog:
    """Return a recording from another program as a log in memory, which ``estimation_case`` accepts.

    ``source`` is a MAVLink, ArduPilot, PX4 or DUNE log (.tlog, .bin, .ulg, .lsf), a ROS bag, a folder with CSV files
    that ``map_file`` describes, or a folder that ``wavesim log export --csv`` wrote. ``configuration`` (or the map)
    contains the vehicle with the mounting positions and accuracies of its instruments; without it, instruments are at
    the origin of the body and have the stated accuracies, or typical ones if none are stated. ``truth`` is a topic of
    the bag or a file with the true track; for the log of an autopilot or of DUNE, it is a message type or `none`, and
    by default the simulator's ground truth or, if there is none, the vehicle's own estimate. ``frame`` is the frame of
    a bag: `enu` (REP 103) or `ned`. Raise LogError if the recording cannot be used.
    """
    plan, sensors = (ImportMap(), "") if map_file is None else read_map(map_file)
    name = vehicle or plan.vehicle
    if map_file is not None and plan.configuration and configuration is None:
        configuration = map_file.parent / plan.configuration
    if configuration is not None and sensors:
        raise LogError(f"{map_file} contains <sensors>, and so does a configuration; give only one of them")
    loaded = None if configuration is None else load(configuration)
    found = _read_source(source, plan, name, truth, frame)
    empty = [r for r in found.recordings if not len(r.complete().time)]
    found.unused |= {r.name: "no valid values" for r in empty}
    found.recordings = [
        without_far_fixes(r.checked()) for r in found.recordings if all(r is not other for other in empty)
    ]
    if not found.recordings:
        reasons = "; ".join(f"{k}: {v}" for k, v in found.unused.items())
        raise LogError(f"{source} has no values of an instrument that the filter can use ({reasons or 'it is empty'})")
    notes = [*found.notes, *_shared_gaps(source, found.recordings)]
    check_course(found.recordings)
    if loaded is None:
        if len(plan.origin) != 2 and found.origin is not None:
            plan = replace(plan, origin=found.origin)
            place = ", ".join(f"{math.degrees(v):.6f}" for v in found.origin)
            notes.append(f"the origin of the world frame is that of the recorded track: {place} deg")
        loaded = load_made(configuration_of(name, found.recordings, plan, sensors, notes), map_file)
    if found.track is not None and found.truth is None:
        found.truth = _placed(found.track, found.recordings, loaded)
    found.recordings = _matched(found.recordings, loaded, name, found.unused)
    if not found.recordings:
        raise LogError(f"{source}: {'; '.join(f'{k}: {v}' for k, v in found.unused.items())}")
    numbers = {i.name: k for k, i in enumerate(_suite(loaded, name))}
    found.recordings.sort(key=lambda r: numbers[r.name])  # the filter uses values of the same time in this order
    log = _log(source, name, loaded, found, notes)
    made = ImportedLog(log, name, found.recordings, loaded, found.unused, notes)
    if found.truth is not None:
        made.log = with_truth(log, name, found.truth, notes)
    _name_missing(made)
    return made


def _read_source(source: Path, plan: ImportMap, name: str, truth: str, frame: str) -> _Source:
    if not source.exists():
        raise LogError(f"cannot read {source}: No such file or directory")
    topic = truth if truth.startswith("/") and not Path(truth).exists() else ""
    if suffix_of(source):
        if frame != "enu":
            raise LogError(f"--frame applies only to bags; the format of {source.name} defines its axes")
        named = NO_TRACK if truth and Path(truth).is_file() else truth
        made = read_vehicle_log(source, plan.topic, named)
        found = _Source(made.recordings, made.unused, None, made.track, made.origin, made.notes)
        if truth and named != truth:
            found.truth = read_track(Path(truth), body=name, true=True)
        return found
    if source.is_dir() and not (source / "metadata.yaml").exists():
        if topic:
            raise LogError(f"{source} has no topics; --truth must name a file")
        found = _of_tables(source, plan, name)
    elif source.suffix.lower() == ".csv":
        raise LogError(f"give the folder of {source.name} instead of the file, and describe its files with --map")
    elif source.suffix.lower() == ".mcap" and is_wavesim_log(source):
        raise LogError(f"{source} is already a WaVeSim log; pass it to `wavesim nav score`")
    else:
        found = _Source(*bags.read_instruments(source, name, plan.topic, frame, [topic] if topic else []))
        if topic:
            found.truth = bags.read_pose_track(source, topic, frame)
    if truth and not topic:
        found.truth = read_track(Path(truth), body=name, true=True)
    return found


def _placed(track: RecordedTrack, recordings: Sequence[InstrumentRecording], loaded: LoadedConfig) -> PoseTrack:
    """Return a track in the world frame of a configuration."""
    origin, fix = Origin(loaded.config.world.latitude, loaded.config.world.longitude), None
    for r in recordings:
        if r.type == "gps" and fix is None:
            fix = float(r.time[0]), origin.ned(float(r.values["latitude"][0]), float(r.values["longitude"][0]))
    made = track.in_world(origin, fix)
    if (far := float(np.abs(made.p[:, :2]).max())) > FAR_M:
        raise LogError(
            f"{track.name} is up to {far / 1000.0:.0f} km from the origin of the configuration; give the configuration of "
            "this place, or omit this track with --truth none"
        )
    return made


def _shared_gaps(source: Path, recordings: Sequence[InstrumentRecording]) -> list[str]:
    """Return notes about the gaps that all instruments share, and remove the notes about them from the recordings."""
    found = common_gaps(str(source), [r.time for r in recordings])
    if found:
        for r in recordings:
            r.notes[:] = [note for note in r.notes if " gap(s), the longest " not in note]
    return found


# ------------------------------------------------------------------ CSV files


def _of_tables(folder: Path, plan: ImportMap, name: str) -> _Source:
    """Return the recordings in a folder of CSV files that a map describes or that WaVeSim exported."""
    listed = list(plan.table)
    if not listed:
        prefix = f"sensor.{name}."
        listed = [
            ImportedTable(file=path.name, sensor=path.name.removeprefix(prefix).removesuffix(".csv"))
            for path in sorted(folder.glob(f"{prefix}*.csv"))
        ]
        if (folder / f"state.{name}.csv").exists():
            listed.append(ImportedTable(file=f"state.{name}.csv", sensor=TRUTH))
        if not listed:
            others = sorted({p.name.split(".")[1] for p in folder.glob("sensor.*.*.csv")})
            hint = (
                f"vehicles: {', '.join(others)}; select one with --vehicle"
                if others
                else f"describe its files with --map or in {MAP}"
            )
            raise LogError(f"{folder} contains neither a ROS 2 bag nor exported files of '{name}'; {hint}")
    found = _Source([], {})
    for table in listed:
        if table.sensor == TRUTH:
            found.truth = read_track(folder / table.file, table.columns)
            continue
        made = _of_table(folder / table.file, table, exported=not plan.table)
        if isinstance(made, str):
            found.unused[table.file] = made
        else:
            found.recordings.append(made)
    return found


def _of_table(path: Path, table: ImportedTable, exported: bool) -> InstrumentRecording | str:
    """Return the recording in one CSV file, or the reason why it is not used."""
    with tables.open_table(path) as opened:
        header = opened.header
        kind = table.type or (_type_of(header) if exported else table.sensor)
        if kind not in FIELDS:
            if exported:
                return "the filter has no measurement model for this type"
            raise LogError(
                f"{table.place}: unknown type '{kind}' of '{table.sensor}'{suggest_name(kind, FIELDS)}; set type"
            )
        times = ("measured_ns", "time_ns", "t_ns", "timestamp_ns", "t", "timestamp", "stamp")
        roles = {"time": tables.ColumnRole("time", times), **FIELDS[kind], "valid": tables.ColumnRole("")}
        layout = tables.parse_layout(table.columns, (*roles,), str(path))
        chosen = tables.choose_columns(header, roles, layout, str(path))
        if "time" not in chosen:
            raise LogError(f'{path} has no column for the time; name one with columns="time=COLUMN:s"')
        if "time" not in layout and chosen["time"].columns[0].endswith("_ns"):
            chosen["time"] = replace(chosen["time"], factor=1e-9)
        if missing := names_of_values(kind, [*chosen]):
            raise LogError(
                f"{path} has no column for {', '.join(missing)} of '{table.sensor}'; columns: {', '.join(header)}"
            )
        values = opened.values(roles, chosen)
    if not len(values["time"]):
        return "no values"
    tables.check_angles(str(path), values, chosen)
    valid = values.pop("valid", np.ones(len(values["time"]))) == 1.0
    if not valid.any():
        return "no valid values"
    notes = [] if valid.all() else [f"{int((~valid).sum())} of {len(valid)} values are marked as invalid"]
    values = {k: v[valid] for k, v in values.items()}
    if table.frame == "FLU":
        values = {k: axes.frd_to_flu(v) if k in BODY_VECTORS else v for k, v in values.items()}
    return InstrumentRecording(table.sensor, kind, values.pop("time"), values, 0.0, str(path), notes)


def _type_of(header: Sequence[str]) -> str:
    """Return the type of instrument whose exported columns a header contains; empty if there is none."""
    for kind, fields in FIELDS.items():
        if kind in ("ahrs", "imu", "dvl", "speedlog", "uwb", "gps", "ctd", "pressure"):
            names = [f"{k}_x" if role.size > 1 else k for k, role in fields.items()]
            if kind in ("ctd", "pressure"):
                names = ["pressure", *(["conductivity"] if kind == "ctd" else ["depth"])]
            if all(n in header for n in names) and not (kind == "imu" and "roll" in header):
                return kind
    return ""


# ------------------------------------------------------------------ instruments


def _matched(
    recordings: list[InstrumentRecording], loaded: LoadedConfig, name: str, unused: dict[str, str]
) -> list[InstrumentRecording]:
    """Match the recordings to the instruments in the configuration, and return them by the names of these instruments.
    A recording belongs to the instrument with the same name or, if there is none, to the only instrument of the same
    type.
    """
    suite = {i.name: i for i in _suite(loaded, name)}
    found: dict[str, InstrumentRecording] = {}

    def named(r: InstrumentRecording) -> bool:
        return r.name in suite and _same_kind(suite[r.name].type, r.type)

    for r in sorted(recordings, key=named, reverse=True):
        alike = [i.name for i in suite.values() if i.type == r.type]
        if named(r):
            made = replace(r, type=suite[r.name].type)
        elif len(alike) == 1:
            made = replace(r, name=alike[0])
        else:
            why = f"the configuration has {'several' if alike else 'no'} instruments of the type {r.type}"
            unused[r.name] = f"{why}; {NAME_ONE}" if alike else why
            continue
        if made.name in found:  # two recordings of one instrument would overwrite each other
            first = found[made.name].source
            unused[r.source] = f"'{made.name}' already has the values of {first}; {NAME_ONE}"
            continue
        found[made.name] = made
    return [*found.values()]


def _suite(loaded: LoadedConfig, name: str) -> tuple[InstrumentConfig, ...]:
    """Return the instruments of a vehicle in a configuration."""
    bodies = {b.name: b.model for b in loaded.config.fleet.bodies}
    if name not in bodies:
        raise LogError(
            f"the configuration has no vehicle '{name}'{suggest_name(name, bodies)}; select one with --vehicle"
        )
    return loaded.suite_by_name(name, bodies[name])


def _same_kind(configured: str, recorded: str) -> bool:
    return configured == recorded or {configured, recorded} <= {"pressure", "ctd"}


# ------------------------------------------------------------------ log


def _log(source: Path, name: str, loaded: LoadedConfig, found: _Source, notes: list[str]) -> Log:
    """Return the recordings as a log. Its times begin at 0 if the recording has civil times."""
    first = min(float(r.time[0]) for r in found.recordings)
    last = max(float(r.time[-1]) for r in found.recordings)
    for r in found.recordings:
        if r.time[0] > last or r.time[-1] < first or epoch_time(float(r.time[0])) != epoch_time(first):
            raise LogError(
                f"{r.source}: '{r.name}' covers {r.time[0]:.3f} to {r.time[-1]:.3f} s, but the recording begins at "
                f"{first:.3f} s: the clocks differ; check the units of the times"
            )
    zero = math.floor(first) if epoch_time(first) or first < 0.0 else 0
    if zero:
        notes.append(f"simulation time 0 is {zero} s by the clock of the recording")
    origin = Origin(loaded.config.world.latitude, loaded.config.world.longitude)
    log = Log(source, {"configuration": loaded.text, TIME_ORIGIN: str(zero * 10**9) if epoch_time(first) else ""})
    log.complete = True
    bodies = {b.name: b for b in loaded.config.fleet.bodies}
    log.json["/bodies"] = [
        (0, {"row": 0, "name": name, "model": bodies[name].model, "type": "underwater", "present": True})
    ]
    log.json["/notices"] = [(0, {"body": name, "text": f"imported from {source.name}; time 0 is {zero} s"[:200]})]
    for r in found.recordings:
        if r.type == "gps":
            _check_distance(r, origin)
        records = np.zeros(len(r.time), sensor_table_of(r.type).visible.dtype)
        ns = np.round((r.time - zero) * 1e9).astype(np.int64)
        records["time_ns"], records["valid"], records["sequence"] = ns, 1, np.arange(1, len(ns) + 1)
        values = dict(r.values)
        if r.type in ("pressure", "ctd") and "depth" in values:
            computed = pressure(loaded.config.world, values["depth"])
            measured = values.get("pressure", computed)
            values["pressure"] = np.where(np.isfinite(measured), measured, computed)
        if r.type == "gps":
            values.setdefault("height", np.full(len(ns), np.nan))
        for k, v in values.items():
            if k in (records.dtype.names or ()):
                records[k] = v
        log.series[f"/sensor/{name}/{r.name}"] = Series(ns, records, r.type)
    log.end_ns = max(int(s.time_ns[-1]) for s in log.series.values())
    if found.truth is not None:
        found.truth = (
            found.truth.shifted(-float(zero)) if epoch_time(float(found.truth.time[0])) or zero < 0 else found.truth
        )
    return log


def _check_distance(r: InstrumentRecording, origin: Origin) -> None:
    p = origin.ned(r.values["latitude"], r.values["longitude"])
    if (far := float(np.nanmax(np.linalg.norm(p[:, :2], axis=1)))) > FAR_M:
        raise LogError(
            f"{r.source}: fixes of '{r.name}' are up to {far / 1000.0:.0f} km from the origin: latitude and longitude "
            "swapped, or another origin?"
        )


def _name_missing(made: ImportedLog) -> None:
    """Add notes about quantities that the filter needs and the recording lacks."""
    types = {r.type for r in made.recordings}
    if not types & {"imu", "ahrs"}:
        reasons = "".join(f"; {k}: {v}" for k, v in made.unused.items())
        raise LogError(f"turn rates are missing: the filter needs an IMU or an AHRS{reasons}")
    if not types & {"dvl", "speedlog", "gps", "uwb"}:
        made.notes.append("neither speed nor position is measured; the error grows without bound")
    if "imu" in types and "ahrs" not in types:
        made.notes.append("no AHRS: the heading comes from the start and the gyros")
    if not types & {"pressure", "ctd", "uwb"}:
        made.notes.append("depth is not measured (no pressure sensor)")
    if {"imu", "ahrs"} <= types and not _mounted_alike(made):
        made.notes.append("the turn rates of the IMU and the AHRS differ: check the attitude of the IMU's mount")
    if f"/state/{made.vehicle}" not in made.log.series:
        made.notes.append("true states are missing; score with --truth FILE")


def _mounted_alike(made: ImportedLog) -> bool:
    """Return whether the turn rates of the IMU, as mounted, agree with those of the AHRS, both as means over 1 s."""
    unit = next(r for r in made.recordings if r.type == "imu")
    series = next(s for s in made.log.series.values() if s.type == "ahrs")
    suite = {i.name: i for i in _suite(made.loaded, made.vehicle)}
    R_BS = frames.rotation(frames.quaternion(*suite[unit.name].parameters.attitude))
    at = series.records["time_ns"] * 1e-9
    begin = series.records["time_ns"][0] * 1e-9
    seconds = np.arange(begin, at[-1], 1.0)
    if len(seconds) < FEW_SECONDS:
        return True
    mine = made.log.series[f"/sensor/{made.vehicle}/{unit.name}"].records
    means = []
    for time, rates in ((mine["time_ns"] * 1e-9, mine["rates"] @ R_BS.T), (at, series.records["rates"])):
        turned = np.concatenate(
            [np.zeros((1, 3)), np.cumsum(0.5 * (rates[1:] + rates[:-1]) * np.diff(time)[:, None], axis=0)]
        )
        means.append(np.diff(np.stack([np.interp(seconds, time, axis) for axis in turned.T], axis=1), axis=0))
    for mine_k, other_k in zip(means[0].T, means[1].T, strict=True):
        if np.std(other_k) > math.radians(0.1) and correlation(mine_k, other_k) < 0.5:
            return False
    return True


def write_log(made: ImportedLog, path: Path) -> None:
    """Write an imported log as a WaVeSim log file. Raise LogError if the file cannot be written."""
    from wavesim_server.logbook.writer import LogWriter

    if path.exists():
        raise LogError(f"{path} already exists; choose another file")
    log, name = made.log, made.vehicle
    body = next(b for b in made.loaded.config.fleet.bodies if b.name == name)
    numbers = {i.name: k for k, i in enumerate(_suite(made.loaded, name))}
    writer = LogWriter(
        path,
        made.loaded,
        0,
        metadata={k: v for k, v in log.metadata.items() if k in (TIME_ORIGIN, UNKNOWN_TRUTH) and v},
    )
    writer.body(0, 0, name, body.model, made.loaded.models[body.model].type, True)
    for time, message in log.json["/notices"]:
        writer.notice(time, message["body"], message["text"])
    events = []
    for topic, series in log.series.items():
        rows: Any = [(0, numbers[topic.split("/")[3]])] if topic.startswith("/sensor/") else [0]
        events += [
            (int(t), series.type, rows, r.tobytes()) for t, r in zip(series.time_ns, series.records, strict=True)
        ]
    for time, kind, rows, data in sorted(events, key=lambda e: e[0]):
        writer.table(time, kind, rows, data)
    writer.close()
    if writer.failure:
        raise LogError(f"{path}: {writer.failure}")
