"""The viewer in a real browser with a real server: display and actions of a user."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import matplotlib.image
import numpy as np
import pymap3d
import pytest
import trimesh

from tests.conftest import Server
from tests.nursery import launch
from tests.viz.sea import READY, SEA, Opener, Page, colours
from tests.viz.stage import on_stage
from wavesim_sdk import frames
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.log import Log, read
from wavesim_sdk.tables import RECEPTION, STATE, RunState
from wavesim_server.logbook import report
from wavesim_viz.live import LiveSource
from wavesim_viz.plots import LoggedRun, tracks
from wavesim_viz.replay import ReplaySource
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]


MESSAGES = {"hello", "scene", "roster", "tracks", "sounds", "alarms", "weather", "sea", "kit", "panel", "reply"}
REQUESTS = {"do watch", "do control"}


def test_mission_control(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """Scene, joins and leaves, a click, numbers as in shared memory, keys, signals, notices, no stranger, no error."""
    server, _ = sea
    emulator = launch("emulate", "ctd", sea[1], "--server", name, stderr=subprocess.DEVNULL)
    try:
        page = open_page(view("--server", name, "--control").url)
        page.wait(f"{READY} === 3")  # the guest is not here yet
        shared = SharedState(name)
        assert shared.run_state() is RunState.STOPPED

        # keys: space starts, pauses, N steps, X stops
        page.page.locator("#stage canvas").first.focus()
        page.page.keyboard.press("Space")
        server.wait(lambda s: s["state"] == "running")
        page.wait("wavesim.store.last.state === 1 && wavesim.store.last.time > 1.2")
        page.wait("wavesim.view.sounds.shown > 0")
        page.wait("wavesim.store.alarms.some(a => a.kind === 'fence' && a.name === 'sub')")
        page.wait("wavesim.store.notices.some(n => n.text.includes(\"left the fence 'bay'\"))")
        page.wait(
            "[...document.querySelectorAll('#events tbody td:last-child')].some(e => e.textContent === 'received')"
        )
        fits = "(() => { const e = document.querySelector('#events'); return e.scrollWidth <= e.clientWidth })()"
        assert page.see(fits), "all columns of signals, their outcome too, at 1280"
        assert page.see("document.querySelector('#stat-vehicles').textContent") == "2"
        assert page.see("document.querySelector('#stat-buoys').textContent") == "1"

        # somebody joins, and leaves
        with Broker("guest", ("127.0.0.1", server.port)) as guest:
            guest.connect()
            joined = (
                "[...wavesim.store.bodies.values()].some(b => b.name === 'guest') && wavesim.store.rows.length === 4"
                " && [...document.querySelectorAll('#fleet td.name')].some(e => e.textContent.endsWith('guest'))"
            )
            page.until(lambda: (guest.poll(), page.see(joined))[1])  # a guest that does not poll is removed
        page.wait(
            "wavesim.store.rows.length === 3 && ![...wavesim.store.bodies.values()].some(b => b.name === 'guest')"
        )

        helm(page, server, shared)
        page.page.keyboard.press("Space")
        server.wait(lambda s: s["state"] == "paused")
        tick = int(shared.clock()["tick"])
        page.page.keyboard.press("n")
        server.wait(lambda s: s["tick"] == tick + 1)

        # a click on the submarine in the picture opens the view from on board, with its numbers
        page.wait(f"wavesim.store.last.tick === {tick + 1}")
        x, y = page.see("wavesim.view.project(wavesim.store.index.get(0))")
        box = page.page.locator("#stage canvas").first.bounding_box()
        page.page.mouse.click(box["x"] + x, box["y"] + y)
        page.page.wait_for_selector("#onboard")
        page.wait("wavesim.store.panel && wavesim.store.panel.row === 0")
        state = shared.snapshot().state[shared.row("sub")]
        roll, pitch, heading = np.degrees(frames.euler(state["q_WB"]))
        page.wait("document.querySelectorAll('#details .cell b').length >= 6")
        texts = page.see("[...document.querySelectorAll('#details .cell b')].map(e => e.textContent)")
        assert texts[:5] == [
            f"{heading % 360:.1f}",
            f"{state['p_WB_W'][2]:.2f}",
            f"{np.linalg.norm(state['v_WB_B']):.2f}",
            f"{roll:.1f}",
            f"{pitch:.1f}",
        ]
        position = page.see("[...document.querySelectorAll('#details tbody tr')][0].textContent")
        assert "".join(f"{v:.3f}" for v in state["p_WB_W"]) in position
        ctd = shared.sensor("sub", "ctd")
        there = page.see("[...document.querySelectorAll('#details tbody tr')].map(e => e.textContent)")
        assert "current at vehicle, m/s0.4000.3000.000" in there, "water at the body"
        shown = page.see("wavesim.store.panel.sensors.ctd")
        assert shown["valid"] and shown["fields"]["temperature"] == pytest.approx(float(ctd["temperature"]), rel=1e-12)
        assert page.see("wavesim.store.panel.sensors.echosounder.age") is None  # its emulator does not run
        assert page.see("wavesim.store.kit.actuators.map(a => a.name)")[:2] == ["propeller", "rudder-top"]
        drawn = page.see(
            "(() => { const c = document.querySelector('#onboard canvas.picture'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            " return new Set([...Array(400).keys()].map(k => d[4 * Math.floor(k * d.length / 1600)] * 65536 + d[4 * Math.floor(k * d.length / 1600) + 1])).size })()"
        )
        assert drawn > 8  # colours: water, bed, surface
        page.shot("mission-control")
        assert colours(page, "#stage canvas") > 50

        heights(page, state)

        # chart
        page.page.keyboard.press("4")
        page.wait("!document.querySelector('canvas.chart').classList.contains('hidden')")
        page.shot("chart")
        assert colours(page, "canvas.chart") > 50
        page.page.keyboard.press("Shift+L")  # light
        page.page.keyboard.press("1")
        page.page.wait_for_timeout(300)
        page.shot("light")
        page.page.once("dialog", lambda d: d.accept())
        page.page.keyboard.press("x")
        server.wait(lambda s: s["state"] == "stopped")
        page.clean()
        assert page.protocol.seen >= MESSAGES | REQUESTS | {"do drive"}, "checked against the protocol"
    finally:
        emulator.terminate()
        emulator.wait(10)


def helm(page: Page, server: Server, shared: SharedState) -> None:
    """Keys drive a body that takes a pilot; who lets go, or whose page stalls, leaves it at rest."""

    def commands() -> Any:
        return shared.snapshot("actuation").tables["actuation"]["command"][shared.row("guest")]

    page.page.keyboard.press("j")
    page.page.select_option("select[aria-label='Body to drive']", "guest")
    page.page.click("#take-helm")
    page.wait("document.querySelector('#helm-status').textContent.includes('Idle')")
    assert [c["role"] for c in server.status()["clients"] if c["name"] == "guest"] == ["pilot"]
    gamepad(page, commands)
    page.page.keyboard.down("ArrowUp")
    page.page.keyboard.down("ArrowRight")
    page.wait("wavesim.store.speed[wavesim.store.index.get(wavesim.store.chosen)] > 0.5", 30)
    page.until(lambda: np.count_nonzero(commands()) >= 2)  # its propeller and a rudder
    page.wait("(wavesim.store.panel?.motion.rates[2] ?? 0) > 0.5")
    page.shot("helm")
    page.see("clearInterval(wavesim.app.helm.timer)")  # the page stalls while the keys are held
    page.until(lambda: not commands().any())
    for key in ("ArrowUp", "ArrowRight"):
        page.page.keyboard.up(key)
    page.page.click("#close-helm")
    page.wait("![...wavesim.store.bodies.values()].some(b => b.name === 'guest')")
    page.page.keyboard.press("Escape")
    page.page.locator("#stage canvas").first.focus()


def gamepad(page: Page, commands: Callable[[], Any]) -> None:
    """Sticks drive while a shoulder button is held, and nothing moves without it; a device of the browser's is played."""
    page.see(
        "(() => { const pad = window.pad = { axes: [0.8, -0.6, 0, 0], buttons: [...Array(16)].map(() => ({ pressed: false })) };"
        " navigator.getGamepads = () => [null, pad] })()"
    )
    turns = page.see("wavesim.view.frames")
    page.wait(f"wavesim.view.frames > {turns + 5}")
    assert not commands().any(), "no button is held"
    page.see("window.pad.buttons[5].pressed = true")
    page.wait(
        "document.querySelector('#helm-status').textContent.includes('ahead 0.6') && document.querySelector('#helm-status').textContent.includes('turn 0.8')"
    )
    page.until(lambda: np.count_nonzero(commands()) >= 2)
    assert commands()[0] > 0.0, "ahead"
    page.see("window.pad.buttons[5].pressed = false")
    page.until(lambda: not commands().any())
    page.wait("document.querySelector('#helm-status').textContent.includes('Idle')")
    page.see("delete navigator.getGamepads")


