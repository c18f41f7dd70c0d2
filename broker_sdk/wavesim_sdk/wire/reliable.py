"""Numbered items over datagrams: each delivered once, in order. Used in both directions."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgpack

REPEAT_S = 0.2
ACK_DELAY_S = 0.05
PAYLOAD_BYTES = 1100
MAX_PENDING = 4096


class Outbox:
    """Items waiting to be acknowledged by the peer."""

    def __init__(self) -> None:
        self.last = 0
        self._pending: deque[tuple[int, list[Any], int]] = deque()  # number, item, bytes
        self._sent_to = 0
        self._repeat_at = 0.0

    def push(self, item: list[Any]) -> int:
        """Queue an item; returns its number. OverflowError when the peer acknowledges nothing."""
        if len(self._pending) >= MAX_PENDING:
            raise OverflowError("the peer acknowledges nothing")
        self.last += 1
        self._pending.append((self.last, item, len(msgpack.packb(item))))
        return self.last

    def acknowledged(self, number: int) -> None:
        """The peer has everything up to ``number``."""
        if number > self.last:
            return
        while self._pending and self._pending[0][0] <= number:
            self._pending.popleft()

    def bodies(self, now: float) -> list[list[Any]]:
        """Bodies to send now: what is new, or everything unacknowledged when it is time to repeat."""
        if not self._pending:
            return []
        repeat = now >= self._repeat_at
        start = 0 if repeat else self._sent_to
        due = [p for p in self._pending if p[0] > start]
        if not due:
            return []
        self._sent_to, self._repeat_at = self.last, now + REPEAT_S
        bodies: list[list[Any]] = []
        size = PAYLOAD_BYTES
        for number, item, length in due:
            if size + length > PAYLOAD_BYTES:
                bodies.append([number, []])
                size = 0
            bodies[-1][1].append(item)
            size += length
        return bodies

    def next_timer(self) -> float | None:
        """When :meth:`bodies` has something again, or None."""
        return self._repeat_at if self._pending else None


class Inbox:
    """Items received in order."""

    def __init__(self) -> None:
        self.received = 0

    def accept(self, first: int, items: list[list[Any]]) -> list[tuple[int, list[Any]]]:
        """The new (number, item) pairs; nothing if they would leave a gap."""
        if first < 1 or first > self.received + 1:
            return []
        new = items[self.received + 1 - first :]
        numbered = [(self.received + 1 + i, item) for i, item in enumerate(new)]
        self.received += len(new)
        return numbered
