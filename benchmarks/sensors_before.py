"""Measure each emulator in a checkout from before bodies had individual instruments; `benchmarks/sensors.py --against`
runs it there.

All bodies had the same set of sensors then, so there are no five suites to measure.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np

from wavesim_sdk.attach import FleetSnapshot
from wavesim_sdk.sensors import SENSORS
from wavesim_sdk.tables import ACTUATION, IDENTITY, STATE
from wavesim_world.config import load


def main(world: str, names: list[str], counts: list[int], ticks: int) -> None:
    from wavesim_emulators import base

    classes = {e.name: e.load() for e in entry_points(group="wavesim.emulators")}
    found: dict[str, dict[str, float]] = {}
    for name in names:
        for bodies in counts:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "bench.xml"
                element = name.replace("_", "-")
                path.write_text(
                    f"<wavesim><world>{world}</world><shared vehicles='{bodies}'/><emulators><{element} send='no'/></emulators></wavesim>"
                )
                emulator = classes[name](load(path))
            actuation = np.zeros(bodies, ACTUATION.dtype)
            emulator.actual = lambda view, rows, a=actuation: np.asarray(a["actual"][rows])
            identity, state = np.zeros(bodies, IDENTITY.dtype), np.zeros(bodies, STATE.dtype)
            identity["present"] = identity["generation"] = 1
            identity["name"], identity["model"] = [f"b{k}".encode() for k in range(bodies)], b"lauv"
            place(state)
            out = np.zeros(bodies, SENSORS[name].dtype)
            none: Any = base.no_faults(bodies)  # type: ignore[attr-defined]  # of that checkout
            best = np.inf
            for tick in range(ticks):
                before = time.perf_counter()
                emulator.compute(
                    FleetSnapshot(tick, tick * 4_000_000, np.arange(bodies), identity, state), none, 1, out
                )
                best = min(best, time.perf_counter() - before)
            found.setdefault(name, {})[str(bodies)] = best
    print(json.dumps(found))


def place(state: Any) -> None:
    """Return bodies about 30 m from each other, 1 to 8 m deep."""
    rng = np.random.default_rng(1)
    side = 15.0 * np.sqrt(len(state))
    state["q_WB"][:, 0] = 1.0
    state["p_WB_W"][:, :2] = rng.uniform(-side, side, (len(state), 2))
    state["p_WB_W"][:, 2] = rng.uniform(1.0, 8.0, len(state))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
