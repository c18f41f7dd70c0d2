"""On-board program for a fixed-wing aircraft. It follows waypoints at their heights (negative depths) and airspeeds.

The program uses the true state instead of a satellite receiver and gyros, and the anemometer instead of an airspeed
sensor. The program accepts missions and commands while it is running (`wavesim mission`, `wavesim command`, mission
control).

    python uav.py --config ../trials/mixed-fleet.xml --vehicle uav
"""

from __future__ import annotations

import math
import sys

import numpy as np

import program
from wavesim_sdk.algebra import matvec
from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import atan2
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.frames import euler, rotation
from wavesim_sdk.guidance.flight import FlightController, FlightState
from wavesim_sdk.guidance.mission import FollowerSettings, MissionFollower
from wavesim_world.config import BodyConfig, LoadedConfig

AIRSPEEDS = 18.0, 32.0  #: range of airspeeds in m/s to which the program limits a mission
LOWEST = 20.0  #: minimum height in m that the program allows in a mission


class Uav:
    """Guidance and control of one aircraft with an elevator, an aileron and a rudder."""

    def __init__(self, loaded: LoadedConfig, body: BodyConfig) -> None:
        settings = FollowerSettings(lookahead=150.0, acceptance=80.0, circle=150.0, is_aircraft=True)
        self.guidance = MissionFollower(body.waypoint, (body.position[0], body.position[1]), settings)
        self.flight = FlightController()
        if "anemometer" not in (i.name for i in loaded.suite(body)):
            raise BrokerError(f"'{body.name}' needs an <anemometer> for its airspeed; add one to its <sensors>")
        self.propellers = [t.name for t in loaded.model(body.model).thruster]
        self._time = -1.0

    def act(self, step: Step, broker: Broker) -> tuple[dict[str, float], None]:
        state, wind = step.state.motion, step.sensors.get("anemometer")
        if state is None:
            raise BrokerError('this aircraft needs its true state; set truth="full" for it in the configuration')
        if wind is None or not math.isfinite(wind.speed):  # no value yet, or under water
            return {}, None
        self.guidance.update(step, broker, (state[0], state[1]), state[2])
        attitude = np.array(state[3:7])
        north, east, down = matvec(rotation(attitude), np.array(state[7:10]))
        roll, pitch, _ = euler(attitude)
        motion = FlightState(wind.speed, -state[2], -down, float(atan2(east, north)), roll, pitch, *state[10:13])
        dt = min(step.time - self._time, 1.0) if self._time >= 0.0 else 0.0  # another client may have driven
        self._time = step.time
        course, target = self.guidance.course(state[0], state[1]), self.guidance.target
        speed = min(max(target.speed, AIRSPEEDS[0]), AIRSPEEDS[1])
        c = self.flight.commands(motion, course, max(-target.depth, LOWEST), speed, dt)
        surfaces = {"elevator": c.elevator, "aileron": c.aileron, "rudder": c.rudder}
        return {**dict.fromkeys(self.propellers, c.shaft), **surfaces}, None


if __name__ == "__main__":
    sys.exit(program.run(__doc__, Uav))
