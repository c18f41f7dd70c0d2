"""Accessibility of the pages, checked by axe-core in both themes and on a phone: no serious or critical violation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT
from tests.viz.browser import FLAGS, Viewer, chromium, need
from tests.viz.stage import on_stage
from tests.viz.test_looking import Bay
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(300)]
AXE = ROOT / "viz/web/node_modules/axe-core/axe.min.js"
THEMES = pytest.mark.parametrize("theme", ["dark", "light"])
LOOKS = pytest.mark.parametrize(("theme", "width"), [("dark", 1280), ("light", 1280), ("light", 390)])


@pytest.fixture(scope="module")
def lenient() -> Iterator[Any]:
    """A browser whose pages accept the script of axe-core."""
    from playwright.sync_api import sync_playwright

    if not AXE.is_file():
        need("NO AXE-CORE: `make web` installs it (it needs Node.js)")
    path = chromium()
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(lenient: Any) -> Iterator[Callable[..., Any]]:
    """Open pages in a theme, wait for a condition, and load axe-core."""
    contexts: list[Any] = []

    def start(url: str, theme: str, ready: str, width: int = 1280) -> Any:
        contexts.append(lenient.new_context(viewport={"width": width, "height": 720}, bypass_csp=True))
        page = contexts[-1].new_page()
        page.add_init_script(f"localStorage.setItem('wavesim-theme', '{theme}')")
        page.goto(url)
        page.wait_for_function(f"() => {ready}")
        page.add_script_tag(path=AXE)
        return page

    yield start
    for context in contexts:
        context.close()


def violations(page: Any) -> list[str]:
    """Return serious and critical violations, each with its element."""
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")["violations"]
    return [
        f"{v['impact']} {v['id']}: {n['html'][:150]} {n['any'][0]['message'] if n['any'] else ''}"
        for v in found
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]


def violations_of_tabs(page: Any) -> set[str]:
    """Check the page with each tab, then with its menus and its help."""
    found: set[str] = set()
    for tab in page.evaluate("[...document.querySelectorAll('.tabs [role=tab]:not(:disabled)')].map(t => t.id)"):
        page.evaluate(
            "(id) => { const t = document.getElementById(id); if (t.getAttribute('aria-selected') !== 'true') t.click() }",
            tab,
        )
        found.update(violations(page))
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found.update(violations(page))
    page.evaluate("document.querySelector('#do-help').click()")
    return found | set(violations(page))


@LOOKS
def test_the_page_of_a_running_server(opened: Callable[..., Any], tmp_path: Path, theme: str, width: int) -> None:
    """With its tabs and menus, the mission editor with each of its tools, and the helm."""
    with on_stage(Bay(), tmp_path) as url:
        page = opened(url, theme, "window.wavesim && wavesim.view && wavesim.store.rows.length", width)
        page.evaluate("wavesim.app.selection.choose(1)")
        page.wait_for_function("() => wavesim.store.panel && wavesim.store.kit")
        found = violations_of_tabs(page)
        page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
        page.keyboard.press("Escape")  # closes the help
        page.keyboard.press("m")
        mission = page.locator("#mission")
        for tool in ("waypoints", "survey", "beacons", "fences", "plan"):
            mission.get_by_role("button", name=tool, exact=True).click()
            found.update(violations(page))
        page.keyboard.press("j")
        page.locator("#helm").wait_for()
        found.update(violations(page))
        page.close()
    assert not found


@LOOKS
def test_a_replay(
    opened: Callable[..., Any],
    view: Callable[..., Viewer],
    config: Callable[..., LoadedConfig],
    tmp_path: Path,
    theme: str,
    width: int,
) -> None:
    writer = LogWriter(
        tmp_path / "run.mcap", config('<fleet><vehicle name="a" model="lauv" position="0 0 5 m"/></fleet>'), 1
    )
    writer.body(0, 0, "a", "lauv", "underwater", True)
    state = np.zeros(1, STATE.dtype)
    state["q_WB"][:, 0] = 1.0
    for k in range(20):
        writer.table(k * 100_000_000, "state", [0], state.tobytes())
    writer.close()
    page = opened(
        view(tmp_path / "run.mcap").url, theme, "window.wavesim && wavesim.view && wavesim.store.rows.length", width
    )
    page.evaluate("wavesim.app.selection.choose(0)")
    page.wait_for_function("() => wavesim.store.panel")
    assert not violations_of_tabs(page)


@THEMES
def test_the_configurator(opened: Callable[..., Any], view: Callable[..., Viewer], theme: str) -> None:
    page = opened(view(command="configure").url, theme, "document.querySelector('#configure .key')")
    assert not violations(page)
    page.locator("#configure .element .title", has_text="thruster").first.click()
    assert not violations(page)
