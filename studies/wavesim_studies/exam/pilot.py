"""The pilot of the exam: it steers a vehicle by its instruments alone, so that every filter gets the same run.

The pilot dead-reckons its position from heading and speed through the water and follows the waypoints of the
configuration. It never uses an estimate of a filter. Therefore, the true track of a scenario, level and seed is the
same for every filter that runs beside the pilot.
"""

from __future__ import annotations

from typing import Any

from wavesim_sdk.broker import Broker, Step
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.guidance import control
from wavesim_world.config import LoadedConfig
from wavesim_world.ocean.water import depth_of_pressure

__all__ = ["Pilot"]

ACCEPTANCE = 8.0  #: distance in m from a waypoint at which the pilot turns to the next one


class Pilot:
    """Guidance, control and acoustic queries of one vehicle with a propeller and fins."""

    def __init__(self, loaded: LoadedConfig, vehicle: str) -> None:
        body = next((b for b in loaded.config.fleet.bodies if b.name == vehicle), None)
        if body is None or body.program is None:
            raise ConfigError(f"vehicle '{vehicle}' does not exist or has no <program>", str(loaded.path))
        model = loaded.model(body.model)
        self.world, self.program = loaded.config.world, body.program
        others = [t for b in loaded.config.fleet.bodies if (t := loaded.transducer(b)) is not None and t.query]
        self.query = others[0].query if others else 0.0
        start = (body.position[0], body.position[1])
        points = [control.Waypoint(w.north, w.east, w.depth, w.speed) for w in body.waypoint]
        self.guidance = control.LineOfSight(points, start, acceptance=ACCEPTANCE)
        limit = min(f.limit for f in model.fin)
        self.heading = control.HeadingController(1.0, 1.2, limit)
        self.depth = control.DepthController(limit=limit)
        thruster = model.thruster[0]
        self.propeller = thruster.name
        self.rudders = [f.name for f in model.fin if abs(f.normal[1]) > 0.5]
        self.planes = [f.name for f in model.fin if abs(f.normal[1]) <= 0.5]
        self.speed = control.SpeedController(12.0, 4.0, max(thruster.minimum, 0.0), thruster.maximum)
        self.place = list(start)
        self._time, self._surge, self._sway = -1.0, 0.0, 0.0

    def commands(self, step: Step, broker: Broker) -> dict[str, float]:
        """Return the actuator commands for a step. Send an acoustic query if one is due."""
        self._ask(step, broker)
        sensors: Any = step.sensors
        if not {"ahrs", "ctd"} <= sensors.keys():
            return {}
        dt = min(step.time - self._time, 1.0) if self._time >= 0.0 else 0.0
        self._time = step.time
        if {"speedlog"} <= sensors.keys():  # a log that fails keeps its last value
            self._surge, self._sway, _ = sensors.speedlog.v_FB_B
        ahrs, depth = sensors.ahrs, depth_of_pressure(self.world, sensors.ctd.pressure)
        s, c = sin_cos(ahrs.heading)
        self.place[0] += (self._surge * c - self._sway * s) * dt
        self.place[1] += (self._surge * s + self._sway * c) * dt
        course, target = self.guidance.course(*self.place), self.guidance.target
        rudder = -self.heading.control_action(course, ahrs.heading, ahrs.rates[2])
        planes = self.depth.planes(target.depth, depth, ahrs.pitch, ahrs.rates[1], dt)
        fins = {**dict.fromkeys(self.rudders, rudder), **dict.fromkeys(self.planes, planes)}
        return {self.propeller: self.speed.thrust(target.speed, self._surge, dt), **fins}

    def _ask(self, step: Step, broker: Broker) -> None:
        period, offset = self.program.ping_period, self.program.ping_offset
        if period > 0.0 and step.time >= offset - 1e-9:
            since = (step.time - offset) % period
            if since < 1e-6 or period - since < 1e-6:
                broker.ping(self.query)
