"""Measure CSMA and S-FAMA, and compare them with theory.

python sensing.py [--packets 20000] [--layout crowd]
"""

from __future__ import annotations

import argparse
import heapq
import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import library
from csma import Csma
from mac import SECOND, Node, Station, Traffic
from s_fama import DATA, SFama

from wavesim_sdk.arrays import Record
from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import load_text

SIZE, SPEED = 8, 1500.0  # bytes, m/s
CROWD = 100  #: senders of CSMA
BODY = (
    "<buoy name='{name}' model='buoy' position='{x!r} {y!r} 50 m'><transducer threshold='20 dB' capture='200 dB' recharge='0 s' "
    "carrier_sense='yes'><modem address='{address}' preamble='0 s' bit_rate='{bit_rate!r}'/></transducer></buoy>"
)


class SensingCase(NamedTuple):
    """A protocol, its offered load (attempts per packet duration), and the longest delay in packet durations.

    ``crowd``: CSMA, with all nodes within 15 m, so nearly the whole delay is the delay of sensing. ``disc``: CSMA, with
    nodes evenly distributed in a disc around the receiver; sensing adds half of the longest delay. ``pair``: two
    nodes with S-FAMA, of which one always has data to send. ``ring``: S-FAMA with ten senders on a circle around the
    receiver.
    """

    layout: str
    delay: float
    load: float = 1.0

    @property
    def radius(self) -> float:
        """Distance of the farthest sender in m. Only ratios matter."""
        return 15.0 if self.layout in ("crowd", "disc") else 1500.0

    @property
    def longest(self) -> float:
        """Longest delay in s: that of sensing in a crowd, otherwise that of sound to the receiver."""
        return 0.4 if self.layout == "crowd" else self.radius / SPEED

    @property
    def packet(self) -> float:
        """Duration of a packet in s."""
        return self.longest / self.delay

    @property
    def period(self) -> float:
        """Period of the programs in s."""
        return {"crowd": self.longest / 2.0, "disc": self.longest / 4.0}.get(self.layout, 0.1)

    def places(self) -> list[tuple[float, float]]:
        """Return the positions of the senders."""
        count = {"pair": 1, "ring": 10}.get(self.layout, CROWD)
        found = []
        for k in range(count):
            turn = k * (2.0 * math.pi / count if self.layout == "ring" else 2.399963)
            r = self.radius * (1.0 if self.layout in ("pair", "ring") else math.sqrt((k + 0.5) / count))
            found.append((r * math.cos(turn), r * math.sin(turn)))
        return found

    def nodes(self, seed: int) -> list[Node]:
        """Return the data of the receiver (address 1) and of all senders."""
        size = SIZE + 1 if self.layout in ("pair", "ring") else SIZE
        count = len(self.places()) + 1
        rate = 8.0 * size / self.packet
        farthest = self.longest * (2.0 if self.layout == "ring" else 1.0)
        return [Node(f"n{k}", k + 1, seed, k, count, rate, 0.0, farthest, self.period) for k in range(count)]

    def traffic(self, node: Node) -> Traffic:
        """Return the traffic of a sender."""
        return Traffic(node, self.load / self.packet / (node.count - 1), SIZE, 1)


def simulation(case: SensingCase, nodes: list[Node]) -> Simulation:
    """Create the receiver at the origin and its senders."""
    bodies = [
        BODY.format(name=node.name, x=x, y=y, address=node.address, bit_rate=node.bit_rate)
        for node, (x, y) in zip(nodes, [(0.0, 0.0), *case.places()], strict=True)
    ]
    text = (
        f"<wavesim name='network'><time step='{min(case.period, 0.1)} s' integrator='euler'/><shared vehicles='{len(bodies) + 1}'/><world>"
        f"<bed depth='100 m'/></world><acoustics sound_speed='{SPEED} m/s'/><log faded='no'/><fleet>{''.join(bodies)}</fleet></wavesim>"
    )
    sim = Simulation(load_text(text), nodes[0].seed)
    sim.enter_residents()
    return sim


def signals(case: SensingCase, seconds: float, seed: int) -> tuple[Record, Record, int]:
    """Run a case; return the sent signals, the receptions, and the row of the receiver."""
    nodes = case.nodes(seed)
    sim = simulation(case, nodes)
    stations: Mapping[str, Station]
    if case.layout in ("pair", "ring"):
        stations = {n.name: Station(SFama(n), case.traffic(n) if n.index else None) for n in nodes}
    else:
        stations = {n.name: Station(Csma(n, retry=0.0), case.traffic(n)) for n in nodes[1:]}
    sent, receptions = library.run(sim, stations, seconds)
    row = sim.row_of("n0")
    assert row is not None
    return sent, receptions, row


