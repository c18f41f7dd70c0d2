"""Equipment of a body as the page shows it: actuators and instruments by name, moving parts, and beams."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_sdk import frames
from wavesim_sdk.arrays import Floats
from wavesim_viz.beams import beams
from wavesim_viz.equipment import actuator, body_equipment, described_instruments
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.page_protocol import CommanderRequest, FaultRequest
from wavesim_viz.scene import model_info
from wavesim_world.actuators import actuators_of
from wavesim_world.config import LoadedConfig, library
from wavesim_world.config.ranging_sensors import (
    EchosounderConfig,
    MultibeamConfig,
    RangeBeam,
    RangerConfig,
    ScannerConfig,
)
from wavesim_world.config.sensors import DvlConfig, SensorConfig

#: a boat with one of everything: a propeller by force, a jet by shaft speed that turns and has a bucket, a fin, a tank
BARGE = """<models><model name="barge" type="surface"><box length="4 m" width="2 m" height="1 m"/><mass value="900 kg"/>
<inertia xx="500" yy="900" zz="900"/><added-mass diagonal="1 1 1 1 1 1"/><linear-drag diagonal="8 9 10 3 4 5"/>
<restoring>0 0 0 0 0 0  0 0 0 0 0 0  0 0 9000 0 0 0  0 0 0 9000 0 0  0 0 0 0 9000 0  0 0 0 0 0 0</restoring>
<thruster name="jet" position="-2 0 0.2 m" direction="1 0 0" law="shaft" minimum="0" maximum="1" motor="5 20" lag="0.1 s" coefficients="0 1 0">
<swivel minimum="-30 deg" maximum="30 deg"/><deflector/></thruster>
<thruster name="bow" position="1.5 0 0.4 m" direction="0 1 0" law="force" minimum="-40" maximum="60" lag="0.1 s"/>
<fin name="rudder" position="-1.9 0 0.4 m" area="0.1 m2" lift_slope="3" limit="25 deg"/>
<ballast name="trim" position="0.5 0 0.1 m" minimum="0 kg" maximum="20 kg"/></model></models>
<world><scalar name="chlorophyll"><gaussian peak="2" north="0 m" east="0 m" sigma_north="50 m" sigma_east="50 m"/></scalar></world>
<fleet><vehicle name="b" model="barge" position="0 0 0 m">
<sensors><dvl name="dvl-down"/><dvl name="dvl-bow" position="1 0 0.4 m" attitude="0 90 0 deg" maximum="30 m"/><multibeam beams="16" width="90 deg"/>
<scanner position="2 0 0.3 m"/><encoder/><rpm/><leak compartments="fore aft"/><scalar/><gps rate="1 Hz"/></sensors></vehicle>
<vehicle name="bare" model="barge" position="9 0 0 m"/></fleet>"""


@pytest.fixture
def barge(config: Callable[..., LoadedConfig]) -> LoadedConfig:
    return config(BARGE)


def test_actuators_by_name_with_the_unit_of_their_values(barge: LoadedConfig) -> None:
    """In the order of the model; limits are those of the values: through the motor's law where there is one."""
    model = barge.models["barge"]
    infos = {a["name"]: a for a in (actuator(a, model) for a in actuators_of(model))}
    assert list(infos) == ["jet", "bow", "rudder", "jet-angle", "jet-deflector", "trim"]
    assert [(a["unit"], a["kind"], a["part"]) for a in infos.values()] == [
        ("1/s", "thruster", 0),
        ("N", "thruster", 1),
        ("rad", "fin", 0),
        ("rad", "angle", 0),
        ("", "deflector", 0),
        ("kg", "ballast", 0),
    ]
    assert (infos["jet"]["minimum"], infos["jet"]["maximum"]) == (0.0, 25.0)
    assert infos["rudder"]["maximum"] == pytest.approx(math.radians(25))
    assert infos["jet-deflector"]["rest"] == 1.0 and infos["trim"]["rest"] == 0.0
    assert (infos["trim"]["minimum"], infos["trim"]["maximum"]) == (0.0, 20.0)


