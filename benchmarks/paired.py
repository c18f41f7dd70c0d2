"""Compare the kernels of two checkouts in turn, in one run: ratios, and whether both results are bit-identical.

    python -m benchmarks.paired OTHER_CHECKOUT [--rounds 5]

Machines are noisy, so it counts processor time and compares only figures of the same minutes: the median of the ratios
of pairs, and the ratio of the minimum values. ``OTHER_CHECKOUT`` is the root of another checkout, whose sources and
benchmarks are used for its half.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PARTS = ("broker_sdk", "kernels", "world", "devices", "conformance", "server", "emulators", "viz", "bridges")
FLEET = "".join(
    f'<vehicle name="v{k}" model="lauv" position="{90 * k} {40 * (k % 3)} {3 + 1.3 * k} m" speed="1 m/s"><transducer '
    f'threshold="60 dB"><modem address="{k + 1}"/></transducer></vehicle>'
    for k in range(10)
)
MULTIPATH = '<multipath order="2" bottom_speed="1650 m/s" bottom_density="1.9"/>'
#: environment and acoustics
WATERS = {
    "sound by images": ('<bed depth="60 m"/>', f"<acoustics>{MULTIPATH}</acoustics>"),
    "sound in a gradient": ('<bed depth="60 m"/>', '<acoustics profile="gradient" gradient="0.02"/>'),
    "sound by rays": (
        '<bed depth="60 m"/><temperature surface="19 C" knee_1="14 m" knee_2="29 m" gradient_1="-0.3 C/m" gradient_2="-0.02 C/m"/>',
        f'<acoustics profile="water" formula="chen-millero" sum="coherent">{MULTIPATH}</acoustics>',
    ),
}
CONTACT = (
    '<time step="4 ms"/><shared vehicles="32" signals="64"/><world><bed depth="12 m"/><waves height="1 m"/><wind speed="8 m/s"/>'
    '<obstacles><block position="30 0 5 m" size="4 9 18 m"/></obstacles></world>'
)


def world(inner: str) -> Any:
    from wavesim_server import Simulation
    from wavesim_world.config import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "world.xml"
        path.write_text(f"<wavesim>{inner}</wavesim>")
        simulation = Simulation(load(path))
    simulation.enter_residents()
    return simulation


def least(run: Callable[[], object], times: int) -> float:
    """Return the minimum wall time of some runs in s."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def digest(simulation: Any, records: list[Any]) -> str:
    """Return the digest of the states of all bodies, and of records."""
    found = hashlib.sha256(simulation.state().tobytes() + simulation.actuation().tobytes())
    for record in records:
        found.update(record.tobytes())
    return found.hexdigest()[:12]


def sound(environment: str, acoustics: str) -> tuple[float, str]:
    """Return us per tick of ten vehicles that communicate, and the digest of the result."""
    simulation = world(
        f'<time step="4 ms"/><shared vehicles="16" signals="64"/><world>{environment}</world>{acoustics}<fleet>{FLEET}</fleet>'
    )
    for k in range(10):
        if simulation.row_of(f"v{k}") is None:
            simulation.enter(f"v{k}")
    records: list[Any] = []

    def talk() -> None:
        for k in range(25):
            row = k * 7 % 10
            if k % 3 == 0:
                simulation.ping(row, 25e3 + 100 * row)
            elif k % 3 == 1:
                simulation.send(row, b"hello world", 0)
            else:
                simulation.range_request(row, (row + 3) % 10 + 1)
            simulation.advance(50)
            records.extend(simulation.take_signals())

    return least(talk, 4) / 1250 * 1e6, digest(simulation, records)


def contact() -> tuple[float, str]:
    """Return us per tick of bodies afloat, at rest on the bed and in contact with each other, and the digest of their
    states.
    """
    simulation = world(CONTACT)
    for k, model in enumerate(("box-buoy", "buoy", "vita1", "lauv", "supply", "jolner", "otter", "bluerov2")):
        simulation.enter(f"afloat {k}", model, (60.0 + 60.0 * k, 0.0, 0.0))
    for k in range(6):
        simulation.push(simulation.enter(f"lying {k}", "lauv", (0.1 * k, 2.0 * k, 11.85)), (0.0, 0.0, 100.0))
    for k in range(3):
        row = simulation.enter(f"beside {k}", "box-buoy", (-20.0, 1.3 * k, 0.5))
        simulation.push(row, (0.0, 500.0 * (1 - k), 0.0))
    simulation.advance(500)
    return least(
        lambda: simulation.advance(250), 4
    ) / 250 * 1e6, f"{digest(simulation, [])} {simulation.contacts.count}"


