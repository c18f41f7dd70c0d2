"""On-board program for a surface vessel: it follows waypoints and avoids other vessels.

    python captain.py --config ../trials/usv-traffic.xml --vehicle odin [--avoid ais radar] [--avoider mine.py:Mine]

The program steers any surface vessel in the library, including kinematic traffic. Without --avoid it holds its course.
With --after, it behaves like an inattentive crew and begins to avoid other vessels only when the given number of
seconds has passed. With --charted it also avoids the piers on the chart. --avoider selects the method of avoidance;
the path of its file is relative to the working folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

import numpy as np

import program
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import hypot
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import euler
from wavesim_sdk.geodesy import Origin
from wavesim_sdk.guidance.avoiders import REFERENCE, make_avoider
from wavesim_sdk.guidance.targets import Target, from_ais, from_radar
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.ship_autopilot import ShipMotion, WaypointPilot

SAME = 100.0  #: distance in m up to which a radar target and an AIS target count as the same vessel


class Captain:
    """Guidance, avoidance and autopilot of one vessel."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig, options: argparse.Namespace) -> None:
        model = loaded.model(body.model)
        start = body.position[0], body.position[1]
        self.pilot = WaypointPilot(model, start, body.waypoint, speed=body.speed or 1.0, radius=options.radius)
        speed = max([w.speed for w in body.waypoint], default=1.0)
        self.avoider = make_avoider(options.avoider, self.pilot.length, speed)
        world = loaded.config.world
        self.origin = Origin(world.latitude, world.longitude)
        self.after, self.instruments = options.after, options.avoid
        piers = world.obstacles.pier if options.charted else ()
        self.charted = [
            Target(-1 - k, (p.position[0], p.position[1]), (0.0, 0.0), 2.0 * p.radius, fixed=True)
            for k, p in enumerate(piers)
        ]
        self.order: tuple[float, float] | None = None
        self._looked = self._time = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        motion = step.state.motion
        if motion is None:
            raise BrokerError('this vessel needs its true state; set truth="full" for it in the configuration')
        now = ShipMotion.from_state(motion, float(euler(np.array(motion[3:7]))[2]))
        dt = step.time - self._time if self._time >= 0.0 else 0.0
        self._time = step.time
        wanted = self.pilot.course_and_speed(now)
        if (self.instruments or self.charted) and step.time >= self.after and step.time - self._looked > 1.0 - 1e-6:
            self._looked = step.time
            place = now.north, now.east
            seen = [*self._targets(step, place), *self.charted]
            self.order = self.avoider.order(place, now.velocity, wanted, seen, self.pilot.way)
        return self.pilot.commands(now, dt, self.order), None

    def _targets(self, step: Step, place: tuple[float, float]) -> Iterator[Target]:
        """Yield the targets that AIS and radar report. If both detect a vessel, AIS takes precedence."""
        reported: list[Target] = []
        if "ais" in self.instruments and (value := step.sensors.get("ais")) is not None:
            reported = list(from_ais(value, self.origin))
        yield from reported
        if "radar" in self.instruments and (value := step.sensors.get("radar")) is not None:
            for t in from_radar(value, place):
                if all(hypot(t.place[0] - o.place[0], t.place[1] - o.place[1]) > SAME for o in reported):
                    yield t


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--avoid", nargs="*", choices=["ais", "radar"], default=[], help="instruments used to avoid other vessels"
    )
    parser.add_argument(
        "--avoider",
        default=REFERENCE,
        help="avoider: the name of an installed avoider, FILE.py:OBJECT or MODULE:OBJECT (default: %(default)s)",
    )
    parser.add_argument("--after", type=float, default=0.0, help="s")
    parser.add_argument("--charted", action="store_true", help="avoid the piers of the chart")
    parser.add_argument("--radius", type=float, default=0.0, help="radius of turns at waypoints, m")


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Captain, options))
