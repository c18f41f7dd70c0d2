"""What the front logs, as records of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.area import Area, Record
from wavesim_server.instruments import Instruments
from wavesim_server.messages import MOST_BYTES, Log, Signals


def _pieces(records: Record) -> Iterator[slice]:
    """Slices of at most MOST_BYTES."""
    size = max(1, MOST_BYTES // records.dtype.itemsize)
    for first in range(0, len(records), size):
        yield slice(first, first + size)


def signal_records(sent: Record, receptions: Record) -> Iterator[Signals]:
    """Signals sent (first: who hears them asks for their payload), heard and lost."""
    if len(sent) * sent.dtype.itemsize + len(receptions) * receptions.dtype.itemsize <= MOST_BYTES:
        if len(sent) or len(receptions):
            yield Signals(sent.tobytes(), receptions.tobytes())
        return
    for s in _pieces(sent):
        yield Signals(sent[s].tobytes(), b"")
    for s in _pieces(receptions):
        yield Signals(b"", receptions[s].tobytes())


class Seen:
    """Which values of the sensors were logged already."""

    def __init__(self, vehicles: Area, instruments: Instruments) -> None:
        self.vehicles, self.instruments = vehicles, instruments
        self._sequences = {s: np.zeros(vehicles[s].capacity, np.int64) for s in instruments.types}

    def new(self) -> Iterator[tuple[str, Any, Record]]:
        """(type, (body, number) of each instrument, its record) of what is new since the last call."""
        there = self.instruments.rows[self.instruments.rows["body"] >= 0]
        for s, seen in self._sequences.items():
            who = there[there["type"] == s.encode()]
            if not len(who):
                continue
            places = who["place"]
            values = self.vehicles[s].snapshot()[1][places]
            fresh = (values["sequence"] != seen[places]) & (values["sequence"] > 0)
            fresh &= values["generation"] == who["generation"]
            if fresh.any():
                seen[places[fresh]] = values["sequence"][fresh]
                yield s, np.column_stack([who["body"], who["number"]])[fresh], values[fresh]


def log_records(tick: int, present: Sequence[int], vehicles: Area, seen: Seen, tables: Sequence[str]) -> Iterator[Log]:
    """The tables' rows that are there, and the sensor values that are new since the last call."""
    rows = np.array(present, np.int64)  # also where there is none
    for table in tables:
        yield from _log(tick, table, rows, vehicles[table].latest[rows])
    for sensor, who, values in seen.new():
        yield from _log(tick, sensor, who, values)


def _log(tick: int, table: str, rows: Any, records: Record) -> Iterator[Log]:
    for s in _pieces(records):
        yield Log(tick, table, rows[s].tobytes(), records[s].tobytes())
