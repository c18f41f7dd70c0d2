"""Conversion of logs from other programs to recordings of instruments, and to the track of the vehicle."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_sdk.errors import LogError
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.names import suggest_name
from wavesim_sdk.recorded_messages import RecordedFile, RecordedMessages, reader_of, suffix_of
from wavesim_studies.navigation import columns as tables
from wavesim_studies.navigation.clock_checks import check_clock
from wavesim_studies.navigation.columns import ColumnRole
from wavesim_studies.navigation.import_map import ImportedTopic
from wavesim_studies.navigation.message_fields import FORMATS, TRACK_ROLES, InstrumentMessage, LogFormat, TrackMessage
from wavesim_studies.navigation.pose_tracks import PoseTrack, pose_track
from wavesim_studies.navigation.recordings import FIELDS, InstrumentRecording
from wavesim_world.config.validation import fail_at

OWN_ESTIMATE = "the vehicle's own estimate"
NO_TRACK = "none"  #: name for no track at all
SLOW_HZ = 20.0  #: rate below which the values of an IMU are not integrated if there is an attitude reference
FEW = 2  #: smallest number of messages that make a recording
EXACT_ORIGINS = 50  #: number of different references of positions up to which each is converted exactly
#: values of another message are interpolated between messages that are at most this number of median periods apart
PERIODS = 5.0


@dataclass(frozen=True)
class RecordedTrack:
    """Motion of the vehicle in a log, in the frame of the log."""

    name: str
    true: bool  #: whether a simulator recorded it; otherwise, it is the estimate of the vehicle
    time: Floats
    p: Floats  #: positions (T, 3), north, east, down in m, relative to the places
    places: Floats | None  #: latitudes and longitudes (T, 2) in rad; None: the origin of the positions is unknown
    q: Floats | None
    velocity: Floats | None  #: over ground (T, 3): north, east, down
    rates: Floats | None

    def first_place(self) -> tuple[float, float] | None:
        """Return the first latitude and longitude in rad, or None."""
        return None if self.places is None else (float(self.places[0, 0]), float(self.places[0, 1]))

    def in_world(self, origin: Origin, fix: tuple[float, Floats] | None = None) -> PoseTrack:
        """Return the track in the world frame of an origin. ``fix`` (time, position) places local positions without an
        origin.
        """
        p, notes = self.p.copy(), []
        if self.places is not None:
            places, which = np.unique(self.places, axis=0, return_inverse=True)
            if len(places) <= EXACT_ORIGINS:
                for k, place in enumerate(places):
                    mine = which.ravel() == k
                    latitude, longitude, _ = Origin(*map(float, place)).geodetic(self.p[mine] * (1.0, 1.0, 0.0))
                    p[mine, :2] = origin.ned(latitude, longitude)[:, :2]
            else:
                p[:, :2] += origin.ned(*self.places.T)[:, :2]
        elif fix is not None:
            at, place = fix
            here = [float(np.interp(at, self.time, self.p[:, k])) for k in (0, 1)]
            p[:, :2] += place[:2] - here
            notes.append("the log does not state the origin of its local positions; the first fix places the track")
        v = None
        if self.velocity is not None and self.q is not None:
            v = np.einsum("tji,tj->ti", frames.rotation(self.q), self.velocity)
        q = np.full((len(p), 4), np.nan) if self.q is None else self.q
        track = pose_track(self.name, self.time, p, q, "ned", None, (v, self.rates))
        if not self.true:
            notes.append(f"it is {OWN_ESTIMATE} ({self.name}), so errors are differences from this estimate")
        return PoseTrack(**{**track.__dict__, "notes": (*track.notes, *notes)})


@dataclass
class VehicleLog:
    """Content of a log."""

    recordings: list[InstrumentRecording] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    track: RecordedTrack | None = None
    origin: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)


def read_vehicle_log(path: Path, listed: Sequence[ImportedTopic], truth: str = "") -> VehicleLog:
    """Return the content of a log that another program wrote. ``listed`` contains the messages that an import map
    assigns to instruments. ``truth`` is the type of the message with the track, or `none`; if it is empty, the
    simulator's ground truth is used or, if there is none, the vehicle's own estimate. Raise LogError if the file cannot
    be used.
    """
    form = FORMATS[suffix_of(path)]
    wanted = _wanted(form)
    if truth not in ("", NO_TRACK) and truth not in [t.message for t in form.tracks]:
        raise LogError(
            f"{path}: unknown track '{truth}'; use {', '.join([t.message for t in form.tracks])}, {NO_TRACK} or a file"
        )
    if not path.exists():
        raise LogError(f"cannot read {path}: No such file or directory")
    if not path.stat().st_size:
        raise LogError(f"{path} is empty")
    file = reader_of(path)(path, wanted)
    made = VehicleLog(notes=list(file.notes))
    for m in file.messages:
        if m.received is not None and len(m.time) >= FEW:
            check_clock(str(path), m.name, m.time, m.received)
    named = {m.name: m for m in file.messages}
    for topic in listed:
        if topic.name not in named:
            raise LogError(f"{path} has no message '{topic.name}'{suggest_name(topic.name, named)}")
        made.recordings.append(_of_topic(path, topic, named[topic.name], form, file))
    taken = {topic.name for topic in listed}
    _choose(made, path, form, file, taken, {r.type for r in made.recordings})
    if truth != NO_TRACK:
        made.track = _track(path, form, file, truth, made.notes)
    if made.track is not None:
        made.origin = file.origin or made.track.first_place()
    if rest := sorted(name for name in file.others if name not in wanted):
        made.notes.append(f"not an instrument that the filter uses (not read): {', '.join(rest)}")
    return made


def _wanted(form: LogFormat) -> list[str]:
    """Return the types of messages that a format's tables name."""
    names: dict[str, None] = {}
    used: tuple[InstrumentMessage | TrackMessage, ...] = (*form.instruments, *form.tracks)
    for one in used:
        names[one.message] = None
        for pair in one.columns.split():
            for name in pair.partition("=")[2].partition(":")[0].split(","):
                if "." in name:
                    names[name.partition(".")[0]] = None
    return [*names]


