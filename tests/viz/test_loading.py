"""Loading of the page: compressed files that browsers keep, and a first view that needs few of them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from playwright.sync_api import expect

from tests.viz.browser import need
from tests.viz.sea import Opener
from tests.viz.stage import Stage, on_stage
from wavesim_viz import hub as hubs
from wavesim_viz import scene as scenes
from wavesim_viz import web
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.web import STATIC, AccessPolicy, make_app

#: Connection of a phone: 1.6 Mbit/s, round trip 150 ms ("Slow 4G" of Lighthouse).
SLOW_4G = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
MOST_FIRST = 43_000  #: maximum size of the files of the first view, in bytes: a fifth of a second at 1.6 Mbit/s


@pytest.fixture
async def client(tmp_path: Path) -> Any:
    """A viewer in this process, with one body. No decompression, so that tests see the bytes that were sent."""
    if not (STATIC / "index.html").is_file():
        need("NO PAGE: `make web` builds it (it needs Node.js)")
    app = make_app(Stage(), 50.0, AccessPolicy.make("127.0.0.1", 1, False), tmp_path)
    server = TestServer(app)
    await server.start_server()
    app[web.ACCESS].names = {f"127.0.0.1:{server.port}"}
    async with TestClient(server, auto_decompress=False) as client:
        yield client


def first_files() -> list[str]:
    """Return the names of the files that the page requests before it shows anything."""
    found = re.findall(r'(?:href|src)="/static/([^"]+\.(?:js|css))"', (STATIC / "index.html").read_text())
    assert len(found) > 2
    return found


async def test_files_are_compressed_and_kept_by_browsers(client: TestClient[Any, Any]) -> None:
    plain, packed = {"Accept-Encoding": "identity"}, {"Accept-Encoding": "gzip, deflate"}
    for name in ["", *(f"static/{n}" for n in [*first_files(), "icon.svg"])]:
        async with client.get(f"/{name}", headers=plain) as reply:
            whole = await reply.read()
            assert reply.status == 200 and "Content-Encoding" not in reply.headers
            assert reply.headers["Vary"] == "Accept-Encoding"
        async with client.get(f"/{name}", headers=packed) as reply:
            sent = await reply.read()
            assert reply.headers["Content-Encoding"] == "gzip" and reply.headers["Vary"] == "Accept-Encoding"
            assert gzip.decompress(sent) == whole and len(sent) == int(reply.headers["Content-Length"])
            # a name with a hash never gets another content; the page itself is checked at each visit
            kept = reply.headers["Cache-Control"]
            assert kept == ("private, max-age=31536000, immutable" if name.endswith(("js", "css")) else "no-cache")
            tag = reply.headers["ETag"]
        async with client.get(f"/{name}", headers={**packed, "If-None-Match": tag}) as reply:
            assert reply.status == 304 and await reply.read() == b""


async def test_answers_are_compressed(client: TestClient[Any, Any]) -> None:
    async with client.get("/api/schema", headers={"Accept-Encoding": "gzip"}) as reply:
        sent = await reply.read()
        assert reply.headers["Content-Encoding"] == "gzip" and reply.headers["Vary"] == "Accept-Encoding"
        assert 5 * len(sent) < len(gzip.decompress(sent))


def test_the_first_view_needs_few_bytes() -> None:
    """3D graphics, charts, sonar windows and the configurator come later."""
    if not (STATIC / "index.html").is_file():
        need("NO PAGE: `make web` builds it (it needs Node.js)")
    texts = "".join((STATIC / name).read_text() for name in first_files())
    assert "WebGLRenderer" not in texts and "u-legend" not in texts.replace(".u-legend", "")
    assert sum((STATIC / f"{name}.gz").stat().st_size for name in first_files()) < MOST_FIRST


class Crowd(Stage):
    """Twenty bodies with a long history."""

    def roster(self) -> list[list[Any]]:
        return [[k, f"v{k}", "lauv", "underwater", 1] for k in range(20)]

    def frame(self) -> ViewerFrame:
        self.tick += 1
        p = np.array([[10.0 * k, 0.01 * self.tick, 5.0] for k in range(20)])
        return ViewerFrame(self.tick * 0.1, self.tick, 1, bodies(range(20), p, [[1, 0, 0, 0]] * 20, np.ones((20, 3))))


@pytest.mark.system
async def test_a_page_can_draw_before_it_has_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tracks are most of the bytes. Messages to other machines are compressed."""
    app = make_app(Crowd(), 50.0, AccessPolicy.make("127.0.0.1", 1, False), tmp_path)
    server = TestServer(app)
    await server.start_server()
    app[web.ACCESS].names = {f"127.0.0.1:{server.port}"}
    async with TestClient(server) as client:
        origin = f"http://127.0.0.1:{server.port}"
        for local in (True, False):
            monkeypatch.setattr(web, "_is_local", lambda address, local=local: local)
            async with client.ws_connect("/ws", origin=origin, compress=15) as ws:
                order = await received_until(ws, "tracks")
                assert {"hello", "scene", "roster", "frame"} <= set(order[: order.index("details")])
                assert bool(ws.compress) is not local


