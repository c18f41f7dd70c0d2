"""A helm for any surface vessel of the library: a heading and a speed in, commands of its actuators out.

    helm = Helm(model)
    commands = helm.steer(heading, speed, Motion(...), dt)

Twin screws, nozzles and azimuth drives, propeller and rudder, and the orders of kinematic traffic.  Gains follow from the
model: the greatest moment at a quarter of a radian off course, twice the critical damping of the yaw inertia; thrust by a PI law of the mass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.config.model import Waypoint
from wavesim_sdk.config.plausible import matrix
from wavesim_sdk.config.vehicle import Model, Thruster
from wavesim_sdk.control import LineOfSight, Speed, clamp
from wavesim_sdk.elementary import atan2, cos, hypot, sin_cos
from wavesim_sdk.errors import ConfigError
from wavesim_sdk.frames import wrap

FULL_HELM = 0.25  #: rad off the heading at which the helm is hard over
INTEGRAL = 60.0  #: the heading's integral takes over within so many of its time constants
NOZZLE = math.radians(35.0)  #: greatest angle of nozzles and azimuth drives
SETTLED = 2.0  #: s in which it is learned how much helm holds a turn
DENSITY = 1025.0
LEAD = 0.8  #: lengths that a vessel goes before her turn has begun
STEADY = 0.25  #: share by which a turn may be off and counts as steady
CRAB = 0.6  #: rad


@dataclass(frozen=True)
class Motion:
    """What a vessel knows of itself: place and velocity over ground (north, east), heading in rad, rate of turn in rad/s, surge
    in m/s."""

    north: float
    east: float
    heading: float
    surge: float
    sway: float
    rate: float

    @classmethod
    def of(cls, state: Sequence[float], heading: float) -> Motion:
        """From the thirteen numbers of a step's ``motion``."""
        return cls(state[0], state[1], heading, state[7], state[8], state[12])

    @property
    def velocity(self) -> tuple[float, float]:
        """Over ground (north, east), m/s."""
        s, c = sin_cos(self.heading)
        return self.surge * c - self.sway * s, self.surge * s + self.sway * c


def _square(t: Thruster) -> tuple[float, float]:
    """Thrust per n abs(n), ahead and astern, standing."""
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
    """The command for a force, standing."""
    force = max(_thrust(t, t.minimum), min(_thrust(t, t.maximum), force))
    if t.law == "force":
        return force
    n = math.copysign(math.sqrt(abs(force) / _square(t)[0 if force >= 0 else 1]), force)
    command = (n - math.copysign(t.motor[0], n)) / t.motor[1] if n else 0.0
    return max(t.minimum, min(t.maximum, command))


