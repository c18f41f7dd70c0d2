"""On-board program for a twin-thruster boat that steers by the NMEA 0183 sentences of its GPS receiver and its compass.

    python nmea_boat.py --config ../trials/boat-nmea.xml --vehicle boat

Other programs can receive the same sentences: `wavesim device nmea boat --tcp 4001`.
"""

from __future__ import annotations

import math
import sys

import program
from usv import Boat
from wavesim_devices.nmea import NmeaDevice
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.geodesy import Origin
from wavesim_world.config import BodyConfig, LoadedConfig

KNOT = 1852.0 / 3600.0


class NmeaBoat(Boat):
    """A boat that navigates by the latest RMC (position and track) and HDT (heading) sentences."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        super().__init__(loaded, body)
        world = loaded.config.world
        self.origin = Origin(world.latitude, world.longitude)
        self.device = NmeaDevice(self.take, {"gps": "gps", "ahrs": "ahrs"})
        self.place: tuple[float, float] | None = None  #: north and east in m
        self.track = (0.0, 0.0)  #: speed (m/s) and course (rad) over ground
        self.bow: float | None = None  #: heading in rad

    def take(self, line: bytes) -> None:
        """Process a received NMEA sentence."""
        fields = line.decode("ascii").partition("*")[0].split(",")
        if fields[0] == "$GPRMC" and fields[2] == "A":
            north, east, _ = self.origin.ned(_angle(fields[3], fields[4]), _angle(fields[5], fields[6]))
            self.place = float(north), float(east)
            self.track = float(fields[7]) * KNOT, math.radians(float(fields[8]))
        elif fields[0][3:] == "HDT":
            self.bow = math.radians(float(fields[1]))

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        self.device.step(step)
        if self.place is None or self.bow is None:
            return {}, None  # no fix yet
        self.guidance.update(step, broker, self.place)
        dt = min(step.time - self._time, 1.0) if self._time >= 0.0 else 0.0  # another client may have driven
        self._time = step.time
        speed, course = self.track
        sine, cosine = sin_cos(course - self.bow)
        wanted = self.crab.heading(
            self.guidance.course(*self.place), self.bow, speed * cosine, speed * sine, (0.0, 0.0), dt
        )
        turn = self.heading.control_action(wanted, self.bow, 0.0)
        thrust = self.speed.thrust(self.guidance.target.speed, speed, dt)
        port, starboard = self.command(0.5 * thrust + 0.5 * turn), self.command(0.5 * thrust - 0.5 * turn)
        return {self.port: port, self.starboard: starboard}, None


def _angle(text: str, side: str) -> float:
    """Convert an angle in the form `dddmm.mmmm` and its hemisphere (N, S, E or W) to rad."""
    degrees, minutes = divmod(float(text), 100.0)
    return math.radians((degrees + minutes / 60.0) * (-1.0 if side in "SW" else 1.0))


if __name__ == "__main__":
    sys.exit(program.run(__doc__, NmeaBoat))
