"""Reader for complete logs, and for logs that were cut off when their server was killed."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import html
import importlib.metadata
import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.errors import InvalidArgument, LogError, UnknownName
from wavesim_sdk.frame_labels import LabelNames
from wavesim_sdk.imaging_frames import FRAME, ImagingFrame
from wavesim_sdk.log_tables import IMPORT_NOTES, LogTable, Series, arrays_and_units, straight_line_errors, text_columns
from wavesim_sdk.log_validation import (
    LATEST_NS,
    check_message,
    label_names,
    possible,
    possible_frame,
    possible_topic,
    valid_metadata,
)
from wavesim_sdk.logfile import CDR_HEADER, METADATA, TEXT, decode_cdr_text, encode_cdr_text, records
from wavesim_sdk.names import suggest_name
from wavesim_sdk.recorded_messages import CONVERTERS, is_foreign
from wavesim_sdk.sensors import all_sensor_tables
from wavesim_sdk.tables import ESTIMATE, LINES, RECEPTION, SENT, STATE, VEHICLE_TABLES, Table

__all__ = [
    "Log",
    "LogTable",
    "Series",
    "decode_cdr_text",
    "encode_cdr_text",
    "frames",
    "read",
    "straight_line_errors",
    "usable",
]


TABLES: dict[str, Table] = {
    t.message: t.visible for t in (*VEHICLE_TABLES, SENT, RECEPTION, FRAME, *all_sensor_tables().values())
}
#: possible first segments of a topic name whose second segment is the name of a body
OWNED = (*(t.name for t in VEHICLE_TABLES if t is not LINES), "sensor", "sonar")
_FRAME_END = len(CDR_HEADER) + FRAME.dtype.itemsize


@dataclass(repr=False)
class Log:
    """A log in memory. ``log.table("/state/lauv").to_pandas()`` has the columns of one topic; :attr:`topics` lists the
    topics.
    """

    path: Path
    metadata: dict[str, str] = field(default_factory=dict)
    series: dict[str, Series] = field(default_factory=dict)
    json: dict[str, list[tuple[int, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    content_hash: str = ""
    messages: int = 0
    complete: bool = False
    end_ns: int = 0
    #: for a log from another program: the assumptions made in its conversion, and the quantities that it lacks
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        damage = "complete" if self.complete else "incomplete or damaged"
        names = ", ".join(self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        example = next(iter(self.topics), "/state/NAME")
        lines = [
            f"<Log '{self.path}': {self.end_ns * 1e-9:.2f} s, {damage}; messages: {self.messages}>",
            f"bodies ({len(self.names)}): {names or 'none'}",
            f'topics ({len(self.topics)}): `log.topics` and `log.table("{example}").to_pandas()` show them',
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, *_ = repr(self).splitlines()
        rows = "".join(f"<tr><td>{html.escape(t)}</td><td>{n}</td></tr>" for t, n in self.topics.items())
        return f"<p>{html.escape(first.strip('<>'))}</p><table><tr><th>topic</th><th>rows</th></tr>{rows}</table>"

    @property
    def topics(self) -> dict[str, int]:
        """Number of rows on each topic that contains table records or texts."""
        return {t: len(s.time_ns) for t, s in self.series.items()} | {t: len(m) for t, m in self.json.items()}

    def table(self, topic: str) -> LogTable:
        """Return a topic as columns, for example ``/state/lauv``, ``/sensor/lauv/ctd`` or ``/notices``.

        Raises UnknownName if the log has no messages on this topic.
        """
        topic = topic if topic.startswith("/") else f"/{topic}"
        if (series := self.series.get(topic)) is not None:
            fields = next((t.fields for t in TABLES.values() if t.name == series.type), ())
            return LogTable(topic, *arrays_and_units(self, topic, series, fields))
        if topic in self.json:
            return LogTable(topic, text_columns(self.json[topic]), {"time_ns": "ns"})
        raise UnknownName(f"{self.path} has no topic '{topic}'{suggest_name(topic, self.topics)}")

    @property
    def sound_speed(self) -> float:
        """Sound speed in m/s that the instruments assumed; NaN if the log does not state it."""
        return float(self.metadata.get("sound_speed", "nan"))

    @property
    def label_names(self) -> LabelNames:
        """Names of the label numbers in the frames of sonars and cameras, including all bodies of the run."""
        names = label_names(self.metadata) or LabelNames((), {})
        for row, body in self.bodies.items():
            names = names.with_body(row, str(body["name"]), str(body.get("model", "")))
        return names

    @property
    def damage_notice(self) -> str:
        """Notice that the log is incomplete or damaged; empty if the log is complete."""
        if self.complete:
            return ""
        until = f"it was read up to {self.end_ns * 1e-9:.2f} s; later data is missing, or a server is still writing the file"
        return f"{self.path.name} is incomplete or damaged: {until}"

    @property
    def bodies(self) -> dict[int, dict[str, Any]]:
        """Map from each row to the last body that occupied it, with the actuators and instruments of this body."""
        found: dict[int, dict[str, Any]] = {}
        for _, b in self.json.get("/bodies", []):
            found[int(b["row"])] = {**({} if b.get("present") else found.get(int(b["row"]), {})), **b}
        return found

    def names_at(self, rows: Any, time_ns: Any) -> list[str]:
        """Return the names of the bodies in these rows at these times; the name is empty for an unoccupied row."""
        came: dict[int, list[tuple[int, str]]] = defaultdict(list)
        for t, b in self.json.get("/bodies", []):
            if b.get("present"):
                came[int(b["row"])].append((t, str(b["name"])))
        found = []
        for row, t in zip(np.asarray(rows).tolist(), np.asarray(time_ns).tolist(), strict=True):
            there = came.get(row, [])
            found.append(next((name for since, name in reversed(there) if since <= t), there[0][1] if there else ""))
        return found

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of all bodies in the run and of all bodies that appear in the name of a topic."""
        bodies = [str(b["name"]) for _, b in self.json.get("/bodies", [])]
        parts = (topic.split("/")[1:] for topic in self.series)
        return tuple(dict.fromkeys([*bodies, *(p[1] for p in parts if len(p) > 1 and p[0] in OWNED)]))

    def _body(self, name: str) -> str:
        """Return the name of a body if it is among :attr:`names`; otherwise, raise an UnknownName that suggests or
        lists names.
        """
        if name not in self.names:
            raise UnknownName(
                f"{self.path} has no body '{name}'{suggest_name(name, self.names) or '; it has no bodies'}"
            )
        return name

    def sensors(self, body: str) -> dict[str, Series]:
        """Return the values from a body's instruments, by name. Raises UnknownName if the log does not contain this
        body.
        """
        prefix = f"/sensor/{self._body(body)}/"
        return {topic.removeprefix(prefix): s for topic, s in self.series.items() if topic.startswith(prefix)}

    def by_type(self, type_: str) -> dict[tuple[str, str], Series]:
        """Return the values from all instruments of a type, by (body, instrument). Raises UnknownName if the type is
        unknown.
        """
        if type_ not in all_sensor_tables():
            raise UnknownName(f"unknown sensor type '{type_}'{suggest_name(type_, all_sensor_tables())}")
        found = {}
        for topic, series in self.series.items():
            if topic.startswith("/sensor/") and series.type == type_:
                body, _, name = topic.removeprefix("/sensor/").partition("/")
                found[body, name] = series
        return found

    def navigation_errors(self, name: str) -> tuple[Any, Any, Any]:
        """Return the horizontal navigation errors of a vehicle: times in s, errors of its estimate in m, and errors of
        dead reckoning in m.

        The errors cover the times with both an estimate and a true position. They are empty for a vehicle without
        estimates. Raises UnknownName if the log does not contain this body.
        """
        self._body(name)
        estimate, state = self.get(f"/estimate/{name}", ESTIMATE), self.get(f"/state/{name}", STATE)
        both, i, k = np.intersect1d(estimate.time_ns, state.time_ns, return_indices=True)
        believed, true = estimate.records[i], state.records["p_WB_W"][k][:, :2]
        good = np.isfinite(believed["p_WB_W"][:, 0])
        nav = np.linalg.norm((believed["p_WB_W"][:, :2] - true)[good], axis=1)
        dead = np.linalg.norm((believed["dead_reckoning_W"][:, :2] - true)[good], axis=1)
        return both[good] * 1e-9, nav, dead

    def get(self, topic: str, table: Table) -> Series:
        """Return the series of a topic; it is empty if the topic has no messages.

        Raises UnknownName if this log cannot contain the topic: the kind of topic is unknown, or the log does not
        contain the body or instrument.
        """
        if (found := self.series.get(topic)) is not None:
            return found
        _, kind, *who = topic.split("/") if topic.startswith("/") else ("", topic)
        if kind not in (*OWNED, "acoustics", "lines"):
            raise UnknownName(f"unknown topic '{topic}'{suggest_name(kind, (*OWNED, 'acoustics', 'lines'))}")
        if kind in OWNED:
            body = self._body(who[0] if who else "")
            if kind == "sensor":
                carried = self.sensors(body)
                raise UnknownName(
                    f"'{body}' has no instrument '{who[-1]}'{suggest_name(who[-1], carried) or '; it has no instruments'}"
                )
        elif kind == "acoustics" and who not in (["sent"], ["reception"]):
            raise UnknownName(f"unknown topic '{topic}'{suggest_name(''.join(who), ('sent', 'reception'))}")
        return Series(np.zeros(0, np.int64), np.zeros(0, table.visible.dtype), table.name)


