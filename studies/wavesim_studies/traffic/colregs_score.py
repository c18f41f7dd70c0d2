"""How well a vessel kept the rules of the road, by parts (after Woerner, Benjamin, Novitzky, Leonard 2018).

A pair's score is its safety times the mean of its protocol parts, each 0 to 1; a run's score is that of its worst pair times the
worst part of its economy: extra way, lost time, changes of course, and whether the mission was completed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.avoidance import PATIENCE
from wavesim_sdk.encounters import EncounterRole, closest_approach, closest_on_track, domain

Array = np.ndarray[Any, np.dtype[np.float64]]
KNOT = 1852.0 / 3600.0
LARGE, NOTICED = math.radians(30.0), math.radians(5.0)  #: a change that others see (rule 8b), one that counts at all
SMALL_SPEED = 0.5 * KNOT
STEADY = 3.0  #: lengths of way over which a course is a course
SPARED, WASTED = 30.0, 180.0  #: lengths of extra way, or of way in the time lost, that cost nothing, and everything
TURN = math.radians(
    15.0
)  #: a change of course that counts among those of a manoeuvre; smaller ones are those of `steady`
TURNS, MORE = (
    4,
    2,
)  #: changes that an encounter may have (out, parallel, back, on), and how many more with each further vessel
COST = 0.1  #: of each change beyond those


@dataclass(frozen=True)
class VesselTrack:
    """A vessel's way: times (n,) in s, places (n, 2) and velocities over ground (n, 2), north and east."""

    times: Array
    places: Array
    velocities: Array

    @property
    def courses(self) -> Array:
        """Continuous, rad."""
        return np.asarray(np.unwrap(np.arctan2(self.velocities[:, 1], self.velocities[:, 0])))

    @property
    def speeds(self) -> Array:
        return np.asarray(np.hypot(self.velocities[:, 0], self.velocities[:, 1]))


@dataclass(frozen=True)
class EncounterScore:
    """What own ship did about one other: distance (m) and time (s) of closest approach, and the parts of the score."""

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
    """Of a run: its pairs, how much longer the way became, and the parts of its economy (0 to 1): way, time, courses, mission."""

    pairs: tuple[EncounterScore, ...]
    extra: float  #: distance sailed over the straight one, less 1
    late: float  #: s lost against the straight way at the first speed
    turns: int  #: changes of course
    economy: dict[str, float]

    @property
    def total(self) -> float:
        """That of the worst pair, times the worst part of the economy."""
        return min(p.score for p in self.pairs) * min(self.economy.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{k} {v:.2f}" for k, v in self.economy.items())
        lines = [
            f"score {self.total:.2f}, {100 * self.extra:.1f} % longer way, {self.late:.0f} s late, "
            f"{self.turns} changes of course ({parts})"
        ]
        for p in self.pairs:
            parts = ", ".join(f"{k} {v:.2f}" for k, v in p.parts.items())
            lines.append(f"  {p.other}: {p.role.value}, {p.distance:.0f} m at {p.time:.0f} s: {p.score:.2f} ({parts})")
        return "\n".join(lines)


@dataclass(frozen=True)
class AvoidingAction:
    """The first change that own ship made: when (s), to which side (rad, starboard positive), how much slower (share)."""

    time: float
    turn: float
    slower: float


def first_action(own: VesselTrack, length: float) -> AvoidingAction | None:
    """The first change of course by more than 5 deg or of speed by more than half a knot (or a tenth, for small craft), and
    how large it became before the next one."""
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
    """The score of a run. ``length`` of own ship, m: of it follow the good distance and the least. ``goal``: where the run should have
    ended, if it is to be judged as a whole mission."""
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
        if not (duty and part in HOLDS):  # she has to act for somebody, so she cannot hold for others
            parts |= _score_pair(own, other, part, action, length, preferred, distance, time)
        pairs.append(EncounterScore(name, part, distance, time, parts))
    extra = sailed / straight - 1.0 if straight > 0.0 else math.inf
    return ColregsScore(tuple(pairs), extra, late, turns, economy)


def _spared(lengths: float) -> float:
    return float(np.clip((WASTED - lengths) / (WASTED - SPARED), 0.0, 1.0))


def _sampled(own: VesselTrack, length: float) -> Array:
    """Courses, one for each :data:`STEADY` lengths of way."""
    speed = max(float(own.speeds[0]), 0.1)
    return own.courses[:: max(1, round(STEADY * length / speed / float(np.median(np.diff(own.times)))))]


def changes(own: VesselTrack, length: float) -> int:
    """Changes of course: turns to one side by :data:`TURN` or more without a pause."""
    turns = np.diff(_sampled(own, length))
    side = np.where(np.abs(turns) > math.radians(2.0), np.sign(turns), 0.0)
    begins = np.flatnonzero(np.r_[True, np.diff(side) != 0.0]) if len(side) else np.zeros(0, int)
    return int((np.abs(np.add.reduceat(turns, begins)) >= TURN).sum()) if len(begins) else 0


HOLDS = (EncounterRole.STAND_ON, EncounterRole.OVERTAKEN)


def _risk_tcpa(own: VesselTrack, other: VesselTrack, preferred: float) -> float:
    """TCPA in s of a pair that would pass too near if nobody acted; 0 of one that would not."""
    dcpa, tcpa = closest_approach(other.places[0] - own.places[0], other.velocities[0] - own.velocities[0])
    return max(float(tcpa), 0.0) if float(dcpa) <= preferred else 0.0


def _score_pair(
    own: VesselTrack, other: VesselTrack, part: EncounterRole, action: AvoidingAction | None, length: float, preferred: float, distance: float, time: float,
) -> dict[str, float]:  # fmt: skip
    """Parts of one pair."""
    speed = max(float(own.speeds[0]), 0.1)
    tcpa = _risk_tcpa(own, other, preferred)
    if not tcpa:
        return {}  # a pair that was no danger asks for nothing
    way = length / speed  # s
    if part in HOLDS:
        before = own.times < tcpa - PATIENCE * way - 1.0
        turned = np.abs(own.courses - own.courses[0])[before].max(initial=0.0)
        slower = np.abs(own.speeds - own.speeds[0])[before].max(initial=0.0)
        held = 1.0 if turned <= NOTICED and slower <= min(SMALL_SPEED, 0.1 * speed) else 0.0
        return {"held": held}
    if action is None:
        return {"side": 0.0, "size": 0.0, "early": 0.0}
    left = tcpa - action.time  # before it would have happened
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
    """1 without, 0 with ten small changes of course: turns by less than 15 deg that go on and stop again."""
    turns = np.diff(_sampled(own, length))
    small = (np.abs(turns) > math.radians(2.0)) & (np.abs(turns) < math.radians(15.0))
    starts = small & ~np.r_[False, np.abs(turns[:-1]) > math.radians(2.0)]
    stops = small & ~np.r_[np.abs(turns[1:]) > math.radians(2.0), False]
    return float(np.clip(1.0 - 0.1 * (starts & stops).sum(), 0.0, 1.0))