# ------------------------------------------------------------------ instruments


def _of_topic(
    path: Path, topic: ImportedTopic, m: RecordedMessages, form: LogFormat, file: RecordedFile
) -> InstrumentRecording:
    """Return the recording of a message that an import map names."""
    able = [one for one in form.instruments if one.message == m.type and topic.type in ("", one.type)]
    reason = f"the filter has no measurement model for {m.type}"
    for one in able:
        found = _recording(path, one, m, file, topic.sensor or _usual_name(one, m))
        if isinstance(found, InstrumentRecording):
            return found
        reason = found
    types = sorted({one.type for one in form.instruments if one.message == m.type})
    if topic.type and not able and types:
        reason = f"{m.type} contains values of the types {', '.join(types)}"
    fail_at(topic.place, f"message '{topic.name}' cannot be used: {reason}")
    raise AssertionError


def _usual_name(one: InstrumentMessage, m: RecordedMessages) -> str:
    """Return a name of an instrument for a message: letters, digits and hyphens."""
    letters = "".join(c if c.isalnum() else "-" for c in m.name.lower()).strip("-")
    return letters.replace("--", "-")[:31]


def _choose(
    made: VehicleLog, path: Path, form: LogFormat, file: RecordedFile, taken: set[str], types: set[str]
) -> None:
    """Choose the message for each type of instrument that an import map does not name."""
    chosen: dict[str, str] = {}
    for one in form.instruments:
        if one.type in types:
            continue
        candidates = [m for m in file.messages if m.type == one.message and m.name not in taken]
        candidates.sort(key=functools.partial(_rank, one))
        for m in candidates:
            if one.type in chosen:
                if chosen[one.type] != m.name:
                    made.unused.setdefault(
                        m.name, f"{chosen[one.type]} is used; to use both, name them in an import map (<topic>)"
                    )
                continue
            if one.air and file.kind != "submarine":
                made.unused[m.name] = (
                    f'this is the pressure of the air or inside the hull; if it is the water pressure, declare it: <topic name="{m.name}" type="pressure"/>'
                )
                continue
            found = _recording(path, one, m, file, one.type)
            if isinstance(found, str):
                made.unused.setdefault(m.name, found)
                continue
            made.recordings.append(found)
            chosen[one.type] = m.name
            made.unused.pop(m.name, None)
    _leave_slow_imu(made)


def _rank(one: InstrumentMessage, m: RecordedMessages) -> float:
    """Return a number that is smaller for better sources: those with more messages. The pressure of the water is that with
    the largest range, because the pressure in the hull is nearly constant.
    """
    if not one.air:
        return -float(len(m.time))
    values = m.columns.get(one.columns.partition("=")[2].partition(":")[0])
    return -float(np.ptp(values)) if values is not None and len(values) else 0.0


