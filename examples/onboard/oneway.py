"""On-board program for an AUV that only receives. Beacons with synchronised clocks ping at known times; its own clock drifts.

Any number of vehicles can navigate this way, because none of them transmits. The filter estimates the clock error
together with the position.

    python oneway.py --config ../trials/one-way.xml --vehicle lauv
"""

from __future__ import annotations

import math
import sys

import program
from auv import Auv
from navigator import Beacon
from reference import Reference
from wavesim_sdk.broker import Broker, Step
from wavesim_world.config import BodyConfig, LoadedConfig


class Listener(Auv):
    """An AUV that navigates by one-way travel times."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        super().__init__(loaded, body)
        self.schedule: list[tuple[Beacon, float, float]] = []  # with period and offset
        for b in loaded.config.fleet.bodies:
            t = loaded.transducer(b)
            if t is not None and t.pinger is not None:
                place = (b.position[0] + t.position[0], b.position[1] + t.position[1], b.position[2] + t.position[2])
                self.schedule.append((Beacon(place, t.pinger.frequency, 0.0), t.pinger.period, t.pinger.offset))
        assert self.transducer is not None
        start, c = (body.position[0], body.position[1]), loaded.config.acoustics.sound_speed
        self.navigator = Reference(start, c, self.transducer.position, clock=5e-3, drift=5e-6)

    def _listen(self, step: Step) -> None:
        self.navigator.innovation = math.nan
        for heard in step.receptions:
            time = heard.reception_ns * 1e-9
            for beacon, period, offset in self.schedule:
                if abs(beacon.frequency - heard.frequency) < 300.0:
                    sent = offset + math.floor((time - offset) / period) * period
                    self.navigator.one_way(sent, time, beacon)

    def _ask(self, step: Step, broker: Broker) -> None:
        """Do nothing, because this vehicle never transmits."""


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Listener))
