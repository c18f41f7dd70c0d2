"""The viewer's server without a browser: frames, guards, slow viewers, and requests of the configurator."""

from __future__ import annotations

import asyncio
import errno
import json
import math
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from lxml import etree

from tests.viz.protocol import Listener, faults
from tests.viz.stage import Stage
from wavesim_sdk.errors import WaveSimError
from wavesim_sdk.tables import SIGNALS
from wavesim_viz import connection_limits
from wavesim_viz import hub as hubs
from wavesim_viz.configurator import Configurator, preset
from wavesim_viz.frame import HeldBodyDetector, ViewerFrame, bodies, signals, to_json_value
from wavesim_viz.page_content import BodyEquipment
from wavesim_viz.page_protocol import (
    ChartData,
    ElementRule,
    ErrorAnswer,
    ModelCheck,
    ModelEntry,
    SavedFile,
    SavedMission,
    SavedModel,
    SimulatedMotion,
    VehicleEntry,
    VehicleInstruments,
    XmlTree,
)
from wavesim_viz.web import HUB, AccessPolicy, make_app
from wavesim_viz.xml_trees import RequestFailed, to_element, to_text, to_tree
from wavesim_world.config import LoadedConfig, library, load
from wavesim_world.config.build import read_models

SEA = (
    '<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/><buoy name="b" model="buoy" position="9 0 5 m"/></fleet>'
)


@pytest.fixture
async def client(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[TestClient[Any, Any]]:
    """A viewer's server in this process; ``parametrize`` gives (address, control)."""
    address, control = getattr(request, "param", ("127.0.0.1", False))
    access = AccessPolicy.make(address, 1, control)
    app = make_app(Stage(), 50.0, access, tmp_path)
    server = TestServer(app)
    await server.start_server()
    access.port = server.port or 0
    if access.names:
        access.names = {f"127.0.0.1:{server.port}"}
    local = {access.cookie: access.control_token} if address == "127.0.0.1" and control else {}
    async with TestClient(server, cookies=local) as found:
        found.access = access  # type: ignore[attr-defined]
        yield found


def origin(client: TestClient[Any, Any]) -> str:
    return f"http://127.0.0.1:{client.port}"


def test_bytes_of_a_frame() -> None:
    """Read as docs say, by struct alone."""
    table = np.zeros(1, SIGNALS.dtype)
    table["id"], table["source"], table["radius"], table["level"] = (1 << 24) + 5, 3, 75.0, 120.0
    table["origin_W"] = (7, 8, 9)
    f = ViewerFrame(
        12.5,
        3125,
        1,
        bodies([4], np.array([[1.0, 2.0, 3.0]]), [[0.5, 0.5, 0.5, 0.5]], np.array([[3.0, 4.0, 0.0]])),
        signals(table),
        2.0,
        1.9,
        0.25,
        7.0,
        3,
        0.5,
        6,
        True,
    )
    data = f.pack()
    head = struct.unpack("<4sIddffffIIIIfI", data[:64])
    assert head == (b"WVF1", 1, 12.5, 3125.0, 2.0, pytest.approx(1.9), 0.25, 7.0, 3, 6, 1, 1, 0.5, 1)
    assert struct.unpack("<10f", data[64:104]) == (4, 1, 2, 3, 0.5, 0.5, 0.5, 0.5, 5, 0)
    assert struct.unpack("<9f", data[104:]) == (5, 3, 7, 8, 9, 75, 120, 0, 0)


def test_conditions_of_bodies() -> None:
    """What is no state has no place; who moved and stands to the last bit while time goes on is held; who never moved is not."""
    p = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, -1e25], [np.nan, 0.0, 0.0], [0.0, 0.0, 4.0]])
    packed = bodies(
        range(4),
        p,
        [[1, 0, 0, 0]] * 4,
        np.array([[0.0] * 3, [0.0] * 3, [0.0] * 3, [1e200, 0, 0]]),
        np.array([True, True, False, False]),
    )
    assert packed[:, 9].tolist() == [1, 2, 2, 2]
    assert np.isnan(packed[1:, 1:9]).all() and packed[0, 1:4].tolist() == [1, 2, 3]
    holds, roster = (
        HeldBodyDetector({"late": (0.0, 0.0, 0.0)}),
        [[k, n, "m", "t", 1] for k, n in enumerate(("moved", "still", "late"))],
    )
    v, q = np.array([[1e-300, 0, 0], [0, 0, 0], [0, 0, 0]], float), np.array([[0.0] * 3, [0.0] * 3, [5.0, 0, 0]])
    assert holds.update(1, roster, range(3), q, v, v).tolist() == [False] * 3
    v[:] = 0.0
    assert holds.update(2, roster, range(3), q, v, v).tolist() == [True, False, True]
    assert holds.update(2, roster, range(3), q, v, v).tolist() == [True, False, True], "paused"
    roster[0][4] = 2  # another body in its row
    assert holds.update(3, roster, range(3), q, v, v).tolist() == [False, False, True]


