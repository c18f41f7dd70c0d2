"""STATE, STEP and SENSORS of many sessions at once: the bodies of docs/PROTOCOL.md written as rows of a matrix.

A message of known shape has its numbers at fixed places; so NumPy fills those of all sessions together, a hundred times
faster than packing lists.  Shapes differ by what a session hears and by the sensors that have a value now; a value with a
gap in it is packed singly.  What fits into a datagram is decided by bytes, sealing included, as if there were no gaps.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np

from wavesim_sdk.area import DONE, Area
from wavesim_sdk.errors import AttachError
from wavesim_sdk.sensors import HEAD, numbers, table_of
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
from wavesim_server.network.crew import Member

TRIES = 50  #: to copy a table that is being written
AHEAD_NS = 1_000_000_000  #: a value from further in the future is nonsense
ROOM = MAX_DATAGRAM - HEADER_BYTES - SEAL_BYTES
_TIME, _VALID = 1, 2  # columns of a sensor's head
_ENTRY = 1 + 3 + 9 + 3 + 3  # bytes of a reading beside its numbers
_SENSORS = 1 + 9 + 3 + 3  # bytes of SENSORS beside its readings
LONGEST = (ROOM - _SENSORS - _ENTRY) // 9  #: numbers in a piece of a sensor that is larger than a datagram


class Shape(NamedTuple):
    """What a session hears: the truth or not, how many actuators, forces or not, (number, type) of its sensors."""

    truth: bool
    actuators: int
    effort: bool
    sensors: tuple[tuple[int, str], ...]


class Piece(NamedTuple):
    """Some numbers of the k-th sensor of a shape."""

    sensor: int
    first: int
    size: int


@functools.cache
def count_of(type_: str) -> int:
    """Numbers in a value of a type of sensor, as clients get it."""
    return numbers(table_of(type_).told)


@functools.lru_cache(4096)
def layout(shape: Shape, present: tuple[int, ...], extra: int) -> tuple[tuple[Piece, ...], ...]:
    """Which sensors (of those that have a value) go into the first datagram, and into each that follows."""
    size = 1 + 9 + 9 + 1 + 3 + (3 + 9 * MOTION_NUMBERS if shape.truth else 1) + 3 + 9 * shape.actuators
    size += (3 + 9 * EFFORT_NUMBERS if shape.effort else 1) + 3 + extra
    parts: list[list[Piece]] = [[]]
    left = ROOM - size
    for k in present:
        count = count_of(shape.sensors[k][1])
        for first in range(0, count, LONGEST):
            piece = Piece(k, first, min(LONGEST, count - first))
            needed = _ENTRY + 9 * piece.size
            if needed > left:
                parts.append([])
                left = ROOM - _SENSORS
            parts[-1].append(piece)
            left -= needed
    return tuple(tuple(p) for p in parts)


# ------------------------------------------------------------------------------------------------ the tables of a tick


class View:
    """The tables at one moment, each copied when it is first asked for."""

    def __init__(self, vehicles: Area, tick: int, step_ns: int, run_state: int) -> None:
        self.vehicles, self.tick, self.time_ns, self.run_state = vehicles, tick, tick * step_ns, run_state
        self._flat: dict[str, Any] = {}

    def table(self, name: str) -> Any:
        """A copy of the records of a table."""
        return self.vehicles[name].snapshot()[1]

    def values(self, type_: str) -> Any:
        """The values of a type of sensor (rows, columns); without any valid ones where its emulator writes nonsense."""
        if type_ not in self._flat:
            table = self.vehicles[type_]
            try:
                records = table.snapshot(TRIES)[1]
            except AttachError:
                records = np.zeros(table.capacity, table.dtype)
            self._flat[type_] = records.view(np.float64).reshape(len(records), -1)
        return self._flat[type_]

    def flat(self, name: str) -> Any:
        """A table of numbers (rows, columns)."""
        if name not in self._flat:
            records = self.table(name)
            self._flat[name] = records.view(np.float64).reshape(len(records), -1)
        return self._flat[name]


class Instruments:
    """Where the sensors of each body stand, as the engine's table says."""

    def __init__(self, vehicles: Area) -> None:
        self._table = vehicles["instruments"]
        self._written = -1
        self._places: dict[tuple[int, int], tuple[int, int]] = {}

    def place(self, row: int, number: int) -> tuple[int, int] | None:
        """(row in the table of its type, generation) of a sensor of a body; None if the body is not there."""
        written = int(self._table.header[DONE])
        if written != self._written:
            records = self._table.snapshot()[1]
            self._written = written
            there = records[records["body"] >= 0]
            keys = zip(there["body"].tolist(), there["number"].tolist(), strict=True)
            values = zip(there["place"].tolist(), there["generation"].tolist(), strict=True)
            self._places = dict(zip(keys, values, strict=True))
        return self._places.get((row, number))


