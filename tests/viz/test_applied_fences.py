"""Fences of a running server, changed on the page: alarms follow them, and a replay shows those of each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import Server
from tests.viz.browser import Page
from tests.viz.sea import READY, Opener
from wavesim_sdk.attach import SharedState
from wavesim_sdk.log import read
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
WORLD = """<time step="10 ms"/><world><bed depth="40 m"/></world><log state_rate="10 Hz"/>
<fleet><vehicle name="auv" model="lauv" position="0 0 8 m"/></fleet>"""
ALARMS = "wavesim.store.alarms.filter(a => a.kind === 'fence' && a.name === 'auv')"
SAME = "the running server has these fences"
BAY = [[-90, -90], [90, -90], [90, 90], [-90, 90]]


def draw(page: Page, *corners: tuple[float, float]) -> None:
    """Click the corners of a fence on the chart and close it."""
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None
    for north, east in corners:
        x, y = page.see(f"wavesim.chart.px({north}, {east})")
        page.page.mouse.click(box["x"] + x, box["y"] + y)
    page.page.locator("#close-fence").click()


def test_an_operator_changes_the_fences_of_a_running_server(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, tmp_path: Path
) -> None:
    log = tmp_path / "run.mcap"
    server = serve(config(WORLD).path, "--log", str(log))
    server.send("start")
    page = open_page(view("--server", server.name, "--control").url)
    page.wait(f"{READY} === 1")
    page.page.locator("#do-mission").click()
    page.see("wavesim.chart.look([0, 100], 1.5)")
    page.page.get_by_role("button", name="fences", exact=True).click()
    note, apply = page.page.locator("#fence-note"), page.page.locator("#apply-fences")
    expect(note).to_have_text(SAME)
    expect(apply).to_be_disabled()

    page.page.get_by_label("Side of the next fence").select_option("outside")
    draw(page, (-40, -40), (40, 40), (40, -40), (-40, 40))
    apply.click()
    expect(page.page.locator(".toast").last).to_contain_text("fence 'fence1' crosses itself")
    page.page.get_by_label("Delete fence fence1").click()
    draw(page, (-40, -40), (40, -40), (40, 40), (-40, 40))
    expect(note).to_have_text("1 fence differs from the running server")
    apply.click()
    expect(note).to_have_text(SAME)
    (drawn,) = SharedState(server.name).fences()
    assert (drawn.name, drawn.keep, len(drawn.corners)) == ("fence1", "outside", 8)
    assert drawn.corners == pytest.approx((-40, -40, 40, -40, 40, 40, -40, 40), abs=0.7)
    page.wait(f"{ALARMS}.some(a => a.until === null && a.severity === 'high')")
    page.wait("wavesim.store.notices.some(n => n.text === \"entered the fence 'fence1' (keep outside)\")")
    page.shot("applied-fences")

    # another operator adds a fence while the draft has a change
    page.page.get_by_label("Side of fence fence1").select_option("inside")
    server.send("fence", name="bay", keep="inside", corners=BAY)
    expect(page.page.locator("#fences tr")).to_have_count(2)
    expect(note).to_have_text("1 fence differs from the running server")
    page.page.get_by_label("Delete fence fence1").click()
    apply.click()
    expect(note).to_have_text(SAME)
    page.wait(f"{ALARMS}.length === 1 && {ALARMS}[0].until !== null")
    assert [f.name for f in SharedState(server.name).fences()] == ["bay"]
    page.clean()

    server.send("shutdown")
    assert server.process.wait(20) == 0
    orders = [(t * 1e-9, c["arguments"]["name"]) for t, c in read(log).json["/commands"] if c["verb"] == "fence"]
    assert [name for _, name in orders] == ["fence1", "bay", "fence1"]
    replay = open_page(view(log).url)
    replay.wait(f"{READY} === 1")
    names = "wavesim.store.fences.map(f => f.name).join()"
    for time, there in ((orders[0][0] + 0.01, "fence1"), (orders[0][0] - 0.1, ""), (orders[2][0] + 0.01, "bay")):
        replay.see(f"wavesim.link.control('pause'); wavesim.link.control('seek', {time})")
        replay.wait(f"{names} === '{there}'")
        replay.wait(f"wavesim.view.fences.lines.geometry.attributes.position.count === {16 if there else 0}")
    expect(replay.page.locator("#do-mission")).to_be_disabled()
    replay.clean()
