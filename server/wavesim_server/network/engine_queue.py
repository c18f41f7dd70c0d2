"""Commands from the front end to the engine, sent in order and without blocking."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from wavesim_sdk.wire.items import REQUESTS
from wavesim_sdk.wire.messages import Actuate, Done, Leave, Type
from wavesim_server import messages
from wavesim_server.messages import ClientMessage, EngineCommand, FrontCommand, RecordQueue


class EngineCommands(Protocol):
    """Queue of commands to the engine."""

    @property
    def damaged(self) -> int:
        """Number of times that the engine has found the queue damaged."""

    def send(self, command: FrontCommand) -> None:
        """Queue a command."""

    def forward(self, row: int, session: int, message: Actuate | Done, payload: bytes) -> None:
        """Queue a client's message together with its bytes. The caller has already checked the message; see
        :class:`~messages.ClientMessage`.
        """

    def request(self, row: int, number: int, item: bytes) -> None:
        """Queue an acoustic request from the body in a row. Its result carries ``number``, so that the caller can match
        the two.
        """

    def execute(self, number: int, command: bytes) -> None:
        """Queue a command, encoded as an item of one of the types in REQUESTS. Its result carries ``number``, so that
        the caller can match the two.
        """

    def leave(self, row: int) -> None:
        """Queue the removal of the body that occupies this row."""

    def flush(self) -> None:
        """Write as many waiting commands as there is room for."""


class EngineQueue:
    """Commands to an engine in another process. ``wake`` signals the engine that commands are waiting."""

    def __init__(self, ring: RecordQueue, wake: Callable[[], None] = lambda: None) -> None:
        self._ring, self._wake = ring, wake
        self._backlog: deque[tuple[int, bytes]] = deque()
        self._wake_due = False

    @property
    def waiting_count(self) -> int:
        """Number of commands that are waiting for room."""
        return len(self._backlog)

    @property
    def damaged(self) -> int:
        """Number of times that the engine has found the queue damaged."""
        return self._ring.damaged

    def send(self, command: FrontCommand) -> None:
        self._backlog.append(messages.encode(command))

    def forward(self, row: int, session: int, message: Actuate | Done, payload: bytes) -> None:
        kind = Type.DONE if type(message) is Done else Type.ACTUATE
        self._backlog.append(messages.forward(kind, row, session, payload))

    def request(self, row: int, number: int, item: bytes) -> None:
        self._backlog.append(messages.forward(Type.REQUESTS, row, number, item))

    def execute(self, number: int, command: bytes) -> None:
        self.request(-1, number, command)

    def leave(self, row: int) -> None:
        self._backlog.append(messages.forward(Type.LEAVE, row, 0, messages.LEAVE_PAYLOAD))

    def flush(self) -> None:
        while self._backlog and self._ring.push(*self._backlog[0]):
            self._backlog.popleft()
            self._wake_due = True
        if self._wake_due or self._backlog:  # pieces of a large record wait until the reader makes room
            self._wake_due = False
            self._wake()


class LocalEngineQueue:
    """Commands to an engine in the same process, as objects."""

    damaged = 0  #: always 0, because objects in one process cannot be damaged

    def __init__(self) -> None:
        self.waiting: deque[EngineCommand] = deque()

    def send(self, command: FrontCommand) -> None:
        self.waiting.append(command)

    def forward(self, row: int, session: int, message: Actuate | Done, payload: bytes) -> None:
        self.waiting.append(ClientMessage(row, session, message, payload))

    def request(self, row: int, number: int, item: bytes) -> None:
        self.waiting.append(ClientMessage(row, number, REQUESTS.unpack(item), item))

    def execute(self, number: int, command: bytes) -> None:
        self.request(-1, number, command)

    def leave(self, row: int) -> None:
        self.waiting.append(ClientMessage(row, 0, Leave(), b""))

    def flush(self) -> None:
        """Do nothing, because the engine reads the commands when it next runs."""
