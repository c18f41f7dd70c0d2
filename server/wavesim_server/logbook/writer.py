"""Writer of the log, a self-describing MCAP file for each run in an open format; see docs/LOG.md."""

from __future__ import annotations

import base64
import contextlib
import functools
import itertools
import json
import platform
import struct
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from wavesim_kernels import machine_code
from wavesim_sdk.errors import LogError
from wavesim_sdk.imaging_frames import FRAME, FRAME_SENSOR_TYPES, ImagingFrame
from wavesim_sdk.logfile import CDR_HEADER, EARLIER_RUN, METADATA, PART, RUN, branch_path, encode_cdr_text, part_path
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.tables import ESTIMATE, LINES, RECEPTION, SENT, VEHICLE_TABLES, Table
from wavesim_server.logbook.log_part import CHUNK_NS, DiskSync, LogPart, open_durably
from wavesim_server.logbook.machine_traits import machine_traits
from wavesim_server.logbook.mcap_file import MessageBlock
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.bed import bed_around_fleet, mean_depth
from wavesim_world.sonars.scene_labels import label_names

#: tables of bodies, by name
_BODY_TABLES = {t.name: t for t in VEHICLE_TABLES}
MAX_BLOCKS = 64  #: maximum number of message blocks that are kept prepared
#: columns of the `clock` table that describe the quality of a run
HEALTH = (
    "realtime_factor",
    "ticks_late",
    "lateness_max_ns",
    "slipped_ns",
    "events_dropped",
    "sensors_late",
    "contacts_dropped",
    "paths_dropped",
)


def logged_table(name: str) -> Table:
    """Return the table of bodies or of a sensor type in the form in which the log contains it."""
    return _BODY_TABLES.get(name) or sensor_table_of(name).visible


