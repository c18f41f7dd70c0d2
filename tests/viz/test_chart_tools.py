"""Chart tools in a real browser: range rings, bearing line, coordinate formats, jumps to a coordinate, and measuring by touch and by
keyboard."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pymap3d
import pytest
from playwright.sync_api import expect
from pyproj import Transformer

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_viz.frame import ViewerFrame, bodies

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
ORIGIN = (-41.25, 174.75)
READOUT = "#pointer .num"


class Harbour(Stage):
    """One vehicle that heads east."""

    def __init__(self) -> None:
        super().__init__()
        self.described["origin"] = list(ORIGIN)

    def frame(self) -> ViewerFrame:
        half = np.sqrt(0.5)
        return ViewerFrame(5.0, 50, 1, bodies([0], np.array([[0.0, 0.0, 3.0]]), [[half, 0, 0, half]], np.zeros((1, 3))))


def opened(page: Page) -> Page:
    page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length")
    page.page.keyboard.press("4")
    page.see("wavesim.chart.look([0, 0], 1)")
    return page


@pytest.fixture
def harbour(tmp_path: Path, open_page: Callable[[str], Page]) -> Iterator[Page]:
    with on_stage(Harbour(), tmp_path) as url:
        page = opened(open_page(url))
        yield page
        page.clean()


def point(page: Page, north: float, east: float, act: str = "move") -> None:
    """Use the mouse at a position of the chart."""
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None
    x, y = page.see(f"wavesim.chart.px({north}, {east})")
    getattr(page.page.mouse, act)(box["x"] + x, box["y"] + y)


def drawn(page: Page, north: float, east: float) -> bool:
    """Whether a line is drawn within a pixel of a position: there, the colour differs from that of a picture without overlays."""
    return bool(
        page.see(
            f"(() => {{ const chart = wavesim.chart, c = chart.canvas, f = c.width / c.clientWidth, p = chart.px({north}, {east});"
            " const pixels = () => { chart.render(); return c.getContext('2d').getImageData((p[0] - 1) * f, (p[1] - 1) * f, 3, 3).data.join() };"
            " const all = chart.overlays.splice(0), bare = pixels(); chart.overlays.push(...all); return pixels() !== bare })()"
        )
    )


def test_range_rings_and_bearing_line(harbour: Page) -> None:
    """Rings at the set spacing and number around the selected vehicle, and a line to the pointer with its true and relative bearing;
    both are remembered."""
    page = harbour.page
    harbour.see("wavesim.app.selection.choose(0)")
    page.locator("#chart-tools summary").click()
    page.get_by_label("range rings").check()
    page.get_by_label("spacing in m").fill("40")
    page.get_by_label("number of rings").fill("3")
    page.get_by_label("bearing line").check()
    page.keyboard.press("Escape")
    angles = np.arange(0.3, 6.0, 0.7)
    for k in range(1, 4):
        ring = [drawn(harbour, 40 * k * np.cos(a), 40 * k * np.sin(a)) for a in angles]
        assert all(ring), f"ring {k}"
    assert not any(drawn(harbour, 160 * np.cos(a), 160 * np.sin(a)) for a in angles), "only three"
    assert not any(drawn(harbour, 60 * np.cos(a), 60 * np.sin(a)) for a in angles), "only at the spacing"
    harbour.see(
        "(() => { const p = CanvasRenderingContext2D.prototype, f = p.fillText; window.texts = [];"
        " p.fillText = function (...a) { texts.push(a[0]); return f.apply(this, a) } })()"
    )
    point(harbour, -60, 60)
    north, east = harbour.see("wavesim.chart.pointer.at")  # to a fraction of a pixel
    assert (north, east) == pytest.approx((-60.0, 60.0), abs=0.5)
    bearing, distance = np.degrees(np.arctan2(east, north)), np.hypot(north, east)
    harbour.wait(f"texts.includes('{bearing:.1f}°  rel 045°  {distance:.1f} m')")
    harbour.shot("range-rings")
    page.reload()
    opened(harbour)
    assert not drawn(harbour, 40, 0), "nothing is selected"
    harbour.see("wavesim.app.selection.choose(0)")
    assert drawn(harbour, 40, 0)
    page.locator("#chart-tools summary").click()
    page.get_by_label("number of rings").fill("99")
    page.get_by_label("number of rings").press("Enter")
    expect(page.locator(".toast")).to_have_text("number of rings: expected a number from 0 to 20")
    expect(page.get_by_label("number of rings")).to_have_value("3")


@pytest.mark.parametrize("place", [(-35.0, 52.5), (80.0, -40.0)])
def test_coordinate_formats(harbour: Page, place: tuple[float, float]) -> None:
    """The pointer's and the copied position in each format, as PROJ and pymap3d compute them; each copied text leads back."""
    page = harbour.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    point(harbour, *place)
    north, east = harbour.see("wavesim.chart.pointer.at")
    lat, lon, _ = pymap3d.ned2geodetic(north, east, 0.0, *ORIGIN, 0.0)
    x, y = Transformer.from_crs(4326, 32760, always_xy=True).transform(lon, lat)
    sides = f"{abs(north):.1f} {'N' if north > 0 else 'S'}  {abs(east):.1f} {'E' if east > 0 else 'W'}"
    wanted = {
        "degrees": f"{lat:.7f}, {lon:.7f}",
        "minutes": f"41°{(-lat - 41) * 60:07.4f}'S  174°{(lon - 174) * 60:07.4f}'E",
        "utm": f"60G {x:.1f} {y:.1f}",
        "metres": sides,
    }
    for format_, text in wanted.items():
        page.locator("#chart-tools summary").click()
        page.get_by_label("coordinates").select_option(format_)
        page.keyboard.press("Escape")
        expect(page.locator(READOUT)).to_contain_text(sides)
        expect(page.locator(READOUT)).to_contain_text(text)
        page.locator("#copy-position").click()
        expect(page.locator(".toast")).to_have_text(f"copied {text}")
        assert harbour.see("navigator.clipboard.readText()") == text
        page.locator("#chart-tools summary").click()
        page.locator("#go-to-position").fill(text)
        page.locator("#do-go-to-position").click()
        middle = harbour.see("wavesim.chart.looks.middle")
        assert middle == pytest.approx([north, east], abs=0.3), format_
        assert drawn(harbour, middle[0] + 8, middle[1]), "its mark"
        harbour.see("wavesim.chart.look([0, 0], 1)")
        point(harbour, *place)


