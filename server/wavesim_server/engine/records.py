"""Log records of bounded size, for the front end to write."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import AttachError
from wavesim_sdk.sensors import sensor_table_of
from wavesim_sdk.shared_memory import DONE, SharedMemoryArea, TableView
from wavesim_sdk.tables import LINES
from wavesim_server.instruments import InstrumentRegistry
from wavesim_server.messages import (
    MAX_RECORD_BYTES,
    NO_BODY,
    ChannelStatesEvent,
    LogRecordsEvent,
    SignalsEvent,
    SoundEvent,
)
from wavesim_server.simulation import Simulation

TRIES = 50  #: maximum number of attempts to copy a table that is being written


def _bounded_slices(records: Record) -> Iterator[slice]:
    """Yield slices of a sequence with at most MAX_RECORD_BYTES each."""
    size = max(1, MAX_RECORD_BYTES // records.dtype.itemsize)
    for first in range(0, len(records), size):
        yield slice(first, first + size)


def signal_records(sent: Record, receptions: Record, generations: Any) -> Iterator[SignalsEvent]:
    """Yield the sent signals, then the receptions with their outcomes; ``generations`` contains the generations of all
    rows.

    Signals come first, because the front end looks up the payload of the signal when it handles a reception.
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


def played_sounds(sent: Record, simulation: Simulation, logged: set[int]) -> Iterator[SoundEvent]:
    """Yield the sounds among the sent signals that are not in ``logged``, a set of their numbers, and add them to it."""
    for row in sent:
        sound = simulation.channel.sound_of(int(row["id"]))
        if sound is None or sound.number in logged:
            continue
        logged.add(sound.number)
        name = simulation.identity["name"][int(row["source"])].decode()
        data = sound.samples.astype("<f4").tobytes()
        yield SoundEvent(int(row["emission_ns"]), int(row["id"]), name, sound.sampling, data)


def channel_state_records(changes: Record, generations: Any) -> Iterator[ChannelStatesEvent]:
    """Yield the changes of the channel at transducers with carrier sense; ``generations`` contains the generations of all
    rows.
    """
    for s in _bounded_slices(changes):
        rows, busy, times = (changes[s][name].tolist() for name in ("receiver", "busy", "clock_ns"))
        yield ChannelStatesEvent(rows, generations[rows].tolist(), busy, times)


