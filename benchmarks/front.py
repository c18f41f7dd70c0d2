"""Measure what a fleet costs that ranges through a front, against the number of nodes and the size of the grid, beside the
same fleet in layered and in uniform water in the same run.

    python benchmarks/front.py [--nodes 10 30 100] [--refinements 1 2 4] [--seconds 60]

Nodes move on straight lines at up to 2 m/s in 4 km x 2 km of water, 120 m deep. Each asks another one for a range every
10 s, so every node receives all queries and all replies. Times are processor times of one core; a value above 1 is
faster than real time. The first round of queries, in which all pairs are searched for the first time, is separate.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tests.examples import front_water

from wavesim_server import Simulation
from wavesim_world.config import load

TICK_MS, PERIOD_S = 4, 10
BODY = """<models><model name="ghost" type="buoy"><sphere diameter="0.1 m"/><mass value="1000 kg"/><inertia xx="1" yy="1" zz="1"/>
<buoyancy volume="1 m3"/><added-mass diagonal="0 0 0 0 0 0"/><linear-drag diagonal="0 0 0 0 0 0"/>
<quadratic-drag diagonal="0 0 0 0 0 0"/><transducer threshold="80 dB" recharge="0 s"/></model></models>"""


class Cost(NamedTuple):
    """Processor time per simulated second in s, in the first round and later, and receptions per second."""

    first: float
    later: float
    receptions: float


def fleet(folder: Path, nodes: int, acoustics: str) -> Simulation:
    """Return a simulation with moving nodes, whose modems have the addresses 1, 2, ..."""
    (folder / "front.csv").write_text("\n".join(front_water.rows()))
    draw = np.random.default_rng(40)
    places = draw.uniform((-2000.0, -1000.0, 20.0), (2000.0, 1000.0, 100.0), (nodes, 3))
    headings, speeds = draw.uniform(0.0, 2.0 * np.pi, nodes), draw.uniform(0.0, 2.0, nodes)
    modems = "".join(
        f'<buoy name="n{k}" model="ghost" position="{x} {y} {z} m"><transducer threshold="80 dB" recharge="0 s">'
        f'<modem address="{k + 1}"/></transducer></buoy>'
        for k, (x, y, z) in enumerate(places.tolist())
    )
    origin = f'latitude="{front_water.LATITUDE} deg" longitude="{front_water.LONGITUDE} deg"'
    (folder / "front.xml").write_text(
        f'<wavesim><time step="{TICK_MS} ms"/><shared vehicles="{nodes}" signals="1024"/>'
        f'<world density="1000 kg/m3" {origin}><bed depth="120 m"/><volume file="front.csv" {origin}/></world>'
        f'<acoustics sound_speed="1494 m/s" absorption_model="thorp" ambient_noise="60 dB" {acoustics}/>{BODY}'
        f"<fleet>{modems}</fleet></wavesim>"
    )
    sim = Simulation(load(folder / "front.xml"))
    for row in range(nodes):
        sim.enter(f"n{row}")
        velocity = (speeds[row] * np.cos(headings[row]), speeds[row] * np.sin(headings[row]), 0.0, 0.0, 0.0, 0.0)
        sim.set_pose(row, velocity=velocity)
    return sim


def measure(nodes: int, acoustics: str, seconds: int) -> Cost:
    """Return the cost of a fleet."""
    with tempfile.TemporaryDirectory() as folder:
        sim = fleet(Path(folder), nodes, acoustics)
        sim.advance(10)
        spans: list[float] = []
        heard = asked = 0
        for span in (PERIOD_S, seconds):
            begin = time.process_time()
            for second in range(span):
                for k in range(20):  # the queries of a second, spread over it
                    while asked < nodes * (second + k / 20.0 + (PERIOD_S if spans else 0)) / PERIOD_S:
                        row = asked % nodes
                        sim.range_request(row, 1 + (row + 1 + asked // nodes) % nodes)
                        asked += 1
                    sim.advance(1000 // TICK_MS // 20 + (k % 2))
                heard += len(sim.take_signals()[1])
            spans.append((time.process_time() - begin) / span)
        return Cost(spans[0], spans[1], heard / (PERIOD_S + seconds))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 30, 100])
    parser.add_argument("--refinements", type=int, nargs="+", default=[2])
    parser.add_argument("--seconds", type=int, default=60)
    a = parser.parse_args()
    print(f"{'nodes':>5} {'water':22} {'receptions/s':>12} {'first round':>12} {'later':>9} {'x real time':>12}")
    for nodes in a.nodes:
        waters = [("uniform", ""), ("layered", 'profile="water"')]
        waters += [(f"front, refinement {n}", f'profile="volume" refinement="{n}"') for n in a.refinements]
        for name, acoustics in waters:
            cost = measure(nodes, acoustics, a.seconds)
            print(
                f"{nodes:5} {name:22} {cost.receptions:12.0f} {1e3 * cost.first:9.1f} ms {1e3 * cost.later:6.1f} ms "
                f"{1.0 / cost.later:12.1f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
