"""STATE datagrams of many sessions at once: the bytes of docs/PROTOCOL.md written as rows of a matrix.

A message of known shape has its numbers at fixed places; so NumPy fills those of all sessions together, a hundred times
faster than packing lists.  Shapes differ by the sensors that have a value now; a value with a gap in it is packed singly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgpack
import numpy as np

from wavesim_sdk.area import DONE, Area, Record
from wavesim_sdk.config import Loaded
from wavesim_sdk.sensors import HEAD, numbers
from wavesim_sdk.wire.messages import MAGIC, VERSION, Type
from wavesim_sdk.wire.server import Session

Snapshot = tuple[Record, Record, dict[str, Record]]


STALE_PERIODS = 5.0


class Carried(NamedTuple):
    """An instrument whose values may be sent; older ones are stale: its emulator is dead, frozen or too slow."""

    name: str
    type: str
    place: int
    generation: int
    fresh_ns: int
    count: int


class Sensors:
    """Which instruments of which rows have a value that may be sent."""

    def __init__(self, loaded: Loaded, vehicles: Area) -> None:
        self.loaded, self.vehicles = loaded, vehicles
        self._version = -1
        self._carried: dict[int, list[Carried]] = {}

    def carried(self, row: int) -> list[Carried]:
        """What a row carries."""
        if self._version != (version := int(self.vehicles["instruments"].header[DONE])):
            self._version = version
            self._carried.clear()
            identity = self.vehicles["identity"].snapshot()[1]
            for r in self.vehicles["instruments"].snapshot()[1]:
                if r["body"] < 0 or not r["type"]:
                    continue
                who = identity[r["body"]]
                suite = self.loaded.suite_for(bytes(who["name"]).decode(), bytes(who["model"]).decode())
                found = suite[r["number"]] if r["number"] < len(suite) else None
                if found is None or found.name != bytes(r["name"]).decode() or not found.parameters.send:
                    continue
                fresh = round((STALE_PERIODS / found.parameters.rate + found.parameters.latency) * 1e9)
                self._carried.setdefault(int(r["body"]), []).append(
                    Carried(found.name, found.type, int(r["place"]), int(r["generation"]), fresh, numbers(found.table))
                )
        return self._carried.get(row, [])

    def present(self, row: int, now_ns: int, tables: dict[str, Record]) -> list[Carried]:
        """Those with a value."""
        found = []
        for c in self.carried(row):
            r = tables[c.type][c.place]
            if r["valid"] and r["generation"] == c.generation and now_ns - int(r["time_ns"]) <= c.fresh_ns:
                found.append(c)
        return found

    def of(self, row: int, now_ns: int, tables: dict[str, Record]) -> dict[str, list[float | None]]:
        """Instrument -> time and values of a row; None for a number that there is not."""
        found: dict[str, list[float | None]] = {}
        for c in self.present(row, now_ns, tables):
            table = tables[c.type][c.place : c.place + 1]
            values = table.view(np.float64)[HEAD : HEAD + c.count].tolist()
            found[c.name] = [int(table["time_ns"][0]), *(v if math.isfinite(v) else None for v in values)]
        return found


class Writer:
    """Writes the STATE of many sessions."""

    def __init__(self, sensors: Sensors) -> None:
        self.sensors = sensors

    def write(
        self, sessions: Sequence[Session], tick: int, time_ns: int, run_state: int, snapshot: Snapshot
    ) -> Iterator[tuple[list[Session], Any]]:
        """(sessions, their datagrams as rows of bytes), sealed where they have a seal; sequence numbers are taken."""
        state, actuation, tables = snapshot
        for s in sessions:
            row = s.admission.id
            moves = state[row : row + 1].view(np.float64).tolist() if s.admission.truth else None
            values = self.sensors.of(row, time_ns, tables)
            body = msgpack.packb([tick, time_ns, run_state, moves, actuation["actual"][row].tolist(), values])
            yield [s], _row(_sealed(s, _headers([s]).tobytes(), body))


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
