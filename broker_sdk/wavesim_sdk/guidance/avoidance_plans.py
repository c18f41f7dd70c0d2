"""Plans of collision avoidance manoeuvres, and the turning behaviour that these plans assume."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance.targets import Target

Place = tuple[float, float]
RETURN = math.radians(60.0)  #: maximum angle in rad between the leg and the course of a return to it
COTANGENT = math.sqrt(1.0 / 3.0)  #: cotangent of RETURN
ANSWER, RADIUS = (
    2.3,
    1.6,
    #: distance sailed before the vessel answers the helm, and radius of a turn, both in ship lengths; both are
    #: multiplied by `reach`
)
REACH, LOSS = (0.3, 10.0), (-6.0, 12.0)  #: limits on the measured `reach` and `loss`
MEASURED = math.radians(25.0)  #: minimum turn in rad that is used to estimate :class:`Turning`
GATHER = 6.0  #: distance, in ship lengths, that the vessel needs to reach full speed or to stop
SHARPEST = math.radians(120.0)
NEAR_LEG = 8.0  #: distance from the leg, in ship lengths, below which the return angle is proportional to the distance
FLAT = 0.25  #: angle of the flattest planned return to the leg, as a fraction of RETURN


@dataclass
class Turning:
    """Turning behaviour of a vessel, in ship lengths, measured in each turn that ends steady on the new course.

    The model replaces the arc of a turn with a corner, which lies ``reach (ANSWER + RADIUS tan(turn / 2))`` ahead of
    the start of the turn. The distance lost in the turn is ``loss sin(turn / 2)^1.5`` minus the difference between the
    path through the corner and the arc. For vessels that start and end a turn gently, ``loss`` is negative and
    multiplies the square of the sine. The model is accurate to one ship length for turns of up to 110 deg.
    """

    reach: float = 1.2
    loss: float = 2.5

    def corner(self, turn: Floats) -> Floats:
        """Return the distance from the start of a turn to its corner, in ship lengths."""
        s, c = sin_cos(0.5 * np.minimum(np.abs(turn), SHARPEST))
        return np.asarray(self.reach * (ANSWER + RADIUS * s / c))

    def lost(self, turn: Floats) -> Floats:
        """Return the distance lost in a turn, in ship lengths."""
        turn = np.minimum(np.abs(turn), SHARPEST)
        return self.loss * self._share(turn, self.loss) - self._shorter(turn)

    def _share(self, turn: Floats, loss: float) -> Floats:
        s = sin_cos(0.5 * turn)[0]
        return np.asarray(s * np.sqrt(s) if loss > 0.0 else s * s)

    def _shorter(self, turn: Floats) -> Floats:
        s, c = sin_cos(0.5 * turn)
        return np.asarray(2.0 * self.reach * RADIUS * (s / c - 0.5 * turn))

    def measure(self, turn: float, corner: float, lost: float) -> None:
        """Update the estimate from the angle of a turn (rad), its corner distance and its lost distance (both in ship
        lengths).
        """
        turns = np.array(min(abs(turn), SHARPEST))
        self.reach = min(max(self.reach * corner / float(self.corner(turns)), REACH[0]), REACH[1])
        lost += float(self._shorter(turns))
        self.loss = min(max(lost / float(self._share(turns, lost)), LOSS[0]), LOSS[1])


@dataclass(frozen=True)
class Turn:
    """A turn in progress, with its start (time in s, position, velocity), its ordered course and speed, and its
    predicted end.

    ``off`` is the angle of the turn in rad; 0 means that the turn is not measured.
    """

    began: float
    place: Place
    velocity: Place
    order: tuple[float, float]
    off: float
    end: Place
    ends: float


class Plans:
    """Candidate manoeuvres that start at ``place``; they consist of straight segments and are evaluated together.

    In each manoeuvre, the vessel turns off the leg and holds the new course at a fraction of its speed. It then sails
    parallel to the leg, returns to it at the angle :data:`RETURN`, and continues along ``way``. ``way`` contains the
    start of the leg, the waypoint at its end, and the waypoint after that.
    """

    def __init__(
        self,
        place: Place,
        velocity: Place,
        way: Sequence[Place],
        speed: float,
        length: float,
        turning: Turning | None = None,
        turn: tuple[Place, Place, float] | None = None,
    ) -> None:
        """Set up the candidate manoeuvres.

        ``turn`` describes a turn in progress: the ordered course (NaN for a return to the leg), the ordered speed, the
        position at which the turn ends, and the time left in s.
        """
        (an, ae), (bn, be) = way[0], way[1]
        self.place, self.velocity, self.speed, self.length = place, velocity, speed, length
        self.turning, self.turn = turning or Turning(), turn
        self.long = float(hypot(bn - an, be - ae))
        self.course = float(atan2(be - ae, bn - an))
        self.begin, self.corner = (an, ae), (bn, be)
        s, c = sin_cos(self.course)
        self.ahead = float(c), float(s)
        #: course of a return that starts now or is in progress, relative to the leg, in rad
        self.home = -RETURN * max(-1.0, min(1.0, self.across / (NEAR_LEG * length)))
        self.next: tuple[Place, float] | None = None  # direction and length of the next leg
        if len(way) > 2 and self.long > 0.0:
            dn, de = way[2][0] - bn, way[2][1] - be
            long = float(hypot(dn, de))
            if long > 0.0:
                self.next = (dn / long, de / long), long

    @property
    def across(self) -> float:
        """Cross-track distance of the vessel from its leg in m, positive to starboard of the leg."""
        return _along(np.asarray(self.place[0]), np.asarray(self.place[1]), self.begin, self.ahead)[1].item()

    def _corner(self, turn: Floats, share: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the change of course (rad), the lag (s) and the delay (s) of a turn.

        ``turn`` is the new course relative to the leg in rad; NaN means a return to the leg.

        The corner that replaces the arc of a turn lies one lag ahead, because the vessel answers the helm late and
        changes its speed slowly. The delay is the time lost in the turn.
        """
        speed = hypot(*self.velocity)
        now = float(atan2(self.velocity[1], self.velocity[0])) - self.course if speed > 0.1 * self.speed else 0.0
        off = np.abs(np.where(np.isnan(turn), self.home, turn) - wrap(now))
        off = np.minimum(off, 2.0 * math.pi - off)
        gather, way = GATHER * np.abs(share - speed / self.speed), self.length / self.speed
        return off, (self.turning.corner(off) + gather) * way, self.turning.lost(off) * way

    def first(self, turn: Floats, share: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the position (north, east) at which the vessel begins to sail straight, and the time in s until then."""
        _, lag, delay = self._corner(turn, share)
        n, e, lasts = self.place[0] + self.velocity[0] * lag, self.place[1] + self.velocity[1] * lag, lag + delay
        if self.turn is not None:
            (course, speed), end, left = self.turn
            same = np.isnan(turn) if math.isnan(course) else np.abs(turn - wrap(course - self.course)) < 1e-6
            same = same & (np.abs(share * self.speed - speed) < 1e-6)
            n, e, lasts = np.where(same, end[0], n), np.where(same, end[1], e), np.where(same, left, lasts)
        return n, e, lasts

    def _steep(self, across: Floats, later: Any) -> Floats:
        """Return the course (rad, relative to the leg) of a return that begins at the cross-track distance ``across``.

        For a plan that starts with a return, the result is :attr:`home`.
        """
        return np.where(later, -RETURN * np.clip(across / (NEAR_LEG * self.length), -1.0, 1.0), self.home)

    def _later_corners(self, turn: Floats, hold: Floats, parallel: Floats, back: Floats) -> Floats:
        """Return the time in s lost at the end of each of the first five segments (5, K). The first corner is not
        included.

        ``back`` is the course of the return, relative to the leg in rad. A vessel that is overtaking a slightly slower
        one loses up to a minute of its lead at each corner.
        """
        zero, homeward = np.zeros(len(turn)), self.turning.lost(back)
        held = np.where(hold > 0.0, self.turning.lost(turn - np.where(parallel > 0.0, 0.0, back)), 0.0)
        sailed = np.where(parallel > 0.0, homeward, 0.0)
        return np.stack([zero, held, sailed, homeward, zero]) * (self.length / self.speed)

    def turn_to(self, order: tuple[float, float]) -> tuple[float, Place, float]:
        """Return the angle in rad of a turn that starts now, the position at which it ends, and its duration in s."""
        turn, share = np.array([wrap(order[0] - self.course)]), np.array([order[1] / self.speed])
        off, lag, delay = (float(v[0]) for v in self._corner(turn, share))
        s, c = sin_cos(order[0])
        n, e = self.place[0] + self.velocity[0] * lag, self.place[1] + self.velocity[1] * lag
        return off, (n + order[1] * float(c) * lag, e + order[1] * float(s) * lag), 2.0 * lag + delay

    def sail(self, turn: Floats, share: Floats, hold: Floats, parallel: Floats) -> Paths:
        """Return the plans with these turns (rad) and speed fractions. In each plan, the vessel holds its course for
        ``hold`` s and then sails parallel to the leg for ``parallel`` s.
        """
        u, (c, s) = self.speed, self.ahead
        st, ct = sin_cos(self.course + turn)
        zero = np.zeros(len(turn))
        n, e = zero + self.place[0], zero + self.place[1]
        n0, e0, lag = self.first(np.where(hold + parallel > 0.0, turn, math.nan), np.where(hold > 0.0, share, 1.0))
        v1n, v1e = u * share * ct, u * share * st
        n1, e1 = n0 + v1n * hold, e0 + v1e * hold
        n2, e2 = n1 + u * c * parallel, e1 + u * s * parallel
        along, across = _along(n2, e2, self.begin, self.ahead)
        steep = self._steep(across, hold + parallel > 0.0)
        st, ct = sin_cos(np.maximum(np.abs(steep), FLAT * RETURN))
        joins = along + ct / st * np.abs(across)
        n3, e3 = self.begin[0] + joins * c, self.begin[1] + joins * s
        cn, cs = self.corner
        beyond = zero > 1.0
        v5n, v5e, gone = zero + u * c, zero + u * s, joins.copy()
        if self.next is not None:
            (c2, s2), long = self.next
            beyond = joins > self.long
            along2, across2 = _along(n2, e2, self.corner, self.next[0])
            joins2 = np.clip(along2 + COTANGENT * np.abs(across2), 0.0, long)
            n3, e3 = np.where(beyond, cn + joins2 * c2, n3), np.where(beyond, cs + joins2 * s2, e3)
            gone = np.where(beyond, self.long + joins2, joins)
            v5n, v5e = zero + u * c2, zero + u * s2
        back = _root(n3 - n2, e3 - e2) / u
        some = np.where(back > 0.0, back, 1.0)
        leg = np.where(beyond, 0.0, (self.long - joins) / u) if self.next is not None else zero
        n4, e4 = np.where(beyond, n3, cn), np.where(beyond, e3, cs)
        if self.next is None:
            n4, e4 = n3, e3
        starts = np.stack([n, n0, n1, n2, n3, n4]), np.stack([e, e0, e1, e2, e3, e4])
        speeds = (
            np.stack([(n0 - n) / lag, v1n, zero + u * c, (n3 - n2) / some, zero + u * c, v5n]),
            np.stack([(e0 - e) / lag, v1e, zero + u * s, (e3 - e2) / some, zero + u * s, v5e]),
        )
        lasts = np.stack([lag, hold, parallel, back, leg, zero + math.inf])
        until = np.cumsum(lasts[:-1] + self._later_corners(turn, hold, parallel, steep), axis=0)
        times = np.concatenate([np.zeros((1, len(turn))), until])
        begun = (self.place[0] - self.begin[0]) * c + (self.place[1] - self.begin[1]) * s
        late = np.maximum(times[4] - (gone - begun) / u, 0.0)
        left = times[5] + (np.where(beyond, long - joins2, long) / u if self.next is not None else math.inf)
        return Paths(starts, speeds, times, lasts, times[4], late, left, beyond)


@dataclass(frozen=True)
class Paths:
    """K plans, each with six segments. The arrays (6, K) contain the start positions and velocities (north, east) of
    the segments, and their start times and durations in s.

    The arrays (K) contain times in s. ``back`` is the time at which the vessel is back on its track, ``late`` is the
    delay that the manoeuvre causes, and ``ends`` is the time at which the known track ends.
    """

    starts: tuple[Floats, Floats]
    velocities: tuple[Floats, Floats]
    times: Floats
    lasts: Floats
    back: Floats
    late: Floats
    ends: Floats
    cut: Any  #: for each plan (K), whether it bypasses the next waypoint

    def nearest(self, t: Target, until: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the closest approach of each plan to a target until the time ``until``: (distance, time, distance
        ahead of the target at that time).

        The target is assumed to keep its velocity.
        """
        vn, ve = t.velocity
        dn = self.starts[0] - (t.place[0] + vn * self.times)
        de = self.starts[1] - (t.place[1] + ve * self.times)
        wn, we = self.velocities[0] - vn, self.velocities[1] - ve
        square = wn * wn + we * we
        lasts = np.minimum(self.lasts, np.maximum(until - self.times, 0.0))
        after = np.clip(-(dn * wn + de * we) / np.where(square > 1e-6, square, 1.0), 0.0, lasts)
        dn, de = dn + wn * after, de + we * after
        away = np.where(self.times <= until, _root(dn, de), math.inf)
        k = np.argmin(away, axis=0)
        of = k, np.arange(len(k))
        along = float(hypot(vn, ve))
        ahead = (dn[of] * vn + de[of] * ve) / along if along > 1e-3 else np.zeros(len(k))
        return away[of] - 0.5 * t.length, (self.times + after)[of], ahead


def _along(n: Floats, e: Floats, begin: Place, ahead: Place) -> tuple[Floats, Floats]:
    """Return the along-track and cross-track coordinates of a point relative to a leg, in m."""
    n, e = n - begin[0], e - begin[1]
    return n * ahead[0] + e * ahead[1], e * ahead[0] - n * ahead[1]


def _root(n: Floats, e: Floats) -> Floats:
    return np.asarray(np.sqrt(n * n + e * e))
