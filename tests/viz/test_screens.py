"""The page on a phone, on a 4K screen, and with windows of sonars."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.viz.browser import Viewer
from tests.viz.sea import READY, Opener
from tests.viz.stage import on_stage
from tests.viz.test_looking import Bay

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
# controls that are displayed, but not completely within the width of the window
OUTSIDE = """[...document.querySelectorAll('button, select, input, summary, textarea, [role=tab]')].filter(e => e.checkVisibility())
  .map(e => [e.id || e.title || e.textContent, e.getBoundingClientRect()])
  .filter(([, r]) => r.width > 0 && (r.left < -1 || r.right > document.documentElement.clientWidth + 1)).map(([name]) => name)"""
# controls that a tap in their middle does not reach, although they are in view: something covers them
COVERED = """[...document.querySelectorAll('#bar button, #bar select, #bar summary, .tools button, .tools summary, .views button')].filter(e => e.checkVisibility())
  .filter(e => { const r = e.getBoundingClientRect(), x = r.left + r.width / 2, y = r.top + r.height / 2;
    return y < innerHeight && y > 0 && !e.contains(document.elementFromPoint(x, y)) }).map(e => e.id || e.title || e.textContent)"""


@pytest.fixture
def bay(tmp_path: Path) -> Iterator[str]:
    with on_stage(Bay(), tmp_path) as url:
        yield url


def test_every_control_is_within_a_phone(bay: str, open_page: Opener) -> None:
    page = open_page(bay)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.wait(READY)
    page.see("wavesim.app.selection.choose(1)")
    page.wait("wavesim.store.kit")
    for tab in page.see("[...document.querySelectorAll('.tabs [role=tab]:not(:disabled)')].map(t => t.id.slice(4))"):
        page.see(f"wavesim.app.bottom.show('{tab}')")
        assert page.see(OUTSIDE) == [], tab
    assert page.see(COVERED) == []
    # menus open within the window
    for menu in ("#shown", "#diagnostics"):
        page.page.click(f"{menu} summary")
        box = page.page.locator(f"{menu} > div").bounding_box()
        assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 390, menu
        assert page.see(OUTSIDE) == []
        page.page.keyboard.press("Escape")
    assert page.see("document.documentElement.scrollWidth") <= 390
    page.shot("phone")
    page.clean()


def test_menus_and_tabs_are_whole_on_a_small_screen(bay: str, open_page: Opener) -> None:
    """No menu and no tab is cut off or hidden at 1280 pixels."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.wait(READY)
    page.page.click("#do-view-chart")
    stage = page.page.locator("#stage").bounding_box()
    assert stage is not None
    for menu in ("#shown", "#chart-tools", "#layouts"):
        page.page.click(f"{menu} summary")
        within = f"document.querySelector('{menu} > div').getBoundingClientRect().right"
        page.wait(f"{within} > 0 && {within} <= {stage['x'] + stage['width']}")
        page.page.keyboard.press("Escape")
    cut = "(t => [...t.children].filter(e => e.getBoundingClientRect().right > t.getBoundingClientRect().right + 1).map(e => e.textContent))"
    assert page.see(f"{cut}(document.querySelector('.tabs'))") == []
    page.clean()


def test_a_phone_can_save_a_model(view: Callable[..., Viewer], open_page: Opener) -> None:
    page = open_page(view(command="configure").url)
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.wait("document.querySelector('#configure .key')")
    assert page.see(OUTSIDE) == [] and page.see(COVERED) == []
    # one below the other: bar, picture, form
    tops = page.see(
        "['#bar', '.view', '.form-holder'].map(s => document.querySelector(`#configure ${s}`).getBoundingClientRect()).map(r => [r.top, r.bottom, r.width])"
    )
    assert all(a[1] <= b[0] + 1 for a, b in pairwise(tops))
    assert all(width == pytest.approx(390, abs=1) for _, _, width in tops)
    page.shot("phone-configurator")
    page.clean()