def _leave_slow_imu(made: VehicleLog) -> None:
    """Leave out an IMU that was recorded too slowly to be integrated, if there is an attitude reference."""
    imus = [r for r in made.recordings if r.type == "imu" and r.period > 1.0 / SLOW_HZ]
    if imus and any(r.type == "ahrs" for r in made.recordings):
        for r in imus:
            made.unused[r.source] = (
                f"{1.0 / r.period:.3g} values per second are too few for integration (minimum: {SLOW_HZ:g}); the "
                f"filter uses the attitude reference instead"
            )
            made.recordings.remove(r)


def _recording(
    path: Path, one: InstrumentMessage, m: RecordedMessages, file: RecordedFile, name: str
) -> InstrumentRecording | str:
    """Return the recording of one message, or the reason why it is not used."""
    if len(m.time) < FEW:
        return f"{len(m.time)} message"
    roles = {**FIELDS[one.type], "attitude": TRACK_ROLES["attitude"]}
    if one.period:
        roles = {name: replace(role, quantity="length") for name, role in roles.items()}
    values = _values(one.columns, roles, m, file)
    if isinstance(values, str):
        return values
    good, notes = _good(one, m), [one.note] if one.note else []
    if not good.any():
        return "no valid message (no fix or no lock)"
    if not good.all():
        notes.append(f"{int((~good).sum())} of {len(good)} messages are invalid (no fix or no lock)")
    time = m.time
    if one.type == "gps":
        good &= (values["latitude"] != 0.0) | (values["longitude"] != 0.0)
    if one.type == "dvl":
        values = {k: np.where(good[:, None], v, np.nan) for k, v in values.items()}
    else:
        time, values = time[good], {k: v[good] for k, v in values.items()}
    if one.period:
        column, _, unit = one.period.partition(":")
        span = m.columns[column] * tables.UNITS["time"][unit]
        if not 1e-3 < float(np.median(span)) / float(np.median(np.diff(m.time))) < 5.0:
            return f"{column} ({float(np.median(span)):.3g} s) does not match the interval of the messages; unit?"
        with np.errstate(divide="ignore", invalid="ignore"):
            values = {k: np.where(span[:, None] > 0.0, v / span[:, None], np.nan) for k, v in values.items()}
        time = time - 0.5 * span  # a mean velocity belongs to the middle of its interval
    if "attitude" in values:
        angles = frames.euler(_unit(values.pop("attitude")))
        values |= dict(zip(("roll", "pitch", "heading"), angles.T, strict=True))
    if "heading" in values and float(np.nanmax(np.abs(values["heading"]), initial=0.0)) <= 2.0 * np.pi:
        values["heading"] = np.mod(
            values["heading"], 2.0 * np.pi
        )  # larger angles may be degrees, and are checked later
    return InstrumentRecording(name, one.type, time, values, _sigma(one, m, good), f"{path.name}: {m.name}", notes)


def _good(one: InstrumentMessage, m: RecordedMessages) -> Any:
    """Return a mask (T) of the messages that are marked as valid."""
    good = np.ones(len(m.time), bool)
    for name, least in one.least.items():
        good &= m.columns[name] >= least if name in m.columns else True
    for name, bits in one.bits.items():
        good &= (m.columns[name].astype(int) & bits) == bits if name in m.columns else True
    for name, value in one.equal.items():
        good &= m.columns[name] == value if name in m.columns else True
    return good


def _sigma(one: InstrumentMessage, m: RecordedMessages, good: Any) -> float:
    """Return the median standard deviation that the messages state; 0 = unknown."""
    column, _, unit = one.sigma.partition(":")
    if not column or column not in m.columns:
        return 0.0
    stated = m.columns[column][good]
    stated = stated[np.isfinite(stated) & (stated > 0.0)]
    factor = 0.5**0.5 * tables.UNITS["length"][unit]  # of one axis; the messages state the horizontal error
    return float(np.median(stated)) * factor if len(stated) else 0.0


def _unit(q: Floats) -> Floats:
    size = np.linalg.norm(q, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(size - 1.0) < 0.05, q / size, np.nan)


# ------------------------------------------------------------------ values


def _values(
    text: str, roles: Mapping[str, ColumnRole], m: RecordedMessages, file: RecordedFile
) -> dict[str, Floats] | str:
    """Return the values of each role in SI units, or the reason why the messages do not contain them."""
    made: dict[str, Floats] = {}
    for name, value in tables.parse_layout(text, [*roles], m.name).items():
        fields, _, unit = value.partition(":")
        factor, parts = tables.UNITS[roles[name].quantity][unit], []
        for one in fields.split(","):
            found = _column(one, m, file)
            if isinstance(found, str):
                return found
            parts.append(found)
        x = parts[0] if len(parts) == 1 else np.stack(parts, axis=1)
        if x.ndim != (1 if roles[name].size == 1 else 2) or (x.ndim == 2 and x.shape[1] != roles[name].size):
            return f"{fields} must have {roles[name].size} values"
        made[name] = x * factor
    return made


