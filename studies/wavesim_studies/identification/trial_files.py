"""Readers of recorded trials: WaVeSim logs, CSV files, folders of CSV files with a map, and ROS bags."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.actuators import Actuator, ActuatorKind
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.log import Log, read
from wavesim_sdk.names import suggest_name
from wavesim_sdk.recorded_messages import suffix_of
from wavesim_sdk.tables import ACTUATION, STATE
from wavesim_studies.identification import recorded_trials as rt
from wavesim_studies.identification.recorded_trials import CHANNELS, MeasuredSeries, RecordedTrial
from wavesim_studies.identification.trial_checks import check_trial
from wavesim_studies.identification.trial_map import TrialMap
from wavesim_studies.navigation import bags, foreign_logs, logs
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.columns import ColumnRole
from wavesim_studies.navigation.estimate_score import TIME_ORIGIN
from wavesim_studies.navigation.recordings import InstrumentRecording
from wavesim_studies.navigation.track_files import is_wavesim_log
from wavesim_world.actuators import actuators_of
from wavesim_world.config import Model
from wavesim_world.config.build import read_element
from wavesim_world.config.schema import Vector
from wavesim_world.config.standalone_xml import load_standalone
from wavesim_world.config.world import World
from wavesim_world.instruments import HEADING_SIGMA, RATE_SIGMA, SPEED_SIGMA, TILT_SIGMA
from wavesim_world.ocean.water import depth_of_pressure

QUANTITY = {"rad": "angle", "N": "force", "1/s": "rotation", "kg": "mass"}
_TIMES = ("t", "time_s", "t_ns", "time_ns", "timestamp", "stamp")
_EXTRA = {
    "attitude": ColumnRole("", size=4, usual=False),
    "latitude": ColumnRole("angle", ("lat",)),
    "longitude": ColumnRole("angle", ("lon", "lng")),
}


@dataclass(frozen=True)
class TrialSource:
    """Description of the files of a trial on the command line."""

    map_file: Path | None = None  #: trial map of a folder, or import map of a bag
    columns: str = ""  #: layout of a CSV file
    vehicle: str = ""  #: vehicle in a WaVeSim log
    commands: tuple[str, ...] = ()  #: topics of a bag, as ACTUATOR=TOPIC[:FIELD]
    frame: str = "enu"  #: axes of a bag
    true_states: bool = False  #: use the true states of a WaVeSim log instead of its sensors


def check_options(paths: Sequence[Path], source: TrialSource) -> None:
    """Raise LogError for an option that applies to none of the files. Missing files are reported when they are read."""
    if not all(path.exists() for path in paths):
        return
    kinds = {_kind_of(path) for path in paths}
    for option, given, wanted in (
        ("--map", source.map_file is not None, {"folder", "bag"}),
        ("--columns", source.columns, {"csv"}),
        ("--vehicle", source.vehicle, {"log"}),
        ("--true-states", source.true_states, {"log"}),
        ("--command", source.commands, {"bag"}),
        ("--frame", source.frame != "enu", {"bag"}),
    ):
        if given and not kinds & wanted:
            names = {"folder": "a folder of CSV files", "csv": "a CSV file", "log": "a WaVeSim log", "bag": "a ROS bag"}
            raise LogError(f"{option} applies only to {' or '.join(n for k, n in names.items() if k in wanted)}")


def _kind_of(path: Path) -> str:
    """Return the kind of a trial's file: folder, csv, log or bag."""
    if path.is_dir() and not (path / "metadata.yaml").exists():
        return "folder"
    if path.suffix.lower() == ".csv":
        return "csv"
    if path.suffix.lower() == ".mcap" and path.exists() and is_wavesim_log(path):
        return "log"
    return "bag"


def read_trial(path: Path, model: Model, source: TrialSource | None = None) -> RecordedTrial:
    """Read a trial of a vehicle. Raise LogError if the file cannot be used."""
    source = source or TrialSource()
    if not path.exists():
        raise LogError(f"cannot read {path}: No such file or directory")
    if suffix_of(path):
        raise LogError(
            f"{path}: use a WaVeSim log, a CSV file, a folder with --map or a ROS bag; commands are not read from this format"
        )
    kind = _kind_of(path)
    if kind == "folder":
        if source.map_file is None:
            raise LogError(f"{path} is a folder: describe its files with --map FILE")
        plan, _ = read_element(source.map_file, "trial", TrialMap)
        found = _of_tables([(path / t.file, t.columns, t.position) for t in plan.table], model, plan.licence)
    elif kind == "csv":
        found = _of_tables([(path, source.columns, rt.ORIGIN)], model, "")
    elif kind == "log":
        found = _of_log(read(path), model, source)
    else:
        found = _of_bag(path, model, source)
    made = _checked(path, *found)
    check_trial(made, model)
    return made