def test_sizes_follow_the_screen_and_the_setting(bay: str, open_page: Opener) -> None:
    """A 4K screen shows everything twice as large, and pointers still meet what they point at."""
    page = open_page(bay)
    page.wait(READY)
    high = "document.querySelector('#bar').getBoundingClientRect().height"
    before = page.see(high)
    page.page.set_viewport_size({"width": 3840, "height": 2160})
    page.wait(f"Math.abs({high} - {2 * before}) < 1")
    assert page.see("document.querySelector('#app').getBoundingClientRect().width") == 3840
    for mode in ("chart", "free"):
        page.page.click(f"#do-view-{mode}")
        page.see("wavesim.app.selection.choose(null)")
        x, y = page.see("(wavesim.chart.canvas.checkVisibility() ? wavesim.chart.px(0, 0) : wavesim.view.project(0))")
        box = page.see("(r => [r.left, r.top])(document.querySelector('#stage').getBoundingClientRect())")
        page.page.mouse.click(box[0] + 2 * x, box[1] + 2 * y)
        page.wait("wavesim.store.chosen === 0")
    # as large as the user wants, also at the next visit
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.page.select_option("#text-size", "1.5")
    page.wait(f"Math.abs({high} - {1.5 * before}) < 1")
    page.page.reload()
    page.wait(f"{READY} && Math.abs({high} - {1.5 * before}) < 1")
    page.page.select_option("#text-size", "")
    page.wait(f"Math.abs({high} - {before}) < 1")
    page.clean()


def test_no_button_of_the_bar_is_cut_off(bay: str, open_page: Opener) -> None:
    """However long its values are: of an old link and a slow simulation."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.wait(READY)
    right = (
        "(() => { for (const [k, v] of [['link', '120 s old'], ['factor', '0.001 ×'], ['time', '12:34:56.7']])"
        " document.querySelector(`#stat-${k}`).textContent = v;"
        " return Math.max(...[...document.querySelectorAll('#bar button')].map(b => b.getBoundingClientRect().right)) })()"
    )
    assert page.see(right) <= 1280


def overlap(page: Any, a: str, b: str) -> bool:
    return page.see(
        f"(() => {{ const [p, q] = [{a!r}, {b!r}].map(s => document.querySelector(s).getBoundingClientRect());"
        " return p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1 })()"
    )


@pytest.mark.parametrize("width", [1440, 390])
def test_windows_of_sonars_dock(bay: str, open_page: Opener, width: int) -> None:
    """Beside the picture, or below it on a phone: they cover neither compass nor chart. They can float."""
    page = open_page(bay)
    page.page.set_viewport_size({"width": width, "height": 900})
    page.wait(READY)
    page.see("Promise.all(['fore', 'side'].map(n => wavesim.sonars.toggle(1, 'auv', n)))")
    page.wait("document.querySelectorAll('.window.sonars.docked').length === 2")
    page.wait("wavesim.view.over.width === Math.round(wavesim.view.canvas.clientWidth * devicePixelRatio)")
    for covered in ("#stage > canvas.space", "#stage canvas.compass", ".tools"):
        assert not overlap(page, ".dock", covered), covered
    # each names its sonar in full, beside its buttons
    cut = "[...document.querySelectorAll('.window.sonars .head b')].filter(b => b.scrollWidth > b.clientWidth).length"
    assert page.see(cut) == 0
    page.page.click("#do-view-chart")
    assert not overlap(page, ".dock", "#stage > canvas.chart")
    page.shot(f"docked-{width}")
    page.page.locator(".window.sonars .float").first.click()
    page.wait("document.querySelectorAll('.window.sonars.docked').length === 1")
    assert page.see("document.querySelectorAll('#stage > .window.sonars').length") == 1
    for close in page.page.locator(".window.sonars .close").all()[::-1]:
        close.click()
    page.wait("!document.querySelector('.window.sonars')")
    chart, stage = (
        f"document.querySelector('{s}').getBoundingClientRect().width" for s in ("#stage > canvas.chart", "#stage")
    )
    page.wait(f"{chart} === {stage}")
    page.clean()