def test_json_has_no_nan() -> None:
    text = json.dumps(
        to_json_value({"a": np.float64("nan"), "b": np.array([1.0, np.inf]), "c": table_row()}), allow_nan=False
    )
    assert json.loads(text)["b"] == [1.0, None]


def table_row() -> Any:
    row = np.zeros(1, SIGNALS.dtype)[0]
    row["level"] = np.nan
    return row


# ---------------------------------------------------------------------------------- guards


async def test_strangers_are_refused(client: TestClient[Any, Any]) -> None:
    """Another name for this machine (rebinding), another page's websocket, another page's change, a path outside."""
    assert (await client.get("/", headers={"Host": "evil.example"})).status == 421
    for bad in ("http://evil.example", "null", ""):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect("/ws", headers={"Origin": bad})
        assert refused.value.status == 403
        assert (await client.post("/api/check", json={}, headers={"Origin": bad})).status == 403
    for path in ("/static/..%2fweb.py", "/static/%2e%2e/web.py", "/appearance/..%2f..", "/nothing"):
        assert (await client.get(path)).status == 404
    page = await client.get("/api/schema")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert page.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_viewer_looks_and_does_not_touch(client: TestClient[Any, Any]) -> None:
    source = client.server.app[HUB].source
    async with client.ws_connect("/ws", headers={"Origin": origin(client)}) as ws:
        await ws.send_json({"do": "control", "verb": "shutdown"})
        replies = [m async for m in some(ws, "reply")]
    assert not replies[0]["ok"] and "--control" in replies[0]["text"]
    assert source.verbs == []
    saved = await client.post("/api/save", json={"file": "x.xml"}, headers={"Origin": origin(client)})
    assert saved.status == 400 and "--control" in (await saved.json())["error"]


@pytest.mark.parametrize("client", [("0.0.0.0", True)], indirect=True)
async def test_elsewhere_a_token_is_needed(client: TestClient[Any, Any]) -> None:
    """None, a wrong one: refused. The viewer's: it looks. The other: it controls. It goes from the address to a cookie."""
    access = client.access  # type: ignore[attr-defined]
    assert (await client.get("/api/schema")).status == 403
    assert (await client.get("/api/schema?token=guess")).status == 403
    assert access.view_token != access.control_token
    for token, may in ((access.view_token, False), (access.control_token, True)):
        first = await client.get(f"/?token={token}", allow_redirects=False)
        assert first.status == 303 and first.headers["Location"] == "/"
        assert f"wavesim_token_{access.port}=" in first.headers["Set-Cookie"], "another viewer's cookie stays"
        assert "HttpOnly" in first.headers["Set-Cookie"] and "SameSite=Lax" in first.headers["Set-Cookie"]
        async with client.ws_connect(
            "/ws", headers={"Origin": origin(client), "Cookie": f"{access.cookie}={token}"}
        ) as ws:
            hello = await anext(some(ws, "hello"))
            assert hello["control"] is may


@pytest.mark.parametrize("client", [("127.0.0.1", True)], indirect=True)
async def test_control_on_this_machine_needs_the_token_too(client: TestClient[Any, Any]) -> None:
    """Another user of the machine has no token: no page, no socket, no change. The printed address has one."""
    access, mine = client.access, {"Origin": origin(client)}  # type: ignore[attr-defined]
    async with aiohttp.ClientSession() as stranger:
        for path in ("/", "/api/schema", "/?token=guess"):
            assert (await stranger.get(f"{origin(client)}{path}")).status == 403
        assert (await stranger.post(f"{origin(client)}/api/check", json={}, headers=mine)).status == 403
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await stranger.ws_connect(f"{origin(client)}/ws", headers=mine)
        assert refused.value.status == 403
    assert access.control_token in access.url(access.control_token) and not access.view_token
    async with client.ws_connect("/ws", headers=mine) as ws:
        assert (await anext(some(ws, "hello")))["control"]


