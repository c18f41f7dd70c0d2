"""The drawn sea is the sea that acts on the bodies, and traffic is drawn at its predicted positions, with a real server
and browser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.conftest import Server
from tests.viz.sea import READY, Opener
from wavesim_sdk.attach import SharedState
from wavesim_sdk.frames import rotation
from wavesim_sdk.guidance.encounters import closest_approach, domain
from wavesim_viz.frame import decode_text
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]

SEA = """
<time step="20 ms"/>
<world><waves height="1.2 m" peak="0.9 rad/s" direction="60 deg" spreading="6"/><bed depth="40 m"/><tide amplitude="0.5 m" period="600 s"/></world>
<fleet><vehicle name="own" model="otter" position="0 0 0 m" attitude="0 0 20 deg"/>
<vehicle name="ferry" model="boat" position="300 -60 0 m" attitude="0 0 170 deg" speed="3 m/s"/>
<vehicle name="trawler" model="boat" position="150 200 0 m" attitude="0 0 250 deg" speed="2 m/s"/>
<buoy name="mark" model="buoy" position="12 9 0.2 m"/>
<line name="mooring" length="45 m" diameter="8 mm" mass="40 g/m" stiffness="60 kN" segments="12"><end body="mark" position="0 0 0.25 m"/><end position="12 9 40 m"/></line></fleet>
"""
#: height of the drawn surface (m, up) under a place, by a ray from above through the drawn triangles
DRAWN = """([n, e]) => { const v = wavesim.view, r = v.ray({ clientX: 0, clientY: 0 }), f = v.heights.factor;
  v.render(); v.scene.updateMatrixWorld(); r.ray.origin.set(e, 1000, -n); r.ray.direction.set(0, -1, 0);
  return r.intersectObject(v.surface.mesh)[0].point.y / f }"""


def test_sea_and_traffic_as_the_server_has_them(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    server = serve(config(SEA, seed="5").path)
    page = open_page(view("--server", name, "--control").url)
    page.wait(f"{READY} === 4 && wavesim.store.sea")
    page.see("wavesim.link.control('speed', 5); wavesim.link.control('start')")
    page.wait("wavesim.store.time > 6")
    page.see("wavesim.link.control('pause')")
    server.wait(lambda s: s["state"] == "paused")
    shared = SharedState(name)
    tick = int(shared.clock()["tick"])
    page.wait(f"wavesim.store.last.tick === {tick} && wavesim.store.settled()")
    page.see("wavesim.store.now()")

    lines_are_drawn(page, shared)
    waves_are_drawn(page, shared)
    traffic_is_drawn(page, shared)

    # a sea that stands still is not drawn again
    page.page.keyboard.press("1")
    page.wait("!wavesim.app.loop.turning")
    frames = page.see("wavesim.view.frames")
    page.page.wait_for_timeout(600)
    assert page.see("wavesim.view.frames") == frames
    page.clean()


def lines_are_drawn(page: Any, shared: SharedState) -> None:
    """From node to node of the server's own table, from the anchor or the buoy to the other."""
    (line,) = shared.vehicles["lines"].snapshot()[1]
    nodes = line["nodes_W"].reshape(-1, 3)[: line["nodes"]]
    assert len(nodes) == 13 and np.ptp(nodes[:, 2]) > 30.0
    page.wait("wavesim.store.cables.length === 1 && wavesim.store.cables[0].name === 'mooring'")
    page.wait(f"Math.abs(wavesim.store.cables[0].points[5] - {nodes[1, 2]}) < 1e-3")
    page.see("wavesim.view.render()")
    drawn = page.see(
        "(() => { const g = wavesim.view.cables.lines.geometry; return Array.from(g.attributes.position.array).slice(0, 3 * Math.min(g.drawRange.count, g.attributes.position.count)) })()"
    )
    ends = np.array(drawn).reshape(-1, 2, 3) @ np.array([[0, 1, 0], [0, 0, -1], [-1, 0, 0]])  # x east, y up, z south
    assert ends[:, 0] == pytest.approx(nodes[:-1], abs=2e-3) and ends[:, 1] == pytest.approx(nodes[1:], abs=2e-3)


