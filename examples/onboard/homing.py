"""On-board program for an AUV with a USBL head that homes on the transponder of a dock.

python homing.py --config ../trials/usbl-dock.xml --vehicle lauv
"""

from __future__ import annotations

import math
import sys

import program
from auv import Auv
from reference import Reference
from wavesim_sdk.broker import Step
from wavesim_sdk.elementary import atan2, hypot
from wavesim_world.config import BodyConfig, LoadedConfig

NEAR = 25.0  #: distance from the dock in m at which the AUV slows down
DOCKED, LOST = (
    3.0,
    10.0,
)  #: distances from the dock in m: the AUV stops at DOCKED and resumes at LOST (after drift or a wrong estimate)
GUESS = 30.0, -40.0  #: error of the initial estimate in m
ANGLE = math.radians(1.0)  #: standard deviation of the direction that the USBL head measures, rad


class Homer(Auv):
    """AUV that knows the exact position of the dock, but its own position only roughly. Each reply corrects the
    estimate of its own position.
    """

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        super().__init__(loaded, body)
        (self.dock,) = self.beacons.values()
        guess = body.position[0] - GUESS[0], body.position[1] - GUESS[1]
        assert self.transducer is not None
        c, lever = loaded.config.acoustics.sound_speed, self.transducer.position
        self.navigator = Reference(guess, c, lever, doubt=float(hypot(*GUESS)))
        self.docked = False

    def _listen(self, step: Step) -> None:
        super()._listen(step)
        for heard in step.receptions:
            if heard.azimuth is not None and heard.elevation is not None:
                time = heard.reception_ns * 1e-9
                self.navigator.direction(time, heard.azimuth, heard.elevation, self.dock, ANGLE)

    def _steer(
        self, depth: float, pitch: float, heading: float, q: float, r: float, surge: float, sway: float, dt: float
    ) -> dict[str, float]:
        n = self.navigator
        north, east = self.dock.position[0] - n.place[0], self.dock.position[1] - n.place[1]
        far = float(hypot(north, east))
        self.docked = far < (LOST if self.docked else DOCKED)
        if self.docked:
            return self._commands(0.0, 0.0, 0.0)
        wanted = self.crab.heading(atan2(east, north), heading, surge, sway, n.current, dt)
        rudder = -self.heading.control_action(wanted, heading, r)
        planes = self.depth.planes(self.dock.position[2], depth, pitch, q, dt)
        speed = 1.4 if far > NEAR else 0.8
        return self._commands(self.speed.thrust(speed, surge, dt), rudder, planes)


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Homer))
