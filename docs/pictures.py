"""Draw the pictures of the documents anew: `make pictures` (needs Chromium; runs the demonstration trial first)."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

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


def main() -> None:
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


if __name__ == "__main__":
    main()
