"""Records of bounded size for the front's log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import AttachError
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import LINES
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.messages import MAX_RECORD_BYTES, LogRecordsEvent, SignalsEvent

TRIES = 50  #: maximum number of attempts to copy a table that is being written


def _bounded_slices(records: Record) -> Iterator[slice]:
    """Yield slices of at most MAX_RECORD_BYTES."""
    size = max(1, MAX_RECORD_BYTES // records.dtype.itemsize)
    for first in range(0, len(records), size):
        yield slice(first, first + size)


def signal_records(sent: Record, receptions: Record, generations: Any) -> Iterator[SignalsEvent]:
    """Yield signals sent, then receptions with their outcomes; ``generations`` holds the generations of all rows.

    Signals come first, because a receiver looks up their payload.
    """
    if not len(sent) and not len(receptions):
        return
    senders, receivers = generations[sent["source"]], generations[receptions["receiver"]]
    if len(sent) * sent.dtype.itemsize + len(receptions) * receptions.dtype.itemsize <= MAX_RECORD_BYTES:
        yield SignalsEvent(sent.tobytes(), receptions.tobytes(), senders.tobytes(), receivers.tobytes())
        return
    for s in _bounded_slices(sent):
        yield SignalsEvent(sent[s].tobytes(), b"", senders[s].tobytes(), b"")
    for s in _bounded_slices(receptions):
        yield SignalsEvent(b"", receptions[s].tobytes(), b"", receivers[s].tobytes())


class LoggedSequences:
    """The sensor values that have been logged."""

    def __init__(self, vehicles: SharedMemoryArea, instruments: InstrumentRegistry) -> None:
        self.vehicles, self.instruments = vehicles, instruments
        self._sequences = {s: np.zeros(vehicles[s].capacity, np.int64) for s in instruments.types}

    def take_new(self) -> Iterator[tuple[str, Any, Record]]:
        """Yield (type, body and number of each instrument, records) of all values that are new since the last call."""
        for type_, seen in self._sequences.items():
            try:
                values = self.vehicles[type_].snapshot(TRIES)[1]
            except AttachError:  # the emulator writes invalid data, or all the time; the next record may be readable
                continue
            places, owners = self.instruments.current_owners(type_, values["generation"])
            fresh = values["sequence"][places] != seen[places]
            if fresh.any():
                places = places[fresh]
                seen[places] = values["sequence"][places]
                yield type_, owners[fresh], _visible_columns(type_, values[places])


def _visible_columns(type_: str, values: Record) -> Record:
    """Return the values without the hidden columns, which come last."""
    dtype = sensor_table_of(type_).visible.dtype
    words = values.view(np.int64).reshape(len(values), values.dtype.itemsize // 8)
    return np.ascontiguousarray(words[:, : dtype.itemsize // 8]).view(dtype)[:, 0]


def log_records(
    tick: int, tables: Mapping[str, Sequence[int]], vehicles: SharedMemoryArea, seen: LoggedSequences, generations: Any
) -> Iterator[LogRecordsEvent]:
    """Yield the rows of each table, then the sensor values that are new since the last call.

    ``generations`` holds the generations of all rows.
    """
    for table, present in tables.items():
        rows = np.array(present, np.int64)  # also when empty
        yield from _log_pieces(tick, table, rows, vehicles[table].latest[rows], generations[rows])
    for sensor, who, values in seen.take_new():
        yield from _log_pieces(tick, sensor, who, values, generations[who[:, 0]])


def line_records(tick: int, vehicles: SharedMemoryArea) -> Iterator[LogRecordsEvent]:
    """Yield the rows of the lines that exist. Lines do not belong to a body, so their generation is 0."""
    table = vehicles[LINES.name].latest
    rows = np.flatnonzero(table["present"] == 1)
    if len(rows):
        yield from _log_pieces(tick, LINES.name, rows, table[rows], np.zeros(len(rows), np.int64))


def _log_pieces(tick: int, table: str, rows: Any, records: Record, generations: Any) -> Iterator[LogRecordsEvent]:
    for s in _bounded_slices(records):
        yield LogRecordsEvent(tick, table, rows[s].tobytes(), records[s].tobytes(), generations[s].tobytes())