def measured(case: SensingCase, packets: int, seed: int = 1) -> tuple[float, float]:
    """Return (throughput at the receiver, its standard error) of a case with about this number of attempts."""
    seconds = math.ceil(packets * case.packet / case.load / case.period) * case.period
    sent, receptions, sink = signals(case, seconds, seed)
    if case.layout in ("pair", "ring"):
        data = set(sent["id"][[s["payload"][:1] == bytes([DATA]) for s in sent]].tolist())
    else:
        data = set(sent["id"].tolist())
    got = receptions[(receptions["receiver"] == sink) & (receptions["outcome"] == Outcome.HEARD)]
    count = sum(int(r["id"]) in data for r in got)
    share = count / max(len(data), 1)
    return count * case.packet / seconds, math.sqrt(count * (1.0 - share)) * case.packet / seconds


def expected(case: SensingCase, packets: int, seed: int = 1) -> float:
    """Return the throughput in theory (Kleinrock and Tobagi for a crowd with a delay below one packet, the length of
    an exchange for S-FAMA), or that of :func:`counted`.
    """
    a, g = case.delay, case.load
    if case.layout == "disc" or (case.layout == "crowd" and a >= 1.0):  # the formula assumes a < 1
        return counted(case, packets, seed)
    if case.layout == "crowd":
        a += 0.9054 * case.radius / SPEED / case.packet  # mean travel time between two nodes in a disc
        return g * math.exp(-a * g) / (g * (1.0 + 2.0 * a) + math.exp(-a * g))
    program = SFama(case.nodes(seed)[0])
    return case.packet * SECOND / ((3 + program.data_slots(SIZE + 1)) * program.slot)


def counted(case: SensingCase, packets: int, seed: int) -> float:
    """Return the throughput of CSMA from the definition alone: the same attempts, and the delay between every two nodes."""
    seconds, length = packets * case.packet / case.load, case.packet
    places = [(0.0, 0.0), *case.places()]
    delays = [[math.dist(p, q) / SPEED for q in places] for p in places]
    attempts: list[tuple[float, int]] = []
    for node in case.nodes(seed)[1:]:
        times = case.traffic(node).before(round(seconds * SECOND))
        attempts += [(at * 1e-9, node.index) for at in times]
    heapq.heapify(attempts)
    sent: list[tuple[float, int]] = []
    recent: list[tuple[float, int]] = []
    while attempts:
        at, k = heapq.heappop(attempts)
        recent = [(s, j) for s, j in recent if s + length + 3.0 * case.longest > at]
        sensed = at - 2.0 * case.period
        if not any(s <= sensed - delays[j][k] < s + length or (j == k and at < s + length) for s, j in recent):
            sent.append((at, k))
            recent.append((at, k))
    arrivals = sorted(s + delays[k][0] for s, k in sent)
    padded = [-math.inf, *arrivals, math.inf]
    alone = sum(b - a >= length and c - b >= length for a, b, c in zip(padded, arrivals, padded[2:], strict=False))
    return alone * length / seconds


def cases() -> list[SensingCase]:
    """Return all cases of the evidence page."""
    found = []
    for a in (0.1, 0.5, 1.0, 2.0):
        found += [SensingCase("crowd", a, load) for load in (0.5, 1.0, 2.0)]
        found += [SensingCase("disc", a, load) for load in (0.5, 1.0, 2.0)]
        found += [SensingCase("pair", a, 2.0), SensingCase("ring", a, 2.0)]
    return found


def main(report: Callable[[str], None] = print) -> None:
    """Run the cases that the command line selects, and print one line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packets", type=int, default=20_000, help="Number of attempts for each case.")
    parser.add_argument("--layout", choices=("crowd", "disc", "pair", "ring"), help="Measure only this layout.")
    chosen = parser.parse_args()
    report("layout   a   load  throughput  std.err.  theory  difference  time")
    for number, case in enumerate(cases(), 1):
        if chosen.layout in (None, case.layout):
            start = time.perf_counter()
            found, error = measured(case, chosen.packets, seed=number)
            theory = expected(case, chosen.packets, seed=number)
            report(
                f"{case.layout:6} {case.delay:4.1f} {case.load:5.2f} {found:11.4f} {error:9.4f} {theory:7.4f} "
                f"{100.0 * (found / theory - 1.0):+9.1f} % {time.perf_counter() - start:5.1f} s"
            )


if __name__ == "__main__":
    main()
