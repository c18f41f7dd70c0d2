"""A source of pictures without a server, with one moving body and parts that can be made to fail, and a viewer for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from aiohttp import web

from wavesim_viz import scene
from wavesim_viz.alarms import BodyHealth
from wavesim_viz.frame import ViewerFrame, bodies
from wavesim_viz.live import SourceConfiguration
from wavesim_viz.page_protocol import CommanderRequest, FaultRequest, FencesRequest, VehicleCommandRequest
from wavesim_viz.s57 import ChartCell
from wavesim_viz.tiles import Tileset
from wavesim_viz.web import AccessPolicy, make_app


class Stage:
    """A source that moves one body."""

    kind, name, trouble = "live", "stage", ""

    def __init__(self, file: str = "") -> None:
        self.tick = 0
        self.verbs: list[tuple[str, float | None]] = []
        self.faults: list[FaultRequest] = []
        self.orders: list[CommanderRequest] = []
        self.commands: list[VehicleCommandRequest] = []
        self.fenced: list[dict[str, Any]] = []  #: its fences
        self.kits: dict[int, dict[str, Any]] = {}
        self.broken: set[str] = set()  #: names of methods that raise
        self.described: dict[str, Any] = {**scene.empty("stage"), "file": file, "models": {}}

    def _work(self, part: str) -> None:
        if part in self.broken:
            raise RuntimeError(f"{part} is broken")

    def scene(self) -> tuple[int, dict[str, Any]]:
        self._work("scene")
        return 1, self.described

    def configuration(self) -> SourceConfiguration:
        return SourceConfiguration(str(self.described["file"]), "a note")

    def roster(self) -> list[list[Any]]:
        self._work("roster")
        return [[0, "a", "lauv", "underwater", 1]]

    def frame(self) -> ViewerFrame:
        self.tick += 1
        self._work("frame")
        p = np.array([[self.tick, 2.0, 3.0]])
        return ViewerFrame(self.tick * 0.1, self.tick, 1, bodies([0], p, [[1, 0, 0, 0]], np.array([[3.0, 4.0, 0.0]])))

    def new_signals(self) -> None:
        self._work("sounds")

    def beliefs(self) -> list[list[float]]:
        self._work("beliefs")
        return []

    def sea_components(self) -> list[list[float]] | None:
        self._work("sea")
        return None

    def cables(self) -> list[dict[str, Any]]:
        self._work("cables")
        return []

    def fences(self) -> list[dict[str, Any]]:
        self._work("fences")
        return self.fenced

    def change_fences(self, wanted: FencesRequest) -> tuple[bool, str]:
        self._work("fences")
        for change in wanted.changes:
            self.fenced = [f for f in self.fenced if f["name"] != change["name"]]
            self.fenced += [change] if change["corners"] else []
        return True, "done"

    def health(self) -> BodyHealth:
        self._work("vitals")
        return BodyHealth()

    def fleet(self) -> dict[str, Any]:
        return {"charges": {}, "missions": {}}

    def command(self, request: VehicleCommandRequest) -> tuple[bool, str]:
        self.commands.append(request)
        return True, "accepted"

    def weather(self) -> dict[str, Any]:
        self._work("weather")
        return {"weather": None, "clients": [], "connected": 0}

    def log_state(self) -> str:
        self._work("log")
        return "ok"

    def panel(self, row: int) -> dict[str, Any]:
        self._work(f"panel {row}")
        motion = {"position": [0, 0, 3], "euler": [0, 0, 0], "velocity": [0, 0, 0], "rates": [0, 0, 0], "water": None}
        return {"row": row, "time": self.tick, "identity": {}, "motion": motion}

    def equipment(self, row: int) -> dict[str, Any]:
        self._work(f"kit {row}")
        return self.kits.setdefault(row, {"row": row, "generation": 1, "actuators": [], "sensors": []})

    def fault(self, wanted: FaultRequest) -> tuple[bool, str]:
        self._work("fault")
        self.faults.append(wanted)
        return True, "done"

    def run_order(self, wanted: CommanderRequest) -> tuple[bool, str]:
        self._work("order")
        self.orders.append(wanted)
        return True, "done"

    def control(self, verb: str, value: float | None) -> tuple[bool, str]:
        self._work("control")
        self.verbs.append((verb, value))
        return True, "done"

    def close(self) -> None:
        pass


@contextlib.contextmanager
def on_stage(source: Stage, folder: Path, tiles: Tileset | None = None, cell: ChartCell | None = None) -> Iterator[str]:
    """A viewer of a source in a thread, whose pages may control; its address."""
    ready, found = threading.Event(), dict[str, Any]()

    async def serve() -> None:
        stop = asyncio.Event()
        access = AccessPolicy.make("127.0.0.1", 1, True)
        runner = web.AppRunner(make_app(source, 20.0, access, folder, tiles=tiles, cell=cell), shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        access.names, access.port = {f"127.0.0.1:{port}"}, port
        found.update(url=access.url(access.control_token), loop=asyncio.get_running_loop(), stop=stop)
        ready.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(10)
    try:
        yield found["url"]
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(10)
