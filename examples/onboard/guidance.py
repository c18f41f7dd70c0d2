"""Line-of-sight guidance along waypoints (Fossen 2021, section 12.4)."""

from __future__ import annotations

from collections.abc import Sequence

from wavesim_sdk.config.model import Waypoint
from wavesim_sdk.elementary import atan2, cos, hypot, sin, sin_cos
from wavesim_sdk.frames import wrap


class LineOfSight:
    """Steers along the legs between waypoints, round and round.

    ``lookahead`` is the distance ahead on the leg that is aimed at; a waypoint counts as reached
    within ``acceptance``.
    """

    def __init__(
        self,
        waypoints: Sequence[Waypoint],
        start: tuple[float, float],
        lookahead: float = 12.0,
        acceptance: float = 10.0,
    ) -> None:
        if not waypoints:
            raise ValueError("a mission needs at least one waypoint")
        self.waypoints, self.lookahead, self.acceptance = waypoints, lookahead, acceptance
        self._from = start
        self._next = 0
        self.cross_track = 0.0

    @property
    def target(self) -> Waypoint:
        """The waypoint ahead."""
        return self.waypoints[self._next]

    def course(self, north: float, east: float) -> float:
        """Desired course over ground in rad."""
        target = self.target
        if hypot(target.north - north, target.east - east) < self.acceptance or self._passed(north, east):
            self._from = (target.north, target.east)
            self._next = (self._next + 1) % len(self.waypoints)
            target = self.target
        leg = atan2(target.east - self._from[1], target.north - self._from[0])
        dn, de = north - self._from[0], east - self._from[1]
        self.cross_track = -dn * sin(leg) + de * cos(leg)
        return leg - atan2(self.cross_track, self.lookahead)

    def _passed(self, north: float, east: float) -> bool:
        """Whether the point lies beyond the end of the leg."""
        ln, le = self.target.north - self._from[0], self.target.east - self._from[1]
        return (north - self._from[0]) * ln + (east - self._from[1]) * le > ln * ln + le * le


class CrabAngle:
    """Turns a desired course into a heading: the crab angle is measured and smoothed.

    The smoothing (``tau`` seconds) keeps the sideslip of a turn out of the loop.
    """

    def __init__(self, tau: float = 10.0) -> None:
        self.tau = tau
        self._drift = 0.0

    def heading(
        self, course: float, heading: float, surge: float, sway: float, current: tuple[float, float], dt: float
    ) -> float:
        """Heading for a course; velocities through the water (B) and of the water (W)."""
        s, c = sin_cos(heading)
        vn, ve = surge * c - sway * s + current[0], surge * s + sway * c + current[1]
        if hypot(vn, ve) > 0.2:
            drift = max(-0.6, min(0.6, wrap(atan2(ve, vn) - heading)))
            self._drift += (drift - self._drift) * min(1.0, dt / self.tau)
        return wrap(course - self._drift)
