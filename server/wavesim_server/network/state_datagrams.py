"""Payloads of STATE, STEP and SENSORS for many sessions at the same time, as rows of a matrix. docs/PROTOCOL.md defines
these payloads.

In a message of known shape, each number has a fixed position. NumPy can therefore fill in the numbers for all sessions
in one operation, a hundred times faster than lists can be packed. Shapes differ in the parts that a session receives
and in the sensors that currently have a value. Values with missing numbers are packed individually. The division into
datagrams depends on their size in bytes, including the seal. This size is computed as if no numbers were missing.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np

from wavesim_sdk.arrays import as_numbers
from wavesim_sdk.errors import AttachError
from wavesim_sdk.sensors import HEAD_COLUMNS, sensor_table_of, value_count
from wavesim_sdk.shared_memory import DONE, SharedMemoryArea
from wavesim_sdk.tables import MAX_ACTUATORS
from wavesim_sdk.wire.messages import (
    EFFORT_NUMBERS,
    HEADER_BYTES,
    MAGIC,
    MAX_DATAGRAM,
    MOTION_NUMBERS,
    SEAL_BYTES,
    VERSION,
    Type,
)
from wavesim_sdk.wire.session import Session
from wavesim_server.network.crews import CrewMember

SNAPSHOT_TRIES = 50  #: maximum number of attempts to copy a table that is being written
#: maximum time in ns by which the measurement time of a value may be ahead of the simulation time; later values are
#: rejected
MAX_FUTURE_NS = 1_000_000_000
#: maximum number of sessions with the same shape that are written one by one, because a matrix is faster only for more
#: sessions
MAX_WRITTEN_SINGLY = 4
MAX_BODY_BYTES = MAX_DATAGRAM - HEADER_BYTES - SEAL_BYTES
_TIME, _VALID = 1, 2  # columns of a sensor record's head
_READING_BYTES = 1 + 3 + 9 + 3 + 3  # bytes of a reading without its numbers
_SENSORS_BYTES = 1 + 9 + 3 + 3  # bytes of SENSORS without its readings
MAX_PIECE_NUMBERS = (
    MAX_BODY_BYTES - _SENSORS_BYTES - _READING_BYTES
) // 9  #: maximum number of elements in one piece of a sensor value that is too large for one datagram


class DatagramShape(NamedTuple):
    """The contents that a session receives: whether they include the true motion, whether they include forces, the
    number of actuators, and the (number, type) of each sensor.
    """

    sends_truth: bool
    actuators: int
    sends_effort: bool
    sensors: tuple[tuple[int, str], ...]


class SensorPiece(NamedTuple):
    """A range of the numbers in one sensor's value. ``sensor`` is the position of the sensor in the datagram shape."""

    sensor: int
    first: int
    size: int


#: (type, bytes) of each datagram:
# for several sessions, a matrix of bytes with room for the header; for a single session, bytes without header
DatagramPayloads = list[tuple[Type, Any]]


@functools.cache
def value_count_of(type_: str) -> int:
    """Return how many numbers a client receives in a value of a sensor type."""
    return value_count(sensor_table_of(type_).visible)


@functools.lru_cache(4096)
def divide_sensors(shape: DatagramShape, present: tuple[int, ...], kind: Type) -> tuple[tuple[SensorPiece, ...], ...]:
    """Distribute the sensors that have a value over the first datagram and the subsequent datagrams."""
    size = 1 + 9 + 9 + 1 + 3 + (3 + 9 * MOTION_NUMBERS if shape.sends_truth else 1) + 3 + 9 * shape.actuators
    size += (3 + 9 * EFFORT_NUMBERS if shape.sends_effort else 1) + 3 + (5 if kind is Type.STEP else 0)
    parts: list[list[SensorPiece]] = [[]]
    left = MAX_BODY_BYTES - size
    for k in present:
        count = value_count_of(shape.sensors[k][1])
        for first in range(0, count, MAX_PIECE_NUMBERS):
            piece = SensorPiece(k, first, min(MAX_PIECE_NUMBERS, count - first))
            needed = _READING_BYTES + 9 * piece.size
            if needed > left:
                parts.append([])
                left = MAX_BODY_BYTES - _SENSORS_BYTES
            parts[-1].append(piece)
            left -= needed
    return tuple(tuple(p) for p in parts)


# ------------------------------------------------------------------------------------------------ the tables of a tick