async def received_until(ws: aiohttp.ClientWebSocketResponse, last: str) -> list[str]:
    """Return the types of the messages up to one of a type."""
    order: list[str] = []
    while last not in order:
        message = await ws.receive(10)
        order.append(message.json()["type"] if message.type is aiohttp.WSMsgType.TEXT else "frame")
    return order


@pytest.mark.system
async def test_details_and_history_do_not_delay_the_first_picture(tmp_path: Path) -> None:
    """A page that still loads its scripts receives the bodies once. The rest follows on request."""
    app = make_app(Crowd(), 50.0, AccessPolicy.make("127.0.0.1", 1, False), tmp_path)
    server = TestServer(app)
    await server.start_server()
    app[web.ACCESS].names = {f"127.0.0.1:{server.port}"}
    async with (
        TestClient(server) as client,
        client.ws_connect("/ws?first", origin=f"http://127.0.0.1:{server.port}") as ws,
        client.ws_connect("/ws", origin=f"http://127.0.0.1:{server.port}") as other,
    ):
        # the other page has everything, and many frames
        assert "details" in await received_until(other, "tracks")
        for _ in range(5):
            await received_until(other, "frame")
        await ws.send_json({"do": "watch", "row": 0})
        before = await received_until(ws, "kit")
        assert {"hello", "scene", "roster"} <= set(before) and before.count("frame") == 1
        assert not {"details", "tracks"} & set(before)
        await ws.send_json({"do": "details"})
        after = await received_until(ws, "tracks")
        assert "details" in after and "scene" not in after


def test_a_scene_has_first_only_what_its_bodies_need() -> None:
    """The library's models and the sea bed are most of a scene's bytes."""
    whole = scenes.empty("x")
    bed: Any = {"north": [0.0, 1.0], "east": [0.0, 1.0], "depth": [[1.0, 2.0], [3.0, 4.0]]}
    whole |= {"bed": bed, "bodies": [{"name": "a", "model": "lauv"}]}  # type: ignore[typeddict-item]
    first, details = scenes.scene_messages(whole)
    assert set(first["scene"]["models"]) == {"lauv"} and first["scene"]["bed"] is None
    assert details["bed"] == bed and len(details["models"]) > 5


@pytest.fixture
def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(web, "_is_local", lambda _address: False)
    monkeypatch.setattr(hubs, "IDLE_PERIOD_S", 0.02)
    with on_stage(Crowd(), tmp_path) as url:
        yield url


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(240)
def test_a_phone_sees_bodies_before_the_3d_view(context: Any, open_page: Opener, crowd: str) -> None:
    """On a slow connection, the chart shows the bodies first, and the 3D view replaces it. The page in one piece took
    five seconds for its script alone.
    """
    page = open_page(crowd)
    cdp = context.new_cdp_session(page.page)
    cdp.send("Network.enable")
    cdp.send("Network.setCacheDisabled", {"cacheDisabled": True})
    cdp.send("Network.emulateNetworkConditions", SLOW_4G)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.page.reload(wait_until="commit")
    page.wait("window.wavesim && wavesim.view && wavesim.view.frames > 1")
    parts = page.see(
        "performance.getEntriesByType('resource').map(e => [e.name, e.startTime, e.responseEnd, e.transferSize])"
    )
    first = page.see("performance.getEntriesByName('first picture')[0].startTime")
    before = [p for p in parts if p[2] <= first]
    later = [p for p in parts if p[1] >= first]
    assert sum(p[3] for p in before) < MOST_FIRST + 10_000
    # the first script opens the socket, so bodies are drawn with the first picture
    assert page.see("performance.getEntriesByName('socket')[0].startTime") < first
    page.until(lambda: {"do details", "details", "tracks"} <= page.protocol.seen)
    assert {"view3d", "workplace"} <= {p[0].rpartition("/")[2].partition("-")[0] for p in later}
    assert not any("configurator" in p[0] for p in parts)
    for tool in ("do-mission", "do-helm", "link", "bottom", "right"):
        assert page.page.locator(f"#{tool}").count() == 1
    assert page.see("wavesim.app.root.querySelectorAll('#fleet tr[data-row]').length") == 20
    page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(240)
def test_a_page_whose_tools_cannot_be_loaded_says_so(context: Any, crowd: str) -> None:
    """The bodies stay on the chart and in the list."""
    page = context.new_page()
    page.route("**/workplace-*", lambda route: route.abort())
    page.goto(crowd)
    expect(page.locator(".banners")).to_contain_text("the tools and panels", timeout=60_000)
    expect(page.locator("#fleet tr[data-row]")).to_have_count(20)
    page.close()
