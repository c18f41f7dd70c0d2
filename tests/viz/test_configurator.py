"""The configurator and the mission tool in a real browser: the written configuration has what was drawn, and runs."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pymap3d
import pytest

from tests.conftest import ROOT, Server, wavesim
from tests.viz.sea import READY, Opener, Page, colours
from tests.viz.stage import on_stage
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_world.config import LoadedConfig, library, load

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]


def drag(page: Page) -> None:
    """Drag what is chosen along the gizmo's forward axis."""
    page.page.wait_for_selector("#verdict.good")  # then nothing is made anew under the pointer
    a, b = page.see(
        "(() => { const w = configure.bench, g = w.gizmo.object; w.dirty = true; w.render(); const c = w.canvas.getBoundingClientRect(), s = w.gizmo.size;"
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
    assert page.see("document.querySelector('#to-the-sea').classList.contains('hidden')"), "there is none here"
    page.page.locator("select[aria-label='Add to sensors']").select_option(label="dvl")
    page.wait("configure.bench.instruments.length === 1")
    for model in ("remus100", "lauv"):
        page.page.select_option("#models", model)
        page.wait(f"configure.tree().model.attributes.name === '{model}'")
        page.page.wait_for_selector("#verdict.good")
    assert page.see("[configure.tree().sensors.children.length, configure.bench.rays.children.length]") == [0, 0]
    # what was said of another state does not stand while this one is not checked
    assert page.see("(() => { configure.changed(); return document.querySelector('#verdict.good') })()") is None
    page.page.wait_for_selector("#verdict.good")
    # a click on the handle of a thruster chooses it
    at = page.see(
        "(() => { const w = configure.bench; w.render(); const [, place] = [...w.places].find(([t]) => t.tag === 'thruster'), c = w.canvas.getBoundingClientRect();"
        " const v = place.position.clone().project(w.camera); return [c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] })()"
    )
    page.page.mouse.click(*at)
    page.wait("configure.chosen?.tag === 'thruster'")
    page.page.locator("input[data-key='model.name']").first.fill("mylauv")
    page.page.keyboard.press("Tab")
    # a wrong value is reported as by the reader, then corrected
    page.page.locator(".element .title", has_text="mass").first.click()
    field = page.page.locator(".form input[data-key='mass.value']")
    field.fill("18 lb")
    page.page.keyboard.press("Tab")
    page.page.wait_for_selector("#verdict.bad")
    assert "'lb' is not a unit of mass" in page.page.locator("#verdict").text_content()
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
    assert page.see("configure.tree().sensors.children.map(c => c.attributes.name ?? c.tag)") == [
        "echosounder",
        "dvl",
        "dvl2",
    ]
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


def test_every_thruster_can_be_clicked(open_page: Opener, tmp_path: Path) -> None:
    """Of every model of the library, as it first stands there: a click on the handle of a thruster chooses it, or what has its
    handle at the same place (thrusters of an allocation matrix have none of their own)."""
    models = {m.name: len(m.thruster) for m in library().values() if m.thruster}
    with on_stage(cast(Any, None), tmp_path) as url:  # the configurator alone
        missed, alone = clicks(open_page(f"{url}#configure"), models)
    assert missed == [] and len(models) > 12 and alone > 30, (missed, alone)


def clicks(page: Page, models: dict[str, int]) -> tuple[list[str], int]:
    """Thrusters that a click misses, of models with so many; and how many lie by themselves."""
    page.page.wait_for_selector("#verdict.good")
    # the elements with handles: what they are, and where these are drawn
    places = (
        "(() => { const w = configure.bench; w.render(); const c = w.canvas.getBoundingClientRect();"
        " return [...w.places].map(([t, p]) => { const v = p.position.clone().project(w.camera);"
        " return [t.tag === 'thruster', c.left + (v.x + 1) / 2 * c.width, c.top + (1 - v.y) / 2 * c.height] }) })()"
    )
    alone, missed = 0, []
    for model, count in models.items():
        page.page.select_option("#models", model)
        page.wait(f"configure.tree().model?.attributes.name === '{model}' && configure.bench.body")
        found = np.array(page.see(places), float)
        thrusters = np.flatnonzero(found[:, 0])
        assert len(thrusters) == count, model
        for k in thrusters:
            page.see("configure.choose(null)")
            page.page.mouse.click(*found[k, 1:])
            hit = page.see("[...configure.bench.places.keys()].indexOf(configure.chosen)")
            alone += int((np.hypot(*(found[:, 1:] - found[k, 1:]).T) > 14.0).sum() == len(found) - 1)
            if hit < 0 or np.hypot(*(found[hit, 1:] - found[k, 1:])) > 14.0:
                missed.append(f"{k} of {model}")
    page.clean()
    return missed, alone


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
    page.wait("document.querySelector('#verdict').textContent.includes('Vehicle')")
    assert "Instruments from the model and the fleet: ctd, dvl" in page.see(
        "document.querySelector('.form').textContent"
    )
    assert page.see("configure.tree().sensors.children.map(c => c.tag)") == ["imu"]
    for type_ in ("dvl", "gps"):
        page.page.locator("select[aria-label='Add to sensors']").select_option(label=type_)
    page.page.locator(".side input[data-key='gps.position']").fill("0 0 -0.5 m")
    page.page.keyboard.press("Tab")
    page.wait("configure.bench.places.size === 3 && document.querySelector('#verdict.good')")
    page.wait(
        "document.querySelector('.form').textContent.includes('the fleet: ctd.')"
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


def test_a_mission_file_is_opened_in_the_page(
    sea: tuple[Server, Path], view: Any, open_page: Opener, name: str
) -> None:
    """A plan of QGroundControl becomes the waypoints of a vehicle; a notice names its take-off."""
    _, path = sea
    page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
    page.wait(f"{READY} === 3")
    page.see("wavesim.app.selection.choose([...wavesim.store.bodies.values()].find(b => b.name === 'sub').row)")
    page.page.keyboard.press("m")
    page.page.wait_for_selector("#mission:not(.hidden)")
    latitude, longitude = page.see("wavesim.store.scene.origin")

    def item(number: int, command: int, north: float, east: float) -> dict[str, Any]:
        at = pymap3d.ned2geodetic(north, east, 0.0, latitude, longitude, 0.0)
        params = [0, 0, 0, None, float(at[0]), float(at[1]), -6]
        return {"type": "SimpleItem", "doJumpId": number, "command": command, "frame": 3, "params": params}

    items = [item(1, 22, 0, 0), item(2, 16, 30, 10), item(3, 16, 30, -40)]
    plan = {"fileType": "Plan", "mission": {"items": items, "cruiseSpeed": 1.5, "vehicleType": 12}}

    def choose(file: str, text: str) -> None:
        page.page.set_input_files(
            "#mission-import", {"name": file, "mimeType": "application/json", "buffer": text.encode()}
        )

    choose("q.plan", json.dumps(plan))
    page.wait("wavesim.chart.draft.waypoints.get('sub')?.length === 2")
    assert page.see("wavesim.chart.draft.waypoints.get('sub')") == [[30, 10, 6, 1.5], [30, -40, 6, 1.5]]
    page.wait("document.body.textContent.includes('item 1 (NAV_TAKEOFF) is not a waypoint')")
    choose("q.csv", "north;east\n1")
    page.wait("document.body.textContent.includes('q.csv:2: expected 2 values, got 1')")
    assert len(page.see("wavesim.chart.draft.waypoints.get('sub')")) == 2
    page.page.once("dialog", lambda d: d.accept())
    page.page.click("#start-over")


def test_missions_by_clicks(sea: tuple[Server, Path], view: Any, open_page: Opener, name: str) -> None:
    """Waypoints, a beacon and a fence clicked on the chart are in the saved configuration, where they were clicked."""
    _, path = sea
    page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
    page.wait(f"{READY} === 3")
    page.page.keyboard.press("]")  # room for the chart
    page.see("wavesim.app.selection.choose([...wavesim.store.bodies.values()].find(b => b.name === 'sub').row)")
    page.page.keyboard.press("m")
    page.page.wait_for_selector("#mission:not(.hidden)")
    box = page.page.locator("canvas.chart").bounding_box()

    def click(north: float, east: float) -> None:
        x, y = page.see(f"wavesim.chart.px({north}, {east})")
        page.page.mouse.click(box["x"] + x, box["y"] + y)

    click(30, 10)
    click(30, -30)
    # a waypoint is dragged, one is put in between, changed in the table, and taken out
    at, to = (page.see(f"wavesim.chart.px({p})") for p in ("30, -30", "30, -40"))
    page.page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + to[0], box["y"] + to[1], steps=4)
    page.page.mouse.up()
    ways = "wavesim.chart.draft.waypoints.get('sub').map(p => p.slice())"
    assert page.see(ways)[1][:2] == pytest.approx([30, -40], abs=0.6) and len(page.see(ways)) == 2
    page.page.get_by_title("Insert a waypoint after this one").first.click()
    assert page.see(ways)[1][:2] == pytest.approx([30, -15], abs=0.7)
    page.page.get_by_label("depth of waypoint 2").fill("7")
    page.page.keyboard.press("Tab")
    assert page.see(ways)[1][2] == 7
    page.page.get_by_label("north of waypoint 1").fill("-1234.5")
    page.page.keyboard.press("Tab")
    narrow = "[...document.querySelectorAll('.waypoints input')].filter(i => i.scrollWidth > i.clientWidth).map(i => [i.value, i.scrollWidth, i.clientWidth])"
    assert page.see(narrow) == [], "whole numbers, not their first digits"
    page.page.get_by_label("north of waypoint 1").fill("30")
    page.page.keyboard.press("Tab")
    page.page.get_by_label("Remove waypoint 2").click()
    page.page.get_by_label("east of waypoint 2").fill("-30")
    page.page.keyboard.press("Tab")
    assert np.array(page.see(ways)) == pytest.approx(np.array([(30, 10, 5, 1), (30, -30, 5, 1)]), abs=0.6)
    # legs over an area, with how long it takes; taken back by undo
    page.page.get_by_role("button", name="survey").click()
    for corner in ((-40, -60), (0, -60), (0, -20), (-40, -20)):
        click(*corner)
    page.page.click("#lay-legs")
    assert np.array(page.see(ways))[2:, :2] == pytest.approx(
        np.array([(-40, -50), (0, -50), (0, -30), (-40, -30)]), abs=0.7
    )
    assert re.search(r"6 new waypoints for sub: \d+ m, \d+:\d\d", page.page.locator("#mission").text_content())
    page.shot("survey")
    for _ in range(4):
        page.page.get_by_role("button", name="undo").click()
    assert len(page.see(ways)) == 2
    page.page.click("#again")  # the round once more
    assert page.see(ways)[2:] == page.see(ways)[:2]
    for _ in range(2):
        page.page.get_by_role("button", name="undo").click()
    assert len(page.see(ways)) == 2
    page.page.get_by_role("button", name="beacons", exact=True).click()
    click(-20, 20)
    page.page.get_by_role("button", name="fences", exact=True).click()
    for corner in ((-20, -20), (20, -20), (0, 30)):
        click(*corner)
    page.page.click("#close-fence")
    page.shot("mission")
    # closed and opened again the draft is there, and a fence that was begun takes no other with it
    click(10, -60)
    for _ in range(2):
        page.page.click("#do-mission")
    click(10, -70)
    fences = "wavesim.chart.draft.fences.map(f => [f.name, f.corners.length]).join()"
    assert page.see(fences) == "bay,4,fence1,3,fence2,2"
    for _ in range(2):
        page.page.get_by_role("button", name="undo").click()
    assert page.see(fences) == "bay,4,fence1,3" and page.see("wavesim.chart.draft.waypoints.get('sub').length") == 2
    # a speed that cannot be is refused in words; what lies in the bed is saved with a word
    page.page.get_by_role("button", name="waypoints").click()
    for label, value in (("depth m", "90"), ("m/s", "-1")):
        page.page.get_by_label(label).fill(value)
        page.page.keyboard.press("Tab")
    click(40, 40)
    page.page.click("#mission-save")
    page.page.wait_for_selector(".toast.bad")
    assert (
        "speed" in page.page.locator(".toast").text_content()
        and "failed" not in page.page.locator(".toast").text_content()
    )
    assert [e for e in page.errors if "400" not in e] == []
    page.errors.clear()  # the browser tells of what was refused
    page.page.get_by_role("button", name="undo").click()
    page.page.get_by_label("m/s").fill("1")
    page.page.keyboard.press("Tab")
    click(40, 40)
    page.page.click("#mission-save")
    page.wait(
        "document.querySelector('#mission-warning').textContent.includes(\"waypoint 3 of 'sub' is at a depth of 90 m, but the bed is at\")"
    )
    page.page.get_by_role("button", name="undo").click()
    page.page.locator("#mission input[type='checkbox']").check()
    page.page.click("#mission-save")
    page.wait("document.querySelector('#mission-warning').textContent === ''")
    fleet = load(path.parent / "mission.xml").config.fleet
    ways = [(w.north, w.east, w.depth) for w in fleet.vehicle[0].waypoint]
    assert np.array(ways) == pytest.approx(np.array([(30, 10, 5), (30, -30, 5)]), abs=0.6)
    assert fleet.buoy[-1].name == "beacon1"
    assert fleet.buoy[-1].position == pytest.approx((-20, 20, 5), abs=0.6)
    assert [f.name for f in fleet.fence] == ["bay", "fence1"]
    assert len(fleet.fence[1].corner) == 3
    page.clean()


STEERED = f"""<network lockstep_timeout="60 s" keepalive_timeout="60 s"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" attitude="0 0 90 deg" client="required" truth="full">
<program run="{ROOT}/examples/onboard/usv.py" period="100 ms"/><waypoint north="0 m" east="900 m" speed="1.5 m/s"/></vehicle>
<vehicle name="idle" model="lauv" position="-20 -20 8 m"/></fleet>"""


def test_a_drawn_mission_is_sent_to_the_program_on_board_which_follows_it(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """A real server, the real program of a boat, which sails east until a waypoint in the north is clicked and sent."""
    path = config(STEERED).path
    server = serve(path)
    page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
    program = subprocess.Popen(
        [
            sys.executable,
            str(ROOT / "examples/onboard/usv.py"),
            "--config",
            str(path),
            "--vehicle",
            "boat",
            "--port",
            str(server.port),
        ]
    )
    try:
        server.wait(lambda s: s["clients_total"] == 1, 60.0)
        server.send("start")
        page.wait(f"{READY} === 2")
        page.page.keyboard.press("m")
        page.page.wait_for_selector("#mission:not(.hidden)")
        box = page.page.locator("canvas.chart").bounding_box()

        def draw(vehicle: str) -> None:
            page.page.locator("#mission select").select_option(vehicle)
            x, y = page.see("wavesim.chart.px(25, 10)")
            page.page.mouse.click(box["x"] + x, box["y"] + y)

        draw("idle")
        page.page.click("#mission-send")
        page.wait("[...document.querySelectorAll('.toast.bad')].some(t => t.textContent.includes('accepts missions'))")
        draw("boat")
        assert page.see("wavesim.chart.draft.waypoints.get('boat')[0][2]") == 0, "a boat stays on the surface"
        assert page.page.locator("#mission").get_by_label("depth m").count() == 0
        server.send("speed", factor=6.0)
        page.page.click("#mission-send")
        page.wait(
            "wavesim.store.notices.some(n => n.name === 'boat' && n.text.includes('accepts a mission of 1 waypoint(s)'))"
        )
        state = SharedState(name)
        page.until(lambda: state.snapshot().state[0]["p_WB_W"][0] > 15.0)
        assert abs(state.snapshot().state[0]["p_WB_W"][1]) < 60.0
        page.clean()
    finally:
        program.terminate()
        program.wait(20)
