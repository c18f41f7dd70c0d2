"""On-board program of a network node. It sends Poisson traffic with a medium access protocol.

python node.py --config network.xml --vehicle n1 --protocol tdma --rate 0.2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from aloha import Aloha
from csma import Csma
from mac import ChannelChange, Heard, Node, Protocol, Station, Traffic
from maca_u import MacaU
from s_fama import SFama
from slotted_aloha import SlottedAloha
from tdma import Tdma

from wavesim_sdk.broker import Broker
from wavesim_sdk.errors import ConfigError, WaveSimError
from wavesim_world.config import LoadedConfig, load

SIZE = 8  #: payload of a packet, in bytes
PROTOCOLS: dict[str, Callable[[Node], Protocol]] = {
    "aloha": Aloha,
    "slotted": lambda node: SlottedAloha(node, SIZE, guard=1.0),
    "tdma": lambda node: Tdma(node, SIZE),
    "maca-u": MacaU,
    "csma": lambda node: Csma(node, retry=2.0),
    "s-fama": SFama,
}


def station_of(loaded: LoadedConfig, name: str, options: Sequence[str], seed: int) -> Station:
    """Create the program of a body from its command-line options. Raises ConfigError if the body is not a node."""
    a = parser().parse_args(options)
    nodes = [b for b in loaded.config.fleet.bodies if (t := loaded.transducer(b)) and t.modem and b.program]
    names = [b.name for b in nodes]
    if name not in names:
        raise ConfigError(f"body '{name}' does not exist, or has no <modem> or no <program>")
    body = nodes[names.index(name)]
    transducer = loaded.transducer(body)
    assert transducer is not None and transducer.modem is not None and body.program is not None
    modem = transducer.modem
    node = Node(
        name,
        modem.address,
        seed,
        names.index(name),
        len(names),
        modem.bit_rate,
        modem.preamble,
        a.delay,
        body.program.period,
    )
    return Station(PROTOCOLS[a.protocol](node), Traffic(node, a.rate, SIZE, a.to))


def parser() -> argparse.ArgumentParser:
    """Return the parser for the options of the protocol and its traffic."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="network.xml")
    p.add_argument("--vehicle", default="")
    p.add_argument("--port", type=int, default=9750)
    p.add_argument("--protocol", choices=sorted(PROTOCOLS), default="aloha")
    p.add_argument("--rate", type=float, default=0.1, help="Mean number of packets per second.")
    p.add_argument("--to", type=int, default=1, help="Address that receives the packets; 0 = all.")
    p.add_argument("--delay", type=float, default=0.5, help="Longest travel time between two nodes, in s.")
    return p


def main() -> int:
    """Run the program until the run has ended; return the exit code."""
    a = parser().parse_args()
    try:
        loaded = load(a.config)
        station = station_of(loaded, a.vehicle, sys.argv[1:], loaded.config.seed)
        node = station.protocol.node
        with Broker(a.vehicle, ("127.0.0.1", a.port), lockstep=node.period) as broker:
            for step in broker.steps():
                heard = [
                    Heard(r.reception_ns + node.duration(len(r.payload)), r.from_address, r.to_address, r.payload)
                    for r in step.receptions
                    if r.payload is not None
                ]
                changes = [ChannelChange(c.time_ns, bool(c.busy)) for c in step.channel]
                for t in station.step(step.state.time_ns, heard, changes):
                    broker.send(t.payload, t.to, at=t.at)
                broker.answer()
    except WaveSimError as error:
        print(f"{a.vehicle}: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
