"""Send packets with the modem type in this folder and print the results as JSON. Install the folder first (``pip
install .``).

python talk.py
"""

import json

from wavesim_sdk.tables import Outcome
from wavesim_server import Simulation
from wavesim_world.config import load_text

WORLD = """<wavesim><time step="100 ms"/><world><bed depth="100 m"/></world><fleet>{}</fleet></wavesim>"""
BUOY = """<buoy name="{name}" model="buoy" position="{x} 0 50 m"><transducer threshold="60 dB"><modem address="{address}"
type="{type}" bit_error="0.02"/></transducer></buoy>"""


def simulation(kind: str) -> tuple[Simulation, int]:
    """Create two buoys with modems of the given type; return the simulation and the row of one buoy."""
    bodies = [BUOY.format(name=n, x=x, address=a, type=kind) for n, x, a in (("a", 0, 3), ("b", 30, 5))]
    sim = Simulation(load_text(WORLD.format("".join(bodies))))
    sim.enter_residents()
    row = sim.row_of("a")
    assert row is not None
    return sim, row


def talked(kind: str, packets: int) -> dict[str, object]:
    """Request a four-byte packet every 4.3 s. Return the duration of the first packet, the departure times of the first
    eight, and the fraction of all packets that were decoded.
    """
    sim, row = simulation(kind)
    sent, heard = [], 0
    for _ in range(packets):
        sim.send(row, b"ping")
        sim.advance(43)
        new, received = sim.take_signals()
        sent += new.tolist()
        heard += int((received["outcome"] == int(Outcome.HEARD)).sum())
    names = new.dtype.names or ()
    of = {name: [packet[names.index(name)] for packet in sent] for name in ("duration", "clock_ns")}
    return {
        "duration": of["duration"][0],
        "departures": [t * 1e-9 for t in of["clock_ns"][:8]],
        "share": heard / len(sent),
    }


if __name__ == "__main__":
    print(json.dumps({kind or "plain": talked(kind, 120) for kind in ("", "slotted")}))
