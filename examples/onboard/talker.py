"""On-board program for a vehicle in a modem network with time slots. Each vehicle sends its estimated position to all others.

python talker.py --config ../trials/tdma.xml --vehicle v1
"""

from __future__ import annotations

import math
import struct
import sys

import program
from auv import Auv
from wavesim_sdk.broker import Broker, Step
from wavesim_world.config import BodyConfig, LoadedConfig

SLOT_S = 1.0
STATUS = struct.Struct("<Hhhh")  # number, north, east (dm), depth (dm)


class Talker(Auv):
    """An AUV that transmits in its own time slot, exactly timed by its own clock."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        super().__init__(loaded, body)
        addresses = []
        for b in loaded.config.fleet.bodies:
            t = loaded.transducer(b)
            if t is not None and t.modem is not None:
                addresses.append(t.modem.address)
        assert self.transducer is not None and self.transducer.modem is not None
        self.slot = sorted(addresses).index(self.transducer.modem.address)
        self.cycle = SLOT_S * len(addresses)
        self.planned = -1
        self.others: dict[int, tuple[int, int, int, int]] = {}

    def _listen(self, step: Step) -> None:
        self.navigator.innovation = math.nan
        for heard in step.receptions:
            if heard.payload is not None and len(heard.payload) == STATUS.size:
                self.others[heard.from_address] = STATUS.unpack(heard.payload)

    def _ask(self, step: Step, broker: Broker) -> None:
        """Schedule the packet of the next slot when the slot is less than two steps away."""
        number = math.ceil((step.time - self.slot * SLOT_S) / self.cycle)
        at = number * self.cycle + self.slot * SLOT_S
        if number > self.planned and number >= 0 and at - step.time < 2.0 * self.program.period:
            self.planned = number
            north, east = self.navigator.place
            payload = STATUS.pack(number % 65536, round(north * 10.0), round(east * 10.0), 0)
            broker.send(payload, at=round(at * 1e9))


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Talker))
