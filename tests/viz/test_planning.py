"""Missions of several vehicles planned together: predicted positions and conflicts, against a brute-force prediction."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.stage import Stage, on_stage
from tests.viz.test_operator import configured, model
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_world.config import load

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
STARTS = {"north": (-100.0, 0.0, 5.0), "east": (0.0, -100.0, 5.0), "deep": (0.0, -100.0, 40.0)}
#: two cross where the third passes far below both; then two end at the same place at different times
MISSIONS = {
    "north": [[100.0, 0.0, 5.0, 2.0], [100.0, 80.0, 5.0, 2.0]],
    "east": [[0.0, 100.0, 5.0, 1.9], [100.0, 84.0, 8.0, 1.0]],
    "deep": [[0.0, 100.0, 40.0, 1.9]],
}
SEPARATION = 12.0


class Fleet(Stage):
    """Vehicles that are no longer where they were configured."""

    def __init__(self, file: Path) -> None:
        super().__init__(str(file))
        models = {"lauv": model("lauv", "underwater")}
        placed = [configured(n, [500.0, 500.0, 0.0], p) for n, p in MISSIONS.items()]
        self.described |= {"models": models, "bodies": placed}

    def roster(self) -> list[list[Any]]:
        return [[k, n, "lauv", "underwater", 1] for k, n in enumerate(STARTS)]

    def frame(self) -> ViewerFrame:
        p = np.array(list(STARTS.values()))
        return ViewerFrame(50.0, 500, 1, bodies(range(3), p, [[1, 0, 0, 0]] * 3, np.zeros((3, 3))))


@pytest.fixture
def fleet(tmp_path: Path, open_page: Callable[[str], Page]) -> Iterator[tuple[Fleet, Page]]:
    vehicles = "".join(f"<vehicle name='{n}' model='lauv' position='500 500 0 m'/>" for n in STARTS)
    (tmp_path / "fleet.xml").write_text(f"<wavesim><fleet>{vehicles}</fleet></wavesim>")
    source = Fleet(tmp_path / "fleet.xml")
    with on_stage(source, tmp_path) as url:
        page = open_page(url)
        page.wait("window.wavesim && wavesim.store.scene && wavesim.store.rows.length === 3")
        page.page.locator("#do-mission").click()
        page.see("wavesim.chart.look([0, 0], 1)")
        page.page.get_by_role("button", name="plan", exact=True).click()
        yield source, page
        page.clean()


def predicted(name: str, times: np.ndarray) -> np.ndarray:
    """Positions along a mission, by interpolation over time."""
    points = np.array([STARTS[name], *(p[:3] for p in MISSIONS[name])])
    legs = np.linalg.norm(np.diff(points, axis=0), axis=1) / [p[3] for p in MISSIONS[name]]
    at = np.concatenate([[0.0], np.cumsum(legs)])
    return np.stack([np.interp(times, at, points[:, k]) for k in range(3)], axis=1)


def brute_force(separation: float) -> list[tuple[float, float, str]]:
    """(time, least distance, names) of each conflict, from positions every 10 ms."""
    times, found = np.arange(0.0, 400.0, 0.01), []
    names = list(STARTS)
    for k, a in enumerate(names):
        for b in names[k + 1 :]:
            far = np.linalg.norm(predicted(a, times) - predicted(b, times), axis=1)
            close = np.flatnonzero(far < separation)
            for part in np.split(close, np.flatnonzero(np.diff(close) > 1) + 1) if len(close) else ():
                least = part[np.argmin(far[part])]
                found.append((float(times[least]), float(far[least]), f"{a} – {b}"))
    return sorted(found)


def listed(page: Page) -> list[tuple[float, float, str]]:
    found = []
    for text in page.page.locator("#conflicts button").all_text_contents():
        match = re.fullmatch(r"\+(?:(\d+):)?(\d+):(\d+)  ([\d.]+) m  (.+)", text)
        assert match, text
        h, m, s = (int(v or 0) for v in match.groups()[:3])
        found.append((3600.0 * h + 60.0 * m + s, float(match[4]), match[5]))
    return found


def test_conflicts_in_time_and_space(fleet: tuple[Fleet, Page]) -> None:
    """Each conflict with its time, distance and names, as a dense prediction finds them; a vehicle that passes at another depth or at
    another time has none."""
    _, page = fleet
    expect(page.page.locator("#plan-summary")).to_have_text("no plans: draw waypoints for several vehicles")
    page.page.locator("#plan-existing").click()
    for separation in (SEPARATION, 4.0, 37.0):
        page.page.locator("#plan-separation").fill(str(separation))
        page.page.locator("#plan-separation").press("Enter")
        wanted = brute_force(separation)
        expect(page.page.locator("#conflicts button")).to_have_count(len(wanted))
        found = sorted(listed(page))
        assert [f[2] for f in found] == [w[2] for w in wanted]
        for (time, far, _), (true_time, true_far, _) in zip(found, wanted, strict=True):
            assert time == pytest.approx(true_time, abs=0.6) and far == pytest.approx(true_far, abs=0.06)
    assert len(brute_force(SEPARATION)) == 2 and len(brute_force(4.0)) == 1 and len(brute_force(37.0)) > 2
    page.page.locator("#plan-separation").fill("-1")
    page.page.locator("#plan-separation").press("Enter")
    expect(page.page.locator(".toast")).to_have_text("the separation must be a positive number of metres")


def test_the_slider_shows_where_each_vehicle_will_be(fleet: tuple[Fleet, Page]) -> None:
    _, page = fleet
    page.page.locator("#plan-existing").click()
    page.page.locator("#conflicts button").first.click()
    time = brute_force(10.0)[0][0]
    meeting = (predicted("north", np.array([time])) + predicted("east", np.array([time])))[0, :2] / 2
    x, y = page.see(f"wavesim.chart.px({meeting[0]}, {meeting[1]})")
    panel, chart = (page.page.locator(s).bounding_box() for s in ("#mission", "canvas.chart"))
    assert panel is not None and chart is not None
    assert 50 < x < panel["x"] - chart["x"] - 50 and y == pytest.approx(chart["height"] / 2, abs=1), "beside the panel"
    page.see("wavesim.chart.look([0, 0], 1)")
    page.see(
        "(() => { const p = CanvasRenderingContext2D.prototype, f = p.fillText; window.texts = {};"
        " p.fillText = function (...a) { texts[a[0]] = [a[1], a[2]]; return f.apply(this, a) } })()"
    )
    slider = page.page.get_by_label("Time in the plan")
    duration = max(100.0 + 40.0, 200 / 1.9 + float(np.linalg.norm([100.0, 16.0, 3.0])))
    for share in (0.25, 0.6):
        slider.fill(str(round(1000 * share)))
        page.see("(() => { texts = {}; wavesim.chart.render() })()")
        for name in STARTS:
            x, y = page.see(f"texts['{name}']")
            north, east, _ = predicted(name, np.array([share * duration]))[0]
            assert [x - 10, y - 4] == pytest.approx(page.see(f"wavesim.chart.px({north}, {east})"), abs=1.0), name
    expect(page.page.locator("#plan-time")).to_have_text(
        f"+{int(0.6 * duration) // 60}:{round(0.6 * duration) % 60:02}"
    )
    page.shot("planning")


def test_send_all_and_save_all(fleet: tuple[Fleet, Page], tmp_path: Path) -> None:
    """Conflicts are asked about before the missions are sent; all are saved in one file."""
    source, page = fleet
    page.page.locator("#send-all").click()
    expect(page.page.locator(".toast")).to_have_text("no plans to send: draw waypoints for a vehicle")
    page.page.locator("#plan-existing").click()
    asked: list[str] = []
    page.page.once("dialog", lambda d: (asked.append(d.message), d.dismiss()))
    page.page.locator("#send-all").click()
    assert asked == ["2 conflicts remain. Send the missions anyway?"] and not source.orders
    page.page.once("dialog", lambda d: d.accept())
    page.page.locator("#send-all").click()
    page.until(lambda: len(source.orders) == 3)
    sent = {o.row: np.reshape(o.values["points"], (-1, 4)).tolist() for o in source.orders}
    assert sent == dict(enumerate(MISSIONS.values())) and {o.verb for o in source.orders} == {"mission"}
    page.page.locator("#save-all").click()
    expect(page.page.locator(".toast")).to_contain_text("saved")
    config = load(tmp_path / "mission.xml").config
    saved = {v.name: [[w.north, w.east, w.depth, w.speed] for w in v.waypoint] for v in config.fleet.vehicle}
    assert saved == MISSIONS
