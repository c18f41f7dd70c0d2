"""Fences. Crossings are reported at ticks that depend only on the simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_sdk.fences import check_corner_total, check_fence, corner_points, crossing_text, violates
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import Fence
from wavesim_server.watchdog import NEVER

CHECK_PERIOD_NS = 200_000_000


@dataclass
class _WatchedFence:
    fence: Fence
    corners: Floats
    violating: Mask  # by row: True on the wrong side


class Fences:
    """All fences of a run, and the side of each fence on which each body is located."""

    def __init__(self, fences: Sequence[Fence], capacity: int, step_ns: int) -> None:
        self._capacity, self._period = capacity, max(1, CHECK_PERIOD_NS // step_ns)
        self._watched: dict[str, _WatchedFence] = {}
        for fence in fences:
            self._watch(fence)

    @property
    def current(self) -> list[Fence]:
        """The fences, in the order in which they were added."""
        return [w.fence for w in self._watched.values()]

    def change(self, fence: Fence) -> str:
        """Add or replace a fence, or remove it if it has no corners; return a description of the change. The change
        takes effect at the next check of the fences. Raises ValueError with the reason if the fence is invalid or
        unknown.
        """
        known = fence.name in self._watched
        if not fence.corners:
            if not known:
                there = suggest_name(fence.name, self._watched) or "; there are no fences"
                raise ValueError(f"no fence is named '{fence.name}'{there}")
            del self._watched[fence.name]
            return f"removed the fence '{fence.name}'"
        check_fence(fence)
        others = [f for f in self.current if f.name != fence.name]
        check_corner_total([*others, fence])
        self._watch(fence)
        return f"{'changed' if known else 'added'} the fence '{fence.name}' (keep {fence.keep})"

    def _watch(self, fence: Fence) -> None:
        """Begin to check a fence. If it replaces a fence, each body keeps its recorded side until the next check."""
        old = self._watched.get(fence.name)
        violating = old.violating if old is not None else np.zeros(self._capacity, bool)
        self._watched[fence.name] = _WatchedFence(fence, corner_points(fence), violating)

    def next_tick(self, tick: int) -> int:
        """Return the next tick at which fences are checked."""
        return (tick // self._period + 1) * self._period if self._watched else NEVER

    def remove_body(self, row: int) -> None:
        """Remove the recorded side of a body that has been removed from the simulation."""
        for watched in self._watched.values():
            watched.violating[row] = False

    def crossings(self, tick: int, rows: Ints, p_WB_W: Floats) -> Iterator[tuple[int, str]]:
        """Yield a (row, notice) pair for each body in ``rows`` that has changed sides since the last check."""
        if not self._watched or tick % self._period:
            return
        for watched in self._watched.values():
            fence, wrong = watched.fence, watched.violating
            now = violates(fence.keep, watched.corners, p_WB_W[:, :2])
            for row, is_wrong in zip(rows[now != wrong[rows]], now[now != wrong[rows]], strict=True):
                wrong[row] = is_wrong
                yield int(row), crossing_text(fence, is_wrong)
