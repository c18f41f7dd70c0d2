"""Cost of each emulator against the number of bodies, and rays per second on every kind of sea bed.

python benchmarks/sensors.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np

from wavesim_emulators.base import no_faults
from wavesim_sdk.attach import Snapshot
from wavesim_sdk.config import Loaded, load
from wavesim_sdk.ocean.scene import Scene
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import IDENTITY, STATE

WALLS = '<obstacles><block position="30 0 10 m" size="2 40 20 m"/><pier position="-20 10 10 m" radius="2 m" height="20 m"/></obstacles>'
HILLS = '<bed depth="40 m" slope_north="0.05"><bump height="-15 m" north="20 m" east="10 m" alpha="0.03 1/m" beta="0.04 1/m"/></bed>'


def configuration(inner: str) -> Loaded:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.xml"
        path.write_text(f"<wavesim>{inner}</wavesim>")
        return load(path)


def emulators() -> None:
    names = [n for n in SENSORS if n not in ("encoder", "battery")]  # these two read a running server's actuators
    print(f"{'ms per value of all bodies':28} {'1':>8} {'100':>8} {'1000':>8}")
    classes = {e.name: e.load() for e in entry_points(group="wavesim.emulators")}
    for name in names:
        element = name.replace("_", "-")
        line = f"{name:28}"
        for bodies in (1, 100, 1000):
            world = f"<world>{HILLS}{WALLS}</world><shared vehicles='{bodies}'/>"
            emulator = classes[name](configuration(f"{world}<emulators><{element} send='no'/></emulators>"))
            identity, state = np.zeros(bodies, IDENTITY.dtype), np.zeros(bodies, STATE.dtype)
            identity["present"] = identity["generation"] = 1
            identity["name"] = [f"b{k}".encode() for k in range(bodies)]
            state["q_WB"][:, 0] = 1.0
            rng = np.random.default_rng(1)
            state["p_WB_W"] = np.column_stack([rng.uniform(-15, 15, (bodies, 2)), rng.uniform(1, 8, bodies)])
            out, faults = np.zeros(bodies, SENSORS[name].dtype), no_faults(bodies)
            best = np.inf
            for tick in range(6):
                before = time.perf_counter()
                emulator.compute(Snapshot(tick, tick * 4_000_000, np.arange(bodies), identity, state), faults, 1, out)
                best = min(best, time.perf_counter() - before)
            line += f" {best * 1e3:8.2f}"
        print(line)


def rays() -> None:
    rng = np.random.default_rng(0)
    d = rng.normal(size=(20_000, 3))
    d /= np.linalg.norm(d, axis=1)[:, None]
    print("\nrays per second on one core")
    for name, world in (("flat bed", '<bed depth="40 m"/>'), ("hills", HILLS), ("hills, wall, pier", HILLS + WALLS)):
        scene = Scene(configuration(f"<world>{world}</world>"))
        o = np.array([0.0, 0.0, 5.0]) + rng.uniform(-2, 2, (len(d), 3))
        best = np.inf
        for _ in range(3):
            before = time.perf_counter()
            scene.cast(o, d, 150.0)
            best = min(best, time.perf_counter() - before)
        print(f"{name:28} {len(d) / best:12.0f}")


if __name__ == "__main__":
    emulators()
    rays()
    sys.exit(0)