async def test_a_new_viewer_costs_the_others_nothing(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets the current state and the past; the past is encoded once, and the others do not get all that again."""
    hub = client.server.app[HUB]
    asked, tracks = [0], hub.history.tracks
    monkeypatch.setattr(hub.history, "tracks", lambda: asked.__setitem__(0, asked[0] + 1) or tracks())
    headers, everything = {"Origin": origin(client)}, {"hello", "weather", "fleet", "tracks", "sounds"}

    async def received(ws: Any, until: Callable[[list[str]], bool]) -> list[str]:
        """The types of the messages until these are all there; a frame is `frame`."""
        found: list[str] = []
        async with asyncio.timeout(10):
            while not until(found):
                m = await ws.receive()
                found.append(json.loads(m.data)["type"] if m.type is aiohttp.WSMsgType.TEXT else "frame")
        return found

    async with client.ws_connect("/ws", headers=headers) as first:
        await received(first, lambda found: everything <= set(found))
        monkeypatch.setattr(hub.history, "add", lambda *_: None)  # the past does not change from now on
        made = []
        for _ in range(5):
            async with client.ws_connect("/ws", headers=headers) as other:
                await received(other, lambda found: everything <= set(found))
            made.append(asked[0])
        assert made[-1] == made[0] <= 2
        again = await received(first, lambda found: found.count("frame") == 20)
        assert not set(again) & {"fleet", "trouble", "sea", "cables", "tracks"}


async def test_an_address_opens_a_limited_number_of_pages(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "BURST", 2)
    headers = {"Origin": origin(client)}
    sockets = [await client.ws_connect("/ws", headers=headers) for _ in range(2)]
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await client.ws_connect("/ws", headers=headers)
    assert refused.value.status == 429
    assert all(not ws.closed for ws in sockets)


def test_the_budget_of_openings_grows_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "BURST", 3)
    doors = connection_limits.ConnectionRateLimiter()
    assert [doors.allow("a", 0.0) for _ in range(5)] == [True, True, True, False, False]
    assert doors.allow("b", 0.0), "another address"
    second = 1.0 / connection_limits.OPENINGS_PER_S
    assert [doors.allow("a", t * second) for t in (0.9, 1.0, 1.5, 2.0)] == [False, True, False, True]
    assert [doors.allow("a", 99.0 * second) for _ in range(4)] == [True, True, True, False]
    assert len(doors._budgets) == 1, "addresses that have their whole budget are forgotten"


async def some(ws: Any, kind: str) -> AsyncIterator[dict[str, Any]]:
    """The first message of a kind."""
    async for message in ws:
        if message.type is aiohttp.WSMsgType.TEXT and (found := json.loads(message.data))["type"] == kind:
            yield found
            return


async def test_a_frozen_viewer_costs_the_others_nothing(
    client: TestClient[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is dropped when it took nothing for so long; meanwhile another gets every frame."""
    monkeypatch.setattr(hubs, "FROZEN_S", 1.0)
    hub = client.server.app[HUB]
    big = np.zeros((20_000, 9), np.float32)  # 720 kB a frame: soon the frozen one's buffers are full
    source = hub.source
    make = source.frame
    source.frame = lambda: ViewerFrame(make().time_s, source.tick, 1, big)
    _, writer = await asyncio.open_connection("127.0.0.1", client.port, limit=1024)
    writer.write(
        f"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nOrigin: {origin(client)}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    ticks: list[float] = []
    async with client.ws_connect("/ws", headers={"Origin": origin(client)}, max_msg_size=0) as ws:
        async for message in ws:
            if message.type is aiohttp.WSMsgType.BINARY:
                ticks.append(struct.unpack_from("<d", message.data, 16)[0])
            if hub.dropped and len(ticks) > 20:
                break
    assert hub.dropped == 1
    assert len(hub.viewers) <= 1
    assert np.mean(np.diff(ticks) == 1.0) > 0.7, "the other got its frames in turn"
    writer.close()


# ---------------------------------------------------------------------------------- configurator


def test_trees_are_the_models_again(tmp_path: Path) -> None:
    """Every model of the library, through its tree and back, is what the reader reads."""
    c = Configurator(tmp_path, lambda: "")
    names = [m["name"] for m in c.models({})]
    assert set(library()) <= set(names)
    for name in library():
        root = etree.Element("models")
        root.append(to_element(c.model({"name": name})))
        path = tmp_path / "again.xml"
        path.write_text(to_text(root))
        assert read_models(path)[name] == library()[name]
        path.unlink()


def test_the_schema_knows_every_key() -> None:
    schema = Configurator(Path(), lambda: "").schema({})
    thruster = {k["name"]: k for k in schema["Thruster"]["keys"]}
    assert (
        thruster["position"]["count"] == 3
        and thruster["position"]["units"][0] == "m"
        and thruster["position"]["required"]
    )
    assert thruster["lag"]["low"] == "0 s"
    assert {c["name"] for c in schema["Model"]["children"]} >= {"thruster", "fin", "mass", "added-mass", "transducer"}
    assert schema["Dvl"]["keys"]


def test_what_cannot_be_simulated_is_reported(tmp_path: Path) -> None:
    c = Configurator(tmp_path, lambda: "")
    tree = c.model({"name": "lauv"})
    assert c.check({"model": tree})["ok"]
    tree["attributes"]["type"] = "flying"
    assert "'flying' is not allowed" in c.check({"model": tree})["error"]
    for bad in (None, {}, {"tag": "model", "attributes": {"name": 3}}, {"tag": "<x>"}, []):
        with pytest.raises(RequestFailed):
            c.check({"model": bad})
            raise RequestFailed("an element, but no model")
    with pytest.raises(RequestFailed, match="document types"):
        c.import_model({"file": "m.xml", "text": '<!DOCTYPE m [<!ENTITY e "x">]><models/>'})
    assert to_tree(etree.fromstring("<a b='1'><c/></a>")) == {
        "tag": "a",
        "attributes": {"b": "1"},
        "text": "",
        "children": [{"tag": "c", "attributes": {}, "text": "", "children": []}],
    }


def test_files_stay_in_the_folder(tmp_path: Path) -> None:
    c = Configurator(tmp_path, lambda: "")
    tree = c.model({"name": "lauv"})
    for name in ("../x.xml", "/tmp/x.xml", "x.txt", ".x.xml", "", None, "a/b.xml"):
        with pytest.raises(RequestFailed, match="file name"):
            c.save({"file": name, "model": tree})
    c.save({"file": "mine.xml", "model": tree})
    with pytest.raises(RequestFailed, match="already exists"):
        c.save({"file": "mine.xml", "model": tree})
    c.save({"file": "mine.xml", "model": tree, "replace": True})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine-trial.xml", "mine.xml"]


def test_presets_turn_and_step() -> None:
    """A turning circle goes to starboard... of every model that can be steered."""
    for name in ("lauv", "remus100", "jolner"):
        model = library()[name]
        turn, step = preset(model, "turn"), preset(model, "step")
        assert set(step) <= set(turn) and turn != step
        assert all(math.isfinite(v) for v in turn.values())


def test_a_mission_is_written_beside_its_configuration(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    loaded = config(SEA)
    c = Configurator(tmp_path, lambda: str(loaded.path))
    body = {
        "file": "m.xml",
        "waypoints": {"a": [[1, 2, 3, 1.5]]},
        "beacons": [{"name": "x", "position": [4, 5, 6]}],
        "fences": [{"name": "f", "keep": "outside", "corners": [[0, 0], [10, 0], [0, 10]]}],
    }
    found = load(c.mission(body)["file"]).config.fleet
    assert [(w.north, w.east, w.depth, w.speed) for w in found.vehicle[0].waypoint] == [(1, 2, 3, 1.5)]
    assert found.buoy[-1].name == "x" and found.fence[0].keep == "outside"
    with pytest.raises(RequestFailed, match="already exists"):
        c.mission(body)
    for bad in (
        {"waypoints": {"absent": []}},
        {"waypoints": {"a": [[1, 2]]}},
        {"waypoints": {"a": [[1, 2, 3, float("nan")]]}},
        {"waypoints": {"a": [[1e308, 2, 3, 1.5]]}},
        {"waypoints": {"a": [[1, 2, 1e308, 1.5]]}},
        {"fences": [{"name": "f", "corners": [[0, 0], [10, 0], [0, -1e308]]}]},
    ):
        with pytest.raises(WaveSimError):
            c.mission({"file": "n.xml", **bad})
    assert not (tmp_path / "n.xml").exists()
    assert not list(tmp_path.glob(".*"))


def test_a_write_that_fails_leaves_the_old_file(
    config: Callable[..., LoadedConfig], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk, for example, must not destroy the configuration that the user replaces."""
    loaded = config(SEA)
    c = Configurator(tmp_path, lambda: str(loaded.path))
    old = Path(c.mission({"file": "m.xml"})["file"]).read_bytes()
    write = Path.write_bytes

    def write_half(path: Path, content: bytes) -> int:
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(RequestFailed, match=r"cannot write .*m\.xml: No space left on device"):
        c.mission({"file": "m.xml", "replace": True})
    assert (tmp_path / "m.xml").read_bytes() == old
    assert not list(tmp_path.glob(".*"))


def test_nothing_is_written_outside_the_folder(config: Callable[..., LoadedConfig], tmp_path: Path) -> None:
    """The user named one folder; the configuration of the server may lie elsewhere, and is only read there."""
    loaded = config(SEA)
    (folder := tmp_path / "mine").mkdir()
    c, before = Configurator(folder, lambda: str(loaded.path)), set(tmp_path.rglob("*"))
    instruments = {"file": loaded.path.name, "vehicle": "a", "sensors": {"tag": "sensors", "children": []}}
    assert c.check_instruments(instruments)["ok"]
    for save in (c.mission, c.save_instruments):
        with pytest.raises(RequestFailed, match=f"start it with --folder {tmp_path}$"):
            save({**instruments, "file_out": "m.xml"})
    assert set(tmp_path.rglob("*")) == before


def test_a_vehicles_instruments_are_written_beside_its_configuration(
    config: Callable[..., LoadedConfig], tmp_path: Path
) -> None:
    loaded = config(SEA.replace("</fleet>", "<sensors><ctd/></sensors></fleet>"))
    c = Configurator(tmp_path, lambda: str(loaded.path))
    assert {"file": loaded.path.name, "name": "a", "model": "lauv"} in c.vehicles({})
    asked = {"file": loaded.path.name, "name": "a"}
    found = c.vehicle(asked)
    assert found["sensors"] is None and found["given"] == ["ctd"] and found["look"]["name"] == "lauv"
    gps = {"tag": "gps", "attributes": {"name": "mast"}, "text": "", "children": []}
    sensors = {"tag": "sensors", "attributes": {"inherit": "no"}, "text": "", "children": [gps]}
    body = {"file": loaded.path.name, "vehicle": "a", "sensors": sensors}
    fitted = c.check_instruments(body)
    assert fitted["ok"] and [i["name"] for i in fitted["instruments"]] == ["mast"] and fitted["given"] == []
    wrong = {**gps, "attributes": {"hacc": "1 kg"}}
    assert (
        "'kg' is not a unit of length"
        in c.check_instruments({**body, "sensors": {**sensors, "children": [wrong]}})["error"]
    )
    assert list(tmp_path.glob("*.xml")) == [loaded.path], "checking leaves nothing"
    saved = load(c.save_instruments({**body, "file_out": "n.xml"})["file"])
    assert [i.name for i in saved.suite(saved.config.fleet.vehicle[0])] == ["mast"]
    with pytest.raises(RequestFailed, match="already exists"):
        c.save_instruments({**body, "file_out": "n.xml"})
    for bad in ({**body, "vehicle": "absent"}, {**body, "file": "../x.xml"}, {**body, "file_out": "../x.xml"}, {}):
        with pytest.raises(RequestFailed):
            c.save_instruments({"file_out": "o.xml", **bad})
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("client", [("127.0.0.1", True)], indirect=True)
async def test_answers_are_as_declared(client: TestClient[Any, Any], config: Callable[..., LoadedConfig]) -> None:
    loaded = config(SEA)
    client.app[HUB].source.described["file"] = str(loaded.path)  # type: ignore[union-attr,index]
    headers = {"Origin": origin(client)}

    async def get(path: str, declared: Any) -> Any:
        found = await (await client.get(path)).json()
        assert not list(faults(found, declared, path))
        return found

    async def post(path: str, declared: Any, **body: Any) -> Any:
        found = await (await client.post(path, json=body, headers=headers)).json()
        assert not list(faults(found, declared, path))
        return found

    await get("/series?line=0/motion.depth", ChartData)
    await get("/kit?row=0", BodyEquipment)
    await get("/kit?row=x", ErrorAnswer)
    await get("/api/models", list[ModelEntry])
    await get("/api/schema", dict[str, ElementRule])
    await get("/api/vehicles", list[VehicleEntry])
    await get(f"/api/vehicle?file={loaded.path.name}&name=a", VehicleInstruments)
    model = await get("/api/model?name=lauv", XmlTree)
    await post(
        "/api/import", list[XmlTree], file="m.xml", text=to_text(to_element({"tag": "models", "children": [model]}))
    )
    assert (await post("/api/check", ModelCheck, model=model))["ok"]
    assert not (await post("/api/check", ModelCheck, model={**model, "children": []}))["ok"]
    own = {"file": loaded.path.name, "vehicle": "a", "sensors": {"tag": "sensors", "children": [{"tag": "gps"}]}}
    assert (await post("/api/fit", ModelCheck, **own))["ok"]
    await post("/api/mount", SavedFile, **own, file_out="own.xml")
    await post("/api/save", SavedModel, file="x.xml", model=model)
    await post("/api/mission", SavedMission, file="m.xml", waypoints={"a": [[1, 2, 3, 1.5]]})
    await post("/api/test", SimulatedMotion, model=model, seconds=1.0)


def test_what_the_protocol_does_not_declare_is_found() -> None:
    """The comparison that the tests with a browser make for every message."""
    entry = {"file": "m.xml", "name": "a", "model": "lauv"}
    assert not list(faults(entry, VehicleEntry))
    assert list(faults({**entry, "name": 1, "other": 2}, VehicleEntry, "v")) == [
        "v.other is not declared",
        "v.name: 1 is no str",
    ]
    assert list(faults([entry, {}], list[VehicleEntry])) and list(faults(None, VehicleEntry))
    listener = Listener()
    listener.received('{"type":"reply","ok":true,"text":null}')
    listener.sent('{"do":"watch","row":"0"}')
    listener.received('{"type":"mystery"}')
    assert len(listener.faults) == 3 and listener.seen == {"reply", "do watch", "mystery"}


ODD: list[Any] = [[], 1, "x", None, True, {"a": 1}, [1], [[1]], [None], "..", "a\0b", "x" * 5000, 1e400, -1]
KEYS = {
    "/api/mission": ("waypoints", "beacons", "fences", "file", "file_out", "replace"),
    "/api/import": ("file", "text", "section"),
    "/api/test": ("seconds", "commands", "kind", "model"),
    "/api/check": ("model",),
    "/api/save": ("file", "model", "replace"),
    "/api/fit": ("vehicle", "sensors", "file"),
    "/api/mount": ("vehicle", "sensors", "file_out", "file"),
}


@pytest.mark.parametrize("client", [("127.0.0.1", True)], indirect=True)
@pytest.mark.parametrize("path", KEYS)
async def test_a_request_of_another_type_is_a_bad_one(
    client: TestClient[Any, Any], config: Callable[..., LoadedConfig], path: str
) -> None:
    """400 with a reason (200 where nothing is wrong with it), never 500."""
    loaded = config(SEA)
    client.app[HUB].source.scene = lambda: (1, {"file": str(loaded.path), "models": {}})  # type: ignore[union-attr,method-assign]
    model = {"tag": "model", "attributes": {"name": "m"}, "children": []}
    good = {
        "file": "n.xml" if path != "/api/fit" else loaded.path.name,
        "vehicle": "a",
        "model": model,
        "replace": True,
    }
    bodies_ = [*(json.dumps(b) for b in ODD), *(json.dumps({**good, key: odd}) for key in KEYS[path] for odd in ODD)]
    token = {} if not client.access.names else {"Origin": origin(client)}  # type: ignore[attr-defined]
    for body in bodies_:
        answer = await client.post(path, data=body, headers={**token, "Content-Type": "application/json"})
        assert answer.status in (200, 400), (body[:200], await answer.text())


@pytest.mark.parametrize("bad", ["http://[::1", "http://[", "//[x]", "http://[::1]x"])
async def test_an_origin_that_is_no_address_is_refused(client: TestClient[Any, Any], bad: str) -> None:
    assert (await client.post("/api/check", json={}, headers={"Origin": bad})).status == 403
    assert (await client.get("/kit", params={"row": "9" * 5000})).status == 400


async def test_files_are_touched_with_control_only(client: TestClient[Any, Any]) -> None:
    """Even the draft that a check writes beside a configuration."""
    for path in ("/api/fit", "/api/mount", "/api/save", "/api/mission", "/api/test", "/api/import", "/api/check"):
        answer = await client.post(path, json={}, headers={"Origin": origin(client)})
        assert answer.status == 400 and "--control" in (await answer.json())["error"]
