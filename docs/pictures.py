"""Draw the pictures of the documents anew: `make pictures` (needs Chromium; runs the demonstration trial first).

python docs/pictures.py traffic    # only those of docs/traffic.md, which need neither
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
RUN = ROOT / "runs" / "demo"
CLI = [sys.executable, "-m", "wavesim_sdk.cli"]
FLAGS = [
    "--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist",
]  # fmt: skip


def viewer(*arguments: str | Path) -> tuple[subprocess.Popen[str], str]:
    """A viewer and its address."""
    process = subprocess.Popen([*CLI, *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    return process, "http://" + process.stderr.readline().split("http://")[1].split()[0]


def still(page: Any, time: float) -> None:
    """The replay at one moment, in full sharpness."""
    page.wait_for_function("() => window.wavesim && wavesim.store.rows.length > 0")
    page.evaluate(
        "(t) => { wavesim.view.sharp(); wavesim.link.control('seek', t); wavesim.link.control('speed', 0.02); wavesim.link.control('start') }",
        time,
    )
    page.wait_for_function(f"() => wavesim.store.time > {time + 0.11}", timeout=120_000)
    page.evaluate("wavesim.link.control('pause')")
    page.wait_for_timeout(3500)
    page.evaluate("document.querySelector('.toast')?.remove()")


def imazu(path: Path, cases: tuple[int, ...] = (5, 14)) -> None:
    """Tracks of encounters around the meeting, with a dot every twenty seconds: own ship among those who hold their course."""
    from matplotlib.figure import Figure

    from wavesim_studies.traffic import encounters
    from wavesim_studies.traffic.sail import SUITED, sail

    figure = Figure(figsize=(11, 5.6), layout="constrained")
    for axes, case in zip(figure.subplots(1, len(cases)), cases, strict=True):
        found = sail(encounters.imazu(case, *SUITED["otter"]), "otter", beyond=0.4)
        met = round(SUITED["otter"][1])
        for k, (name, track) in enumerate(found.tracks.items()):
            places = track.places if k == 0 else track.places[: met + 1]  # then they run into each other
            (line,) = axes.plot(places[:, 1], places[:, 0], lw=2.2 if k == 0 else 1.1, color=f"C{k}", zorder=3 - (k > 0))
            pair = next((q for q in found.score.pairs if q.other == name), None)
            near = f" ({pair.role.value}): nearest {pair.distance:.0f} m" if pair is not None else " ship"
            dots = places[::20]
            axes.plot(dots[:, 1], dots[:, 0], ".", color=line.get_color(), ms=10 if k == 0 else 7, label=f"{name}{near}")
        axes.set(xlabel="east (m)", ylabel="north (m)", aspect="equal", xlim=(-60, 180), ylim=(-200, 90), title=f"Imazu's case {case}: otter, 3 m/s; score {found.score.total:.2f}")  # fmt: skip
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=110)


def mission(path: Path) -> None:
    """Odin on the way-points of the NTNU thesis, in calm water and in a gale: the way from above, and how far it is from its lines."""
    from matplotlib.figure import Figure

    from wavesim_sdk.config import load
    from wavesim_studies.traffic.mission import rms, sail

    figure = Figure(figsize=(11, 5.4), layout="constrained")
    chart, off = figure.subplots(1, 2, width_ratios=(1, 1.3))
    for trial in ("usv-calm", "usv-gale", "usv-waves"):
        loaded = load(ROOT / "examples" / "trials" / f"{trial}.xml")
        found = sail(loaded, "odin", 45.0, 420.0)
        (line,) = chart.plot(found.places[:, 1], found.places[:, 0], lw=1.0)
        error = rms(found.off[found.times > 60.0])
        off.plot(found.times, found.off, lw=0.9, color=line.get_color(), label=f"{trial}: rms {error:.1f} m after a minute")
        body = next(b for b in loaded.config.fleet.bodies if b.name == "odin")
    legs = np.array([body.position[:2], *((w.north, w.east) for w in body.waypoint)])
    chart.plot(legs[:, 1], legs[:, 0], "k--", lw=0.8, marker="o", ms=4, zorder=0)
    chart.set(xlabel="east (m)", ylabel="north (m)", aspect="equal", title="four way-points, 5 m/s")
    off.set(xlabel="time (s)", ylabel="m", title="distance from legs and arcs")
    off.grid(alpha=0.3)
    off.legend(fontsize=8)
    figure.savefig(path, dpi=110)


def traffic() -> None:
    """Those of docs/traffic.md."""
    imazu(IMAGES / "imazu.png")
    mission(IMAGES / "usv-mission.png")
    print(IMAGES / "imazu.png", IMAGES / "usv-mission.png", sep="\n")


def main() -> None:
    if "traffic" in sys.argv[1:]:
        traffic()
        return
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium here: apt-get install chromium")
    for name in ("tracks", "navigation"):
        shutil.copy(RUN / f"{name}.png", IMAGES)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium, args=FLAGS)
        context = browser.new_context(viewport={"width": 1440, "height": 860})
        replay, url = viewer("viz", RUN / "run.mcap")
        page = context.new_page()
        page.goto(url)
        page.wait_for_function("() => window.wavesim && wavesim.store.rows.length > 0")
        page.locator("#fleet tr[data-row='0']").click()
        page.evaluate("wavesim.app.openOnboard(0)")
        page.evaluate("wavesim.link.control('seek', 380)")
        page.wait_for_timeout(6000)
        still(page, 401.0)
        page.screenshot(path=IMAGES / "mission-control.png")
        page.keyboard.press("o")
        page.keyboard.press("4")
        page.evaluate("wavesim.app.choose(null)")
        page.wait_for_timeout(1500)
        page.keyboard.press("Shift+L")
        page.wait_for_timeout(800)
        page.screenshot(path=IMAGES / "chart.png")
        page.keyboard.press("Shift+L")
        page.keyboard.press("1")
        page.evaluate("(() => { wavesim.app.choose(0); wavesim.view.show.magnify = false; wavesim.view.goTo(0) })()")
        page.wait_for_timeout(4000)
        page.screenshot(path=IMAGES / "close.png")
        page.close()
        replay.send_signal(signal.SIGTERM)
        replay.wait(10)
        configure, url = viewer("configure")
        page = context.new_page()
        page.goto(url + "#configure")
        page.wait_for_selector("#verdict.good")
        page.evaluate("configure.choose(configure.tree().model.children.find(c => c.tag === 'mass'))")
        page.click("#try-turn")
        page.wait_for_selector("#way", timeout=120_000)
        page.wait_for_timeout(3000)
        page.evaluate("document.querySelector('.toast')?.remove()")
        page.screenshot(path=IMAGES / "configurator.png")
        configure.send_signal(signal.SIGTERM)
        configure.wait(10)
        browser.close()
    for name in ("tracks", "navigation", "mission-control", "chart", "close", "configurator"):
        print(IMAGES / f"{name}.png")
    traffic()


if __name__ == "__main__":
    main()
