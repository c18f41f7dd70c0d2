"""Autopilot for any surface vessel in the library; it turns a heading and a speed into actuator commands.

    autopilot = ShipAutopilot(model)
    commands = autopilot.commands(heading, speed, ShipMotion(...), dt)

The autopilot supports vessels with twin screws, vessels with nozzles or azimuth drives, vessels with a propeller and a
rudder, and kinematic traffic. The gains follow from the model. The yaw moment reaches its maximum at a heading error of
0.25 rad. The damping is twice the critical damping for the yaw inertia. The gains of the PI control of thrust are
proportional to the mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.elementary import atan2, cos, hypot, sin_cos
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance.control import LineOfSight, SpeedController, Waypoint, clamp
from wavesim_world.config.actuators import Thruster
from wavesim_world.config.validation import matrix
from wavesim_world.config.vehicle import Model

FULL_RUDDER_ERROR = 0.25  #: heading error in rad at which the rudder is hard over
#: integral time of the heading controller, as a multiple of the time constant of the controller
INTEGRAL_TIME_CONSTANTS = 60.0
MAX_NOZZLE_ANGLE = math.radians(35.0)  #: maximum angle of nozzles and azimuth drives, rad
TURN_LEARNING_S = 2.0  #: time constant in s for learning the moment that sustains a turn
DENSITY = 1025.0
TURN_LEAD_LENGTHS = 0.8  #: distance in ship lengths that a vessel travels before it starts to turn
STEADY_TURN_TOLERANCE = 0.25  #: relative error of the yaw rate up to which a turn counts as steady
MAX_CRAB_ANGLE = 0.6  #: maximum crab angle, rad


@dataclass(frozen=True)
class ShipMotion:
    """Motion of a vessel: position north, east in m, heading in rad, surge and sway over ground in m/s, yaw rate in rad/s."""

    north: float
    east: float
    heading: float
    surge: float
    sway: float
    yaw_rate: float

    @classmethod
    def from_state(cls, state: Sequence[float], heading: float) -> ShipMotion:
        """Create the motion from the thirteen numbers of ``motion`` in a step and a heading in rad."""
        return cls(state[0], state[1], heading, state[7], state[8], state[12])

    @property
    def velocity(self) -> tuple[float, float]:
        """Velocity over ground (north, east) in m/s."""
        s, c = sin_cos(self.heading)
        return self.surge * c - self.sway * s, self.surge * s + self.sway * c


def _square(t: Thruster) -> tuple[float, float]:
    """Return the ratio of the bollard thrust (N) to n abs(n), ahead and astern; n is the shaft speed in 1/s."""
    if t.open_water is not None:
        d = t.open_water.diameter
        c = DENSITY * d * d * d * d * t.open_water.kt[0]
        return c, c
    return t.coefficients[1], (t.reverse or t.coefficients)[1]


def _thrust(t: Thruster, command: float) -> float:
    if t.law == "force":
        return command
    n = t.motor[0] * (command > 0) - t.motor[0] * (command < 0) + t.motor[1] * command
    force = _square(t)[0 if n >= 0 else 1] * n * abs(n)
    return clamp(force, t.thrust_limit) if t.thrust_limit else force


def _command(t: Thruster, force: float) -> float:
    """Return the command for a bollard thrust in N."""
    force = max(_thrust(t, t.minimum), min(_thrust(t, t.maximum), force))
    if t.law == "force":
        return force
    n = math.copysign(math.sqrt(abs(force) / _square(t)[0 if force >= 0 else 1]), force)
    command = (n - math.copysign(t.motor[0], n)) / t.motor[1] if n else 0.0
    return max(t.minimum, min(t.maximum, command))


class ShipAutopilot:
    """Heading (PID) and speed (PI) control of one vessel. Raises ConfigError for a model that cannot steer."""

    def __init__(self, model: Model, thrust: float = 0.0) -> None:
        """``thrust`` is the initial estimate in N of the thrust that holds the speed."""
        if model.type == "aircraft":
            raise ConfigError(
                f"model '{model.name}' is an aircraft; use a controller for aircraft (examples/onboard/uav.py)"
            )
        self.model = model
        self.is_kinematic = [t.name for t in model.thruster] == ["speed", "turn"]  # kinematic traffic
        ahead = [t for t in model.thruster if t.direction[0] > 0.9]
        self.swivel_thrusters = [t for t in ahead if t.swivel is not None]
        self.fixed_thrusters = [t for t in ahead if t.swivel is None]
        self.rudders = [f for f in model.fin if abs(f.normal[1]) > 0.5]
        self.has_twin_screws = (
            not self.rudders
            and not self.swivel_thrusters
            and len({math.copysign(1.0, t.position[1]) for t in self.fixed_thrusters}) == 2
        )
        if not (self.is_kinematic or self.swivel_thrusters or self.rudders or self.has_twin_screws):
            raise ConfigError(f"model '{model.name}' cannot steer: it needs a rudder, nozzles or twin screws")
        rigid, added = matrix(model.rigid_body), matrix(model.added_mass)
        inertia = float(rigid[5, 5]) if model.rigid_body is not None else (model.inertia.zz if model.inertia else 0.0)
        inertia += float(added[5, 5])
        self.mass = model.mass.value + float(added[0, 0])
        self.min_thrust = sum(_thrust(t, t.minimum) for t in self.swivel_thrusters + self.fixed_thrusters)
        self.max_thrust = sum(_thrust(t, t.maximum) for t in self.swivel_thrusters + self.fixed_thrusters)
        self.max_yaw_moment = self._greatest_moment()
        self.kp = (
            (0.5 if self.swivel_thrusters else 1.0) * self.max_yaw_moment / FULL_RUDDER_ERROR
        )  # nozzles keep a reserve for wind
        self.kd = 4.0 * math.sqrt(self.kp * inertia)
        self.ki = self.kp / (INTEGRAL_TIME_CONSTANTS * math.sqrt(inertia / self.kp)) if self.kp else 0.0
        self.speed_controller = SpeedController(
            0.5 * self.mass, 0.05 * self.mass, self.min_thrust, self.max_thrust, thrust
        )
        self._integral = 0.0
        self._turning = 0.5 * self.kd  # moment in N m that holds a turn of 1 rad/s, learned so far

    def _greatest_moment(self) -> float:
        if self.has_twin_screws:
            return 0.5 * sum(
                abs(t.position[1]) * (_thrust(t, t.maximum) - _thrust(t, t.minimum)) for t in self.fixed_thrusters
            )
        return sum(
            abs(t.position[0]) * _thrust(t, t.maximum) * float(sin_cos(min(MAX_NOZZLE_ANGLE, t.swivel.maximum))[0])
            for t in self.swivel_thrusters
            if t.swivel is not None
        )

    def commands(self, heading: float, speed: float, now: ShipMotion, dt: float, turn: float = 0.0) -> dict[str, float]:
        """Return commands by actuator name; ``turn`` is the desired yaw rate in rad/s."""
        error = wrap(heading - now.heading)
        if self.is_kinematic:
            turns = next(t for t in self.model.thruster if t.name == "turn")
            order = next(t for t in self.model.thruster if t.name == "speed")
            rate = max(turns.minimum, min(turns.maximum, turns.maximum * error / FULL_RUDDER_ERROR + turn))
            return {"speed": max(order.minimum, min(order.maximum, speed)), "turn": rate}
        if self.has_twin_screws:  # slow down for a sharp turn
            speed *= max(0.3, float(cos(min(abs(error), math.pi / 2))))
        thrust = self.speed_controller.thrust(speed, now.surge, dt)
        if self.rudders:
            return self._by_rudder(error, now, thrust, turn)
        moment = self.kp * error + self.kd * (turn - now.yaw_rate) + self._turning * turn + self._integral
        if abs(moment) < self.max_yaw_moment:
            if abs(error) < 0.2:
                self._integral += self.ki * error * dt
            if turn:
                self._turning += self.kd * (1.0 - now.yaw_rate / turn) * dt / TURN_LEARNING_S
        moment = clamp(moment, self.max_yaw_moment)
        return self._by_nozzles(moment, thrust) if self.swivel_thrusters else self._by_twins(moment, thrust)

    def _by_rudder(self, error: float, now: ShipMotion, thrust: float, turn: float) -> dict[str, float]:
        found = {t.name: _command(t, thrust / len(self.fixed_thrusters)) for t in self.fixed_thrusters}
        length = self.model.box.length if self.model.box is not None else 1.0
        lead = 1.5 * length / max(abs(now.surge), 0.2)  # weight of the yaw rate in s
        for f in self.rudders:
            side = -math.copysign(1.0, f.normal[1])
            found[f.name] = clamp(side * f.limit * (error - lead * (now.yaw_rate - turn)) / FULL_RUDDER_ERROR, f.limit)
        return found

    def _by_nozzles(self, moment: float, thrust: float) -> dict[str, float]:
        """Return commands for nozzles at one common angle. A minimum thrust is maintained for steering."""
        n = len(self.swivel_thrusters)
        arm = sum(abs(t.position[0]) for t in self.swivel_thrusters) / n
        needed = abs(moment) / (arm * sin_cos(MAX_NOZZLE_ANGLE)[0])
        thrust = max(thrust, min(needed, 0.5 * self.max_thrust), 0.02 * self.max_thrust)
        found: dict[str, float] = {}
        for t in self.swivel_thrusters:
            limit = min(MAX_NOZZLE_ANGLE, t.swivel.maximum) if t.swivel is not None else 0.0
            found[t.name] = _command(t, thrust / n)
            found[f"{t.name}-angle"] = clamp(-moment / (thrust * arm), limit) * math.copysign(1.0, -t.position[0])
            if t.deflector is not None:
                found[f"{t.name}-deflector"] = 1.0
        return found

    def _by_twins(self, moment: float, thrust: float) -> dict[str, float]:
        """Return commands for twin screws; turning takes priority over thrust."""
        arm = sum(abs(t.position[1]) for t in self.fixed_thrusters) / len(self.fixed_thrusters)
        half = moment / (2.0 * arm)
        thrust = max(self.min_thrust + 2.0 * abs(half), min(self.max_thrust - 2.0 * abs(half), thrust))
        per_side = max(1, len(self.fixed_thrusters) // 2)
        return {
            t.name: _command(t, (0.5 * thrust - half * math.copysign(1.0, t.position[1])) / per_side)
            for t in self.fixed_thrusters
        }


class LeewayEstimator:
    """Estimator of leeway. It learns the drift due to wind and current, as a velocity in W, from the motion of the
    vessel.

    In a turn, the stern slips outwards as if the vessel turned about a point ``pivot`` m ahead of its origin. The
    estimator also learns ``pivot``.
    """

    def __init__(self, pivot: float, tau: float = 3.0) -> None:
        """``tau`` is the learning time constant in s."""
        self.pivot, self.tau = pivot, tau
        self.north = self.east = 0.0

    def heading(self, course: float, now: ShipMotion, turn: float, dt: float) -> float:
        """Return the heading that keeps the vessel on a course over ground. ``turn`` is the desired yaw rate (rad/s)."""
        s, c = sin_cos(now.heading)
        share = min(1.0, dt / self.tau)
        off = now.sway + self.pivot * now.yaw_rate - (c * self.east - s * self.north)
        self.north -= s * off * share
        self.east += c * off * share
        away = c * self.east - s * self.north
        if turn and abs(now.yaw_rate - turn) < STEADY_TURN_TOLERANCE * abs(turn):
            self.pivot += ((away - now.sway) / turn - self.pivot) * share
        drift = atan2(away - self.pivot * turn, max(now.surge, 0.2))
        return wrap(course - clamp(float(drift), MAX_CRAB_ANGLE))


class WaypointPilot:
    """Pilot that follows waypoints or holds a course: line-of-sight guidance, :class:`LeewayEstimator`, :class:`ShipAutopilot`."""

    def __init__(
        self,
        model: Model,
        start: tuple[float, float],
        waypoints: Sequence[Waypoint] = (),
        course: float = 0.0,
        speed: float = 1.0,
        lookahead: float = 0.0,
        radius: float = 0.0,
        thrust: float = 0.0,
    ) -> None:
        length = model.box.length if model.box is not None else 2.0
        self.autopilot, self.length = ShipAutopilot(model, thrust), length
        self.course, self.speed = course, speed
        self.leeway_estimator = LeewayEstimator(0.5 * length)
        self.guidance = (
            LineOfSight(
                waypoints,
                start,
                lookahead or 2.0 * length,
                2.0 * length,
                radius,
                TURN_LEAD_LENGTHS * length if radius else 0.0,
            )
            if waypoints
            else None
        )

    def course_and_speed(self, now: ShipMotion) -> tuple[float, float]:
        """Return the course over ground (rad) and the speed (m/s) that the mission requires at the current position."""
        if self.guidance is None:
            return self.course, self.speed
        course = self.guidance.course(now.north, now.east)
        return course, self.guidance.target.speed

    @property
    def way(self) -> tuple[tuple[float, float], ...]:
        """Current leg of the mission and the waypoint after it (:attr:`LineOfSight.ahead`); empty without a mission."""
        return self.guidance.ahead if self.guidance is not None else ()

    def commands(self, now: ShipMotion, dt: float, order: tuple[float, float] | None = None) -> dict[str, float]:
        """Return commands for the mission, or for an ``order`` (course, speed), which takes priority."""
        course, speed = order or self.course_and_speed(now)
        bend = self.guidance.curvature if order is None and self.guidance is not None else 0.0
        turn = bend * float(hypot(now.surge, now.sway))
        return self.autopilot.commands(self.leeway_estimator.heading(course, now, turn, dt), speed, now, dt, turn)