def test_instruments_by_name_with_fields_and_units(barge: LoadedConfig) -> None:
    body, bare = barge.config.fleet.vehicle
    found = body_equipment(0, 1, barge.models["barge"], described_instruments(barge.suite(body)), barge)
    assert [(s["name"], s["type"]) for s in found["sensors"]][:3] == [
        ("dvl-down", "dvl"),
        ("dvl-bow", "dvl"),
        ("multibeam", "multibeam"),
    ]
    by_name = {s["name"]: s for s in found["sensors"]}
    bottom = by_name["dvl-down"]["fields"][0]
    assert (bottom["name"], bottom["unit"], bottom["count"]) == ("bottom", "m/s", 3)
    assert by_name["gps"]["period"] == 1.0 and by_name["dvl-bow"]["position"] == [1.0, 0.0, 0.4]
    (encoder,) = by_name["encoder"]["fields"]
    assert encoder["labels"] == [a["name"] for a in found["actuators"]] and encoder["count"] == 6
    assert encoder["units"] == ["1/s", "N", "rad", "rad", "", "kg"]
    assert by_name["rpm"]["fields"][0]["labels"] == ["jet", "bow"]
    assert by_name["leak"]["fields"][0]["labels"] == ["fore", "aft"]
    assert by_name["scalar"]["fields"][0]["labels"] == ["chlorophyll"]
    assert "wet" in by_name["leak"]["faults"] and "wet" not in by_name["gps"]["faults"]
    assert "unlocked" in by_name["dvl-down"]["faults"] and "bias" in by_name["gps"]["faults"]
    assert body_equipment(1, 1, barge.models["barge"], described_instruments(barge.suite(bare)), barge)["sensors"] == []
    assert body_equipment(2, 1, None, ())["actuators"] == []  # a model that is not known here


def rays(sensor: SensorConfig) -> Floats:
    found = beams(sensor)
    assert found is not None
    return np.array(found["rays"]).reshape(-1, 6)


def test_beams_as_mounted() -> None:
    """Starts and directions in B, from the declaration of each type."""
    R = frames.rotation(frames.quaternion(0.1, 0.2, 0.3))
    turned = rays(DvlConfig(position=(1.0, 2.0, 3.0), attitude=(0.1, 0.2, 0.3), radius=0.5))
    plain = rays(DvlConfig(radius=0.5))
    assert turned[:, 3:] == pytest.approx(plain[:, 3:] @ R.T, abs=1e-5)
    assert turned[:, :3] == pytest.approx(plain[:, :3] @ R.T + [1.0, 2.0, 3.0], abs=1e-5)
    assert plain[:, 5] == pytest.approx(math.cos(math.radians(30)), abs=1e-5) and len(plain) == 4
    assert np.linalg.norm(plain[:, :2], axis=1) == pytest.approx(0.5, abs=1e-5)
    assert np.linalg.norm(turned[:, 3:], axis=1) == pytest.approx(1.0, abs=1e-5)
    fan = rays(MultibeamConfig(beams=5, width=math.radians(90)))
    assert fan[0, 3:] == pytest.approx([0, -math.sqrt(0.5), math.sqrt(0.5)], abs=1e-5), "port first"
    assert fan[2, 3:] == pytest.approx([0, 0, 1], abs=1e-5)
    assert rays(RangerConfig())[0, 3:].tolist() == [1, 0, 0]
    own = RangeBeam(azimuth=math.pi / 2, elevation=0.0, position=(0.0, 0.1, 0.0))
    for sensor in (RangerConfig(beam=(own,)), MultibeamConfig(beam=(own,)), DvlConfig(beam=(own,))):
        assert rays(sensor).ravel() == pytest.approx([0, 0.1, 0, 0, 1, 0], abs=1e-5)
    scanner = beams(ScannerConfig(attitude=(0.0, 0.0, math.pi / 2)))
    assert scanner is not None and scanner["turning"]
    assert scanner["rays"][3:] == pytest.approx([0, 1, 0], abs=1e-5) and scanner["axis"] == pytest.approx(
        [-1, 0, 0], abs=1e-5
    )
    level = beams(EchosounderConfig(attitude=(1.0, 0.0, 0.0), width=0.2))
    assert level is not None and level["level"] and level["rays"][3:6] == [0, 0, 1]
    assert len(level["rays"]) == 6 * 9
    assert beams(SensorConfig()) is None


