"""Measure what instruments cost a program that uses the library: one vehicle with CTD, AHRS and DVL, 10 000 vehicles with
CTD and AHRS, and a value in an emulator process. The engine alone is measured in turn with them.

    python -m benchmarks.instruments [OTHER_CHECKOUT]

With another checkout, each figure is also measured with its packages, in turn. Times are processor times, because
machines are noisy: compare the ratios.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators")
ROUNDS, TURNS = 5, 3
FLEET = 10_000


def library(sensors: str, vehicles: int, step: str) -> Any:
    """Return a library run of vehicles under way, 100 m from each other."""
    from wavesim_server import Lab

    lab = Lab(
        f"<wavesim><time step='{step}'/><shared vehicles='{vehicles}'/><world><bed depth='100 m'/></world>"
        f"<fleet><sensors>{sensors}</sensors></fleet></wavesim>"
    )
    for k in range(vehicles):
        lab.enter(f"auv{k}", "lauv", (100.0 * (k % 100), 100.0 * (k // 100), 15.0))
    lab.commands({name: {"propeller": 8.0} for name in lab.names})
    return lab


def processor_time(run: Callable[[], object]) -> float:
    """Return the processor time of a function in s."""
    start = time.process_time()
    run()
    return time.process_time() - start


def in_turn(lab: Any, seconds: float) -> tuple[float, float]:
    """Return the real-time factors of the engine alone and with instruments: the maximum of rounds in turn."""
    from wavesim_server import Simulation

    ticks = round(seconds * 1e9) // lab.step_ns
    runs = (lambda: Simulation.advance(lab, ticks), lambda: lab.advance(ticks))
    for run in runs:
        run()
    times = [[processor_time(run) for run in runs] for _ in range(ROUNDS)]
    without, with_ = (min(column) for column in zip(*times, strict=True))
    return seconds / without, seconds / with_


def emulator(name: str) -> float:
    """Return the processor time in us that an emulator needs for a value of one vehicle, at its own tick."""
    import numpy as np

    from wavesim_sdk.attach import FleetSnapshot
    from wavesim_sdk.tables import WEATHER

    lab = library(f"<{name} rate='250 Hz'/>", 1, "4 ms")
    lab.advance(1)
    bank = (lab._banks.by_type if hasattr(lab, "_banks") else lab._stations)[name]
    tables = {"instruments": lab.instruments.rows, "weather": np.zeros(1, WEATHER.dtype)}
    rows, least, tick = np.array(lab.rows), np.inf, 10
    for _ in range(ROUNDS):
        views = [
            FleetSnapshot(tick + k, (tick + k) * lab.step_ns, rows, lab.identity, lab.state(), tables, (-1,))
            for k in range(200)
        ]

        def compute(views: list[FleetSnapshot] = views) -> None:
            for view in views:
                bank.compute(view, view.tick)

        took = processor_time(compute)
        least, tick = min(least, took / len(views)), tick + len(views)
    return float(least * 1e6)


def figures() -> dict[str, float]:
    """Return all figures of this checkout."""
    engine, one = in_turn(library("<ctd/><ahrs/><dvl/>", 1, "4 ms"), 20.0)
    found = {"one vehicle: engine alone, x real time": engine, "one vehicle: CTD, AHRS, DVL, x real time": one}
    found["one vehicle: with instruments / engine alone"] = one / engine
    engine, many = in_turn(library("<ctd/><ahrs/>", FLEET, "10 ms"), 0.3)
    found |= {"10 000: engine alone, x real time": engine, "10 000: CTD, AHRS, x real time": many}
    found["10 000: with instruments / engine alone"] = many / engine
    return found | {f"emulator, us per value: {name}": emulator(name) for name in ("ctd", "ahrs", "dvl", "echosounder")}


def measured_in(checkout: Path) -> dict[str, float]:
    """Return the figures of a checkout, measured by a process of its own."""
    path = os.pathsep.join(str(checkout / part) for part in PARTS)
    done = subprocess.run(
        [sys.executable, __file__, "--json"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    if sys.argv[1:] == ["--json"]:
        print(json.dumps(figures()))
        return
    checkouts = [ROOT, *map(Path, sys.argv[1:2])]
    rounds: list[list[dict[str, float]]] = [[] for _ in checkouts]
    for _ in range(TURNS if len(checkouts) > 1 else 1):
        for checkout, found in zip(checkouts, rounds, strict=True):
            found.append(measured_in(checkout))
    for name in rounds[0][0]:
        best = [(min if "us per" in name else max)(r[name] for r in found) for found in rounds]
        print(f"{name:48}" + "".join(f" {value:10.2f}" for value in best))


if __name__ == "__main__":
    main()