def heights(page: Page, state: Any) -> None:
    """Five times as high: bed and bodies stand where five times their depth is, the scale tells metres, hulls keep their shape."""
    assert page.page.locator(".tools").bounding_box()["height"] < 40, "one row of buttons at 1280"
    eye = page.see("wavesim.view.camera.position.y - wavesim.view.controls.target.y")
    page.page.click("#shown summary")
    page.page.select_option("#heights", "5")
    page.wait("wavesim.view.names.depths.length > 2")
    depths = page.see("wavesim.view.names.depths")
    assert depths[0] == 0.0 and depths[-1] <= page.see("wavesim.view.terrain.deepest") < depths[-1] + depths[1]
    bed = page.see(
        "(() => { const b = wavesim.view.terrain.group.getObjectByName('bed'), p = b.geometry.getAttribute('position'), v = wavesim.view.camera.position.clone();"
        " return [b.localToWorld(v.fromBufferAttribute(p, 7)).y, wavesim.store.scene.bed.depth[0][7]] })()"
    )
    assert bed[0] == pytest.approx(-5.0 * bed[1], rel=1e-5)
    hull = page.see(
        "wavesim.view.bodies.moving.group.position.toArray().concat(wavesim.view.bodies.moving.group.scale.toArray())"
    )
    assert hull[1] == pytest.approx(-5.0 * float(state["p_WB_W"][2]), rel=1e-5) and hull[3] == hull[4] == hull[5]
    assert page.see("wavesim.view.camera.position.y - wavesim.view.controls.target.y") == pytest.approx(eye)
    page.shot("heights")
    page.page.select_option("#heights", "1")
    page.page.click("#shown summary")
    page.wait("!wavesim.view.names.depths.length")


