"""What the front logs, as records of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.area import Area, Record
from wavesim_sdk.sensors import table_of
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


def log_records(
    tick: int,
    present: Sequence[int],
    vehicles: Area,
    instruments: Instruments,
    sequences: Mapping[str, np.ndarray[Any, np.dtype[np.int64]]],
) -> Iterator[Log]:
    """State and actuation of the rows that are there, and the values of instruments that are new since the last call.

    ``sequences`` holds the number of the newest value at each place of each type that was taken.
    """
    rows = np.array(present, np.int64)  # also where there is none
    for table in ("state", "actuation"):
        yield from _log(tick, table, rows, vehicles[table].latest[rows])
    for sensor, seen in sequences.items():
        values = vehicles[sensor].snapshot()[1]
        places, owners = instruments.at(sensor, values["generation"])
        new = values["sequence"][places] != seen[places]
        if new.any():
            places, owners = places[new], owners[new]
            seen[places] = values["sequence"][places]
            yield from _log(tick, sensor, owners, _told(sensor, values[places]))


def _told(type_: str, values: Record) -> Record:
    """Values without the hidden columns, which stand last."""
    dtype = table_of(type_).told.dtype
    words = values.view(np.int64).reshape(len(values), values.dtype.itemsize // 8)
    return np.ascontiguousarray(words[:, : dtype.itemsize // 8]).view(dtype)[:, 0]


def _log(tick: int, table: str, rows: np.ndarray[Any, np.dtype[np.int64]], records: Record) -> Iterator[Log]:
    for s in _pieces(records):
        yield Log(tick, table, rows[s].tobytes(), records[s].tobytes())