class TableSnapshots:
    """The tables at one moment. Each table is copied when it is first needed."""

    def __init__(self, vehicles: SharedMemoryArea, tick: int, step_ns: int, run_state: int) -> None:
        self.vehicles, self.tick, self.time_ns, self.run_state = vehicles, tick, tick * step_ns, run_state
        self._flat: dict[str, Any] = {}

    def table(self, name: str) -> Any:
        """Return a copy of the records of a table."""
        return self.vehicles[name].snapshot()[1]

    def values(self, type_: str) -> Any:
        """Return the values for a sensor type (rows, columns); all values are invalid if the table cannot be
        copied."""
        if type_ not in self._flat:
            table = self.vehicles[type_]
            try:
                records = table.snapshot(SNAPSHOT_TRIES)[1]
            except AttachError:
                records = np.zeros(table.capacity, table.dtype)
            self._flat[type_] = as_numbers(records)
        return self._flat[type_]

    def flat(self, name: str) -> Any:
        """Return a table of numbers (rows, columns)."""
        if name not in self._flat:
            records = self.table(name)
            self._flat[name] = as_numbers(records)
        return self._flat[name]


class InstrumentLocator:
    """Finds the sensors of each body in the engine's `instruments` table."""

    def __init__(self, vehicles: SharedMemoryArea) -> None:
        self._table = vehicles["instruments"]
        self._written = -1
        self._places: dict[tuple[int, int], tuple[int, int]] = {}

    @property
    def version(self) -> int:
        """Number of the last write of the table."""
        return int(self._table.header[DONE])

    def locate(self, row: int, number: int) -> tuple[int, int] | None:
        """Return the row of a sensor in the table of its type, and its generation; None if the body is absent."""
        written = self.version
        if written != self._written:
            records = self._table.snapshot()[1]
            self._written = written
            there = records[records["body"] >= 0]
            keys = zip(there["body"].tolist(), there["number"].tolist(), strict=True)
            values = zip(there["place"].tolist(), there["generation"].tolist(), strict=True)
            self._places = dict(zip(keys, values, strict=True))
        return self._places.get((row, number))


# ------------------------------------------------------------------------------------------------ bytes


def _array_header(count: int) -> bytes:
    return b"\xdc" + count.to_bytes(2, "big")


def _uint16(value: int) -> bytes:
    """Encode an integer below 65536, always with the same length."""
    return b"\xcd" + value.to_bytes(2, "big")


class DatagramLayout:
    """One datagram for a message shape, with its constant bytes and the positions of all variable bytes."""

    def __init__(self) -> None:
        self.template = bytearray(HEADER_BYTES)
        self.integer_offsets: dict[str, int] = {}  #: position of the eight bytes of each number, by name
        #: position and length of each list of numbers: motion, actuation, effort
        self.blocks: list[tuple[int, int]] = []
        self.readings: list[
            tuple[int, int, SensorPiece]
        ] = []  #: positions of the time and of the numbers in a sensor piece
        #: byte positions of two fields; 0 means that the field is not in this datagram
        self.run_state_offset = self.last_offset = 0

    def add_integer(self, name: str) -> int:
        """Reserve space for an eight-byte integer."""
        self.template += b"\xcf"
        self.integer_offsets[name] = len(self.template)
        self.template += bytes(8)
        return self.integer_offsets[name]

    def add_numbers(self, count: int) -> int:
        """Reserve space for a list of numbers and return the position of the first number's type byte."""
        self.template += _array_header(count)
        place = len(self.template)
        self.template += (b"\xcb" + bytes(8)) * count
        return place

    def add_readings(self, shape: DatagramShape, pieces: Sequence[SensorPiece]) -> None:
        """Reserve space for the sensor readings."""
        self.template += _array_header(len(pieces))
        for p in pieces:
            self.template += b"\x94" + _uint16(shape.sensors[p.sensor][0])
            time = self.add_integer("")
            self.template += _uint16(p.first)
            self.readings.append((time, self.add_numbers(p.size), p))


