"""The queue between engine and front where both live in one process: for tests and for worlds on a virtual clock."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

OVERHEAD = 16  #: bytes that a record takes beside its payload


class MemoryQueue:
    """A bounded queue with the face of :class:`~wavesim_server.ring.Ring`."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used = capacity, 0
        self.dropped = 0  #: records that were given up
        self._records: deque[tuple[int, bytes]] = deque()

    def push(self, kind: int, payload: bytes) -> bool:
        """Append a record; False when there is no room now."""
        size = len(payload) + OVERHEAD
        if size > self.capacity:
            raise ValueError(f"a record of {size} bytes cannot fit into a queue of {self.capacity}")
        if self.used + size > self.capacity:
            return False
        self.used += size
        self._records.append((kind, payload))
        return True

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """(kind, payload) of every record there is."""
        while self._records:
            kind, payload = self._records.popleft()
            self.used -= len(payload) + OVERHEAD
            yield kind, payload

    def drop(self) -> None:
        """Count a record that was given up."""
        self.dropped += 1
