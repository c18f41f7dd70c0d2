"""Virtual clock that schedules events. Nothing waits, so a minute of a world takes milliseconds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Act = Callable[[float], None]  #: receives the time at which it runs


class Clock:
    """Acts in the order of their times. Acts of the same time run in the order in which they were planned."""

    def __init__(self, now: float) -> None:
        self.now = now
        self.steps = 0
        self._planned: list[tuple[float, int, Act]] = []
        self._count = 0

    def at(self, when: float, act: Act) -> None:
        """Plan an act. A time in the past counts as now."""
        if when < math.inf:
            self._count += 1
            heapq.heappush(self._planned, (max(when, self.now), self._count, act))

    def jump(self, seconds: float) -> None:
        """Let time pass without any act. All acts that were planned meanwhile run afterwards, at the new time."""
        self.now += seconds

    def step(self, until: float) -> bool:
        """Run the next act. Return False if there is none before ``until``."""
        if not self._planned or self._planned[0][0] > until:
            self.now = max(self.now, until)
            return False
        when, _, act = heapq.heappop(self._planned)
        self.now = max(self.now, when)
        self.steps += 1
        act(self.now)
        return True


class Timer:
    """One act of an actor that is planned repeatedly. Only the earliest plan counts."""

    __slots__ = ("_act", "_clock", "due")

    def __init__(self, clock: Clock, act: Act) -> None:
        self._clock, self._act, self.due = clock, act, math.inf

    def at(self, when: float) -> None:
        """Plan the act for a time, unless it is planned for an earlier time."""
        if when < self.due:
            self.due = max(when, self._clock.now)
            self._clock.at(self.due, self._ring)

    def stop(self) -> None:
        """Cancel the plan."""
        self.due = math.inf

    def _ring(self, now: float) -> None:
        if now >= self.due:  # else a plan that an earlier one overtook
            self.due = math.inf
            self._act(now)
