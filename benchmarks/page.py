"""Measure frames per second of the viewer's page, drawn in software at 1366 x 768.

The cases are the chart, 3D with 50 vehicles, with and without waves and sky, the traffic of a vessel, and the cost
while nothing changes. Each is measured twice. First, the browser also combines the layers of the page on the emulated
graphics processor, as in the tests. Then it is a browser on a computer without a graphics processor: it combines the
layers by its own code, and only the 3D view is emulated.

python -m benchmarks.page [seconds]

On a busy machine frames per second mean little. Frames per second of browser processor time indicate the rate of an
idle core.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from docs.pictures import FLAGS
from playwright.sync_api import sync_playwright

from benchmarks.processes import cpu_s
from wavesim_sdk.tables import STATE
from wavesim_server.logbook.writer import LogWriter
from wavesim_world.config import load

CLI = [sys.executable, "-m", "wavesim_sdk"]
#: a browser that found no graphics processor; it still draws WebGL by SwiftShader
NO_GPU = [*(f for f in FLAGS if "angle" not in f and "blocklist" not in f), "--disable-gpu"]
VEHICLES, SECONDS = 50, 60
VESSELS = 12  #: number of vehicles on the surface
CONFIG = """<wavesim name="page"><world><waves height="1 m" peak="0.9 rad/s" spreading="6"/><bed depth="40 m"><bump height="-12 m" north="60 m" east="40 m" alpha="0.02 1/m" beta="0.02 1/m"/></bed>
</world><fleet>{}</fleet></wavesim>"""


def log(folder: Path) -> Path:
    """Write a log of one minute with vehicles on circles."""
    body = '<vehicle name="v{}" model="{}" position="{} {} 10 m"/>'
    models = ["otter" if k < VESSELS else "lauv" for k in range(VEHICLES)]
    (folder / "c.xml").write_text(
        CONFIG.format("".join(body.format(k, m, 20 * (k % 8), 20 * (k // 8)) for k, m in enumerate(models)))
    )
    writer = LogWriter(folder / "run.mcap", load(folder / "c.xml"), 1)
    state, rows = np.zeros(VEHICLES, STATE.dtype), np.arange(VEHICLES)
    for k in rows:
        writer.body(0, int(k), f"v{k}", models[k], "surface" if k < VESSELS else "underwater", True)
    for tick in range(10 * SECONDS):
        angle = 0.02 * tick + rows
        state["p_WB_W"][:] = np.stack(
            [
                20.0 * (rows % 8) + 8 * np.cos(angle),
                20.0 * (rows // 8) + 8 * np.sin(angle),
                np.where(rows < VESSELS, 0.0, 10.0 + rows % 7),
            ],
            1,
        )
        state["q_WB"][:, 0], state["q_WB"][:, 3] = np.cos(0.5 * angle + np.pi / 4), np.sin(0.5 * angle + np.pi / 4)
        state["v_WB_B"][:, 0] = 1.6
        writer.table(tick * 100_000_000, "state", rows.tolist(), state.tobytes())
    writer.close()
    return folder / "run.mcap"


def below(pid: int) -> list[int]:
    """Return all descendants of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found += [int(entry.name), *below(int(entry.name))]
        except OSError:
            continue
    return found


@contextmanager
def viewer_and_browser(
    command: list[str], flags: list[str] = FLAGS
) -> Iterator[tuple[subprocess.Popen[str], str, Any]]:
    """Start a viewer by its command, and a browser. Yield the viewer, the address of its page, and the browser."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as viewer, sync_playwright() as p:
        assert viewer.stderr is not None
        url = "http://" + viewer.stderr.readline().split("http://")[1].split()[0]
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        browser = p.chromium.launch(executable_path=chromium, args=flags)
        try:
            yield viewer, url, browser
        finally:
            browser.close()
            viewer.send_signal(signal.SIGTERM)


def measure(page: Any, processes: list[int], count: str, seconds: float) -> str:
    """Return the frames per second of wall time and of processor time of the browser."""
    page.wait_for_timeout(3000)
    first, cpu, at = page.evaluate(count), sum(map(cpu_s, processes)), time.monotonic()
    page.wait_for_timeout(1000 * seconds)
    frames, wall = page.evaluate(count) - first, time.monotonic() - at
    busy = sum(map(cpu_s, processes)) - cpu
    return f"{frames / wall:5.1f} frames/s; {100 * busy / wall:5.1f} % of a core; {frames / max(busy, 1e-3):6.1f} frames for each second computed"


def look(page: Any, seconds: float, others: list[int]) -> None:
    """Run the measurements."""
    page.wait_for_function(f"() => window.wavesim && wavesim.view && wavesim.store.rows.length === {VEHICLES}")
    page.evaluate(
        "(() => { window.drawn = 0; const old = wavesim.chart.render; wavesim.chart.render = function (...a) { drawn++; return old.apply(this, a) } })()"
    )
    processes = [pid for pid in below(os.getpid()) if pid not in others]
    page.evaluate("wavesim.link.control('start')")
    page.keyboard.press("4")
    print(f"chart             {measure(page, processes, 'drawn', seconds)}", flush=True)
    page.keyboard.press("1")
    frames = "wavesim.view.frames"
    for name, waves, own in (
        ("waves and sky", "true", "null"),
        ("a level sea", "false", "null"),
        ("traffic too", "true", "0"),
    ):
        page.evaluate(f"wavesim.view.show.waves = wavesim.view.show.sky = {waves}; wavesim.app.selection.choose({own})")
        print(f"3D, {name:14}{measure(page, processes, frames, seconds)}", flush=True)
    page.evaluate("wavesim.link.control('pause')")
    page.wait_for_timeout(3000)
    print(f"nothing changes   {measure(page, processes, frames, seconds)}", flush=True)


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    with tempfile.TemporaryDirectory() as folder:
        command = [*CLI, "viz", str(log(Path(folder))), "--port", "0"]
        for name, flags in (("all on the emulated graphics processor", FLAGS), ("no graphics processor", NO_GPU)):
            print(name, flush=True)
            with viewer_and_browser(command, flags) as (viewer, url, browser):
                page = browser.new_context(viewport={"width": 1366, "height": 768}).new_page()
                page.goto(url)
                look(page, seconds, [viewer.pid])


if __name__ == "__main__":
    main()
