"""Measure how long the charts of an hour's log take to open: 20 fields of four bodies at 10 Hz, in five charts, in a
real browser.

python -m benchmarks.charts

On a busy machine wall time means little. The output therefore also lists processor time of the browser and of the
viewer's server.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.page import CLI, below, viewer_and_browser
from benchmarks.processes import cpu_s
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import load

BODIES, HOUR, RATE, REPEATS = 4, 3600, 10, 5
FIELDS = (("depth", "m"), ("speed", "m/s"), ("heading", "°"), ("pitch", "°"), ("north", "m"))


def log(folder: Path) -> Path:
    """Write a log of bodies that move on circles and dive."""
    body = '<vehicle name="v{0}" model="lauv" position="{0} 0 10 m"/>'
    fleet = "".join(map(body.format, range(BODIES)))
    (folder / "c.xml").write_text(f'<wavesim name="charts"><fleet>{fleet}</fleet></wavesim>')
    writer = LogWriter(folder / "run.mcap", load(folder / "c.xml"), 1)
    state, rows = np.zeros(BODIES, STATE.dtype), np.arange(BODIES)
    for k in rows:
        writer.body(0, int(k), f"v{k}", "lauv", "underwater", True)
    for tick in range(RATE * HOUR):
        angle = 0.003 * tick + rows
        state["p_WB_W"][:] = np.stack([50 * np.cos(angle), 50 * np.sin(angle), 20 + 10 * np.sin(0.31 * angle)], 1)
        state["q_WB"][:, 0], state["q_WB"][:, 3] = np.cos(0.5 * angle), np.sin(0.5 * angle)
        state["v_WB_B"][:, 0] = 1.5 + 0.1 * np.sin(7.0 * angle)
        writer.table(tick * (1_000_000_000 // RATE), "state", rows.tolist(), state.tobytes())
    writer.close()
    return folder / "run.mcap"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [*CLI, "viz", str(log(Path(folder))), "--port", "0"]
        charts = [
            {
                "lines": [
                    {
                        "group": "motion",
                        "title": name,
                        "key": f"motion.{name}",
                        "unit": unit,
                        "factor": 1,
                        "down": name == "depth",
                        "body": f"v{k}",
                        "other": False,
                    }
                    for k in range(BODIES)
                ]
            }
            for name, unit in FIELDS
        ]
        with viewer_and_browser(command) as (_, url, browser):
            page = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
            page.add_init_script(
                f"localStorage.setItem('wavesim-charts', {json.dumps(json.dumps(charts))}); localStorage.setItem('wavesim-pane', 'notices')"
            )
            for _ in range(REPEATS):
                page.goto(url)
                page.wait_for_function(
                    f"() => window.wavesim && wavesim.view && wavesim.store.rows.length === {BODIES}"
                )
                page.evaluate("wavesim.link.control('pause')")
                page.wait_for_function("() => !wavesim.app.loop.turning")
                processes = below(os.getpid())
                busy = sum(map(cpu_s, processes))
                took = page.evaluate(
                    "new Promise(done => { const from = performance.now(); document.querySelector('#tab-charts').click();"
                    f" const look = () => wavesim.app.bottom.charts.charts.filter(c => c.plot?.plot?.data?.[{BODIES}]?.length > 500).length === {len(FIELDS)}"
                    " ? requestAnimationFrame(() => done(performance.now() - from)) : setTimeout(look, 4); look() })"
                )
                busy = sum(map(cpu_s, processes)) - busy
                print(f"{took:6.0f} ms until drawn; {1000 * busy:5.0f} ms of processor, all processes", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
