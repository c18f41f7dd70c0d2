"""What the systematic look at the page (docs/screens.py) found: things that covered each other, were cut, or kept wrong colours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser import Page, Viewer
from tests.viz.sea import READY, Opener
from tests.viz.stage import on_stage
from tests.viz.test_looking import Bay, loaded
from wavesim_world.sonars.presets import PRESETS

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
#: texts that a function draws on a canvas, with their boxes: left, right, baseline
TEXTS = """(draw => { const of = CanvasRenderingContext2D.prototype, plain = of.fillText, found = [];
  of.fillText = function (text, x, y, ...more) { const wide = this.measureText(text).width, left = this.textAlign === 'right' ? x - wide : x;
    found.push([text, left, left + wide, y, this.canvas.id]); return plain.call(this, text, x, y, ...more) };
  try { draw() } finally { of.fillText = plain } return found })"""
THEME = "document.documentElement.dataset.theme"


@pytest.fixture
def bay(tmp_path: Path) -> Iterator[str]:
    with on_stage(Bay(), tmp_path) as url:
        yield url


def dark(page: Page, colour: str) -> bool:
    """Whether a colour of the style sheet, or a computed one, is dark."""
    return bool(
        page.see(
            f"(() => {{ const c = new OffscreenCanvas(1, 1).getContext('2d'); c.fillStyle = {colour}; c.fillRect(0, 0, 1, 1);"
            " return Math.max(...c.getImageData(0, 0, 1, 1).data.slice(0, 3)) < 128 })()"
        )
    )


@pytest.mark.parametrize("width", [1440, 1280, 820, 390])
def test_buttons_cover_neither_compass_nor_mission(bay: str, open_page: Opener, width: int) -> None:
    """Whatever the width, with windows beside the picture and with the chart beside it."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": width, "height": 800})
    page.wait(READY)

    def clear(of: str) -> None:
        page.wait(
            f"[...document.querySelectorAll('.tools > *')].every(b => {{ const p = b.getBoundingClientRect(),"
            f" q = document.querySelector('{of}').getBoundingClientRect(); return !p.width || p.right <= q.left + 1 || q.right <= p.left + 1"
            " || p.bottom <= q.top + 1 || q.bottom <= p.top + 1 })"
        )

    clear("canvas.compass")
    page.see("wavesim.sonars.toggle(1, 'auv', 'fore')")
    page.wait("document.querySelector('.window.sonars.docked')")
    clear("canvas.compass")
    page.page.locator(".window.sonars .close").click()
    page.page.click("#do-split")
    clear("canvas.compass")
    page.page.click("#do-split")
    page.page.click("#do-view-chart")
    clear("canvas.compass")
    page.see(
        "document.querySelector('#mission').classList.remove('hidden')"
    )  # without a file to save, it does not open
    clear("#mission")
    page.clean()


def test_texts_of_the_chart_are_whole(bay: str, open_page: Opener) -> None:
    """No number of the axes is cut at the edge, and the position of the pointer does not cover the scale."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": 1280, "height": 800})
    loaded(page)
    page.page.click("#do-view-chart")
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None
    page.page.mouse.move(box["x"] + 200, box["y"] + 200)
    page.wait("document.querySelector('#pointer').textContent.includes('bed')")
    wide = page.see("wavesim.chart.canvas.clientWidth")
    for k in range(40):  # some of these would put a number at the edge
        page.see(f"wavesim.chart.look([0, {0.37 * k}], {1.5 + 0.11 * k})")
        found = page.see(f"{TEXTS}(() => wavesim.chart.render())")
        assert [t for t, left, right, *_ in found if left < wide < right and t.split()[-1] in ("E", "W")] == []
        label, left, *_ = max(
            (f for f in found if f[0].endswith("m") and f[1] > wide / 2), key=lambda f: f[3]
        )  # the lowest is the scale
        assert left > page.see(
            "document.querySelector('#pointer').getBoundingClientRect().right - wavesim.chart.canvas.getBoundingClientRect().left"
        ), label
    page.clean()


def test_names_of_ranges_do_not_cover_each_other(open_page: Opener, tmp_path: Path) -> None:
    class Heard(Bay):
        def new_signals(self) -> dict[str, Any] | None:
            found = super().new_signals()
            if found is not None:  # two bodies at the same distance
                kept = [r for r in found["receptions"] if r["receiver"] == 0][:1]
                found["receptions"] += [{**r, "source": 1, "id": 10 + k} for k, r in enumerate(kept)]
            return found

    with on_stage(Heard(), tmp_path) as url:
        page = open_page(url)
        loaded(page)
        page.see("wavesim.app.selection.choose(0)")
        page.page.click("#tab-ranges")
        page.wait("document.querySelector('#ranges').clientWidth > 0")
        found = page.see(f"{TEXTS}(() => wavesim.app.bottom.update())")
        names = [f for f in found if f[4] == "ranges" and f[0] in ("auv", "mark")]
        assert {n[0] for n in names} == {"auv", "mark"}, found
        for a, b in combinations(names, 2):
            assert abs(a[3] - b[3]) >= 11 or a[2] <= b[1] or b[2] <= a[1], (a, b)
        page.clean()


def test_what_the_browser_draws_follows_the_theme(bay: str, open_page: Opener) -> None:
    """Lists, check boxes and scroll bars; dots of bodies and their tracks in the 3D view are darker on a light page."""
    page = open_page(bay)
    page.wait(READY)
    dot = "getComputedStyle(document.querySelector('#fleet .dot')).backgroundColor"
    page.wait("wavesim.view")
    page.see("[[0, 0, 1], [5, 0, 1]].forEach(at => wavesim.view.trails.extend(wavesim.store.rows[0], at, 1))")
    first = "[...wavesim.view.trails.trail.geometry.getAttribute('color').array.slice(0, 3)]"
    dots, tracks = [], []
    for _ in range(2):
        theme = page.see(THEME)
        assert page.see("getComputedStyle(document.querySelector('#speed')).colorScheme") == theme
        assert dark(page, "getComputedStyle(document.documentElement).getPropertyValue('--bg')") == (theme == "dark")
        dots.append(page.see(dot))
        tracks.append(page.see(first))
        page.page.keyboard.press("Shift+L")
    assert dots[0] != dots[1]
    assert tracks[0] != tracks[1]
    page.clean()


def test_a_phone_scrolls_the_document(bay: str, open_page: Opener) -> None:
    """Not a box within it: only then a browser hides its bar, and prints or captures the whole page."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.wait(READY)
    page.wait("document.documentElement.scrollHeight > innerHeight + 300")
    page.see("window.scrollTo(0, 300)")
    assert page.see("document.body.scrollTop") == 0 and page.see("window.scrollY") >= 300
    assert page.see("document.querySelector('#bar').getBoundingClientRect().top") == 0
    page.clean()


