"""Views and tabs side by side; layouts with names, as files, and in links; and those that are damaged or old."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.recorded import at_rest, record
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
Opener = Callable[[str], Page]
PANES = "[...document.querySelectorAll('.panes > .column:not(.hidden)')].map(c => c.dataset.pane)"
WIDTHS = "[...document.querySelectorAll('.panes > .column:not(.hidden)')].map(c => Math.round(c.clientWidth))"
TOAST = "document.querySelector('.toast.bad')?.textContent"


@pytest.fixture
def url(config: Callable[..., LoadedConfig], view: Any, tmp_path: Path) -> str:
    return str(view(record(config, tmp_path / "run.mcap")).url)


def arranged(page: Page) -> None:
    """The 3D view beside the chart; sound, charts and alarms side by side; a narrow first column."""
    page.page.keyboard.press("5")
    page.page.click("#tab-sound")
    for tab in ("charts", "alarms"):
        page.page.click(f"#tab-{tab}", modifiers=["Shift"])
    page.wait(f"{PANES}.join() === 'sound,charts,alarms'")


def save(page: Page, name: str) -> None:
    page.page.click("#layouts summary")
    page.page.fill("#layout-name", name)
    page.page.click("#layout-save")
    page.wait(f"document.querySelector('.toast')?.textContent === \"layout '{name}' saved in this browser\"")
    page.page.keyboard.press("Escape")


def open_layout(page: Page, name: str) -> None:
    page.page.click("#layouts summary")
    page.page.locator(".layout-list").get_by_role("button", name=name, exact=True).click()


def sizes(page: Page) -> tuple[dict[str, float], dict[str, float]]:
    """Boxes of the 3D view and of the chart."""
    boxes = [page.page.locator(f"#stage > canvas.{name}:not(.over)").bounding_box() for name in ("space", "chart")]
    assert boxes[0] and boxes[1]
    return boxes[0], boxes[1]


def test_views_and_tabs_side_by_side(url: str, open_page: Opener) -> None:
    """Both views are drawn beside each other, three tabs too; bars change the widths by pointer and by key; each tab can be exchanged
    and closed, by its column and by the bar; the next visit finds all as it was."""
    page = open_page(url)
    at_rest(page, 12.0)
    arranged(page)
    space, chart = sizes(page)
    assert space["width"] == pytest.approx(chart["width"], abs=2) and chart["x"] == pytest.approx(
        space["x"] + space["width"], abs=1
    )
    drawn = "[wavesim.view.canvas, wavesim.chart.canvas].map(c => c.width / c.clientWidth)"
    page.wait(f"({drawn}).every(r => r > 0.2 && r <= 1.01)")
    page.shot("split")
    one, two, three = page.see(WIDTHS)
    assert max(one, two, three) - min(one, two, three) <= 2
    # by key: the divider between the first two
    divider = page.page.locator(".panes > .splitter").first
    divider.focus()
    eye = page.see("wavesim.view.camera.position.toArray()")
    for _ in range(4):
        page.page.keyboard.press("ArrowLeft")
    assert page.see(WIDTHS)[0] < one - 30 and page.see(WIDTHS)[2] == pytest.approx(three, abs=2)
    assert page.see("wavesim.view.camera.position.toArray()") == eye, "the arrow keys moved the bar alone"
    # by pointer: the stage
    bar = page.page.locator("#stage > .splitter").bounding_box()
    stage = page.page.locator("#stage").bounding_box()
    assert bar and stage
    page.page.mouse.move(bar["x"] + 2, bar["y"] + 200)
    page.page.mouse.down()
    page.page.mouse.move(stage["x"] + 0.3 * stage["width"], bar["y"] + 200, steps=4)
    page.page.mouse.up()
    assert sizes(page)[0]["width"] == pytest.approx(0.3 * stage["width"], abs=4)
    # the tab of a column is exchanged for another, and one is closed
    page.page.locator(".column[data-pane='alarms'] select[aria-label='Tab of this column']").select_option("ranges")
    page.wait(f"{PANES}.join() === 'sound,charts,ranges'")
    page.page.locator(".column[data-pane='charts'] .column-head button").click()
    page.wait(f"{PANES}.join() === 'sound,ranges'")
    page.page.click("#tab-sound")
    page.wait(f"{PANES}.join() === 'ranges'")
    assert not page.page.locator(".column-head").first.is_visible(), "one tab alone needs no head"
    page.page.click("#split-panel")
    page.wait(f"{PANES}.join() === 'ranges,signals'")
    page.page.reload()
    at_rest(page, 12.0)
    assert page.see(PANES) == ["ranges", "signals"]
    assert sizes(page)[0]["width"] == pytest.approx(0.3 * stage["width"], abs=4)
    page.page.keyboard.press("4")
    expect(page.page.locator("#stage > canvas.chart")).to_be_visible()
    assert sizes(page)[1]["width"] == pytest.approx(stage["width"], abs=2), "the chart alone"
    page.page.keyboard.press("1")
    page.page.click("#tab-ranges")
    page.page.click("#tab-signals")
    page.wait(f"{PANES}.length === 0")
    page.clean()


def test_layouts_have_names_and_travel(url: str, open_page: Opener, tmp_path: Path) -> None:
    """Saved, opened and deleted in this browser; as a file in another; and in a link, with the widths and the charts."""
    page = open_page(url)
    at_rest(page, 12.0)
    open_layout(page, "default")
    page.wait(f"{PANES}.join() === 'signals'")
    arranged(page)
    page.wait("document.querySelector(\"select[aria-label='Field of the line']\").options.length > 3")
    page.page.select_option("select[aria-label='Field of the line']", label="depth, m")
    page.page.click("#add-line")
    page.page.locator(".panes > .splitter").first.focus()
    for _ in range(3):
        page.page.keyboard.press("ArrowLeft")
    save(page, "acoustics")
    layout, widths = page.see("wavesim.app.arrangement.layout"), page.see(WIDTHS)
    assert layout["split"] == 0.5 and layout["charts"][0]["lines"][0]["key"] == "motion.depth"
    open_layout(page, "default")
    page.wait(f"{PANES}.join() === 'signals' && !document.querySelector('#stage.split')")
    assert page.see("wavesim.app.arrangement.layout.charts") == []
    open_layout(page, "acoustics")
    page.wait(f"{PANES}.join() === 'sound,charts,alarms'")
    assert page.see("wavesim.app.arrangement.layout") == layout and page.see(WIDTHS) == widths
    page.wait("wavesim.app.bottom.charts.charts[0].plot?.plot.data[0].length > 50")
    page.page.click("#layouts summary")
    with page.page.expect_download() as coming:
        page.page.click("#layout-export")
    assert coming.value.suggested_filename == "acoustics.layout.json"
    told = json.loads(coming.value.path().read_text())
    assert told.pop("name") == "acoustics" and told == layout
    page.page.keyboard.press("Escape")
    page.page.click("#link")
    page.wait("location.hash.startsWith('#view=')")
    link = page.see("location.href")
    # a browser that knows nothing of it
    browser = page.page.context.browser
    other = browser.new_context(viewport={"width": 1280, "height": 720})
    try:
        second = Page(other, link)
        at_rest(second, 12.0)
        second.wait(f"{PANES}.join() === 'sound,charts,alarms'")
        assert second.see("wavesim.app.arrangement.layout") == pytest.approx(layout) or (
            json.dumps(second.see("wavesim.app.arrangement.layout")["charts"]) == json.dumps(layout["charts"])
        )
        open_layout(second, "default")
        file = tmp_path / "mine.json"
        file.write_text(json.dumps({"name": "taken along", **layout}))
        second.page.set_input_files("#layout-file", file)
        second.wait(f"{PANES}.join() === 'sound,charts,alarms'")
        assert list(second.see("JSON.parse(localStorage.getItem('wavesim-layouts'))")) == ["taken along"]
        second.page.click("#layouts summary")
        second.page.get_by_title("Delete the layout 'taken along'").click()
        assert second.see("localStorage.getItem('wavesim-layouts')") == "{}"
        second.clean()
    finally:
        other.close()
    page.clean()


def test_the_next_visit_finds_the_layout_that_was_chosen_last(url: str, open_page: Opener) -> None:
    """Also what a key had hidden or split before."""
    page = open_page(url)
    at_rest(page, 12.0)
    arranged(page)
    for key in ("[", "]", "l"):
        page.page.keyboard.press(key)
    hidden = page.see("wavesim.app.arrangement.layout")
    assert hidden["panels"] == [False, False] and hidden["split"] == 0.5 and "labels" not in hidden["show"]
    open_layout(page, "default")
    page.wait(f"{PANES}.join() === 'signals'")
    chosen = page.see("wavesim.app.arrangement.layout")
    assert chosen["panels"] == [True, True] and chosen["split"] is None and "labels" in chosen["show"]
    page.page.reload()
    at_rest(page, 12.0)
    assert page.see("wavesim.app.arrangement.layout") == chosen
    page.clean()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "it is incomplete"),
        ("{}", "the layout has version 0, but this page reads version 1"),
        ('{"version": 1, "mode": "free"}', "the 'split' part is missing or invalid"),
    ],
)
def test_a_damaged_or_old_link(url: str, open_page: Opener, text: str, reason: str) -> None:
    """One message, and the layout of a first visit."""
    page = open_page(url)
    at_rest(page, 1.0)
    arranged(page)
    page.page.goto(f"{url}#view={urllib.parse.quote(text)}")
    page.wait(f'{TOAST} === "cannot show the view from this link: {reason}; showing the default layout instead"')
    assert page.page.locator(".toast").count() == 1
    assert page.see(PANES) == ["signals"] and page.page.locator("#stage.split").count() == 0
    page.clean()


def test_damaged_or_old_layouts(url: str, open_page: Opener, tmp_path: Path) -> None:
    """Saved ones give one message and the default layout; a file that is no layout changes nothing; storage that cannot be read is
    emptied, and told once."""
    page = open_page(url)
    at_rest(page, 1.0)
    arranged(page)
    page.see("""localStorage.setItem('wavesim-layouts', '{"old": {"version": 0}}')""")
    file = tmp_path / "notes.json"
    file.write_text("not JSON")
    page.page.set_input_files("#layout-file", file)
    page.wait(f"{TOAST} === 'cannot open the layout in notes.json: it does not contain a layout; nothing was changed'")
    assert page.see(PANES) == ["sound", "charts", "alarms"]
    open_layout(page, "old")
    page.wait(f"{TOAST}?.startsWith(\"cannot open the layout 'old': the layout has version 0\")")
    assert page.see(PANES) == ["signals"]
    page.see("localStorage.setItem('wavesim-layouts', '[')")
    page.page.click("#layouts summary")
    page.wait(f"{TOAST} === 'the layouts saved in this browser were damaged and have been removed'")
    assert page.see("localStorage.getItem('wavesim-layouts')") is None
    page.page.keyboard.press("Escape")
    page.see("""localStorage.setItem('wavesim-charts', '[{"lines": [{"body": 3}]}]')""")
    page.page.reload()
    page.wait(f"{TOAST} === 'the charts saved on your last visit were damaged and have been removed'")
    assert page.see("wavesim.app.arrangement.layout.charts") == []
    page.clean()
