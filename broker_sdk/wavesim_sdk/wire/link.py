"""Session over a blocking socket, for brokers and observers."""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
import socket
import struct
import time
from pathlib import Path
from typing import Protocol

from wavesim_sdk.errors import BrokerError, Refused, SessionEnded, SessionLost
from wavesim_sdk.wire import local
from wavesim_sdk.wire.client import ClientSession, JoinRefused, Phase, SessionClosed, SessionEvent
from wavesim_sdk.wire.messages import MAX_DATAGRAM, Join, Welcome
from wavesim_sdk.wire.schema import Malformed
from wavesim_sdk.wire.udp import open_socket

KEYS_VARIABLE = "WAVESIM_KEYS"  #: environment variable that names the key file, for programs that do not pass a key
WAITS_S = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)
#: whether one system call can both wait with a time limit and receive; on Windows, this is not possible
RECEIVES_IN_ONE_CALL = hasattr(socket, "MSG_DONTWAIT")
FAREWELL_S = 0.5  #: maximum time in s that a program waits for the server to confirm its LEAVE


def make_session(join: Join, key: bytes | None) -> ClientSession:
    """Return a session, with a key if one is given or if WAVESIM_KEYS names a key file."""
    if key is None and (file := os.environ.get(KEYS_VARIABLE)):
        from wavesim_sdk.wire import seal

        key = seal.find_key(Path(file), join.name)
    try:
        return ClientSession(join, key)
    except Malformed as malformed:
        raise BrokerError(f"invalid join: {malformed}") from None


def local_address(server: str) -> str:
    """Return the local address to bind to: the loopback address for a server on loopback, otherwise the wildcard
    address.
    """
    try:
        host = ipaddress.ip_address(server)
    except ValueError:
        raise BrokerError(f"'{server}' is not an IP address") from None
    if host.version == 6:
        return "::1" if host.is_loopback else "::"
    return "127.0.0.1" if host.is_loopback else "0.0.0.0"


def no_answer_error(server: tuple[str, int], session: ClientSession) -> SessionLost:
    """Return the error, with its probable cause, for a server that does not answer."""
    host, port = server
    if session.phase is Phase.JOINING:
        why = "check that it has this key" if session.key else f"it may require a key ({KEYS_VARIABLE}=FILE)"
        return SessionLost(f"the server at {host}:{port} does not answer this join; {why}")
    return SessionLost(f"no server answers at {host}:{port}; is one running there? (wavesim serve CONFIG)")


def raise_if_ended(event: SessionEvent) -> None:
    """Raise an error if an event ends the session."""
    match event:
        case JoinRefused(text=text):
            raise Refused(f"the server refused the join: {text}")
        case SessionClosed(text=text):
            raise SessionEnded(f"the server ended the session: {text}")


def is_silent(session: ClientSession, now: float) -> bool:
    """Return whether the server has been silent for too long."""
    return session.welcome is not None and now - session.last_heard > 2.0 * max(session.welcome.keepalive_timeout, 1.0)


class ServerLink(Protocol):
    """Session with its connection to the server."""

    @property
    def session(self) -> ClientSession:
        """The client side of the session."""

    def connect(self, timeout: float) -> Welcome:
        """Join the server. Raises SessionLost after ``timeout`` seconds."""

    def poll(self, limit: float) -> list[SessionEvent]:
        """Send the datagrams that are due, then wait until ``limit`` for a datagram or a timer. Return the events."""

    def flush(self, now: float) -> None:
        """Send the datagrams that are due."""

    def check_alive(self) -> None:
        """Raise SessionLost if the server has been silent for too long."""

    def close(self) -> None:
        """Leave the server."""


def open_link(join: Join, server: tuple[str, int], key: bytes | None = None) -> ServerLink:
    """Return a link to a server: a direct link if the server is in this process, otherwise a link with a socket."""
    inside = local.find_local_server(server)
    return SessionLink(join, server, key) if inside is None else LocalLink(join, inside)


