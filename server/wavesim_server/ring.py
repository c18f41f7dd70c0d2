"""A bounded ring of records in shared memory, from one process to another.

Header: the magic "WVSMRING", then seven int64 (written, read, capacity, dropped, then free); data behind it.  A record is an
int32 length, an int32 kind, the payload, padding to 8 bytes.  One writer, one reader: each moves
its own counter only, after the bytes are in place (x86-64 and Python keep that order).

A record larger than a quarter of the ring goes in pieces, as the reader makes room; the upper half of
the kind says which piece it is.  Whoever finds a piece without the ones before it (a reader that came
after one that died, a record that its writer gave up) leaves it out.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import posix_ipc

from wavesim_sdk.errors import AttachError, NotRunning
from wavesim_sdk.shared_memory import create_memory, map_memory

_HEAD = struct.Struct("<ii")
_BASE = 64
MAGIC = b"WVSMRING"
WRITTEN, READ, CAPACITY, DROPPED = range(1, 5)
_WHOLE_PIECE, _FIRST_PIECE, _MIDDLE_PIECE, _LAST_PIECE = (piece << 16 for piece in range(4))
_KIND = (1 << 16) - 1

MAX_RECORD_BYTES = 256 * 1024 * 1024  #: a larger record is refused, so that its reader's memory has a bound


class PushResult(IntEnum):
    """What became of a record; only FULL is false."""

    FULL = 0  #: there is no room now, for it or for the rest of it: push the same record again, or drop it
    DONE = 1
    REFUSED = 2  #: too large for ever; counted as dropped


class Ring:
    """One direction of the hand-over between engine and front."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._memory = memory
        self._header = np.frombuffer(memory, np.int64, 8)
        self.capacity = int(self._header[CAPACITY])
        self._piece_bytes = max(self.capacity // 4, 16) - _HEAD.size
        self._record_begun: tuple[int, bytes] | None = None  # the record of which the first _sent bytes are in the ring
        self._sent = 0
        self._received_pieces: list[bytes] = []  # pieces that were read of a record

    @classmethod
    def create(cls, name: str, capacity: int) -> Ring:
        """A new one in shared memory, of so many bytes."""
        return cls(_initialise(create_memory(name, _BASE + capacity), capacity))

    @classmethod
    def attach(cls, name: str) -> Ring:
        """One that another process created; NotRunning or AttachError says why that cannot be done."""
        try:
            memory = map_memory(name, MAGIC, _BASE, "ring of WaVeSim", writable=True)
        except posix_ipc.ExistentialError:
            raise NotRunning(f"the server that owned {name} is gone; start it again") from None
        ring = cls(memory)
        written, read = int(ring._header[WRITTEN]), int(ring._header[READ])
        if ring.capacity != len(memory) - _BASE or not 0 <= read <= written <= read + ring.capacity:
            raise AttachError(
                f"{name} is damaged: {len(memory)} bytes for a capacity of {ring.capacity}, written {written}, read {read}"
            )
        return ring

    @classmethod
    def create_private(cls, capacity: int) -> Ring:
        """One in this process's own memory: for an engine and a front in one process, which share the object."""
        return cls(_initialise(bytearray(_BASE + capacity), capacity))

    @property
    def dropped(self) -> int:
        """Records that were given up."""
        return int(self._header[DROPPED])

    def push(self, kind: int, payload: bytes) -> PushResult:
        """Append a record."""
        if self._record_begun is not None and self._record_begun != (kind, payload):
            self.count_dropped()
        if len(payload) <= self._piece_bytes:
            return PushResult.DONE if self._append(kind | _WHOLE_PIECE, payload) else PushResult.FULL
        if len(payload) > MAX_RECORD_BYTES:
            self.count_dropped()
            return PushResult.REFUSED
        while self._sent < len(payload):
            until = self._sent + self._piece_bytes
            place = _LAST_PIECE if until >= len(payload) else _MIDDLE_PIECE if self._sent else _FIRST_PIECE
            if not self._append(kind | place, payload[self._sent : until]):
                return PushResult.FULL
            self._record_begun, self._sent = (kind, payload), until
        self._record_begun, self._sent = None, 0
        return PushResult.DONE

    def count_dropped(self) -> None:
        """Give up, and count, the record that found no room."""
        self._record_begun, self._sent = None, 0
        self._header[DROPPED] += 1

    def _append(self, kind: int, payload: bytes) -> bool:
        record = _HEAD.pack(len(payload), kind) + payload
        size = (len(record) + 7) & ~7
        written, read = int(self._header[WRITTEN]), int(self._header[READ])
        if written + size - read > self.capacity:
            return False
        self._write(written, record)
        self._header[WRITTEN] = written + size
        return True

    def _write(self, at: int, data: bytes) -> None:
        start = at % self.capacity
        first = min(len(data), self.capacity - start)
        self._memory[_BASE + start : _BASE + start + first] = data[:first]
        if first < len(data):
            self._memory[_BASE : _BASE + len(data) - first] = data[first:]

    def _read(self, at: int, size: int) -> bytes:
        start = at % self.capacity
        first = min(size, self.capacity - start)
        data = bytes(self._memory[_BASE + start : _BASE + start + first])
        return data if first == size else data + self._memory[_BASE : _BASE + size - first]

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """(kind, payload) of every record that is there as a whole."""
        while int(self._header[WRITTEN]) > int(self._header[READ]):
            read = int(self._header[READ])
            length, kind = _HEAD.unpack(self._read(read, _HEAD.size))
            payload = self._read(read + _HEAD.size, length)
            self._header[READ] = read + ((_HEAD.size + length + 7) & ~7)
            place, kind = kind & ~_KIND, kind & _KIND
            if place in (_WHOLE_PIECE, _FIRST_PIECE):
                self._received_pieces.clear()
            elif not self._received_pieces:
                continue
            if place != _WHOLE_PIECE:
                self._received_pieces.append(payload)
                if place != _LAST_PIECE:
                    continue
                payload = b"".join(self._received_pieces)
                self._received_pieces.clear()
            yield kind, payload


def _initialise(memory: mmap.mmap | bytearray, capacity: int) -> mmap.mmap | bytearray:
    np.frombuffer(memory, np.int64, 8)[CAPACITY] = capacity
    memory[0:8] = MAGIC
    return memory
