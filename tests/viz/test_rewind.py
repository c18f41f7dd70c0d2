"""Rewind and reset of a running server from the page: the slider over the snapshots, and what the page then shows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from tests.conftest import Server
from tests.viz.browser import Page
from wavesim_sdk.attach import SharedState
from wavesim_sdk.tables import RunState
from wavesim_viz.history import History
from wavesim_viz.remote import RemoteSource
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(240)]
Opener = Callable[[str], Page]

# a boat that drifts north, across a fence 9 m from its start, and a beacon that it hears
DRIFT = """<time step="10 ms" snapshot_period="1 s" snapshots="{snapshots}"/>
<world><current north="1 m/s"/><bed depth="40 m"/></world>
<fleet><vehicle name="boat" model="lauv" position="0 0 6 m" client="none"/>
<buoy name="beacon" model="buoy" position="30 9 3 m"><transducer><pinger frequency="25 kHz" period="500 ms"/></transducer></buoy>
<fence name="bay" keep="inside"><corner north="-90 m" east="-90 m"/><corner north="7 m" east="-90 m"/><corner north="7 m" east="90 m"/><corner north="-90 m" east="90 m"/></fence></fleet>"""
ALL_PASSED = "[wavesim.store.events, wavesim.store.notices, wavesim.store.alarms.map(a => ({time: a.since}))].every(l => l.every(e => e.time <= wavesim.store.last.time + 1e-6))"
# of the drawn trail of the boat: the ends of all segments, south to north as it was drawn
TRAIL = "(t => [...Array(t.pieces).keys()].filter(k => t.owners[k] === 0).map(k => [0, 1].map(i => -t.trail.geometry.attributes.position.getZ(2 * k + i))))(wavesim.view.trails)"
CHART = "wavesim.app.bottom.charts.charts[0].plot.data"
PANEL = "wavesim.app.details.charts.series('motion.speed')"
TRACK = "wavesim.store.tracks.get(0)"


class Run:
    """A server, and a page that watches it."""

    def __init__(self, server: Server, page: Page) -> None:
        self.server, self.page, self.state = server, page, SharedState(server.name)
        page.see(
            "wavesim.app.selection.choose(0); wavesim.app.bottom.show('charts');"
            "wavesim.app.bottom.charts.specs = [{lines: [{group: 'motion', title: 'north', key: 'motion.north', unit: 'm',"
            " factor: 1, down: false, body: 'boat', other: false}]}]"
        )

    def step(self, seconds: float) -> np.ndarray[Any, Any]:
        """Advance five times as fast as real time, so that the page draws the motion; return where the boat then is."""
        until = self.state.clock()["time_ns"] + round(seconds * 1e9)
        self.server.send("speed", factor=5)
        self.server.send("step", ticks=round(seconds * 100))
        self.page.until(lambda: self.state.clock()["time_ns"] == until and self.state.run_state() is RunState.PAUSED)
        self.shows(until * 1e-9)
        return np.array(self.state.snapshot().state["p_WB_W"][0])

    def shows(self, time_s: float) -> None:
        self.page.wait(f"Math.abs(wavesim.store.last.time - {time_s}) < 1e-6 && wavesim.store.settled()")

    def answer(self, act: Callable[[], Any], yes: bool) -> str:
        asked: list[str] = []
        self.page.page.once("dialog", lambda d: (asked.append(d.message), d.accept() if yes else d.dismiss()))
        act()
        self.page.until(lambda: bool(asked))
        return asked[0]

    def grip(self, share: float) -> tuple[float, float]:
        box = self.page.page.locator("#rewind-slider").bounding_box()
        assert box is not None
        return box["x"] + 8 + share * (box["width"] - 16), box["y"] + box["height"] / 2

    def drag(self, to_s: float) -> None:
        """Take the thumb at the present time back to a time, but do not release it."""
        slider = "document.querySelector('#rewind-slider')"
        self.page.wait(f"!{slider}.disabled && {slider}.offsetWidth > 100")
        low, high = (float(self.page.see(f"Number({slider}.{end})")) for end in ("min", "max"))
        mouse = self.page.page.mouse
        mouse.move(*self.grip(1.0))
        mouse.down()
        mouse.move(*self.grip((to_s - low) / (high - low)), steps=4)

    def check_lines(self, until_s: float, least: int) -> None:
        """No line goes back in time or in space, and none goes on beyond the present time."""
        page = self.page
        trail = np.array(page.see(TRAIL))
        assert len(trail) >= 2 and (trail[:, 1] > trail[:, 0]).all()
        assert np.allclose(trail[1:, 0], trail[:-1, 1], atol=1e-4), "without a gap"
        page.wait(f"{CHART}[0].length > {least} && {CHART}[0].at(-1) <= {until_s} + 1e-6")
        for what in (f"{CHART}[0]", f"{PANEL}.time", f"{TRACK}.time"):
            times = np.array(page.see(what))
            assert len(times) >= least and (np.diff(times) > 0).all() and times[-1] <= until_s + 1e-6, what
        assert (np.diff(page.see(f"{CHART}[1]")) > 0).all()
        assert page.see(ALL_PASSED)


def test_the_slider_rewinds_the_run(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """Paused or running as it was, the run continues from the snapshot before the time at which the slider is released."""
    server = serve(config(DRIFT.format(snapshots=20)).path)
    page = open_page(view("--server", name, "--control").url)
    page.wait("wavesim.store.rows.length === 2")
    run = Run(server, page)
    slider = page.page.locator("#rewind-slider")
    expect(slider).to_be_hidden()
    there = run.step(8.0)
    end = run.step(7.0)
    assert end[0] > there[0] + 4.0
    page.wait("wavesim.store.alarms.some(a => a.kind === 'fence') && wavesim.store.notices.length > 0")
    page.wait(f"{CHART}[0].at(-1) > 14")
    run.check_lines(15.0, 10)
    expect(page.page.locator("#rewind")).to_contain_text("0:00.0")

    run.drag(8.6)
    expect(page.page.locator("#rewind-text")).to_have_text("Rewind to 0:08.0")
    page.shot("rewind")
    asked = run.answer(page.page.mouse.up, False)
    assert f"Rewind the simulation '{name}' to 0:08.0?" in asked and "All connected programs" in asked
    expect(page.page.locator("#rewind-text")).to_be_hidden()
    assert page.see("wavesim.store.last.time") == pytest.approx(15.0), "not without consent"

    run.drag(8.6)
    run.answer(page.page.mouse.up, True)
    run.shows(8.0)
    page.wait("wavesim.store.notices.length === 0 && wavesim.store.alarms.length === 0")
    expect(page.page.locator(".toast").last).to_contain_text("returned from 0:15.0 to 0:08.0")
    assert np.allclose(page.see("[...wavesim.store.ned.slice(0, 3)]"), there, atol=1e-5)
    assert run.state.run_state() is RunState.PAUSED and float(run.state.clock()["time_ns"]) == 8e9
    page.wait("wavesim.app.bottom.rewind.times.at(-1) === 8")
    run.check_lines(8.0, 3)

    again = run.step(7.0)
    assert np.array_equal(again, end), "the run goes on as it did"
    page.wait("wavesim.store.alarms.some(a => a.kind === 'fence' && a.count === 1) && wavesim.store.notices.length > 0")
    page.wait(f"{CHART}[0].at(-1) > 14")
    run.check_lines(15.0, 10)

    # by keyboard, while the simulation is running
    server.send("speed", factor=1)
    server.send("start")
    page.wait("wavesim.store.last.state === 1 && wavesim.store.last.time > 15.2")
    slider.focus()
    for _ in range(3):
        page.page.keyboard.press("ArrowLeft")
    text = str(slider.get_attribute("aria-valuetext"))
    assert text in ("Rewind to 0:13.0", "Rewind to 0:14.0")
    assert text.removeprefix("Rewind to ") in run.answer(lambda: page.page.keyboard.press("Enter"), True)
    page.wait("wavesim.store.last.time < 15")
    page.wait("wavesim.store.last.state === 1 && wavesim.store.last.time > 15.5")
    run.check_lines(page.see("wavesim.store.last.time") + 2.0, 10)

    asked = run.answer(lambda: page.page.click("#do-reset"), True)
    assert f"Reset the simulation '{name}' to its beginning" in asked
    run.shows(0.0)
    page.wait("wavesim.store.last.state === 0 && wavesim.app.bottom.rewind.times.length === 0")
    page.wait(f"{TRACK}.time.at(-1) === 0 && wavesim.store.events.length === 0 && wavesim.store.alarms.length === 0")
    assert page.see(TRAIL) == [] and page.see("wavesim.store.ned[0]") == pytest.approx(0.0)
    expect(slider).to_be_disabled()
    page.clean()


def test_without_the_right_the_slider_only_shows_the_span(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], view: Any, open_page: Opener, name: str
) -> None:
    """The oldest snapshots are gone; a page without the right to control sees the others but cannot return to them."""
    server = serve(config(DRIFT.format(snapshots=3)).path)
    page = open_page(view("--server", name).url)
    page.wait("wavesim.store.rows.length === 2")
    run = Run(server, page)
    run.step(7.5)
    page.wait("wavesim.app.bottom.rewind.times.join() === '5,6,7'")
    slider = page.page.locator("#rewind-slider")
    expect(slider).to_be_disabled()
    expect(page.page.locator("#do-reset")).to_be_disabled()
    assert "viz --control" in str(slider.get_attribute("title"))
    expect(page.page.locator("#rewind")).to_contain_text("0:05.0")
    asked: list[str] = []
    page.page.on("dialog", lambda d: (asked.append(d.message), d.accept()))
    mouse = page.page.mouse
    mouse.move(*run.grip(1.0))
    mouse.down()
    mouse.move(*run.grip(0.1), steps=4)
    mouse.up()
    page.see("wavesim.link.control('rewind', 5); wavesim.link.control('reset')")
    page.wait("document.querySelector('.toast.bad')")
    assert float(run.state.clock()["time_ns"]) == 7.5e9 and run.state.time_change()["count"] == 0 and not asked
    page.clean()


def test_a_viewer_over_the_network_follows(
    config: Callable[..., LoadedConfig], serve: Callable[..., Server], name: str
) -> None:
    server = serve(config(DRIFT.format(snapshots=20)).path)
    source, history = RemoteSource(("127.0.0.1", server.port), 50.0), History()
    returned: list[float] = []

    def watch(until: Callable[[], bool]) -> None:
        limit = time.monotonic() + 30.0
        while not until():
            assert time.monotonic() < limit
            if (frame := source.frame()) is not None:
                if frame.returned_s is not None:
                    returned.append(frame.returned_s)
                    history.discard_after(frame.returned_s)
                if (sounds := source.new_signals()) is not None:
                    history.add_events(sounds)
                history.add(frame, source.roster(), [])
            time.sleep(0.005)

    def newest() -> float:
        return history.moments[-1].time if history.moments else -1.0

    try:
        server.send("speed", factor=10)
        server.send("start")
        watch(lambda: newest() > 8.0)
        server.send("rewind", time=3.5)
        watch(lambda: bool(returned))
        assert returned == [3.0] and newest() < 8.0
        assert all(e["time"] < 8.0 for e in history.events()["sent"])
        watch(lambda: newest() > 6.0)
        times, north = history.line(0, "motion.north")
        assert (np.diff(times) > 0).all() and (np.diff(north) > 0).all() and len(returned) == 1
        server.send("reset")
        watch(lambda: len(returned) == 2)
        assert returned[1] == 0.0 and newest() <= 0.0 and not history.events()["receptions"]
    finally:
        source.close()
