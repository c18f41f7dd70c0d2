"""An operator's day at the page: alarms, missions of the selected vehicle, menus, and controls that cannot act."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        return [[k, n, "lauv" if k < 2 else "buoy", "underwater" if k < 2 else "buoy", 1] for k, n in enumerate(self.names)]

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
    text = "high alarm, remus: keep-alive removed its pilot"
    page.wait(f"document.querySelector('#alarm-said').textContent === '{text}'")
    assert page.see("said") == [text] and page.see("tones") == 4
    cells = "[...document.querySelectorAll('#alarms tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    page.wait(f"({cells}).length === 1")
    assert page.see(cells)[0][1:7] == ["active", "high", "silent", "remus", "", "keep-alive removed its pilot"]
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
