"""Reference collision avoidance: plans over course and speed, with costs from the collision regulations (COLREG 8, 13 to 17).

    avoider = Avoider(length=2.0, speed=3.0)
    order = avoider.order(place, velocity, wanted, targets, way)       # (course, speed), or None: follow the mission

Call it once a second. It uses only a target list: positions and velocities, without intentions.

A *plan* (:class:`Plans`) is a complete manoeuvre: hold a course and a speed, sail parallel to the mission's leg, return to the
leg, and continue along it. A plan is free if no target approaches closer than ``clear_distance`` until one horizon after the vessel
is back on its leg. The vessel acts when the plan "continue" is not free within ``horizon``. It selects the plan of minimum cost;
only large changes are candidates, because other vessels do not notice small ones. It keeps the course until it can sail
parallel to the leg, and keeps parallel until it can return. Starting either step needs a margin; keeping it does not. As the
stand-on vessel it holds course and speed until the other vessel has failed to act for too long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.encounters import EncounterRole, domain, role
from wavesim_sdk.frames import wrap
from wavesim_sdk.targets import Target

Array = np.ndarray[Any, np.dtype[np.float64]]
Place = tuple[float, float]

CANDIDATE_TURNS = (0.0, *(math.radians(sign * t) for t in (30, 35, 40, 45, 50, 60, 70, 80, 90) for sign in (1, -1)))
CANDIDATE_SPEEDS = (1.0, 0.5, 0.25, 0.0)
HOLD = (
    5.0,
    10.0,
    15.0,
    20.0,
    25.0,
    30.0,
    40.0,
    60.0,
    90.0,
)  #: distances for which a plan may hold its course, in ship lengths
PARALLEL = (
    0.0,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    320.0,
    640.0,
    1280.0,
)  #: distances for which a plan may sail parallel to its leg, in ship lengths
STARBOARD_ONLY_ROLES = {
    EncounterRole.HEAD_ON,
    EncounterRole.GIVE_WAY,
}  #: roles in which the vessel does not turn to port
STAND_ON_ROLES = {EncounterRole.STAND_ON, EncounterRole.OVERTAKEN}
# costs: a turn of 1 rad, stopping, a port turn against the rules, passing ahead, a changed decision, a delay of one horizon,
# cutting off a waypoint
TURN_COST, SLOWDOWN_COST, PORT_TURN_COST, PASS_AHEAD_COST, CHANGE_COST, DELAY, CUT = 1.0, 2.5, 6.0, 2.0, 0.4, 1.0, 2.5
PATIENCE = 35.0  #: distance before the closest approach at which the stand-on vessel may act (17a ii), in ship lengths
CONFLICT_COST = 20.0  #: cost of an imminent conflict
MARGIN = 0.3  #: cost of a plan that passes at ``clear_distance`` without margin
RETURN = math.radians(60.0)  #: maximum angle to the leg when the vessel returns after a manoeuvre
COTANGENT = math.sqrt(1.0 / 3.0)  #: cotangent of RETURN
#: fractions of ``clear_distance`` needed to start the next stage of a manoeuvre, and to keep the current one
RESUME, KEEP = 1.1, 0.9
LONGEST, STOP = (
    4.0,
    0.3,
)  #: horizons after which the vessel stops to end a manoeuvre, if others then keep a fraction STOP of ``clear_distance``
ABORTED = 0.25  #: additional margin of the next return after an aborted one
ANSWER, RADIUS = 1.0, 3.0  #: distance before the vessel answers the helm, and radius of a turn, in ship lengths
GATHER = 6.0  #: distance in which the vessel reaches full speed or stops, in ship lengths
SHARPEST = math.radians(120.0)
#: fraction of ``clear_distance`` that a return ahead of an overtaken vessel must keep: own ship loses speed in the turn,
#: so the prediction made at its start is too short
RETURNING = 0.85
ON_LEG = (
    1.0  #: distance from the leg at which a return ends, in ship lengths; a new decision before that counts as an abort
)
FIXED = 3.0  #: distance at which the vessel passes charted objects, in ship lengths
SLOW_TARGET = 0.1  #: fraction of own speed; a slower target is not expected to give way
FORGET = 60.0  #: time, in s (calls), after which the role of a lost target is dropped


class Plans:
    """Candidate manoeuvres from ``place``, evaluated together as straight segments.

    Each holds a turn off the leg at a fraction of the speed, sails parallel to the leg, returns at :data:`RETURN`, and continues
    along ``way``: start of the leg, its waypoint and the next one.
    """

    def __init__(self, place: Place, velocity: Place, way: Sequence[Place], speed: float, length: float) -> None:
        (an, ae), (bn, be) = way[0], way[1]
        self.place, self.velocity, self.speed, self.length = place, velocity, speed, length
        self.long = float(hypot(bn - an, be - ae))
        self.course = float(atan2(be - ae, bn - an))
        self.begin, self.corner = (an, ae), (bn, be)
        s, c = sin_cos(self.course)
        self.ahead = float(c), float(s)
        self.next: tuple[Place, float] | None = None  # direction and length of the next leg
        if len(way) > 2 and self.long > 0.0:
            dn, de = way[2][0] - bn, way[2][1] - be
            long = float(hypot(dn, de))
            if long > 0.0:
                self.next = (dn / long, de / long), long

    @property
    def across(self) -> float:
        """Distance of the vessel from its leg in m, positive to the right."""
        return _along(np.asarray(self.place[0]), np.asarray(self.place[1]), self.begin, self.ahead)[1].item()

    def _lag(self, turn: Array, share: Array) -> Array:
        """Return the time in s for which the vessel continues before it turns off the leg by ``turn`` (NaN: back to the leg).

        The time allows for the late response to the helm, for slow changes of speed, and for the distance to the corner
        that replaces the arc of the turn.
        """
        home = -RETURN * max(-1.0, min(1.0, self.across / (4.0 * self.length)))
        speed = hypot(*self.velocity)
        now = float(atan2(self.velocity[1], self.velocity[0])) - self.course if speed > 0.1 * self.speed else 0.0
        off = np.abs(np.where(np.isnan(turn), home, turn) - wrap(now))
        half = 0.5 * np.minimum(np.minimum(off, 2.0 * math.pi - off), SHARPEST)
        s, c = sin_cos(half)
        gather = GATHER * np.abs(share - speed / self.speed)
        return np.asarray((ANSWER + RADIUS * s / c + gather) * self.length / self.speed)

    def sail(self, turn: Array, share: Array, hold: Array, parallel: Array) -> Paths:
        """Return the plans for turns (rad) and speed fractions, held for ``hold`` s, then parallel to the leg for ``parallel`` s."""
        u, (c, s) = self.speed, self.ahead
        st, ct = sin_cos(self.course + turn)
        zero = np.zeros(len(turn))
        n, e = zero + self.place[0], zero + self.place[1]
        lag = self._lag(np.where(hold + parallel > 0.0, turn, math.nan), np.where(hold > 0.0, share, 1.0))
        n0, e0 = n + self.velocity[0] * lag, e + self.velocity[1] * lag
        v1n, v1e = u * share * ct, u * share * st
        n1, e1 = n0 + v1n * hold, e0 + v1e * hold
        n2, e2 = n1 + u * c * parallel, e1 + u * s * parallel
        along, across = _along(n2, e2, self.begin, self.ahead)
        joins = along + COTANGENT * np.abs(across)
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
            np.stack([zero + self.velocity[0], v1n, zero + u * c, (n3 - n2) / some, zero + u * c, v5n]),
            np.stack([zero + self.velocity[1], v1e, zero + u * s, (e3 - e2) / some, zero + u * s, v5e]),
        )
        lasts = np.stack([lag, hold, parallel, back, leg, zero + math.inf])
        times = np.concatenate([np.zeros((1, len(turn))), np.cumsum(lasts[:-1], axis=0)])
        begun = (self.place[0] - self.begin[0]) * c + (self.place[1] - self.begin[1]) * s
        late = np.maximum(times[4] - (gone - begun) / u, 0.0)
        left = times[5] + (np.where(beyond, long - joins2, long) / u if self.next is not None else math.inf)
        return Paths(starts, speeds, times, lasts, times[4], late, left, beyond)


@dataclass(frozen=True)
class Paths:
    """K plans as segments (6, K): starts and velocities (north, east), start times and durations in s.

    ``back`` (K): time at which the vessel is back on its track; ``late`` (K): delay caused by the manoeuvre;
    ``ends`` (K): time at which the known track ends, all in s.
    """

    starts: tuple[Array, Array]
    velocities: tuple[Array, Array]
    times: Array
    lasts: Array
    back: Array
    late: Array
    ends: Array
    cut: Any  #: whether a plan cuts off the next waypoint (K)

    def nearest(self, t: Target, until: Array) -> tuple[Array, Array, Array]:
        """Return (minimum distance, its time, distance ahead of the target at that time) of each plan, up to time ``until``.

        The target keeps its velocity.
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