class Helm:
    """Heading (PID) and speed (PI) of one vessel. ConfigError for a model that has nothing to steer by."""

    def __init__(self, model: Model, thrust: float = 0.0) -> None:
        """``thrust``: what holds the speed at the beginning, N."""
        self.model = model
        self.told = [t.name for t in model.thruster] == ["speed", "turn"]  # kinematic traffic
        ahead = [t for t in model.thruster if t.direction[0] > 0.9]
        self.swivels = [t for t in ahead if t.swivel is not None]
        self.fixed = [t for t in ahead if t.swivel is None]
        self.rudders = [f for f in model.fin if abs(f.normal[1]) > 0.5]
        self.twin = (
            not self.rudders and not self.swivels and len({math.copysign(1.0, t.position[1]) for t in self.fixed}) == 2
        )
        if not (self.told or self.swivels or self.rudders or self.twin):
            raise ConfigError(f"model '{model.name}' has nothing to steer by: rudder, nozzles or twin screws")
        rigid, added = matrix(model.rigid_body), matrix(model.added_mass)
        inertia = float(rigid[5, 5]) if model.rigid_body is not None else (model.inertia.zz if model.inertia else 0.0)
        inertia += float(added[5, 5])
        self.mass = model.mass.value + float(added[0, 0])
        self.low = sum(_thrust(t, t.minimum) for t in self.swivels + self.fixed)
        self.high = sum(_thrust(t, t.maximum) for t in self.swivels + self.fixed)
        self.moment = self._greatest_moment()
        self.kp = (0.5 if self.swivels else 1.0) * self.moment / FULL_HELM  # nozzles have a reserve for wind
        self.kd = 4.0 * math.sqrt(self.kp * inertia)
        self.ki = self.kp / (INTEGRAL * math.sqrt(inertia / self.kp)) if self.kp else 0.0
        self.speed = Speed(0.5 * self.mass, 0.05 * self.mass, self.low, self.high, thrust)
        self._sum = 0.0
        self._turning = 0.5 * self.kd  # N m that hold a turn of 1 rad/s, as it was seen so far

    def _greatest_moment(self) -> float:
        if self.twin:
            return 0.5 * sum(abs(t.position[1]) * (_thrust(t, t.maximum) - _thrust(t, t.minimum)) for t in self.fixed)
        return sum(
            abs(t.position[0]) * _thrust(t, t.maximum) * float(sin_cos(min(NOZZLE, t.swivel.maximum))[0])
            for t in self.swivels
            if t.swivel is not None
        )

    def steer(self, heading: float, speed: float, now: Motion, dt: float, turn: float = 0.0) -> dict[str, float]:
        """Commands by the actuators' names. ``turn``: rate at which the heading is to change, rad/s."""
        error = wrap(heading - now.heading)
        if self.told:
            turns = next(t for t in self.model.thruster if t.name == "turn")
            order = next(t for t in self.model.thruster if t.name == "speed")
            rate = max(turns.minimum, min(turns.maximum, turns.maximum * error / FULL_HELM + turn))
            return {"speed": max(order.minimum, min(order.maximum, speed)), "turn": rate}
        if self.twin:  # a sharp turn is made at less way
            speed *= max(0.3, float(cos(min(abs(error), math.pi / 2))))
        thrust = self.speed.thrust(speed, now.surge, dt)
        if self.rudders:
            return self._by_rudder(error, now, thrust, turn)
        moment = self.kp * error + self.kd * (turn - now.rate) + self._turning * turn + self._sum
        if abs(moment) < self.moment:
            if abs(error) < 0.2:
                self._sum += self.ki * error * dt
            if turn:
                self._turning += self.kd * (1.0 - now.rate / turn) * dt / SETTLED
        moment = clamp(moment, self.moment)
        return self._by_nozzles(moment, thrust) if self.swivels else self._by_twins(moment, thrust)

    def _by_rudder(self, error: float, now: Motion, thrust: float, turn: float) -> dict[str, float]:
        found = {t.name: _command(t, thrust / len(self.fixed)) for t in self.fixed}
        length = self.model.box.length if self.model.box is not None else 1.0
        lead = 1.5 * length / max(abs(now.surge), 0.2)  # s that the rate of turn counts
        for f in self.rudders:
            side = -math.copysign(1.0, f.normal[1])
            found[f.name] = clamp(side * f.limit * (error - lead * (now.rate - turn)) / FULL_HELM, f.limit)
        return found

    def _by_nozzles(self, moment: float, thrust: float) -> dict[str, float]:
        """All nozzles at one angle; some thrust is kept for steering."""
        n = len(self.swivels)
        arm = sum(abs(t.position[0]) for t in self.swivels) / n
        needed = abs(moment) / (arm * sin_cos(NOZZLE)[0])
        thrust = max(thrust, min(needed, 0.5 * self.high), 0.02 * self.high)
        found: dict[str, float] = {}
        for t in self.swivels:
            limit = min(NOZZLE, t.swivel.maximum) if t.swivel is not None else 0.0
            found[t.name] = _command(t, thrust / n)
            found[f"{t.name}-angle"] = clamp(-moment / (thrust * arm), limit) * math.copysign(1.0, -t.position[0])
            if t.deflector is not None:
                found[f"{t.name}-deflector"] = 1.0
        return found

    def _by_twins(self, moment: float, thrust: float) -> dict[str, float]:
        """Turning goes before speed: where both cannot be had, the thrust gives way."""
        arm = sum(abs(t.position[1]) for t in self.fixed) / len(self.fixed)
        half = moment / (2.0 * arm)
        thrust = max(self.low + 2.0 * abs(half), min(self.high - 2.0 * abs(half), thrust))
        per_side = max(1, len(self.fixed) // 2)
        return {
            t.name: _command(t, (0.5 * thrust - half * math.copysign(1.0, t.position[1])) / per_side)
            for t in self.fixed
        }


class Leeway:
    """What carries a vessel sideways: wind and current as a velocity in W, learned from how she goes; and in a turn her stern, which
    slips outwards as if she turned about a point ``pivot`` m ahead."""

    def __init__(self, pivot: float, tau: float = 3.0) -> None:
        """``tau``: s in which it is learned."""
        self.pivot, self.tau = pivot, tau
        self.north = self.east = 0.0

    def heading(self, course: float, now: Motion, turn: float, dt: float) -> float:
        """Heading for a course over ground, while it turns at a wanted rate (rad/s)."""
        s, c = sin_cos(now.heading)
        share = min(1.0, dt / self.tau)
        off = now.sway + self.pivot * now.rate - (c * self.east - s * self.north)
        self.north -= s * off * share
        self.east += c * off * share
        away = c * self.east - s * self.north
        if turn and abs(now.rate - turn) < STEADY * abs(turn):
            self.pivot += ((away - now.sway) / turn - self.pivot) * share
        drift = atan2(away - self.pivot * turn, max(now.surge, 0.2))
        return wrap(course - clamp(float(drift), CRAB))


class Pilot:
    """A vessel along its way-points, or on a course: line-of-sight guidance, :class:`Leeway`, :class:`Helm`."""

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
        self.helm, self.length = Helm(model, thrust), length
        self.course, self.speed = course, speed
        self.leeway = Leeway(0.5 * length)
        self.guidance = (
            LineOfSight(
                waypoints, start, lookahead or 2.0 * length, 2.0 * length, radius, LEAD * length if radius else 0.0
            )
            if waypoints
            else None
        )

    def wanted(self, now: Motion) -> tuple[float, float]:
        """(course over ground in rad, speed in m/s) of the mission now."""
        if self.guidance is None:
            return self.course, self.speed
        course = self.guidance.course(now.north, now.east)
        return course, self.guidance.target.speed

    @property
    def way(self) -> tuple[tuple[float, float], ...]:
        """The mission's leg and the waypoint after it (:attr:`LineOfSight.ahead`); empty without a mission."""
        return self.guidance.ahead if self.guidance is not None else ()

    def act(self, now: Motion, dt: float, order: tuple[float, float] | None = None) -> dict[str, float]:
        """Commands for the mission, or for an ``order`` (course, speed) that goes before it."""
        course, speed = order or self.wanted(now)
        bend = self.guidance.curvature if order is None and self.guidance is not None else 0.0
        turn = bend * float(hypot(now.surge, now.sway))
        return self.helm.steer(self.leeway.heading(course, now, turn, dt), speed, now, dt, turn)
