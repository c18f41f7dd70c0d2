"""Control and guidance for the example programs: heading, depth and speed control, and line-of-sight guidance.

    steer = LineOfSight(waypoints, (0.0, 0.0))
    heading, depth = HeadingController(1.0, 1.2, 0.26), DepthController()
    speed = SpeedController(12.0, 4.0, 0.0, 15.0)
    ...
    course = steer.course(north, east)
    rudder = -heading.control_action(course, measured_heading, yaw_rate)
    planes = depth.planes(steer.target.depth, measured_depth, pitch, pitch_rate, dt)
    thrust = speed.thrust(steer.target.speed, surge, dt)

Angles in rad, lengths in m, times in s; ``dt`` is the time since the previous call. The default values suit
torpedo-shaped AUVs one or two metres long at 1 to 2 m/s; gains for boats are in ``examples/onboard/usv.py``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.frames import wrap

__all__ = ["CrabAngle", "DepthController", "HeadingController", "LineOfSight", "SpeedController", "Waypoint"]


def clamp(value: float, limit: float) -> float:
    """Limit a value to the range from -limit to limit."""
    return max(-limit, min(limit, value))


@dataclass(frozen=True)
class Waypoint:
    """Waypoint in frame W: north, east and depth in m, and the speed through the water in m/s on the leg towards it."""

    north: float
    east: float
    depth: float = 0.0
    speed: float = 1.0


class SpeedController:
    """PI control of surge speed. The output is a thrust in N. ``start`` is the initial value of the integral term in N."""

    def __init__(self, kp: float, ki: float, low: float, high: float, start: float = 0.0) -> None:
        self.kp, self.ki, self.low, self.high = kp, ki, low, high
        self._integral = start / ki if ki else 0.0

    @property
    def steady_thrust(self) -> float:
        """Thrust in N at zero speed error, which is the integral term."""
        return self.ki * self._integral

    def thrust(self, wanted: float, surge: float, dt: float) -> float:
        """Return the thrust in N for a desired and a measured speed (m/s)."""
        error = wanted - surge
        raw = self.kp * error + self.ki * (self._integral + error * dt)
        if self.low < raw < self.high:  # no wind-up while saturated
            self._integral += error * dt
        return max(self.low, min(self.high, raw))


class HeadingController:
    """PD control of heading that uses the measured yaw rate."""

    def __init__(self, kp: float, kd: float, limit: float) -> None:
        self.kp, self.kd, self.limit = kp, kd, limit

    def control_action(self, wanted: float, heading: float, rate: float) -> float:
        """Return the control action, positive to starboard and limited to the range from -limit to limit."""
        return clamp(self.kp * wrap(wanted - heading) - self.kd * rate, self.limit)


class DepthController:
    """Depth control through pitch: an outer PI loop demands a pitch angle, and an inner PD loop moves the planes."""

    def __init__(
        self,
        kz: float = 0.12,
        ki: float = 0.008,
        kp: float = 1.2,
        kd: float = 1.0,
        pitch_limit: float = math.radians(25.0),
        limit: float = math.radians(15.0),
    ) -> None:
        self.kz, self.ki, self.kp, self.kd = kz, ki, kp, kd
        self.pitch_limit, self.limit = pitch_limit, limit
        self._integral = 0.0

    def planes(self, wanted: float, depth: float, pitch: float, rate: float, dt: float) -> float:
        """Return the plane angle in rad, positive for bow up."""
        error = wanted - depth
        ask = -self.kz * error - self.ki * self._integral
        if abs(ask) < self.pitch_limit and abs(error) < 3.0:
            self._integral += error * dt
        return clamp(self.kp * (clamp(ask, self.pitch_limit) - pitch) - self.kd * rate, self.limit)


class LineOfSight:
    """Line-of-sight guidance along the legs between waypoints (Fossen 2021, section 12.4). After the last waypoint, the
    vehicle continues to the first one.

    ``lookahead`` is the distance in m to the target point ahead on the leg. A waypoint counts as reached within
    ``acceptance`` m. If a turning ``radius`` is given, an arc joins each leg to the next. The arc begins at the
    distance radius tan(turn/2) before the waypoint, and the vessel follows the arc like a leg. A vessel that is more
    than ``acceptance`` m off its leg does not start the arc before it has reached the waypoint. ``lead`` is the
    distance in m that a vessel travels before it starts to turn; at both ends of an arc, the ordered course and
    curvature change earlier by this distance.
    """

    def __init__(
        self,
        waypoints: Sequence[Waypoint],
        start: tuple[float, float],
        lookahead: float = 12.0,
        acceptance: float = 10.0,
        radius: float = 0.0,
        lead: float = 0.0,
    ) -> None:
        if not waypoints:
            raise InvalidArgument("a mission needs at least one waypoint")
        self.waypoints, self.lookahead, self.acceptance = waypoints, lookahead, acceptance
        self.radius, self.lead = radius, lead
        self._from = start
        self._next = 0
        # of the current leg: its waypoint, its direction in rad, and the sine and cosine of the direction
        self._leg: tuple[Waypoint, float, float, float] | None = None
        self._arc: _Arc | None = None
        self.cross_track = 0.0  #: cross-track error in m, positive to starboard of the track
        self.curvature = 0.0  #: curvature of the track in 1/m at ``lead`` ahead, positive to starboard

    @property
    def target(self) -> Waypoint:
        """The waypoint to which the current leg leads."""
        return self.waypoints[self._next]

    @property
    def target_number(self) -> int:
        """Number of the next waypoint, counted from 1."""
        return self._next + 1

    @property
    def ahead(self) -> tuple[tuple[float, float], ...]:
        """Start and end of the current leg, and the following waypoint, each as (north, east) in m."""
        after = self.waypoints[(self._next + 1) % len(self.waypoints)]
        ends = [self.target, after] if len(self.waypoints) > 1 else [self.target]
        return self._from, *((w.north, w.east) for w in ends)

    def course(self, north: float, east: float) -> float:
        """Return the desired course over ground in rad."""
        if self._arc is not None and self._arc.is_passed(north, east):
            self._arc = None
        elif self._arc is None and self._reached(north, east):
            target = self.target
            self._arc = self._into_next() if self.radius else None
            self._from = (target.north, target.east)
            self._next = (self._next + 1) % len(self.waypoints)
            self._leg = None
        along, bend = self._on_arc(self._arc, north, east) if self._arc is not None else self._on_leg(north, east)
        self.curvature = bend
        return float(along - atan2(self.cross_track, self.lookahead))

    def _on_arc(self, arc: _Arc, north: float, east: float) -> tuple[float, float]:
        """Return the direction and the curvature of the arc ``lead`` m ahead, and set the cross-track error of the
        current position.
        """
        dn, de = north - arc.centre[0], east - arc.centre[1]
        at = float(atan2(de, dn))
        self.cross_track = float(arc.side * (arc.radius - hypot(dn, de)))
        left = max(0.0, arc.side * wrap(arc.exit_angle - at)) * arc.radius
        turned = arc.side * min(self.lead, left) / arc.radius
        return at + arc.side * 0.5 * math.pi + turned, arc.side / arc.radius if left > self.lead else 0.0

    def _on_leg(self, north: float, east: float) -> tuple[float, float]:
        """Return the direction and the curvature of the leg ``lead`` m ahead, and set the cross-track error of the
        current position.
        """
        target = self.target
        if self._leg is None or self._leg[0] is not target:
            along = atan2(target.east - self._from[1], target.north - self._from[0])
            self._leg = target, along, *sin_cos(along)
        _, along, s, c = self._leg
        dn, de = north - self._from[0], east - self._from[1]
        self.cross_track = -dn * s + de * c
        arc = self._into_next() if self.lead and abs(self.cross_track) < self.acceptance else None
        if arc is not None:
            left = (target.north - north) * c + (target.east - east) * s - arc.entry_distance
            if left < self.lead:
                return along + arc.side * (self.lead - left) / arc.radius, arc.side / arc.radius
        return along, 0.0

    def _reached(self, north: float, east: float) -> bool:
        target = self.target
        ln, le = target.north - self._from[0], target.east - self._from[1]
        left = ln * (target.north - north) + le * (target.east - east)
        if self.radius and abs(self.cross_track) < self.acceptance:  # a vessel off its leg goes to the waypoint first
            return bool(left < self._before()[0] * hypot(ln, le))
        return bool(hypot(target.north - north, target.east - east) < self.acceptance) or left < 0.0

    def _before(self) -> tuple[float, float]:
        """Return the distance in m between the start of the arc and the next waypoint, and the angle in rad of the turn
        there. The distance is at most half the length of the shorter of the two legs.
        """
        a, b, c = self._from, self.target, self.waypoints[(self._next + 1) % len(self.waypoints)]
        n1, e1, n2, e2 = b.north - a[0], b.east - a[1], c.north - b.north, c.east - b.east
        turn = wrap(atan2(e2, n2) - atan2(e1, n1))
        s, c_ = sin_cos(0.5 * min(abs(turn), 2.6))
        return float(min(self.radius * s / c_, 0.5 * hypot(n1, e1), 0.5 * hypot(n2, e2))), turn

    def _into_next(self) -> _Arc | None:
        """Return the arc from the current leg into the next one, or None if the track continues straight."""
        before, turn = self._before()
        half, cosine = sin_cos(0.5 * min(abs(turn), 2.6))
        if half * before < 0.1:
            return None
        radius, side = before * cosine / half, math.copysign(1.0, turn)
        b, n = self.target, self.waypoints[(self._next + 1) % len(self.waypoints)]
        s, c = sin_cos(atan2(b.east - self._from[1], b.north - self._from[0]))
        centre = b.north - before * c - side * radius * s, b.east - before * s + side * radius * c
        after = atan2(n.east - b.east, n.north - b.north)
        s, c = sin_cos(after)
        end = b.north + before * c, b.east + before * s
        return _Arc(float(before), centre, float(radius), side, end, (c, s), wrap(after - side * 0.5 * math.pi))


@dataclass(frozen=True)
class _Arc:
    """Arc between two legs; it turns to starboard if ``side`` is 1, and to port if it is -1.

    The arc begins ``entry_distance`` m before the waypoint and ends at the point ``end`` in the direction
    ``exit_direction``; ``exit_angle`` is the bearing in rad of ``end`` from the centre.
    """

    entry_distance: float
    centre: tuple[float, float]
    radius: float
    side: float
    end: tuple[float, float]
    exit_direction: tuple[float, float]
    exit_angle: float

    def is_passed(self, north: float, east: float) -> bool:
        return (north - self.end[0]) * self.exit_direction[0] + (east - self.end[1]) * self.exit_direction[1] > 0.0


class CrabAngle:
    """Conversion of a desired course into a heading, using a measured and smoothed crab angle.

    The smoothing, with the time constant ``tau`` (s), keeps the sideslip during a turn out of the control loop.
    """

    def __init__(self, tau: float = 10.0) -> None:
        self.tau = tau
        self._drift = 0.0

    def heading(
        self, course: float, heading: float, surge: float, sway: float, current: tuple[float, float], dt: float
    ) -> float:
        """Return the heading for a course, given the velocity through water (B) and the current (W) in m/s."""
        s, c = sin_cos(heading)
        vn, ve = surge * c - sway * s + current[0], surge * s + sway * c + current[1]
        if hypot(vn, ve) > 0.2:
            drift = max(-0.6, min(0.6, wrap(atan2(ve, vn) - heading)))
            self._drift += (drift - self._drift) * min(1.0, dt / self.tau)
        return wrap(course - self._drift)