# ---------------------------------------------------------------------------------- in the page


class Aboard(Stage):
    """The barge, with values that a test sets."""

    def __init__(self, loaded: LoadedConfig) -> None:
        super().__init__()
        body, _ = loaded.config.fleet.vehicle
        model = loaded.models["barge"]
        self.described["models"] = {"barge": model_info(model)}
        self.kits[0] = body_equipment(0, 1, model, described_instruments(loaded.suite(body)), loaded)
        self.actual = [10.0, 30.0, 0.2, -0.3, -1.0, 5.0]
        self.values: dict[str, dict[str, Any]] = {}
        self.effort: dict[str, list[float]] | None = None

    def frame(self) -> ViewerFrame:
        """It lies still."""
        self.tick += 1
        return ViewerFrame(
            self.tick * 0.1, self.tick, 1, bodies([0], np.zeros((1, 3)), [[1, 0, 0, 0]], np.zeros((1, 3)))
        )

    def roster(self) -> list[list[Any]]:
        return [[0, "b", "barge", "surface", 1]]

    def panel(self, row: int) -> dict[str, Any]:
        feedback = [None] * 6
        actuation: dict[str, Any] = {
            "command": [25.0, 60.0, 0.3, -0.3, -1.0, 5.0],
            "actual": self.actual,
            "feedback": feedback,
            "turns": [0.0] * 6,
            "turn_rates": [0.0] * 6,
        }
        silent = {"valid": False, "age": None, "fault": "", "fields": {}}
        sensors = {s["name"]: self.values.get(s["name"], silent) for s in self.kits[0]["sensors"]}
        actuation["faults"] = {f.part: f.kind for f in self.faults}
        return super().panel(row) | {"actuation": actuation, "sensors": sensors, "effort": self.effort}


def value(fields: dict[str, Any], age: float = 0.1, valid: bool = True, fault: str = "") -> dict[str, Any]:
    return {"valid": valid, "age": age, "fault": fault, "fields": fields}


@pytest.fixture
def aboard(barge: LoadedConfig, tmp_path: Path) -> Iterator[tuple[Aboard, str]]:
    """A viewer of the barge in a thread, and its address."""
    source = Aboard(barge)
    with on_stage(source, tmp_path) as url:
        yield source, url


def chosen(page: Page) -> None:
    page.wait("window.wavesim && wavesim.store.rows.length === 1")
    page.page.locator("#fleet tr[data-row='0']").click()
    page.wait(
        "wavesim.store.kit && wavesim.store.panel && document.querySelectorAll('#actuators tr[data-name]').length"
    )


