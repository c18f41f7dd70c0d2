"""A log of two vehicles whose motion is known in closed form, with events, and a page that shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.viz.browser import Page
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import LoadedConfig

DURATION, RADIUS, RATE = 60.0, 50.0, 0.1  #: s, m, rad/s
DISTANCE = 20.0  #: m, from `lead` to `auv-2`, which follows in the south
PERIODS_MS = {"lead": 100, "auv-2": 130}  #: the two are sampled at different times
EVENTS = [
    (10.0, "notice", "lead: crossed the fence 'harbour'"),
    (20.0, "command", "speed"),
    (30.0, "fault", "auv-2: ctd offset"),
    (40.0, "notice", "auv-2: watchdog"),
]
READY = "window.wavesim && wavesim.store.rows.length === 2 && wavesim.store.scene && wavesim.store.weather?.replay"


def position(name: str, t: float) -> tuple[float, float, float]:
    """North, east and depth in m."""
    north, east = RADIUS * np.cos(RATE * t), RADIUS * np.sin(RATE * t)
    return (north, east, 10.0 + np.sin(0.5 * t)) if name == "lead" else (north - DISTANCE, east, 12.0)


def record(config: Callable[..., LoadedConfig], path: Path) -> Path:
    loaded = config(
        '<fleet><vehicle name="lead" model="lauv" position="50 0 10 m"/>'
        '<vehicle name="auv-2" model="lauv" position="30 0 12 m"/></fleet>'
    )
    writer, state = LogWriter(path, loaded, 1), np.zeros(1, STATE.dtype)
    state["q_WB"][:, 0], state["v_WB_B"][0, 0] = 1.0, RADIUS * RATE
    for row, name in enumerate(PERIODS_MS):
        writer.body(0, row, name, "lauv", "underwater", True)
    for ms in range(0, int(1000 * DURATION) + 1, 10):
        for row, (name, period) in enumerate(PERIODS_MS.items()):
            if ms % period == 0:
                state["p_WB_W"][0] = position(name, 1e-3 * ms)
                writer.table(ms * 1_000_000, "state", [row], state.tobytes())
    for time, kind, text in EVENTS:
        body, _, rest = text.partition(": ")
        if kind == "notice":
            writer.notice(round(1e9 * time), body, rest)
        elif kind == "command":
            writer.command(round(1e9 * time), "test", text, {})
        else:
            writer.fault(round(1e9 * time), body, *rest.split(), begins=True)
    writer.close()
    return path


def at_rest(page: Page, time: float) -> None:
    """Pause the replay at a time."""
    page.wait(READY)
    page.see(f"wavesim.link.control('pause'); wavesim.link.control('seek', {time})")
    page.wait(f"wavesim.store.last.state === 2 && Math.abs(wavesim.store.time - {time}) < 1e-6")
