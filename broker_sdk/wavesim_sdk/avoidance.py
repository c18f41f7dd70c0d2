"""A reference avoider: plans over course and speed, priced by the rules of the road (COLREG 8, 13 to 17).

    avoider = Avoider(length=2.0, speed=3.0)
    order = avoider.order(place, velocity, wanted, targets, way)       # (course, speed), or None: follow the mission

Call it once a second. It knows what a target list tells: places and velocities, no intentions.

A *plan* (:class:`Plans`) is a whole manoeuvre: hold a course and a speed, sail parallel to the mission's leg, return to the leg,
and go on along it. A plan is free if no other comes nearer than ``clear`` before the vessel is back and a horizon after that. The
vessel acts when the plan "go on" is not free within ``horizon``; it takes the plan of least price (large changes only: others
cannot see small ones) and keeps its course until it can sail parallel to the leg, and that until it can return. Both ask for a
margin that keeping them does not ask for. As the stand-on vessel it holds, until the other has done nothing for too long.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.encounters import Role, domain, role
from wavesim_sdk.frames import wrap
from wavesim_sdk.targets import Target

Array = np.ndarray[Any, np.dtype[np.float64]]
Place = tuple[float, float]

TURNS = (0.0, *(math.radians(sign * t) for t in (30, 35, 40, 45, 50, 60, 70, 80, 90) for sign in (1, -1)))
SPEEDS = (1.0, 0.5, 0.25, 0.0)
HOLD = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0, 90.0)  #: lengths of way for which a plan may hold its course
PARALLEL = (0.0, *(10.0 * 2.0**k for k in range(9)))  #: and for which it may sail parallel to its leg: 10 to 2560
RULES = {Role.HEAD_ON, Role.GIVE_WAY}  #: in which she does not turn to port
HOLDS = {Role.STAND_ON, Role.OVERTAKEN}
# prices: of a turn of a radian, of giving up all way, of a port turn against the rules, of passing ahead, of another choice, of
# being a horizon later back on her way, of cutting off a waypoint
TURN, SLOW, PORT, AHEAD, CHANGE, DELAY, CUT = 1.0, 4.0, 6.0, 2.0, 0.4, 3.0, 2.5
PATIENCE = 35.0  #: lengths of way before the closest approach at which who stands on may act (17a ii)
DANGER = 20.0  #: of a conflict that is about to happen
MARGIN = 3.0  #: of a plan that passes at ``clear`` without a margin: its next stage would not begin
RETURN = math.radians(60.0)  #: steepest angle of a return to the leg after a manoeuvre
COTANGENT = math.sqrt(1.0 / 3.0)  #: of it
#: shares of ``clear`` that the next stage of a manoeuvre needs, and that its course is kept with
PLAN, RESUME, KEEP = 1.25, 1.15, 1.0
BEYOND = 1.5  #: horizons after its end for which the next stage must be free; one for the present stage
LONGEST, STOP = (
    4.0,
    0.3,
)  #: horizons after which a manoeuvre ends by taking all way off, if others keep a share of ``clear``
LATE = 1.5  #: times the planned duration, and half a horizon, after which a manoeuvre is chosen anew
ABORTED = 0.25  #: how much more the next stage needs after one that was given up
ANSWER, RADIUS = 2.3, 1.6  #: lengths of way before a helm is answered, and those of the radius of a turn, times `reach`
REACH, LOSS = (0.3, 10.0), (-6.0, 12.0)  #: limits of what a vessel may measure of her turns
MEASURED = math.radians(25.0)  #: least turn that is measured
NEW = math.radians(12.0)  #: least change of an order that begins another turn
STEADY = math.radians(2.0), 0.04  #: off the course, and share of the speed, within which a turn is over
GATHER = 6.0  #: lengths in which she gathers or loses all way
SHARPEST = math.radians(120.0)
NEAR_LEG = 8.0  #: lengths off the leg: a return that begins nearer is less steep in proportion
FLAT = 0.25  #: of :data:`RETURN`: the least steep return that is planned
FIXED = 3.0  #: lengths at which she passes what stands on the chart
SLOW_TARGET = 0.1  #: of own speed: who is slower than that cannot be the one that gives way
FORGET = 60.0  #: s (calls) without a target after which its role is forgotten


@dataclass
class Turning:
    """How a vessel turns, in its lengths. The corner that stands for a turn lies ``reach`` (:data:`ANSWER` + :data:`RADIUS` tan(turn / 2))
    ahead. What is lost there is ``loss`` sin(turn / 2)^1.5, less what the arc is shorter than the way by the corner; where that is not
    enough, because the turn begins and ends gently, ``loss`` is negative, of the square of the sine. Measured in each turn that ends
    steadily, most of them of 30 deg, and good to a length up to 110 deg."""

    reach: float = 1.2
    loss: float = 2.5

    def corner(self, turn: Array) -> Array:
        """Distance of the corner."""
        s, c = sin_cos(0.5 * np.minimum(np.abs(turn), SHARPEST))
        return np.asarray(self.reach * (ANSWER + RADIUS * s / c))

    def lost(self, turn: Array) -> Array:
        """Way lost."""
        turn = np.minimum(np.abs(turn), SHARPEST)
        return self.loss * self._share(turn, self.loss) - self._shorter(turn)

    def _share(self, turn: Array, loss: float) -> Array:
        s = sin_cos(0.5 * turn)[0]
        return np.asarray(s * np.sqrt(s) if loss > 0.0 else s * s)

    def _shorter(self, turn: Array) -> Array:
        s, c = sin_cos(0.5 * turn)
        return np.asarray(2.0 * self.reach * RADIUS * (s / c - 0.5 * turn))

    def measure(self, turn: float, corner: float, lost: float) -> None:
        """Learn from a turn (rad) whose corner lay so many lengths ahead, and which lost so many."""
        turns = np.array(min(abs(turn), SHARPEST))
        self.reach = min(max(self.reach * corner / float(self.corner(turns)), REACH[0]), REACH[1])
        lost += float(self._shorter(turns))
        self.loss = min(max(lost / float(self._share(turns, lost)), LOSS[0]), LOSS[1])


@dataclass(frozen=True)
class Turn:
    """A turn under way: when it began (s), where and how fast, to which course and speed, by how much (rad; 0: not to be measured), where
    and when (s) it is to end."""

    began: float
    place: Place
    velocity: Place
    order: tuple[float, float]
    off: float
    end: Place
    ends: float


class Plans:
    """Ways that a vessel may go from ``place``, all at once, as straight segments: hold a turn off the leg at a share of its speed, go
    parallel to the leg, return at :data:`RETURN`, go on along ``way``: where the leg begins, its waypoint, and the next one."""

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
        """``turn``: under way, to an order (course, NaN: back to the leg; speed), that ends at a place in so many s."""
        (an, ae), (bn, be) = way[0], way[1]
        self.place, self.velocity, self.speed, self.length = place, velocity, speed, length
        self.turning, self.turn = turning or Turning(), turn
        self.long = float(hypot(bn - an, be - ae))
        self.course = float(atan2(be - ae, bn - an))
        self.begin, self.corner = (an, ae), (bn, be)
        s, c = sin_cos(self.course)
        self.ahead = float(c), float(s)
        #: course of a return that begins now, or of the one that has begun, rad off the leg
        self.home = -RETURN * max(-1.0, min(1.0, self.across / (NEAR_LEG * length)))
        self.next: tuple[Place, float] | None = None  # direction and length of the next leg
        if len(way) > 2 and self.long > 0.0:
            dn, de = way[2][0] - bn, way[2][1] - be
            long = float(hypot(dn, de))
            if long > 0.0:
                self.next = (dn / long, de / long), long

    @property
    def across(self) -> float:
        """How far the vessel is off its leg, m to the right."""
        return _along(np.asarray(self.place[0]), np.asarray(self.place[1]), self.begin, self.ahead)[1].item()

    def _corner(self, turn: Array, share: Array) -> tuple[Array, Array, Array]:
        """(turn from the present course in rad, lag in s, delay in s) until a vessel goes off the leg by so much (NaN: back to it): it
        answers its helm late, the corner that stands for an arc lies a lag ahead, and way is gathered and lost slowly."""
        speed = hypot(*self.velocity)
        now = float(atan2(self.velocity[1], self.velocity[0])) - self.course if speed > 0.1 * self.speed else 0.0
        off = np.abs(np.where(np.isnan(turn), self.home, turn) - wrap(now))
        off = np.minimum(off, 2.0 * math.pi - off)
        gather, way = GATHER * np.abs(share - speed / self.speed), self.length / self.speed
        return off, (self.turning.corner(off) + gather) * way, self.turning.lost(off) * way

    def first(self, turn: Array, share: Array) -> tuple[Array, Array, Array]:
        """Where (north, east) and in how many s a vessel begins to go straight."""
        _, lag, delay = self._corner(turn, share)
        n, e, lasts = self.place[0] + self.velocity[0] * lag, self.place[1] + self.velocity[1] * lag, lag + delay
        if self.turn is not None:
            (course, speed), end, left = self.turn
            same = np.isnan(turn) if math.isnan(course) else np.abs(turn - wrap(course - self.course)) < 1e-6
            same = same & (np.abs(share * self.speed - speed) < 1e-6)
            n, e, lasts = np.where(same, end[0], n), np.where(same, end[1], e), np.where(same, left, lasts)
        return n, e, lasts

    def _steep(self, across: Array, later: Any) -> Array:
        """The course of a return from so far off the leg, rad off it; :attr:`home` for a plan without an earlier stage."""
        return np.where(later, -RETURN * np.clip(across / (NEAR_LEG * self.length), -1.0, 1.0), self.home)

    def _later_corners(self, turn: Array, hold: Array, parallel: Array, back: Array) -> Array:
        """Time lost at the corners after the first one, s, at the end of each of the first five parts (5, K). ``back``: course of the
        return, rad off the leg. What passes a vessel that is hardly slower loses a minute of its lead at each of them."""
        zero, homeward = np.zeros(len(turn)), self.turning.lost(back)
        held = np.where(hold > 0.0, self.turning.lost(turn - np.where(parallel > 0.0, 0.0, back)), 0.0)
        sailed = np.where(parallel > 0.0, homeward, 0.0)
        return np.stack([zero, held, sailed, homeward, zero]) * (self.length / self.speed)

    def turn_to(self, order: tuple[float, float]) -> tuple[float, Place, float]:
        """A turn that begins now: by how much (rad), where it ends, and in how many s."""
        turn, share = np.array([wrap(order[0] - self.course)]), np.array([order[1] / self.speed])
        off, lag, delay = (float(v[0]) for v in self._corner(turn, share))
        s, c = sin_cos(order[0])
        n, e = self.place[0] + self.velocity[0] * lag, self.place[1] + self.velocity[1] * lag
        return off, (n + order[1] * float(c) * lag, e + order[1] * float(s) * lag), 2.0 * lag + delay

    def sail(self, turn: Array, share: Array, hold: Array, parallel: Array) -> Paths:
        """The plans of these turns (rad) and shares of speed, held for so long (s), and then so long parallel to the leg."""
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
    """Plans as segments (6, K): starts and velocities (north, east), when each begins and how long it lasts (s); when the vessel is back
    on its way (K), how much later it is there than without a manoeuvre (K), and when the known way ends (K), s."""

    starts: tuple[Array, Array]
    velocities: tuple[Array, Array]
    times: Array
    lasts: Array
    back: Array
    late: Array
    ends: Array
    cut: Any  #: those that cut off the waypoint ahead (K)

    def nearest(self, t: Target, until: Array) -> tuple[Array, Array, Array]:
        """(least distance, when, how far ahead of the target then) of each plan before a time of it, if the target goes on."""
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


def _along(n: Array, e: Array, begin: Place, ahead: Place) -> tuple[Array, Array]:
    """(along, across) a leg."""
    n, e = n - begin[0], e - begin[1]
    return n * ahead[0] + e * ahead[1], e * ahead[0] - n * ahead[1]


def _root(n: Array, e: Array) -> Array:
    return np.asarray(np.sqrt(n * n + e * e))


@dataclass
class Avoider:
    """Avoidance of one vessel. Lengths in m, speeds in m/s, times in s; what is 0 follows from length and speed."""

    length: float
    speed: float
    clear: float = 0.0  #: least distance at which others are passed: the domain that is kept clear
    horizon: float = 0.0  #: how early it acts: 60 lengths of way
    patience: float = 0.0  #: TCPA at which the one that stands on acts: 35 lengths of way
    roles: dict[int, Role] = field(default_factory=dict)  #: towards whom there was a conflict
    chosen: tuple[float, float] | None = None  #: course and speed that it holds now
    returning: bool = False  #: to the leg, after a manoeuvre
    turns: list[float] = field(default_factory=list)  #: off the course of the leg, rad, of each choice so far
    turning: Turning = field(default_factory=Turning)  #: as measured so far
    _home: float | None = None  #: course of the return, rad off its leg; 0 in the turn on to the leg
    _leg: float = 0.0  #: course of that leg
    _now: float = 0.0  #: s (calls)
    _turn: Turn | None = None
    _unseen: dict[int, float] = field(default_factory=dict)
    _busy: float = 0.0  #: s (calls) since she left her leg
    _aborted: float = 0.0  #: how often a return to the leg was given up since then
    _until_back: float = 0.0  #: when it is to be over
    _until_parallel: float = 0.0  #: when her course is to end, by the plan that was taken
    _parallel: float = 0.0  #: how long she is to sail parallel to her leg then

    def __post_init__(self) -> None:
        self.clear = self.clear or domain(self.length)[1]
        self.horizon = self.horizon or 60.0 * self.length / self.speed
        self.patience = self.patience or PATIENCE * self.length / self.speed
        way = self.length / self.speed  # s
        grid = [(0.0, 1.0, 0.0, p) for p in PARALLEL[1:]]
        grid += [(a, k, h, p) for a in TURNS for k in SPEEDS for h in HOLD for p in PARALLEL if (a, k) != (0.0, 1.0)]
        self._all = np.array(grid).T * np.array([1.0, 1.0, way, way])[:, None]

    def order(
        self,
        place: Place,
        velocity: Place,
        wanted: tuple[float, float],
        targets: Sequence[Target],
        way: Sequence[Place] = (),
    ) -> tuple[float, float] | None:
        """(course, speed) to take now, or None to follow the mission, which wants ``wanted`` (course, speed). ``way``: where its leg
        begins, the waypoint ahead and the one after that; without, it is the wanted course."""
        if wanted[1] <= 0.0:
            return None  # a vessel that is to stop is out of the game
        if len(way) < 2:
            s, c = sin_cos(wanted[0])
            way = place, (place[0] + float(c), place[1] + float(s))
        self._now += 1.0
        self._measure(place, velocity)
        plans = Plans(place, velocity, way, wanted[1], self.length, self.turning, self._under_way())
        if self.returning and self.chosen is None and self._home is not None and self._leg == plans.course:
            plans.home = self._home
        order = self._decide(plans, place, velocity, wanted, targets)
        self._turns_to(order or wanted, plans)
        return order

    def _under_way(self) -> tuple[Place, Place, float] | None:
        """The turn to the order that holds, for :class:`Plans`."""
        t = self._turn
        if t is None or t.ends - self._now < 0.5:
            return None
        return (t.order if self.chosen is not None else (math.nan, t.order[1])), t.end, t.ends - self._now

    def _turns_to(self, order: tuple[float, float], plans: Plans) -> None:
        """Note that a turn begins. What she does in it says nothing about where it ends: a turn takes way off, and she seems to be about
        to pass where she will never be."""
        if self.chosen is None and not self.returning:
            self._turn = None
            return
        if self._turn is not None:
            course, speed = self._turn.order
            if abs(wrap(order[0] - course)) < NEW and abs(order[1] - speed) < 1e-6:
                return
        off, end, left = plans.turn_to(order)
        begin = self._steady(plans.velocity, (float(atan2(plans.velocity[1], plans.velocity[0])), order[1]))
        known = begin and off > MEASURED and (self._turn is None or self._turn.ends <= self._now)
        self._turn = Turn(self._now, plans.place, plans.velocity, order, off if known else 0.0, end, self._now + left)

    def _steady(self, velocity: Place, order: tuple[float, float]) -> bool:
        """Whether a turn is over."""
        off = wrap(float(atan2(velocity[1], velocity[0])) - order[0])
        return abs(off) < STEADY[0] and abs(float(hypot(*velocity)) - order[1]) < STEADY[1] * order[1]

    def _measure(self, place: Place, velocity: Place) -> None:
        """Learn from the turn that is over now."""
        t = self._turn
        if t is None or not t.off or not self._steady(velocity, t.order):
            return
        s, c = (float(v) for v in sin_cos(t.order[0]))
        speed, straight = hypot(*t.velocity), t.order[1] * (self._now - t.began)
        n, e = place[0] - t.place[0] - straight * c, place[1] - t.place[1] - straight * s
        vn, ve = t.velocity[0] / speed, t.velocity[1] / speed
        sine = vn * s - ve * c  # of the turn
        corner, behind = (n * s - e * c) / sine, (n * ve - e * vn) / sine
        self.turning.measure(t.off, corner / self.length, (behind - corner) / self.length)
        self._turn = dataclasses.replace(t, off=0.0)

    def _decide(
        self,
        plans: Plans,
        place: Place,
        velocity: Place,
        wanted: tuple[float, float],
        targets: Sequence[Target],
    ) -> tuple[float, float] | None:
        """The order of this second."""
        on = plans.sail(*(np.array([v]) for v in (0.0, 1.0, 0.0, 0.0)))  # go on, or return
        own = float(atan2(velocity[1], velocity[0])) if hypot(*velocity) > 0.1 * self.speed else wanted[0]
        for t in targets:
            self._judge(t, on, place, velocity, own)
        self._forget(targets)
        here = [t for t in targets if t.who in self.roles]
        acting = [t for t in here if self._acts_for(t, place, velocity)]
        self._busy += 1.0
        if self.chosen is None:
            if all(self._free(on, place, [t], self._kept(t))[0] for t in acting):
                return self._back(plans, wanted)
        elif not acting or self._free(on, place, targets, RESUME + ABORTED * self._aborted, BEYOND)[0]:
            self.chosen, self.returning, self._home = None, True, None
            return self._back(plans, wanted)
        else:
            straight = plans.course, wanted[1]
            if (
                self.chosen != straight
                and (back := self._ends(plans, straight, place, targets, RESUME + ABORTED * self._aborted, BEYOND))
                < math.inf
            ):
                self.chosen = straight
                self._allow(back)
            if self.chosen != straight and self._busy > LONGEST * self.horizon:
                stop = plans.sail(*(np.array([v]) for v in (0.0, 0.0, self.horizon, 0.0)))
                if self._free(stop, place, targets, STOP)[0]:  # 8e: let her go who keeps pace
                    self.chosen = self.chosen[0], 0.0
                    return self.chosen
            if self._ends(plans, self.chosen, place, targets, KEEP) < self._until_back - self._busy:
                return self.chosen
        self._choose(plans, place, targets, acting)
        return self.chosen if self.chosen is not None else self._back(plans, wanted)

    def _kept(self, t: Target) -> float:
        """The share of ``clear`` with which she goes on past a target, or keeps to a return that has begun."""
        return KEEP if self.returning else 1.0

    def _back(self, plans: Plans, wanted: tuple[float, float]) -> tuple[float, float] | None:
        """The mission; after a manoeuvre first straight towards its leg, as plans sail it, and then by one turn on to it. Guidance
        returns along a curve that depends on its lookahead: what was planned did not come about, and good returns were given up."""
        if not self.returning:
            return None
        off = wrap(float(atan2(plans.velocity[1], plans.velocity[0])) - plans.course)
        if self._home is None or self._leg != plans.course:
            self._leg, self._home = plans.course, plans.home
        near = float(self.turning.corner(np.array(off))) * self.length * abs(float(sin_cos(off)[0]))
        if plans.across * self._home >= 0.0 or (off * self._home > 0.0 and abs(plans.across) <= near):
            self._home = 0.0  # the last corner
        if self._home == 0.0 and abs(off) < NEW:
            self.returning, self._home = False, None
            return None
        return wrap(plans.course + self._home), wanted[1]

    def _clear(self, t: Target) -> float:
        return min(self.clear, FIXED * self.length) if t.fixed else self.clear

    def _judge(self, t: Target, on: Paths, place: Place, velocity: Place, own: float) -> None:
        """Note the role towards a target when its conflict begins; forget it when it is past and clear."""
        away = t.place[0] - place[0], t.place[1] - place[1]
        approach, _, _ = on.nearest(t, np.maximum(self._until(on, t, 0.0), 2.0 * self.horizon))
        near = approach[0] < 1.2 * self._clear(t)
        closing = away[0] * (t.velocity[0] - velocity[0]) + away[1] * (t.velocity[1] - velocity[1]) < 0.0
        if t.who not in self.roles:
            if near and (closing or approach[0] < hypot(*away) - 0.5 * t.length - 1e-6):
                course, speed = float(atan2(t.velocity[1], t.velocity[0])), float(hypot(*t.velocity))
                part = role(away, own, course, self.speed, speed)
                slow = speed < SLOW_TARGET * self.speed
                self.roles[t.who] = Role.OVERTAKING if slow and part in HOLDS else part
        elif not closing and not near and hypot(*away) > self._clear(t):
            del self.roles[t.who]

    def _forget(self, targets: Sequence[Target]) -> None:
        """Roles of those who are seen no more: their numbers may come again."""
        seen = {t.who for t in targets}
        for who in list(self.roles):
            self._unseen[who] = 0.0 if who in seen else self._unseen.get(who, 0.0) + 1.0
            if self._unseen[who] > FORGET:
                del self.roles[who]
        self._unseen = {who: n for who, n in self._unseen.items() if who in self.roles}

    def _acts_for(self, t: Target, place: Place, velocity: Place) -> bool:
        """Whether she has to do something about a target."""
        if self.roles[t.who] not in HOLDS or self.chosen is not None:
            return True
        n, e = t.place[0] - place[0], t.place[1] - place[1]
        vn, ve = t.velocity[0] - velocity[0], t.velocity[1] - velocity[1]
        square = vn * vn + ve * ve
        time = -(n * vn + e * ve) / square if square > 1e-6 else 0.0
        at = max(time, 0.0)
        return time < self.patience and float(hypot(n + vn * at, e + ve * at)) - 0.5 * t.length < self._clear(t)

    def _free(self, paths: Paths, place: Place, targets: Sequence[Target], share: float, after: float = 0.0) -> Any:
        """Which plans keep a share of ``clear`` from all targets; who is nearer already comes no nearer. They look a horizon ahead; in a
        manoeuvre, so many horizons beyond its end."""
        free = np.ones(len(paths.back), bool)
        for t in targets:
            now = self._apart(place, t)
            free &= paths.nearest(t, self._until(paths, t, after))[0] >= min(share * self._clear(t), now) - 1e-6
        return free

    def _apart(self, place: Place, t: Target) -> float:
        return float(hypot(t.place[0] - place[0], t.place[1] - place[1])) - 0.5 * t.length

    def _until(self, paths: Paths, t: Target, after: float) -> Array:
        """How far ahead a target counts; whom she overtakes, until she is finally past and clear (13d)."""
        far = (
            2.0 * PARALLEL[-1] * self.length / self.speed
            if self.roles.get(t.who) is Role.OVERTAKING and not t.fixed
            else 0.0
        )
        return np.maximum(paths.back + after * self.horizon if after else self.horizon, np.minimum(far, paths.ends))

    def _ends(
        self,
        plans: Plans,
        order: tuple[float, float],
        place: Place,
        targets: Sequence[Target],
        share: float,
        after: float = 1.0,
    ) -> float:
        """When the first free plan that begins with an order is back on the way, s; infinite without one. The plan that holds is among
        them with what is left of it: rounded to the grid it would seem to end."""
        turn, part = wrap(order[0] - plans.course), order[1] / plans.speed
        hold, parallel = self._all[2:, np.abs(self._all[0] - TURNS[1]) + np.abs(self._all[1] - 1.0) < 1e-9]
        keeps = order == self.chosen
        if keeps:
            left = self._until_parallel - self._now - float(plans.first(np.array([turn]), np.array([part]))[2][0])
            hold = np.append(hold, max(left, 1e-3))
            parallel = np.append(parallel, max(self._parallel + min(left, 0.0), 0.0))
        paths = plans.sail(np.full(len(hold), turn), np.full(len(hold), part), hold, parallel)
        backs = np.where(self._free(paths, place, targets, share, after), paths.back, math.inf)
        k = int(np.argmin(backs))
        if not keeps and backs[k] < math.inf:
            self._plan(paths, hold, parallel, k)
        return float(backs[k])

    def _plan(self, paths: Paths, hold: Array, parallel: Array, k: int) -> None:
        """Note the plan that is taken."""
        self._until_parallel = self._now + float(paths.lasts[0, k] + hold[k])
        self._parallel = float(parallel[k])

    def _allow(self, back: float) -> None:
        """A manoeuvre that is not over when it was to be is chosen anew: others may keep pace with her for ever."""
        self._until_back = self._busy + LATE * back + 0.5 * self.horizon

    def _choose(self, plans: Plans, place: Place, targets: Sequence[Target], acting: Sequence[Target]) -> None:
        """Take the plan of least price."""
        if self.chosen is None and not self.returning:
            self._busy = self._aborted = 0.0
        elif self.chosen in (None, (plans.course, plans.speed)):
            self._aborted += 1.0
        turn, share, hold, parallel = self._all
        paths = plans.sail(turn, share, hold, parallel)
        price = TURN * np.abs(turn) + SLOW * (1.0 - share) + CUT * paths.cut
        delay = DELAY * (
            1.0 + max(0.0, self._busy / self.horizon - 1.0)
        )  # the longer it has lasted, the sooner it is to end
        price = price + delay * paths.late / self.horizon
        if any(self.roles[t.who] in RULES | HOLDS for t in acting):  # 14, 15, 17c
            price = price + np.where(turn < 0.0, PORT, 0.0)
        if self.chosen is not None:
            off = np.abs(turn - wrap(self.chosen[0] - plans.course))
            off = np.minimum(off, 2.0 * math.pi - off)
            price = price + CHANGE * (off + np.abs(share - self.chosen[1] / plans.speed))
        for t in targets:
            price = price + self._risk(paths, place, t)
        k = int(np.argmin(price))
        self._allow(float(paths.back[k]))
        self._plan(paths, hold, parallel, k)
        self.turns.append(float(turn[k]))
        self.chosen = wrap(plans.course + float(turn[k])), plans.speed * float(share[k])

    def _risk(self, paths: Paths, place: Place, t: Target) -> Array:
        approach, time, ahead = paths.nearest(t, self._until(paths, t, BEYOND))
        kept = np.maximum(approach, 0.0) / self._clear(t)
        lack, now = np.maximum(1.0 - kept, 0.0), max(0.0, 1.0 - max(self._apart(place, t), 0.0) / self._clear(t))
        # that she is too near already is no reason for a plan that only stays so near
        price = DANGER * (now + np.maximum(lack - now, 0.0) * (1.0 + self.horizon / (time + 0.1 * self.horizon)))
        price = price + MARGIN * np.clip((PLAN - kept) / (PLAN - KEEP), 0.0, 1.0)
        if self.roles.get(t.who) is Role.GIVE_WAY:
            price = price + np.where((ahead > 0.0) & (approach < 3.0 * self.clear), AHEAD, 0.0)
        return np.asarray(price)