# ------------------------------------------------------------------------------------------------ bytes


def _float64(matrix: Any, at: int, values: Any) -> int:
    """Numbers (n, k) of all rows as msgpack float64; where the next ones go."""
    n, k = values.shape
    block = matrix[:, at : at + 9 * k].reshape(n, k, 9)
    block[:, :, 0] = 0xCB
    block[:, :, 1:] = np.ascontiguousarray(values, ">f8").view(np.uint8).reshape(n, k, 8)
    return at + 9 * int(k)


def _uint64(matrix: Any, at: int, values: Any) -> int:
    matrix[:, at] = 0xCF
    matrix[:, at + 1 : at + 9] = np.ascontiguousarray(values, ">u8").view(np.uint8).reshape(len(matrix), 8)
    return at + 9


def _bytes(matrix: Any, at: int, data: bytes) -> int:
    matrix[:, at : at + len(data)] = np.frombuffer(data, np.uint8)
    return at + len(data)


def _array(count: int) -> bytes:
    return b"\xdc" + count.to_bytes(2, "big")


def _uint(value: int) -> bytes:
    """A whole number below 65536, always of the same length."""
    return b"\xcd" + value.to_bytes(2, "big")


Bodies = list[tuple[Type, Any]]  #: (type, rows of bytes with room for the header) of each datagram of some sessions


class Writer:
    """Writes the states of many sessions."""

    def __init__(self, vehicles: Area, step_ns: int) -> None:
        self.vehicles, self.step_ns = vehicles, step_ns
        self.instruments = Instruments(vehicles) if "instruments" in vehicles.tables else None

    def view(self, tick: int, run_state: int) -> View:
        """The tables now."""
        return View(self.vehicles, tick, self.step_ns, run_state)

    def bodies(self, members: Sequence[Member], view: View, kind: Type) -> Iterator[tuple[list[Member], Bodies]]:
        """Some of the sessions at a time, with their datagrams: STATE, or STEP, then SENSORS."""
        shapes: dict[Shape, list[Member]] = defaultdict(list)
        for m in members:
            if m.shape is None:
                m.shape = self._shape(m)
            shapes[m.shape].append(m)
        for shape, some in shapes.items():
            yield from self._of_shape(shape, some, view, kind)

    def _shape(self, m: Member) -> Shape:
        sensors = tuple((k, m.berth.suite[k].type) for k in m.chosen)
        return Shape(m.berth.truth, m.berth.actuators, m.effort, sensors)

    def _of_shape(
        self, shape: Shape, members: list[Member], view: View, kind: Type
    ) -> Iterator[tuple[list[Member], Bodies]]:
        values = [self._values(members, number, type_, view) for number, type_ in shape.sensors]
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
            parts = layout(shape, present, 5 if kind is Type.STEP else 0)
            taken = [(n[some], t[some]) for _, n, t in values]
            fill = _packed if single >= 0 else _together
            yield chosen, fill(shape, parts, self._head(shape, chosen, view), taken, view, kind, chosen)

    def _values(self, members: list[Member], number: int, type_: str, view: View) -> tuple[Any, Any, Any]:
        """(has a value that may be sent, its numbers, its time) of a sensor of each body."""
        assert self.instruments is not None
        found = [self.instruments.place(m.row, number) for m in members]
        known = np.array([f is not None for f in found])
        places = np.array([(0, 0) if f is None else f for f in found], np.int64)
        fresh = np.array([m.berth.fresh_ns[number] for m in members], np.int64)
        rows = view.values(type_)[places[:, 0]]
        whole = rows.view(np.int64)
        count = count_of(type_)
        time = whole[:, _TIME]
        here = known & (whole[:, _VALID] == 1) & (whole[:, HEAD + count] == places[:, 1])
        here &= (time >= 0) & (time <= view.time_ns + AHEAD_NS) & (view.time_ns - time <= fresh)
        return here, rows[:, HEAD : HEAD + count], np.where(here, time, 0)

    def _head(self, shape: Shape, members: list[Member], view: View) -> tuple[Any, Any, Any]:
        """Motion, actuation and effort of each body; None for what is not told."""
        rows = np.array([m.row for m in members])
        motion = view.flat("state")[rows] if shape.truth else None
        actual = view.table("actuation")["actual"][rows, : shape.actuators]
        effort = np.nan_to_num(view.flat("effort")[rows]) if shape.effort else None
        return motion, actual, effort


