"""Score of a vessel under the collision regulations, composed of several parts (after Woerner, Benjamin, Novitzky,
Leonard 2018).

The score of a pair of vessels is its safety multiplied by the mean of its protocol parts. Safety and all parts are from
0 to 1. The score of a run is the score of its worst pair multiplied by the lowest part of the efficiency score
(``economy``). The parts of the efficiency score rate extra distance, lost time, changes of course, and the completion
of the mission.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.guidance.avoidance import PATIENCE
from wavesim_sdk.guidance.encounters import EncounterRole, closest_approach, closest_on_track, domain

__all__ = ["AvoidingAction", "ColregsScore", "EncounterScore", "VesselTrack", "changes", "first_action", "score_run"]

KNOT = 1852.0 / 3600.0
LARGE, NOTICED = (
    math.radians(30.0),
    math.radians(5.0),
)  #: course change in rad that other vessels notice (rule 8b), and smallest course change that counts as an action
SMALL_SPEED = 0.5 * KNOT
STEADY = 3.0  #: distance in ship lengths over which a course is measured
#: extra distances in ship lengths: the score is 1 up to SPARED, and falls to 0 at WASTED; lost time is converted to
#: distance at the initial speed
SPARED, WASTED = (
    30.0,
    180.0,
)
TURN = math.radians(
    15.0
)  #: smallest course change in rad that belongs to a manoeuvre; the score `steady` counts smaller changes
TURNS, MORE = (
    4,
    2,
)  #: number of course changes for which nothing is deducted, and the increase of this number for each additional vessel
COST = 0.1  #: deduction from the score for each additional course change


@dataclass(frozen=True)
class VesselTrack:
    """Track of a vessel: times (n,) in s, positions (n, 2) and velocities over ground (n, 2), north and east."""

    times: Floats
    places: Floats
    velocities: Floats

    @property
    def courses(self) -> Floats:
        """Courses over time in rad, unwrapped so that there are no jumps at a full turn."""
        return np.asarray(np.unwrap(np.arctan2(self.velocities[:, 1], self.velocities[:, 0])))

    @property
    def speeds(self) -> Floats:
        return np.asarray(np.hypot(self.velocities[:, 0], self.velocities[:, 1]))


@dataclass(frozen=True)
class EncounterScore:
    """Own ship's behaviour towards one other vessel: distance (m) and time (s) of closest approach, and the parts of
    the score.
    """

    other: str
    role: EncounterRole
    distance: float
    time: float
    parts: dict[str, float]

    @property
    def score(self) -> float:
        protocol = [v for k, v in self.parts.items() if k != "safety"]
        return self.parts["safety"] * (float(np.mean(protocol)) if protocol else 1.0)


@dataclass(frozen=True)
class ColregsScore:
    """Score of a run. ``economy`` is the efficiency score: it rates extra distance (``way``), lost time (``time``),
    course changes (``courses``) and completion of the mission (``mission``), each from 0 to 1.
    """

    pairs: tuple[EncounterScore, ...]
    extra: float  #: distance sailed divided by the straight distance, minus 1
    late: float  #: time lost in s, compared with sailing the straight line at the initial speed
    turns: int  #: number of course changes
    economy: dict[str, float]

    @property
    def total(self) -> float:
        """Score of the worst pair, multiplied by the lowest part of the efficiency score."""
        return min(p.score for p in self.pairs) * min(self.economy.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{k} {v:.2f}" for k, v in self.economy.items())
        lines = [
            f"score {self.total:.2f}, {100 * self.extra:.1f} % extra distance, {self.late:.0f} s late, "
            f"{self.turns} course changes ({parts})"
        ]
        for p in self.pairs:
            parts = ", ".join(f"{k} {v:.2f}" for k, v in p.parts.items())
            lines.append(f"  {p.other}: {p.role.value}, {p.distance:.0f} m at {p.time:.0f} s: {p.score:.2f} ({parts})")
        return "\n".join(lines)


@dataclass(frozen=True)
class AvoidingAction:
    """The first change of course or speed that own ship made: time (s), turn (rad, positive to starboard) and loss of
    speed (fraction).
    """

    time: float
    turn: float
    slower: float


def first_action(own: VesselTrack, length: float) -> AvoidingAction | None:
    """Find the first course change of more than 5 deg, or speed change of more than half a knot. For slow vessels, a
    tenth of their speed replaces the half knot.

    The result contains the magnitude that this change reached before the next one began.
    """
    speed0 = float(own.speeds[0])
    speed_step = min(SMALL_SPEED, 0.1 * speed0)
    turn = own.courses - own.courses[0]
    changed = (np.abs(turn) > NOTICED) | (np.abs(own.speeds - speed0) > speed_step)
    if not changed.any():
        return None
    k = int(np.argmax(changed))
    until = own.times <= own.times[k] + 8.0 * length / max(speed0, 0.1)
    window = until & (np.arange(len(turn)) >= k)
    side = math.copysign(1.0, float(turn[window][np.argmax(np.abs(turn[window]))]))
    biggest = float(np.abs(turn[window]).max())
    return AvoidingAction(
        float(own.times[k]),
        side * biggest if biggest > NOTICED else 0.0,
        1.0 - float(own.speeds[window].min()) / speed0,
    )


def score_run(
    own: VesselTrack,
    others: dict[str, tuple[EncounterRole, VesselTrack]],
    length: float,
    goal: tuple[float, float] | None = None,
) -> ColregsScore:
    """Score a run. The preferred and the minimum distance follow from the ``length`` of own ship (m).

    ``goal`` is the point at which the run should end. Pass it to judge a whole mission.
    """
    least, preferred = domain(length)
    first, last, speed = own.places[0], own.places[-1], max(float(own.speeds[0]), 0.1)
    straight = float(np.hypot(*(last - first)))
    sailed = float(np.hypot(*np.diff(own.places, axis=0).T).sum())
    late = float(own.times[-1] - own.times[0]) - straight / speed
    turns = changes(own, length)
    economy = {
        "way": _spared((sailed - straight) / length),
        "time": _spared(late * speed / length),
        "courses": float(np.clip(1.0 - COST * (turns - TURNS - MORE * (len(others) - 1)), 0.0, 1.0)),
    }
    if goal is not None:
        economy["mission"] = 1.0 if float(np.hypot(*(last - goal))) <= preferred else 0.0
    action = first_action(own, length)
    pairs = []
    duty = any(_risk_tcpa(own, other, preferred) and part not in HOLDS for part, other in others.values())
    for name, (part, other) in others.items():
        apart = other.places - own.places
        distance, time = closest_on_track(own.times, apart)
        parts = {"safety": float(np.clip((distance - least) / (preferred - least), 0.0, 1.0))}
        if not (
            duty and part in HOLDS
        ):  # own ship must give way to another vessel, so it cannot hold its course for this one
            parts |= _score_pair(own, other, part, action, length, preferred, distance, time)
        pairs.append(EncounterScore(name, part, distance, time, parts))
    extra = sailed / straight - 1.0 if straight > 0.0 else math.inf
    return ColregsScore(tuple(pairs), extra, late, turns, economy)


def _spared(lengths: float) -> float:
    return float(np.clip((WASTED - lengths) / (WASTED - SPARED), 0.0, 1.0))


def _sampled(own: VesselTrack, length: float) -> Floats:
    """Return the course, sampled each time the vessel has sailed another :data:`STEADY` ship lengths."""
    speed = max(float(own.speeds[0]), 0.1)
    return own.courses[:: max(1, round(STEADY * length / speed / float(np.median(np.diff(own.times)))))]


def changes(own: VesselTrack, length: float) -> int:
    """Count course changes: uninterrupted turns to one side by :data:`TURN` or more."""
    turns = np.diff(_sampled(own, length))
    side = np.where(np.abs(turns) > math.radians(2.0), np.sign(turns), 0.0)
    begins = np.flatnonzero(np.r_[True, np.diff(side) != 0.0]) if len(side) else np.zeros(0, int)
    return int((np.abs(np.add.reduceat(turns, begins)) >= TURN).sum()) if len(begins) else 0


HOLDS = (EncounterRole.STAND_ON, EncounterRole.OVERTAKEN)


def _risk_tcpa(own: VesselTrack, other: VesselTrack, preferred: float) -> float:
    """Return the TCPA in s of a pair that would pass too close without any action; 0 for a safe pair."""
    dcpa, tcpa = closest_approach(other.places[0] - own.places[0], other.velocities[0] - own.velocities[0])
    return max(float(tcpa), 0.0) if float(dcpa) <= preferred else 0.0


def _score_pair(
    own: VesselTrack,
    other: VesselTrack,
    part: EncounterRole,
    action: AvoidingAction | None,
    length: float,
    preferred: float,
    distance: float,
    time: float,
) -> dict[str, float]:
    """Compute the parts of the score for one pair of vessels."""
    speed = max(float(own.speeds[0]), 0.1)
    tcpa = _risk_tcpa(own, other, preferred)
    if not tcpa:
        return {}  # a pair without danger needs no action
    way = length / speed  # time in s to sail one ship length
    if part in HOLDS:
        before = own.times < tcpa - PATIENCE * way - 1.0
        turned = np.abs(own.courses - own.courses[0])[before].max(initial=0.0)
        slower = np.abs(own.speeds - own.speeds[0])[before].max(initial=0.0)
        held = 1.0 if turned <= NOTICED and slower <= min(SMALL_SPEED, 0.1 * speed) else 0.0
        return {"held": held}
    if action is None:
        return {"side": 0.0, "size": 0.0, "early": 0.0}
    left = tcpa - action.time  # time left before the closest approach
    parts = {
        "size": float(np.clip(max(abs(action.turn) / LARGE, action.slower / 0.5), 0.0, 1.0)),
        "early": float(np.clip((left / way - 10.0) / 30.0, 0.0, 1.0)),
    }
    if part in (EncounterRole.HEAD_ON, EncounterRole.GIVE_WAY):
        parts["side"] = 0.0 if action.turn < 0.0 else 1.0
    if part is EncounterRole.GIVE_WAY:
        k = int(np.argmin(np.abs(own.times - time)))
        v = other.velocities[k]
        ahead = float(((own.places[k] - other.places[k]) * v).sum() / max(np.hypot(*v), 1e-9))
        parts["astern"] = 0.0 if ahead > 0.0 and distance < preferred else 1.0
    parts["steady"] = _steadiness(own, length)
    return parts


def _steadiness(own: VesselTrack, length: float) -> float:
    """Return the score for small course changes: 1 for none, 0 for ten. A small change is a turn by less than 15 deg
    that then stops.
    """
    turns = np.diff(_sampled(own, length))
    small = (np.abs(turns) > math.radians(2.0)) & (np.abs(turns) < math.radians(15.0))
    starts = small & ~np.r_[False, np.abs(turns[:-1]) > math.radians(2.0)]
    stops = small & ~np.r_[np.abs(turns[1:]) > math.radians(2.0), False]
    return float(np.clip(1.0 - 0.1 * (starts & stops).sum(), 0.0, 1.0))
