"""Bookmarks with notes, in a replay and live; events of the timeline with their texts, by pointer and by key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.recorded import at_rest, record
from tests.viz.stage import Stage, on_stage
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
Opener = Callable[[str], Page]
TEXT = "document.querySelector('#event-text:not(.hidden)')?.textContent"
BOOKMARKS = "wavesim.app.bottom.events.bookmarks.all"
TOAST = "document.querySelector('.toast.bad')?.textContent"


@pytest.fixture
def url(config: Callable[..., LoadedConfig], view: Any, tmp_path: Path) -> str:
    return str(view(record(config, tmp_path / "run.mcap")).url)


def at(page: Page, time: float) -> None:
    page.wait(f"Math.abs(wavesim.store.time - {time}) < 1e-6")


def bookmark(page: Page, time: float, note: str) -> None:
    """Seek, press the key, write the note."""
    page.see(f"wavesim.link.control('seek', {time})")
    at(page, time)
    page.page.keyboard.press("Shift+M")
    expect(page.page.locator("#bookmark-note")).to_be_focused()
    page.page.keyboard.type(note)
    page.page.keyboard.press("Enter")
    page.wait(f"{BOOKMARKS}.some(b => b.note === {json.dumps(note)})")


def test_events_tell_their_texts(url: str, open_page: Opener) -> None:
    """Under the pointer; at the present time; and by key from one to the next, whatever has the focus."""
    page = open_page(url)
    at_rest(page, 12.0)
    page.page.keyboard.press(".")
    at(page, 20.0)
    page.wait(f"{TEXT} === '0:20.0  command: speed'")
    for _ in range(2):  # the second key comes before the page is there
        page.page.keyboard.press(".")
    at(page, 40.0)
    page.wait(f"{TEXT} === '0:40.0  notice: auv-2: watchdog'")
    page.page.keyboard.press(".")
    page.page.keyboard.press(",")
    at(page, 30.0)
    page.page.click("#previous-event")
    at(page, 20.0)
    page.see("wavesim.link.control('seek', 15)")
    at(page, 15.0)
    page.wait(f"{TEXT} === undefined")
    strip = page.page.locator("#marks")
    strip.focus()
    page.wait(f"{TEXT} === \"0:10.0  notice: lead: crossed the fence 'harbour'\"")
    eye = page.see("wavesim.view?.camera.position.toArray()")
    page.page.keyboard.press("ArrowRight")
    at(page, 20.0)
    expect(strip).to_have_attribute("aria-valuetext", "0:20.0  command: speed")
    expect(strip).to_have_attribute("aria-valuenow", "20")
    page.page.keyboard.press("ArrowLeft")
    at(page, 10.0)
    assert page.see("wavesim.view?.camera.position.toArray()") == eye
    box = strip.bounding_box()
    assert box
    page.page.mouse.move(box["x"] + 8 + (box["width"] - 16) * 0.5, box["y"] + 5)
    page.wait(f"{TEXT} === '0:30.0  fault: auv-2: ctd offset'")
    page.shot("event-text")
    page.clean()


def test_bookmarks_are_kept_and_travel(url: str, open_page: Opener, tmp_path: Path) -> None:
    """Added by key at the present time, marked, listed, changed and deleted; there on the next visit; in a file, in a link."""
    page = open_page(url)
    at_rest(page, 12.0)
    bookmark(page, 25.5, "odd heading")
    bookmark(page, 5.5, "dive begins")
    rows = "[...document.querySelectorAll('#bookmarks tbody tr')].map(r => [r.cells[0].textContent, r.querySelector('input').value])"
    page.wait(f"({rows}).join(';') === '0:05.5,dive begins;0:25.5,odd heading'")
    page.page.keyboard.press(".")
    at(page, 10.0)
    page.page.keyboard.press(",")
    at(page, 5.5)
    page.wait(f"{TEXT}?.endsWith('bookmark: dive begins')")
    page.shot("bookmarks")
    page.page.get_by_title("Go to 0:25.5").click()
    at(page, 25.5)
    page.page.get_by_label("Note at 0:25.5").fill("turn to port")
    page.page.keyboard.press("Enter")
    page.wait(f"{BOOKMARKS}[1].note === 'turn to port'")
    with page.page.expect_download() as coming:
        page.page.click("#bookmark-export")
    assert coming.value.suggested_filename == "run.bookmarks.json"
    exported = json.loads(coming.value.path().read_text())
    kept = [{"time": 5.5, "note": "dive begins"}, {"time": 25.5, "note": "turn to port"}]
    assert exported == {"version": 1, "log": "run.mcap", "bookmarks": kept}
    page.page.click("#link")
    page.wait("location.hash.startsWith('#view=')")
    link = page.see("location.href")
    page.page.reload()
    at_rest(page, 1.0)
    assert page.see(BOOKMARKS) == kept, "of this browser and of the link: each once"
    page.page.get_by_title("Delete the bookmark at 0:05.5").click()
    page.wait(f"{BOOKMARKS}.length === 1")
    other = page.page.context.browser.new_context()
    try:
        second = Page(other, link)
        second.wait(f"window.wavesim && {BOOKMARKS}.length === 2 && Math.abs(wavesim.store.time - 25.5) < 1e-6")
        assert second.see(BOOKMARKS) == kept
        second.clean()
    finally:
        other.close()
    file = tmp_path / "mine.json"
    for content, wrong in (
        ("[", "it is not a version 1 bookmark file"),
        ('{"version": 1, "bookmarks": [{"time": "x", "note": ""}]}', "bookmark 1 has no time or no note"),
    ):
        file.write_text(content)
        page.page.set_input_files("#bookmark-file", file)
        page.wait(f"{TOAST} === 'cannot add the bookmarks from mine.json: {wrong}; nothing was changed'")
    file.write_text(json.dumps(exported))
    page.page.set_input_files("#bookmark-file", file)
    page.wait(f"{BOOKMARKS}.length === 2")
    # what is stored is damaged
    page.see(
        "Object.keys(localStorage).filter(k => k.includes('bookmarks')).forEach(k => localStorage.setItem(k, '{'))"
    )
    page.see("history.replaceState(null, '', location.pathname)")
    page.page.reload()
    page.wait(f"{TOAST} === 'the bookmarks kept in this browser were damaged and have been removed'")
    assert page.see(BOOKMARKS) == []
    page.clean()


def test_bookmarks_of_a_running_simulation(open_page: Opener, tmp_path: Path) -> None:
    """At the time when the note was begun, not when it was finished; going there shows the charts around it."""
    with on_stage(Stage(), tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.rows.length === 1 && wavesim.store.time > 1")
        before = page.see("wavesim.store.time")
        page.page.keyboard.press("Shift+M")
        expect(page.page.locator("#bookmark-note")).to_be_focused()
        after = page.see("wavesim.store.time")
        page.page.keyboard.type("here")
        page.wait(f"wavesim.store.time > {after} + 1")
        page.page.keyboard.press("Enter")
        page.wait(f"{BOOKMARKS}.length === 1")
        (kept,) = page.see(BOOKMARKS)
        assert before - 1e-3 <= kept["time"] <= after + 1e-3 and kept["note"] == "here"
        page.page.locator("#bookmarks tbody button.num").click()
        page.wait(f"Math.abs(wavesim.app.bottom.charts.span.since - {kept['time']} + 30) < 1e-6")
        # it promises what is there: this page has no chart yet
        page.wait("document.querySelector('.toast')?.textContent.includes('add a chart to see the 30 s')")
        for tab in ("charts", "bookmarks"):  # side by side
            expect(page.page.locator(f"#tab-{tab}")).to_have_attribute("aria-selected", "true")
        marks = page.see("wavesim.app.bottom.events.notable")
        assert marks == [{"time": kept["time"], "kind": "bookmark", "text": "here"}]
        page.clean()
