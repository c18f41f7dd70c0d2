"""The differences between the paths of WaVeSim and those of BELLHOP in one environment."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tests.judges.sound import UNSURE_S, Case, SoundPath, matched, speed_at

CLOSE_DEG, NEAR_DEG = 0.3, 0.1  #: half the width of a narrow bundle, and how near its rays are to a path in doubt
STRONG_DB = 20.0  #: paths weaker than this below the strongest are not compared
EDGE_DEG = 0.05  #: launch angles so close to the limits of the fan are not compared


@dataclass
class Differences:
    """What differs in a case: numbers of paths, and the largest differences."""

    name: str
    receivers: int = 0
    paths: int = 0
    caustics: int = 0
    uncertain: int = 0
    time: float = 0.0  #: s
    launch: float = 0.0  #: deg
    arrival: float = 0.0  #: deg
    levels: list[float] = field(default_factory=list)  #: dB, of each path
    total: float = 0.0  #: dB, of all paths, added incoherently
    coherent: float = math.nan  #: dB
    lacking: tuple[str, ...] = ()  #: strong paths that only one of the two has

    HEAD = (
        f"{'case':22} {'receivers':>9} {'paths':>6} {'caustic':>7} {'unsure':>6} {'time us':>8} {'launch deg':>10} "
        f"{'arrival deg':>11} {'median dB':>9} {'within 1 dB':>11} {'path dB':>8} {'sum dB':>7} {'coherent dB':>11} lacking"
    )

    @property
    def close(self) -> int:
        """The number of paths whose levels differ by less than 1 dB."""
        return sum(level < 1.0 for level in self.levels)

    def __str__(self) -> str:
        return (
            f"{self.name:22} {self.receivers:9} {self.paths:6} {self.caustics:7} {self.uncertain:6} {1e6 * self.time:8.2f} "
            f"{self.launch:10.4f} {self.arrival:11.4f} {np.median(self.levels or [0.0]):9.3f} {self.close:5}/{self.paths:<5} "
            f"{max(self.levels, default=0.0):8.3f} {self.total:7.3f} {self.coherent:11.3f} "
            f"{len(self.lacking)}"
        )


class Doubt(NamedTuple):
    """A path that only one side has, or about which BELLHOP is uncertain. A bundle of rays near it decides."""

    receiver: tuple[float, float]
    path: SoundPath
    ours: bool
    matched: bool


def compare(
    case: Case, mine: list[list[SoundPath]], bellhop: list[list[SoundPath]], look_closer: Callable[[list[Case]], Any]
) -> Differences:
    """Match the paths of both sides at each receiver. ``look_closer`` returns the paths of BELLHOP in cases."""
    found, doubts = Differences(case.name, len(case.receivers)), []
    for receiver, here, there in zip(case.receivers, mine, bellhop, strict=True):
        doubts += _compare_receiver(case, receiver, _counted(case, here), _counted(case, there), found)
    close = [
        replace(
            case,
            receivers=(doubt.receiver,),
            middle=doubt.path.launch,
            angles=CLOSE_DEG,
            beams=800,
            step=0.5 * case.step,
        )
        for doubt in doubts
    ]
    for doubt, (arrivals,) in zip(doubts, look_closer(close) if close else (), strict=True):
        _decide(case, doubt, arrivals, found)
    return found


def _counted(case: Case, paths: list[SoundPath]) -> list[SoundPath]:
    """The paths that both sides can have."""
    return [
        p
        for p in paths
        if abs(p.launch - case.middle) < case.angles - EDGE_DEG
        and p.surface + p.bottom <= case.order
        and (case.surface or p.surface == 0)
    ]


def _compare_receiver(
    case: Case, receiver: tuple[float, float], here: list[SoundPath], there: list[SoundPath], found: Differences
) -> list[Doubt]:
    """Add the differences at one receiver; return the paths that are in doubt."""
    pairs, rest = matched(here, there)
    pairs = [(p, _straight_across(case, receiver[0], p, q)) for p, q in pairs]
    strongest = max((p.level for p in here if not p.caustic), default=-math.inf)
    near = [p for p in here if p.caustic]
    doubts = [
        Doubt(receiver, p, any(p is q for q in here), False)
        for p in rest
        if not p.caustic and p.level > strongest - STRONG_DB and not _beside(p, near)
    ]
    sure = []
    for p, q in pairs:
        if p.caustic:
            found.caustics += p.level > strongest - STRONG_DB
        elif not q.uncertain:
            sure.append((p, q))
            if p.level > strongest - STRONG_DB:
                _note(found, p, q)
        elif p.level > strongest - STRONG_DB:
            doubts.append(Doubt(receiver, p, True, True))
    if sure:
        mine, others = zip(*sure, strict=True)
        found.total = max(found.total, abs(_power(mine) - _power(others)))
        if case.coherent:
            sums = [abs(_pressure(side, case.coherent)) for side in (mine, others)]
            # where paths cancel, a level means little
            if sums[1] > 0.3 * 10.0 ** (0.05 * _power(others)):
                gap = abs(20.0 * math.log10(sums[0] / sums[1]))
                found.coherent = gap if math.isnan(found.coherent) else max(found.coherent, gap)
    return doubts


def _note(found: Differences, p: SoundPath, q: SoundPath) -> None:
    """Add the differences between a path of ours and one of BELLHOP."""
    found.paths += 1
    found.time = max(found.time, abs(p.time - q.time))
    found.launch = max(found.launch, abs(p.launch - q.launch))
    found.arrival = max(found.arrival, abs(p.arrival - q.arrival))
    found.levels.append(abs(p.level - q.level))


def _decide(case: Case, doubt: Doubt, arrivals: list[SoundPath], found: Differences) -> None:
    """Add what a narrow bundle of BELLHOP's rays says about a path in doubt."""
    p = doubt.path
    same = [
        q for q in arrivals if (q.surface, q.bottom) == (p.surface, p.bottom) and abs(q.launch - p.launch) < NEAR_DEG
    ]
    q = min(same, key=lambda q: abs(q.time - p.time), default=None)
    agrees = q is not None and abs(q.time - p.time) < UNSURE_S
    if q is not None and agrees and doubt.ours:
        _note(found, p, _straight_across(case, doubt.receiver[0], p, q))
    elif doubt.matched or not (agrees or doubt.ours):
        found.uncertain += 1  # BELLHOP's two bundles contradict each other
    else:
        side = "ours" if doubt.ours else "BELLHOP's"
        found.lacking += (
            f"{doubt.receiver}: only {side} {p.time:.7f} s, launch {p.launch:.3f} deg, {p.level:.2f} dB, "
            f"bounces {p.surface}+{p.bottom}",
        )


