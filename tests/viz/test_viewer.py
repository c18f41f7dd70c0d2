"""The viewer in a real browser against a real server: what a user sees and does."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from tests.conftest import CLI, Server, wavesim
from tests.viz.browser import Page
from wavesim_sdk import frames
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_sdk.config import Loaded, load
from wavesim_sdk.log import read
from wavesim_sdk.tables import STATE, RunState

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

# a lively corner of the sea: a submarine, a boat, a pinging beacon that both hear, and a fence that the drift crosses
SEA = """
<time step="10 ms"/>
<world><current north="0.4 m/s" east="0.3 m/s"/><bed depth="40 m" slope_north="0.05"><bump height="-12 m" north="30 m" east="20 m" alpha="0.03 1/m" beta="0.03 1/m"/></bed>
  <obstacles><block position="-40 40 20 m" size="10 10 40 m" heading="30 deg"/><pier position="40 -40 20 m" radius="2 m" height="40 m"/></obstacles></world>
<network keepalive_timeout="3 s"/>
<fleet>
  <sensors><ctd rate="5 Hz"/><echosounder rate="5 Hz"/></sensors>
  <vehicle name="sub" model="lauv" position="0 0 8 m" attitude="10 20 90 deg"><waypoint north="50 m" east="0 m" depth="8 m"/></vehicle>
  <vehicle name="boat" model="jolner" position="-30 -20 -0.1 m"/>
  <vehicle name="guest" model="remus100" position="20 30 5 m" client="optional"/>
  <buoy name="beacon" model="buoy" position="60 60 6 m"><transducer position="0 0 0 m" listen_low="20 kHz" listen_high="32 kHz" recharge="100 ms"><pinger frequency="25 kHz" period="500 ms"/></transducer></buoy>
  <fence name="bay" keep="inside"><corner north="-100 m" east="-100 m"/><corner north="2 m" east="-100 m"/><corner north="2 m" east="100 m"/><corner north="-100 m" east="100 m"/></fence>
