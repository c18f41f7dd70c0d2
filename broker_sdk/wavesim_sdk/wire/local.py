"""Sessions of programs in the server's process. Program and server exchange messages and events as objects, without a
socket or a keep-alive.

A process that contains a server calls :func:`set_local_server`. Brokers and observers that are created afterwards with
this server's address connect to it directly, without any change to their programs.
"""

from __future__ import annotations

import random
from typing import Any, Protocol

from wavesim_sdk.errors import BrokerError
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionEvent
from wavesim_sdk.wire.items import REQUESTS, AnyEvent, AnyRequest
from wavesim_sdk.wire.messages import Join, Leave, Refuse, Welcome
from wavesim_sdk.wire.schema import Malformed, check
from wavesim_sdk.wire.state import State

__all__ = [
    "LocalConnection",
    "LocalServer",
    "LocalSession",
    "find_local_server",
    "find_server_by_name",
    "set_local_server",
]


class LocalServer(Protocol):
    """Server in this process. All calls come from the threads of programs."""

    name: str
    address: tuple[str, int]  #: address that programs use for the server

    def join(self, session: LocalSession) -> None:
        """Start serving a session in this process."""

    def request(self, session: LocalSession, number: int, item: Any) -> None:
        """Accept a request (one of the items of REQUESTS) and its number."""

    def deliver(self, session: LocalSession, message: Any) -> None:
        """Accept a message from a session."""

    def wait(self, session: LocalSession, limit: float) -> None:
        """Let the simulation advance until the session has received something or the wall-clock time ``limit`` has
        passed.
        """

    def take_received(self, session: LocalSession) -> list[SessionEvent]:
        """Return and remove the events that the session has received."""


_server: LocalServer | None = None


def set_local_server(server: LocalServer | None) -> None:
    """Set the server of this process, or remove it if None is given."""
    global _server
    _server = server


def find_local_server(address: tuple[str, int]) -> LocalServer | None:
    """Return the server of this process if it has this address, otherwise None."""
    return _server if _server is not None and _server.address == address else None


def find_server_by_name(name: str) -> LocalServer | None:
    """Return the server of this process if it has this name, otherwise None."""
    return _server if _server is not None and _server.name == name else None


class LocalSession(ClientSession):
    """Client side of a session with a server in this process."""

    def __init__(self, join: Join, server: LocalServer) -> None:
        super().__init__(join, rng=random.Random(0))
        self.received: list[SessionEvent] = []  #: events that the program has not yet taken
        self.deliveries = 0  #: number of messages and events received so far
        self.waiting_threads = 0  #: number of threads that are waiting for an event of this session
        self._server = server
        self._requests: list[tuple[int, Any]] = []
        self._last_request = 0

    # -- called by the program -------------------------------------------------------------

    def request(self, request: AnyRequest, more: int = 0) -> int:
        """Queue a request and return its number. The queue may have any length."""
        self._last_request += 1
        self._requests.append((self._last_request, REQUESTS.encode(check(request))))
        return self._last_request

    def leave(self) -> None:
        """End the session."""
        if self.phase is Phase.JOINED:
            self.flush()
            self.phase = Phase.CLOSED
            self._server.deliver(self, Leave())
        self.phase = Phase.CLOSED

    def flush(self) -> None:
        """Deliver the queued requests first, and then the queued messages. A DONE is therefore delivered after the
        requests of its step.
        """
        while self._requests:
            self._server.request(self, *self._requests.pop(0))
        while self._send:
            self._server.deliver(self, self._send.pop(0))

    # -- called by the server --------------------------------------------------------------

    def take_message(self, message: Any) -> None:
        """Receive a message from the server."""
        if self.phase is Phase.CLOSED:
            return
        self.deliveries += 1
        match message:
            case Welcome():
                self.phase, self._pending_welcome = Phase.JOINED, message
                self.received += self._described()
            case Refuse(_, code, text):
                self.phase = Phase.CLOSED
                self.received.append(JoinRefused(code, text))
            case _:
                self.received += self._handle(message, 0.0)

    def take_state(self, state: State) -> None:
        """Receive a state from the server."""
        if self.phase is not Phase.CLOSED:
            self.deliveries += 1
            self.received.append(state)

    def take_event(self, event: AnyEvent) -> None:
        """Receive an event from the server."""
        self.deliveries += 1
        self.received += self._apply_event(event)


class LocalConnection:
    """Session with its connection to a server in this process."""

    def __init__(self, join: Join, server: LocalServer) -> None:
        try:
            self.session = LocalSession(join, server)
        except Malformed as malformed:
            raise BrokerError(f"invalid join: {malformed}") from None
        self._server, self._is_open = server, False

    def join(self) -> None:
        """Join the server, which answers with the WELCOME or a refusal."""
        self._is_open = True
        self._server.join(self.session)

    def wait(self, limit: float) -> None:
        """Deliver all queued requests and messages. Then let the simulation advance until something has arrived or
        ``limit`` has passed.
        """
        if not self._is_open:
            raise BrokerError("not connected: call connect() first; a closed connection cannot be used again")
        self.session.flush()
        self._server.wait(self.session, limit)

    def take_received(self) -> list[SessionEvent]:
        """Return and remove the events that have arrived."""
        return self._server.take_received(self.session)

    def close(self) -> None:
        """Leave the server."""
        self._is_open = False
        self.session.leave()
