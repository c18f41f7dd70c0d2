"""On-board program for an AUV. The program never receives the true position of the AUV.

The AUV uses the survey made before the dive (beacons, mission, start position) and the values from its instruments:
pressure, heading and rates, speed through water, and acoustic receptions.

    python auv.py --config config.xml --vehicle lauv [--filter reference]

The program's own filter is small and starts immediately. The reference filter of docs/navigation.md is more accurate, but
is compiled on first use.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import Any

import program
from navigator import Beacon, Navigator
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.estimate import Estimate
from wavesim_sdk.guidance import control
from wavesim_sdk.guidance.mission import FollowerSettings, MissionFollower
from wavesim_world.config import BodyConfig, LoadedConfig
from wavesim_world.ocean.water import depth_of_pressure


class Auv:
    """Navigation, guidance and control of one AUV: they compute the actuator commands from the values of a step."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig, options: argparse.Namespace | None = None) -> None:
        config = loaded.config
        assert body.program is not None
        self.loaded, self.body, self.program = loaded, body, body.program
        model = loaded.model(body.model)
        self.transducer = loaded.transducer(body)
        assert self.transducer is not None
        self.beacons: dict[float, Beacon] = {}
        for b in config.fleet.bodies:
            t = loaded.transducer(b)
            if t is not None and t.query:
                place = (b.position[0] + t.position[0], b.position[1] + t.position[1], b.position[2] + t.position[2])
                self.beacons[t.reply] = Beacon(place, t.reply, t.turn_around)
                self.query = t.query
        start = body.position[0], body.position[1]
        self.navigator: Any = self.filter(options)(start, config.acoustics.sound_speed, self.transducer.position)
        self.navigator.sound_uncertainty = getattr(options, "sound_uncertainty", 0.0)
        settings = FollowerSettings(is_submersible=True).with_mission(body.mission)
        self.guidance = MissionFollower(body.waypoint, start, settings)
        self.crab = control.CrabAngle()
        limit = min(f.limit for f in model.fin)
        self.heading = control.HeadingController(1.0, 1.2, limit)
        self.depth = control.DepthController(limit=limit)
        self.propeller = model.thruster[0].name
        self.rudders = [f.name for f in model.fin if abs(f.normal[1]) > 0.5]
        self.planes = [f.name for f in model.fin if abs(f.normal[1]) <= 0.5]
        low, high = model.thruster[0].minimum, model.thruster[0].maximum
        self.speed = control.SpeedController(12.0, 4.0, max(low, 0.0), high)
        self.asked: dict[int, float] = {}
        self._time = -1.0

    def filter(self, options: argparse.Namespace | None) -> Any:
        """Return the class of the selected navigation filter."""
        if options is None or options.filter == "own":
            return Navigator
        from reference import Reference

        return Reference

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], Estimate]:
        """Return actuator commands and the estimate for one step."""
        sensors = step.sensors
        if not {"ctd", "ahrs", "speedlog"} <= sensors.keys():
            return {}, Estimate()  # the instruments have no values yet
        depth = depth_of_pressure(self.loaded.config.world, sensors.ctd.pressure)
        ahrs = sensors.ahrs
        roll, pitch, heading = ahrs.roll, ahrs.pitch, ahrs.heading
        _, q, r = rates = ahrs.rates
        surge, sway, _ = speed = sensors.speedlog.v_FB_B
        dt = min(step.time - self._time, 1.0) if self._time >= 0.0 else 0.0  # another client may have driven
        self._time = step.time
        self.navigator.predict(step.time, (roll, pitch, heading), rates, speed, depth)
        self.guidance.update(step, broker, self.navigator.place, depth)
        self._listen(step)
        self._ask(step, broker)
        return self._steer(depth, pitch, heading, q, r, surge, sway, dt), self._estimate(depth)

    def _listen(self, step: Step) -> None:
        self.navigator.innovation = math.nan
        for sent in step.sent:
            self.asked[sent.id] = sent.emission_ns * 1e-9
        for heard in step.receptions:
            # a beacon is identified by its frequency, which the Doppler effect shifts by a few hertz
            near = [b for b in self.beacons.values() if abs(b.frequency - heard.frequency) < 300.0]
            for beacon in near if heard.query in self.asked else ():
                self.navigator.round_trip(self.asked[heard.query], heard.reception_ns * 1e-9, beacon)

    def _ask(self, step: Step, broker: Broker) -> None:
        period = self.program.ping_period
        if period > 0.0:
            since = (step.time - self.program.ping_offset) % period
            if step.time >= self.program.ping_offset - 1e-9 and (since < 1e-6 or period - since < 1e-6):
                broker.ping(self.query)

    def _steer(
        self, depth: float, pitch: float, heading: float, q: float, r: float, surge: float, sway: float, dt: float
    ) -> dict[str, float]:
        n = self.navigator
        course = self.guidance.course(*n.place)
        target = self.guidance.target
        wanted = self.crab.heading(course, heading, surge, sway, n.current, dt)
        rudder = -self.heading.control_action(wanted, heading, r)
        planes = self.depth.planes(target.depth, depth, pitch, q, dt)
        thrust = self.speed.thrust(target.speed, surge, dt)
        return self._commands(thrust, rudder, planes)

    def _commands(self, thrust: float, rudder: float, planes: float) -> dict[str, float]:
        """Return commands with one angle for all rudders and one for all planes."""
        fins = {**dict.fromkeys(self.rudders, rudder), **dict.fromkeys(self.planes, planes)}
        return {self.propeller: thrust, **fins}

    def _estimate(self, depth: float) -> Estimate:
        n = self.navigator
        return Estimate(
            north=n.place[0],
            east=n.place[1],
            depth=depth,
            sigma_north=n.sigma[0],
            sigma_east=n.sigma[1],
            sigma_depth=0.1,
            dead_reckoning_north=n.dead_reckoning[0],
            dead_reckoning_east=n.dead_reckoning[1],
            dead_reckoning_depth=depth,
            innovation=None if math.isnan(n.innovation) else n.innovation,
        )


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--filter", choices=["own", "reference"], default="own")
    parser.add_argument(
        "--sound-uncertainty",
        type=float,
        default=0.0,
        help="relative standard deviation of the sound speed, for the filter `own`",
    )


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Auv, options))