@functools.cache
def versions() -> Mapping[str, str]:
    """Return the versions of the software that a run uses, and those machine properties that can change the last bits
    of its results.
    """
    found = {"python": platform.python_version(), "kernels": machine_code.description(), **machine_traits()}
    for package in ("wavesim-sdk", "wavesim-server", "numpy", "numba", "llvmlite"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


class LogWriter:
    """The log of a run.

    If the server is killed, the log remains readable up to its last complete chunk of ``chunk_ns``.

    The log consists of one or several files (parts). When a part has reached ``<log part_size>`` or ``part_time``, it
    is finished, and the log continues in another file. ``name`` is the name of the server, which is by default the name
    of the configuration. ``metadata`` contains further keys of the metadata record, for logs that were not simulated.
    """

    def __init__(
        self,
        place: Path | BinaryIO,
        loaded: LoadedConfig,
        seed: int,
        name: str = "",
        *,
        chunk_ns: int = CHUNK_NS,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        self._chunk_ns, self._metadata = chunk_ns, dict(metadata or {})
        self._server = name or loaded.config.name
        self._place = place if isinstance(place, Path) else None
        self._loaded, self._seed = loaded, seed
        self._run, self._number, self._since = uuid.uuid4().hex, 1, 0
        self._first_place, self._branches, self._earlier_run = self._place, 0, ""
        self.names: dict[int, str] = {}
        self._suites: dict[int, tuple[str, ...]] = {}
        self._present: dict[int, dict[str, Any]] = {}
        #: prepared messages with the channels of this part; the keys are (tables, counts, rows) or (topic, count)
        self._blocks: dict[tuple[Any, ...], MessageBlock] = {}
        self._failure = ""
        self._now = 0  # simulation time of the last message
        self._has_frames = any(type_ in loaded.sensor_rows for type_ in FRAME_SENSOR_TYPES)
        self._bed = bed_around_fleet(loaded)
        if loaded.config.world.soundings is not None:
            self._bed["mean"] = mean_depth(loaded)  # over all soundings: the depth that the waves use
        self._part = LogPart(open_durably(place) if isinstance(place, Path) else place, chunk_ns)
        self._sync = DiskSync(loaded.config.log.sync, self._on_disk_error) if loaded.config.log.sync else None
        try:
            self._begin()
        except OSError as error:
            self._on_disk_error(error)
        self.json("/world/bed", 0, self._bed)
        self._flush()

    def _begin(self) -> None:
        """Write the metadata that a reader needs."""
        config = self._loaded.config
        self._part.write_metadata(
            METADATA,
            {
                "configuration": self._loaded.text,
                "configuration_file": self._loaded.path.name,
                "digest": self._loaded.digest,
                "seed": str(self._seed),
                "server": self._server,
                "origin": json.dumps([config.world.latitude, config.world.longitude]),
                "step_ns": str(round(config.time.step * 1e9)),
                "sound_speed": repr(config.acoustics.sound_speed),
                "versions": json.dumps(dict(versions()), sort_keys=True),
                **({"labels": label_names(self._loaded).to_json()} if self._has_frames else {}),
                RUN: self._run,
                PART: str(self._number),
                **({EARLIER_RUN: self._earlier_run} if self._earlier_run else {}),
                **self._metadata,
            },
        )
        if self._sync is not None:
            self._sync.set_file(self._part.file)

    def _on_disk_error(self, error: OSError) -> None:
        """Stop logging after a disk error; the simulation continues, and the status shows the reason."""
        self._failure = self._failure or f"the log stopped: {error.strerror}"

    def _next_part(self) -> None:
        """Finish this file and continue in another file. The new file begins with the data that are needed to read it."""
        if self._place is None:
            raise OSError(0, "the log cannot continue in another file")
        self._finish()
        self._number, self._since = self._number + 1, self._now
        self._blocks.clear()
        try:
            self._part = LogPart(open_durably(part_path(self._place, self._number)), self._chunk_ns)
        except LogError as error:
            raise OSError(0, str(error)) from None
        self._begin()
        self._part.add("/world/bed", None, self._now, _message(self._bed), said_before=True)
        for who in self._present.values():
            self._part.add("/bodies", None, self._now, _message(who), said_before=True)

    def branch(self, time_ns: int) -> str:
        """Finish this log, and begin another one because the simulation time has changed. Return the name of its file.

        The new log is self-contained: it has its own run number, and no time in it is before ``time_ns``.
        """
        if self._failure or self._first_place is None:
            return ""
        try:
            self._finish()
            self._branches += 1
            place = branch_path(self._first_place, self._branches)
            self._earlier_run, self._run, self._place = self._run, uuid.uuid4().hex, place
            self._number, self._since, self._now = 1, time_ns, time_ns
            self._blocks.clear()
            self._present.clear()
            self._part = LogPart(open_durably(place), self._chunk_ns)
            self._begin()
        except LogError as error:
            self._on_disk_error(OSError(0, str(error)))
            return ""
        except OSError as error:
            self._on_disk_error(error)
            return ""
        self.json("/world/bed", time_ns, self._bed)
        self._flush()
        return place.name

    def _finish(self) -> None:
        self._part.finish()
        if self._sync is not None:
            self._sync.sync_now(self._part.file)
        self._part.file.close()

    @property
    def failure(self) -> str:
        """The reason why the log is no longer being written; empty while it is being written."""
        return self._failure

    def _write_guarded(self, time_ns: int, write: Callable[[], None]) -> None:
        if self._failure:
            return
        try:
            self._now = max(self._now, time_ns)
            write()
        except OSError as error:
            self._on_disk_error(error)

    def _part_with_room(self, topic: str) -> LogPart:
        """Return the current part, or a new part if the current one has no room for the topic."""
        if not self._part.has_room(topic):
            self._next_part()
        return self._part

    def _add(self, topic: str, table: Table | None, time_ns: int, data: bytes) -> None:
        self._write_guarded(time_ns, lambda: self._part_with_room(topic).add(topic, table, time_ns, data))

    def json(self, topic: str, time_ns: int, value: dict[str, Any]) -> None:
        """Write a message of plain values as JSON in a ROS string, so that every reader of ROS logs can decode it."""
        self._add(topic, None, time_ns, _message(value))

    def record(self, topic: str, table: Table, time_ns: int, record: bytes) -> None:
        """Write a record of a declared table."""
        self._add(topic, table, time_ns, CDR_HEADER + record)

    def body(self, time_ns: int, row: int, name: str, model: str, kind: str, present: bool) -> None:
        """Record that a body was added or removed. For an added body, the record lists the actuators and instruments in
        the order of their numbers.
        """
        self.names[row] = name
        self._blocks.clear()
        suite = self._loaded.suite_by_name(name, model)
        self._suites[row] = tuple(i.name for i in suite)
        who: dict[str, Any] = {"row": row, "name": name, "model": model, "type": kind, "present": present}
        if present:
            actuators = actuators_of(self._loaded.model(model))
            who["actuators"] = [{"name": a.name, "kind": a.kind.name.lower(), "unit": a.actual_unit} for a in actuators]
            who["instruments"] = [{"name": i.name, "type": i.type} for i in suite]
            self._present[row] = who
        else:
            self._present.pop(row, None)
        self.json("/bodies", time_ns, who)

    def run(self, time_ns: int, state: str) -> None:
        """Record a state change of the timer."""
        self.json("/run", time_ns, {"state": state})

    def health(self, time_ns: int, clock: Any) -> None:
        """Write the health counters of the run. They depend on the machine; therefore, the content hash excludes them."""
        self.json("/host/health", time_ns, {n: clock[n].item() for n in HEALTH})

    def damage(self, time_ns: int, text: str) -> None:
        """Record a loss of data. Losses depend on wall time; therefore, the content hash excludes them."""
        self.json("/host/damage", time_ns, {"text": text})

    def keys(self, time_ns: int, text: str) -> None:
        """Record a change of client keys. Changes may happen at any wall time, so the content hash excludes them."""
        self.json("/host/keys", time_ns, {"text": text})

    def notice(self, time_ns: int, body: str, text: str) -> None:
        """Write a human-readable notice."""
        self.json("/notices", time_ns, {"body": body, "text": text})

    def command(self, time_ns: int, sender: str, verb: str, arguments: Mapping[str, Any]) -> None:
        """Record an executed command. ``sender`` is the body whose session sent the command; an empty name means the
        commander.
        """
        self.json("/commands", time_ns, {"sender": sender, "verb": verb, "arguments": dict(arguments)})

    def fault(self, time_ns: int, body: str, part: str, kind: str, *, begins: bool, **more: Any) -> None:
        """Record the start or end of a fault of an actuator or instrument (``part``); ``more`` contains the magnitude
        and the field of the fault.
        """
        what = {"body": body, "part": part, "kind": kind, "begins": begins}
        self.json("/faults", time_ns, {k: v for k, v in more.items() if v is not None} | what)

    def frozen(self, time_ns: int, names: Sequence[str]) -> None:
        """Write the names of bodies that were frozen because their state diverged (NaN or infinity)."""
        self.json("/frozen", time_ns, {"bodies": list(names)})

    def table(self, time_ns: int, name: str, rows: Any, data: bytes) -> None:
        """Write records of one table at one tick.

        For tables of bodies (``state``, ``actuation``, ...), ``rows`` contains the body rows. For values of a sensor
        type, ``rows`` contains, for each record, the body row and the instrument number in the suite; the values do not
        include the hidden columns.
        """
        who = np.reshape(rows, (-1, 1 if name in _BODY_TABLES else 2))
        places = np.zeros((len(who), 2), np.int64)
        places[:, : who.shape[1]] = who
        self.records(time_ns, (name,), (len(who),), places.tobytes(), data)

    def records(self, time_ns: int, tables: Sequence[str], counts: Sequence[int], rows: bytes, data: bytes) -> None:
        """Write the records of one tick; ``counts`` states how many of them belong to each table.

        For each record, ``rows`` contains the body row and the instrument number in the suite (int64); this number is 0
        in tables of bodies. Sensor values do not include the hidden columns.
        """
        self._write_guarded(time_ns, lambda: self._add_records((tuple(tables), tuple(counts), rows), time_ns, data))
        self._flush()

    def _add_records(self, key: tuple[tuple[str, ...], tuple[int, ...], bytes], time_ns: int, data: bytes) -> None:
        block = self._blocks.get(key)
        if block is None:
            topics = list(self._topics(*key))
            block = self._block(topics)
            while len(block.channels) < len(topics):  # the rest goes to the next part
                self._part.add_block(block, time_ns, data[: block.data_bytes])
                topics, data = topics[len(block.channels) :], data[block.data_bytes :]
                self._next_part()
                block = self._block(topics)
            if len(block.channels) == sum(key[1]):
                self._keep(key, block)
        self._part.add_block(block, time_ns, data)

    def _topics(self, tables: Sequence[str], counts: Sequence[int], rows: bytes) -> Iterator[tuple[str, Table]]:
        """Yield the topic and the table of each record."""
        who = iter(np.frombuffer(rows, np.int64).reshape(-1, 2).tolist())
        for name, count in zip(tables, counts, strict=True):
            table, of_bodies = logged_table(name), name in _BODY_TABLES
            for row, number in itertools.islice(who, count):
                yield f"/{name}/{self._owner_of_row(name, row)}" if of_bodies else self._sensor(row, number), table

    def _keep(self, key: tuple[Any, ...], block: MessageBlock) -> None:
        if len(self._blocks) >= MAX_BLOCKS:
            self._blocks.clear()
        self._blocks[key] = block

    def _block(self, topics: Sequence[tuple[str, Table]]) -> MessageBlock:
        """Prepare messages for as many topics as this part has room for, beginning with the first topic."""
        channels = [self._part.channel(*t) for t in itertools.takewhile(lambda t: self._part.has_room(t[0]), topics)]
        return self._part.block(channels, [table.dtype.itemsize for _, table in topics[: len(channels)]])

    def _owner_of_row(self, table: str, row: int) -> str:
        """Return the name of the body or line in a row of a table."""
        lines = self._loaded.config.fleet.line
        if table == LINES.name:
            return lines[row].name if row < len(lines) else f"line{row}"
        return self._name(row)

    def _name(self, row: int) -> str:
        return self.names.get(row, f"row{row}")

    def _sensor(self, row: int, number: int) -> str:
        """Return the topic of an instrument."""
        suite = self._suites.get(row, ())
        return f"/sensor/{self._name(row)}/{suite[number] if number < len(suite) else f'number{number}'}"

    def _flush(self) -> None:
        """Pass complete chunks to the operating system, and begin another file when that is due."""
        if self._failure:
            return
        log = self._loaded.config.log
        try:
            self._part.flush(self._now)
            old = log.part_time > 0.0 and self._now - self._since >= log.part_time * 1e9
            if self._place is not None and (old or self._part.size >= log.part_size):
                self._next_part()
        except OSError as error:
            self._on_disk_error(error)

    def signals(self, sent: Any, receptions: Any) -> None:
        """Write the sent signals, and the receptions with their outcomes."""
        self._add_signals("/acoustics/sent", SENT, sent, sent["emission_ns"])
        self._add_signals("/acoustics/reception", RECEPTION, receptions, receptions["arrival_ns"])

    def _add_signals(self, topic: str, table: Table, records: Any, times_ns: Any) -> None:
        count = len(records)

        def write() -> None:
            part = self._part_with_room(topic)
            block = self._blocks.get((topic, count))
            if block is None:
                block = part.block([part.channel(topic, table)] * count, [table.dtype.itemsize] * count)
                self._keep((topic, count), block)
            part.add_block(block, times_ns, records.tobytes())

        if count:
            self._write_guarded(int(times_ns.max()), write)

    def sound(self, time_ns: int, body: str, signal: int, sampling_rate: float, samples: bytes) -> None:
        """Write the samples of a sound (32-bit floating-point values, little-endian) that a body plays for the first
        time.
        """
        text = base64.b64encode(samples).decode()
        self.json(
            "/acoustics/sound",
            time_ns,
            {"body": body, "signal": signal, "sampling_rate": sampling_rate, "samples": text},
        )

    def frame(self, frame: ImagingFrame) -> None:
        """Write a frame from an imaging sonar under the names that the frame contains."""
        data = frame.record.tobytes() + struct.pack("<I", len(frame.payload)) + frame.payload
        self.record(f"/sonar/{frame.body}/{frame.name}", FRAME, int(frame.record["time_ns"]), data)

    def estimate(self, time_ns: int, body: str, values: list[float | None]) -> None:
        """Write the estimate from a body's on-board navigator. The estimate may arrive before the message that adds the
        body to the log.
        """
        numbers = np.array([np.nan if v is None else v for v in values[:10]], float)
        if len(numbers) == 10:
            self.record(f"/estimate/{body}", ESTIMATE, time_ns, numbers.tobytes())

    def close(self) -> None:
        """Write the index and close the file."""
        try:
            if not self._failure:
                self._finish()
        except OSError as error:
            self._on_disk_error(error)
        if self._sync is not None:
            self._sync.close()
        with contextlib.suppress(OSError):
            self._part.file.close()


def _message(value: dict[str, Any]) -> bytes:
    return encode_cdr_text(json.dumps(value, sort_keys=True))
