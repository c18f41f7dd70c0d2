"""Measure the throughput of medium access protocols at one receiver, and compare it with theory.

python throughput.py [--packets 20000] [--protocol aloha]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import NamedTuple

import library
import numpy as np
from aloha import Aloha
from mac import Node, Protocol, Station, Traffic
from slotted_aloha import SlottedAloha
from tdma import Tdma

from wavesim_sdk.arrays import Floats
from wavesim_server import Simulation
from wavesim_server.logbook.network_report import network_table
from wavesim_world.config import load_text

SIZE, SPEED = 8, 1500.0  # bytes, m/s
#: distance of the farthest sender in m; the duration of a packet follows from it, because only ratios matter
RADIUS = 15.0
STEP = 0.1  # s
SENDERS = 100
#: guard of slotted ALOHA with equal delays, relative to a packet: without any guard, packets in neighbouring slots would
#: touch each other
LEAST_GUARD = 0.01
BODY = (
    "<buoy name='{name}' model='buoy' position='{x!r} {y!r} 50 m'><transducer threshold='20 dB' capture='200 dB' "
    "recharge='0 s' listening='{listening}'><modem address='{address}' preamble='0 s' bit_rate='{bit_rate!r}'/></transducer></buoy>"
)


class Case(NamedTuple):
    """A protocol with its offered load (packets per packet duration), and the longest delay in packet durations."""

    protocol: str
    delay: float
    load: float
    guard: float = 0.0  #: slotted ALOHA: guard, relative to the longest delay

    @property
    def packet(self) -> float:
        """Duration of a packet in s."""
        return RADIUS / SPEED / self.delay

    @property
    def bit_rate(self) -> float:
        """Bit rate in bit/s."""
        return 8.0 * SIZE / self.packet

    def places(self) -> list[tuple[float, float]]:
        """Return the positions of the senders: on a circle, or evenly distributed in a disc (a sunflower pattern)."""
        shares = [1.0 if self.protocol == "ring" else math.sqrt((k + 0.5) / SENDERS) for k in range(SENDERS)]
        turn = 2.0 * math.pi / SENDERS if self.protocol == "ring" else 2.399963
        return [(RADIUS * r * math.cos(turn * k), RADIUS * r * math.sin(turn * k)) for k, r in enumerate(shares)]


def simulation(case: Case, seed: int) -> Simulation:
    """Create a receiver at the origin (address 1) and its senders."""
    bodies = [BODY.format(name="sink", x=0.0, y=0.0, listening="always", address=1, bit_rate=case.bit_rate)]
    bodies += [
        BODY.format(name=f"n{k}", x=x, y=y, listening="asked", address=k + 2, bit_rate=case.bit_rate)
        for k, (x, y) in enumerate(case.places())
    ]
    text = (
        f"<wavesim name='network'><time step='{STEP} s' integrator='euler'/><shared vehicles='{len(bodies) + 1}'/><world><bed depth='100 m'/>"
        f"</world><acoustics sound_speed='{SPEED} m/s'/><fleet>{''.join(bodies)}</fleet></wavesim>"
    )
    sim = Simulation(load_text(text), seed)
    sim.enter_residents()
    return sim


def protocol_of(case: Case, node: Node) -> Protocol:
    """Return a program for one node."""
    if case.protocol == "aloha":
        return Aloha(node)
    if case.protocol == "tdma":
        return Tdma(node, SIZE)
    return SlottedAloha(node, SIZE, case.guard)


def measured(case: Case, packets: int, seed: int = 1) -> tuple[float, float, float]:
    """Return (throughput, its standard error, load that was sent) of a case with about this number of packets."""
    sim = simulation(case, seed)
    rate = case.load / case.packet / SENDERS
    stations = {}
    for k in range(SENDERS):
        node = Node(f"n{k}", k + 2, seed, k, SENDERS, case.bit_rate, 0.0, RADIUS / SPEED, STEP)
        stations[node.name] = Station(protocol_of(case, node), Traffic(node, rate, SIZE, 1))
    seconds = math.ceil(packets * case.packet / case.load / STEP) * STEP
    signals, sink = library.run(sim, stations, seconds), sim.row_of("sink")
    assert sink is not None
    table = network_table(*signals, seconds, {sink: 1})
    share = table["delivered"] / max(table["sent"], 1)
    error = table["sent_load"] * math.sqrt(share * (1.0 - share) / max(table["sent"], 1))
    return table["throughput"], error, table["sent_load"]


def slotted_share(case: Case) -> float:
    """Return the fraction of packets that slotted ALOHA delivers: no other packet may overlap at the receiver.

    The sum covers the slots before and after a packet. Each sender starts a packet in a slot independently of others.
    """
    delays: Floats = np.array([math.hypot(x, y) for x, y in case.places()]) / RADIUS * case.delay
    slot = 1.0 + case.guard * case.delay
    chance = 1.0 - math.exp(-case.load * slot / SENDERS)
    share = np.ones(len(delays))
    for k in range(-math.ceil(case.delay + 2.0), math.ceil(case.delay + 2.0) + 1):
        overlap = np.abs(delays[:, None] + k * slot - delays[None, :]) < 1.0
        np.fill_diagonal(overlap, False)
        share *= (1.0 - chance) ** overlap.sum(axis=0)
    return float(share.mean())


def expected(case: Case, sent_load: float) -> float:
    """Return the throughput in theory (Abramson, Roberts; Poisson traffic, no capture)."""
    if case.protocol == "aloha":
        return case.load * math.exp(-2.0 * case.load)
    if case.protocol == "tdma":
        return min(1.0 / (1.0 + case.delay), case.load)
    if case.protocol == "ring":
        return case.load * math.exp(-case.load * (1.0 + case.guard * case.delay))
    return sent_load * slotted_share(case)


def cases() -> list[Case]:
    """Return all cases of the evidence page."""
    found = []
    for a in (0.1, 0.5, 1.0, 2.0):
        found += [Case("aloha", a, load) for load in (0.25, 0.5, 1.0)]
        found += [Case("ring", a, load, LEAST_GUARD / a) for load in (0.5, 1.0, 2.0)]
        found += [Case("disc", a, 1.0 / (1.0 + guard * a), guard) for guard in (0.25, 0.5, 1.0)]
        found.append(Case("tdma", a, 2.0))
    return found


def main(report: Callable[[str], None] = print) -> None:
    """Run the cases that the command line selects, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=20_000, help="Number of packets for each case.")
    parser.add_argument("--protocol", choices=("aloha", "ring", "disc", "tdma"), help="Measure only this protocol.")
    chosen = parser.parse_args()
    report("protocol   a  guard  load  throughput  std.err.  theory  difference  time")
    for number, case in enumerate(cases(), 1):
        if chosen.protocol in (None, case.protocol):
            start = time.perf_counter()
            found, error, sent = measured(case, chosen.packets, seed=number)
            theory = expected(case, sent)
            report(
                f"{case.protocol:8} {case.delay:3.1f} {case.guard:6.3f} {case.load:5.2f} {found:11.4f} {error:9.4f} {theory:7.4f} "
                f"{100.0 * (found / theory - 1.0):+9.1f} % {time.perf_counter() - start:5.1f} s"
            )


if __name__ == "__main__":
    main()