class LocalLink(local.LocalConnection):
    """Session with a server in this process."""

    def connect(self, timeout: float) -> Welcome:
        """Join the server."""
        self.join()
        early: list[SessionEvent] = []
        while self.session.welcome is None:
            early += [e for e in self.poll(math.inf) if not isinstance(e, Welcome)]
        self.session.received[:0] = early
        return self.session.welcome

    def poll(self, limit: float) -> list[SessionEvent]:
        """Let the simulation advance until something arrives for this session or ``limit`` has passed, and return the
        events.
        """
        self.wait(limit)
        events = self.take_received()
        for event in events:
            raise_if_ended(event)
        return events

    def flush(self, now: float) -> None:
        """Deliver everything that is queued."""
        self.session.flush()

    def check_alive(self) -> None:
        """Do nothing, because a server in the same process cannot fall silent."""


class SessionLink:
    """Session that has its own socket."""

    def __init__(self, join: Join, server: tuple[str, int], key: bytes | None = None) -> None:
        self.server, self.session = server, make_session(join, key)
        self._socket: socket.socket | None = None
        self._early: list[SessionEvent] = []  # events that came before the welcome
        self._limit = 0.0  # time limit of the socket, s

    def connect(self, timeout: float) -> Welcome:
        """Join the server. Raises SessionLost after ``timeout`` seconds."""
        self._socket = open_socket(local_address(self.server[0]), 0)
        try:
            self._socket.connect(self.server)
            self._socket.setblocking(True)  # recv waits for at most the socket's time limit
            limit = time.monotonic() + timeout
            while self.session.welcome is None:
                if time.monotonic() > limit:
                    raise no_answer_error(self.server, self.session)
                self._early += [e for e in self.poll(limit) if not isinstance(e, Welcome)]
        except BaseException:
            self.close()
            raise
        return self.session.welcome

    def poll(self, limit: float) -> list[SessionEvent]:
        """Send the datagrams that are due, then wait until ``limit`` for a datagram or a timer. Return the events."""
        if self.session.welcome is not None and self._early:
            early, self._early = self._early, []
            return early
        sock = self._open()
        now = time.monotonic()
        self.flush(now)
        timer = self.session.next_timer()
        wait = min(limit, timer if timer is not None else limit) - now
        data = self._receive(sock, wait)
        events = self.session.receive(data, time.monotonic()) if data else []
        for event in events:
            raise_if_ended(event)
        return events

    def _receive(self, sock: socket.socket, wait: float) -> bytes:
        """Return the next datagram, or an empty one after about ``wait`` seconds.

        A single system call both waits and receives. This saves time in lockstep, where, for example, ten programs wait
        for one another. The time limit of the socket is set only to values in WAITS_S, so that it seldom has to be
        changed.
        """
        limit = next((limit for limit in WAITS_S if limit <= wait), 0.0)
        try:
            if not RECEIVES_IN_ONE_CALL:
                sock.settimeout(limit)
                return sock.recv(MAX_DATAGRAM + 1)
            if limit and limit != self._limit:
                self._limit = limit
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", 0, int(limit * 1e6)))
            return sock.recv(MAX_DATAGRAM + 1, 0 if limit else socket.MSG_DONTWAIT)
        except (BlockingIOError, TimeoutError):
            return b""
        except (ConnectionRefusedError, ConnectionResetError):
            time.sleep(0.02)  # no process has that port (yet)
            return b""

    def _open(self) -> socket.socket:
        if self._socket is None:
            raise BrokerError("not connected: call connect() first; a closed connection cannot be used again")
        return self._socket

    def flush(self, now: float) -> None:
        """Send the datagrams that are due."""
        sock = self._open()
        for data in self.session.outgoing(now):
            try:
                sock.send(data)
            except (ConnectionRefusedError, ConnectionResetError, BlockingIOError, TimeoutError):
                continue

    def check_alive(self) -> None:
        """Raise SessionLost if the server has been silent for too long."""
        if is_silent(self.session, time.monotonic()):
            raise no_answer_error(self.server, self.session)

    def close(self) -> None:
        """Leave the server, and wait briefly for its confirmation."""
        if self._socket is None:
            return
        self.session.leave()
        limit = time.monotonic() + FAREWELL_S
        with contextlib.suppress(BrokerError, OSError):
            while self.session.phase is Phase.LEAVING and time.monotonic() < limit:
                self.poll(limit)
        self._socket.close()
        self._socket = None