def _column(name: str, m: RecordedMessages, file: RecordedFile) -> Floats | str:
    """Return a field of a message, or the interpolated field of another message."""
    kind, dot, column = name.rpartition(".")
    if not dot:
        return m.columns.get(name, f"no field {name}")
    alike = [o for o in file.messages if o.type == kind and column in o.columns and len(o.time) >= FEW]
    others = [o for o in alike if o.source == m.source] or alike
    if not others:
        return f"no {kind} with {column}"
    other = max(others, key=lambda o: len(o.time))
    order = np.argsort(other.time, kind="stable")
    at, x = other.time[order], other.columns[column][order]
    if x.ndim == 2 and x.shape[1] == 4:  # q and -q are the same attitude
        x = x * np.where(np.cumsum(np.concatenate([[0], (x[1:] * x[:-1]).sum(axis=1) < 0.0])) % 2, -1.0, 1.0)[:, None]
    elif column in ("yaw", "psi"):
        x = np.unwrap(x)
    flat = x.reshape(len(x), -1)
    made = np.stack([np.interp(m.time, at, axis, left=np.nan, right=np.nan) for axis in flat.T], axis=1)
    after = np.clip(np.searchsorted(at, m.time), 1, len(at) - 1)
    apart = at[after] - at[after - 1] > max(1.0, PERIODS * float(np.median(np.diff(at))))
    made[apart] = np.nan
    return made.reshape(len(m.time), *x.shape[1:])


# ------------------------------------------------------------------ track


def _track(path: Path, form: LogFormat, file: RecordedFile, truth: str, notes: list[str]) -> RecordedTrack | None:
    """Return the track that is asked for, or the first one with values."""
    reasons, local = [], None
    for one in form.tracks:
        if truth not in ("", one.message):
            continue
        for m in sorted((m for m in file.messages if m.type == one.message), key=lambda m: -len(m.time)):
            found = _of_track(one, m, file)
            if isinstance(found, str):
                reasons.append(f"{m.name}: {found}")
            elif found.places is not None or truth:
                return found
            else:
                local = local or found
    if truth and local is None:
        raise LogError(f"{path} has no usable {truth} ({'; '.join(reasons) or 'no messages'})")
    if local is None and reasons:
        notes.append(f"no track of the vehicle: {'; '.join(reasons)}")
    return local


def _of_track(one: TrackMessage, m: RecordedMessages, file: RecordedFile) -> RecordedTrack | str:
    if len(m.time) < FEW:
        return f"{len(m.time)} message"
    text = one.columns
    if "origin_latitude=ref_lat" in text and "ref_lat" not in m.columns:
        text = " ".join(pair for pair in text.split() if not pair.startswith("origin_"))
    values = _values(text, TRACK_ROLES, m, file)
    if isinstance(values, str):
        return values
    zero = np.zeros(len(m.time))
    down = values["down"] if "down" in values else -values["up"]
    p = np.stack([values.get("north", zero), values.get("east", zero), down], axis=1)
    places = None
    if "latitude" in values:
        places = np.stack([values["latitude"], values["longitude"]], axis=1)
    elif "origin_latitude" in values and np.nan_to_num(values["origin_latitude"]).any():
        places = np.stack([values["origin_latitude"], values["origin_longitude"]], axis=1)
    elif file.origin is not None:
        places = np.tile(file.origin, (len(p), 1))
    q = None
    if "attitude" in values:
        q = _unit(values["attitude"])
    elif "roll" in values:
        q = frames.quaternion(values["roll"], values["pitch"], values["heading"])
    keep = np.isfinite(p[:, :2]).all(axis=1)
    if places is not None:
        keep &= np.isfinite(places).all(axis=1) & places.any(axis=1)
    if int(keep.sum()) < FEW:
        return "no position"

    def chosen(x: Floats | None) -> Floats | None:
        return None if x is None else x[keep]

    return RecordedTrack(
        m.name,
        one.true,
        m.time[keep],
        p[keep],
        chosen(places),
        chosen(q),
        chosen(values.get("velocity")),
        chosen(values.get("rates")),
    )
