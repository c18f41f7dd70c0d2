"""Connections that are kept open: they end in time, and lock no client out."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from tests.viz.stage import Stage
from wavesim_sdk.shared_memory import SharedMemoryArea
from wavesim_sdk.tables import NOTICE, SIMULATION_TABLES, VEHICLE_TABLES
from wavesim_server.network.front_tables import FrontTables
from wavesim_viz import connection_limits, web
from wavesim_viz.connection_limits import ConnectionLimiter, open_site
from wavesim_viz.frame import decode_text
from wavesim_viz.web import ACCESS, HUB, AccessPolicy, make_app


@contextlib.asynccontextmanager
async def site(
    folder: Path, control: bool = False
) -> AsyncIterator[tuple[int, ConnectionLimiter, aiohttp.web.Application]]:
    """A viewer's server, as the command makes it."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    access = AccessPolicy.make("127.0.0.1", sock.getsockname()[1], control)
    app = make_app(Stage(), 50.0, access, folder)
    async with open_site(app, sock) as found:
        yield access.port, found, app


async def half(port: int, host: str = "127.0.0.1", text: str = "GET / HTTP/1.1\r\nHost: x") -> asyncio.StreamReader:
    """A request that does not end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(host, 0))
    writer.write(text.encode())
    _kept.append(writer)
    return reader


_kept: list[asyncio.StreamWriter] = []


async def test_a_request_comes_in_time_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "REQUEST_S", 0.3)
    monkeypatch.setattr(web, "BODY_S", 0.3)
    async with site(tmp_path, control=True) as (port, _, app):
        head = await half(port)
        post = (
            f"POST /api/check HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: http://127.0.0.1:{port}\r\n"
            f"Cookie: {app[ACCESS].cookie}={app[ACCESS].control_token}\r\nContent-Length: 50\r\n\r\n{{"
        )
        body = await half(port, text=post)
        async with asyncio.timeout(10):
            assert await head.read() == b""
            assert b"the request was not complete within 0.3 s" in await body.read(2000)


async def test_who_holds_requests_open_locks_out_nobody(tmp_path: Path) -> None:
    """The oldest of that address goes for the next; pages of other addresses, and its own websockets, stay."""
    async with site(tmp_path) as (port, there, _):
        url = f"http://127.0.0.1:{port}"
        async with aiohttp.ClientSession() as session, session.ws_connect(f"{url}/ws", origin=url) as ws:
            first = await half(port, "127.0.0.2")
            waiting = [await half(port) for _ in range(3 * connection_limits.MAX_PER_ADDRESS)]
            async with session.get(f"{url}/static/index.html") as page:
                assert page.status in (200, 404)
            assert there.closed["127.0.0.1"] >= 2 * connection_limits.MAX_PER_ADDRESS and not there.closed["127.0.0.2"]
            async with asyncio.timeout(10):
                with contextlib.suppress(ConnectionError):
                    assert await waiting[0].read() == b""
                await ws.send_str("nonsense")  # it is heard: its socket was not the one that went
                while (last := await ws.receive()).type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY):
                    pass
            assert last.type is aiohttp.WSMsgType.CLOSE and last.data == aiohttp.WSCloseCode.POLICY_VIOLATION
            assert not first.at_eof()


async def test_sockets_of_one_address_do_not_lock_out_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MOST_VIEWERS", 4)
    async with site(tmp_path) as (port, _, app):
        url, held = f"http://127.0.0.1:{port}", []
        async with aiohttp.ClientSession() as session:
            for _ in range(6):
                held.append(await session.ws_connect(f"{url}/ws", origin=url))
            connector = aiohttp.TCPConnector(local_addr=("127.0.0.3", 0))
            async with (
                aiohttp.ClientSession(connector=connector) as other,
                other.ws_connect(f"{url}/ws", origin=url) as ws,
            ):
                assert (await ws.receive()).type is aiohttp.WSMsgType.TEXT
                each = sorted(v.address for v in app[HUB].viewers)
                assert each == ["127.0.0.1"] * 3 + ["127.0.0.3"], "the newest of each"


async def test_another_machine_has_its_share_of_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "MOST_EACH", 2)
    monkeypatch.setattr(web, "_is_local", lambda address: address != "127.0.0.4")
    async with site(tmp_path) as (port, _, app):
        url = f"http://127.0.0.1:{port}"
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.4", 0))
        async with aiohttp.ClientSession() as session, aiohttp.ClientSession(connector=connector) as other:
            mine = [await session.ws_connect(f"{url}/ws", origin=url) for _ in range(3)]
            theirs = [await other.ws_connect(f"{url}/ws", origin=url) for _ in range(4)]
            each = sorted(v.address for v in app[HUB].viewers)
            assert each == ["127.0.0.1"] * 3 + ["127.0.0.4"] * 2 and len(mine) + len(theirs) == 7


def test_a_notice_is_not_cut_in_the_midst_of_a_letter() -> None:
    """Every viewer lost all signals for as long as such a notice stood in shared memory."""
    room = NOTICE.dtype["text"].itemsize
    areas = [
        SharedMemoryArea.create_private([(t, 8) for t in tables]) for tables in (SIMULATION_TABLES, VEHICLE_TABLES)
    ]
    publisher = FrontTables(*areas)
    for k in range(4):
        publisher.notice(0, 0, "b", "x" * (room - k) + "\u6c34\u6c34")
    publisher.flush(1)
    texts = areas[0]["notice"].snapshot()[1]["text"][:4]
    assert [bytes(t).decode() for t in texts] == [
        "x" * room,
        "x" * (room - 1),
        "x" * (room - 2),
        "x" * (room - 3) + "\u6c34",
    ]
    assert decode_text(np.bytes_("\u6c34".encode()[:2])) == "\ufffd", "of a server that cuts"
