"""Who may hold connections open: so many from each address, and a request comes within its time or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncIterator

from aiohttp import web

MAX_PER_ADDRESS = 64  #: connections from one address that are no websockets; the oldest goes for the next
REQUEST_S = 10.0  #: for the head of a request; and between two requests
BODY_S = 10.0  #: for the rest of it


class ConnectionLimiter:
    """Connections by address, oldest first."""

    def __init__(self) -> None:
        self._open: dict[str, dict[LimitedRequestHandler, None]] = {}
        self.closed: Counter[str] = Counter()  #: by address: those that went for another

    def enter(self, handler: LimitedRequestHandler) -> None:
        """One more; perhaps another goes for it."""
        there = self._open.setdefault(handler.address, {})
        there[handler] = None
        if len(there) > MAX_PER_ADDRESS:
            oldest = next(iter(there))
            self.leave(oldest)
            self.closed[handler.address] += 1
            if oldest.transport is not None:
                oldest.transport.abort()

    def leave(self, handler: LimitedRequestHandler) -> None:
        """It is closed, or a websocket by now, which others count."""
        there = self._open.get(handler.address, {})
        there.pop(handler, None)
        if not there:
            self._open.pop(handler.address, None)


class LimitedRequestHandler(web.RequestHandler):
    """A connection."""

    def __init__(self, limiter: ConnectionLimiter, server: web.Server) -> None:
        super().__init__(
            server, loop=asyncio.get_running_loop(), keepalive_timeout=REQUEST_S, access_log=None,  # type: ignore[arg-type]  # as its runner does
        )  # fmt: skip
        self.limiter, self.address = limiter, ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It begins."""
        super().connection_made(transport)
        self.address = address_of(transport)
        self.limiter.enter(self)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is over."""
        self.limiter.leave(self)
        super().connection_lost(exc)


def address_of(transport: asyncio.BaseTransport | None) -> str:
    """Whence a connection comes; empty if it is gone already."""
    name = transport.get_extra_info("peername") if transport is not None else None
    return str(name[0]) if name else ""


def upgraded(request: web.Request) -> None:
    """This connection is a websocket now."""
    protocol = request.protocol
    if isinstance(protocol, LimitedRequestHandler):
        protocol.limiter.leave(protocol)


@contextlib.asynccontextmanager
async def open_site(app: web.Application, sock: socket.socket) -> AsyncIterator[ConnectionLimiter]:
    """Serve an application at a bound socket."""
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
