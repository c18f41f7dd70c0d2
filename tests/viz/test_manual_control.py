"""Manual control: the page sends axes, and the viewer's server mixes them to the actuators of any model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.viz.sea import Opener
from wavesim_sdk import frames
from wavesim_sdk.attach import SharedState
from wavesim_viz.page_protocol import DriveRequest
from wavesim_viz.requests import InvalidRequest, parse_request
from wavesim_world.config import LoadedConfig, library
from wavesim_world.manual_axes import NEUTRAL, allocated_commands
from wavesim_world.mixing import Mixer

MIXERS = {name: Mixer(model) for name, model in library().items()}
SHARES = np.eye(4) * 0.5

ROV = """<world><bed depth="30 m"/></world>
<fleet><vehicle name="rov" model="bluerov2-heavy" position="0 0 5 m" client="optional"/></fleet>"""


@pytest.mark.parametrize("name", [n for n, m in MIXERS.items() if m.keywords])
def test_every_model_is_driven_by_its_mixer(name: str) -> None:
    mixer = MIXERS[name]
    rest = allocated_commands(mixer, NEUTRAL)
    assert rest == mixer()
    for axis, axes in zip(("surge", "sway", "heave", "yaw"), SHARES, strict=True):
        found = allocated_commands(mixer, axes)
        assert set(found) == set(rest)
        if axis in mixer.axes:
            assert found == mixer(**{axis: 0.5}) and found != rest
        elif axis == "heave" and "pitch" in mixer.axes:
            assert found == mixer(pitch=-0.5) and found != rest, "planes lower the bow"
        else:
            assert found == rest


def test_requests_of_the_helm() -> None:
    for wrong in ('"a"', "[1e99,0,0,0]", "[0,0,0]", "[0,0,0,0,0]", '{"0":1}', "[true,0,0,0]", "[null,0,0,0]"):
        with pytest.raises(InvalidRequest):
            parse_request(f'{{"do":"drive","body":"a","axes":{wrong},"mapping":"allocation"}}')
    assert parse_request('{"do":"drive","body":"a","axes":[0.5,0,0,-1],"mapping":"allocation"}') == DriveRequest(
        "a", (0.5, 0, 0, -1), "allocation"
    )
    assert parse_request('{"do":"drive","body":"a","axes":null,"mapping":"force"}') == DriveRequest("a", None, "force")
    assert parse_request('{"do":"drive","body":"a","axes":[0.5,-1],"mapping":"actuators"}') == DriveRequest(
        "a", (0.5, -1), "actuators"
    )
    for wrong in ("[]", "[1.5]", '["a"]', "[null]", "5"):
        with pytest.raises(InvalidRequest):
            parse_request(f'{{"do":"drive","body":"a","axes":{wrong},"mapping":"actuators"}}')
    with pytest.raises(InvalidRequest):
        parse_request('{"do":"drive","body":"a","axes":null,"mapping":"magic"}')


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(240)
def test_a_heavy_rov_stays_level_when_it_is_driven_ahead(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """Its horizontal thrusters are below the centre: without the vertical ones they would raise its bow and tumble it."""
    server = serve(config(ROV).path)
    server.send("start")
    page = open_page(view("--server", name, "--control").url)
    page.wait("window.wavesim && wavesim.store.last")
    page.page.keyboard.press("j")
    page.page.click("#take-helm")
    page.wait("document.querySelector('#helm-status').textContent.includes('Idle')")
    assert [c["role"] for c in server.status()["clients"]] == ["pilot"]
    shared = SharedState(name)
    page.page.get_by_label("Fraction of the maximum power").fill("1")
    page.page.locator("#stage canvas").first.focus()
    page.page.keyboard.down("ArrowUp")
    tilts = []

    def has_travelled() -> bool:
        state = shared.snapshot().state[shared.row("rov")]
        tilts.append(np.degrees(frames.euler(state["q_WB"]))[:2])
        return float(state["p_WB_W"][0]) > 10.0

    page.until(has_travelled, 60)
    page.page.keyboard.up("ArrowUp")
    assert np.abs(tilts).max() < 3.0
    page.clean()


HARBOUR = """<log effort="yes"/><world><bed depth="30 m"/></world><fleet>
<vehicle name="boat" model="jolner" position="0 0 -0.1 m" client="optional"/>
<vehicle name="hull" model="lauv" position="40 40 8 m"/></fleet>"""
#: a gamepad with its shoulder button held; the left stick is ahead and to starboard, the right one down
PAD = """(() => { const pad = window.pad = { axes: [0.5, -1, 0.05, 0.5],
buttons: [...Array(16)].map((_, k) => ({ pressed: k === 5 })) }; navigator.getGamepads = () => [pad] })()"""


@pytest.mark.system
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(240)
def test_sticks_act_as_a_force_or_on_each_actuator(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Any,
    open_page: Opener,
    name: str,
    tmp_path: Any,
) -> None:
    """Stick to surge force and yaw moment of a hull without a pilot, then a stick for each thruster of a boat."""
    server = serve(config(HARBOUR).path, "--log", str(tmp_path / "run.mcap"))
    server.send("start")
    page = open_page(view("--server", name, "--control").url)
    page.wait("window.wavesim && wavesim.store.last")
    shared = SharedState(name)

    def pushed() -> Any:
        return shared.snapshot("effort").tables["effort"]["external"][shared.row("hull")]

    def commands() -> Any:
        return shared.snapshot("actuation").tables["actuation"]["command"][shared.row("boat")][:2]

    page.page.keyboard.press("j")
    page.page.select_option("#helm-mapping", "force")
    page.page.select_option("select[aria-label='Body to drive']", "hull")
    page.page.get_by_label("Full deflection in surge, N").fill("40")
    page.page.get_by_label("Full deflection in heave, N").fill("8")
    page.page.get_by_label("Full deflection in yaw, N m").fill("6")
    page.page.get_by_label("Fraction of the maximum power").fill("1")
    page.page.click("#take-helm")
    page.wait("document.querySelector('#helm-status').textContent.includes('Idle')")
    assert server.status()["clients"] == [], "a force needs no pilot"
    page.see(PAD)
    page.until(lambda: np.allclose(pushed(), [40, 0, 4, 0, 0, 3], atol=1e-6))  # sway is inside the dead zone
    page.shot("force")
    page.see("window.pad.axes[1] = 0.04")  # inside the dead zone, too
    page.until(lambda: np.allclose(pushed(), [0, 0, 4, 0, 0, 3], atol=1e-6))
    page.page.get_by_label("Dead zone of the sticks").fill("0.02")
    page.until(lambda: abs(pushed()[0] + 1.6) < 1e-6)
    page.see("window.pad.buttons[5].pressed = false")
    page.until(lambda: not pushed().any())
    page.page.locator("#stage canvas").first.focus()
    page.page.keyboard.down("ArrowDown")
    page.until(lambda: pushed()[0] == -40.0)
    page.see("clearInterval(wavesim.app.helm.timer)")  # the page stalls while a key is held
    page.until(lambda: not pushed().any())
    page.page.keyboard.up("ArrowDown")
    page.page.click("#close-helm")

    page.page.keyboard.press("j")
    page.page.select_option("#helm-mapping", "actuators")
    page.page.select_option("select[aria-label='Body to drive']", "boat")
    page.page.click("#take-helm")
    page.page.get_by_label("Stick for port").wait_for()
    assert page.page.get_by_label("Stick for port").input_value() == "1", "the left stick"
    page.see("Object.assign(window.pad.axes, [0, -1, 0, 0.5]); window.pad.buttons[5].pressed = true")
    port, starboard = library()["jolner"].thruster
    page.until(lambda: np.allclose(commands(), [port.maximum, 0.5 * starboard.minimum]))
    page.shot("actuators")
    page.page.get_by_label("Stick for starboard").select_option(label="left stick ↕ (reversed)")
    page.until(lambda: np.allclose(commands(), [port.maximum, starboard.minimum]))
    page.see("window.pad.buttons[5].pressed = false")
    page.until(lambda: not commands().any())
    page.see("delete navigator.getGamepads")
    page.clean()