class DatagramTemplate:
    """The datagrams of a shape. They are filled in for many sessions in one pass."""

    def __init__(self, shape: DatagramShape, present: tuple[int, ...], kind: Type) -> None:
        self.parts: list[tuple[Type, DatagramLayout, Any]] = []
        parts = divide_sensors(shape, present, kind)
        for k, pieces in enumerate(parts):
            part = DatagramLayout()
            if k == 0:
                self._lay_out_first(part, shape, len(parts) - 1, kind)
            else:
                part.template += b"\x93"
                part.add_integer("tick")
                part.template += _uint16(k - 1)
            part.add_readings(shape, pieces)
            if k == 0 and kind is Type.STEP:
                part.template += b"\xce"
                part.last_offset = len(part.template)
                part.template += bytes(4)
            self.parts.append((kind if k == 0 else Type.SENSORS, part, np.frombuffer(bytes(part.template), np.uint8)))

    @staticmethod
    def _lay_out_first(part: DatagramLayout, shape: DatagramShape, more: int, kind: Type) -> None:
        part.template += b"\x99" if kind is Type.STEP else b"\x98"
        part.add_integer("tick")
        part.add_integer("time")
        part.run_state_offset = len(part.template)
        part.template += b"\0" + _uint16(more)
        counts = (
            MOTION_NUMBERS if shape.sends_truth else None,
            shape.actuators,
            EFFORT_NUMBERS if shape.sends_effort else None,
        )
        for count in counts:
            if count is None:
                part.template += b"\xc0"
            else:
                part.blocks.append((part.add_numbers(count), count))

    def fill(
        self,
        n: int,
        head: tuple[Any, Any, Any],
        values: list[tuple[Any, Any]],
        view: TableSnapshots,
        last: list[int] | None,
    ) -> DatagramPayloads:
        """Return matrices of bytes with one row per session and with room for the header."""
        payloads = DatagramPayloads()
        for type_, part, row in self.parts:
            matrix = np.empty((n, len(row)), np.uint8)
            matrix[:] = row
            for name, value in (("tick", view.tick), ("time", view.time_ns)):
                if (at := part.integer_offsets.get(name)) is not None:
                    matrix[:, at : at + 8] = np.frombuffer(value.to_bytes(8, "big"), np.uint8)
            if part.run_state_offset:
                matrix[:, part.run_state_offset] = view.run_state
                present_blocks = (block for block in head if block is not None)
                for (at, count), block in zip(part.blocks, present_blocks, strict=True):
                    _write_numbers(matrix, at, count, block)
            for time_at, at, p in part.readings:
                numbers_, time = values[p.sensor]
                matrix[:, time_at : time_at + 8] = time.astype(">u8").view(np.uint8).reshape(n, 8)
                _write_numbers(matrix, at, p.size, numbers_[:, p.first : p.first + p.size])
            if last is not None and part.last_offset:
                matrix[:, part.last_offset : part.last_offset + 4] = np.array(last, ">u4").view(np.uint8).reshape(n, 4)
            payloads.append((type_, matrix))
        return payloads


def _write_numbers(matrix: Any, at: int, count: int, values: Any) -> None:
    """Write the numbers (n, count) for all rows as float64 after their type bytes."""
    n = len(matrix)
    matrix[:, at : at + 9 * count].reshape(n, count, 9)[:, :, 1:] = (
        np.ascontiguousarray(values, ">f8").view(np.uint8).reshape(n, count, 8)
    )


cached_template = functools.lru_cache(1024)(DatagramTemplate)


