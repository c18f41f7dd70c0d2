"""Limits on open connections: a maximum number per address, and time limits for each request."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import web

from wavesim_sdk.wire.address_validation import TokenBucket

#: maximum number of connections per address, not counting websockets; a new connection closes the oldest one
MAX_PER_ADDRESS = 64
#: number of websockets that an address may open in one burst, and sustained number per second
BURST, OPENINGS_PER_S = 32, 1.0
REQUEST_S = 10.0  #: maximum time in s until the headers of a request are complete, and between two requests
BODY_S = 10.0  #: maximum time in s to receive the body of a request
UPLOAD_S = 120.0  #: maximum time in s to receive an uploaded file


class ConnectionRateLimiter:
    """Limit on the rate at which each address may open websockets."""

    def __init__(self) -> None:
        self._budgets: dict[str, TokenBucket] = {}

    def allow(self, address: str, now: float) -> bool:
        """Return whether an address may open a websocket at the time ``now`` in s. A permitted websocket is counted."""
        self._budgets = {a: budget for a, budget in self._budgets.items() if not budget.is_full(now)}
        return self._budgets.setdefault(address, TokenBucket(OPENINGS_PER_S, BURST)).consume(now)


class ConnectionLimiter:
    """Registry of the open connections by address, with the oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, dict[LimitedRequestHandler, None]] = {}
        #: number of connections of each address that were closed to make room for others
        self.closed: Counter[str] = Counter()

    def enter(self, handler: LimitedRequestHandler) -> None:
        """Add a connection; close the oldest one if there are too many."""
        there = self._open.setdefault(handler.address, {})
        there[handler] = None
        if len(there) > MAX_PER_ADDRESS:
            oldest = next(iter(there))
            self.leave(oldest)
            self.closed[handler.address] += 1
            if oldest.transport is not None:
                oldest.transport.abort()

    def leave(self, handler: LimitedRequestHandler) -> None:
        """Remove a connection that was closed, or that became a websocket (websockets are counted elsewhere)."""
        there = self._open.get(handler.address, {})
        there.pop(handler, None)
        if not there:
            self._open.pop(handler.address, None)


class LimitedRequestHandler(web.RequestHandler):
    """One HTTP connection with time limits."""

    def __init__(self, limiter: ConnectionLimiter, server: web.Server) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=REQUEST_S,
            access_log=None,  # type: ignore[arg-type]  # as its runner does
        )
        self.limiter, self.address = limiter, ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the new connection."""
        super().connection_made(transport)
        self.address = address_of(transport)
        self.limiter.enter(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Remove the closed connection."""
        self.limiter.leave(self)
        super().connection_lost(exc)


def address_of(transport: asyncio.BaseTransport | None) -> str:
    """Return the address of a connection's peer, or an empty string if the connection is already closed."""
    name = transport.get_extra_info("peername") if transport is not None else None
    return str(name[0]) if name else ""


def upgraded(request: web.Request) -> None:
    """Mark this connection as a websocket."""
    protocol = request.protocol
    if isinstance(protocol, LimitedRequestHandler):
        protocol.limiter.leave(protocol)


@contextlib.asynccontextmanager
async def open_site(app: web.Application, sock: socket.socket) -> AsyncIterator[ConnectionLimiter]:
    """Serve an application on a bound socket."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    server, doors = runner.server, ConnectionLimiter()
    assert server is not None
    sock.listen(128)
    site = await asyncio.get_running_loop().create_server(lambda: LimitedRequestHandler(doors, server), sock=sock)
    try:
        yield doors
    finally:
        site.close()
        await runner.cleanup()
