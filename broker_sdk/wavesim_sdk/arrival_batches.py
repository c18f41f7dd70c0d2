"""Batches of waveforms, fronts and sounds on their way to a hydrophone emulator on another machine."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.front_tables import FRONT, FRONT_TABLES, SOUND, WAVEFORM, FrontBatch, StoredSound
from wavesim_sdk.tables import Table
from wavesim_sdk.wire.emulator_items import MAX_TABLE_DATA, ArrivalPart, Arrivals

__all__ = ["ARRIVAL_TABLES", "ArrivalCollector", "split_batch"]

#: tables of arrivals, by name; an emulator receives their records as soon as these are written
ARRIVAL_TABLES: dict[str, Table] = {t.name: t for t in FRONT_TABLES}
LEVEL = 1  #: level of compression: the fastest


def split_batch(batch: FrontBatch) -> Iterator[Arrivals | ArrivalPart]:
    """Yield the events that carry a batch; none if it is empty."""
    waveforms, fronts, sounds = batch.waveforms, batch.fronts, np.zeros(len(batch.sounds), SOUND.dtype)
    if not (batch.is_restarted or batch.lost or len(waveforms) or len(fronts)):
        return
    for row, sound in zip(sounds, batch.sounds, strict=True):
        row["number"], row["offset"], row["sampling"] = sound.number, sound.offset, sound.sampling
        row["count"] = len(sound.samples)
    yield Arrivals(int(batch.is_restarted), batch.lost, len(waveforms), len(fronts), len(sounds))
    data = zlib.compress(b"".join(records.tobytes() for records in (waveforms, fronts, sounds)), LEVEL)
    data += b"".join(sound.samples.astype("<f4").tobytes() for sound in batch.sounds)
    for at in range(0, len(data), MAX_TABLE_DATA):
        yield ArrivalPart(data[at : at + MAX_TABLE_DATA])


class ArrivalCollector:
    """Collector of the events of :func:`split_batch`."""

    def __init__(self) -> None:
        self._announced = Arrivals(0, 0, 0, 0, 0)
        self._data = bytearray()

    def feed(self, event: Arrivals | ArrivalPart) -> None:
        """Add an event."""
        if isinstance(event, Arrivals):
            self._announced, self._data = event, bytearray()
        else:
            self._data += event.data

    def take(self, time_ns: int) -> FrontBatch:
        """Return the batch that is complete up to a simulation time in ns. Raises ValueError if its bytes are invalid."""
        batch, data = self._announced, bytes(self._data)
        self._announced, self._data = Arrivals(0, 0, 0, 0, 0), bytearray()
        middle = batch.waveforms * WAVEFORM.dtype.itemsize
        end = middle + batch.fronts * FRONT.dtype.itemsize
        size = end + batch.sounds * SOUND.dtype.itemsize
        try:
            unpacker = zlib.decompressobj()
            records = unpacker.decompress(data, size + 1) if data else b""
        except zlib.error as error:
            raise ValueError(f"the arrivals from the server cannot be decompressed: {error}") from None
        if len(records) != size:
            raise ValueError(f"the server announced {size} bytes of arrivals, but sent {len(records)} bytes")
        rest = unpacker.unused_data if data else b""
        return FrontBatch(
            np.frombuffer(records[:middle], WAVEFORM.dtype),
            np.frombuffer(records[middle:end], FRONT.dtype),
            time_ns,
            bool(batch.restart),
            batch.lost,
            _sounds(np.frombuffer(records[end:], SOUND.dtype), rest),
        )


def _sounds(described: Record, samples: bytes) -> tuple[StoredSound, ...]:
    """Return sounds, given their records and the bytes of all samples, one sound after the other."""
    counts = described["count"]
    if counts.min(initial=0) < 0 or 4 * int(counts.sum()) != len(samples):
        raise ValueError(f"the server announced {int(counts.sum())} samples of sounds, but sent {len(samples)} bytes")
    ends = np.cumsum(counts)
    values = np.frombuffer(samples, "<f4")
    return tuple(
        StoredSound(int(r["number"]), k, int(r["offset"]), float(r["sampling"]), values[end - int(r["count"]) : end])
        for k, (r, end) in enumerate(zip(described, ends.tolist(), strict=True))
    )