class StateWriter:
    """Writes the states of many sessions."""

    def __init__(self, vehicles: SharedMemoryArea, step_ns: int) -> None:
        self.vehicles, self.step_ns = vehicles, step_ns
        self.instruments = InstrumentLocator(vehicles) if "instruments" in vehicles.tables else None

    def view(self, tick: int, run_state: int) -> TableSnapshots:
        """Return snapshots of the current tables."""
        return TableSnapshots(self.vehicles, tick, self.step_ns, run_state)

    def write(
        self, members: Sequence[CrewMember], view: TableSnapshots, kind: Type
    ) -> Iterator[tuple[list[CrewMember], DatagramPayloads]]:
        """Yield groups of sessions with their datagrams: first STATE or STEP, then SENSORS."""
        shapes: dict[DatagramShape, list[CrewMember]] = defaultdict(list)
        for m in members:
            if m.state_layout is None:
                m.state_layout = self._shape(m)
            shapes[m.state_layout].append(m)
        for shape, some in shapes.items():
            yield from self._write_shape(shape, some, view, kind)

    def _shape(self, m: CrewMember) -> DatagramShape:
        sensors = tuple((k, m.grant.suite[k].type) for k in m.sensor_numbers)
        return DatagramShape(m.grant.sends_truth, m.grant.actuator_count, m.wants_effort, sensors)

    def _write_shape(
        self, shape: DatagramShape, members: list[CrewMember], view: TableSnapshots, kind: Type
    ) -> Iterator[tuple[list[CrewMember], DatagramPayloads]]:
        if len(members) <= MAX_WRITTEN_SINGLY:
            for m in members:
                yield [m], self._write_one(shape, m, view, kind)
            return
        if not shape.sensors:
            yield members, self._write_matrix(shape, (), members, [], view, kind)
            return
        values = [self._sensor_values(members, number, type_, view) for number, type_ in shape.sensors]
        bits, gaps = np.zeros(len(members), np.uint64), np.zeros(len(members), bool)
        for k, (here, numbers_, _) in enumerate(values):
            gaps |= here & ~np.isfinite(numbers_).all(axis=1)
            bits |= here.astype(np.uint64) << np.uint64(k)
        groups: dict[tuple[int, int], list[int]] = defaultdict(list)
        for i, (b, gap) in enumerate(zip(bits.tolist(), gaps.tolist(), strict=True)):
            groups[b, i if gap else -1].append(i)
        for (b, single), some in groups.items():
            chosen = [members[i] for i in some]
            present = tuple(k for k in range(len(values)) if b >> k & 1)
            taken = [(n[some], t[some]) for _, n, t in values]
            if single >= 0:
                yield chosen, self._pack_one(shape, present, taken, chosen[0], view, kind)
            else:
                yield chosen, self._write_matrix(shape, present, chosen, taken, view, kind)

    def _sensor_values(
        self, members: list[CrewMember], number: int, type_: str, view: TableSnapshots
    ) -> tuple[Any, Any, Any]:
        """Return three arrays for a sensor, with one row for each body.

        The first array states whether the value may be sent; the others contain the value and its time.
        """
        assert self.instruments is not None
        found = [self.instruments.locate(m.row, number) for m in members]
        known = np.array([f is not None for f in found])
        places = np.array([(0, 0) if f is None else f for f in found], np.int64)
        max_age = np.array([m.grant.max_age_ns[number] for m in members], np.int64)
        rows = view.values(type_)[places[:, 0]]
        as_integers = rows.view(np.int64)
        count = value_count_of(type_)
        time = as_integers[:, _TIME]
        is_valid = known & (as_integers[:, _VALID] == 1) & (as_integers[:, HEAD_COLUMNS + count] == places[:, 1])
        is_valid &= (time >= 0) & (time <= view.time_ns + MAX_FUTURE_NS) & (view.time_ns - time <= max_age)
        return is_valid, rows[:, HEAD_COLUMNS : HEAD_COLUMNS + count], np.where(is_valid, time, 0)

    def _write_one(self, shape: DatagramShape, m: CrewMember, view: TableSnapshots, kind: Type) -> DatagramPayloads:
        """Return the datagrams for one session."""
        return self._pack_one(shape, *self._values_of(shape, m, view), m, view, kind)

    def _values_of(
        self, shape: DatagramShape, m: CrewMember, view: TableSnapshots
    ) -> tuple[tuple[int, ...], list[tuple[Any, Any]]]:
        """Return which sensors of a session have a value that may be sent, and the numbers and the time of each sensor."""
        values: list[tuple[Any, Any]] = []
        present = []
        for k, (number, type_) in enumerate(shape.sensors):
            assert self.instruments is not None
            place = self.instruments.locate(m.row, number)
            count = value_count_of(type_)
            row = view.values(type_)[0 if place is None else place[0]]
            whole = row.view(np.int64)
            time = int(whole[_TIME])
            if (
                place is not None
                and whole[_VALID] == 1
                and whole[HEAD_COLUMNS + count] == place[1]
                and 0 <= time <= view.time_ns + MAX_FUTURE_NS
                and view.time_ns - time <= m.grant.max_age_ns[number]
            ):
                present.append(k)
            values.append((row[None, HEAD_COLUMNS : HEAD_COLUMNS + count], (time,)))
        return tuple(present), values

    def _motion_and_actuation(
        self, shape: DatagramShape, members: list[CrewMember], view: TableSnapshots
    ) -> tuple[Any, Any, Any]:
        """Return the motion, actuation and effort of each body; None for parts that are not sent."""
        rows = np.array([m.row for m in members])
        motion = view.flat("state")[rows] if shape.sends_truth else None
        actual = view.flat("actuation")[rows, MAX_ACTUATORS : MAX_ACTUATORS + shape.actuators]
        effort = np.nan_to_num(view.flat("effort")[rows]) if shape.sends_effort else None
        return motion, actual, effort

    def _write_matrix(
        self,
        shape: DatagramShape,
        present: tuple[int, ...],
        members: list[CrewMember],
        values: list[tuple[Any, Any]],
        view: TableSnapshots,
        kind: Type,
    ) -> DatagramPayloads:
        """Return the byte matrices for all sessions, filled in one pass."""
        last = [m.session.outbox.last for m in members] if kind is Type.STEP else None
        return cached_template(shape, present, kind).fill(
            len(members), self._motion_and_actuation(shape, members, view), values, view, last
        )

    def _pack_one(
        self,
        shape: DatagramShape,
        present: tuple[int, ...],
        values: list[tuple[Any, Any]],
        m: CrewMember,
        view: TableSnapshots,
        kind: Type,
    ) -> DatagramPayloads:
        """Return the datagrams for one session as bytes, with nil in place of each missing number."""
        payloads = DatagramPayloads()
        parts = divide_sensors(shape, present, kind)
        for part, pieces in enumerate(parts):
            entries = []
            for p in pieces:
                kept = _finite_or_none(values[p.sensor][0][0, p.first : p.first + p.size])
                entries.append([shape.sensors[p.sensor][0], int(values[p.sensor][1][0]), p.first, kept])
            if part == 0:
                payload = [
                    view.tick,
                    view.time_ns,
                    view.run_state,
                    len(parts) - 1,
                    *_numbers_of(shape, m, view),
                    entries,
                ]
                if kind is Type.STEP:
                    payload.append(m.session.outbox.last)
            else:
                payload = [view.tick, part - 1, entries]
            payloads.append((kind if part == 0 else Type.SENSORS, msgpack.packb(payload)))
        return payloads