_Raw = dict[str, MeasuredSeries]  # series that are not checked yet


def _checked(path: Path, commands: _Raw, channels: _Raw, licence: str, files: Sequence[Path]) -> RecordedTrial:
    """Return the trial with series in chronological order, and with time 0 at the first command."""
    if not commands:
        raise LogError(f"{path} has no commands of an actuator; name the columns or topics of the actuators")
    if not channels:
        raise LogError(f"{path} has no measurements; channels: {', '.join(CHANNELS)}")
    notes: list[str] = []

    def series(name: str, raw: MeasuredSeries) -> MeasuredSeries:
        r = InstrumentRecording(name, "series", raw.time, {"value": raw.value}, source=str(path))
        if not len(r.complete().time):
            raise LogError(f"{path}: '{name}' has no valid values")
        r = r.checked()
        notes.extend(f"{name}: {n}" for n in r.notes)
        made = r.values["value"]
        if CHANNELS.get(name, ColumnRole("")).quantity == "angle":
            made = np.unwrap(made)
        return replace(raw, time=r.time, value=made)

    made = {k: series(k, v) for k, v in commands.items()}
    seen = {k: series(k, v) for k, v in channels.items()}
    begin = min(float(s.time[0]) for s in made.values())
    made = {k: replace(s, time=s.time - begin) for k, s in made.items()}
    seen = {k: replace(s, time=s.time - begin) for k, s in seen.items()}
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files if f.is_file())).hexdigest()
    return RecordedTrial(path.name, digest, made, seen, licence, tuple(notes))


# ------------------------------------------------------------------ CSV files


def _roles(actuators: Sequence[Actuator]) -> dict[str, ColumnRole]:
    return {
        "time": ColumnRole("time", _TIMES),
        **{a.name: ColumnRole(QUANTITY.get(a.unit, ""), ()) for a in actuators},
        **CHANNELS,
        **_EXTRA,
    }


def _of_tables(
    files: Sequence[tuple[Path, str, Vector]], model: Model, licence: str
) -> tuple[_Raw, _Raw, str, list[Path]]:
    actuators = actuators_of(model)
    commands: _Raw = {}
    channels: _Raw = {}
    for path, text, position in files:
        for name, raw in _of_table(path, text, actuators).items():
            target = commands if any(name == a.name for a in actuators) else channels
            if name in target:
                raise LogError(f"{path}: '{name}' is also in another file; remove one of them from the map")
            target[name] = replace(raw, arm=position)
    return commands, channels, licence, [path for path, _, _ in files]


def _of_table(path: Path, text: str, actuators: Sequence[Actuator]) -> _Raw:
    roles = _roles(actuators)
    with tables.open_table(path) as opened:
        if not opened.header:
            raise LogError(f"{path} is empty")
        layout = tables.parse_layout(text, [*roles], str(path))
        if layout:  # other columns of these names may mean something else
            roles = {k: r for k, r in roles.items() if k in layout or k == "time"}
        chosen = tables.choose_columns(opened.header, roles, layout, str(path))
        if "time" not in chosen:
            raise LogError(f"{path} has no column for the time; name one, for example time=COLUMN:s")
        if "time" not in layout and chosen["time"].columns[0].endswith("_ns"):
            chosen["time"] = replace(chosen["time"], factor=1e-9)
        if len(chosen) < 2:
            raise LogError(
                f"{path} has no column for an actuator or a measurement; columns: {', '.join(opened.header)}; "
                f"actuators: "
                f"{', '.join(a.name for a in actuators)}; measurements: {', '.join(CHANNELS)}"
            )
        values = opened.values(roles, chosen)
    if not len(values["time"]):
        raise LogError(f"{path} has a header but no rows")
    tables.check_angles(str(path), values, chosen)
    time = values.pop("time")
    _convert(values, path)
    return {name: MeasuredSeries(time, value) for name, value in values.items()}