def row_of(page: Page, name: str) -> list[str]:
    """The cells of an actuator in the panel."""
    found: list[str] = page.see(
        f"[...document.querySelectorAll(\"#actuators tr[data-name='{name}'] td\")].map(e => e.textContent)"
    )
    return found


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_every_actuator_with_its_unit(aboard: tuple[Aboard, str], open_page: Callable[[str], Page]) -> None:
    """Thrusters in N or revolutions, fins and nozzles in degrees, buckets in percent, tanks in kg; a chart of each."""
    source, url = aboard
    page = open_page(url)
    chosen(page)
    page.wait("document.querySelector(\"#actuators tr[data-name='jet'] td:nth-child(3)\").textContent === '10.00'")
    expected = {
        "jet": ("10.00", "25.00", "rev/s"),
        "bow": ("30.00", "60.00", "N"),
        "rudder": ("11.46", "17.19", "°"),
        "jet-angle": ("-17.19", "-17.19", "°"),
        "jet-deflector": ("-100", "-100", "%"),
        "trim": ("5.000", "5.000", "kg"),
    }
    for name, (actual, command, unit) in expected.items():
        cells = row_of(page, name)
        assert (cells[0], cells[2], cells[3], cells[4]) == (name, actual, command, unit)
    page.page.locator("#actuators tr[data-name='jet-deflector']").click()
    page.page.locator("#actuators tr[data-name='trim']").click()
    page.wait("document.querySelectorAll('#charts .plot').length === 5")
    titles = page.see("[...document.querySelectorAll('#charts .plot .title span')].map(e => e.textContent)")
    assert titles[3:] == ["jet-deflector (%) — actual, command", "trim (kg) — actual, command"]
    source.actual = [*source.actual[:5], 8.0]
    page.wait("wavesim.app.details.charts.series('actuator.trim').value.at(-1) === 8")
    page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_parts_move_in_the_picture(aboard: tuple[Aboard, str], open_page: Callable[[str], Page]) -> None:
    """A fin turns its leading edge towards its normal, a nozzle from ahead to starboard, a bucket comes down, a tank fills; the
    arrow of the thrust follows the jet."""
    source, url = aboard
    page = open_page(url)
    chosen(page)
    moving = "wavesim.view.bodies.moving"
    where = f"(key, x, y, z) => {{ const v = {moving}.group.position.clone().set(x, y, z); return v.applyQuaternion({moving}.parts.get(key)[0].pivot.quaternion).toArray() }}"
    page.wait(f"{moving}.parts.size === 3 && {moving}.values && Math.abs({moving}.values[2] - 0.2) < 1e-3")
    # three's axes: x starboard, y up, z astern
    edge = page.see(f"({where})('fin 0', 0, 0, -1)")  # the leading edge of a rudder: normal to starboard
    assert edge == pytest.approx([math.sin(0.2), 0, -math.cos(0.2)], abs=2e-3)
    nozzle = page.see(f"({where})('angle 0', 0, 0, -1)")  # the thrust of the nozzle, turned to port
    assert nozzle == pytest.approx([math.sin(-0.3), 0, -math.cos(0.3)], abs=2e-3)
    shell = page.see(f"({where})('deflector 0', 0, 1, 0)")  # full astern: the shell was above, and is behind now
    assert shell[2] > 0.95
    page.wait(f"Math.abs({moving}.tanks[0].fill.scale.y - 0.25) < 0.01")
    source.actual = [0.0, 0.0, 0.0, 0.3, 1.0, 20.0]
    page.wait(f"Math.abs({moving}.tanks[0].fill.scale.y - 1) < 0.01 && Math.abs({moving}.values[3] - 0.3) < 1e-3")
    assert page.see(f"({where})('deflector 0', 0, 1, 0)") == pytest.approx([0, 1, 0], abs=0.01), "lifted"
    assert page.see(f"({where})('angle 0', 0, 0, -1)")[0] > 0.29
    source.actual = [25.0, 0.0, 0.0, 0.0, -1.0, 0.0]  # full astern
    page.see(
        "(() => { wavesim.view.setResolution('full'); wavesim.view.show.magnify = false; wavesim.view.goTo(0) })()"
    )
    page.wait("wavesim.view.working.thrust.mesh.count === 1")
    page.wait(
        "(() => { const m = wavesim.view.working.thrust.mesh, a = m.instanceMatrix.array; return Math.abs(a[6]) > 0 && a[6] / Math.hypot(a[4], a[5], a[6]) > 0.99 })()"
    )
    page.page.wait_for_timeout(600)
    page.shot("aboard-jet")
    page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_forces_where_somebody_asked_for_them(aboard: tuple[Aboard, str], open_page: Callable[[str], Page]) -> None:
    """A table of parts that comes and goes; a chart of a part."""
    source, url = aboard
    page = open_page(url)
    chosen(page)
    hidden = "document.querySelector('#forces').classList.contains('hidden')"
    assert page.see(hidden)
    parts = ("restoring", "drag", "actuators", "environment", "external", "contact")
    source.effort = {p: [10.0 * k, 0.0, -0.25, 0.01, 123456.0, -1234.5] for k, p in enumerate(parts)}
    source.effort["total"] = [150.0, 0.0, -1.5, 0.06, 740736.0, -7407.0]
    page.wait(f"!{hidden}")
    rows = page.see("[...document.querySelectorAll('#forces tbody tr')].map(r => [...r.cells].map(c => c.textContent))")
    assert rows[0] == ["total", "150", "0", "-1.5", "0.1", "7.4e+5", "-7407"]
    assert rows[3] == ["actuators", "20.0", "0", "-0.3", "0", "1.2e+5", "-1235"] and len(rows) == 7
    # as wide as they get: all six numbers are seen
    source.effort |= {"drag": [-9999.4] * 6}
    page.wait("[...document.querySelectorAll(\"#forces tr[data-name='drag'] td\")][6].textContent === '-9999'")
    assert page.see("(() => { const e = document.querySelector('#forces'); return e.scrollWidth <= e.clientWidth })()")
    page.page.locator("#forces tr[data-name='drag']").click()
    page.wait(
        "[...document.querySelectorAll('#charts .title span')].some(e => e.textContent === 'drag (N, N m) — X, Y, Z, K, M, N')"
    )
    page.page.locator("#forces").scroll_into_view_if_needed()
    page.shot("aboard-forces")
    source.effort = None
    page.wait(hidden)
    page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_each_instrument_with_its_values_and_its_age(
    aboard: tuple[Aboard, str], open_page: Callable[[str], Page]
) -> None:
    """Two of a type are two entries; old, invalid, faulty and silent ones say so; numbers have their unit and name."""
    source, url = aboard
    dvl = {
        "bottom": [1.0, 0.5, None],
        "water": [0, 0, 0],
        "beams": [1, 2, 3, 4],
        "ranges": [10, 11, 12, None],
        "altitude": 9.5,
        "locked": 3,
    }
    source.values = {
        "dvl-down": value(dvl),
        "dvl-bow": value(dvl, age=9.0),
        "gps": value({"latitude": 0.75, "longitude": 0.1, "hdop": 1.0}, valid=False),
        "leak": value({"wet": [0, 1]}, fault="wet"),
        "encoder": value({"actuator": [10, 30, 0.2, -0.3, -1, 5]}),
        "scanner": value({"angle": math.pi / 2, "range": 20.0}),
        "multibeam": value({"range": [10 + k for k in range(16)] + [None] * 240}),
    }
    page = open_page(url)
    chosen(page)
    names = "[...document.querySelectorAll('#instruments details')].map(e => e.dataset.name)"
    assert page.see(names) == ["dvl-down", "dvl-bow", "multibeam", "scanner", "encoder", "rpm", "leak", "scalar", "gps"]
    state = (
        "Object.fromEntries([...document.querySelectorAll('#instruments details')].map(e => [e.dataset.name,"
        " e.querySelector('summary').textContent]))"
    )
    page.wait(f"({state})['dvl-down'].includes('0.1 s')")
    texts = page.see(state)
    assert "9.0 s old" in texts["dvl-bow"] and "invalid" in texts["gps"] and "wet" in texts["leak"]
    assert "no value yet" in texts["rpm"]
    for name in ("dvl-down", "encoder", "leak", "gps"):
        page.see(f"document.querySelector(\"#instruments details[data-name='{name}']\").open = true")
    cells = (
        "(n) => [...document.querySelectorAll(`#instruments details[data-name='${n}'] tr`)]"
        ".map(r => [...r.cells].map(c => c.textContent).filter(t => t))"
    )
    page.wait(f"({cells})('dvl-down')[0][1] === '1.000'")
    assert page.see(f"({cells})('dvl-down')")[0] == ["bottom", "1.000", "0.500", "–", "m/s"]
    encoder = page.see(f"({cells})('encoder')")
    assert encoder == [
        ["jet", "10.00", "rev/s"],
        ["bow", "30.00", "N"],
        ["rudder", "11.46", "°"],
        ["jet-angle", "-17.19", "°"],
        ["jet-deflector", "-100", "%"],
        ["trim", "5.000", "kg"],
    ]
    assert page.see(f"({cells})('leak')") == [["fore", "0"], ["aft", "1"]]
    assert page.see(f"({cells})('gps')")[0] == ["latitude", "42.9718346", "°"]
    page.page.locator("#instruments details[data-name='dvl-down'] tr").first.click()
    page.wait(
        "[...document.querySelectorAll('#charts .title span')].some(e => e.textContent === 'dvl-down bottom (m/s) — 0, 1, 2')"
    )
    # beams: both logs, the fan, the scanner; what met something ends there
    assert page.see("wavesim.view.working.beams.count") == 4 + 4 + 16 + 1
    page.see(
        "(() => { wavesim.view.setResolution('full'); wavesim.view.show.magnify = false; wavesim.view.goTo(0) })()"
    )
    page.page.wait_for_timeout(600)
    page.shot("aboard-instruments")
    ends = page.see("Array.from(wavesim.view.working.beams.ends.geometry.getAttribute('position').array)")
    ends_drawn = np.array(ends).reshape(-1, 3)[: page.see("wavesim.view.working.beams.met")]
    scanner = ends_drawn[-1]  # to starboard of its place: 20 m east
    assert scanner == pytest.approx([20.0, -0.3, -2.0], abs=1e-3)
    page.page.keyboard.press("i")
    page.wait("wavesim.view.working.beams.count === 0")
    page.clean()