def test_what_is_no_position(harbour: Page) -> None:
    page = harbour.page
    page.locator("#chart-tools summary").click()
    for text, said in (
        ("here", "invalid position 'here'"),
        ("99.0, 10.0", "out of range"),
        ("61H 5 5", "invalid position"),
    ):
        page.locator("#go-to-position").fill(text)
        page.locator("#go-to-position").press("Enter")
        expect(page.locator(".toast")).to_contain_text(said)
    assert harbour.see("wavesim.chart.looks.middle") == [0, 0]


def test_measuring_by_keyboard(harbour: Page) -> None:
    """F begins, arrow keys move the pointer, Enter sets a point, Esc ends; the keys do not move the 3D view's camera."""
    page = harbour.page
    harbour.see("wavesim.chart.look([0, 0], 2)")
    page.locator("canvas.chart").focus()
    eye = harbour.see("wavesim.view.camera.position.toArray()")
    page.keyboard.press("f")
    page.keyboard.press("Enter")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowUp")
    expect(page.locator(READOUT)).to_contain_text("3.0 m  000.0°  (total 43.0 m)")
    page.keyboard.press("1")
    page.keyboard.press("f")
    assert harbour.see("[wavesim.chart.pointer.measuring, wavesim.chart.canvas.classList.contains('hidden')]") == [
        False,
        False,
    ]
    assert harbour.see("wavesim.view.camera.position.toArray()") == pytest.approx(eye)
    page.keyboard.press("PageUp")
    assert harbour.see("wavesim.chart.looks.scale") == pytest.approx(2.5)


def test_measuring_by_touch(tmp_path: Path, context: Any) -> None:
    """On a phone: taps set the points, and the readout follows each of them."""
    phone = context.browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    with on_stage(Harbour(), tmp_path) as url:
        page = Page(phone, url)
        page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length")
        page.page.locator("#do-view-chart").tap()
        page.see("wavesim.chart.look([0, 0], 2)")
        page.page.locator("#measure").tap()
        box = page.page.locator("canvas.chart").bounding_box()
        assert box is not None
        for place in ((-20, -30), (-20, 30)):
            x, y = page.see(f"wavesim.chart.px({place[0]}, {place[1]})")
            page.page.touchscreen.tap(box["x"] + x, box["y"] + y)
        page.wait("wavesim.chart.pointer.points.length === 2")
        expect(page.page.locator(READOUT)).to_have_text(re.compile(r"total (59|60|61)\.\d m"))
        page.shot("phone-measure")
        page.clean()
    phone.close()
