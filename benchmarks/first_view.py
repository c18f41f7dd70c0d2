"""Measure how long the viewer's page takes to show bodies on the connection of a phone: 1.6 Mbit/s with a round trip of
150 ms ("Slow 4G" of Lighthouse), with an empty cache and with a filled one, for a log of 50 vehicles.

python -m benchmarks.first_view [repeats]

The first view has the bodies on the chart and in the list. The 3D view follows. An empty page (one script of no
content) and this page on the same machine without a delay show the shares of the browser and of the connection.
The browser's emulation counts messages of a websocket before compression, which real connections do not.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

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
EMPTY = """<!doctype html><script type="module" src="/script.js"></script>"""
SCRIPT = "requestAnimationFrame(() => performance.mark('first picture'))"
FIRST = "performance.getEntriesByName('first picture')[0].startTime"
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}


@contextmanager
def empty_page() -> Iterator[str]:
    """Serve a page with one small script in a thread."""
    app, loop, ready = web.Application(), asyncio.new_event_loop(), threading.Event()
    found: list[str] = []

    async def page(_: web.Request) -> web.Response:
        return web.Response(text=EMPTY, content_type="text/html")

    async def script(_: web.Request) -> web.Response:
        return web.Response(
            text=SCRIPT, content_type="text/javascript", headers={"Cache-Control": "max-age=3600, immutable"}
        )

    async def start() -> None:
        app.add_routes([web.get("/", page), web.get("/script.js", script)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        found.append(f"http://127.0.0.1:{runner.addresses[0][1]}/")
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def opened(context: Any, url: str, slow: bool, until: str) -> tuple[float, float, int]:
    """Open a page; return the times in ms until the first view and until a condition, and the bytes received until the
    first view.
    """
    page = context.new_page()  # a new one: a page that is left takes time from the next one
    if slow:
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.emulateNetworkConditions", SLOW_4G)
    page.goto(url, wait_until="commit")
    page.wait_for_function(f"() => {until}", polling=20)
    last, first = page.evaluate("performance.now()"), page.evaluate(FIRST)
    size = page.evaluate(
        "(t) => performance.getEntries().filter(e => e.transferSize && e.responseEnd < t).reduce((n, e) => n + e.transferSize, 0)",
        first,
    )
    page.close()
    return first, last, size


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    drawn, marked = "window.wavesim?.view?.frames > 1", "performance.getEntriesByName('first picture').length"
    with tempfile.TemporaryDirectory() as folder, empty_page() as empty:
        command = [sys.executable, "-c", REMOTE, "viz", str(log(Path(folder))), "--port", "0"]
        with viewer_and_browser(command) as (_, url, browser):
            for _ in range(repeats):
                for slow, line in ((True, "phone"), (False, "no delay")):
                    context = browser.new_context(**PHONE)
                    for cache in ("empty", "filled"):
                        first, last, size = opened(context, url, slow, drawn)
                        least = opened(context, empty, slow, marked)[0]
                        print(
                            f"{line:8}, {cache:6} cache: first view {first:5.0f} ms ({size / 1000:4.0f} kB), "
                            f"3D {last:5.0f} ms; empty page {least:5.0f} ms",
                            flush=True,
                        )
                    context.close()


if __name__ == "__main__":
    main()
