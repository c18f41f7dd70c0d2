"""Reference collision avoidance: it evaluates plans for course and speed, with costs derived from the collision
regulations (COLREG rules 8 and 13 to 17).

    avoider = Avoider(length=2.0, speed=3.0)
    order = avoider.order(place, velocity, wanted, targets, way)       # (course, speed), or None: follow the mission

The avoider must be called once a second. It uses only a list of targets with their positions and velocities; it does
not know their intentions.

A *plan* (:class:`Plans`) is a complete manoeuvre: hold a course and a speed, sail parallel to the mission's leg, return
to the leg, and continue along it. A plan is clear if no target comes closer than ``clear_distance`` during the
manoeuvre and for one horizon after the vessel has returned to its leg. The vessel acts when the plan to continue along
the leg is not clear within ``horizon``. It selects the plan with the minimum cost; only large changes of course and
speed are candidates, because other vessels do not notice small ones. It holds its course until it can sail parallel to
the leg, and sails parallel until it can return. The start of the parallel stage or of the return requires a margin; the
continuation of a stage does not. As the stand-on vessel, it holds course and speed until the other vessel has failed to
act for too long.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.frames import wrap
from wavesim_sdk.guidance.avoidance_plans import MEASURED, Paths, Place, Plans, Turn, Turning
from wavesim_sdk.guidance.encounters import EncounterRole, domain, role
from wavesim_sdk.guidance.targets import Target

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
)  #: possible distances, in ship lengths, over which a plan holds its course
#: possible lengths of the plan's segment parallel to the leg, in ship lengths: 0, 10, 20, 40 and so on, up to 2560
PARALLEL = (0.0, *(10.0 * 2.0**k for k in range(9)))
STARBOARD_ONLY_ROLES = {
    EncounterRole.HEAD_ON,
    EncounterRole.GIVE_WAY,
}  #: roles in which the vessel must not turn to port
STAND_ON_ROLES = {EncounterRole.STAND_ON, EncounterRole.OVERTAKEN}
# costs: a turn of 1 rad, stopping, a port turn against the rules, passing ahead, a changed decision, a delay of one horizon,
# cutting off a waypoint
TURN_COST, SLOWDOWN_COST, PORT_TURN_COST, PASS_AHEAD_COST, CHANGE_COST, DELAY, CUT = 1.0, 4.0, 6.0, 2.0, 0.4, 3.0, 2.5
PATIENCE = (
    35.0  #: distance before the closest approach, in ship lengths, at which the stand-on vessel may act (rule 17a ii)
)
CONFLICT_COST = 20.0  #: cost of a plan with an imminent conflict
#: cost of a plan that passes a target at exactly ``clear_distance``, which is too close for the next stage of the plan
#: to start
MARGIN = 3.0
#: minimum passing distances, as multiples of ``clear_distance``, required to select a plan, to start its next stage,
#: and to continue its current stage
PLAN, RESUME, KEEP = 1.25, 1.15, 1.0
#: the next stage of a plan must stay free of conflicts until BEYOND horizons after the end of the manoeuvre; the
#: current stage must stay free of conflicts until 1 horizon after that end
BEYOND = 1.5
LONGEST, STOP = (
    4.0,
    0.3,
    #: after LONGEST horizons, a vessel may stop if it then stays at least STOP times ``clear_distance`` away from all
    #: targets
)
LATE = 1.5  #: a manoeuvre is planned again after LATE times its planned duration, plus half a horizon
ABORTED = 0.25  #: fraction of ``clear_distance`` added to the minimum distance of the next stage for each aborted stage
NEW = math.radians(12.0)  #: minimum change of course that counts as a new turn
STEADY = math.radians(2.0), 0.04  #: course error in rad and relative speed error below which a turn counts as complete
FIXED = 3.0  #: distance, in ship lengths, at which the vessel passes charted objects
SLOW_TARGET = 0.1  #: fraction of own speed below which the vessel does not expect a target to give way
FORGET = 60.0  #: time in s after which the vessel drops its role towards a lost target


@dataclass
class Avoider:
    """Collision avoidance for one vessel. Lengths in m, speeds in m/s, times in s; a field with the value 0 gets a
    default that is derived from length and speed.
    """

    length: float
    speed: float
    clear_distance: float = 0.0  #: minimum passing distance; default: the preferred ship domain
    horizon: float = 0.0  #: time for which a plan must be free of conflicts; default: time to sail 60 ship lengths
    patience: float = 0.0  #: TCPA at which the stand-on vessel acts; default: time to sail 35 ship lengths
    #: role of the vessel towards each target with which it has a conflict
    roles: dict[int, EncounterRole] = field(default_factory=dict)
    chosen_order: tuple[float, float] | None = None  #: course and speed that the vessel is holding now
    returning: bool = False  #: whether the vessel is returning to its leg after a manoeuvre
    chosen_turns: list[float] = field(
        default_factory=list
    )  #: turn in rad, relative to the course of the leg, for each decision so far
    turning: Turning = field(default_factory=Turning)  #: turning behaviour measured so far
    _home: float | None = None  #: course of the return, relative to the leg, in rad; 0 during the turn onto the leg
    _leg: float = 0.0  #: course of the current leg in rad
    _now: float = 0.0  #: time in s since the first call
    _turn: Turn | None = None
    _unseen: dict[int, float] = field(default_factory=dict)
    _busy: float = 0.0  #: time in s since the vessel left its leg
    _aborted: float = 0.0  #: number of stages aborted since the vessel left its leg
    _until_back: float = 0.0  #: time in s after leaving the leg at which the manoeuvre should end
    _until_parallel: float = 0.0  #: time in s at which the current course of the manoeuvre should end
    _parallel: float = 0.0  #: planned duration in s of the stage parallel to the leg, after the current course

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
        """Return the (course, speed) of a manoeuvre, or None if the vessel should follow ``wanted``, the (course,
        speed) of its mission.

        ``way`` consists of the start of the leg, the next waypoint and the waypoint after it; without ``way``, the
        desired course defines the leg.
        """
        if wanted[1] <= 0.0:
            return None  # a vessel that must stop does not avoid
        if len(way) < 2:
            s, c = sin_cos(wanted[0])
            way = place, (place[0] + float(c), place[1] + float(s))
        self._now += 1.0
        self._measure(place, velocity)
        plans = Plans(place, velocity, way, wanted[1], self.length, self.turning, self._under_way())
        if self.returning and self.chosen_order is None and self._home is not None and self._leg == plans.course:
            plans.home = self._home
        order = self._decide(plans, place, velocity, wanted, targets)
        self._turns_to(order or wanted, plans)
        return order

    def _under_way(self) -> tuple[Place, Place, float] | None:
        """Return the turn in progress, in the form that :class:`Plans` uses."""
        t = self._turn
        if t is None or t.ends - self._now < 0.5:
            return None
        return (t.order if self.chosen_order is not None else (math.nan, t.order[1])), t.end, t.ends - self._now

    def _turns_to(self, order: tuple[float, float], plans: Plans) -> None:
        """Record the start of a turn, for predictions during the turn.

        During the turn, the current speed and course do not show where the turn will end, because the vessel is losing
        speed.
        """
        if self.chosen_order is None and not self.returning:
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
        """Return whether a turn is complete."""
        off = wrap(float(atan2(velocity[1], velocity[0])) - order[0])
        return abs(off) < STEADY[0] and abs(float(hypot(*velocity)) - order[1]) < STEADY[1] * order[1]

    def _measure(self, place: Place, velocity: Place) -> None:
        """Update :class:`Turning` from a turn that has just finished."""
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
        """Return the (course, speed) to hold during this second, or None to follow the mission."""
        on = plans.sail(*(np.array([v]) for v in (0.0, 1.0, 0.0, 0.0)))  # continue, or return
        own = float(atan2(velocity[1], velocity[0])) if hypot(*velocity) > 0.1 * self.speed else wanted[0]
        for t in targets:
            self._judge(t, on, place, velocity, own)
        self._forget(targets)
        here = [t for t in targets if t.track_id in self.roles]
        acting = [t for t in here if self._acts_for(t, place, velocity)]
        self._busy += 1.0
        if self.chosen_order is None:
            if self._free(on, place, acting, KEEP)[0]:
                return self._back(plans, wanted)
        elif not acting or self._free(on, place, targets, RESUME + ABORTED * self._aborted, BEYOND)[0]:
            self.chosen_order, self.returning, self._home = None, True, None
            return self._back(plans, wanted)
        else:
            straight = plans.course, wanted[1]
            if (
                self.chosen_order != straight
                and (back := self._ends(plans, straight, place, targets, RESUME + ABORTED * self._aborted, BEYOND))
                < math.inf
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

    def _back(self, plans: Plans, wanted: tuple[float, float]) -> tuple[float, float] | None:
        """Return the (course, speed) for the return after a manoeuvre, or None to follow the mission.

        The return is straight, as planned, and ends with one turn onto the leg. Line-of-sight guidance would return along a
        curve that depends on its lookahead distance, so the planned distances would not be kept.
        """
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
        return min(self.clear_distance, FIXED * self.length) if t.fixed else self.clear_distance

    def _judge(self, t: Target, on: Paths, place: Place, velocity: Place, own: float) -> None:
        """Record the role towards a target when a conflict begins; drop the role when the target is past and clear."""
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
        """Drop the roles towards lost targets, because their numbers may be reused."""
        seen = {t.track_id for t in targets}
        for who in list(self.roles):
            self._unseen[who] = 0.0 if who in seen else self._unseen.get(who, 0.0) + 1.0
            if self._unseen[who] > FORGET:
                del self.roles[who]
        self._unseen = {who: n for who, n in self._unseen.items() if who in self.roles}

    def _acts_for(self, t: Target, place: Place, velocity: Place) -> bool:
        """Return whether the vessel must manoeuvre because of a target."""
        if self.roles[t.track_id] not in STAND_ON_ROLES or self.chosen_order is not None:
            return True
        n, e = t.place[0] - place[0], t.place[1] - place[1]
        vn, ve = t.velocity[0] - velocity[0], t.velocity[1] - velocity[1]
        square = vn * vn + ve * ve
        time = -(n * vn + e * ve) / square if square > 1e-6 else 0.0
        at = max(time, 0.0)
        return time < self.patience and float(hypot(n + vn * at, e + ve * at)) - 0.5 * t.length < self._clear(t)

    def _free(self, paths: Paths, place: Place, targets: Sequence[Target], share: float, after: float = 0.0) -> Any:
        """Return, for each plan, whether it stays at least ``share`` times ``clear_distance`` away from all targets.

        A target that is already closer must not approach any further. The check covers one horizon or, if ``after`` is
        set, continues until ``after`` horizons beyond the end of the manoeuvre.
        """
        free = np.ones(len(paths.back), bool)
        for t in targets:
            now = self._apart(place, t)
            free &= paths.nearest(t, self._until(paths, t, after))[0] >= min(share * self._clear(t), now) - 1e-6
        return free

    def _apart(self, place: Place, t: Target) -> float:
        return float(hypot(t.place[0] - place[0], t.place[1] - place[1])) - 0.5 * t.length

    def _until(self, paths: Paths, t: Target, after: float) -> Floats:
        """Return the time until which a target must be considered.

        An overtaken vessel must be considered until it is finally past and clear (rule 13d).
        """
        far = (
            2.0 * PARALLEL[-1] * self.length / self.speed
            if self.roles.get(t.track_id) is EncounterRole.OVERTAKING and not t.fixed
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
        """Find the clear plans that start with an ordered course and speed. Return the earliest time in s at which one
        of them is back on the track, or inf.

        The remainder of the current plan is added as a candidate, because its duration is usually not on the grid of
        candidate durations.
        """
        turn, part = wrap(order[0] - plans.course), order[1] / plans.speed
        hold, parallel = self._all[2:, np.abs(self._all[0] - CANDIDATE_TURNS[1]) + np.abs(self._all[1] - 1.0) < 1e-9]
        keeps = order == self.chosen_order
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

    def _plan(self, paths: Paths, hold: Floats, parallel: Floats, k: int) -> None:
        """Record the selected plan."""
        self._until_parallel = self._now + float(paths.lasts[0, k] + hold[k])
        self._parallel = float(parallel[k])

    def _allow(self, back: float) -> None:
        """Set the time after which the manoeuvre is planned again. Without this limit, another vessel that keeps pace
        could block the return forever.
        """
        self._until_back = self._busy + LATE * back + 0.5 * self.horizon

    def _choose(self, plans: Plans, place: Place, targets: Sequence[Target], acting: Sequence[Target]) -> None:
        """Select the plan with the minimum cost."""
        if self.chosen_order is None and not self.returning:
            self._busy = self._aborted = 0.0
        elif self.chosen_order in (None, (plans.course, plans.speed)):
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
        self._plan(paths, hold, parallel, k)
        self.chosen_turns.append(float(turn[k]))
        self.chosen_order = wrap(plans.course + float(turn[k])), plans.speed * float(share[k])

    def _risk(self, paths: Paths, place: Place, t: Target) -> Floats:
        approach, time, ahead = paths.nearest(t, self._until(paths, t, BEYOND))
        kept = np.maximum(approach, 0.0) / self._clear(t)
        lack, now = np.maximum(1.0 - kept, 0.0), max(0.0, 1.0 - max(self._apart(place, t), 0.0) / self._clear(t))
        # a target that is already too near must not favour plans that stay that near
        price = CONFLICT_COST * (now + np.maximum(lack - now, 0.0) * (1.0 + self.horizon / (time + 0.1 * self.horizon)))
        price = price + MARGIN * np.clip((PLAN - kept) / (PLAN - KEEP), 0.0, 1.0)
        if self.roles.get(t.track_id) is EncounterRole.GIVE_WAY:
            price = price + np.where((ahead > 0.0) & (approach < 3.0 * self.clear_distance), PASS_AHEAD_COST, 0.0)
        return np.asarray(price)
