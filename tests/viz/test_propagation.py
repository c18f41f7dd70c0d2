"""Rays, losses and sound-speed sections on the page, of a running server and of its log, as `wavesim acoustics` computes
them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.conftest import CLI, Server
from tests.viz.browser import Page, Viewer
from tests.viz.sea import READY
from wavesim_world.config import LoadedConfig

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("browser"), pytest.mark.timeout(600)]

# a vehicle that drifts under a thermocline, between two beacons
WARM = """<time step="10 ms"/>
<world>
  <current north="0.5 m/s"/><bed depth="18 m"/>
  <temperature surface="19 C" knee_1="4 m" knee_2="9 m" gradient_1="-0.9 C/m" gradient_2="-0.02 C/m"/>
  <conductivity surface="4.62 S/m" knee_1="4 m" knee_2="9 m" gradient_1="-0.085 S/m/m" gradient_2="-0.002 S/m/m"/>
</world>
<acoustics profile="water" formula="chen-millero" sound_speed="1508 m/s" temperature="15 C" ambient_noise="75 dB">
  <multipath order="2" surface_loss="1 dB" bottom_speed="1650 m/s" bottom_density="1.9" bottom_attenuation="0.8"/>
</acoustics>
<fleet>
  <vehicle name="auv" model="lauv" position="0 0 6 m" attitude="0 0 30 deg" client="none"><transducer position="0.3 0 -0.1 m"/></vehicle>
  <buoy name="lbl1" model="buoy" position="200 150 6 m"><transducer position="0 0 0.3 m"/></buoy>
  <buoy name="lbl2" model="buoy" position="-150 200 6 m"><transducer position="0 0 0.3 m"/></buoy>