def read(path: str | Path | Log) -> Log:
    """Read a log into memory, starting with the part in this file and ending with the last part.

    Messages that WaVeSim cannot have written are omitted. A :class:`Log` passed as the argument is returned unchanged.
    A recording from another program (a MAVLink, ArduPilot, PX4 or DUNE log, or a ROS bag) is converted, and the
    ``notes`` of the log state the assumptions.
    """
    if isinstance(path, Log):
        return path
    return _converted(Path(path)) if is_foreign(Path(path)) else _read(Path(path))


def _read(path: Path) -> Log:
    """Read a WaVeSim log. Raise LogError for any other file."""
    log = Log(path)
    schemas: dict[int, str] = {}
    channels: dict[int, tuple[str, str]] = {}
    times: dict[str, list[int]] = defaultdict(list)
    data: dict[str, list[bytes]] = defaultdict(list)
    kinds, frame_schema = dict[str, str](), FRAME.message
    # One digest per topic, because messages of different topics may be written in any order.
    digests: dict[str, Any] = defaultdict(hashlib.sha256)
    for r in records(log.path):
        kind = type(r).__name__
        if kind == "Message":
            if r.channel_id not in channels or r.log_time > LATEST_NS:
                continue
            topic, schema = channels[r.channel_id]
            log.messages += 1
            if not topic.startswith("/host/"):  # these depend on the machine
                digests[topic].update(struct.pack("<q", r.log_time) + r.data)
            log.end_ns = max(log.end_ns, r.log_time)
            if schema == TEXT:
                with contextlib.suppress(ValueError, RecursionError):
                    message = check_message(topic, json.loads(decode_cdr_text(r.data)))
                    log.json[topic].append((r.log_time, message))
            else:
                times[topic].append(r.log_time)
                # payloads stay in the file, since they do not fit into memory
                end = _FRAME_END if schema == frame_schema else None
                data[topic].append(r.data[len(CDR_HEADER) : end])
                kinds[topic] = schema
        elif kind == "Schema":
            schemas[r.id] = r.name
        elif kind == "Channel":
            if possible_topic(r.topic):
                channels[r.id] = (r.topic, schemas.get(r.schema_id, ""))
        elif kind == "Metadata" and r.name == METADATA:
            log.metadata = valid_metadata(r.metadata)
            log.notes = tuple(json.loads(log.metadata.get(IMPORT_NOTES, "[]")))
            digests[""].update(f"{log.metadata.get('digest')} {log.metadata.get('seed')}".encode())
        elif kind == "LogComplete":
            log.complete = True
    for topic, parts in data.items():
        table = TABLES.get(kinds[topic])
        if table is None:
            continue
        size = table.dtype.itemsize
        good = [(t, p) for t, p in zip(times[topic], parts, strict=True) if len(p) == size]
        joined = np.frombuffer(b"".join(p for _, p in good), table.dtype)
        keep = possible(table, joined)
        log.series[topic] = Series(np.array([t for t, _ in good], np.int64)[keep], joined[keep], table.name)
    whole = "".join(f"{topic}={digests[topic].hexdigest()}\n" for topic in sorted(digests))
    log.content_hash = hashlib.sha256(whole.encode()).hexdigest()
    if not log.metadata:
        raise LogError(f"{path} is not a WaVeSim log (no '{METADATA}' metadata)")
    return log


