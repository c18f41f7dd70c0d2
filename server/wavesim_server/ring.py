"""A bounded ring of records in shared memory, from one process to another.

Header: eight int64 (written, read, capacity, dropped, then free); data behind it.  A record is an
int32 length, an int32 kind, the payload, padding to 8 bytes.  One writer, one reader: each moves
its own counter only, after the bytes are in place (x86-64 and Python keep that order).
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator

import numpy as np
import posix_ipc

from wavesim_sdk.area import make_memory

_HEAD = struct.Struct("<ii")
_BASE = 64
WRITTEN, READ, CAPACITY, DROPPED = range(4)


class Ring:
    """One direction of the hand-over between engine and front."""

    def __init__(self, name: str, capacity: int = 0) -> None:
        """Create with a capacity in bytes, or attach without."""
        self.name = name
        if capacity:
            self._memory = make_memory(name, _BASE + capacity, 0o600)
        else:
            shared = posix_ipc.SharedMemory(name, 0)
            self._memory = mmap.mmap(shared.fd, os.fstat(shared.fd).st_size)
            shared.close_fd()
        self._header = np.frombuffer(self._memory, np.int64, 8)
        if capacity:
            self._header[CAPACITY] = capacity
        self.capacity = int(self._header[CAPACITY])

    @property
    def dropped(self) -> int:
        """Records that did not fit."""
        return int(self._header[DROPPED])

    def push(self, kind: int, payload: bytes) -> bool:
        """Append a record; False when there is no room now."""
        record = _HEAD.pack(len(payload), kind) + payload
        size = (len(record) + 7) & ~7
        written, read = int(self._header[WRITTEN]), int(self._header[READ])
        if size > self.capacity:
            raise ValueError(f"a record of {size} bytes cannot fit into a ring of {self.capacity}")
        if written + size - read > self.capacity:
            return False
        self._write(written, record)
        self._header[WRITTEN] = written + size
        return True

    def drop(self) -> None:
        """Count a record that was given up."""
        self._header[DROPPED] += 1

    def _write(self, at: int, data: bytes) -> None:
        start = at % self.capacity
        first = min(len(data), self.capacity - start)
        self._memory[_BASE + start : _BASE + start + first] = data[:first]
        if first < len(data):
            self._memory[_BASE : _BASE + len(data) - first] = data[first:]

    def _read(self, at: int, size: int) -> bytes:
        start = at % self.capacity
        first = min(size, self.capacity - start)
        data = self._memory[_BASE + start : _BASE + start + first]
        return data if first == size else data + self._memory[_BASE : _BASE + size - first]

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """(kind, payload) of every record there is."""
        while int(self._header[WRITTEN]) > int(self._header[READ]):
            read = int(self._header[READ])
            length, kind = _HEAD.unpack(self._read(read, 8))
            payload = self._read(read + 8, length)
            self._header[READ] = read + ((8 + length + 7) & ~7)
            yield kind, payload
