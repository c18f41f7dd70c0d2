"""Shared-memory rings through which the engine passes fronts and waveforms to the emulator of hydrophones.

A segment ``/wavesim.NAME.fronts`` contains a ring of WAVEFORM records, a ring of FRONT records, the table SOUND and the
samples of sounds (see :mod:`wavesim_sdk.front_tables`). The segment begins like the other segments: magic ``WAVEFRNT``,
version, 16 bytes of the record hash, the size of the segment, and the PID and start time of the server. Eleven integers of
8 bytes follow; see :class:`FrontRings`.

Each ring has one writer, the engine, and any number of readers. Record n (counted from 0) is in slot ``n % capacity``.
The writer first adds the number of new records to ``begun``, then copies them, and then sets ``done``. A reader copies
the records up to ``done`` and then checks ``begun``: record n is valid if ``n >= begun - capacity``. The waveform of a
signal is written before its fronts, so a reader reads ``done`` of the fronts first.

Each row of SOUND belongs to one sound, whose samples are 32-bit floating-point values from ``offset`` on. They stay there
as long as the sound can be heard. The writer sets ``number`` to 0 before it changes a row or its samples, and to the number
of the sound afterwards. A reader must find the same number before and after it copies the samples; otherwise, it has
lost the sound.
The samples of a sound are written before the first waveform that refers to them.

If the simulation time changes (start, reset, or return to a snapshot), the writer begins a new epoch. It then repeats
the recent records that are needed to continue, and readers discard everything from earlier epochs.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.errors import AttachError
from wavesim_sdk.front_tables import FRONT, SOUND, SOUND_SLOTS, WAVEFORM, FrontBatch, StoredSound
from wavesim_sdk.shared_memory import RingSegment, require_owner, segment_name
from wavesim_sdk.sounds import MAX_SAMPLES

__all__ = ["FrontBatch", "FrontReader", "FrontRings"]

MAGIC = b"WAVEFRNT"
VERSION = 2
HEADER, HEADER_NUMBERS = 4096, 18
FRONTS_PER_HYDROPHONE = 16_384  #: capacity of the ring of fronts for each hydrophone
MAX_FRONTS, WAVEFORMS = 131_072, 4096  #: maximum capacity of the ring of fronts, and capacity of the ring of waveforms
#: indices of numbers in the header
FRONT_CAPACITY, WAVEFORM_CAPACITY, EPOCH, TIME = 7, 8, 9, 10
FIRST_WAVEFORM, WAVEFORMS_BEGUN, WAVEFORMS_DONE, FIRST_FRONT, FRONTS_BEGUN, FRONTS_DONE, DISCARDED = range(11, 18)
SEGMENT = RingSegment(
    "fronts",
    MAGIC,
    VERSION,
    hashlib.sha256(repr((WAVEFORM.dtype.descr, FRONT.dtype.descr, SOUND.dtype.descr)).encode())
    .hexdigest()[:16]
    .encode(),
    HEADER,
    "segment of fronts",
    "hydrophones",
)


def front_capacity(hydrophones: int) -> int:
    """Return the capacity of the ring of fronts for a number of hydrophones with up to eight elements."""
    return min(FRONTS_PER_HYDROPHONE * max(hydrophones, 1), MAX_FRONTS)


class FrontRings:
    """Rings of waveforms and fronts of a server in mapped memory."""

    def __init__(self, memory: Any) -> None:
        self.header = np.frombuffer(memory, np.int64, HEADER_NUMBERS, 0)
        fronts, waveforms = int(self.header[FRONT_CAPACITY]), int(self.header[WAVEFORM_CAPACITY])
        self.waveforms = np.frombuffer(memory, WAVEFORM.dtype, waveforms, HEADER)
        self.fronts = np.frombuffer(memory, FRONT.dtype, fronts, HEADER + self.waveforms.nbytes)
        place = HEADER + self.waveforms.nbytes + self.fronts.nbytes
        self.sounds = np.frombuffer(memory, SOUND.dtype, SOUND_SLOTS, place)
        self.samples = np.frombuffer(memory, np.float32, MAX_SAMPLES, place + self.sounds.nbytes)

    @classmethod
    def create(cls, server: str, hydrophones: int, group: bool = False) -> FrontRings:
        """Create the segment of a server with this number of hydrophones; one with more than eight elements counts once per
        group of eight. Raises OSError on failure."""
        capacity = front_capacity(hydrophones)
        size = _segment_size(WAVEFORMS, capacity)
        memory = SEGMENT.create(server, size, (capacity, WAVEFORMS), group)
        return cls(memory)

    @classmethod
    def attach(cls, server: str, writable: bool = False) -> FrontRings:
        """Map the rings of a server. Raises NotRunning or AttachError, with the reason, on failure."""
        memory = SEGMENT.attach(server, writable)
        header = [int(n) for n in np.frombuffer(memory, np.int64, HEADER_NUMBERS)]
        fronts, waveforms = header[FRONT_CAPACITY], header[WAVEFORM_CAPACITY]
        if min(fronts, waveforms) < 1 or _segment_size(waveforms, fronts) > len(memory):
            raise AttachError(
                f"{segment_name(server, SEGMENT.part)} is damaged: its rings do not fit into its {len(memory)} bytes"
            )
        require_owner(server, memory)
        return cls(memory)

    def write(self, batch: FrontBatch) -> None:
        """Append the records of a batch. Only the engine may call this."""
        header = self.header
        if batch.is_restarted:
            header[FIRST_WAVEFORM], header[FIRST_FRONT] = header[WAVEFORMS_DONE], header[FRONTS_DONE]
            header[EPOCH] += 1
        for sound in batch.sounds:
            self._store(sound)
        _append(header, WAVEFORMS_BEGUN, self.waveforms, batch.waveforms)
        _append(header, FRONTS_BEGUN, self.fronts, batch.fronts)
        header[DISCARDED] += batch.lost  # by the engine, before it wrote them
        header[TIME] = batch.time_ns

    def _store(self, sound: StoredSound) -> None:
        """Store a sound unless it is already stored. The sounds that it overwrites can no longer be heard."""
        end, table = sound.offset + len(sound.samples), self.sounds
        row = table[sound.slot]
        is_there = (
            row["number"] == sound.number and row["offset"] == sound.offset and row["count"] == len(sound.samples)
        )
        if is_there and np.array_equal(self.samples[sound.offset : end], sound.samples):
            return
        table["number"][(table["offset"] < end) & (table["offset"] + table["count"] > sound.offset)] = 0
        row["number"] = 0
        row["offset"], row["count"], row["sampling"] = sound.offset, len(sound.samples), sound.sampling
        self.samples[sound.offset : end] = sound.samples
        row["number"] = sound.number

    def find_sound(self, number: int) -> StoredSound | None:
        """Return a copy of a sound, or None if it is not stored (any more)."""
        slots = np.flatnonzero(self.sounds["number"] == number)
        if not len(slots):
            return None
        slot = int(slots[0])
        row = self.sounds[slot]
        offset, count, sampling = int(row["offset"]), int(row["count"]), float(row["sampling"])
        samples = self.samples[offset : offset + count].copy()
        return StoredSound(number, slot, offset, sampling, samples) if int(row["number"]) == number else None


def _segment_size(waveforms: int, fronts: int) -> int:
    rings = waveforms * WAVEFORM.dtype.itemsize + fronts * FRONT.dtype.itemsize
    return HEADER + rings + SOUND_SLOTS * SOUND.dtype.itemsize + 4 * MAX_SAMPLES


def _append(header: Any, begun: int, ring: Record, records: Record) -> None:
    """Append records to a ring; its number of complete records follows the number ``begun`` in the header."""
    capacity, piece = len(ring), max(len(ring) // 4, 1)
    for first in range(0, len(records), piece):
        part = records[first : first + piece]
        n = int(header[begun + 1])
        header[begun] = n + len(part)
        at = n % capacity
        head = min(len(part), capacity - at)
        ring[at : at + head] = part[:head]
        ring[: len(part) - head] = part[head:]
        header[begun + 1] = n + len(part)


class FrontReader:
    """Reader of the waveforms and fronts of a server. The first batch contains all records that the rings still hold.

    ``lost`` counts the records and sounds that were overwritten before they were read.
    """

    def __init__(self, rings: FrontRings) -> None:
        self.rings = rings
        self.lost = 0
        self._epoch = -1
        self._waveforms = self._fronts = 0  # numbers of the next records
        self._discarded = 0  # number of records that the engine had discarded at the last call

    @classmethod
    def open(cls, server: str) -> FrontReader:
        """Open the fronts of a running server. Raises NotRunning or AttachError, with the reason, on failure."""
        return cls(FrontRings.attach(server))

    def take(self) -> FrontBatch:
        """Return the records since the last call."""
        header, rings = self.rings.header, self.rings
        while True:
            epoch, is_restarted = int(header[EPOCH]), False
            waveform, front = self._waveforms, self._fronts
            if epoch != self._epoch:
                is_restarted = True
                waveform, front = int(header[FIRST_WAVEFORM]), int(header[FIRST_FRONT])
            discarded = int(header[DISCARDED])
            time_ns = int(header[TIME])  # before the counts, so that the fronts are complete until then
            fronts, front, lost_fronts = _read(header, FRONTS_BEGUN, rings.fronts, front)
            waveforms, waveform, lost_waveforms = _read(header, WAVEFORMS_BEGUN, rings.waveforms, waveform)
            numbers = dict.fromkeys(int(n) for n in waveforms["samples"] if n)
            sounds = [sound for n in numbers if (sound := rings.find_sound(n)) is not None]
            if int(header[EPOCH]) == epoch:
                break
        lost = 0 if is_restarted else lost_fronts + lost_waveforms + len(numbers) - len(sounds)
        lost += 0 if is_restarted else discarded - self._discarded
        self._discarded = discarded
        self._epoch, self._waveforms, self._fronts = epoch, waveform, front
        self.lost += lost
        return FrontBatch(waveforms, fronts, time_ns, is_restarted, lost, tuple(sounds))


def _read(header: Any, begun: int, ring: Record, number: int) -> tuple[Record, int, int]:
    """Return (records from ``number`` on, number of the next record, number of lost records)."""
    capacity, done = len(ring), int(header[begun + 1])
    first = max(number, done - capacity)
    copy = ring[np.arange(first, done) % capacity]
    valid = min(max(first, int(header[begun]) - capacity), done)
    return copy[valid - first :], done, valid - number