class _Piece(NamedTuple):
    """Records in one table and, for each record, the row of the body, the number of the instrument (or 0), and the
    generation.
    """

    table: str
    size: int  #: number of log records
    rows: bytes
    records: bytes
    generations: bytes

    def split(self) -> Iterator[_Piece]:
        """Yield pieces of the records with at most MAX_RECORD_BYTES each."""
        if len(self.records) <= MAX_RECORD_BYTES:
            yield self
            return
        width = len(self.records) // self.size
        most = max(1, MAX_RECORD_BYTES // width)
        for first in range(0, self.size, most):
            n = min(most, self.size - first)
            cut = (data[first * w : (first + n) * w] for data, w in zip(self[2:], (16, width, 8), strict=True))
            yield _Piece(self.table, n, *cut)


class _Bodies:
    """Bodies whose rows are logged."""

    def __init__(self, present: Sequence[int], generations: Any) -> None:
        self.present = tuple(present)
        self.rows = np.array(present, np.int64)
        self.row_bytes = np.column_stack([self.rows, np.zeros_like(self.rows)]).tobytes()
        self.generation_bytes = generations[self.rows].tobytes()


class _SensorValues:
    """The table of a sensor type, and the values in it that have already been logged."""

    def __init__(self, table: TableView, type_: str) -> None:
        declared = sensor_table_of(type_)
        columns = declared.first_columns
        self._table, self._type = table, type_
        self._sequence, self._generation = columns["sequence"], columns["generation"]
        self._width = declared.visible.dtype.itemsize // 8  # hidden columns come last
        self._places = self._logged = np.zeros(
            0, np.int64
        )  # occupied rows, and the last sequence number logged of each
        self._written = -1  # number of writes of the table at the last call

    def set_instruments(self, instruments: InstrumentRegistry, generations: Any) -> None:
        """Set which instruments are in the simulation."""
        logged = np.zeros(self._table.capacity, np.int64)
        logged[self._places] = self._logged
        self._places, self._made, self._owners = instruments.occupied(self._type)
        self._logged, self._written = logged[self._places], -1
        self._generations = generations[self._owners[:, 0]]
        self._all = self._owners.tobytes(), self._generations.tobytes()

    def take_new(self) -> _Piece | None:
        """Return the values that are new since the last call, without the hidden columns; None means that nothing is
        new.
        """
        written = int(self._table.header[DONE])
        if written == self._written:
            return None
        try:
            values = self._table.take(self._places, TRIES)
        except AttachError:  # the emulator writes invalid data, or all the time; the next record may be readable
            return None
        self._written = written
        sequences = values[:, self._sequence]
        new = (sequences != self._logged) & (values[:, self._generation] == self._made)
        count = int(np.count_nonzero(new))
        if not count:
            return None
        rows, generations = self._all
        if count < len(new):
            sequences, values = np.where(new, sequences, self._logged), values[new]
            rows, generations = self._owners[new].tobytes(), self._generations[new].tobytes()
        self._logged = sequences
        return _Piece(self._type, count, rows, values[:, : self._width].tobytes(), generations)


class LoggedSequences:
    """The bodies and sensor values to log, and the sensor values that have already been logged."""

    def __init__(self, vehicles: SharedMemoryArea, instruments: InstrumentRegistry) -> None:
        self._instruments, self._version = instruments, -1
        self._sensors = [_SensorValues(vehicles[s], s) for s in instruments.types]
        self._bodies: dict[str, _Bodies] = {}  # by table

    def update(self, generations: Any) -> None:
        """Update the bodies and instruments if they have changed. ``generations`` contains the generations of all rows."""
        if self._version != self._instruments.version:
            self._version = self._instruments.version
            self._bodies.clear()
            for values in self._sensors:
                values.set_instruments(self._instruments, generations)

    def bodies(self, table: str, present: Sequence[int], generations: Any) -> _Bodies:
        """Return the bodies whose rows in a table are logged."""
        known = self._bodies.get(table)
        if known is None or known.present != tuple(present):
            known = self._bodies[table] = _Bodies(present, generations)
        return known

    def take_new(self) -> Iterator[_Piece]:
        """Yield all sensor values that are new since the last call."""
        for values in self._sensors:
            if (piece := values.take_new()) is not None:
                yield piece


def log_records(
    tick: int, tables: Mapping[str, Sequence[int]], vehicles: SharedMemoryArea, seen: LoggedSequences, generations: Any
) -> Iterator[LogRecordsEvent]:
    """Yield the rows of each table, and the sensor values that are new since the last call.

    ``generations`` contains the generations of all rows.
    """
    seen.update(generations)
    pieces = []
    for table, present in tables.items():
        if present:
            b = seen.bodies(table, present, generations)
            records = vehicles[table].latest_words.take(b.rows, 0).tobytes()
            pieces.append(_Piece(table, len(present), b.row_bytes, records, b.generation_bytes))
    return _events(tick, [*pieces, *seen.take_new()])


def line_records(tick: int, vehicles: SharedMemoryArea) -> Iterator[LogRecordsEvent]:
    """Yield the rows of the lines that exist. Lines do not belong to a body."""
    table = vehicles[LINES.name]
    rows = np.flatnonzero(table.latest["present"] == 1)
    if len(rows):
        lines = _Bodies(rows.tolist(), np.full(table.capacity, NO_BODY))
        records = table.latest_words.take(rows, 0).tobytes()
        yield from _events(tick, [_Piece(LINES.name, len(rows), lines.row_bytes, records, lines.generation_bytes)])


def _events(tick: int, pieces: Sequence[_Piece]) -> Iterator[LogRecordsEvent]:
    """Yield events that together contain all pieces, with at most MAX_RECORD_BYTES of records each."""
    together, size = list[_Piece](), 0
    for piece in itertools.chain.from_iterable(p.split() for p in pieces):
        if together and size + len(piece.records) > MAX_RECORD_BYTES:
            yield _event(tick, together)
            together, size = [], 0
        together.append(piece)
        size += len(piece.records)
    if together:
        yield _event(tick, together)


def _event(tick: int, pieces: Sequence[_Piece]) -> LogRecordsEvent:
    tables, counts, rows, records, generations = zip(*pieces, strict=True)
    return LogRecordsEvent(tick, tables, counts, b"".join(rows), b"".join(records), b"".join(generations))
