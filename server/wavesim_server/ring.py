"""A bounded ring of records in shared memory. It carries the records from one process to another.

The header consists of the magic "WVSMRING" and seven int64 numbers (written, read, capacity, dropped, damaged, two
unused); the data follow. A record consists of an int32 length, an int32 kind, the payload, and padding to 8 bytes.
There is one writer and one reader. Each changes only its own counters, and only after the bytes are in place (x86-64
and Python keep that order).

A record larger than a quarter of the ring is split into pieces, which the writer appends as the reader makes room. The
upper half of the kind states the position of the piece. The reader skips a piece that arrives without its predecessors,
for example after the reader was restarted or the writer abandoned a record. If another process has overwritten the
ring, the reader skips everything in it and counts the damage.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import posix_ipc

from wavesim_sdk.errors import AttachError
from wavesim_sdk.shared_memory import create_memory, map_memory, no_such_server, server_of

_HEAD = struct.Struct("<ii")
_BASE = 64
MAGIC = b"WVSMRING"
WRITTEN, READ, CAPACITY, DROPPED, DAMAGED = range(1, 6)
_WHOLE_PIECE, _FIRST_PIECE, _MIDDLE_PIECE, _LAST_PIECE = (piece << 16 for piece in range(4))
_KIND = (1 << 16) - 1

MAX_RECORD_BYTES = 256 * 1024 * 1024  #: size above which records are rejected, to limit the memory of the reader


class PushResult(IntEnum):
    """The result of a push. When used as a condition, only FULL counts as false."""

    #: there is currently no room for the record or its remaining pieces; push the same record again, or drop it
    FULL = 0
    DONE = 1
    REFUSED = 2  #: the record is too large for the ring; it is counted as dropped


class Ring:
    """One direction of the exchange between the engine and the front end."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        self._memory = memory
        self._header = np.frombuffer(memory, np.int64, 8)
        self.capacity = int(self._header[CAPACITY])
        self._piece_bytes = max(self.capacity // 4, 16) - _HEAD.size
        self._record_begun: tuple[int, bytes] | None = None  # the record whose first _sent bytes are in the ring
        self._sent = 0
        self._received_pieces: list[bytes] = []  # pieces of a record read so far

    @classmethod
    def create(cls, name: str, capacity: int) -> Ring:
        """Create a ring in shared memory with the given capacity in bytes."""
        return cls(_initialise(create_memory(name, _BASE + capacity), capacity))

    @classmethod
    def attach(cls, name: str) -> Ring:
        """Attach to the ring of another process. Raises NotRunning if the ring no longer exists, and AttachError if it
        is damaged.
        """
        try:
            memory = map_memory(name, MAGIC, _BASE, "WaVeSim ring", writable=True)
        except posix_ipc.ExistentialError:
            raise no_such_server(server_of(name)) from None
        ring = cls(memory)
        written, read = int(ring._header[WRITTEN]), int(ring._header[READ])
        if ring.capacity != len(memory) - _BASE or not 0 <= read <= written <= read + ring.capacity:
            raise AttachError(
                f"{name} is damaged: {len(memory)} bytes for a capacity of {ring.capacity}, written {written}, read {read}"
            )
        return ring

    @classmethod
    def create_private(cls, capacity: int) -> Ring:
        """Create a ring in private memory, for an engine and a front end in one process that share the object."""
        return cls(_initialise(bytearray(_BASE + capacity), capacity))

    @property
    def dropped(self) -> int:
        """Number of dropped records."""
        return int(self._header[DROPPED])

    @property
    def damaged(self) -> int:
        """Number of times that the reader has found a damaged record, or has skipped the content of a damaged ring."""
        return int(self._header[DAMAGED])

    def count_damaged(self) -> None:
        """Count a record that the reader cannot decode."""
        self._header[DAMAGED] += 1

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
        """Drop the record that did not fit, and count it as dropped."""
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

    def _is_position(self, read: int, written: int) -> bool:
        """Return whether ``read`` is a possible read position: some data are unread, but not more than the ring can
        hold.
        """
        return 0 <= read < written <= read + self.capacity

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """Yield the kind and the payload of every complete record."""
        while (written := int(self._header[WRITTEN])) != (read := int(self._header[READ])):
            length, kind = _HEAD.unpack(self._read(read, _HEAD.size)) if self._is_position(read, written) else (-1, 0)
            if (
                not 0 <= length <= min(self._piece_bytes, written - read - _HEAD.size)
                or not 0 <= kind <= _LAST_PIECE | _KIND
            ):
                self._received_pieces.clear()
                self._header[READ] = written
                self.count_damaged()
                return
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
