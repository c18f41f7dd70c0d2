"""Measure how long the viewer's page takes to show bodies on the connection of a phone: 1.6 Mbit/s with a round trip of
150 ms ("Slow 4G" of Lighthouse), with an empty cache and with a filled one, for a log of 50 vehicles.

python -m benchmarks.first_view [repeats]

The first view has the bodies on the chart and in the list. The 3D view follows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.page import log, viewer_and_browser

SLOW_4G = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 750e3 / 8,
    "connectionType": "cellular4g",
}
# the viewer compresses its messages for pages on other machines: treat this one as such
REMOTE = (
    "from wavesim_viz import web; web._is_local = lambda address: False; from wavesim_sdk.console import main; main()"
)


def opened(page: Any, url: str) -> tuple[float, float, int]:
    """Return the times in ms until the first view and until the 3D view, and the bytes received until the first one."""
    page.goto(url, wait_until="commit")
    page.wait_for_function("() => window.wavesim?.view?.frames > 1", polling=20)
    last = page.evaluate("performance.now()")
    first = page.evaluate("performance.getEntriesByName('first picture')[0].startTime")
    size = page.evaluate(
        "(t) => performance.getEntries().filter(e => e.transferSize && e.responseEnd < t).reduce((n, e) => n + e.transferSize, 0)",
        first,
    )
    return first, last, size


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", REMOTE, "viz", str(log(Path(folder))), "--port", "0"]
        with viewer_and_browser(command) as (_, url, browser):
            for _ in range(repeats):
                context = browser.new_context(viewport={"width": 390, "height": 844}, device_scale_factor=2)
                page = context.new_page()
                page.context.new_cdp_session(page).send("Network.enable")
                page.context.new_cdp_session(page).send("Network.emulateNetworkConditions", SLOW_4G)
                for cache in ("empty", "filled"):
                    first, last, size = opened(page, url)
                    print(
                        f"{cache:6} cache: first view {first:5.0f} ms ({size / 1000:4.0f} kB), 3D {last:5.0f} ms",
                        flush=True,
                    )
                context.close()


if __name__ == "__main__":
    main()