</fleet>"""
PANEL = "wavesim.app.bottom.propagation"
RAYS = "[...document.querySelectorAll('#rays tbody tr')].map(r => [...r.cells].map(c => c.textContent))"


def acoustics_processes(viewer: Viewer) -> list[int]:
    """Numbers of the acoustics processes that a viewer has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = int(path.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            command = path.joinpath("cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == viewer.process.pid and b"--serve" in command:
            found.append(int(path.name))
    return found


class Watched:
    """A page with the panel, and what it has requested."""

    def __init__(self, page: Page, config: Path) -> None:
        self.page, self.config = page, config
        self.requests: list[dict[str, Any]] = []
        page.page.on(
            "request", lambda r: self.requests.append(r.post_data_json) if r.url.endswith("/acoustics") else None
        )

    def kinds(self) -> set[str]:
        return {r["kind"] for r in self.requests}

    def settle(self) -> None:
        """Wait until the page has all answers about what it shows."""
        self.page.wait(
            f"(p => ['rays', 'field'].every(k => !p.requests[k].busy && p.requests[k].wanted && p.requests[k].asked === p.requests[k].wanted.key)"
            f" && p.answers.rays && p.answers.field)({PANEL})",
            300,
        )

    def compare(self) -> None:
        """The rays of the last answer are those of the command."""
        self.settle()
        r = [r for r in self.requests if r["kind"] == "rays"][-1]
        ends = [",".join(repr(float(v)) for v in r[end]) for end in ("source", "receiver")]
        words = ["acoustics", self.config, f"--from={ends[0]}", f"--to={ends[1]}", "--frequency", "25 kHz"]
        out = subprocess.run(
            [*CLI, *map(str, words), "--time", f"{r['time']} s", "--json"], capture_output=True, text=True
        )
        assert out.returncode == 0, out.stderr
        expected = json.loads(out.stdout)["arrivals"]
        self.page.wait(f"{RAYS}.length === {len(expected)}")
        shown = self.page.see(RAYS)
        assert len(shown) == len(expected) > 2
        for row, ray in zip(shown, expected, strict=True):
            assert float(row[1]) == pytest.approx(1e3 * ray["time"], abs=6e-4)
            assert float(row[2]) == pytest.approx(ray["loss"], abs=0.06)
            assert float(row[5]) == pytest.approx(ray["straight_line_error"], abs=6e-4)


def test_rays_of_a_running_server_and_of_its_log(
    config: Callable[..., LoadedConfig],
    serve: Callable[..., Server],
    view: Callable[..., Viewer],
    open_page: Callable[[str], Page],
    name: str,
    tmp_path: Path,
) -> None:
    path, log = config(WARM).path, tmp_path / "run.mcap"
    server = serve(path, "--log", str(log))
    server.send("step", ticks=200)
    viewer = view("-s", name)
    page = open_page(viewer.url)
    page.wait(READY)
    watched = Watched(page, path)

    # nothing is computed until the panel is open
    assert not acoustics_processes(viewer) and not watched.requests
    page.see("wavesim.app.bottom.show('propagation')")
    watched.compare()
    assert watched.kinds() == {"rays", "section"} and len(acoustics_processes(viewer)) == 1
    assert page.see(f"[{PANEL}.view.source, {PANEL}.view.receiver]") == ["auv", "lbl1"]
    assert page.page.locator("#rays .first-ray").count() == 1
    page.wait(f"{PANEL}.space && (async () => (await {PANEL}.space).strong.object.visible)()")
    speeds = page.see(f"{PANEL}.answers.field.values.flat().filter(v => v !== null)")
    assert 1503.0 < min(speeds) < 1506.0 and 1516.0 < max(speeds) < 1520.0

    # the process dies, and the vehicle moves on
    first = acoustics_processes(viewer)
    os.kill(first[0], signal.SIGKILL)
    before = page.see(f"{PANEL}.answers.rays.rays[0].time")
    server.send("step", ticks=500)
    page.wait(f"{PANEL}.answers.rays?.of.time > 6.9", 300)
    watched.compare()
    assert acoustics_processes(viewer) not in ([], first)
    assert page.see(f"{PANEL}.answers.rays.rays[0].time") != before

    # losses have a process of their own, and a plane at a depth
    page.page.select_option("#propagation-field", "plane")
    page.page.fill("#propagation-depth", "8")
    page.page.keyboard.press("Tab")
    page.wait(f"{PANEL}.answers.field?.plane === 'horizontal' && {PANEL}.answers.field.of.request.depth === 8", 300)
    assert len(acoustics_processes(viewer)) == 2
    page.wait(f"(async () => (await {PANEL}.space).plane.visible)()")

    # to a point of the chart, and a mistake
    page.page.select_option("#propagation-field", "speed")
    page.page.select_option("#propagation-receiver", label="a point on the chart…")
    page.see("wavesim.chart.click(-60, 80)")
    page.wait(f"JSON.stringify({PANEL}.view.receiver) === '[-60,80,10]'")
    watched.compare()
    page.see(f"{PANEL}.view = {{ ...{PANEL}.view, receiver: 'ghost' }}")
    trouble = page.page.locator("#propagation-trouble")
    expect(trouble).to_have_text("'ghost' is not in the simulation at this time; select another body")
    page.see(f"{PANEL}.view = {{ ...{PANEL}.view, receiver: [500, 0, 40] }}")
    expect(trouble).to_contain_text("below the bed", timeout=60_000)
    page.see(f"{PANEL}.view = {{ ...{PANEL}.view, receiver: 'lbl2' }}")
    watched.compare()
    page.page.click("#link")
    link = page.see("location.hash")

    # a closed panel requests nothing
    page.see("wavesim.app.bottom.show('signals')")
    page.wait(f"!{PANEL}.open")
    count = len(watched.requests)
    server.send("step", ticks=100)
    page.wait("wavesim.store.last.time > 7.9")
    assert len(watched.requests) == count
    refused = [e for e in page.errors if "status of 400" in e]  # Chromium reports the refused request too
    assert refused
    page.errors = [e for e in page.errors if e not in refused]
    page.clean()
    page.page.close()
    assert len(acoustics_processes(viewer)) == 2
    viewer.end()
    assert not acoustics_processes(viewer)
    server.end()

    replayed = view(log)
    page = open_page(replayed.url + link)
    watched = Watched(page, path)
    page.wait(f"{PANEL}.view.receiver === 'lbl2' && {PANEL}.open")
    page.see("wavesim.link.control('pause'); wavesim.link.control('seek', 5)")
    page.wait(f"Math.abs({PANEL}.answers.rays?.of.time - 5) < 1e-6", 300)
    watched.compare()
    page.clean()