def resting() -> tuple[float, str]:
    """Return us per tick of each of five bodies at rest on the bed, and the digest of their states."""
    simulation = world('<time step="4 ms"/><shared vehicles="8" signals="4"/><world><bed depth="12 m"/></world>')
    for k in range(5):
        simulation.push(simulation.enter(f"lying {k}", "lauv", (0.1 * k, 4.0 * k, 11.85)), (0.0, 0.0, 100.0))
    simulation.advance(500)
    return least(
        lambda: simulation.advance(250), 4
    ) / 250 / 5 * 1e6, f"{digest(simulation, [])} {simulation.contacts.count}"


def figures() -> tuple[dict[str, float], dict[str, str]]:
    """Measure the checkout whose sources are imported."""
    from wavesim_world.config import library

    time.perf_counter = time.process_time  # others use the machine: the processor's time is counted, not the wall's
    motion, medium = (importlib.import_module(f"benchmarks.{name}") for name in ("kernel", "acoustics"))
    times: dict[str, float] = {}
    bits: dict[str, str] = {}
    for name, count, models, extra in (
        ("core, 100", 100, ["core"], motion.CORE),
        ("LAUV, 1000", 1000, ["lauv"], ""),
        ("mixed, 100", 100, sorted(library()), ""),
        ("one vehicle", 1, ["lauv"], ""),
    ):
        fleet = motion.fleet(count, models, extra)
        times[f"{name}, ns"] = motion.per_vehicle(fleet, count)
        fleet.advance(25)
        bits[name] = digest(fleet, [])
    fleet = motion.fleet(100, ["lauv"])
    times["whole tick, 100, ns"] = least(lambda: fleet.advance(200), 5) / 200 / 100 * 1e9
    for name, side, seconds in (("medium, us", 50e3, 2.0), ("medium where all hear all, us", 5e3, 0.4)):
        found = medium.measure(1000, 1000, side, 5000.0, seconds, False)
        times[name], bits[name] = found["us"], f"{found['arrivals']:.4f} arrivals"
    for name, water in WATERS.items():
        times[f"{name}, us"], bits[name] = sound(*water)
    times["contacts, us"], bits["contacts"] = contact()
    times["at rest on the bed, us"], bits["at rest on the bed"] = resting()
    return times, bits


def half(root: Path) -> tuple[dict[str, float], dict[str, str]]:
    """Return the figures of a checkout, measured by a separate process that runs the checkout's own copy of this file.

    The copies may differ: a name that has changed between the checkouts is called in each by its own name.
    """
    path = os.pathsep.join(str(root / part) for part in (*PARTS, "."))
    run = subprocess.run(
        [sys.executable, str(root / "benchmarks/paired.py"), "--figures"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        sys.exit(f"{root}: {run.stderr}")
    times, bits = json.loads(run.stdout.splitlines()[-1])
    return times, bits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("other", nargs="?", type=Path, help="root of the other checkout")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--figures", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.figures:
        print(json.dumps(figures()))
        return 0
    if a.other is None:
        parser.error("which other checkout?")
    pairs = [(half(a.other.resolve()), half(ROOT)) for _ in range(a.rounds)]
    print(f"{'':32} {'other':>9} {'this':>9} {'least':>7} {'median of pairs':>16}")
    for name in pairs[0][1][0]:
        other, this = ([pair[k][0][name] for pair in pairs] for k in (0, 1))
        median = statistics.median(y / x for x, y in zip(other, this, strict=True))
        print(f"{name:32} {min(other):9.1f} {min(this):9.1f} {min(this) / min(other):7.3f} {median:16.3f}")
    differ = [name for name in pairs[0][1][1] if len({half[1][name] for pair in pairs for half in pair}) > 1]
    print(f"other bits: {', '.join(differ)}" if differ else "the same bits")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
