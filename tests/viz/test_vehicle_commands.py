"""Commands to vehicles from the page with the answers of real programs, the list of vehicles, and the weather form."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import ROOT, Server
from tests.nursery import launch
from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.attach import SharedState
from wavesim_sdk.broker import Broker
from wavesim_viz.page_protocol import CommanderRequest, VehicleCommandRequest
from wavesim_viz.requests import InvalidRequest, parse_request
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
Opener = Callable[[str], Page]

HARBOUR = f"""<network takeover="return"/><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" attitude="0 0 90 deg" client="required" truth="full">
<program run="{ROOT}/examples/onboard/usv.py" period="100 ms"/><waypoint north="0 m" east="900 m" speed="1.5 m/s"/>
<waypoint north="300 m" east="900 m" speed="1.5 m/s"/><sensors><battery rate="2 Hz"/></sensors></vehicle>
<vehicle name="plain" model="lauv" position="-40 -20 8 m" client="optional"/>
<vehicle name="deaf" model="lauv" position="40 -20 8 m" client="optional"/>
<vehicle name="empty" model="lauv" position="80 -20 8 m" client="optional"/>
<buoy name="mark" model="buoy" position="10 60 0.25 m"/></fleet>"""


@contextmanager
def boat_program(config: Path, port: int) -> Iterator[None]:
    """The shipped program of a boat."""
    arguments = ["--config", str(config), "--vehicle", "boat", "--port", str(port)]
    process = subprocess.Popen([sys.executable, str(ROOT / "examples/onboard/usv.py"), *arguments])
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def emulator(config: Path, server: str) -> Iterator[None]:
    """The emulator of the batteries."""
    process = launch("emulate", "battery", config, "-s", server)
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def programs(port: int, **takes: bool) -> Iterator[None]:
    """Programs that drive without following a mission: one accepts commands without answering them, one accepts none."""
    over = threading.Event()

    def drive(name: str, take: bool) -> None:
        with Broker(name, ("127.0.0.1", port)) as broker:
            broker.take_commands(take=take)
            while not over.is_set():
                broker.poll(0.05)

    threads = [threading.Thread(target=drive, args=pair) for pair in takes.items()]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(20)


def press(page: Page, action: str) -> None:
    page.page.click(f"#command-{action}")


def test_commands_and_the_answers_of_the_programs(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Any,
    open_page: Opener,
    name: str,
) -> None:
    """From the page over the server to the shipped program of a boat and back; other programs and no program answer differently."""
    path = config(HARBOUR).path
    server = serve(path)
    with emulator(path, name), boat_program(path, server.port), programs(server.port, plain=False, deaf=True):
        server.wait(lambda s: s["clients_total"] == 3, 60.0)
        page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
        server.send("start")
        page.wait("window.wavesim && wavesim.store.last && wavesim.store.last.time > 1")
        said, fleet = page.page.locator("#command-answer"), page.page.locator("#fleet")
        boat = fleet.locator("tr[data-row='0']")

        # the list: battery, mission and link of the boat; what is missing says why
        expect(fleet.locator("tr[data-of='0'] [data-part=battery]")).to_have_text("100 %")
        expect(fleet.locator("tr[data-of='0'] [data-part=mission]")).to_contain_text("mission 1/2")
        expect(fleet.locator("tr[data-of='0'] [data-part=link]")).to_contain_text("ms")
        assert "Driven by 127.0.0.1:" in str(fleet.locator("tr[data-of='0'] [data-part=link]").get_attribute("title"))
        for kind, why in (
            ("battery", "No valid battery charge reading"),
            ("mission", "No on-board program is reporting a mission"),
        ):
            cell = fleet.locator(f"tr[data-of='1'] [data-part={kind}]")
            expect(cell).to_have_text("–")
            assert why in str(cell.get_attribute("title"))
        assert fleet.locator("tr[data-of='4']").count() == 0, "a buoy has no mission"

        boat.click()
        expect(page.page.locator("#command-goto")).to_be_enabled()
        server.send("speed", factor=4.0)

        # by the menu of the chart: the boat turns to the north
        page.page.keyboard.press("4")
        x, y = page.see("wavesim.chart.px(60, 10)")
        box = page.page.locator("canvas.chart").bounding_box()
        page.page.mouse.click(box["x"] + x, box["y"] + y, button="right")
        page.shot("vehicle-menu")
        expect(page.page.locator("#chart-menu")).to_contain_text("boat")
        assert page.page.locator("#chart-menu").get_by_label("Depth in m").count() == 0, "a boat has no depth"
        page.page.get_by_role("menuitem", name="go to here").click()
        expect(said).to_contain_text("go to: accepted:", timeout=20_000)
        assert page.see("wavesim.store.chosen") == 0, "the right button leaves the selection"
        expect(fleet.locator("tr[data-of='0'] [data-part=mission]")).to_contain_text("goto")
        page.shot("vehicle-goto")
        state = SharedState(name)
        page.until(lambda: state.snapshot().state[0]["p_WB_W"][0] > 15.0)

        # by the buttons
        press(page, "pause")
        expect(said).to_contain_text("pause: refused: the vehicle is not following a mission", timeout=20_000)
        expect(said).to_have_class("answer num bad")
        press(page, "resume")
        expect(said).to_contain_text("resume: accepted: continues to waypoint", timeout=20_000)
        press(page, "loiter")
        expect(said).to_contain_text("loiter: accepted: holds its position", timeout=20_000)
        press(page, "abort")
        expect(page.page.locator("#command-abort")).to_have_text("really abort?")
        press(page, "abort")
        expect(said).to_contain_text("abort: accepted: ends its mission and stops", timeout=20_000)
        expect(fleet.locator("tr[data-of='0'] [data-part=mission]")).to_have_text("aborted")
        page.until(lambda: math.hypot(*state.snapshot().state[0]["v_WB_B"][:2]) < 0.2)

        # programs that cannot
        fleet.locator("tr[data-row='1']").click()
        press(page, "return")
        expect(said).to_have_text(
            "return: not supported: the program that drives this vehicle does not accept commands, or does not accept them yet",
            timeout=20_000,
        )
        fleet.locator("tr[data-row='2']").click()
        press(page, "loiter")
        expect(said).to_contain_text("loiter: waiting for the answer")
        press(page, "abort")  # the first press only asks
        expect(said).to_contain_text("loiter: no answer within 4 s", timeout=20_000)
        page.clean()


def test_taking_over_from_a_program_and_handing_back(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """The page says who drives; it drives only after *take over*, and the program of the boat drives again afterwards."""
    path = config(HARBOUR).path
    server = serve(path)
    with boat_program(path, server.port):
        server.wait(lambda s: s["clients_total"] == 1, 60.0)
        page = open_page(view("--server", name, "--control", "--folder", path.parent).url)
        server.send("start")
        page.wait("window.wavesim && wavesim.store.last && wavesim.store.last.time > 1")
        page.page.locator("#fleet tr[data-row='0']").click()
        page.page.click("#do-helm")
        who, take = page.page.locator("#helm-pilot"), page.page.locator("#take-helm")
        expect(who).to_contain_text("The program at 127.0.0.1:")
        expect(who).to_contain_text("the program waits until you hand back")
        expect(take).to_have_text("take over")
        page.shot("vehicle-takeover")
        state = SharedState(name)
        page.until(lambda: state.snapshot().state[0]["v_WB_B"][0] > 1.0)
        take.click()
        expect(take).to_have_text("hand back")
        page.until(lambda: state.snapshot().state[0]["v_WB_B"][0] < 0.3)  # no key is pressed
        expect(page.page.locator("#fleet tr[data-of='0'] [data-part=link]")).not_to_have_text("–")
        take.click()
        page.until(lambda: state.snapshot().state[0]["v_WB_B"][0] > 1.0)  # the program sails on
        assert state.snapshot().identity["generation"][0] == 1, "the body stays in the simulation"
        expect(take).to_have_text("take over")
        page.clean()


def test_a_click_on_the_chart_and_a_long_press(tmp_path: Path, open_page: Opener) -> None:
    source = Stage()
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.rows.length === 1")
        page.page.locator("#fleet tr[data-row='0']").click()
        press(page, "goto")
        box = page.page.locator("canvas.chart").bounding_box()
        x, y = 0.4 * box["width"], 0.5 * box["height"]
        north, east = page.see(f"wavesim.chart.at({{clientX: {box['x'] + x}, clientY: {box['y'] + y}}})")
        page.page.mouse.click(box["x"] + x, box["y"] + y)
        page.until(lambda: len(source.commands) == 1)
        assert source.commands[0].action == "goto" and source.commands[0].point is not None
        assert source.commands[0].point == (
            pytest.approx(north, abs=1),
            pytest.approx(east, abs=1),
            pytest.approx(3),
            0,
        )
        expect(page.page.locator("#command-answer")).to_have_text("go to: accepted")
        assert page.see("wavesim.store.chosen") == 0, "the click selects nothing"
        # a finger that rests on the chart
        touch = (
            "t => document.querySelector('canvas.chart').dispatchEvent(new PointerEvent(t, {bubbles: true, pointerId: 1,"
            f" pointerType: 'touch', button: 0, clientX: {box['x'] + x}, clientY: {box['y'] + y}}}))"
        )
        page.see("HTMLElement.prototype.setPointerCapture = () => undefined")
        page.page.evaluate(touch, "pointerdown")
        expect(page.page.locator("#chart-menu")).to_be_visible()
        page.page.evaluate(touch, "pointerup")
        expect(page.page.locator("#chart-menu")).to_be_visible()
        page.page.get_by_label("Depth in m").fill("12")
        page.page.get_by_label("Speed in m/s").fill("1.5")
        page.page.get_by_role("menuitem", name="loiter here").click()
        page.until(lambda: len(source.commands) == 2)
        assert source.commands[1].action == "loiter" and source.commands[1].point[2:] == (12, 1.5)
        page.page.mouse.click(box["x"] + x, box["y"] + y, button="right")
        page.page.keyboard.press("Escape")
        expect(page.page.locator("#chart-menu")).to_be_hidden()
        assert page.see("wavesim.store.chosen") == 0, "Esc closes the menu only"
        page.clean()


class Fleet(Stage):
    """Three vehicles and a buoy, in alarm and with different batteries."""

    names = ("c", "a", "b", "mark")

    def roster(self) -> list[list[Any]]:
        return [[k, n, "lauv", "buoy" if n == "mark" else "underwater", 1] for k, n in enumerate(self.names)]

    def frame(self) -> Any:
        import numpy as np

        from wavesim_viz.frame import ViewerFrame, bodies

        self.tick += 1
        p = np.array([[0.0, 0, 5], [50.0, 0, 2], [0, 50.0, 9], [30, 30, 0]])
        v = np.array([[1.0, 0, 0], [2.0, 0, 0], [0.0, 0, 0], [0, 0, 0]])
        return ViewerFrame(self.tick * 0.1, self.tick, 1, bodies(range(4), p, [[1, 0, 0, 0]] * 4, v))

    def health(self) -> Any:
        from wavesim_viz.alarms import BodyHealth

        return BodyHealth(removed={2}, battery={1: 0.12})

    def fleet(self) -> dict[str, Any]:
        mission = {"mode": "mission", "waypoint": 3, "count": 8, "target": [100.0, 0.0]}
        return {"charges": {"0": 0.83, "1": 0.12}, "missions": {"0": mission, "2": {**mission, "waypoint": 4}}}

    def weather(self) -> dict[str, Any]:
        session = {
            "role": "pilot",
            "status": "connected",
            "lockstep_ms": 0.0,
            "datagrams": [1, 1],
            "device": "",
            "device_fault": "",
        }
        clients = [
            {"row": 0, "address": "10.0.0.1:5000", "silent": 0.1, "rtt_ms": 1.25, **session},
            {"row": 1, "address": "10.0.0.2:5000", "silent": 7.2, "rtt_ms": 2.0, **session},
        ]
        weather = {
            "current_W": [0.0, 0.3, -0.05],
            "wind_speed": 8.0,
            "wind_direction": math.radians(225),
            "level": 0.0,
            "wave_height": 1.5,
            "wave_peak": 2 * math.pi / 8.0,
            "wave_direction": math.radians(45),
        }
        return {"weather": weather, "clients": clients, "connected": 2}


@pytest.fixture
def fleet(tmp_path: Path, open_page: Opener) -> Iterator[tuple[Fleet, Page]]:
    source = Fleet()
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.rows.length === 4 && wavesim.store.weather")
        yield source, page
        page.clean()


def test_the_list_of_vehicles_is_sorted_and_grouped(fleet: tuple[Fleet, Page]) -> None:
    _, page = fleet
    table = page.page.locator("#fleet")
    expect(table.locator("tr[data-of='0'] [data-part=mission]")).to_have_text("mission 3/8 1:40")
    expect(table.locator("tr[data-of='2'] [data-part=mission]")).to_have_text("mission 4/8")  # it does not move
    expect(table.locator("tr[data-of='1'] [data-part=link]")).to_have_text("silent 7 s")
    expect(table.locator("tr[data-of='1'] [data-part=battery]")).to_have_class("num bad")
    expect(table.locator("tr[data-row='2'] .badge")).to_have_class("badge high")
    expect(table.locator("tr.group")).to_have_text(["▾ vehicles (3)", "▾ buoys and beacons (1)"])
    names = "[...document.querySelectorAll('#fleet tr[data-row] td.name')].map(e => e.lastChild.textContent).join('')"

    def order(head: str, *wanted: str) -> None:
        for k, rows in enumerate(wanted):
            table.get_by_role("button", name=head).click()
            page.wait(f"{names} === '{rows}mark'")
            assert k > 1 or table.get_by_role("button", name=head).get_attribute("aria-pressed") == "true"

    assert page.see(names) == "cabmark"
    order("name", "abc", "cba", "cab")
    order("depth", "acb")
    order("battery", "acb")  # without a battery: last
    order("alarm", "bac")  # the highest severity first
    order("link", "acb")  # silent for the longest time first
    page.shot("vehicle-list")
    table.get_by_role("button", name="buoys and beacons").click()
    page.wait(f"{names} === 'acb'")


def test_the_weather_in_the_terms_of_an_operator(fleet: tuple[Fleet, Page]) -> None:
    """Present values; period, height and the directions from which wind and waves come are sent as the server wants them."""
    source, page = fleet
    page.page.click("#tab-orders")
    now = "Now: current 0.30 m/s to 090°, 0.05 m/s up · wind 8.0 m/s from 225° · waves Hs 1.50 m, Tp 8.0 s from 225°"
    expect(page.page.locator("#weather-now")).to_have_text(now)
    assert page.page.get_by_label("Peak period Tp").get_attribute("placeholder") == "8.0"
    assert page.page.get_by_label("Current down").get_attribute("placeholder") in ("-0.05", "\u22120.05")
    page.shot("weather-form")
    fields = {
        "Peak period Tp": "10",
        "Waves from": "270",
        "Current to": "180",
        "Current down": "0.1",
        "Wind from": "90",
    }
    for label, number in fields.items():
        page.page.get_by_label(label, exact=True).fill(number)
    page.page.click("#weather")
    page.until(lambda: len(source.orders) == 1)
    assert source.orders[0] == CommanderRequest(
        "weather",
        None,
        {
            "current_north": pytest.approx(-0.3),
            "current_east": pytest.approx(0.0, abs=1e-12),
            "current_down": 0.1,
            "wind_direction": pytest.approx(math.pi / 2),
            "wave_peak": pytest.approx(2 * math.pi / 10),
            "wave_direction": pytest.approx(math.pi / 2),
        },
    )


def test_the_request_of_a_command() -> None:
    text = '{"do":"command","row":2,"number":7,"action":"goto","point":[1,2,3,0]}'
    assert parse_request(text) == VehicleCommandRequest(2, 7, "goto", (1, 2, 3, 0))
    for wrong in (
        '{"do":"command","row":2,"number":7,"action":"explode","point":null}',
        '{"do":"command","row":2,"number":7,"action":"goto","point":[1,2]}',
        '{"do":"command","row":2,"number":7,"action":"goto","point":[1,2,null,0]}',
        '{"do":"command","row":-1,"number":7,"action":"loiter","point":null}',
    ):
        with pytest.raises(InvalidRequest):
            parse_request(wrong)
