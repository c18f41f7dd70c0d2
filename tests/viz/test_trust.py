"""Reliability of the display for an operator: it shows the true state, executes clicks, and reports errors."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.sea import Page, colours
from tests.viz.stage import Stage, on_stage
from wavesim_sdk.tables import RECEPTION
from wavesim_viz.equipment import InstrumentDescription, body_equipment
from wavesim_viz.frame import ViewerFrame, bodies, reception_rows

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
READY = "window.wavesim && wavesim.view && wavesim.store.rows.length === 3"
HIDDEN = "(s) => document.querySelector(s).classList.contains('hidden')"


class Sea(Stage):
    """Three bodies that a test leads; signals by the hundred, and now and then a notice."""

    name = "baltic"

    def __init__(self) -> None:
        super().__init__()
        self.places = np.array([[0.0, 0.0, 3.0], [20.0, 10.0, 5.0], [-20.0, 10.0, 4.0]])
        self.held = [False] * 3
        self.state, self.speed, self.noisy, self.absent = 1, 1.0, 0, -1
        self.notices: list[dict[str, Any]] = []
        self.believed: list[list[float]] = []

    def roster(self) -> list[list[Any]]:
        return [[k, name, "lauv", "underwater", 1] for k, name in enumerate(("a", "b", "c")) if k != self.absent]

    def frame(self) -> ViewerFrame | None:  # type: ignore[override]  # as every source: none where there is nothing to see
        if self.trouble:
            return None
        self.tick += self.state == 1
        p = self.places + [0.02 * self.tick, 0.0, 0.0]
        packed = bodies(range(3), p, [[1, 0, 0, 0]] * 3, np.ones((3, 3)), np.array(self.held))
        return ViewerFrame(
            self.tick * 0.05, self.tick, self.state, packed, speed=self.speed, factor=1.0 if self.state == 1 else 0.0
        )

    def new_signals(self) -> Any:
        notices, self.notices = self.notices, []
        if not notices and not self.noisy:
            return None
        heard = np.zeros(self.noisy, RECEPTION.dtype)
        heard["receiver"], heard["source"], heard["id"] = 1, 2, self.tick
        heard["arrival_ns"] = self.tick * 50_000_000 + np.arange(self.noisy)
        return {"sent": [], "receptions": reception_rows(heard), "notices": notices, "missed": 0}

    def beliefs(self) -> list[list[float]]:
        return self.believed

    def panel(self, row: int) -> dict[str, Any]:
        p = (self.places[row] + [0.02 * self.tick, 0.0, 0.0]).tolist()
        crew = [
            {
                "role": "pilot",
                "address": "x",
                "status": "connected",
                "silent": 0.01 * self.tick,
                "rtt_ms": 1.0,
                "lockstep_ms": 0.0,
                "device": "",
                "device_fault": "",
                "datagrams": [1, self.tick],
            }
        ]
        found = super().panel(row)
        value = {"valid": True, "age": 0.05, "fault": "", "fields": {"temperature": 11.5}}
        sensors = {s["name"]: value for s in self.equipment(row)["sensors"]}
        return found | {
            "time": self.tick * 0.05,
            "motion": found["motion"] | {"position": p},
            "crew": crew,
            "sensors": sensors,
        }


@pytest.fixture
def sea(tmp_path: Path) -> Iterator[tuple[Sea, str, contextlib.ExitStack]]:
    source = Sea()
    with contextlib.ExitStack() as stack:
        yield source, stack.enter_context(on_stage(source, tmp_path)), stack


def press(page: Page, selector: str, hold: str) -> None:
    """A slow click: the button goes up when something has come to pass."""
    page.page.locator(selector).first.hover()  # waits until it stands still: the panel grows while its values arrive
    page.page.mouse.down()
    page.wait(hold)
    page.page.mouse.up()


def test_a_faulted_body_ruins_nothing(sea: tuple[Sea, str, Any], open_page: Callable[[str], Page]) -> None:
    """One body far beyond the world, one that the server holds: marked in list, picture, chart and alarms; the rest goes on. An
    alarm stays until somebody has seen it."""
    source, url, _ = sea
    page = open_page(url)
    page.wait(READY)
    source.places[1, 2] = -1e25
    source.held[2] = True
    rows = "Object.fromEntries([...document.querySelectorAll('#fleet tr[data-row]')].map(e => [e.dataset.row, [e.classList.contains('faulted'), ...[...e.cells].map(c => c.textContent)]]))"
    page.wait(f"({rows})[1][0] && ({rows})[2][0]")
    cells = page.see(rows)
    assert not cells["0"][0] and cells["1"][1:] == ["⚠ b", "–", "–", "–"] and cells["2"][1].startswith("⚠ ")
    page.wait("document.querySelector('#tab-alarms .count').textContent === '2'")
    page.page.click("#tab-alarms")
    page.wait("document.querySelectorAll('#alarms tr.bad').length === 2")
    assert "beyond the permitted range" in page.see("document.querySelector('#alarms').textContent")
    # its own data and charts, and the chart of all
    page.page.locator("#fleet tr[data-row='1']").click()
    page.wait("wavesim.store.panel?.row === 1 && document.querySelectorAll('#charts .plot').length === 3")
    assert all(
        len(t) < 12 for t in page.see("[...document.querySelectorAll('#details .cell b')].map(e => e.textContent)")
    )
    page.page.keyboard.press("4")
    page.page.keyboard.press("h")
    page.wait("wavesim.chart.px(0, 0).every(Number.isFinite) && wavesim.chart.scale > 0.1")
    assert colours(page, "canvas.chart") > 20
    page.shot("faulted")
    # it is put back where it belongs: no mark, but an alarm that nobody has seen yet
    source.places[1, 2], source.held[2] = 5.0, False
    page.wait(f"!({rows})[1][0] && !({rows})[2][0] && document.querySelectorAll('#alarms tr.bad').length === 0")
    assert page.see("document.querySelector('#tab-alarms .count').textContent") == "2"
    page.page.locator("#alarms tbody tr button").first.click()
    page.wait("document.querySelector('#tab-alarms .count').textContent === '1'")
    page.page.click("#seen-all")
    page.wait("document.querySelector('#tab-alarms .count').textContent === ''")
    moved = page.see("wavesim.store.ned[3]")
    page.wait(f"wavesim.store.ned[3] > {moved}")
    page.clean()


def test_what_is_pressed_is_done(sea: tuple[Sea, str, Any], open_page: Callable[[str], Page]) -> None:
    """Numbers and lists change under a pressed button and the click arrives; keys work wherever the last click went; - from
    `fast` is the next slower speed; a notice is not drowned by signals; a hidden tab's queue has an end."""
    source, url, _ = sea
    page = open_page(url)
    page.wait(READY)
    page.page.locator("#fleet tr[data-row='1']").click()
    page.wait("document.querySelectorAll('#charts .plot').length === 3")
    for name, count in (("depth", 2), ("heading", 3)):
        before = source.tick
        press(page, f"#details .cell:has(span:text-is('{name}'))", f"wavesim.store.last.tick > {before} + 12")
        page.wait(f"document.querySelectorAll('#charts .plot').length === {count}")
    source.noisy, source.notices = 9, [{"time": 1.0, "row": 0, "name": "a", "text": "left the fence 'bay'"}]
    page.wait("document.querySelectorAll('#events tbody tr').length > 200")
    page.page.locator("#fleet tr[data-row='0']").click()
    press(page, "#events", f"wavesim.store.last.tick > {source.tick} + 8")
    page.wait("wavesim.store.chosen === 1")
    page.page.click("#tab-notices")
    page.wait("document.querySelector('#notices tbody').textContent.includes(\"left the fence 'bay'\")")
    most = page.see(
        "(() => { const e = wavesim.app.bottom.signals, one = wavesim.store.events[0]; for (let k = 0; k < 3000; k++) e.add([one]); return e.pending.length })()"
    )
    assert most <= 250
    source.noisy = 0
    # keys
    page.page.on("dialog", lambda d: d.accept())
    page.page.focus("#speed")
    page.page.keyboard.press("n")
    page.see("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'X', bubbles: true }))")  # Caps Lock
    page.page.locator("#fleet tr[data-row='0']").click()
    z = page.see("wavesim.view.camera.position.length()")
    page.page.keyboard.down("w")
    page.wait(f"Math.abs(wavesim.view.camera.position.length() - {z}) > 0.1")
    page.page.keyboard.up("w")
    source.speed = 0.0
    page.wait("wavesim.store.last.speed === 0")
    page.page.keyboard.press("-")
    page.until(lambda: len(source.verbs) >= 3)
    assert source.verbs == [("step", 1), ("stop", None), ("speed", 30)]
    # names, trails and sound are switched in the chart too
    page.page.keyboard.press("4")
    page.page.keyboard.press("h")  # the bodies have gone north since the page was opened
    called = "(() => { window.called = new Set(); for (const part of ['ways', 'signals']) { const old = wavesim.chart[part]; wavesim.chart[part] = function (...a) { called.add(part); return old.apply(this, a) } } })()"
    page.see(called)
    page.wait("called.size === 2")
    page.see(
        "(() => { const c = wavesim.chart.canvas.getContext('2d'), old = c.fillText; c.fillText = function (t, ...a) { called.add(t); old.call(c, t, ...a) }; called.clear(); wavesim.chart.render() })()"
    )
    assert {"a", "b", "c", "ways", "signals"} <= set(page.see("[...called]"))
    for key in "trl":
        page.page.keyboard.press(key)
    page.see("(() => { wavesim.chart.render(); called.clear(); wavesim.chart.render() })()")
    assert not {"a", "b", "c", "ways", "signals"} & set(page.see("[...called]"))
    page.clean()


