"""Measure the table of speed in docs/evidence/performance.md in one run.

Kernels are measured in processor time of one core, which other programs disturb least; the trial and its start in wall
time.

    python -m benchmarks.table [--core] [--against OTHER_CHECKOUT]

``--core`` skips the trial and the compilation, more than half of the time. Another checkout is measured in turn, with
ratios.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # the floor is that of one core

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators", "viz", "bridges")
ROUNDS = 3
FLOOR = "  the floor of its multiply-adds, ns"


def of_a_core() -> dict[str, float]:
    """Measure the checkout whose sources are imported."""
    from benchmarks import acoustics, kernel, network, paired
    from wavesim_world.config import library

    time.perf_counter = time.process_time
    found = {}
    for n in (100, 1000):
        found[f"core RK4 step, {n} vehicles, ns"] = kernel.per_vehicle(kernel.fleet(n, ["core"], kernel.CORE), n)
    found[FLOOR] = kernel.CORE_FLOPS / kernel.peak() * 1e9
    found["one vehicle, ns"] = kernel.per_vehicle(kernel.fleet(1, ["core"], kernel.CORE), 1)
    found["  the call from Python in it, ns"], found["  a step within a call, ns"] = kernel.of_one_vehicle()
    found["mixed fleet of 100, ns"] = kernel.per_vehicle(kernel.fleet(100, sorted(library())), 100)
    lone = kernel.fleet(1, ["lauv"])
    found["one LAUV: a call of advance(1), us"] = kernel.best(lambda: lone.advance(), 2000) * 1e6
    found["  a tick within advance(50), ns"] = kernel.best(lambda: lone.advance(50), 400) / 50 * 1e9
    whole = kernel.fleet(1000, ["lauv"])
    found["whole tick of 1000, ns"] = paired.least(lambda: whole.advance(20), 7) / 20 / 1000 * 1e9
    one, two = zip(*kernel.by_threads(2, 10_000, ["lauv"]), strict=True)
    found["two threads, 10 000 LAUVs, x one"] = min(one) / min(two)
    few, many = (
        acoustics.measure(1000, 1000, 50e3, 5e3, 2.0, False),
        acoustics.measure(1000, 1000, 5e3, 5e3, 0.4, False),
    )
    found["reception, few at once, us"] = few["us"] / few["arrivals"]
    found["reception where all hear all, us"] = many["us"] / many["arrivals"]
    found["body at rest on the bed, us a tick"] = paired.resting()[0]
    found["library, 100 vehicles, 20 beacons, x real time"] = network.talking(False, 4, 20.0)[0]
    return found


def of(root: Path) -> dict[str, float]:
    """Measure a checkout in a separate process that runs this file on its sources and benchmarks."""
    path = os.pathsep.join(str(root / part) for part in (*PARTS, "."))
    run = subprocess.run(
        [sys.executable, __file__, "--figures"], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    if run.returncode:
        sys.exit(f"{root}: {run.stderr}")
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--core", action="store_true", help="skip trial and compilation")
    parser.add_argument("--against", type=Path, help="root of another checkout")
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.figures:
        print(json.dumps(of_a_core()))
        return
    print(f"# load {os.getloadavg()[0]:.1f}; the best of {ROUNDS} rounds")
    best: list[dict[str, float]] = [{}, {}]
    roots = [ROOT, *([a.against.resolve()] if a.against else [])]
    for _ in range(ROUNDS):
        for kept, root in zip(best, roots, strict=False):
            for name, value in of(root).items():
                better = max if name.endswith(("x real time", "x one")) else min
                kept[name] = better(kept.get(name, value), value)
    for name, value in best[0].items():
        beside = f" {best[1][name]:9.2f} {value / best[1][name]:7.2f}" if a.against else ""
        print(f"{name:50} {value:9.2f}{beside}", flush=True)
    ratios = (f"{best[0][f'core RK4 step, {n} vehicles, ns'] / best[0][FLOOR]:.2f}" for n in (100, 1000))
    print(f"  core, 100 and 1000 vehicles: {', '.join(ratios)} times the floor")
    if not a.core:
        print(f"# load {os.getloadavg()[0]:.1f}")
        from benchmarks import trial

        for _ in range(ROUNDS):
            trial.real_time_factor()
        subprocess.run([sys.executable, "-m", "benchmarks.compilation"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