</fleet>
"""
Opener = Callable[[str], Page]
READY = "window.wavesim && wavesim.store.scene && wavesim.store.rows.length"


@pytest.fixture
def sea(config: Callable[..., Loaded], serve: Callable[..., Server], name: str) -> tuple[Server, Path]:
    path = config(SEA).path
    return serve(path), path


def test_mission_control(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """Scene, joins and leaves, a click, numbers as in shared memory, keys, signals, notices, no stranger, no error."""
    server, _ = sea
    emulator = subprocess.Popen([*CLI, "emulate", "ctd", str(sea[1]), "--server", name], stderr=subprocess.DEVNULL)
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
        page.wait("document.querySelectorAll('#events tbody tr.warm').length > 0")  # the fence
        assert "left the fence 'bay'" in page.see("document.querySelector('#events tbody').textContent")
        page.wait("[...document.querySelectorAll('#events tbody td:last-child')].some(e => e.textContent === 'heard')")
        assert page.see("document.querySelector('#stat-vehicles').textContent") == "2"
        assert page.see("document.querySelector('#stat-buoys').textContent") == "1"

        # somebody joins, and leaves
        with Broker("guest", ("127.0.0.1", server.port)) as guest:
            guest.connect()
            page.wait(
                "[...wavesim.store.bodies.values()].some(b => b.name === 'guest') && wavesim.store.rows.length === 4"
            )
            page.wait("[...document.querySelectorAll('#fleet td.name')].some(e => e.textContent === 'guest')")
        page.wait(
            "wavesim.store.rows.length === 3 && ![...wavesim.store.bodies.values()].some(b => b.name === 'guest')"
        )

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
        told = page.see("[...document.querySelectorAll('#details .cell b')].map(e => e.textContent)")
        assert told[:5] == [
            f"{heading % 360:.1f}", f"{state['p_WB_W'][2]:.2f}", f"{np.linalg.norm(state['v_WB_B']):.2f}", f"{roll:.1f}", f"{pitch:.1f}"
        ]  # fmt: skip
        position = page.see("[...document.querySelectorAll('#details tbody tr')][0].textContent")
        assert "".join(f"{v:.3f}" for v in state["p_WB_W"]) in position
        ctd = shared.sensor("sub", "ctd")
        there = page.see("[...document.querySelectorAll('#details tbody tr')].map(e => e.textContent)")
        assert "current there, m/s0.4000.3000.000" in there, "water at the body"
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

        # chart
        page.page.keyboard.press("4")
        page.wait("!document.querySelector('canvas.chart').classList.contains('hidden')")
        page.shot("chart")
        assert colours(page, "canvas.chart") > 50
        page.page.keyboard.press("Shift+L")  # light
        page.page.keyboard.press("1")
        page.page.wait_for_timeout(300)
        page.shot("light")
        page.page.keyboard.press("x")
        server.wait(lambda s: s["state"] == "stopped")
        page.clean()
    finally:
        emulator.terminate()
        emulator.wait(10)


def colours(page: Page, selector: str) -> int:
    """Different colours in a picture of an element."""
    from io import BytesIO

    import matplotlib.image

    picture = matplotlib.image.imread(BytesIO(page.page.locator(selector).first.screenshot()))
    return len(np.unique((picture[:, :, :3] * 255).astype(np.uint8).reshape(-1, 3), axis=0))


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
        " const v = wavesim.view.terrain.surface.position.clone(); const at = (x, y) => v.set(x, y, 0).project(c).toArray();"
        f" return [at(0, -8), at({nose[0]} * 50, -8 + {nose[1]} * 50)] }})()"
    )
    assert screen[1][0] > screen[0][0] and screen[1][1] > screen[0][1]
    # the eye on board looks along the nose
    page.see("wavesim.app.openOnboard(0)")
    drawn = page.see("wavesim.view.frames")
    page.wait(f"wavesim.view.frames > {drawn + 1}")
    look = page.see(
        "(() => { const e = wavesim.view.eye; e.updateMatrixWorld(); const m = e.matrixWorld.elements; return [-m[8], -m[9], -m[10], m[0], m[1], m[2]] })()"
    )
    assert look[:3] == pytest.approx(nose, abs=1e-5)
    assert look[3:] == pytest.approx(starboard, abs=1e-5)
    page.clean()


def test_a_model_with_an_appearance(
    config: Callable[..., Loaded], serve: Callable[..., Server], view: Any, open_page: Opener, name: str, tmp_path: Path
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
    assert page.see("document.querySelector('#do-start').disabled")
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
    assert "has ended; waiting for it to come back" in page.page.locator(".banner").first.text_content()
    serve(path, "--start")
    page.wait("document.querySelector('.banner').classList.contains('hidden') && wavesim.store.last.state === 1", 90)
    page.clean()


def test_replay(
    view: Any, open_page: Opener, config: Callable[..., Loaded], serve: Callable[..., Server], tmp_path: Path
) -> None:
    """A slider that seeks: bodies stand where the log says; foreign logs are refused."""
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
    page.page.keyboard.press("Space")
    page.wait("wavesim.store.last.state === 1 && wavesim.store.time > 12.5 && wavesim.view.sounds.shown > 0")
    page.shot("replay")
    page.clean()


def drag(page: Page) -> None:
    """Drag what is chosen along the gizmo's forward axis."""
    page.page.wait_for_timeout(500)
    a, b = page.see(
        "(() => { const w = configure.bench, g = w.gizmo.object, c = w.canvas.getBoundingClientRect(), s = w.gizmo.size;"
        " const at = (d) => { const v = g.position.clone(); const far = v.distanceTo(w.camera.position); v.z -= d * far; v.project(w.camera);"
        " return [c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] }; return [at(0.05), at(0.2)] })()"
    )
    page.page.mouse.move(*a)
    page.page.mouse.down()
    page.page.mouse.move(*b, steps=6)
    page.page.mouse.up()