def _straight_across(case: Case, x: float, p: SoundPath, q: SoundPath) -> SoundPath:
    """An arrival of BELLHOP with the spreading of water and bed that are the same across the section.

    To BELLHOP, a section is a body of revolution about the source, so the width of a tube across the section is x / cos
    per radian. Across a straight section, it is the integral of c / c0 over the path.
    """
    c0 = speed_at(case, 0.0, case.source)
    round_about = abs(x / math.cos(math.radians(q.launch)))
    return replace(q, level=q.level + 10.0 * math.log10(round_about * c0 * p.time / p.length**2))


def _beside(p: SoundPath, near: list[SoundPath]) -> bool:
    """Whether a path is the other one of a pair that meets in a caustic."""
    return any((p.surface, p.bottom) == (q.surface, q.bottom) and abs(p.launch - q.launch) < 0.5 for q in near)


def _power(paths: Sequence[SoundPath]) -> float:
    return 10.0 * math.log10(sum(10.0 ** (0.1 * p.level) for p in paths))


def _pressure(paths: Sequence[SoundPath], frequency: float) -> complex:
    return sum(
        (10.0 ** (0.05 * p.level) * np.exp(1j * (p.phase - 2.0 * math.pi * frequency * p.time)) for p in paths),
        0j,
    )