def _prefix(view: View, parts: int) -> bytes:
    """The first elements of STATE and STEP, after the array's own byte."""
    return b"".join((
        b"\xcf", view.tick.to_bytes(8, "big"), b"\xcf", view.time_ns.to_bytes(8, "big"), bytes((view.run_state,)),
        _uint(parts),
    ))  # fmt: skip


def _together(
    shape: Shape, parts: tuple[tuple[Piece, ...], ...], head: tuple[Any, Any, Any], values: list[tuple[Any, Any]],
    view: View, kind: Type, members: list[Member],
) -> Bodies:  # fmt: skip
    """Rows of bytes for all sessions at once."""
    n, bodies = len(members), Bodies()
    for part, pieces in enumerate(parts):
        size = sum(_ENTRY + 9 * p.size for p in pieces)
        if part == 0:
            motion, actual, effort = head
            size += 1 + 9 + 9 + 1 + 3 + (1 if motion is None else 3 + 9 * MOTION_NUMBERS) + 3 + 9 * shape.actuators
            size += (1 if effort is None else 3 + 9 * EFFORT_NUMBERS) + 3 + (5 if kind is Type.STEP else 0)
            matrix = np.empty((n, HEADER_BYTES + size), np.uint8)
            start = (b"\x99" if kind is Type.STEP else b"\x98") + _prefix(view, len(parts) - 1)
            at = _bytes(matrix, HEADER_BYTES, start)
            for block in (motion, actual, effort):
                if block is None:
                    at = _bytes(matrix, at, b"\xc0")
                else:
                    at = _float64(matrix, _bytes(matrix, at, _array(block.shape[1])), block)
        else:
            matrix = np.empty((n, HEADER_BYTES + _SENSORS + size), np.uint8)
            start = b"\x93\xcf" + view.tick.to_bytes(8, "big") + _uint(part - 1)
            at = _bytes(matrix, HEADER_BYTES, start)
        at = _bytes(matrix, at, _array(len(pieces)))
        for p in pieces:
            numbers_, time = values[p.sensor]
            at = _bytes(matrix, at, b"\x94" + _uint(shape.sensors[p.sensor][0]))
            at = _uint64(matrix, at, time)
            at = _bytes(matrix, at, _uint(p.first) + _array(p.size))
            at = _float64(matrix, at, numbers_[:, p.first : p.first + p.size])
        if part == 0 and kind is Type.STEP:
            last = np.array([m.session.outbox.last for m in members], ">u4").view(np.uint8).reshape(n, 4)
            matrix[:, at], matrix[:, at + 1 : at + 5] = 0xCE, last
        bodies.append((kind if part == 0 else Type.SENSORS, matrix))
    return bodies


def _packed(
    shape: Shape, parts: tuple[tuple[Piece, ...], ...], head: tuple[Any, Any, Any], values: list[tuple[Any, Any]],
    view: View, kind: Type, members: list[Member],
) -> Bodies:  # fmt: skip
    """The same for one session, with nil for each number that there is not."""
    bodies = Bodies()
    for part, pieces in enumerate(parts):
        entries = []
        for p in pieces:
            numbers_ = values[p.sensor][0][0, p.first : p.first + p.size].tolist()
            kept = [v if math.isfinite(v) else None for v in numbers_]
            entries.append([shape.sensors[p.sensor][0], int(values[p.sensor][1][0]), p.first, kept])
        if part == 0:
            blocks = [None if block is None else block[0].tolist() for block in head]
            body = [view.tick, view.time_ns, view.run_state, len(parts) - 1, *blocks, entries]
            if kind is Type.STEP:
                body.append(members[0].session.outbox.last)
        else:
            body = [view.tick, part - 1, entries]
        data = bytes(HEADER_BYTES) + msgpack.packb(body)
        bodies.append((kind if part == 0 else Type.SENSORS, np.frombuffer(data, np.uint8).reshape(1, -1).copy()))
    return bodies


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


def finished(sessions: Sequence[Session], kind: Type, matrix: Any) -> list[Any]:
    """The datagrams: headers filled in, bodies sealed. One matrix for all, or one of a row for each."""
    heads = np.zeros(len(sessions), _HEADER)
    heads["magic"], heads["version"], heads["type"] = MAGIC, VERSION, kind
    for s in sessions:
        s.sequence += 1
        s.datagrams_out += 1
        s.ack_at = None
    heads["flags"] = sessions[0].seal is not None  # all have one, or none
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
        sealed = s.seal.close(data[:HEADER_BYTES], data[HEADER_BYTES:], s.sequence)
        rows.append(np.frombuffer(data[:HEADER_BYTES] + sealed, np.uint8).reshape(1, -1))
    return rows
