"""Tools of an operator: positions and lengths on the chart, sound in space and time, ranges, and two logs side by side."""

from __future__ import annotations

import base64
import csv
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pymap3d
import pytest
from click.testing import CliRunner

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.errors import LogError
from wavesim_sdk.log import read
from wavesim_sdk.tables import RECEPTION, SENT, STATE
from wavesim_server.cli import log as log_group
from wavesim_server.logbook.writer import LogWriter
from wavesim_viz.cli import plot
from wavesim_viz.frame import ViewerFrame, bodies, reception_rows, sent_rows
from wavesim_viz.replay import ReplaySource
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
ORIGIN = [41.18, -8.71]
NOW = 20.0  # s
SHIP = [20.0, 6.0, 3.0]  # m
HEARD, FADED, COLLISION, ECHO = 0, 2, 8, 11
PULSE, REQUEST, REPLY = 0, 2, 3


def received(
    at: float, after: float, source: int, receiver: int, kind: int, outcome: int = HEARD, **more: float
) -> Any:
    """A reception, `after` seconds after its emission."""
    r = np.zeros(1, RECEPTION.dtype)
    r["measured"] = r["azimuth"] = r["elevation"] = np.nan
    r["one_way"] = r["range"] = r["distance"] = 1500.0 * after
    r["duration"], r["source"], r["receiver"], r["kind"], r["outcome"] = 0.1, source, receiver, kind, outcome
    r["emission_ns"], r["arrival_ns"] = round(1e9 * (at - after)), round(1e9 * at)
    for name, v in more.items():
        r[name] = v
    return r