def _along(n: Array, e: Array, begin: Place, ahead: Place) -> tuple[Array, Array]:
    """Return (along-track, cross-track) coordinates on a leg."""
    n, e = n - begin[0], e - begin[1]
    return n * ahead[0] + e * ahead[1], e * ahead[0] - n * ahead[1]


def _root(n: Array, e: Array) -> Array:
    return np.asarray(np.sqrt(n * n + e * e))


@dataclass
class Avoider:
    """Collision avoidance of one vessel. Lengths in m, speeds in m/s, times in s; a value of 0 is derived from length and speed."""

    length: float
    speed: float
    clear_distance: float = 0.0  #: minimum passing distance; default: the preferred ship domain
    horizon: float = 0.0  #: how early the vessel acts; default: time to sail 60 ship lengths
    patience: float = 0.0  #: TCPA at which the stand-on vessel acts; default: time to sail 35 ship lengths
    roles: dict[int, EncounterRole] = field(default_factory=dict)  #: role towards each target with a conflict
    chosen_order: tuple[float, float] | None = None  #: course and speed that the vessel holds now
    returning: bool = False  #: whether the vessel returns to its leg after a manoeuvre
    chosen_turns: list[float] = field(
        default_factory=list
    )  #: turn off the course of the leg in rad, for each decision so far
    _unseen: dict[int, float] = field(default_factory=dict)
    _busy: float = 0.0  #: time since the vessel left its leg, s (calls)
    _aborted: float = 0.0  #: number of aborted returns to the leg since then
    _until_back: float = 0.0  #: when the manoeuvre should end, s (calls)

    def __post_init__(self) -> None:
        self.clear_distance = self.clear_distance or domain(self.length)[1]
        self.horizon = self.horizon or 60.0 * self.length / self.speed
        self.patience = self.patience or PATIENCE * self.length / self.speed
        way = self.length / self.speed  # s
        grid = [(0.0, 1.0, 0.0, p) for p in PARALLEL[1:]]
        grid += [
            (a, k, h, p)
            for a in CANDIDATE_TURNS
            for k in CANDIDATE_SPEEDS
            for h in HOLD
            for p in PARALLEL
            if (a, k) != (0.0, 1.0)
        ]
        self._all = np.array(grid).T * np.array([1.0, 1.0, way, way])[:, None]

    def order(
        self,
        place: Place,
        velocity: Place,
        wanted: tuple[float, float],
        targets: Sequence[Target],
        way: Sequence[Place] = (),
    ) -> tuple[float, float] | None:
        """Return the (course, speed) of a manoeuvre, or None to keep the (course, speed) ``wanted`` by the mission.

        ``way``: start of the leg, next waypoint and the one after it; without it, the leg is the desired course.
        """
        if wanted[1] <= 0.0:
            return None  # a vessel that must stop does not avoid
        if len(way) < 2:
            s, c = sin_cos(wanted[0])
            way = place, (place[0] + float(c), place[1] + float(s))
        plans = Plans(place, velocity, way, wanted[1], self.length)
        on = plans.sail(*(np.array([v]) for v in (0.0, 1.0, 0.0, 0.0)))  # continue, or return
        own = float(atan2(velocity[1], velocity[0])) if hypot(*velocity) > 0.1 * self.speed else wanted[0]
        for t in targets:
            self._judge(t, on, place, velocity, own)
        self._forget(targets)
        here = [t for t in targets if t.track_id in self.roles]
        acting = [t for t in here if self._acts_for(t, place, velocity)]
        self._busy += 1.0
        if self.chosen_order is None:
            if all(self._free(on, place, [t], self._kept(t))[0] for t in acting):
                return self._back(plans, wanted)
        elif not acting or self._free(on, place, targets, RESUME + ABORTED * self._aborted, 1.5)[0]:
            self.chosen_order, self.returning = None, True
            return self._back(plans, wanted)
        else:
            straight = plans.course, wanted[1]
            if (
                self.chosen_order != straight
                and (back := self._ends(plans, straight, place, targets, RESUME)) < math.inf
            ):
                self.chosen_order = straight
                self._allow(back)
            if self.chosen_order != straight and self._busy > LONGEST * self.horizon:
                stop = plans.sail(*(np.array([v]) for v in (0.0, 0.0, self.horizon, 0.0)))
                if self._free(stop, place, targets, STOP)[0]:  # rule 8e: let a vessel that keeps pace pass
                    self.chosen_order = self.chosen_order[0], 0.0
                    return self.chosen_order
            if self._ends(plans, self.chosen_order, place, targets, KEEP) < self._until_back - self._busy:
                return self.chosen_order
        self._choose(plans, place, targets, acting)
        return self.chosen_order if self.chosen_order is not None else self._back(plans, wanted)

    def _kept(self, t: Target) -> float:
        """Return the fraction of ``clear_distance`` that own ship must keep to pass a target or to continue a return."""
        if not self.returning:
            return 1.0
        return RETURNING if self.roles[t.track_id] is EncounterRole.OVERTAKING else KEEP

    def _back(self, plans: Plans, wanted: tuple[float, float]) -> tuple[float, float] | None:
        """Return None to follow the mission, or after a manoeuvre a course at an acute angle towards its leg."""
        off = wrap(wanted[0] - plans.course)
        self.returning = self.returning and abs(plans.across) > ON_LEG * self.length
        if not self.returning or abs(off) <= RETURN:
            return None
        return wrap(plans.course + math.copysign(RETURN, off)), wanted[1]

    def _clear(self, t: Target) -> float:
        return min(self.clear_distance, FIXED * self.length) if t.fixed else self.clear_distance

    def _judge(self, t: Target, on: Paths, place: Place, velocity: Place, own: float) -> None:
        """Record the role towards a target when a conflict begins; drop it when the target is past and clear."""
        away = t.place[0] - place[0], t.place[1] - place[1]
        approach, _, _ = on.nearest(t, np.maximum(self._until(on, t, 0.0), 2.0 * self.horizon))
        near = approach[0] < 1.2 * self._clear(t)
        closing = away[0] * (t.velocity[0] - velocity[0]) + away[1] * (t.velocity[1] - velocity[1]) < 0.0
        if t.track_id not in self.roles:
            if near and (closing or approach[0] < hypot(*away) - 0.5 * t.length - 1e-6):
                course, speed = float(atan2(t.velocity[1], t.velocity[0])), float(hypot(*t.velocity))
                part = role(away, own, course, self.speed, speed)
                slow = speed < SLOW_TARGET * self.speed
                self.roles[t.track_id] = EncounterRole.OVERTAKING if slow and part in STAND_ON_ROLES else part
        elif not closing and not near and hypot(*away) > self._clear(t):
            del self.roles[t.track_id]

    def _forget(self, targets: Sequence[Target]) -> None:
        """Drop the roles of lost targets, because their numbers may be reused."""
        seen = {t.track_id for t in targets}
        for who in list(self.roles):
            self._unseen[who] = 0.0 if who in seen else self._unseen.get(who, 0.0) + 1.0
            if self._unseen[who] > FORGET:
                del self.roles[who]
        self._unseen = {who: n for who, n in self._unseen.items() if who in self.roles}

    def _acts_for(self, t: Target, place: Place, velocity: Place) -> bool:
        """Return whether the vessel must act for a target."""
        if self.roles[t.track_id] not in STAND_ON_ROLES or self.chosen_order is not None:
            return True
        n, e = t.place[0] - place[0], t.place[1] - place[1]
        vn, ve = t.velocity[0] - velocity[0], t.velocity[1] - velocity[1]
        square = vn * vn + ve * ve
        time = -(n * vn + e * ve) / square if square > 1e-6 else 0.0
        at = max(time, 0.0)
        return time < self.patience and float(hypot(n + vn * at, e + ve * at)) - 0.5 * t.length < self._clear(t)

    def _free(self, paths: Paths, place: Place, targets: Sequence[Target], share: float, after: float = 0.0) -> Any:
        """Return which plans keep the fraction ``share`` of ``clear_distance`` from all targets.

        A target that is already closer must not approach further. The check covers one horizon, or in a manoeuvre ``after`` horizons
        beyond its end.
        """
        free = np.ones(len(paths.back), bool)
        for t in targets:
            now = self._apart(place, t)
            free &= paths.nearest(t, self._until(paths, t, after))[0] >= min(share * self._clear(t), now) - 1e-6
        return free

    def _apart(self, place: Place, t: Target) -> float:
        return float(hypot(t.place[0] - place[0], t.place[1] - place[1])) - 0.5 * t.length

    def _until(self, paths: Paths, t: Target, after: float) -> Array:
        """Return the time until which a target counts; an overtaken vessel counts until she is finally past and clear (13d)."""
        far = (
            2.0 * PARALLEL[-1] * self.length / self.speed
            if self.roles.get(t.track_id) is EncounterRole.OVERTAKING and not t.fixed
            else 0.0
        )
        return np.maximum(paths.back + after * self.horizon if after else self.horizon, np.minimum(far, paths.ends))

    def _ends(
        self, plans: Plans, order: tuple[float, float], place: Place, targets: Sequence[Target], share: float
    ) -> float:
        """Return the earliest time in s at which a free plan that starts with an order is back on the track, or inf."""
        turn, part = wrap(order[0] - plans.course), order[1] / plans.speed
        hold, parallel = self._all[2:, np.abs(self._all[0] - CANDIDATE_TURNS[1]) + np.abs(self._all[1] - 1.0) < 1e-9]
        paths = plans.sail(np.full(len(hold), turn), np.full(len(hold), part), hold, parallel)
        return float(np.where(self._free(paths, place, targets, share, 1.0), paths.back, math.inf).min())

    def _allow(self, back: float) -> None:
        """Set the time after which the manoeuvre is planned again, because another vessel may keep pace indefinitely."""
        self._until_back = self._busy + 1.25 * back + 0.5 * self.horizon

    def _choose(self, plans: Plans, place: Place, targets: Sequence[Target], acting: Sequence[Target]) -> None:
        """Select the plan of minimum cost."""
        if self.chosen_order is None and not self.returning:
            self._busy = self._aborted = 0.0
        elif self.chosen_order is None:
            self._aborted += 1.0
        turn, share, hold, parallel = self._all
        paths = plans.sail(turn, share, hold, parallel)
        price = TURN_COST * np.abs(turn) + SLOWDOWN_COST * (1.0 - share) + CUT * paths.cut
        delay = DELAY * (
            1.0 + max(0.0, self._busy / self.horizon - 1.0)
        )  # a delay costs more the longer the manoeuvre lasts
        price = price + delay * paths.late / self.horizon
        if any(self.roles[t.track_id] in STARBOARD_ONLY_ROLES | STAND_ON_ROLES for t in acting):  # 14, 15, 17c
            price = price + np.where(turn < 0.0, PORT_TURN_COST, 0.0)
        if self.chosen_order is not None:
            off = np.abs(turn - wrap(self.chosen_order[0] - plans.course))
            off = np.minimum(off, 2.0 * math.pi - off)
            price = price + CHANGE_COST * (off + np.abs(share - self.chosen_order[1] / plans.speed))
        for t in targets:
            price = price + self._risk(paths, place, t)
        k = int(np.argmin(price))
        self._allow(float(paths.back[k]))
        self.chosen_turns.append(float(turn[k]))
        self.chosen_order = wrap(plans.course + float(turn[k])), plans.speed * float(share[k])

    def _risk(self, paths: Paths, place: Place, t: Target) -> Array:
        approach, time, ahead = paths.nearest(t, self._until(paths, t, 1.0))
        kept = np.maximum(approach, 0.0) / self._clear(t)
        lack, now = np.maximum(1.0 - kept, 0.0), max(0.0, 1.0 - max(self._apart(place, t), 0.0) / self._clear(t))
        # a target that is already too near must not favour plans that stay that near
        price = CONFLICT_COST * (now + np.maximum(lack - now, 0.0) * (1.0 + self.horizon / (time + 0.1 * self.horizon)))
        price = price + MARGIN * np.clip((RESUME - kept) / (RESUME - 1.0), 0.0, 1.0)
        if self.roles.get(t.track_id) is EncounterRole.GIVE_WAY:
            price = price + np.where((ahead > 0.0) & (approach < 3.0 * self.clear_distance), PASS_AHEAD_COST, 0.0)
        return np.asarray(price)