@pytest.mark.system
@pytest.mark.xdist_group("browser")
def test_faults_are_commanded_by_name(aboard: tuple[Aboard, str], open_page: Callable[[str], Page]) -> None:
    """The form of a part sends its name, the kind, the amount with its unit, and the field."""
    source, url = aboard
    page = open_page(url)
    chosen(page)
    page.page.locator("button[aria-label='Inject a fault into rudder']").click()
    # a fault that is repaired has no amount
    page.page.select_option("select[aria-label='Fault']", label="repair")
    assert page.page.locator("input[aria-label='Amount']").is_disabled()
    page.page.select_option("select[aria-label='Fault']", "stuck")
    assert page.page.locator("input[aria-label='Amount']").is_enabled()
    page.page.locator(".fault-form button.on").click()
    row = page.page.locator("#actuators tr[data-name='rudder'] td.name")
    expect(row).to_have_text("rudder stuck")
    page.page.keyboard.press("Shift+L")
    page.page.locator("button[aria-label='Inject a fault into gps']").click()
    page.page.select_option("select[aria-label='Fault']", "bias")
    page.page.fill("input[aria-label='Amount']", "2 deg")
    page.page.select_option("select[aria-label='Field']", "latitude")
    page.shot("aboard-fault")
    page.page.locator(".fault-form button.on").click()
    page.page.wait_for_selector(".toast")
    page.until(lambda: len(source.faults) == 2)
    # a push, other weather, another attitude, in SI; what is left empty is not said
    page.page.click("#tab-orders")
    page.page.get_by_label("Push X").fill("50")
    page.page.get_by_label("Push N", exact=True).fill("-2.5")
    page.page.click("#push")
    for label, number in (("Wind speed", "12"), ("Wind from", "90")):
        page.page.get_by_label(label, exact=True).fill(number)
    page.page.click("#weather")
    for label, number in (("roll", "0"), ("pitch", "0"), ("heading", "180")):
        page.page.get_by_label(f"Pose {label}").fill(number)
    page.page.click("#pose")
    page.shot("orders")
    page.until(lambda: len(source.orders) == 3)
    push, weather, pose = source.orders
    assert pose == CommanderRequest("pose", 0, {"attitude": [0, 0, pytest.approx(math.pi)]}), (
        "its place is left as it is"
    )
    assert push == CommanderRequest("push", 0, {"force": [50, 0, 0], "torque": [0, 0, -2.5]})
    assert (
        weather.verb == "weather"
        and weather.row is None
        and weather.values == {"wind_speed": 12, "wind_direction": pytest.approx(math.pi / 2)}
    )
    assert source.faults == [
        FaultRequest(0, "rudder", "stuck", "", ""),
        FaultRequest(0, "gps", "bias", "2 deg", "latitude"),
    ]
    page.clean()


def test_models_of_the_library_are_known_whole() -> None:
    """Every actuator of every model has a part of the drawing, or none by right (an allocation matrix has no places)."""
    for model in library().values():
        drawn = model_info(model)
        parts = {
            "thruster": "thrusters",
            "angle": "thrusters",
            "deflector": "thrusters",
            "fin": "fins",
            "ballast": "tanks",
        }
        for a in (actuator(a, model) for a in actuators_of(model)):
            assert model.allocation is not None or a["part"] < len(drawn[parts[a["kind"]]])
            assert a["minimum"] <= a["rest"] <= a["maximum"] or a["kind"] in ("thruster", "ballast")