def _convert(values: dict[str, Floats], path: Path) -> None:
    """Replace quaternions by angles, and geographic positions by north and east."""
    if "attitude" in values:
        angles = frames.euler(values.pop("attitude"))
        for k, name in enumerate(("roll", "pitch", "heading")):
            values.setdefault(name, angles[:, k])
    if ("latitude" in values) != ("longitude" in values):
        raise LogError(f"{path} has only one of latitude and longitude")
    if "latitude" in values:
        lat, lon = values.pop("latitude"), values.pop("longitude")
        known = np.flatnonzero(np.isfinite(lat + lon))
        if not len(known):
            raise LogError(f"{path}: latitude and longitude have no valid values")
        origin = Origin(float(lat[known[0]]), float(lon[known[0]]))
        p = np.full((len(lat), 2), np.nan)
        p[known] = [origin.ned(float(lat[i]), float(lon[i]), 0.0)[:2] for i in known]
        values["north"], values["east"] = p.T


# ------------------------------------------------------------------ WaVeSim logs and bags


def _of_log(log: Log, model: Model, source: TrialSource) -> tuple[_Raw, _Raw, str, list[Path]]:
    names = [b["name"] for b in log.bodies.values() if f"/actuation/{b['name']}" in log.series]
    name = source.vehicle or (names[0] if len(names) == 1 else "")
    if name not in names:
        chosen = f"no commands of '{name}'" if name else "commands of several or no vehicles"
        raise LogError(f"{log.path} has {chosen}; select one with --vehicle: {', '.join(names) or 'none'}")
    actuators = actuators_of(model)
    recorded = log.get(f"/actuation/{name}", ACTUATION)
    t = np.asarray(recorded.time_ns * 1e-9, float)
    body = next(b for b in log.bodies.values() if b["name"] == name)
    listed = [a["name"] if isinstance(a, Mapping) else str(a) for a in body.get("actuators", [])]
    if listed and listed != [a.name for a in actuators]:
        raise LogError(f"{log.path}: '{name}' has other actuators than '{model.name}': {', '.join(listed)}")
    commands: _Raw = {}
    for k, a in enumerate(actuators):
        value = np.asarray(recorded.records["command"][:, k], float)
        if a.kind is ActuatorKind.THRUSTER:  # the log contains values after the motor law
            offset, gain = model.thruster[k].motor
            value = np.where(value == 0.0, 0.0, (value - np.copysign(offset, value)) / gain)
        commands[a.name] = MeasuredSeries(t, value)
    channels = _true_channels(log, name) if source.true_states else _sensor_channels(log, name)
    return commands, channels, "", [log.path]


def _true_channels(log: Log, name: str) -> _Raw:
    state = log.get(f"/state/{name}", STATE)
    t, s = np.asarray(state.time_ns * 1e-9, float), state.records
    angles = frames.euler(s["q_WB"])
    table = np.concatenate([s["p_WB_W"], angles, s["v_WB_B"], s["w_WB_B"]], axis=1)
    return {c: MeasuredSeries(t, table[:, row]) for c in CHANNELS if (row := rt.state_of(c)) is not None}