def test_it_draws_when_something_changes(sea: tuple[Sea, str, Any], open_page: Callable[[str], Page]) -> None:
    """A sea that stands still is not drawn again and again; a late viewer knows the name and what was before; on a phone there is a
    picture; the window from on board can be closed in a small one."""
    source, url, _ = sea
    source.described["warning"] = "run.mcap is incomplete or damaged"
    source.believed = [[0, 1.0, 2.0, 3.0, 0.5, 0.5, 0.1]]
    page = open_page(url)
    page.wait(f"{READY} && wavesim.store.last.time > 1")
    page.page.reload()  # a viewer that comes late
    page.wait(f"{READY} && document.title === 'baltic – WaVeSim'")
    page.wait("wavesim.store.track(0).time[0] < 0.5")
    assert (
        page.see("document.querySelector('.banner.note:not(.hidden)').textContent")
        == "run.mcap is incomplete or damaged"
    )
    page.page.locator("#fleet tr[data-row='0']").click()
    page.wait("(wavesim.app.details.charts.series('nav.error')?.time[0] ?? 9) < 1")
    source.state = 2
    page.wait("!wavesim.app.loop.turning")
    texts = page.see("[...document.querySelectorAll('#navigation .cell b')].map(e => e.textContent)")
    error = np.hypot(1.0 - page.see("wavesim.store.panel.motion.position[0]"), 2.0)
    assert float(texts[0]) == pytest.approx(error, abs=0.006) and texts[1] == "0.71"
    drawn = page.see("[wavesim.view.frames, wavesim.link.frames]")
    page.page.wait_for_timeout(1500)
    assert page.see("[wavesim.view.frames, wavesim.link.frames]") == drawn
    source.state = 1
    page.wait(f"wavesim.view.frames > {drawn[0]} + 2")
    # small windows
    page.page.set_viewport_size({"width": 1000, "height": 600})
    page.see("wavesim.app.openOnboard(0)")
    page.page.click("#close-onboard")
    page.wait("!document.querySelector('#onboard')")
    page.page.set_viewport_size({"width": 390, "height": 844})
    page.wait(
        "wavesim.view.canvas.clientWidth > 350 && wavesim.view.canvas.clientHeight > 300 && wavesim.view.over.width > 300"
    )
    assert page.see("document.documentElement.scrollWidth") <= 390
    page.shot("phone")
    page.page.set_viewport_size({"width": 1280, "height": 720})
    page.clean()


