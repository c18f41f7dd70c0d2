"""The front's commands to the engine, in order and without blocking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from wavesim_sdk.wire.messages import Type
from wavesim_server import messages
from wavesim_server.messages import EffortCommand, EnterCommand, RecordQueue, ReleaseCommand


class EngineQueue:
    """Commands to the engine. ``wake`` signals the engine that commands are waiting."""

    def __init__(self, ring: RecordQueue, wake: Callable[[], None]) -> None:
        self._ring, self._wake = ring, wake
        self._backlog: deque[tuple[int, bytes]] = deque()
        self._wake_due = False

    def send(self, command: EnterCommand | ReleaseCommand | EffortCommand) -> None:
        """Queue a command."""
        self._backlog.append(messages.encode(command))

    def forward(self, kind: Type, row: int, number: int, body: bytes) -> None:
        """Queue a message in the bytes of the wire, which have been checked; see :class:`~messages.ClientMessage`."""
        self._backlog.append(messages.forward(kind, row, number, body))

    def request(self, row: int, number: int, item: bytes) -> None:
        """Queue a request about sound of the body in a row; its result repeats the number."""
        self.forward(Type.REQUESTS, row, number, item)

    def execute(self, number: int, command: bytes) -> None:
        """Queue a command, an item of REQUESTS; its result repeats the number."""
        self.forward(Type.REQUESTS, -1, number, command)

    def leave(self, row: int) -> None:
        """Queue the departure of the body in a row."""
        self.forward(Type.LEAVE, row, 0, messages.LEAVE_BODY)

    def flush(self) -> None:
        """Write as many commands as there is room for."""
        while self._backlog and self._ring.push(*self._backlog[0]):
            self._backlog.popleft()
            self._wake_due = True
        if self._wake_due or self._backlog:  # pieces of a large record wait until the reader makes room
            self._wake_due = False
            self._wake()