def _sensor_channels(log: Log, name: str) -> _Raw:
    """Return the measurements of a vehicle's instruments in the axes of B, with the place of each instrument."""
    found: _Raw = {}
    world = load_standalone(log.metadata.get("configuration", ""))[0].config.world

    def add(channel: str, t: Floats, value: Any, sigma: float, arm: Vector = rt.ORIGIN) -> None:
        # the first instrument of several
        found.setdefault(channel, MeasuredSeries(t, np.asarray(value, float), sigma, arm))

    for kind in ("imu", "ahrs", "dvl", "speedlog", "gps", "uwb", "pressure", "ctd"):
        for instrument, values in logs.instruments_of_type(log, name, kind).values():
            p, t = instrument.parameters, np.asarray(values["time_ns"] * 1e-9, float)
            R = frames.rotation(frames.quaternion(*p.attitude)) if hasattr(p, "attitude") else np.eye(3)
            arm = tuple(float(x) for x in p.position)
            k = float(getattr(p, "noise", 1.0))
            if kind in ("imu", "ahrs"):
                rates = values["rates"] @ R.T
                sigma = k * RATE_SIGMA if kind == "ahrs" else 0.0
                for i, channel in enumerate(("roll_rate", "pitch_rate", "yaw_rate")):
                    add(channel, t, rates[:, i], sigma)
            if kind == "ahrs":
                add("roll", t, values["roll"], k * TILT_SIGMA)
                add("pitch", t, values["pitch"], k * TILT_SIGMA)
                add("heading", t, values["heading"], k * HEADING_SIGMA)
            elif kind == "dvl":
                v = values["bottom"] @ R.T
                for i, channel in enumerate(("surge", "sway", "heave")):
                    add(channel, t, v[:, i], 0.0, arm)
            elif kind == "speedlog":  # its values are those of the origin
                add("water_surge", t, values["v_FB_B"][:, 0], k * SPEED_SIGMA)
                add("water_sway", t, values["v_FB_B"][:, 1], k * SPEED_SIGMA)
            elif kind in ("gps", "uwb"):
                position = _local(values, world) if kind == "gps" else values["position"]
                add("north", t, position[:, 0], 0.0, arm)
                add("east", t, position[:, 1], 0.0, arm)
            elif kind in ("pressure", "ctd"):
                add("depth", t, depth_of_pressure(world, values["pressure"]), 0.0, arm)
    return found


def _local(values: Any, world: World) -> Floats:
    """Return the horizontal positions (N, 2) of GPS fixes in m."""
    origin = Origin(world.latitude, world.longitude)
    fixes = zip(values["latitude"], values["longitude"], strict=True)
    return np.array([origin.ned(float(a), float(b), 0.0)[:2] for a, b in fixes])


def _of_bag(path: Path, model: Model, source: TrialSource) -> tuple[_Raw, _Raw, str, list[Path]]:
    imported = foreign_logs.import_log(path, source.map_file, frame=source.frame)
    names = [a.name for a in actuators_of(model)]
    if not source.commands:
        raise LogError(
            f"{path}: name the topics of the commands with --command ACTUATOR=TOPIC:FIELD ({', '.join(names)})"
        )
    wanted = {}
    for text in source.commands:
        name, _, rest = text.partition("=")
        topic, _, field = rest.partition(":")
        if name not in names or not topic:
            raise LogError(f"--command {text}: use ACTUATOR=TOPIC:FIELD with an actuator{suggest_name(name, names)}")
        wanted[name] = topic, field or "data"
    channels = _sensor_channels(imported.log, imported.vehicle)
    origin = float(imported.log.metadata.get(TIME_ORIGIN) or 0.0) * 1e-9
    channels = {name: replace(s, time=s.time + origin) for name, s in channels.items()}
    files = [path] if path.is_file() else sorted(f for f in path.iterdir() if f.is_file())
    return _bag_commands(path, wanted), channels, "", files


def _bag_commands(path: Path, wanted: Mapping[str, tuple[str, str]]) -> _Raw:
    """Return the numbers at these fields of these topics, at their times of reception. A field is a path such as
    ``data`` or ``actuators.0.value``.
    """
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in wanted}
    with bags.opened(path) as reader:
        topics = {c.topic for c in reader.connections}
        for topic, _ in wanted.values():
            if topic not in topics:
                raise LogError(f"{path} has no topic '{topic}'{suggest_name(topic, topics)}")
        chosen = [c for c in reader.connections if c.topic in {topic for topic, _ in wanted.values()}]
        for connection, received, raw in reader.messages(connections=chosen):
            message = reader.deserialize(raw, connection.msgtype)
            for name, (topic, field) in wanted.items():
                if topic == connection.topic:
                    found[name][0].append(received * 1e-9)
                    found[name][1].append(_field(message, field, topic))
    return {name: MeasuredSeries(np.array(t), np.array(v)) for name, (t, v) in found.items()}


def _field(message: Any, field: str, topic: str) -> float:
    try:
        for part in field.split("."):
            message = message[int(part)] if part.isdecimal() else getattr(message, part)
        return float(message)
    except (AttributeError, IndexError, TypeError, ValueError):
        raise LogError(
            f"the messages of '{topic}' have no number at '{field}'; use --command ACTUATOR=TOPIC:FIELD"
        ) from None