class Bay(Stage):
    """A ship and a vehicle that lie still between a shore and the deep, and what was heard in the last seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        north, east = np.linspace(-100.0, 100.0, 5), np.linspace(-100.0, 100.0, 5)
        depth = 30.0 + 0.2 * np.broadcast_to(north[:, None], (5, 5))
        look = {
            "name": "ship",
            "type": "surface",
            "title": "",
            "source": "",
            "validated": "",
            "shape": {"kind": "box", "size": SHIP},
            "appearance": "",
            "draw_parts": True,
            "mass": None,
            "thrusters": [],
            "fins": [],
            "tanks": [],
            "transducer": None,
        }
        self.described |= {
            "origin": ORIGIN,
            "models": {"ship": look},
            "bed": {"north": north.tolist(), "east": east.tolist(), "depth": depth.tolist()},
        }
        sent = np.zeros(2, SENT.dtype)
        sent["id"], sent["source"], sent["kind"], sent["duration"] = (7, 8), (0, 2), (REQUEST, REPLY), 0.1
        sent["emission_ns"] = (15_000_000_000, 15_200_000_000)
        sent["from_address"], sent["to_address"], sent["payload_bytes"] = (1, 3), (3, 0), (12, 0)
        heard = [
            received(15.05, 0.05, 0, 2, REQUEST, id=7, to_address=3, level=90.0, noise=70.0),
            received(15.25, 0.05, 2, 0, REPLY, id=8, query=7, measured=75.25, azimuth=np.pi / 2, elevation=0.5),
            received(15.3, 0.1, 0, 1, REQUEST, COLLISION, id=7, to_address=3),
            received(15.35, 0.05, 2, 1, REPLY, FADED, id=8),
            received(17.0, 0.2, 1, 0, PULSE, id=9),
            received(17.5, 0.7, 1, 0, PULSE, ECHO, id=9),
        ]
        self.pending: dict[str, Any] | None = {
            "sent": sent_rows(sent),
            "receptions": reception_rows(np.concatenate(heard)),
            "notices": [],
            "missed": 0,
        }

    def roster(self) -> list[list[Any]]:
        return [[0, "ship", "ship", "surface", 1], [1, "auv", "lauv", "underwater", 1], [2, "mark", "buoy", "buoy", 1]]

    def frame(self) -> ViewerFrame:
        p = np.array([[0.0, 0.0, 0.0], [-40.0, 30.0, 5.0], [40.0, 40.0, 0.0]])
        return ViewerFrame(self.now, 200, 2, bodies(range(3), p, [[1, 0, 0, 0]] * 3, np.zeros((3, 3))))

    def new_signals(self) -> dict[str, Any] | None:
        pending, self.pending = self.pending, None
        return pending

    def beliefs(self) -> list[list[float]]:
        return [[1, -40.0, 42.0, 5.0, 1.0, 1.0, 0.1]]


@pytest.fixture
def bay(tmp_path: Path) -> Iterator[tuple[Bay, str]]:
    source = Bay()
    with on_stage(source, tmp_path) as url:
        yield source, url


def loaded(page: Page) -> None:
    page.wait("window.wavesim && wavesim.store.rows.length === 3 && wavesim.store.events.length > 5")


def painted(page: Page, north: float, east: float, picks: str, near: int = 2) -> bool:
    """Whether a pixel of the chart so near to a place is as wanted: an expression of r, g, b."""
    return bool(
        page.see(
            f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, f = c.width / c.clientWidth, p = wavesim.chart.px({north}, {east}),"
            f" d = c.getContext('2d').getImageData(Math.round(p[0] * f) - {near}, Math.round(p[1] * f) - {near}, {2 * near + 1}, {2 * near + 1}).data;"
            f" for (let k = 0; k < d.length; k += 4) {{ const [r, g, b] = d.slice(k, k + 3); if ({picks}) return true }} return false }})()"
        )
    )


RED, TEAL, PALE = "r > 200 && g < 150 && b < 150", "r < 110 && g > 160 && b > 160", "r > 200 && g > 200 && b > 200"


def test_places_lengths_and_symbols_of_the_chart(bay: tuple[Bay, str], open_page: Callable[[str], Page]) -> None:
    """The pointer's place, latitude, longitude and depth; lengths and bearings of a measure; colours of depths; a ship as long and
    as wide as it is; corners around the chosen body and a dashed ellipse with a cross where it believes to be."""
    _, url = bay
    page = open_page(url)
    loaded(page)
    page.page.keyboard.press("4")
    page.see("wavesim.chart.look([-20, 15], 40)")  # a pointer is at a whole pixel, which is 25 mm here
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None

    def point(north: float, east: float) -> None:
        x, y = page.see(f"wavesim.chart.px({north}, {east})")
        page.page.mouse.move(box["x"] + x, box["y"] + y)

    point(-20, 15)
    text = page.see("document.querySelector('#pointer .num').textContent")
    lat, lon, _ = pymap3d.ned2geodetic(-20.0, 15.0, 0.0, *ORIGIN, 0.0)
    assert "20.0 S  15.0 E" in text and "bed 26.0 m" in text
    assert f"41°{(lat - 41) * 60:07.4f}'N  8°{(-lon - 8) * 60:07.4f}'W" in text.replace("  ", "  ")
    page.see("wavesim.chart.look([0, 0], 4)")
    page.page.click("#measure")
    for place in ((-20, -20), (10, -20), (10, 20)):
        point(*place)
        page.page.mouse.click(
            *(b + v for b, v in zip((box["x"], box["y"]), page.see(f"wavesim.chart.px{place}"), strict=True))
        )
    point(10, 30)
    text = page.see("document.querySelector('#pointer .num').textContent")
    assert "10.0 m  090.0°  (total 80.0 m)" in text
    assert painted(page, -5, -20, "r > 200 && g > 170 && b < 150"), "its line"
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("h")
    page.see("wavesim.chart.look([0, 0], 4)")
    assert not painted(page, -5, -20, "r > 200 && g > 170 && b < 150")
    # the legend of depths: from the colour of the shallowest to that of the deepest
    assert page.see(
        "(() => { const c = wavesim.chart.canvas, f = c.width / c.clientWidth, d = (y) => [...c.getContext('2d').getImageData((c.clientWidth - 19) * f, y * f, 1, 1).data].join();"
        " return d(99) !== d(200) })()"
    )
    # the ship is 20 m long and 6 m wide; from far away all are as small as can be seen
    assert (
        painted(page, 8, 0, RED)
        and painted(page, -9, 2, RED)
        and painted(page, -9, -2, RED)
        and not painted(page, -4, 5, RED)
    )
    page.see("wavesim.chart.look([0, 0], 0.5)")
    assert painted(page, 12, 0, RED) and not painted(page, 28, 0, RED)
    # chosen or believed: one is framed, the other is dashed with a cross and a line to the truth
    page.see("wavesim.chart.look([-40, 35], 10); wavesim.chart.show.labels = false")
    assert painted(page, -40, 42, TEAL) and painted(page, -40, 36, TEAL), "the cross and the line"
    around = [painted(page, -40 + 2 * np.cos(a), 42 + 2 * np.sin(a), TEAL, 0) for a in np.arange(0.3, 6.0, 0.11)]
    assert 0.15 < np.mean(around) < 0.85 and not painted(page, -38.3, 28.3, PALE)
    page.see("wavesim.app.selection.choose(1)")
    assert painted(page, -38.3, 28.3, PALE) and not painted(page, -38.3, 30, PALE), "corners"
    page.page.keyboard.press("?")
    assert page.see("document.querySelectorAll('#legend canvas').length") > 8
    page.shot("legend")
    page.page.keyboard.press("?")
    page.clean()


def test_sound_and_ranges(bay: tuple[Bay, str], open_page: Callable[[str], Page]) -> None:
    """Signals by what became of them, of the chosen body, of ranges; slots; held while time goes on; the table and the chart of
    two-way and one-way ranges and of bearings, and a table to take away."""
    source, url = bay
    page = open_page(url)
    loaded(page)
    page.see("wavesim.app.bottom.show('signals')")
    page.wait(
        "performance.now() > wavesim.app.loop.awakeUntil && !wavesim.app.loop.stale"
    )  # it draws nothing of itself any more
    page.page.select_option("select[aria-label='Event filter']", "received")
    cells = "[...document.querySelectorAll('#events tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    page.wait(f"({cells}).length === 3")
    pulse, reply, request = page.see(cells)
    assert reply[1:4] == ["range reply", "mark", "ship"] and reply[7:12] == [
        "75.250",
        "75.000",
        "75.000",
        "0.250",
        "90.0, 28.6",
    ]
    assert pulse[7:12] == ["", "300.000", "300.000", "", ""] and request[8] == "75.000"

    page.see("wavesim.app.bottom.show('sound')")
    chips = "Object.fromEntries([...document.querySelectorAll('.reasons button')].map(b => [b.dataset.outcome, [b.textContent, b.classList.contains('off')]]))"
    page.wait("document.querySelectorAll('.reasons button').length === 4")
    assert page.see(chips) == {
        "0": ["received 3", False],
        "2": ["faded 1", True],
        "8": ["collision 1", False],
        "11": ["echo 1", True],
    }
    lines = "document.querySelector('#spacetime').getContext('2d')"
    at = (
        "(t, v) => { const c = document.querySelector('#spacetime'), f = c.width / c.clientWidth, x = 92 + (c.clientWidth - 92) * (1 - (%g - t) / 10), y = v * (c.clientHeight - 18),"
        f" d = {lines}.getImageData(Math.round(x * f) - 2, Math.round((y - 2) * f), 5, 1).data; let best = 0;"
        " for (let k = 0; k < d.length; k += 4) best = Math.max(best, d[k + 3]); return best }" % NOW
    )
    lane = {0: 1 / 6, 1: 1 / 2, 2: 5 / 6}  # vehicles first, then buoys
    assert page.see(f"({at})(15.03, {lane[0]})") > 200, "what was sent fills its lane as long as it lasts"
    assert page.see(f"({at})(15.3, {lane[1]})") > 100 and page.see(f"({at})(19, {lane[0] + 0.08})") == 0
    page.page.locator(".reasons button[data-outcome='8']").click()
    assert page.see(chips)["8"] == ["collision 1", True] and page.see(f"({at})(15.36, {lane[1]})") < 100
    page.page.select_option("#sound-kind", "ranges")
    assert page.see(chips)["0"][0] == "received 2", "without the pulse"
    page.see("wavesim.app.selection.choose(1)")
    page.page.select_option("#sound-node", "selected")
    assert page.see(chips)["0"][0] == "received 0" and page.see(chips)["8"][0] == "collision 1"
    page.page.select_option("#sound-node", label="mark")
    assert page.see(chips)["0"][0] == "received 2" and page.see(chips)["8"][0] == "collision 0"
    page.page.select_option("#sound-node", "")
    page.page.click("#sound-addressed")
    assert page.see(chips)["8"][0] == "collision 0", "the request was for the mark alone"
    page.page.click("#sound-addressed")
    page.page.select_option("#sound-kind", "")
    between = f"({at})(18.5, {lane[0] + 0.08})"
    assert page.see(between) == 0
    page.page.locator("input[placeholder='slot s']").fill("0.5")
    page.page.keyboard.press("Tab")
    assert page.see(between) > 0, "a border between slots"
    page.shot("sound-lanes")
    page.page.click("#freeze")
    source.now = 30.0
    page.wait("wavesim.store.time === 30")
    page.page.click("#sound-far")
    assert page.see(chips)["0"][0] == "received 1", "of the chosen body, still of the frozen time"
    page.page.click("#freeze")
    page.wait(f"({chips})[0][0] === 'received 0'")
    source.now = NOW
    page.wait(f"wavesim.store.time === {NOW}")
    zoomed_diagram(page)
    page.see("wavesim.app.selection.choose(0)")
    page.see("wavesim.app.bottom.show('ranges')")
    page.wait(
        "document.querySelector('#ranges-summary').textContent === '2 of ship: 1 one-way (rings); error rms 0.250 m, line: true'"
    )
    fits = "(() => { const e = document.querySelector('#ranges-summary'); return e.scrollWidth <= e.clientWidth && e.parentElement.clientHeight < 40 })()"
    assert page.see(fits), "whole, in one row, at 1280"
    page.page.select_option("select[aria-label='Measured quantity']", "azimuth")
    page.wait("document.querySelector('#ranges-summary').textContent.startsWith('1 of ship')")
    page.shot("bearings")
    with page.page.expect_download() as coming:
        page.page.get_by_title("Show the values as a table").click()
    assert coming.value.path().read_text().splitlines() == ["time s,from,value,truth,one-way", "15.25,mark,90,,0"]
    page.clean()


def zoomed_diagram(page: Page) -> None:
    """The diagram of sound after zooming and dragging; a signal in words, with what it collided with; its picture to take away."""
    page.page.click("#sound-far")
    page.page.locator(".reasons button[data-outcome='8']").click()
    page.see("wavesim.app.selection.choose(null)")
    box = page.page.locator("#spacetime").bounding_box()
    assert box is not None
    x0, y0, wide = box["x"] + 92, box["y"], box["width"] - 92
    page.page.mouse.move(x0 + 0.53 * wide, y0 + 40)  # 15.3 s is at 0.53 of the 10 s before 20 s
    for _ in range(3):
        page.page.mouse.wheel(0, -100)
    page.wait("document.querySelector('#sound-span').value === '1' && wavesim.app.bottom.sound.frozen !== null")
    assert page.see("wavesim.app.bottom.sound.frozen") == pytest.approx(15.3 + 0.47, abs=0.02), "about the pointer"
    page.page.mouse.down()
    page.page.mouse.move(x0 + 0.73 * wide, y0 + 40, steps=4)
    page.page.mouse.up()
    assert page.see("wavesim.app.bottom.sound.frozen") == pytest.approx(15.57, abs=0.02), "dragged by 0.2 s"
    mark = page.see("wavesim.app.bottom.sound.drawn.marks.find((m) => m.event.outcome === 8).to")
    page.page.mouse.move(box["x"] + mark[0] - 1, y0 + mark[1])
    tip = "document.querySelector('.tip.lines').textContent"
    page.wait(f"{tip}.includes('collision: it overlapped another signal')")
    assert page.see(tip).startswith("ship → auv, range request\n100.0 ms, 150.0 m")
    page.page.mouse.click(box["x"] + mark[0] - 1, y0 + mark[1])
    rows = "[...document.querySelectorAll('#signal-details tbody tr')].map(r => [r.className, ...[...r.cells].map(c => c.textContent)])"
    page.wait(f"({rows}).length === 2")
    first, second = page.see(rows)
    assert first == ["", "mark", "50.0", "75", "20", "received"], "the node to which it is addressed is first"
    assert second[0] == "overheard" and second[1] == "auv" and second[-1].startswith("collision")
    words = page.see("document.querySelector('#signal-details').textContent")
    assert "range request 7 of ship" in words and "to mark (address 3)" in words and "12 bytes" in words
    page.shot("sound-signal")
    with page.page.expect_download() as coming:
        page.page.click("#sound-svg")
    drawing = ElementTree.fromstring(coming.value.path().read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert {"ship", "auv", "mark"} <= {t.text for t in drawing.iter(f"{space}text")}
    dashed = [line for line in drawing.iter(f"{space}polyline") if line.get("stroke-dasharray")]
    assert len(dashed) == 1, "one signal was lost"
    with page.page.expect_download() as coming:
        page.page.click("#sound-png")
    picture = matplotlib.image.imread(coming.value.path())
    assert picture.shape[1] == 2 * page.see("document.querySelector('#spacetime').clientWidth")
    page.page.locator("#signal-details button[aria-label='Close']").click()
    page.page.dblclick("#spacetime", position={"x": 200, "y": 5})
    page.wait("wavesim.app.bottom.sound.frozen === null")
    page.page.select_option("#sound-span", "10")


@pytest.fixture
def runs(config: Callable[..., LoadedConfig], tmp_path: Path) -> tuple[Path, Path]:
    """Two logs of a vehicle that dives, the second twice as deep."""
    found = config('<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet>')
    state, paths = np.zeros(1, STATE.dtype), (tmp_path / "one.mcap", tmp_path / "two.mcap")
    state["q_WB"][:, 0] = 1.0
    for factor, path in enumerate(paths, 1):
        writer = LogWriter(path, found, 1)
        writer.body(0, 0, "a", "lauv", "underwater", True)
        for k in range(101):
            state["p_WB_W"][0] = 0.1 * k, 0.0, factor * k
            state["v_WB_B"][0, 0] = 1.0
            writer.table(k * 100_000_000, "state", [0], state.tobytes())
        writer.close()
    return paths


def test_sky_selection_and_belief_in_the_picture(bay: tuple[Bay, str], open_page: Callable[[str], Page]) -> None:
    """A sky that grows pale towards the horizon, with the sun in it, brighter in the light; none where it is switched off. Corners
    stand around the chosen body alone, a cloud of its colour where a navigator believes to be: neither looks like the other."""
    _, url = bay
    page = open_page(url)
    loaded(page)
    page.page.set_viewport_size({"width": 900, "height": 500})
    page.see("wavesim.view.setResolution('full'); wavesim.view.show.labels = wavesim.view.show.trails = false")
    sun = np.array([0.45, 0.62, 0.64]) / np.linalg.norm([0.45, 0.62, 0.64])

    def look(eye: Any, way: Any) -> Any:
        """The picture's pixels (height, width, 3) from a place (three's axes) along a way."""
        page.see(
            f"(() => {{ wavesim.view.look({list(map(float, eye))}, {(np.array(eye) + 10 * np.array(way)).tolist()}); wavesim.view.render() }})()"
        )
        drawn = page.see(
            "(() => { const v = wavesim.view; v.render(); const c = document.createElement('canvas'); [c.width, c.height] = [v.canvas.width, v.canvas.height];"
            " c.getContext('2d').drawImage(v.canvas, 0, 0); return c.toDataURL().split(',')[1] })()"
        )
        return (matplotlib.image.imread(BytesIO(base64.b64decode(drawn)))[:, :, :3] * 255).astype(int)

    eye = (0.0, 8.0, 0.0)
    seen = {}
    for theme in ("dark", "light"):
        up, flat = look(eye, sun), look(eye, (-0.9, 0.0, 0.43))  # the second away from the sun
        h, w, _ = up.shape
        assert up[h // 2, w // 2].sum() > up[h // 2, w // 8].sum() + 120, "the sun"
        assert up[h // 2, w // 2].sum() > 2 * up[h // 8, w // 8].sum() or theme == "light"
        column = flat[: h // 2 - 4, w // 3].sum(axis=1)
        assert column[-1] > column[0] + 25 and (np.diff(column[::12]) >= -3).all(), "paler towards the horizon"
        assert abs(flat[h // 2 + h // 5, w // 3] - flat[h // 2 - 6, w // 3]).sum() > 25, "and then the sea"
        seen[theme] = flat[5, w // 3]
        page.page.keyboard.press("k")
        none = look(eye, sun)
        assert np.ptp(none[: h // 3].reshape(-1, 3), axis=0).max() < 3, "no sky"
        page.page.keyboard.press("k")
        page.page.keyboard.press("Shift+L")
    assert seen["light"].sum() > seen["dark"].sum() + 150

    # from above the vehicle, which believes to be 12 m east of where it is
    page.see(
        "wavesim.view.show.labels = true; wavesim.view.show.arrows = wavesim.view.show.surface = wavesim.view.show.waves = false"
    )

    def above() -> Any:
        return look((36.0, 27.0, 40.3), (0.0, -1.0, -0.01))

    def corner(north: float, east: float) -> bool:
        """Whether something is written where the corners around a place are."""
        return bool(
            page.see(
                f"(() => {{ const v = wavesim.view, c = v.over, f = c.width / v.canvas.clientWidth, p = v.controls.target.clone().set({east}, -5, {-north}).project(v.camera),"
                " x = (p.x + 1) / 2 * v.canvas.clientWidth, y = (1 - p.y) / 2 * v.canvas.clientHeight, d = c.getContext('2d').getImageData((x - 14) * f, (y - 14) * f, 3 * f, 3 * f).data;"
                " return d.some(b => b > 180) })()"
            )
        )

    with_belief = above()
    assert not corner(-40, 30) and not corner(-40, 42)
    page.see("wavesim.app.selection.choose(1)")
    page.wait("wavesim.store.kit?.row === 1")
    chosen = above()
    assert corner(-40, 30) and not corner(-40, 42), "around the body, not around what it believes"
    page.shot("belief-3d")
    page.see("wavesim.app.selection.choose(null); wavesim.store.beliefs = new Map()")
    without = above()
    h, w, _ = without.shape
    right = slice(w // 2 + w // 30, None)
    cloud = (abs(with_belief - without).sum(axis=2) > 30)[h // 4 : 3 * h // 4, right].sum()
    assert cloud > 30, "the cloud and the line to it"
    beside = (abs(chosen - with_belief).sum(axis=2) > 30)[h // 4 : 3 * h // 4, right].sum()
    assert beside < 0.5 * cloud, "choosing changes neither"
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.clean()


@pytest.fixture
def noisy(config: Callable[..., LoadedConfig], tmp_path: Path) -> Path:
    """A log of many chunks: what moves at random is not made small."""
    found, path = config('<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet>'), tmp_path / "run.mcap"
    state, random = np.zeros(1, STATE.dtype), np.random.default_rng(1)
    writer = LogWriter(path, found, 1)
    writer.body(0, 0, "a", "lauv", "underwater", True)
    for k in range(201):
        state["p_WB_W"], state["q_WB"], state["v_WB_B"] = random.normal(size=3), (1, 0, 0, 0), (k, 0, 0)
        writer.table(k * 100_000_000, "state", [0], state.tobytes())
    writer.close()
    return path


def test_a_log_that_is_cut_or_damaged_says_so(noisy: Path, open_page: Callable[[str], Page], tmp_path: Path) -> None:
    """Cut, or damaged anywhere in its middle: up to where it was read, in the page and by every command; what comes before is as it
    was; and so is the other log of a comparison. A whole one says nothing."""
    data, whole = noisy.read_bytes(), read(noisy)
    assert whole.damage_notice == "" and "warning" not in ReplaySource(noisy).scene()[1]
    bad = tmp_path / "bad.mcap"
    # torn off anywhere; a few wrong bytes in or between chunks, and where a chunk says that it is one
    chunks = [m.start() - 1 for m in re.finditer(rb"\x06.{2}\0{6}", data, re.DOTALL)][5:30:6]
    for at in (*(int(part * len(data)) for part in np.arange(0.1, 0.8, 0.05)), *chunks):  # its index lies behind
        for wrong in (bytes(b ^ 0x55 for b in data[at : at + 3]) + data[at + 3 :], b""):
            bad.write_bytes(data[:at] + wrong)
            log = read(bad)
            notice = f"it was read up to {log.end_ns * 1e-9:.2f} s; later data is missing, or a server is still writing the file"
            assert log.damage_notice == f"bad.mcap is incomplete or damaged: {notice}", at
            state, true = log.get("/state/a", STATE), whole.get("/state/a", STATE)
            assert np.array_equal(state.records, true.records[np.isin(true.time_ns, state.time_ns)])
    at = len(data) // 2
    while read(bad).end_ns > 15e9 or bad.stat().st_size < len(data):  # in what a chunk holds, not in an index
        at += 16
        bad.write_bytes(data[:at] + bytes(16) + data[at + 16 :])
    with on_stage(cast(Any, ReplaySource(bad)), tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.rows.length === 1")
        end = read(bad).end_ns * 1e-9
        assert 5.0 < end < 15.0
        page.wait(f"document.querySelector('.banner.note:not(.hidden)')?.textContent === '{read(bad).damage_notice}'")
        page.wait(f"Math.abs(Number(document.querySelector('#slider').max) - {end}) < 0.01")
        page.shot("damaged")
        page.clean()
    assert read(bad).damage_notice in ReplaySource(noisy, bad).scene()[1]["warning"], "the other one"
    for command, arguments in ((log_group, ["info"]), (plot, ["--out", str(tmp_path)])):
        done = CliRunner().invoke(command, [*arguments, str(bad)])
        assert (
            isinstance(done.exception, LogError) and str(done.exception) == read(bad).damage_notice and done.stdout
        ), done.output


def test_two_logs_side_by_side(runs: tuple[Path, Path], view: Any, open_page: Callable[[str], Page]) -> None:
    """Lines of both, under one cursor, with their values; a stretch looked at closely; a table of it; and the charts and panels are
    there again the next time."""
    url = view(runs[0], "--compare", runs[1]).url
    page = open_page(url)
    page.wait("window.wavesim && wavesim.store.rows.length === 1 && wavesim.store.weather?.replay?.other")
    page.see("wavesim.link.control('pause'); wavesim.link.control('seek', 2)")
    shared = "document.querySelector('#replay-shared').textContent"
    page.wait(f"{shared} === 'shared time; compared with two.mcap'")
    page.see("wavesim.app.bottom.show('charts')")
    page.wait("document.querySelector('#other-log').textContent === 'also from two.mcap'")
    page.wait("document.querySelector(\"select[aria-label='Field of the line']\").options.length > 3")
    page.page.get_by_label("Also draw the line from the comparison log").check()
    for field in ("depth, m", "speed, m/s"):
        page.page.select_option("select[aria-label='Field of the line']", label=field)
        page.page.click("#add-line")
    data = "wavesim.app.bottom.charts.charts.map(c => c.plot?.plot?.data.map(d => Array.from(d)) ?? [])"
    page.wait(f"({data}).length === 2 && ({data}).every(d => d.length === 3 && d[0].length > 50)")
    (x, one, two), _ = page.see(data)
    assert np.array(one) == pytest.approx(10.0 * np.array(x), abs=1e-3) and np.array(two) == pytest.approx(
        20.0 * np.array(x), abs=1e-3
    )
    assert page.see("wavesim.app.bottom.charts.charts[0].plot.plot.scales.y.dir") == -1, "depths point down"
    # the pointer over one chart tells the values of all at that time
    over = page.page.locator("#log-charts .plot .u-over")
    box = over.first.bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 20)
    values = "[...document.querySelectorAll('#log-charts .plot')].map(p => [...p.querySelectorAll('.u-value')].map(v => Number(v.textContent.replace('0:', ''))))"
    page.wait(f"({values})[1][1] === 1")
    (t, depth, other), (also, *_) = page.see(values)
    assert depth == pytest.approx(10 * t, abs=0.06) and other == pytest.approx(20 * t, abs=0.11) and also == t
    page.shot("two-logs")
    assert "a (two.mcap)" in page.page.locator("#log-charts .u-legend").first.text_content()
    # another page shows the same time, and both say so; what a log cannot do is disabled, with the reason
    second = open_page(url)
    for p in (page, second):
        p.wait(f"{shared} === 'time shared by 2 pages; compared with two.mcap'")
    second.page.close()
    page.wait(f"{shared} === 'shared time; compared with two.mcap'")
    off = "['#do-mission', '#do-helm', '#tab-orders'].map(i => document.querySelector(i)).map(b => b.disabled && b.title !== '')"
    assert page.see(off) == [True, True, True]
    assert not page.see(
        "['#do-start', '#do-stop', '#speed', '#tab-traffic'].some(i => document.querySelector(i).disabled)"
    )
    page.page.keyboard.press("j")
    page.wait("document.querySelector('.toast.bad')?.textContent.startsWith('a replay accepts no commands')")
    assert page.see("[document.querySelector('#stat-log').textContent, document.querySelector('#helm')]") == [
        "complete",
        None,
    ]
    # ticks
    ticks = "wavesim.app.bottom.charts.charts.flatMap(c => c.plot.plot.axes.flatMap(a => a._values))"
    assert not [v for v in page.see(ticks) if v.startswith("-0") and float(v) == 0.0] and "0" in page.see(ticks)
    # labels are whole: each vertical axis is wide enough for its longest one, its ticks and the gap
    whole = (
        "wavesim.app.bottom.charts.charts.every(({ plot: { plot } }) => { const c = document.createElement('canvas').getContext('2d');"
        " c.font = '10px system-ui'; return plot.axes[1]._values.every(t => c.measureText(t).width + 15 <= plot.axes[1]._size) })"
    )
    assert page.see(whole)
    # closer
    page.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 20, steps=3)
    page.page.mouse.up()
    page.wait(f"({data})[0][0].length && ({data})[0][0].at(-1) < 5")
    with page.page.expect_download() as coming:
        page.page.click("#csv")
    _, first, _ = coming.value.path().read_text().split('"time s",')  # a table for each chart
    head, *rows = csv.reader(first.strip().splitlines())
    assert (
        head == ["a depth m", "a (two.mcap) depth m"] and 1.5 < float(rows[0][0]) < 2.5 and 3.5 < float(rows[-1][0]) < 5
    )
    assert all(float(r[2]) == pytest.approx(20 * float(r[0]), abs=1e-3) for r in rows)
    # as it was left
    page.page.keyboard.press("[")
    page.page.reload()
    page.wait(
        f"window.wavesim?.store?.weather && ({data}).length === 2 && ({data}).every(d => d.length === 3 && d[0].length > 50)"
    )
    assert page.see("[wavesim.app.bottom.open, wavesim.app.root.className]") == ["charts", "no-left"]
    page.page.keyboard.press("[")
    page.clean()
