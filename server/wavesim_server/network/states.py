"""STATE datagrams of many sessions at once: the bytes of docs/PROTOCOL.md written as rows of a matrix.

A message of known shape has its numbers at fixed places; so NumPy fills those of all sessions together, a hundred times
faster than packing lists.  Shapes differ by the sensors that have a value now; a value with a gap in it is packed singly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import msgpack
import numpy as np

from wavesim_sdk.area import Record
from wavesim_sdk.tables import MAX_ACTUATORS
from wavesim_sdk.wire.messages import HEADER_BYTES, MAGIC, MOTION_NUMBERS, VERSION, Type
from wavesim_sdk.wire.server import Session

Snapshot = tuple[Record, Record, dict[str, Record]]


class Sensors:
    """Which sensors of which rows have a value that may be sent."""

    def __init__(self, fresh_ns: dict[str, int]) -> None:
        self.fresh_ns = fresh_ns

    def of(self, row: int, now_ns: int, tables: dict[str, Record]) -> dict[str, list[float | None]]:
        """Sensor -> time and values of a row; None for a number that there is not."""
        found: dict[str, list[float | None]] = {}
        for name, table in tables.items():
            record = table[row]
            if record["valid"] and now_ns - int(record["time_ns"]) <= self.fresh_ns[name]:
                numbers = table[row : row + 1].view(np.float64)[4:].tolist()
                found[name] = [int(record["time_ns"]), *(v if math.isfinite(v) else None for v in numbers)]
        return found

    def shapes(self, rows: Any, now_ns: int, tables: dict[str, Record]) -> tuple[Any, Any]:
        """(bits of the sensors present, whether one of them has a gap) for each of some rows."""
        bits, gap = np.zeros(len(rows), np.int64), np.zeros(len(rows), bool)
        for k, (name, table) in enumerate(tables.items()):
            values = table[rows]
            here = (values["valid"] == 1) & (now_ns - values["time_ns"] <= self.fresh_ns[name])
            numbers = values.view(np.float64).reshape(len(rows), -1)[:, 4:]
            gap |= here & ~np.isfinite(numbers).all(axis=1)
            bits |= here.astype(np.int64) << k
        return bits, gap


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
    return bytes((0xDC, count >> 8, count & 0xFF))


class Writer:
    """Writes the STATE of many sessions."""

    def __init__(self, sensors: Sensors) -> None:
        self.sensors = sensors

    def write(
        self, sessions: Sequence[Session], tick: int, time_ns: int, run_state: int, snapshot: Snapshot
    ) -> Iterator[tuple[list[Session], Any]]:
        """(sessions, their datagrams as rows of bytes), sealed where they have a seal; sequence numbers are taken."""
        state, actuation, tables = snapshot
        groups: dict[tuple[bool, int, bool], list[Session]] = defaultdict(list)
        rows = np.array([s.admission.id for s in sessions])
        bits, gaps = self.sensors.shapes(rows, time_ns, tables)
        for s, b, gap in zip(sessions, bits.tolist(), gaps.tolist(), strict=True):
            groups[s.admission.truth, b, gap].append(s)
        for (truth, b, gap), members in groups.items():
            rows = np.array([s.admission.id for s in members])
            motion = state[rows].view(np.float64).reshape(len(rows), -1) if truth else None
            actual = actuation["actual"][rows]
            heads = _headers(members)
            if gap:
                for k, s in enumerate(members):
                    moves = None if motion is None else motion[k].tolist()
                    values = self.sensors.of(int(rows[k]), time_ns, tables)
                    body = msgpack.packb([tick, time_ns, run_state, moves, actual[k].tolist(), values])
                    yield [s], _row(_sealed(s, heads[k : k + 1].tobytes(), body))
                continue
            present = [name for k, name in enumerate(tables) if b >> k & 1]
            matrix = self._together(rows, tick, time_ns, run_state, motion, actual, tables, present)
            matrix[:, :HEADER_BYTES] = heads.view(np.uint8).reshape(len(heads), HEADER_BYTES)
            if members[0].seal is None:  # all have one, or none
                yield members, matrix
                continue
            for s, row in zip(members, matrix, strict=True):
                data = row.tobytes()
                yield [s], _row(_sealed(s, data[:HEADER_BYTES], data[HEADER_BYTES:]))

    def _together(
        self, rows: Any, tick: int, time_ns: int, run_state: int, motion: Any, actual: Any, tables: dict[str, Record],
        present: list[str],
    ) -> Any:  # fmt: skip
        """Rows of bytes with room for the header."""
        names = [msgpack.packb(name) for name in present]
        values = [tables[name][rows] for name in present]
        counts = [v.dtype.itemsize // 8 - 4 for v in values]
        size = 1 + 9 + 9 + 1 + (1 if motion is None else 3 + 9 * MOTION_NUMBERS) + 3 + 9 * MAX_ACTUATORS + 3
        size += sum(len(n) + 3 + 9 + 9 * c for n, c in zip(names, counts, strict=True))
        matrix = np.empty((len(rows), HEADER_BYTES + size), np.uint8)
        at = _bytes(matrix, HEADER_BYTES, b"\x96\xcf" + tick.to_bytes(8, "big") + b"\xcf" + time_ns.to_bytes(8, "big"))
        at = _bytes(matrix, at, bytes((run_state,)))
        if motion is None:
            at = _bytes(matrix, at, b"\xc0")
        else:
            at = _float64(matrix, _bytes(matrix, at, _array(MOTION_NUMBERS)), motion)
        at = _float64(matrix, _bytes(matrix, at, _array(MAX_ACTUATORS)), actual)
        at = _bytes(matrix, at, bytes((0xDE, 0, len(present))))
        for name, value, count in zip(names, values, counts, strict=True):
            at = _bytes(matrix, _bytes(matrix, at, name), _array(1 + count))
            at = _uint64(matrix, at, value["time_ns"])
            at = _float64(matrix, at, value.view(np.float64).reshape(len(rows), -1)[:, 4:])
        return matrix


def _sealed(session: Session, header: bytes, body: bytes) -> bytes:
    return header + (body if session.seal is None else session.seal.close(header, body, session.sequence))


def _row(data: bytes) -> Any:
    return np.frombuffer(data, np.uint8).reshape(1, -1)


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


def _headers(members: list[Session]) -> Any:
    """Headers of the next datagram of each session."""
    heads = np.zeros(len(members), _HEADER)
    heads["magic"], heads["version"], heads["type"] = MAGIC, VERSION, Type.STATE
    for s in members:
        s.sequence += 1
        s.datagrams_out += 1
        s.ack_at = None
    heads["flags"] = members[0].seal is not None
    heads["token"] = [s.token for s in members]
    heads["sequence"] = [s.sequence for s in members]
    heads["ack"] = [s.inbox.received for s in members]
    return heads
