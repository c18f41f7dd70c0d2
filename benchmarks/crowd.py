"""Measure a crowd that ranges to transponders: 2000 vehicles and 200 beacons, five pings per second, ticks of 10 ms.

    python -m benchmarks.crowd [--listening asked] [--seconds 4]

All beacons answer each ping, and every node is within reach of every other. With ``--listening asked`` a vehicle
receives only for 5 s after its own ping; the beacons always receive. Speed counts processor time. It is best to run
each mode in a process of its own: memory is the maximum of the process, including the compiler's if kernels are
compiled.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import deque

from wavesim_server.simulation import Simulation
from wavesim_world.config import load_text

TICK_S, PINGS_PER_S, LISTENS_S = 0.01, 5, 5.0


def made(vehicles: int, beacons: int, listening: str) -> Simulation:
    """Return vehicles on a grid of 60 m at a depth of 30 m, under beacons on a grid of 150 m at the surface."""

    def node(listening: str, answers: str) -> str:
        return (
            f'<transducer position="0 0 0.2 m" listen_low="20 kHz" listen_high="32 kHz" recharge="200 ms"'
            f' listening="{listening}"{answers}/>'
        )

    asks, answers = node(listening, ""), node("always", ' query="25 kHz" reply="26 kHz" turn_around="15 ms"')
    side = round(vehicles**0.5)
    auvs = "".join(
        f'<vehicle name="v{k}" model="lauv" position="{60 * (k % side)} {60 * (k // side)} 30 m">{asks}</vehicle>'
        for k in range(vehicles)
    )
    side = round(beacons**0.5)
    buoys = "".join(
        f'<buoy name="b{k}" model="buoy" position="{150 * (k % side)} {150 * (k // side)} 1 m">{answers}</buoy>'
        for k in range(beacons)
    )
    sim = Simulation(
        load_text(
            f'<wavesim><time step="{1000 * TICK_S:g} ms"/><shared vehicles="{vehicles + beacons}" signals="1024"/>'
            f'<world><bed depth="200 m"/></world><log faded="no"/><fleet>{auvs}{buoys}</fleet></wavesim>'
        )
    )
    sim.enter_residents()
    return sim


def run(sim: Simulation, vehicles: int, seconds: float, asked: bool) -> tuple[float, float, float]:
    """Return (simulated seconds per second of processor time, receptions per s, ranges per s)."""
    awake: deque[tuple[float, int]] = deque()
    receptions = ranges = 0
    begun = time.process_time()
    for k in range(round(seconds * PINGS_PER_S)):
        row, now = sim.rows[k * 7 % vehicles], k / PINGS_PER_S
        while awake and awake[0][0] < now - LISTENS_S:
            sim.listen(awake.popleft()[1], False)
        if asked:
            sim.listen(row)
            awake.append((now, row))
        sim.ping(row, 25_000.0)
        for _ in range(4):
            sim.advance(round(0.25 / PINGS_PER_S / TICK_S))
            found = sim.take_signals()[1]
            receptions += len(found)
            ranges += int((found["measured"] == found["measured"]).sum())
    return seconds / (time.process_time() - begun), receptions / seconds, ranges / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--listening", choices=("always", "asked"), default="always")
    parser.add_argument("--vehicles", type=int, default=2000)
    parser.add_argument("--beacons", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=4.0)
    a = parser.parse_args()
    sim = made(a.vehicles, a.beacons, a.listening)
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    run(sim, a.vehicles, 1.0, a.listening == "asked")  # signals are in transit everywhere, arrays have grown
    speed, receptions, ranges = run(sim, a.vehicles, a.seconds, a.listening == "asked")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{a.vehicles} vehicles, {a.beacons} beacons, listening {a.listening}: {speed:.2f} x real time, "
        f"{receptions:.0f} receptions and {ranges:.0f} ranges per s, {peak:.0f} MB ({start:.0f} MB before the run)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
