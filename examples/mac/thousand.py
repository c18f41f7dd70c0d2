"""Run 1000 drifting nodes with pure ALOHA in one process, and measure the speed and the memory.

python thousand.py [--nodes 1000] [--seconds 300]
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable

import library
from aloha import Aloha
from mac import Node, Station, Traffic

from wavesim_server import Simulation
from wavesim_server.logbook.network_report import network_table, report_text
from wavesim_world.config import load_text

SIDE, REACH = 10_000.0, 2500.0  # m
PERIOD, SIZE = 1.0, 40  # s; bytes, which is 0.5 s at 640 bit/s
LOAD = 0.5  #: packets per packet duration within reach of a node
SEED = 1


def simulation(count: int) -> Simulation:
    """Create nodes on a square grid that drift with a current."""
    columns = math.ceil(math.sqrt(count))
    spacing = SIDE / columns
    bodies = [
        f"<buoy name='n{k}' model='buoy' position='{spacing * (k // columns)} {spacing * (k % columns)} 50 m'><transducer "
        f"recharge='0 s'><modem address='{k + 1}' preamble='0 s' bit_rate='640'/></transducer></buoy>"
        for k in range(count)
    ]
    text = (
        f"<wavesim name='thousand'><time step='100 ms'/><shared vehicles='{count + 1}'/><world><current north='0.2 m/s'/>"
        f"<bed depth='100 m'/></world><acoustics max_range='{REACH} m'/><log faded='no'/><fleet>{''.join(bodies)}</fleet></wavesim>"
    )
    sim = Simulation(load_text(text), SEED)
    sim.enter_residents()
    return sim


def main(report: Callable[[str], None] = print) -> None:
    """Run the network and print its report, its speed and its memory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=300.0)
    chosen = parser.parse_args()
    sim = simulation(chosen.nodes)
    neighbours = chosen.nodes * math.pi * REACH**2 / SIDE**2
    stations = {}
    for k in range(chosen.nodes):
        node = Node(f"n{k}", k + 1, SEED, k, chosen.nodes, 640.0, 0.0, REACH / 1500.0, PERIOD)
        rate = LOAD / neighbours / (node.duration(SIZE) * 1e-9)
        stations[node.name] = Station(Aloha(node), Traffic(node, rate, SIZE, 0))
    library.run(sim, stations, 2.0 * PERIOD)  # compiles
    start, processor = time.perf_counter(), time.process_time()
    signals = library.run(sim, stations, chosen.seconds)
    wall, used = time.perf_counter() - start, time.process_time() - processor
    addresses = {row: k + 1 for k in range(chosen.nodes) if (row := sim.row_of(f"n{k}")) is not None}
    table = network_table(*signals, chosen.seconds, addresses)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    report(report_text(table))
    report(
        f"\n{chosen.seconds / wall:.0f} x real time ({chosen.seconds / used:.0f} x by processor time), "
        f"{1e6 * used / max(table['delivered'], 1):.0f} us of processor time per delivered packet, {memory:.0f} MB"
    )


if __name__ == "__main__":
    main()