def _converted(path: Path) -> Log:
    """Return a recording from another program as a log. Raise LogError if the converter is not installed."""
    for entry in importlib.metadata.entry_points(group=CONVERTERS):
        found: Log = entry.load()(path)
        return found
    raise LogError(f"{path} is a log from another program; to read it, run pip install 'wavesim[studies]'")


def frames(path: str | Path, body: str = "", name: str = "") -> Iterator[ImagingFrame]:
    """Yield the logged frames of imaging sonars and cameras: those of all bodies, of one body, or of one instrument on
    a body. The ``names`` of each frame are the names of its labels, including the bodies that had entered the
    simulation by then.

    Frames that WaVeSim cannot have written are omitted. Raises UnknownName after the last message if the log contains
    neither the body nor the instrument.
    """
    wanted: dict[int, str] = {}
    names: LabelNames | None = None
    bodies = -1
    carried: dict[str, list[str]] = defaultdict(list)  # names of the instruments by body
    for r in records(Path(path)):
        kind = type(r).__name__
        if kind == "Metadata" and r.name == METADATA:
            names = label_names(r.metadata)
        elif kind == "Message" and r.channel_id == bodies:
            with contextlib.suppress(ValueError, RecursionError):
                who = check_message("/bodies", json.loads(decode_cdr_text(r.data)))
                if who["present"]:
                    carried[str(who["name"])] += [str(i["name"]) for i in who.get("instruments", [])]
                    if names is not None:
                        names = names.with_body(int(who["row"]), str(who["name"]), str(who["model"]))
        if kind == "Channel" and r.topic == "/bodies":
            bodies = r.id
        if kind == "Channel" and r.topic.startswith("/sonar/") and possible_topic(r.topic):
            whose = r.topic.split("/")[2:]
            carried[whose[0]] += whose[1:]
            if all(w in ("", here) for w, here in zip((body, name), whose, strict=False)):
                wanted[r.id] = r.topic
        elif kind == "Message" and r.channel_id in wanted:
            with contextlib.suppress(ValueError):
                at = _FRAME_END
                frame = ImagingFrame.from_bytes(r.data[len(CDR_HEADER) : at] + r.data[at + 4 :])
                if possible_frame(frame, wanted[r.channel_id]):
                    yield dataclasses.replace(frame, names=names)
    if not wanted:
        _check_instrument(path, carried, body, name)


def _check_instrument(path: str | Path, carried: Mapping[str, list[str]], body: str, name: str) -> None:
    """Raise UnknownName unless a log contains this body and this instrument; an empty string matches all bodies or
    instruments.
    """
    if body and body not in carried:
        raise UnknownName(f"{path} has no body '{body}'{suggest_name(body, list(carried)) or '; it has no bodies'}")
    there = sorted(set(carried[body] if body else [i for each in carried.values() for i in each]))
    if name and name not in there:
        raise UnknownName(
            f"'{body or path}' has no instrument '{name}'{suggest_name(name, there) or '; it has no instruments'}"
        )


@contextlib.contextmanager
def usable(path: str | Path | Log) -> Iterator[None]:
    """Raise a LogError if a log has values that are well-formed but impossible, such as a range of zero or an infinite
    position.
    """
    try:
        yield
    except InvalidArgument:  # a mistake of the caller
        raise
    except (ArithmeticError, IndexError, ValueError, struct.error) as error:
        raise LogError(f"{path} contains impossible values: {error}") from error