#: texts in the colour of what is well
GREEN = """(() => { const e = document.createElement('i'); e.className = 'good'; document.body.append(e); const good = getComputedStyle(e).color; e.remove();
 return [...document.querySelectorAll('#app *')].filter(x => !x.children.length && x.offsetParent && x.textContent.trim() && getComputedStyle(x).color === good).map(x => x.textContent) })()"""


def test_what_is_dead_does_not_look_alive(sea: tuple[Sea, str, Any], open_page: Callable[[str], Page]) -> None:
    """No green dot, no state, no factor when the server has ended, however late its last data come; the same data again are fresh
    again; and the same when the viewer's own server ends."""
    source, url, stack = sea
    source.kits[0] = body_equipment(0, 1, None, [InstrumentDescription("ctd", "ctd", 0.1)])
    page = open_page(url)
    page.wait(f"{READY} && wavesim.store.last.time > 0.2")
    page.page.locator("#fleet tr[data-row='0']").click()
    alive = ["running", "recording", "ok", "● 0.1 s", "pilot"]
    page.wait(f"({GREEN}).join() === '{','.join(alive)}'")
    source.state = 2  # time stands: no other data come from now on
    page.wait("wavesim.store.last.state === 2 && !wavesim.app.loop.turning")
    look = "[document.querySelector('#stat-state').textContent, document.querySelector('#stat-factor').textContent, document.querySelector('#instruments .num').textContent]"
    page.page.keyboard.press("j")
    page.see("wavesim.app.helm.driving = 'a'")  # somebody drives
    page.wait("document.querySelector('#helm-status').textContent === 'Idle: no key held'")
    source.trouble = "the server 'baltic' has ended"
    page.wait(f"({look}).join() === 'no data,–,○ no data'")
    page.wait(
        "document.querySelector('#helm-status').textContent === 'No data: manual control suspended' && wavesim.app.helm.driving === ''"
    )
    assert page.see("document.querySelector('#stat-clients').textContent") == "–"
    assert page.see(GREEN) == []
    page.shot("dead")
    page.page.keyboard.press("j")
    source.trouble = ""
    page.wait(f"({look}).join() === 'paused,0.00 ×,● 0.1 s'")
    page.wait(f"({GREEN}).join() === '{','.join(alive[1:])}'")
    # the last data and the word of the end come before either is drawn
    page.see(
        "(() => { const say = (m) => wavesim.link.socket.onmessage({ data: JSON.stringify(m) });"
        " say({ type: 'panel', row: 0, panel: { ...wavesim.store.panel, time: 99 } }); say({ type: 'trouble', text: 'gone' }) })()"
    )
    page.wait("wavesim.app.selection.shown?.time === 99 && !wavesim.app.loop.turning")
    assert page.see(GREEN) == [] and page.see(look)[2] == "○ no data"
    page.see("wavesim.link.socket.onmessage({ data: JSON.stringify({ type: 'trouble', text: '' }) })")
    page.wait(f"({GREEN}).join() === '{','.join(alive[1:])}'")
    # who was chosen, left and comes back is chosen again, unless somebody chose another meanwhile
    for meanwhile in (None, 1):
        source.state, source.absent = 1, 0
        page.wait("wavesim.store.bodies.size === 2 && wavesim.store.chosen === null")
        if meanwhile is not None:
            page.see(f"wavesim.app.selection.choose({meanwhile})")
        source.absent = -1
        page.wait(f"wavesim.store.bodies.size === 3 && wavesim.store.chosen === {meanwhile or 0}")
    page.see("wavesim.app.selection.choose(0)")
    page.wait(f"({GREEN}).join() === '{','.join(alive)}'")
    page.clean()
    stack.close()  # the viewer's server itself
    page.wait(f"({look}).join() === 'no data,–,○ no data'")
    assert page.see(GREEN) == []
    assert "no answer from" in page.see("document.querySelector('.banner').textContent")
