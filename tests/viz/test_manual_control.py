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
