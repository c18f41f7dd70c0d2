"""Faults of the viewer, and invalid messages of its pages: they stay where they happened and are reported."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_viz.error_registry import ErrorRegistry, LogThrottle
from wavesim_viz.page_protocol import (
    AcknowledgeRequest,
    CommanderRequest,
    ControlRequest,
    FaultRequest,
    ShelveRequest,
    WatchRequest,
)
from wavesim_viz.requests import InvalidRequest, parse_request
from wavesim_viz.web import ACCESS, HUB, AccessPolicy, make_app


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[TestClient[Any, Any]]:
    """A viewer's server in this process, whose pages may control."""
    access = AccessPolicy.make("127.0.0.1", 1, True)
    server = TestServer(make_app(Stage(), 50.0, access, tmp_path))
    await server.start_server()
    access.names = {f"127.0.0.1:{server.port}"}
    async with TestClient(server, cookies={access.cookie: access.control_token}) as found:
        yield found


async def connect(client: TestClient[Any, Any]) -> Any:
    return await client.ws_connect("/ws", headers={"Origin": f"http://127.0.0.1:{client.port}"})


async def message(ws: Any, kind: str, good: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
    """The next message of a kind that is as wanted."""
    async with asyncio.timeout(10):
        async for m in ws:
            if m.type is aiohttp.WSMsgType.TEXT and (found := json.loads(m.data))["type"] == kind and good(found):
                return dict(found)
    raise AssertionError(f"the socket ended without '{kind}'")


async def tick(ws: Any) -> float:
    """The tick of the next frame."""
    async with asyncio.timeout(10):
        async for m in ws:
            if m.type is aiohttp.WSMsgType.BINARY:
                return float(struct.unpack_from("<d", m.data, 16)[0])
    raise AssertionError("the socket ended without a frame")


@pytest.mark.parametrize("part", ["scene", "roster", "sounds", "beliefs", "weather", "fences", "panel 0", "kit 0"])
async def test_a_part_that_fails_leaves_the_others(
    client: TestClient[Any, Any], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Frames go on for all; the page shows what is missing, and when it is back; the console has the place."""
    stage, hub = client.server.app[HUB].source, client.server.app[HUB]
    ws, other = await connect(client), await connect(client)
    await ws.send_json({"do": "watch", "row": 0})
    await other.send_json({"do": "watch", "row": 5})
    await tick(ws)
    stage.broken = {part}
    said = await message(ws, "mishaps", lambda m: bool(m["parts"]))
    assert f"{part} is broken" in next(iter(said["parts"].values()))
    before = await tick(other)
    assert await tick(other) > before
    await message(other, "panel")  # another row's data still come
    stage.broken = set()
    assert (await message(ws, "mishaps", lambda m: not m["parts"]))["total"] >= 1
    await message(ws, "panel")
    assert hub.errors.total >= 1
    output = capsys.readouterr().err
    assert "failed; everything else continues" in output and "Traceback" in output and "_work" in output
    assert output.count("Traceback") <= 2, "what repeats is counted, not printed again"


async def test_a_picture_that_fails_once_is_not_the_last(client: TestClient[Any, Any]) -> None:
    """Before, one exception in a frame ended the loop that serves all viewers."""
    stage = client.server.app[HUB].source
    ws = await connect(client)
    stage.broken = {"frame"}
    await message(ws, "mishaps", lambda m: bool(m["parts"]))
    stage.broken = set()
    assert await tick(ws) > 0
    late = await connect(client)  # who comes later is served too
    assert await tick(late) > 0


async def test_what_fails_between_the_parts_ends_that_frame_alone(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What belongs to no part is contained too, and reported as an error of the hub."""
    hub = client.server.app[HUB]
    ws = await connect(client)
    await tick(ws)

    def broken(_: Stage) -> str:
        raise RuntimeError("no word of it")

    with monkeypatch.context() as patch:
        patch.setattr(Stage, "trouble", property(broken), raising=False)
        async with asyncio.timeout(10):
            while hub.errors.total < 3:
                await asyncio.sleep(0.01)
        assert "no word of it" in hub.errors.failed_parts["the hub"]
        broken_at = hub.source.tick
    while await tick(ws) <= broken_at:
        pass


async def test_what_json_does_not_hold_is_not_sent(client: TestClient[Any, Any]) -> None:
    """A page cannot read NaN: the message is left out, and the page shows the error."""
    stage = client.server.app[HUB].source
    ws = await connect(client)
    stage.weather = lambda: {"weather": float("nan")}
    said = await message(ws, "mishaps", lambda m: bool(m["parts"]))
    assert "weather" in next(iter(said["parts"]))
    await tick(ws)


async def test_one_viewer_that_cannot_be_served_goes_alone(client: TestClient[Any, Any]) -> None:
    hub = client.server.app[HUB]
    ws, other = await connect(client), await connect(client)
    await tick(ws)
    (victim, *_) = hub.viewers
    victim.texts.append(b"no text")  # type: ignore[arg-type]  # on purpose: what the socket cannot send
    for _ in range(200):
        if victim not in hub.viewers:
            break
        await asyncio.sleep(0.02)
    assert victim not in hub.viewers and hub.dropped == 1 and hub.errors.total == 1
    assert len(hub.viewers) == 1
    alive = [w for w in (ws, other) if not w.closed]
    for w in alive:
        m = await w.receive(5)
        while m.type is aiohttp.WSMsgType.TEXT:
            m = await w.receive(5)
        if m.type is aiohttp.WSMsgType.BINARY:
            break
    else:
        raise AssertionError("the other got nothing")


async def test_a_command_that_fails_is_a_refusal(client: TestClient[Any, Any]) -> None:
    client.server.app[HUB].source.broken = {"control"}
    ws = await connect(client)
    await ws.send_json({"do": "control", "verb": "start", "value": None})
    reply = await message(ws, "reply")
    assert not reply["ok"] and "control is broken" in reply["text"]
    await tick(ws)


async def test_control_does_not_wait_for_work(client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many trials of models are under way: a command is done at once; and no more work is taken than can be held."""
    from wavesim_viz.configurator import Configurator

    done = threading.Event()
    monkeypatch.setattr(Configurator, "test_drive", lambda self, body: done.wait(20) and {})
    access = client.server.app[ACCESS]
    app = make_app(client.server.app[HUB].source, 50.0, access, Path())
    server = TestServer(app)
    await server.start_server()
    access.names.add(f"127.0.0.1:{server.port}")
    async with TestClient(server, cookies={access.cookie: access.control_token}) as other:
        at = f"http://127.0.0.1:{other.port}"
        asked_for = [asyncio.create_task(other.post("/api/test", json={}, headers={"Origin": at})) for _ in range(40)]
        ws = await connect(other)
        async with asyncio.timeout(5):
            await ws.send_json({"do": "control", "verb": "pause", "value": None})
            assert (await message(ws, "reply"))["ok"]
        done.set()
        answers = [await t for t in asked_for]
        assert {a.status for a in answers} == {200, 400}
        assert "busy" in (await next(a for a in answers if a.status == 400).json())["error"]


async def test_a_request_that_fails_is_reported(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from wavesim_viz import configurator

    def broken() -> None:
        raise RuntimeError("no library")

    monkeypatch.setattr(configurator, "library", broken)
    answer = await client.get("/api/models")
    assert answer.status == 500 and "no library" in (await answer.json())["error"]
    assert client.server.app[HUB].errors.total == 1
    assert "the request GET /api/models failed" in capsys.readouterr().err


NONSENSE = [
    "", "no json", "[" * 30_000, "[]", "null", "3", '"x"', "{}", '{"do":"fly"}', '{"do":"watch"}',
    '{"do":"watch","row":"x"}', '{"do":"watch","row":true}', '{"do":"watch","row":-1}', '{"do":"watch","row":1e3}',
    f'{{"do":"watch","row":{10**30}}}', f'{{"do":"watch","row":{"9" * 5000}}}', '{"do":"control"}',
    '{"do":"control","verb":["start"]}', '{"do":"control","verb":""}', '{"do":"control","verb":"' + "x" * 40 + '"}',
    '{"do":"control","verb":"seek","value":NaN}', '{"do":"control","verb":"seek","value":1e999}',
    '{"do":"control","verb":"seek","value":-Infinity}', '{"do":"control","verb":"speed","value":"2"}',
    '{"do":"control","verb":"speed","value":true}', '{"do":"control","verb":"speed","value":[[[]]]}',
    f'{{"do":"control","verb":"speed","value":{10**400}}}', '{"do":"fault","row":0}',
    '{"do":"fault","row":0,"part":"","kind":"lost","amount":"","field":""}',
    '{"do":"fault","row":0,"part":"a","kind":"lost","amount":1,"field":""}',
    '{"do":"fault","row":true,"part":"a","kind":"lost","amount":"","field":""}',
    '{"do":"fault","row":0,"part":"' + "x" * 65 + '","kind":"lost","amount":"","field":""}',
    '{"do":"order","verb":"shutdown","row":null,"values":{}}', '{"do":"order","verb":"push","row":-1,"values":{}}',
    '{"do":"order","verb":"push","row":0,"values":{"force":[1,NaN,0]}}', '{"do":"order","verb":"push","row":0,"values":{"force":"x"}}',
    '{"do":"order","verb":"push","row":0,"values":{"force":[null]}}', '{"do":"order","verb":"push","row":0,"values":{"force":[[1]]}}',
    '{"do":"order","verb":"push","row":0,"values":{"force":[1,1,1,1,1,1,1,1,1]}}', '{"do":"acknowledge","alarm":-1}',
    '{"do":"order","verb":"pose","row":0,"values":{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}}',
    '{"do":"shelve","alarm":1,"seconds":-1}', '{"do":"shelve","alarm":1,"seconds":true}', '{"do":"shelve","alarm":1,"seconds":1e9}',
    '{"do":"fault","row":0,"part":"a\\u0007","kind":"lost","amount":"","field":""}',
]  # fmt: skip


@pytest.mark.parametrize("text", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_refused_by_one_exception(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_request(text)


def test_what_a_page_may_say() -> None:
    assert parse_request('{"do":"watch","row":7}') == WatchRequest(7)
    assert parse_request('{"do":"watch","row":null}') == WatchRequest(None)
    assert parse_request('{"do":"control","verb":"step","value":25}') == ControlRequest("step", 25)
    assert parse_request('{"do":"control","verb":"start","value":null}') == ControlRequest("start", None)
    fault = '{"do":"fault","row":3,"part":"gps","kind":"bias","amount":"2 m","field":"latitude"}'
    assert parse_request(fault) == FaultRequest(3, "gps", "bias", "2 m", "latitude")
    assert parse_request('{"do":"acknowledge","alarm":null}') == AcknowledgeRequest(None) and parse_request(
        '{"do":"acknowledge","alarm":7}'
    ) == AcknowledgeRequest(7)
    assert parse_request('{"do":"shelve","alarm":7,"seconds":600}') == ShelveRequest(7, 600.0)
    order = '{"do":"order","verb":"weather","row":null,"values":{"wind_speed":12}}'
    assert parse_request(order) == CommanderRequest("weather", None, {"wind_speed": 12})
    assert parse_request('{"do":"control","verb":"speed","value":0.5,"new":1}') == ControlRequest("speed", 0.5)


async def test_nonsense_ends_that_socket_alone(
    client: TestClient[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes, bytes that are no text, numbers that are none, rows beyond any integer: closed with a reason; the other goes on."""
    hub = client.server.app[HUB]
    other = await connect(client)
    for send in (
        lambda ws: ws.send_bytes(b"\x00\xff"),
        lambda ws: ws.send_str('{"do":"control","verb":"seek","value":NaN}'),
        lambda ws: ws.send_str(f'{{"do":"watch","row":{10**30}}}'),
        lambda ws: ws.send_str("[" * 30_000),
        lambda ws: ws._writer.send_frame(b"\xff\xfe", aiohttp.WSMsgType.TEXT),
        lambda ws: ws.send_str("x" * 70_000),
    ):
        ws = await connect(client)
        await tick(ws)
        await send(ws)
        async with asyncio.timeout(10):
            async for _ in ws:
                pass
        assert ws.closed and ws.close_code in (1007, 1008, 1009)
        assert await tick(other) > 0
    assert len(hub.viewers) == 1 and hub.errors.total == 0
    assert sum(hub.refused.counts.values()) >= 4
    output = capsys.readouterr().err
    assert "closed the socket of a page" in output and "Traceback" not in output


def test_an_observer_that_fails_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure in the thread of an observer session is reported; before, it ended for good and the picture stood still."""
    from wavesim_viz import remote

    joined: list[Any] = []

    class Fake:
        """An observer whose first session cannot be understood."""

        names: ClassVar[dict[int, str]] = {}
        models: ClassVar[dict[int, str]] = {}

        def __init__(self, *_: object, **__: object) -> None:
            self.link = self

        def connect(self) -> None:
            joined.append(self)

        def close(self) -> None:
            pass

        def poll(self, timeout: float) -> list[Any]:
            time.sleep(0.01)
            if len(joined) == 1:
                raise KeyError("a row that nobody knows")
            return []

    monkeypatch.setattr(remote, "Observer", Fake)
    monkeypatch.setattr(remote, "RETRY_S", 0.05)
    source = remote.RemoteSource(("127.0.0.1", 1), 20.0)
    mishaps, troubles = ErrorRegistry(lambda _: None), set()
    limit = time.monotonic() + 60.0
    while not (len(joined) == 2 and mishaps.total == 1 and not source.trouble) and time.monotonic() < limit:
        with mishaps.contain("the picture"):
            source.frame()
        troubles.add(source.trouble)
        time.sleep(0.01)
    source.close()
    assert len(joined) == 2 and mishaps.total == 1 and not source.trouble
    assert any("a row that nobody knows" in t and "retrying" in t for t in troubles)


def test_a_listener_that_fails_joins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the thread that hears one body; what it failed at stands in the panel until then."""
    from wavesim_viz import body_listener

    made, again = threading.Event(), threading.Event()
    joined: list[str] = []

    class Fake:
        """A listener session of which the first cannot be understood."""

        actuators, sensors = (), ()

        def __init__(self, *_: object, **__: object) -> None:
            assert made.wait(10)

        def __enter__(self) -> Fake:
            joined.append(body.trouble)
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def poll(self, timeout: float) -> list[Any]:
            if len(joined) == 1:
                raise KeyError("a sensor that nobody knows")
            again.set()
            body._closed.wait(timeout)
            return []

    monkeypatch.setattr(body_listener, "Broker", Fake)
    monkeypatch.setattr(body_listener, "RETRY_S", 0.0)
    body = body_listener.BodyListener(0, "a", "lauv", ("127.0.0.1", 1), None)
    made.set()
    assert again.wait(10)
    assert joined[0] == body.trouble == "" and "KeyError: 'a sensor that nobody knows'" in joined[1]
    body.close()
    body._thread.join(10)
    assert not body._thread.is_alive() and len(joined) == 2


def test_what_repeats_is_reported_less_often() -> None:
    often = LogThrottle()
    assert [n for _ in range(1000) if (n := often.count("a"))] == [1, 10, 100, 1000]
    for k in range(1000):
        often.count(f"kind {k}")
    assert len(often.counts) <= 101
    lines: list[str] = []
    mishaps = ErrorRegistry(lines.append)
    for k in range(500):
        with mishaps.contain(f"part {k}"):
            raise ValueError(k)
    assert mishaps.total == 500 and len(mishaps.failed_parts) <= 100


# ---------------------------------------------------------------------------------- in the page


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[tuple[Stage, str]]:
    """A viewer of a stage in a thread, and its address."""
    source = Stage()
    with on_stage(source, tmp_path) as url:
        yield source, url


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_the_page_says_what_is_missing(stage: tuple[Stage, str], open_page: Callable[[str], Page]) -> None:
    """What the viewer's server fails at stands in the page while it lasts; what the page itself fails at likewise."""
    source, url = stage
    page = open_page(url)
    page.wait("window.wavesim && wavesim.store.rows.length === 1")
    page.page.locator("#fleet tr[data-row='0']").click()
    page.wait("wavesim.store.panel && wavesim.store.panel.row === 0")
    source.broken = {"panel 0"}
    page.wait("!document.querySelector('#mishap').classList.contains('hidden')")
    assert "the data of 'a' (RuntimeError: panel 0 is broken)" in page.see(
        "document.querySelector('#mishap').textContent"
    )
    page.shot("mishap")
    time = page.see("wavesim.store.last.time")
    page.wait(f"wavesim.store.last.time > {time} + 0.5")
    source.broken = set()
    page.wait("document.querySelector('#mishap').classList.contains('hidden')")
    page.clean()
    # a part of the page that fails: the others are drawn, and it says so
    page.see("(() => { wavesim.app.fleet.update = () => { throw new Error('no list') } })()")
    page.wait(
        "document.querySelector('#mishap').textContent.includes('Error in this page: the fleet list (Error: no list')"
    )
    frames = page.see("wavesim.view.frames")
    page.wait(f"wavesim.view.frames > {frames} + 2")
    page.see("wavesim.link.socket.onmessage({ data: '{' })")
    page.wait("document.querySelector('#mishap').textContent.includes('a message from the viewer')")
