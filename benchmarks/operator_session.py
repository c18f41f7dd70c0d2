"""Work at the page as an operator does, with a real server, programs and emulators, and report every surprise.

Rounds of all tasks, in an order that differs between rounds. After each task the session checks what the page shows, that
no error or warning reached the console, that the server answered every request, and that no alarm was raised but those
that the task provokes. After each round it measures the memory of the page in the same state.

python -m benchmarks.operator_session [--minutes 30] [--only TASK] [--shots FOLDER]

The exit code is 1 if there was a surprise.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

from docs.pictures import FLAGS
from playwright.sync_api import expect, sync_playwright
from tests.viz.browser import Page, chromium

from benchmarks.operator_tasks import TASKS, VEHICLES, mode
from benchmarks.operator_world import World

#: increase of the page's memory between the second and the last round that counts as flat: share, and the noise of a measurement
HEAP_SHARE, HEAP_MB, NODES, LISTENERS = 0.15, 4.0, 400, 200

PATIENCE_MS = 90_000  #: a busy machine is slow, which is no surprise


class Desk:
    """The operator's page and what is expected of it."""

    def __init__(self, world: World, page: Page, shots: Path | None = None) -> None:
        self.world, self.page, self.shots = world, page, shots
        self.surprises: list[str] = []
        self.provoked: set[tuple[str, str]] = set()  #: (kind of alarm, body) that the present task may raise
        #: the same for alarms that come minutes later: a new current or a wrong speed log misleads the navigators
        self.provoked_for_long: set[tuple[str, str]] = set()
        self.requests: dict[str, float] = {}  #: open HTTP requests, with the time of each
        page.page.on("request", lambda r: self.requests.setdefault(r.url, time.monotonic()))
        for event in ("requestfinished", "requestfailed"):
            page.page.on(event, lambda r: self.requests.pop(r.url, None))
        page.page.on("response", lambda r: self.surprise(f"{r.status} from {r.url}") if r.status >= 400 else None)
        page.page.on("dialog", lambda d: d.accept())

    def shot(self, name: str) -> None:
        """Save a picture of the page, if the operator keeps pictures."""
        if self.shots:
            self.page.page.wait_for_timeout(500)  # until the page has drawn it
            self.page.page.screenshot(path=self.shots / f"{name}.png")

    def surprise(self, text: str) -> None:
        self.surprises.append(text)
        print(f"SURPRISE {text}", flush=True)

    def check(self, task: str) -> None:
        """Check what must hold after each task."""
        page = self.page
        try:
            page.clean()
        except AssertionError as error:
            self.surprise(f"{task}: {error}")
            page.errors.clear()
            page.requests.clear()
            page.protocol.faults.clear()
        for url, since in list(self.requests.items()):
            if time.monotonic() - since > 10.0:
                self.surprise(f"{task}: no answer from {url}")
                del self.requests[url]
        for toast in page.see("[...document.querySelectorAll('.toast.bad')].map(e => e.textContent)"):
            self.surprise(f"{task}: refused: {toast}")
        for banner in page.see(
            "[...document.querySelectorAll('.banner')].filter(e => e.checkVisibility()).map(e => e.textContent)"
        ):
            self.surprise(f"{task}: banner: {banner}")
        alarms = page.see("wavesim.store.alarms.filter(a => !a.seen).map(a => [a.kind, a.name, a.text])")
        for kind, name, text in alarms:
            if (kind, name) not in self.provoked | self.provoked_for_long:
                self.surprise(f"{task}: alarm {kind} of {name!r}: {text}")
        if alarms:
            page.see("wavesim.link.acknowledge(null)")
            page.wait("wavesim.store.alarms.every(a => a.seen)")
        self.provoked.clear()

    def memory(self) -> tuple[float, int, int]:
        """Return the page's JavaScript heap in MB, DOM nodes and event listeners, after a garbage collection."""
        session = self.page.page.context.new_cdp_session(self.page.page)
        session.send("Performance.enable")
        for _ in range(2):
            session.send("HeapProfiler.collectGarbage")
        found = {m["name"]: m["value"] for m in session.send("Performance.getMetrics")["metrics"]}
        session.detach()
        return found["JSHeapUsedSize"] / 1e6, int(found["Nodes"]), int(found["JSEventListeners"])


def rounds(only: str, seed: int) -> Iterator[list[str]]:
    """Tasks of each round, in an order of its own."""
    dice, names = random.Random(seed), [n for n in TASKS if re.fullmatch(only, n)]
    while True:
        yield dice.sample(names, len(names))


def work(desk: Desk, minutes: float, only: str, seed: int) -> None:
    """Do tasks in rounds until the time is over, two rounds at least."""
    end, memories = time.monotonic() + 60.0 * minutes, []
    for number, tasks in enumerate(rounds(only, seed), 1):
        for task in tasks:
            since = time.monotonic()
            if since > end and number > 2:
                break
            try:
                TASKS[task](desk)
            except Exception as error:  # one surprise, then the next task
                lines = traceback.extract_tb(error.__traceback__)
                place = next(
                    (f"{Path(x.filename).name}:{x.lineno}" for x in reversed(lines) if "operator_" in x.filename), ""
                )
                desk.surprise(f"{task} ({place}): {str(error).splitlines()[0] if str(error) else error!r}")
                desk.shot(f"surprise-{len(desk.surprises)}")
                desk.page.page.goto(desk.world.url)
                desk.page.wait("window.wavesim && wavesim.view && wavesim.store.rows.length")
            desk.check(task)
            print(f"round {number}  {time.monotonic() - since:5.1f} s  {task}", flush=True)
        desk.page.see("wavesim.app.selection.choose(null); wavesim.app.bottom.show('signals')")
        desk.page.page.wait_for_timeout(3000)
        memories.append(desk.memory())
        print("round {}  heap {:.1f} MB, {} nodes, {} listeners".format(number, *memories[-1]), flush=True)
        if time.monotonic() > end and number >= 2:
            break
    first, last = memories[min(1, len(memories) - 1)], memories[-1]
    allowed = (first[0] * (1.0 + HEAP_SHARE) + HEAP_MB, first[1] + NODES, first[2] + LISTENERS)
    for name, value, most in zip(("heap in MB", "nodes", "listeners"), last, allowed, strict=True):
        if value > most:
            desk.surprise(f"memory: {name} grew to {value:.0f}; at most {most:.0f} expected")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--only", default=".*", help="pattern of task names")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shots", type=Path, help="folder for pictures of the tasks and of surprises")
    a = parser.parse_args()
    if a.shots:
        a.shots.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends the processes of the world
    with tempfile.TemporaryDirectory() as folder, World(Path(folder)) as world, sync_playwright() as p:
        browser = p.chromium.launch(executable_path=chromium(), args=FLAGS)
        context = browser.new_context(viewport={"width": 1280, "height": 720})
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page = Page(context, world.url)
        page.wait("wavesim.store.rows.length === 7 && wavesim.store.time > 5")
        # a program takes commands when its instruments have values
        page.wait(" && ".join(mode(name) for name in VEHICLES), timeout=300.0)
        page.page.keyboard.press("4")  # the chart needs the least of the machine
        desk = Desk(world, page, a.shots)
        work(desk, a.minutes, a.only, a.seed)
        browser.close()
    for number, text in zip(itertools.count(1), desk.surprises, strict=False):
        print(f"{number}. {text}")
    print(f"{len(desk.surprises)} surprises")
    sys.exit(1 if desk.surprises else 0)


if __name__ == "__main__":
    main()