def test_the_configurator_has_both_themes(view: Callable[..., Viewer], open_page: Opener) -> None:
    """Its own button, and the key; the 3D view and the test run take the colours of the theme. The run of one model is not shown
    beside another."""
    page = open_page(view(command="configure").url)
    page.page.wait_for_selector("#verdict.good")
    page.page.click("#try-turn")
    page.page.wait_for_selector("#way", timeout=120_000)
    corner = "(() => { const d = document.querySelector('#way').getContext('2d').getImageData(1, 1, 1, 1).data; return `rgb(${d[0]}, ${d[1]}, ${d[2]})` })()"
    assert page.see(THEME) == "dark" and dark(page, corner)
    for change in (
        lambda: page.page.get_by_title("Switch between light and dark").click(),
        lambda: page.page.keyboard.press("Shift+L"),
    ):
        before = page.see(THEME)
        change()
        assert page.see(THEME) != before
        assert dark(page, corner) == (page.see(THEME) == "dark")
        page.wait(
            "configure.bench.scene.background.getHexString() === getComputedStyle(document.documentElement).getPropertyValue('--bg').trim().slice(1)"
        )
    page.page.select_option("#models", "remus100")
    page.wait("configure.tree().model.attributes.name === 'remus100'")
    page.page.wait_for_selector("#verdict.good")
    assert page.see("document.querySelector('#way')") is None
    page.clean()


def test_a_new_sonar_has_a_preset_that_exists(view: Callable[..., Viewer], open_page: Opener) -> None:
    """A preset is chosen from a list, and no text has the marks of its source."""
    page = open_page(view(command="configure").url)
    page.page.wait_for_selector("#verdict.good")
    page.page.locator("select[aria-label='Add to sensors']").select_option(label="sonar")
    preset = page.page.locator(".side select[data-key='sonar.preset']")
    assert preset.input_value() in PRESETS
    assert preset.locator("option").all_text_contents() == sorted(PRESETS)
    assert "`" not in page.page.locator(".side").inner_text() and page.page.locator(".side code").count() > 1
    page.clean()


def test_the_legend_follows_the_theme(bay: str, open_page: Opener) -> None:
    """Corners of the selected body are light on dark and dark on light."""
    page = open_page(bay)
    page.wait(READY)
    page.page.click("#do-help")
    corner = (
        "(() => { const d = document.querySelectorAll('#legend canvas')[2].getContext('2d').getImageData(0, 0, 88, 48).data;"
        " for (let k = 0; k < d.length; k += 4) if (d[k + 3] === 255) return `rgb(${d[k]}, ${d[k + 1]}, ${d[k + 2]})` })()"
    )
    for _ in range(2):
        assert dark(page, corner) == (page.see(THEME) == "light")
        page.page.keyboard.press("Shift+L")
    page.clean()


def test_forces_have_equal_columns(bay: str, open_page: Opener) -> None:
    page = open_page(bay)
    page.wait(READY)
    page.see("wavesim.app.selection.choose(1)")
    page.wait("document.querySelector('#forces')")
    page.see("document.querySelector('#forces').classList.remove('hidden')")
    wide = page.see(
        "[...document.querySelectorAll('#forces thead th')].slice(1).map(t => t.getBoundingClientRect().width)"
    )
    page.see("document.querySelector('#forces tbody td:nth-child(4)').textContent = '-1234567'")
    after = page.see(
        "[...document.querySelectorAll('#forces thead th')].slice(1).map(t => t.getBoundingClientRect().width)"
    )
    assert len(wide) == 6 and after == wide and max(wide) - min(wide) < 1
    page.clean()
