"""Derived lines of charts: differences, derivatives, means, X-Y and formulas, with their units; statistics; events; the table."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.viz.browser import Page
from tests.viz.recorded import DISTANCE, DURATION, EVENTS, RADIUS, at_rest, record
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
CHARTS = "wavesim.app.bottom.charts.charts"


@pytest.fixture
def page(config: Callable[..., LoadedConfig], view: Any, tmp_path: Path, open_page: Callable[[str], Page]) -> Page:
    """Charts of the two vehicles, in a browser that has none yet, over most of the window."""
    page = open_page(view(record(config, tmp_path / "run.mcap")).url)
    at_rest(page, 12.0)
    page.see("wavesim.app.arrangement.apply({...wavesim.app.arrangement.defaults, panes: ['charts'], height: 0.6})")
    page.wait("document.querySelector(\"select[aria-label='Field of the line']\").options.length > 3")
    return page


def choose(page: Page, body: str, field: str, what: str = "line") -> None:
    page.page.select_option(f"select[aria-label='Body of the {what}']", label=body)
    page.page.select_option(f"select[aria-label='Field of the {what}']", label=field)


def add(page: Page, kind: str) -> None:
    """Add a line of a kind, and wait for the data of its chart."""
    before = page.see(f"{CHARTS}.length")
    page.page.select_option("select[aria-label='Kind of line']", kind)
    page.page.click("#add-line")
    page.wait(f"{CHARTS}.length === {before + 1}")
    page.wait(f"{CHARTS}[{before}].plot && ({CHARTS}[{before}].plot.lines ?? {CHARTS}[{before}].plot.data[0]).length")


def curve(page: Page, k: int) -> tuple[Any, Any]:
    """Times and values of the first line of a chart."""
    t, v = page.see(f"{CHARTS}[{k}].plot.data.slice(0, 2).map(d => Array.from(d, x => x ?? NaN))")
    t, v = np.array(t), np.array(v, float)
    return t[np.isfinite(v)], v[np.isfinite(v)]


def title(page: Page, k: int) -> str:
    return str(page.page.locator("#log-charts .plot .title > span:first-child").nth(k).text_content())


def formula(page: Page, text: str, x: str = "") -> None:
    page.page.select_option("select[aria-label='Kind of line']", "formula")
    page.page.fill("#formula-x", x)
    page.page.fill("#formula", text)


def test_lines_that_are_computed(page: Page) -> None:
    """Between vehicles that are sampled at different times; derivative and mean; any formula, with its unit; against another; all there
    again on the next visit and through a link; and in the table."""
    choose(page, "lead", "north, m")
    page.page.select_option("select[aria-label='Kind of line']", "minus")
    page.wait("document.querySelector(\"select[aria-label='Field of the second line']\").options.length > 3")
    choose(page, "auv-2", "north, m", "second line")
    add(page, "minus")
    t, v = curve(page, 0)
    assert len(t) > 580 and np.abs(v - DISTANCE).max() < 2e-3, "interpolated: held values would differ by 0.6 m"
    assert title(page, 0) == "lead.north - [auv-2.north] (m)"
    choose(page, "lead", "depth, m")
    add(page, "derivative")
    t, v = curve(page, 1)
    assert np.abs(v - 0.5 * np.cos(0.5 * t))[1:-1].max() < 1e-3 and title(page, 1) == "derivative(lead.depth) (m/s)"
    page.page.select_option("select[aria-label='Kind of line']", "mean")
    page.page.fill("input[aria-label='Window of the moving mean in seconds']", "12.566")
    add(page, "mean")
    t, v = curve(page, 2)
    assert np.abs(v - 10.0)[(t > 7) & (t < 53)].max() < 0.02 and title(page, 2) == "mean(lead.depth, 12.566) (m)"
    # a formula: fields are inserted where the caret is; those without a body are of the chosen one
    formula(page, "sqrt(north^2 + ^2)")
    page.see("document.querySelector('#formula').setSelectionRange(15, 15)")
    choose(page, "lead", "east, m")
    page.page.click("#insert-field")
    expect(page.page.locator("#formula")).to_have_value("sqrt(north^2 + lead.east^2)")
    add(page, "formula")
    t, v = curve(page, 3)
    assert v == pytest.approx(np.full(len(v), RADIUS), rel=1e-6) and title(page, 3).endswith("(m)")
    # north against east: a circle, and one metre is as long on both axes
    choose(page, "lead", "north, m")
    page.page.select_option("select[aria-label='Kind of line']", "against")
    choose(page, "lead", "east, m", "second line")
    add(page, "against")
    (line,) = page.see(f"{CHARTS}[4].plot.lines")
    assert np.hypot(line["x"], line["y"]) == pytest.approx(np.full(len(line["x"]), RADIUS), rel=1e-6)
    scales = f"(p => [p.at.x(1) - p.at.x(0), p.at.y(0) - p.at.y(1)])({CHARTS}[4].plot)"
    x, y = page.see(scales)
    assert x == pytest.approx(y)
    assert title(page, 4) == "lead.north (m) against lead.east (m)"
    page.page.locator(".xy-plot").scroll_into_view_if_needed()
    page.page.locator(".xy-plot input[type=checkbox]").uncheck()
    page.wait(f"(([x, y]) => x > 1.5 * y)({scales})")
    # a click on it seeks to the nearest time
    k = len(line["time"]) // 2
    x, y = page.see(f"(p => [p.at.x({line['x'][k]}), p.at.y({line['y'][k]})])({CHARTS}[4].plot)")
    box = page.page.locator("canvas.xy").bounding_box()
    assert box
    page.page.mouse.move(box["x"] + x, box["y"] + y)
    expect(page.page.locator(".xy-plot .tip")).to_contain_text("lead.north against lead.east")
    page.page.mouse.click(box["x"] + x, box["y"] + y)
    page.wait(f"Math.abs(wavesim.store.time - {line['time'][k]}) < 1.5")
    page.shot("derived")
    with page.page.expect_download() as coming:
        page.page.click("#csv")
    tables = [[]]
    for row in csv.reader(coming.value.path().read_text().splitlines()):
        tables[-1].append(row) if row else tables.append([])
    tables = [table for table in tables if table]
    assert [t[0] for t in tables] == [
        ["time s", "lead.north - [auv-2.north] m"],
        ["time s", "derivative(lead.depth) m/s"],
        ["time s", "mean(lead.depth, 12.566) m"],
        ["time s", "sqrt(north^2 + lead.east^2) m"],
        ["time s", "lead.east m", "lead.north m"],
    ]
    circle = np.array(tables[4][1:], float)
    assert np.hypot(circle[:, 1], circle[:, 2]) == pytest.approx(np.full(len(circle), RADIUS), rel=1e-5)
    page.page.click("#link")
    page.wait("location.hash.startsWith('#view=')")
    specs = page.see("wavesim.app.arrangement.layout.charts")
    page.see("localStorage.removeItem('wavesim-charts')")
    page.page.reload()
    page.wait(
        f"window.wavesim?.app?.bottom?.charts && {CHARTS}.length === 5 && {CHARTS}[3].plot?.data[0].length && {CHARTS}[4].plot?.lines.length"
    )
    assert json.dumps(page.see("wavesim.app.arrangement.layout.charts")) == json.dumps(specs)
    page.clean()


def test_mistakes_statistics_and_events(page: Page) -> None:
    """A mistake gives one message and no chart; a kept formula whose field is missing says so in its place; statistics are those of the
    visible stretch; events are marked, with their text under the pointer."""
    for text, x, told in (
        ("lead.depht + 1", "", "'lead' has no field 'depht'; did you mean 'depth'?"),
        ("north + speed", "", "cannot add m and m/s"),
        ("sqrt(north", "", "')' is missing"),
        ("north", "window.alert(1)", "there is no function 'window.alert'; available: abs, acos, "),
        ("fetch(1)", "", "there is no function 'fetch'; available: abs, acos, "),
        ("nobody.depth", "", "'lead' has no field 'nobody.depth'"),
        ("2 + 2", "", "the formula contains no field (such as depth)"),
    ):
        page.see("document.querySelector('.toast')?.remove()")
        formula(page, text, x)
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector(".toast.bad")
        assert str(page.page.locator(".toast").text_content()).startswith(f"mistake in the formula: {told}"), text
        assert page.page.locator(".toast").count() == 1 and page.see(f"{CHARTS}.length") == 0
    choose(page, "lead", "depth, m")
    add(page, "derivative")
    page.page.select_option("select[aria-label='Kind of line']", "field")
    page.page.click("#add-line")
    page.wait(f"{CHARTS}.length === 2 && {CHARTS}[1].plot?.data[0].length > 100")
    page.page.locator("#statistics").check()
    page.see("wavesim.app.bottom.charts.zoom({since: 10, until: 20})")
    cells = "[...document.querySelectorAll('.statistics tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
    page.wait(f"({cells}).length === 2 && ({cells}).every(r => r[1] === '101')")
    t = np.arange(100, 201) * 0.1
    depth = 10.0 + np.sin(0.5 * t)
    (rate, (name, *shown, unit)) = page.see(cells)
    assert name == "lead" and unit == "m" and rate[0] == "derivative(lead.depth)" and rate[-1] == "m/s"
    expected = [101, depth.min(), depth.max(), depth.mean(), depth.std(), np.sqrt((depth**2).mean())]
    assert [float(v) for v in shown] == pytest.approx(expected, rel=2e-5)
    page.see("wavesim.app.bottom.charts.zoom({})")
    page.wait(f"{CHARTS}[1].plot.data[0].length > 500")
    marks = page.see("wavesim.app.bottom.events.notable")
    assert [(round(m["time"], 6), m["kind"], m["text"]) for m in marks] == EVENTS
    # the line of the fault is drawn, and its text is under the pointer
    over = page.page.locator("#log-charts .u-over").last
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box
    x = page.see(f"{CHARTS}[1].plot.plot.valToPos(30, 'x')")
    pixel = f"""(() => {{
        const u = {CHARTS}[1].plot.plot, x = Math.round(u.valToPos(30, 'x', true)), c = u.ctx;
        const d = c.getImageData(x - 2, u.bbox.top, 5, u.bbox.height).data;
        for (let k = 0; k < d.length; k += 4) if (d[k] > 180 && d[k + 1] < 150 && d[k + 3] > 100) return true;
        return false;
    }})()"""
    page.wait(pixel)
    page.page.mouse.move(box["x"] + x, box["y"] + 30)
    expect(page.page.locator(".mark-tip:not(.hidden)")).to_have_text("0:30.0  fault: auv-2: ctd offset")
    page.shot("statistics")
    assert x == pytest.approx(box["width"] * 30.0 / DURATION, abs=2)
    # a chart of another log, whose body is not here
    lines = page.see("wavesim.app.arrangement.layout.charts[0].lines")
    lines[0]["formula"] = "derivative(ship.depth)"
    page.see(f"wavesim.app.bottom.charts.specs = [{{lines: {json.dumps(lines)}}}]")
    expect(page.page.locator(".formula-mistake span")).to_have_text(
        "derivative(lead.depth): 'lead' has no field 'ship.depth'"
    )
    page.page.locator(".formula-mistake button").click()
    assert page.see(f"{CHARTS}.length") == 0
    page.clean()