def _numbers_of(
    shape: DatagramShape, m: CrewMember, view: TableSnapshots
) -> tuple[list[float] | None, list[float], list[float] | None]:
    """Return the motion, actuation and effort of one body; None for parts that are not sent."""
    motion = view.flat("state")[m.row].tolist() if shape.sends_truth else None
    actual = view.flat("actuation")[m.row, MAX_ACTUATORS : MAX_ACTUATORS + shape.actuators].tolist()
    effort = np.nan_to_num(view.flat("effort")[m.row]).tolist() if shape.sends_effort else None
    return motion, actual, effort


def _finite_or_none(numbers_: Any) -> list[float | None]:
    return [v if math.isfinite(v) else None for v in numbers_.tolist()]


# ------------------------------------------------------------------------------------------------ headers


_HEADER = np.dtype(
    [
        ("magic", "S4"),
        ("version", "u1"),
        ("type", "u1"),
        ("flags", "<u2"),
        ("token", "<u8"),
        ("sequence", "<u4"),
        ("ack", "<u4"),
    ]
)


def finish_datagrams(sessions: Sequence[Session], kind: Type, matrix: Any) -> list[Any]:
    """Fill in the headers and seal the payloads. Returns one matrix for all sessions, or one single-row matrix for each
    session.
    """
    heads = np.zeros(len(sessions), _HEADER)
    heads["magic"], heads["version"], heads["type"] = MAGIC, VERSION, kind
    for s in sessions:
        s.sequence += 1
        s.datagrams_out += 1
        s.ack_at = None
    heads["flags"] = sessions[0].seal is not None  # either all sessions are sealed, or none
    heads["token"] = [s.token for s in sessions]
    heads["sequence"] = [s.sequence for s in sessions]
    heads["ack"] = [s.inbox.received for s in sessions]
    matrix[:, :HEADER_BYTES] = heads.view(np.uint8).reshape(len(heads), HEADER_BYTES)
    if sessions[0].seal is None:
        return [matrix]
    rows = []
    for s, row in zip(sessions, matrix, strict=True):
        data = row.tobytes()
        assert s.seal is not None
        sealed = s.seal.seal(data[:HEADER_BYTES], data[HEADER_BYTES:], s.sequence)
        rows.append(np.frombuffer(data[:HEADER_BYTES] + sealed, np.uint8).reshape(1, -1))
    return rows
