"""An operator's day at the page: alarms, missions of the selected vehicle, menus, and controls that cannot act."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from wavesim_viz.alarms import BodyHealth
from wavesim_viz.frame import ViewerFrame, bodies

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]


def model(name: str, kind: str, thrusters: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "title": "",
        "source": "",
        "validated": "",
        "shape": {"kind": "box", "size": [3.0, 1.0, 1.0]},
        "appearance": "",
        "draw_parts": True,
        "mass": None,
        "thrusters": [],
        "fins": [],
        "tanks": [],
        "transducer": None,
    }


def configured(name: str, position: list[float], waypoints: list[list[float]], buoy: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "model": "buoy" if buoy else "lauv",
        "position": position,
        "attitude": [0.0, 0.0, 0.0],
        "client": "none" if buoy else "required",
        "buoy": buoy,
        "waypoints": waypoints,
        "anchor": None,
        "transducer": None,
    }


class Bay(Stage):
    """Two vehicles far from where they started, two beacons, and a pilot that falls silent on request."""

    names = ("lauv", "remus", "lbl1", "lbl2")

    def __init__(self) -> None:
        super().__init__()
        self.removed: set[int] = set()
        self.now = 100.0
        self.described |= {
            "models": {"lauv": model("lauv", "underwater"), "buoy": model("buoy", "buoy")},
            "bodies": [
                configured("lauv", [-200.0, -200.0, 2.0], [[-100.0, -100.0, 2.0, 1.0]]),
                configured("remus", [200.0, 200.0, 2.0], [[0.0, 150.0, 2.0, 1.0]]),
                configured("lbl1", [-250.0, -250.0, 8.0], [], buoy=True),
                configured("lbl2", [250.0, -250.0, 8.0], [], buoy=True),
            ],
        }

    def roster(self) -> list[list[Any]]:
        return [
            [k, n, "lauv" if k < 2 else "buoy", "underwater" if k < 2 else "buoy", 1] for k, n in enumerate(self.names)
        ]

    def frame(self) -> ViewerFrame:
        p = np.array([[0.0, 0.0, 2.0], [100.0, 50.0, 2.0], [-250.0, -250.0, 8.0], [250.0, -250.0, 8.0]])
        return ViewerFrame(self.now, 200, 1, bodies(range(4), p, [[1, 0, 0, 0]] * 4, np.zeros((4, 3))))

    def health(self) -> BodyHealth:
        return BodyHealth(removed=set(self.removed))


@pytest.fixture
def bay(tmp_path: Path, open_page: Callable[[str], Page]) -> Iterator[tuple[Bay, Page]]:
    source = Bay()
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.rows.length === 4")
        yield source, page
        page.clean()


def test_alarms_are_announced_and_shelved(bay: tuple[Bay, Page]) -> None:
    """A new alarm is said to screen readers, by sound and by a desktop notification where the operator asked for them; a shelved one
    is not counted and says nothing."""
    source, page = bay
    page.see(
        "(() => { window.said = []; window.Notification = class { static permission = 'granted';"
        " static async requestPermission() { return 'granted' } constructor(t, o) { said.push(o.body) } };"
        " const tone = OscillatorNode.prototype.start; window.tones = 0;"
        " OscillatorNode.prototype.start = function (...a) { window.tones++; return tone.apply(this, a) } })()"
    )
    page.see("wavesim.app.bottom.show('alarms')")
    assert page.see("document.querySelector('[role=alert][aria-live=assertive]').textContent") == ""
    page.page.click("#alarm-sound")
    page.page.click("#alarm-desktop")
    page.wait("document.querySelector('#alarm-desktop').getAttribute('aria-pressed') === 'true' && tones === 1")
    source.removed = {1}
    text = "high alarm, remus: the server removed the silent pilot of this body"
    page.wait(f"document.querySelector('#alarm-said').textContent === '{text}'")
    assert page.see("said") == [text] and page.see("tones") == 4
    cells = "[...document.querySelectorAll('#alarms tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    page.wait(f"({cells}).length === 1")
    assert page.see(cells)[0][1:7] == ["active", "high", "silent", "remus", "", text.split(": ")[1]]
    assert page.see("document.querySelector('#tab-alarms .count').textContent") == "1"
    page.shot("alarms")
    page.page.get_by_role("button", name="shelve", exact=True).click()
    page.wait("document.querySelector('#tab-alarms .count').textContent === ''")
    assert page.see(cells)[0][1] == "shelved until 11:40.0"
    for pilotless, now in ((set(), 120.0), (set(), 140.0), ({1}, 160.0)):
        source.removed, source.now = pilotless, now
        page.wait(f"wavesim.store.time === {now}")
    page.wait(f"({cells})[0][5] === '2 ×'")
    assert page.see("said.length") == 1 and page.see("tones") == 4
    page.page.get_by_role("button", name="unshelve").click()
    page.wait("said.length === 2 && document.querySelector('#tab-alarms .count').textContent === '1'")
    page.page.get_by_role("button", name="acknowledge", exact=True).click()
    page.wait("document.querySelector('#tab-alarms .count').textContent === ''")


def test_the_most_urgent_alarm_is_first(bay: tuple[Bay, Page]) -> None:
    _, page = bay
    page.see("wavesim.app.bottom.show('alarms')")
    page.see(
        "(() => { const a = (id, severity, more) => ({ id, kind: 'x', severity, name: 'a', row: 0, text: 't' + id, since: id, until: null,"
        " seen: false, count: 1, shelved: null, ...more });"
        " wavesim.store.alarms = [a(1, 'low'), a(2, 'high', { shelved: 900, seen: true }), a(3, 'high'), a(4, 'high', { seen: true }),"
        " a(5, 'medium'), a(6, 'high', { until: 6 })]; })()"
    )
    page.see("dispatchEvent(new Event('focus'))")
    order = "[...document.querySelectorAll('#alarms tbody tr')].map(r => r.cells[6].textContent).join(' ')"
    page.wait(f"{order} === 't3 t5 t1 t6 t4 t2'")


def pixels(page: Page, north: float, east: float, picks: str, reach: int = 12) -> int:
    """How many pixels of the chart near a place are as wanted: an expression of r, g, b."""
    return int(
        page.see(
            f"(() => {{ wavesim.chart.render(); const c = wavesim.chart.canvas, f = c.width / c.clientWidth, [x, y] = wavesim.chart.px({north}, {east}),"
            f" d = c.getContext('2d').getImageData(Math.round(x * f) - {reach}, Math.round(y * f) - {reach}, {2 * reach + 1}, {2 * reach + 1}).data; let n = 0;"
            f" for (let k = 0; k < d.length; k += 4) {{ const [r, g, b] = d.slice(k, k + 3); if ({picks}) n++ }} return n }})()"
        )
    )


CORAL, TEAL = "r > 150 && g < 130 && b < 130", "r < 100 && g > 110 && b > 110"


DRAFT = "[...wavesim.chart.draft.waypoints].map(([n, w]) => `${n} ${w.length}`).join()"


def test_missions_are_of_the_selected_vehicle_and_start_where_it_is(bay: tuple[Bay, Page]) -> None:
    """The tool opens for the selected vehicle, follows the selection, and asks for one if none is selected; its own list selects.
    Distances, times and the first leg start at the vehicle, 180 m from where its configuration puts it."""
    source, page = bay
    page.page.keyboard.press("]")  # room for the chart
    page.page.keyboard.press("m")
    page.page.wait_for_selector("#mission:not(.hidden)")
    page.see("wavesim.chart.look([0, 100], 1)")
    box = page.page.locator("canvas.chart").bounding_box()
    assert box is not None

    def click(north: float, east: float) -> None:
        x, y = page.see(f"wavesim.chart.px({north}, {east})")
        page.page.mouse.click(box["x"] + x, box["y"] + y)

    click(-60, 0)
    page.wait("document.querySelector('.toast.bad')?.textContent === 'select a vehicle first'")
    assert page.see(DRAFT) == ""
    page.see("wavesim.app.selection.choose(1)")
    page.wait("document.querySelector('#mission-send').textContent === 'send to remus'")
    click(100, -50)
    click(0, -50)
    assert page.see(DRAFT) == "remus 2"
    text = page.page.locator("#mission").text_content()
    assert text is not None and "2 new waypoints for remus: 200 m, 3:20.0 from its current position" in text
    after = "[...document.querySelectorAll('.waypoints tbody tr')].map(r => r.cells[5].textContent).join(' ')"
    assert page.see(after) == "1:40.0 3:20.0"
    assert pixels(page, 100, 10, TEAL), "the first leg, from the vehicle"
    assert not pixels(page, 150, 75, TEAL), "none from where it started"
    # its buttons stay in view, however many waypoints there are
    points = "wavesim.chart.draft.waypoints.get('remus')"
    page.see(f"Array.from({{length: 30}}, (_, k) => {points}.push([k, 0, 5, 1]))")
    page.page.get_by_role("button", name="undo").click()
    for button in ("#mission-send", "#mission-save"):
        seen, box = (page.page.locator(s).bounding_box() for s in (button, "#mission"))
        assert seen is not None and box is not None and seen["y"] + seen["height"] <= box["y"] + box["height"], button
    page.see(f"{points}.splice(3)")
    page.page.get_by_role("button", name="undo").click()
    assert page.see(DRAFT) == "remus 2"
    page.shot("mission-selected")
    page.page.select_option("#mission-vehicle", "lauv")
    page.wait("wavesim.store.chosen === 0 && document.querySelector('#mission-send').textContent === 'send to lauv'")
    page.page.keyboard.press("Escape")
    page.page.locator("#fleet tr[data-row='1']").click()
    page.wait("document.querySelector('#mission-send').textContent === 'send to remus'")
    page.page.click("#mission-send")
    page.until(lambda: len(source.orders) == 1)
    assert source.orders[0].row == 1 and source.orders[0].values["points"] == pytest.approx(
        [100, -50, 5, 1, 0, -50, 5, 1], abs=0.6
    )
    page.see("wavesim.app.selection.choose(2)")  # a beacon has no mission
    page.wait("wavesim.store.chosen === 2")
    assert page.page.locator("#mission-send").text_content() == "send to remus"
    page.page.locator("button", has_text="start over").click()


def test_the_menu_closes(bay: tuple[Bay, Page]) -> None:
    """By Esc, which keeps the selection, by a press elsewhere, by selecting a body, and by opening a tool; not by its own items."""
    _, page = bay
    opened = "document.querySelector('#shown').open"
    page.see("wavesim.app.selection.choose(0)")

    def leaves(act: Callable[[], Any]) -> None:
        page.page.click("#shown summary")
        assert page.see(opened)
        act()
        page.wait(f"!{opened}")

    leaves(lambda: page.page.keyboard.press("Escape"))
    assert page.see("wavesim.store.chosen") == 0
    leaves(lambda: page.page.mouse.click(330, 300))
    leaves(lambda: page.page.locator("#fleet tr[data-row='1']").click())
    leaves(lambda: page.page.keyboard.press("b"))
    leaves(lambda: page.page.keyboard.press("m"))
    leaves(lambda: page.page.keyboard.press("j"))
    page.page.click("#shown summary")
    page.page.click("#do-show-labels")
    assert page.see(opened)


def test_names_of_actuators_are_whole(bay: tuple[Bay, Page]) -> None:
    source, page = bay
    names = ["vertical-front-starboard", "vertical-front-port", "starboard"]
    source.kits[1] = {
        "row": 1,
        "generation": 1,
        "sensors": [],
        "actuators": [
            {
                "name": n,
                "kind": "thruster",
                "part": k,
                "unit": "N",
                "minimum": -9,
                "maximum": 9,
                "rest": 0,
                "faults": ["lost"],
            }
            for k, n in enumerate(names)
        ],
    }
    page.see("wavesim.app.selection.choose(1)")
    cells = "[...document.querySelectorAll('#actuators td.name')]"
    page.wait(f"{cells}.length === 3")
    assert page.see(f"{cells}.map(c => c.textContent)") == names
    assert page.see(
        f"{cells}.every(c => c.scrollWidth <= c.clientWidth + 1 && getComputedStyle(c).textOverflow !== 'ellipsis')"
    )
    assert page.see(f"{cells}[2].clientHeight < 0.7 * {cells}[0].clientHeight"), "a short name is not broken"
    page.shot("actuators")


def test_stop_asks(bay: tuple[Bay, Page]) -> None:
    source, page = bay
    asked: list[str] = []

    def answer(act: Callable[[], Any], yes: bool) -> None:
        count = len(asked)
        page.page.once("dialog", lambda d: (asked.append(d.message), d.accept() if yes else d.dismiss()))
        act()
        page.until(lambda: len(asked) > count)

    answer(lambda: page.page.keyboard.press("x"), False)
    page.page.keyboard.press("n")
    page.until(lambda: len(source.verbs) == 1)
    assert source.verbs == [("step", 1)] and "'stage'" in asked[0], "not stopped"
    answer(lambda: page.page.click("#do-stop"), True)
    page.until(lambda: len(source.verbs) == 2)
    assert source.verbs[1][0] == "stop"


def test_the_bar_shows_what_an_operator_needs(bay: tuple[Bay, Page]) -> None:
    """UTC, simulation time, speed, log and link; measurements of the viewer itself are in a panel. What is lost is said to be."""
    source, page = bay
    bar = "Object.fromEntries([...document.querySelectorAll('#bar > .stat')].map(s => [s.querySelector('span').textContent, s.querySelector('b').textContent]))"
    page.wait(f"({bar}).log === 'recording'")
    now = page.see(bar)
    assert list(now) == ["UTC", "simulation time", "real-time factor", "log", "link"]
    assert now["simulation time"] == "1:40.0" and re.fullmatch(r"ok|\d+ s old", now["link"])
    then = datetime.strptime(now["UTC"], "%H:%M:%S").replace(tzinfo=UTC)
    apart = (datetime.now(UTC) - then).total_seconds() % 86400
    assert min(apart, 86400 - apart) < 60
    page.wait(f"({bar}).UTC !== '{now['UTC']}'")
    assert not page.page.locator("#stat-late").is_visible()
    page.page.click("#diagnostics summary")
    assert page.page.locator("#stat-late").is_visible() and page.page.locator("#stat-fps").is_visible()
    page.shot("diagnostics")
    page.page.keyboard.press("Escape")
    assert not page.page.locator("#stat-late").is_visible()
    source.trouble = "the server has stopped"
    page.wait(f"({bar}).link === 'lost' && ({bar}).log === '–'")


def test_missions_and_sound_on_the_chart(bay: tuple[Bay, Page]) -> None:
    """A mission has its vehicle's colour; what beacons hear of each other is drawn on request only; what was lost is dashed, so that
    nobody needs its colour."""
    _, page = bay
    page.see("wavesim.chart.show.labels = false; wavesim.chart.show.trails = false")
    page.page.keyboard.press("]")
    page.page.keyboard.press("4")
    page.see("wavesim.chart.look([0, -30], 0.9)")
    assert pixels(page, -150, -150, CORAL) and not pixels(page, -150, -150, TEAL), "the leg of lauv"
    assert pixels(page, 100, 175, TEAL) and not pixels(page, 100, 175, CORAL), "the leg of remus"
    hear = (
        "((from, to, outcome) => {{ const s = wavesim.store, row = (n) => s.rowOf(n), p = (n) => s.placeOf(n);"
        " s.sent.set(1, {{ id: 1, at: p(from) }}); s.events = [{{ id: 1, source: row(from), receiver: row(to), outcome, time: s.time, at: p(to) }}] }})"
        "('{}', '{}', {})"
    ).format
    page.see(hear("lbl1", "lbl2", 0))
    heard = "g > 100 && b > 90 && r < 110"
    assert pixels(page, 120, -250, heard) == 0
    page.page.keyboard.press("p")
    assert pixels(page, 120, -250, heard) > 20
    page.page.keyboard.press("p")
    assert pixels(page, 120, -250, heard) == 0

    def share(outcome: int, picks: str) -> float:
        page.see(hear("lbl2", "lauv", outcome))
        line = [(250.0 * (1 - f), -250.0 * (1 - f)) for f in np.linspace(0.2, 0.8, 160)]
        return float(np.mean([pixels(page, n, e, picks, 0) > 0 for n, e in line]))

    assert share(0, heard) > 0.85, "heard: a whole line"
    assert 0.2 < share(4, "r > 120 && g < 110") < 0.8, "lost: dashes"
    page.shot("chart-sound")