def test_frames_are_drawn_as_they_are(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """A vehicle that heads east, pitched up and rolled to starboard: nose east and up, starboard side down."""
    page = open_page(view("--server", name).url)
    page.wait(f"{READY} === 3 && wavesim.view.frames > 2")
    matrix = page.see(
        "(() => { const m = wavesim.view.bodies.group.children.find(o => o.name === 'lauv'), a = m.instanceMatrix.array;"
        " return Array.from(a.slice(0, 16)) })()"
    )
    m = np.array(matrix).reshape(4, 4).T[:3, :3]
    m /= np.linalg.norm(m, axis=0)
    nose, starboard = m @ [0, 0, -1], m @ [1, 0, 0]  # three's axes: x east, y up, z south
    R = frames.rotation(frames.quaternion(math.radians(10), math.radians(20), math.radians(90)))
    to_three = np.array([[0, 1, 0], [0, 0, -1], [-1, 0, 0]])
    assert nose == pytest.approx(to_three @ R @ [1, 0, 0], abs=1e-5)
    assert starboard == pytest.approx(to_three @ R @ [0, 1, 0], abs=1e-5)
    assert nose[0] > 0.9 and nose[1] > 0.3  # east, up
    assert starboard[1] < -0.1 and starboard[2] > 0.9  # down, and to the south
    # and on the screen, from the south: east is to the right of west, up is above down
    screen = page.see(
        "(() => { const c = wavesim.view.camera.clone(); c.position.set(0, -8, 300); c.lookAt(0, -8, 0); c.updateMatrixWorld();"
        " const v = wavesim.view.surface.mesh.position.clone(); const at = (x, y) => v.set(x, y, 0).project(c).toArray();"
        f" return [at(0, -8), at({nose[0]} * 50, -8 + {nose[1]} * 50)] }})()"
    )
    assert screen[1][0] > screen[0][0] and screen[1][1] > screen[0][1]
    # the eye on board looks along the nose
    page.see("wavesim.app.openOnboard(0)")
    drawn = page.see("wavesim.view.frames")
    page.wait(f"wavesim.view.frames > {drawn}")
    look = page.see(
        "(() => { const e = wavesim.view.eye; e.updateMatrixWorld(); const m = e.matrixWorld.elements; return [-m[8], -m[9], -m[10], m[0], m[1], m[2]] })()"
    )
    assert look[:3] == pytest.approx(nose, abs=1e-5)
    assert look[3:] == pytest.approx(starboard, abs=1e-5)
    page.clean()


def test_a_model_with_an_appearance(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Any,
    open_page: Opener,
    name: str,
    tmp_path: Path,
) -> None:
    """A glTF file (front +Z, up +Y) takes the place of the primitive, its front at the body's."""
    cone = trimesh.creation.cone(radius=0.2, height=1.5)  # along +z
    cone.export(tmp_path / "cone.glb")
    model = (
        '<model name="dart" type="underwater" appearance="cone.glb"><cylinder length="1.5 m" radius="0.2 m"/><mass value="190 kg"/>'
        '<inertia xx="1" yy="9" zz="9"/><added-mass diagonal="5 150 150 0 20 20"/><linear-drag diagonal="1 5 5 1 5 5"/></model>'
    )
    path = config(f'<models>{model}</models><fleet><vehicle name="a" model="dart" position="0 0 5 m"/></fleet>').path
    serve(path)
    page = open_page(view("--server", name).url)
    page.wait(
        "window.wavesim && wavesim.view.bodies.group.children.some(o => o.name === 'dart' && o.geometry.getAttribute('position').count < 400)"
    )
    box = page.see(
        "(() => { const g = wavesim.view.bodies.group.children.find(o => o.name === 'dart').geometry; g.computeBoundingBox();"
        " return [g.boundingBox.min.toArray(), g.boundingBox.max.toArray()] })()"
    )
    assert box[0][2] == pytest.approx(-1.5, abs=1e-3) and box[1][2] == pytest.approx(0.0, abs=1e-3), (
        "its tip is ahead: -z"
    )
    page.clean()


def test_a_viewer_that_only_looks_cannot_control(
    sea: tuple[Server, Path], view: Any, open_page: Opener, name: str
) -> None:
    server, _ = sea
    page = open_page(view("--server", name).url)
    page.wait(f"{READY} === 3")
    assert page.see("document.querySelector('#do-start').disabled && document.querySelector('#do-mission').disabled")
    page.page.keyboard.press("m")  # a page that may not save missions says so before one is drawn
    page.page.wait_for_selector(".toast.bad")
    assert (
        "--control" in page.page.locator(".toast").text_content()
        and page.page.locator("#mission:not(.hidden)").count() == 0
    )
    page.see("document.querySelector('.toast').remove()")
    page.see("wavesim.link.control('start')")
    page.page.wait_for_selector(".toast.bad")
    assert "--control" in page.page.locator(".toast").text_content()
    assert server.status()["state"] == "stopped"
    page.clean()


def test_server_ends_and_comes_back(
    sea: tuple[Server, Path], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """The viewer says so, waits, and shows the new one."""
    server, path = sea
    page = open_page(view("--server", name).url)
    page.wait(f"{READY} === 3")
    assert server.end() == 0
    page.page.wait_for_selector(".banner:not(.hidden)")
    assert "has stopped; waiting for it to restart" in page.page.locator(".banner").first.text_content()
    serve(path, "--start")
    page.wait("document.querySelector('.banner').classList.contains('hidden') && wavesim.store.last.state === 1", 90)
    page.clean()


def test_replay(
    view: Any, open_page: Opener, config: Callable[..., LoadedConfig], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """A slider that seeks: bodies stand where the log says; charts and events are the log's; a cut log is reported."""
    log = tmp_path / "run.mcap"
    loaded = config(
        SEA.replace('<time step="10 ms"/>', '<log effort="yes"/><time step="10 ms" pace="fast" duration="20 s"/>')
    )
    server = serve(loaded.path, "--log", str(log), "--start")
    server.wait(lambda s: s["state"] == "ended")
    server.end()
    page = open_page(view(log).url)
    page.wait(READY)
    page.page.keyboard.press("Space")
    page.wait("wavesim.store.last.state === 2")
    page.see(
        "(() => { const s = document.querySelector('#slider'); s.value = 12; s.dispatchEvent(new Event('input')); s.dispatchEvent(new Event('change')) })()"
    )
    page.wait("Math.abs(wavesim.store.time - 12) < 1e-6")
    series = read(log).get("/state/sub", STATE)
    k = int(np.flatnonzero(series.time_ns == 12_000_000_000)[0])
    shown = page.see(
        "Array.from(wavesim.store.ned.slice(3 * wavesim.store.index.get(0), 3 * wavesim.store.index.get(0) + 3))"
    )
    assert shown == pytest.approx(series.records["p_WB_W"][k].tolist(), abs=1e-4)
    page.page.locator("#fleet tr[data-row='0']").click()
    page.wait("wavesim.store.panel && Math.abs(wavesim.store.panel.time - 12) < 1e-6")
    page.wait("wavesim.store.panel.effort && wavesim.store.panel.surroundings.current_W[0] === 0.4")
    # its charts are the log's, from end to end, with a mark where we are; a click on one goes there
    page.wait("document.querySelectorAll('#charts .plot .now:not(.hidden)').length >= 2")
    depth = page.see("wavesim.app.details.charts.series('motion.depth')")
    assert depth["time"] == pytest.approx((series.time_ns * 1e-9).tolist(), abs=1e-6)
    assert depth["value"] == pytest.approx(series.records["p_WB_W"][:, 2].tolist(), rel=1e-6)
    # going back, the list has nothing of what is to come, and what was before
    page.wait("wavesim.store.events.some(e => e.time > 11)")
    box = page.page.locator("#charts .plot .u-over").first.bounding_box()
    assert box is not None
    page.page.mouse.click(box["x"] + 0.25 * box["width"], box["y"] + 20)
    page.wait("wavesim.store.time < 5.3 && wavesim.store.time > 4.7 && wavesim.store.last.state === 2")
    at = page.see("wavesim.store.time")
    page.wait(f"wavesim.store.events.length > 4 && wavesim.store.events.every(e => e.time <= {at})")
    page.wait(
        f"(() => {{ const t = document.querySelector('#events tbody tr td')?.textContent.split(':'); return t && 60 * +t[0] + +t[1] <= {at} + 0.1 }})()"
    )
    assert page.see("wavesim.app.details.charts.series('motion.depth').time.length") == len(depth["time"])
    whole_log(page, read(log), at)
    page.page.focus("#slider")  # a slider keeps its own keys only
    page.page.keyboard.press("Space")
    page.wait("wavesim.store.last.state === 1 && wavesim.store.time > 5.5 && wavesim.view.sounds.shown > 0")
    page.shot("replay")
    page.clean()
    assert page.protocol.seen >= MESSAGES | REQUESTS | {"marks"}, "checked against the protocol"
    # a log that was cut says so
    cut = tmp_path / "cut.mcap"
    cut.write_bytes(log.read_bytes()[: int(0.6 * log.stat().st_size)])
    short = ReplaySource(cut)
    assert (
        "cut.mcap is incomplete or damaged: it was read up to" in short.scene()[1]["warning"] and 1.0 < short.end < 20.0
    )
    assert "warning" not in ReplaySource(log).scene()[1]


def whole_log(page: Page, log: Log, at: float) -> None:
    """Sound in space and time, charts over the whole log with their values, marks on the time, latitude and longitude."""
    page.page.click("#tab-sound")
    page.page.select_option("select[aria-label='Time span']", "5")
    page.wait("document.querySelectorAll('.reasons button').length > 0")
    receptions = log.get("/acoustics/reception", RECEPTION).records
    receptions = receptions[(receptions["arrival_ns"] <= at * 1e9) & (receptions["arrival_ns"] >= (at - 5.0) * 1e9)]
    heard = int((receptions["outcome"] == 0).sum())
    assert (
        heard > 5
        and page.see("document.querySelector(\".reasons button[data-outcome='0']\").textContent") == f"received {heard}"
    )
    assert colours(page, "#spacetime") > 8
    page.shot("sound")
    page.page.click("#tab-charts")
    for body, field in (("0", "depth, m"), ("1", "speed, m/s")):
        page.page.select_option("select[aria-label='Body of the line']", body)
        page.wait(
            f"wavesim.app.bottom.charts.fields.some(f => f.key === 'motion.depth') && document.querySelector(\"select[aria-label='Body of the line']\").value === '{body}'"
        )
        page.page.select_option("select[aria-label='Field of the line']", label=field)
        page.page.click("#add-line")
    page.wait(
        "document.querySelectorAll('#log-charts .plot').length === 2 && wavesim.app.bottom.charts.charts.every(c => c.plot?.plot?.data[0].length > 10)"
    )
    x, y = page.see("wavesim.app.bottom.charts.charts[1].plot.plot.data.map(d => Array.from(d))")
    speeds = np.linalg.norm(log.get("/state/boat", STATE).records["v_WB_B"], axis=1)
    assert max(y) == pytest.approx(speeds.max(), rel=1e-5) and x[-1] == pytest.approx(20.0, abs=0.2)
    page.shot("log-charts")
    assert {"fence", "notice"} & {
        word for m in page.see("wavesim.app.bottom.timeline.marks") for word in (m["kind"], *m["text"].split())
    }
    lat, lon, _ = pymap3d.ned2geodetic(
        *page.see("wavesim.store.panel.motion.position"), *page.see("wavesim.store.scene.origin"), 0.0
    )
    shown = page.see("document.querySelector('#place').textContent").split()
    minutes = [float(re.split("[°']", t)[0]) + float(re.split("[°']", t)[1]) / 60.0 for t in shown]
    assert minutes == pytest.approx([abs(lat), abs(lon)], abs=2e-6), "four digits of a minute"
    depth_and_ranges(page, log, at)
    page.page.click("#tab-signals")


def depth_and_ranges(page: Page, log: Log, at: float) -> None:
    """The profile under the way, ranges and bearings; what is taken away: a table, a picture, a film, and the link to this view."""
    page.page.click("#tab-profile")
    page.page.select_option("select[aria-label='Vertical exaggeration']", "2")
    page.wait("document.querySelector('#profile-readout').textContent.includes('vertical exaggeration 2.0 ×')")
    readout = page.see("document.querySelector('#profile-readout').textContent")
    state = log.get("/state/sub", STATE)
    k = int(np.searchsorted(state.time_ns, at * 1e9))
    assert re.search(r"depth ([\d.]+) m", readout)[1] == f"{page.see('wavesim.store.panel.motion.position[2]'):.1f}", (
        readout
    )
    run = float(np.linalg.norm(np.diff(state.records["p_WB_W"][:k, :2], axis=0), axis=1).sum())
    assert float(readout.split()[0]) == pytest.approx(run, abs=1.0), (readout, run)
    assert colours(page, "#depth-profile") > 4
    page.shot("profile")
    page.page.click("#tab-ranges")
    page.wait("/\\d+ of sub: |no measurements/.test(document.querySelector('#ranges-summary').textContent)")
    page.shot("ranges")
    page.page.keyboard.press("4")
    page.page.keyboard.press("]")
    with page.page.expect_download() as coming:
        page.page.click("#png")
    picture = matplotlib.image.imread(coming.value.path(), "png")
    assert len(np.unique((picture[::3, ::3, :3] * 255).astype(np.uint8).reshape(-1, 3), axis=0)) > 50
    page.page.click("#film")
    from playwright.sync_api import expect

    expect(page.page.locator("#film")).to_have_attribute("title", re.compile("recording: [1-9]"), timeout=20_000)
    with page.page.expect_download() as coming:
        page.page.click("#film")
    film = coming.value.path().read_bytes()
    assert film[:4] == b"\x1aE\xdf\xa3" and len(film) > 5000, "EBML"
    page.see("wavesim.chart.look([12.5, -7.5], 3.25)")
    page.page.click("#link")
    page.page.reload()
    page.wait(
        f"{READY} && wavesim.store.chosen === 0 && wavesim.store.panel && Math.abs(wavesim.store.time - {at}) < 1e-3"
    )
    assert page.see("[wavesim.chart.looks.scale, ...wavesim.chart.looks.middle]") == [3.25, 12.5, -7.5]
    assert page.see(
        "[wavesim.app.bottom.open, wavesim.app.root.className, document.querySelector('canvas.chart').className]"
    ) == ["ranges", "no-right", "chart"]
    page.page.keyboard.press("]")
    page.page.keyboard.press("1")


def test_remote_viewer(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """An observer session instead of shared memory: the same bodies; a listener's for the one that is looked into, with what it
    has and what its instruments say; it cannot control."""
    server, path = sea
    emulator = launch("emulate", "ctd", path, "--server", name, stderr=subprocess.DEVNULL)
    try:
        page = open_page(view("--remote", f"127.0.0.1:{server.port}", "--config", path, "--control").url)
        page.wait(f"{READY} === 3")
        server.send("start")
        page.wait("wavesim.store.last.state === 1 && wavesim.view.sounds.shown > 0")
        page.page.locator("#fleet tr[data-row='0']").click()
        page.wait("wavesim.store.panel && wavesim.store.panel.row === 0")
        page.wait("wavesim.store.panel.sensors?.ctd?.valid")
        assert page.see("wavesim.store.kit.actuators.map(a => a.name)")[:2] == ["propeller", "rudder-top"]
        server.send("pause")
        page.wait("wavesim.store.last.state === 2")
        truth = SharedState(name).sensor("sub", "ctd")
        page.wait(
            f"Math.abs(wavesim.store.panel.sensors.ctd.fields.temperature - {float(truth['temperature'])!r}) < 1e-9"
        )
        truth = SharedState(name).vehicles["effort"].latest[0]  # it asked for the forces
        page.wait(f"Math.abs(wavesim.store.panel.effort.drag[0] - {float(truth['drag'][0])!r}) < 1e-9")
        assert [c["role"] for c in server.status()["clients"]] == ["listener"]
        page.page.keyboard.press("Escape")  # nobody looks into it any more: the session ends
        server.wait(lambda s: s["clients"] == [])
        page.see("wavesim.link.control('stop')")
        page.page.wait_for_selector(".toast.bad")
        page.clean()
    finally:
        emulator.terminate()
        emulator.wait(10)


def test_a_thousand(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """The page holds a thousand vehicles: all are drawn, found and moved."""
    fleet = "".join(
        f'<vehicle name="v{k}" model="lauv" position="{12 * (k // 32)} {12 * (k % 32)} {5 + k % 9} m"/>'
        for k in range(1000)
    )
    path = config(
        f'<time step="20 ms"/><shared vehicles="1000"/><world><current north="0.5 m/s"/></world><fleet>{fleet}</fleet>'
    ).path
    serve(path, "--start")
    page = open_page(view("--server", name).url)
    page.wait(f"{READY} === 1000")
    page.wait("wavesim.view.bodies.group.children.find(o => o.name === 'lauv')?.count === 1000")
    page.page.fill("#fleet input", "v777")
    page.wait("document.querySelectorAll('#fleet td.name').length === 1")
    page.page.locator("#fleet tr[data-row]").click()
    before = page.see("wavesim.store.ned[0]")
    page.wait(f"wavesim.store.ned[0] > {before} + 0.2")
    page.shot("thousand")
    page.clean()


PIER = """
<time step="10 ms"/><world><bed depth="12 m"/><obstacles><pier position="8 0 0 m" radius="2 m" height="12 m"/></obstacles></world>
<fleet><vehicle name="auv" model="lauv" position="2 0 4 m" speed="1.5 m/s"/></fleet>
"""


def test_a_contact_is_seen_by_everybody(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], open_page: Opener, name: str, tmp_path: Path
) -> None:
    """A vehicle that runs into a pier: an alarm of its own in the page, which acknowledges it; the log, its table and its pictures."""
    log = tmp_path / "run.mcap"
    server = serve(config(PIER).path, "--log", str(log))
    with on_stage(cast(Any, LiveSource(name)), tmp_path) as url:
        page = open_page(url)
        page.wait(f"{READY} === 1")
        server.send("speed", factor=4.0)
        server.send("start")
        page.wait("Number(document.querySelector('#tab-alarms .count').textContent) >= 1")  # it may touch it again
        server.send("pause")
        page.wait("wavesim.store.last.state === 2")
        page.page.click("#tab-alarms")
        alarm = "[...document.querySelectorAll('#alarms tbody tr')].map(r => [r.dataset.kind, ...[...r.cells].map(c => c.textContent)])"
        page.wait(f"({alarm}).length >= 1")
        *_, (kind, _, _, severity, _, who, _, text, _) = page.see(alarm)  # the newest first
        assert (kind, severity, who) == ("contact", "high", "auv") and re.match(
            r"contact with pier 1 at [\d.]+ m/s", text
        ), text
        page.page.click("#tab-notices")
        page.wait(f"document.querySelector('#notices tbody').textContent.includes({text!r})")
        page.page.keyboard.press("4")
        page.see("wavesim.chart.look([8, 0], 20)")
        assert page.see(
            "(() => { wavesim.chart.render(); const c = wavesim.chart.canvas.getContext('2d'), f = wavesim.chart.canvas.width / wavesim.chart.canvas.clientWidth,"
            " at = (n, e) => [...c.getImageData(...wavesim.chart.px(n, e).map(v => Math.round(v * f)), 1, 1).data].join(); return at(9, -0.9) === at(8.3, -1.3) && at(9, -0.9) !== at(12, -6) })()"
        ), "the pier is drawn"
        page.shot("contact")
        page.page.click("#tab-alarms")
        page.page.click("#seen-all")
        page.wait("document.querySelector('#tab-alarms .count').textContent === ''")
        page.clean()
    server.end()
    (_, notice), *_ = read(log).json["/notices"]
    assert (notice["body"], notice["text"]) == ("auv", text)
    (contact, *_) = report.trial_table(log)["vehicles"][0]["contacts"]
    assert contact["text"] == text and 0.5 < contact["time_s"] < 6.0
    chart = tracks(LoggedRun(log)).axes[0]  # type: ignore[union-attr]  # there is a vehicle
    (mark,) = [line for line in chart.lines if line.get_label() == "contact"]
    assert math.hypot(mark.get_ydata()[0] - 8.0, mark.get_xdata()[0]) < 2.0 + 1.5, "beside the pier"
    assert [(p.center, p.radius) for p in chart.patches] == [((0.0, 8.0), 2.0)]