def test_configurator_makes_a_model_that_flies(
    view: Any, open_page: Opener, serve: Callable[..., Server], tmp_path: Path, name: str
) -> None:
    """Choose, move by gizmo and by number, add a sensor, try, save; the reader accepts it and the server flies it."""
    page = open_page(view("--folder", tmp_path, command="configure").url)
    page.page.wait_for_selector("#verdict.good")
    for model in ("remus100", "lauv"):
        page.page.select_option("#models", model)
        page.wait(f"configure.tree().model.attributes.name === '{model}'")
        page.page.wait_for_selector("#verdict.good")
    page.page.locator("input[data-key='model.name']").first.fill("mylauv")
    page.page.keyboard.press("Tab")
    # a wrong value is told as the reader tells it, then mended
    page.page.locator(".element .title", has_text="mass").first.click()
    field = page.page.locator(".form input[data-key='mass.value']")
    field.fill("18 lb")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.bad")
    assert "unit 'lb'" in page.page.locator("#verdict").text_content()
    field = page.page.locator(".form input[data-key='mass.value']")
    field.fill("18.5 kg")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.good")
    page.page.click("#undo")
    page.wait("configure.mass() === '18 lb'")
    page.page.click("#undo")
    page.wait("configure.mass() === '18 kg'")
    page.page.locator(".element .title", has_text="mass").first.click()
    page.page.locator(".form input[data-key='mass.value']").fill("18.5 kg")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.good")
    # drag the transducer along the gizmo's forward axis
    page.see(
        "(() => { const m = configure.tree().model.children.find(c => c.tag === 'transducer'); configure.choose(m) })()"
    )
    before = page.see("configure.tree().model.children.find(c => c.tag === 'transducer').attributes.position")
    drag(page)
    after = page.see("configure.tree().model.children.find(c => c.tag === 'transducer').attributes.position")
    x0, x1 = (float(re.split(r"[\s,]+", p.strip())[0]) for p in (before, after))
    assert x1 > x0 + 0.01, (before, after)
    # instruments: two of a type have names of their own; mounted by numbers and by the gizmo
    for type_ in ("echosounder", "dvl", "dvl"):
        page.page.locator("select[aria-label='Add to sensors']").select_option(label=type_)
    assert page.see("configure.tree().sensors.children.map(c => c.attributes.name ?? c.tag)") == ["echosounder", "dvl", "dvl2"]  # fmt: skip
    for key, text in (("name", "dvl-up"), ("attitude", "180 0 0 deg"), ("rate", "5 Hz"), ("noise", "0.5")):
        page.page.locator(f".side input[data-key='dvl.{key}']").fill(text)
        page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.good")
    drag(page)
    position = page.see("configure.tree().sensors.children[2].attributes.position")
    assert float(re.split(r"[\s,]+", position.strip())[0]) > 0.01, position
    page.page.wait_for_selector("#verdict.good")
    page.wait("configure.bench.rays.children.length === 3")  # beams of all three
    # try it
    page.page.click("#try-turn")
    page.page.wait_for_selector("#way", timeout=120_000)
    page.shot("configurator")
    assert colours(page, "#configure .view canvas") > 50
    page.page.fill("#save-file", "mine.xml")
    page.page.click("#save")
    page.wait("document.querySelector('.toast')?.textContent.includes('saved')")
    page.clean()

    assert "mylauv" in wavesim("vehicles", "mylauv", "--models", tmp_path / "mine.xml").stdout
    trial = tmp_path / "mine-trial.xml"
    assert wavesim("check", trial).returncode == 0
    loaded = load(trial)
    assert loaded.model("mylauv").mass.value == 18.5
    assert loaded.model("mylauv").transducer.position[0] == pytest.approx(x1, abs=1e-3)
    (vehicle,) = loaded.config.fleet.vehicle
    suite = {i.name: i.parameters for i in loaded.suite(vehicle)}
    assert list(suite) == ["echosounder", "dvl", "dvl-up"]
    up = suite["dvl-up"]
    assert (up.rate, up.noise, up.attitude[0]) == (5.0, 0.5, pytest.approx(math.pi))
    assert up.position[0] == pytest.approx(float(re.split(r"[\s,]+", position.strip())[0]), abs=1e-3)
    server = serve(trial, "--start")
    with Broker("mylauv", ("127.0.0.1", server.port)) as broker:
        for step in broker.steps():
            broker.answer([8.0])
            if step.state.motion is not None and step.state.motion[7] > 0.3:  # surge
                break
        assert step.time > 0.5


