"""Events from the engine to the front end, sent in order and without blocking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from wavesim_server.engine.pace import TickPacer
from wavesim_server.messages import EngineEvent, LogRecordsEvent, RecordQueue, encode


class EngineEvents(Protocol):
    """Queue of events to the front end."""

    @property
    def has_backlog(self) -> bool:
        """Whether events are waiting for room."""

    @property
    def dropped(self) -> int:
        """Number of events that were dropped."""

    def emit(self, event: EngineEvent) -> None:
        """Send an event to the front end."""

    def push_backlog(self) -> bool:
        """Write as many waiting events as there is room for; return whether none is left."""

    def wake_front(self) -> None:
        """Signal the front end if there are events for it to read."""


class LocalEvents:
    """Events to a front end in the same process, as objects."""

    has_backlog, dropped = False, 0

    def __init__(self) -> None:
        self.waiting: deque[EngineEvent] = deque()

    def emit(self, event: EngineEvent) -> None:
        self.waiting.append(event)

    def push_backlog(self) -> bool:
        return True

    def wake_front(self) -> None:
        """Do nothing, because the front end reads the events when it next runs."""


class EventQueue:
    """Events to a front end in another process. ``wake`` signals the reader that events are waiting."""

    def __init__(self, ring: RecordQueue, pacer: TickPacer, wake: Callable[[], None] = lambda: None) -> None:
        self._ring, self._pacer, self._wake = ring, pacer, wake
        self._backlog: deque[tuple[int, bytes]] = deque()  # events that did not fit into the ring
        self._wake_due = False

    @property
    def has_backlog(self) -> bool:
        """Whether events are waiting for room in the ring."""
        return bool(self._backlog)

    @property
    def waiting_count(self) -> int:
        """Number of events that are waiting for room."""
        return len(self._backlog)

    @property
    def dropped(self) -> int:
        """Number of events that were dropped."""
        return self._ring.dropped

    def emit(self, event: EngineEvent) -> None:
        """Send an event to the front end.

        In real time, log records that do not fit are dropped and counted; all other events wait for room.
        """
        record = encode(event)
        if not self._backlog and self._ring.push(*record):
            self._wake_due = True
        elif self._pacer.speed > 0.0 and isinstance(event, LogRecordsEvent):
            self._ring.count_dropped()
            self._wake_due = True  # the pieces that did fit occupy the ring until the reader skips them
        else:
            self._backlog.append(record)

    def push_backlog(self) -> bool:
        """Write as many waiting events as there is room for; return whether none is left."""
        while self._backlog and self._ring.push(*self._backlog[0]):
            self._backlog.popleft()
            self._wake_due = True
        # pieces of a large record wait until the reader makes room
        self._wake_due = self._wake_due or bool(self._backlog)
        return not self._backlog

    def wake_front(self) -> None:
        """Signal the front end if there are events for it to read."""
        if self._wake_due:
            self._wake_due = False
            self._wake()
