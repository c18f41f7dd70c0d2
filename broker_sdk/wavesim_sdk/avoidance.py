"""A reference avoider: velocity obstacles over course and speed, with the rules of the road as prices (COLREG 8, 13 to 17).

    avoider = Avoider(length=2.0, speed=3.0)
    order = avoider.order(time, place, velocity, wanted, targets)       # (course, speed), or None: go on

Asked about once a second.  It knows of others what a target list tells: no intentions.  It sees a conflict where, both going on,
they pass nearer than ``clear`` within ``horizon``; as the one that gives way it takes the cheapest of some large changes of
course or speed that is free of conflicts (small ones cannot be seen by others), and keeps it until its own way is free.  As the
one that stands on it holds, until the other has done nothing for too long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from wavesim_sdk.elementary import atan2, hypot, sin_cos
from wavesim_sdk.encounters import Role, domain, role
from wavesim_sdk.frames import wrap
from wavesim_sdk.targets import Target

TURNS = (0.0, *(math.radians(sign * t) for t in (30, 35, 40, 45, 50, 60, 70, 80, 90, 110) for sign in (1, -1)))
SPEEDS = (1.0, 0.5, 0.25, 0.0)
RULES = {Role.HEAD_ON, Role.GIVE_WAY}  #: in which she does not turn to port
HOLDS = {Role.STAND_ON, Role.OVERTAKEN}
# prices: of a turn of a radian, of giving up all way, of a port turn against the rules, of passing ahead, of another choice
TURN, SLOW, PORT, AHEAD, CHANGE = 1.0, 2.5, 6.0, 2.0, 0.4
PATIENCE = 35.0  #: lengths of way before the closest approach at which who stands on may act (17a ii)
DANGER = 20.0  #: of a conflict that is about to happen


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
    turns: list[float] = field(default_factory=list)  #: off the wanted course, rad, of each choice so far

    def __post_init__(self) -> None:
        self.clear = self.clear or domain(self.length)[1]
        self.horizon = self.horizon or 60.0 * self.length / self.speed
        self.patience = self.patience or PATIENCE * self.length / self.speed

    def order(
        self,
        place: tuple[float, float],
        velocity: tuple[float, float],
        wanted: tuple[float, float],
        targets: Sequence[Target],
    ) -> tuple[float, float] | None:
        """(course, speed) to take now, or None to go on as ``wanted`` (course, speed)."""
        own = float(atan2(velocity[1], velocity[0])) if hypot(*velocity) > 0.1 * self.speed else wanted[0]
        for t in targets:
            self._judge(t, place, own, wanted)
        here = [t for t in targets if t.who in self.roles]
        acting = [t for t in here if self._acts_for(t, place, velocity)]
        if not acting:
            self.chosen = None
            return None
        if self.chosen is not None:
            if self._free(wanted, place, here, 1.1):
                self.chosen = None
                return None
            if self._free(self.chosen, place, here, 0.8):
                return self.chosen
        elif self._free(wanted, place, acting, 1.0):
            return None
        self.chosen = self._cheapest(place, wanted, here, acting)
        return self.chosen

    def _judge(self, t: Target, place: tuple[float, float], own: float, wanted: tuple[float, float]) -> None:
        """Note the role towards a target when its conflict begins; forget it when it is past and clear."""
        approach, time, _ = self._pass(wanted, place, t)
        if t.who not in self.roles:
            if 0.0 < time < 2.0 * self.horizon and approach < 1.2 * self.clear:
                away = t.place[0] - place[0], t.place[1] - place[1]
                course, speed = float(atan2(t.velocity[1], t.velocity[0])), float(hypot(*t.velocity))
                self.roles[t.who] = role(away, own, course, self.speed, speed)
        elif time <= 0.0 and hypot(t.place[0] - place[0], t.place[1] - place[1]) > self.clear:
            del self.roles[t.who]

    def _acts_for(self, t: Target, place: tuple[float, float], velocity: tuple[float, float]) -> bool:
        """Whether she has to do something about a target."""
        if self.roles[t.who] not in HOLDS or self.chosen is not None:
            return True
        approach, time, _ = self._meet(velocity, place, t)
        return time < self.patience and approach < self.clear

    def _meet(self, v: tuple[float, float], place: tuple[float, float], t: Target) -> tuple[float, float, float]:
        """(DCPA, TCPA, how far ahead of the target she is then) if both go on; a distance that does not change is one now."""
        n, e = t.place[0] - place[0], t.place[1] - place[1]
        vn, ve = t.velocity[0] - v[0], t.velocity[1] - v[1]
        square = vn * vn + ve * ve
        time = -(n * vn + e * ve) / square if square > 1e-6 else 0.0
        at = max(time, 0.0)
        dn, de = n + vn * at, e + ve * at
        along = float(hypot(*t.velocity))
        ahead = -(dn * t.velocity[0] + de * t.velocity[1]) / along if along > 1e-3 else 0.0
        return float(hypot(dn, de)) - 0.5 * t.length, time, ahead

    def _pass(self, order: tuple[float, float], place: tuple[float, float], t: Target) -> tuple[float, float, float]:
        s, c = sin_cos(order[0])
        return self._meet((order[1] * float(c), order[1] * float(s)), place, t)

    def _free(
        self, order: tuple[float, float], place: tuple[float, float], targets: Sequence[Target], share: float
    ) -> bool:
        """Whether no target is passed nearer than a share of ``clear`` within the horizon."""
        for t in targets:
            approach, time, _ = self._pass(order, place, t)
            if -1.0 < time < self.horizon * max(1.0, share) and approach < share * self.clear:
                return False
        return True

    def _cheapest(
        self,
        place: tuple[float, float],
        wanted: tuple[float, float],
        here: Sequence[Target],
        acting: Sequence[Target],
    ) -> tuple[float, float]:
        starboard = any(self.roles[t.who] in RULES for t in acting)
        port_side = any(self.roles[t.who] in HOLDS for t in acting)
        best, least, side = wanted, math.inf, 0.0
        for turn in TURNS:
            for share in SPEEDS:
                order = wrap(wanted[0] + turn), wanted[1] * share
                price = TURN * abs(turn) + SLOW * (1.0 - share)
                if turn < 0.0 and (starboard or port_side):  # 14, 15, 17c
                    price += PORT
                if self.chosen is not None:
                    price += CHANGE * (
                        abs(wrap(order[0] - self.chosen[0])) + abs(order[1] - self.chosen[1]) / wanted[1]
                    )
                for t in here:
                    price += self._risk(order, place, t)
                if price < least:
                    best, least, side = order, price, turn
        self.turns.append(side)
        return best

    def _risk(self, order: tuple[float, float], place: tuple[float, float], t: Target) -> float:
        approach, time, ahead = self._pass(order, place, t)
        if not -1.0 < time < 1.5 * self.horizon:
            return 0.0
        price = 0.0
        if approach < self.clear:
            price += (
                DANGER * (1.0 - max(approach, 0.0) / self.clear) * (1.0 + self.horizon / (time + 0.1 * self.horizon))
            )
        if ahead > 0.0 and approach < 3.0 * self.clear and self.roles[t.who] is Role.GIVE_WAY:
            price += AHEAD
        return price