def waves_are_drawn(page: Any, shared: SharedState) -> None:
    """Within 2 % of the significant height where the mesh is fine, at bodies and elsewhere, also stretched; flat when off."""
    surroundings = shared.vehicles["surroundings"].snapshot()[1]
    seen = shared.snapshot()
    waves = []
    for body in ("own", "ferry", "trawler", "mark"):
        row = shared.row(body)
        north, east = seen.state[row]["p_WB_W"][:2]
        page.see(f"(() => {{ wavesim.view.setMode('free'); wavesim.view.goTo({row}) }})()")
        level, wave = float(surroundings[row]["level"]), float(surroundings[row]["wave"])
        assert level == pytest.approx(wave + float(shared.weather()["level"]))
        waves.append(abs(wave))
        drawn = page.page.evaluate(DRAWN, [float(north), float(east)])
        assert drawn == pytest.approx(level, abs=0.02 * 1.2), body
    assert max(waves) > 0.05
    # who looks from a hand's breadth below the wave there is under water, above it not, wherever the still level is
    for above in (0.05, -0.05):
        eye = [float(east), level + above, -float(north)]
        shown = f"(() => {{ const v = wavesim.view; v.camera.position.fromArray({eye}); v.view(v.camera, 0, 0, 300, 200, -1); return v.sky.mesh.visible }})()"
        assert page.see(shown) is (above > 0.0)
    page.see("wavesim.view.stretch(5)")
    assert page.page.evaluate(DRAWN, [float(north), float(east)]) == pytest.approx(level, abs=0.03 * 1.2)
    page.shot("waves")
    page.see("wavesim.view.stretch(1)")
    page.see("wavesim.view.show.waves = false")
    assert page.page.evaluate(DRAWN, [float(north), float(east)]) == pytest.approx(level - wave, abs=1e-4)
    page.see("wavesim.view.show.waves = true")
    page.page.keyboard.press("Shift+L")
    page.shot("waves-light")
    page.page.keyboard.press("Shift+L")


def traffic_is_drawn(page: Any, shared: SharedState) -> None:
    """DCPA and TCPA of the list are those of the server's own states; domains are circles of that many metres in chart and 3D."""
    state = shared.snapshot().state
    rows = {decode_text(n): k for k, n in enumerate(shared.snapshot().identity["name"]) if decode_text(n)}
    v = np.einsum("nij,nj->ni", rotation(state["q_WB"]), state["v_WB_B"])[:, :2]
    page.see(f"wavesim.app.selection.choose({rows['own']})")
    page.page.click("#tab-traffic")
    page.wait(
        "document.querySelectorAll('#traffic tbody tr').length === 2 && document.querySelector('#traffic tbody td:nth-child(7)').textContent"
    )
    for other in ("ferry", "trawler"):
        k, own = rows[other], rows["own"]
        dcpa, tcpa = closest_approach(state["p_WB_W"][k, :2] - state["p_WB_W"][own, :2], v[k] - v[own])
        cells = page.see(f"[...document.querySelectorAll('#traffic tr[data-row=\"{k}\"] td')].map(c => c.textContent)")
        assert cells[0] == other and float(cells[5]) == pytest.approx(float(dcpa), abs=0.06)
        minutes, seconds = map(int, cells[6].split(":"))
        assert 60 * minutes + seconds == pytest.approx(float(tcpa), abs=1.0)
    least, preferred = page.see("[wavesim.store.traffic.least, wavesim.store.traffic.preferred]")
    assert (least, preferred) == domain(2.0)
    # in 3D the line of a domain goes through the point that far north of the ferry; and lines end where they meet
    points = page.see(
        "(() => { wavesim.view.render(); const l = wavesim.view.crossings.lines, p = l.geometry.getAttribute('position').array;"
        " return [l.visible, l.geometry.drawRange.count, ...p.slice(0, 3 * l.geometry.drawRange.count)] })()"
    )
    drawn = np.array(points[2:]).reshape(-1, 3)
    assert points[0] and len(drawn) == points[1] > 200
    north, east = state["p_WB_W"][rows["ferry"], :2]
    for radius in (least, preferred):
        assert min(math.hypot(x - east, -z - north - radius) for x, _, z in drawn) < 0.01
    page.page.keyboard.press("4")
    page.see(f"wavesim.chart.look([{north}, {east}], 4)")

    def warm(dn: float) -> bool:
        """Whether something of the domain's colour is drawn so far north of the ferry, by 3 pixels; dashes leave gaps."""
        return bool(
            page.see(
                f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, r = c.width / c.clientWidth, found = [];"
                f" for (let a = -0.3; a < 0.3; a += 0.01) {{ const p = wavesim.chart.px({north} + {dn} * Math.cos(a), {east} + {dn} * Math.sin(a)), d = c.getContext('2d').getImageData(Math.round(p[0] * r) - 1, Math.round(p[1] * r) - 1, 3, 3).data;"
                " for (let k = 0; k < d.length; k += 4) if (d[k] > 150 && d[k] > d[k + 2] + 60) found.push(a) } return found.length > 8 })()"
            )
        )

    assert warm(preferred) and not warm(preferred - 3.0) and not warm(preferred + 3.0)
    page.shot("traffic-chart")
    page.page.keyboard.press("c")
    assert not warm(preferred), "switched off"
    page.page.keyboard.press("c")