def test_a_vehicles_own_instruments(view: Any, open_page: Opener, tmp_path: Path) -> None:
    """What the model and the fleet give is shown; own ones are added beside it, or take its place; the checked file is saved."""
    (tmp_path / "sea.xml").write_text(
        '<wavesim><fleet><vehicle name="one" model="lauv" position="0 0 5 m"><sensors><imu/></sensors></vehicle>'
        '<vehicle name="two" model="lauv" position="9 0 5 m"/><sensors><ctd/><dvl/></sensors></fleet></wavesim>'
    )
    page = open_page(view("--folder", tmp_path, command="configure").url)
    page.page.wait_for_selector("#verdict.good")
    label = page.page.locator("#models option", has_text="one — lauv").text_content()
    page.page.select_option("#models", label=label)
    page.wait("document.querySelector('#verdict').textContent.includes('vehicle')")
    assert "Its model and the fleet give it: ctd, dvl" in page.see("document.querySelector('.form').textContent")
    assert page.see("configure.tree().sensors.children.map(c => c.tag)") == ["imu"]
    for type_ in ("dvl", "gps"):
        page.page.locator("select[aria-label='Add to sensors']").select_option(label=type_)
    page.page.locator(".side input[data-key='gps.position']").fill("0 0 -0.5 m")
    page.page.keyboard.press("Tab")
    page.wait("configure.bench.places.size === 3 && document.querySelector('#verdict.good')")
    page.wait(
        "document.querySelector('.form').textContent.includes('give it: ctd.')"
    )  # the own dvl takes the other's place
    page.page.locator(".side input[data-key='gps.rate']").fill("2 m")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.bad")
    page.page.click("#undo")
    page.page.wait_for_selector("#verdict.good")
    page.shot("configurator-vehicle")
    page.page.fill("#save-file", "fitted.xml")
    page.page.click("#save")
    page.wait("document.querySelector('.toast')?.textContent.includes('saved')")
    page.clean()
    assert wavesim("check", tmp_path / "fitted.xml").returncode == 0
    loaded = load(tmp_path / "fitted.xml")
    one, two = loaded.config.fleet.vehicle
    assert [i.name for i in loaded.suite(one)] == ["ctd", "dvl", "imu", "gps"]
    assert next(i for i in loaded.suite(one) if i.name == "gps").parameters.position == (0.0, 0.0, -0.5)
    assert [i.name for i in loaded.suite(two)] == ["ctd", "dvl"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fitted.xml", "sea.xml"]


def test_missions_by_clicks(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """Waypoints, a beacon and a fence clicked on the chart are in the saved configuration, where they were clicked."""
    _, path = sea
    page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
    page.wait(f"{READY} === 3")
    page.page.keyboard.press("]")  # room for the chart
    page.page.keyboard.press("m")
    page.page.wait_for_selector("#mission:not(.hidden)")
    box = page.page.locator("canvas.chart").bounding_box()

    def click(north: float, east: float) -> None:
        x, y = page.see(f"wavesim.chart.px({north}, {east})")
        page.page.mouse.click(box["x"] + x, box["y"] + y)

    click(30, 10)
    click(30, -30)
    page.page.get_by_role("button", name="beacons").click()
    click(-20, 20)
    page.page.get_by_role("button", name="fences", exact=True).click()
    for corner in ((-20, -20), (20, -20), (0, 30)):
        click(*corner)
    page.page.click("#close-fence")
    page.shot("mission")
    page.page.click("#mission-save")
    page.wait("document.querySelector('.toast')?.textContent.includes('saved')")
    fleet = load(path.parent / "mission.xml").config.fleet
    ways = [(w.north, w.east, w.depth) for w in fleet.vehicle[0].waypoint]
    assert np.array(ways) == pytest.approx(np.array([(30, 10, 5), (30, -30, 5)]), abs=0.6)
    assert fleet.buoy[-1].name == "beacon1"
    assert fleet.buoy[-1].position == pytest.approx((-20, 20, 5), abs=0.6)
    assert [f.name for f in fleet.fence] == ["bay", "fence1"]
    assert len(fleet.fence[1].corner) == 3
    page.clean()


def test_remote_viewer(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """An observer session instead of shared memory: the same bodies; a listener's for the one that is looked into, with what it
    has and what its instruments say; it cannot control."""
    server, path = sea
    emulator = subprocess.Popen([*CLI, "emulate", "ctd", str(path), "--server", name], stderr=subprocess.DEVNULL)
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
    config: Callable[..., Loaded], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
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
    page.page.locator("#fleet tbody tr").click()
    before = page.see("wavesim.store.ned[0]")
    page.wait(f"wavesim.store.ned[0] > {before} + 0.2")
    page.shot("thousand")
    page.clean()
