"""Fences. Crossings are reported at ticks that depend only on the simulation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Mask
from wavesim_server.watchdog import NEVER
from wavesim_world.config.model import Fence

CHECK_PERIOD_NS = 200_000_000


def is_inside(corners: Floats, p: Floats) -> Mask:
    """Return which of the points (n, 2) are inside the polygon (m, 2). A point is inside if the number of edges to its
    east is odd.
    """
    a, b = corners, np.roll(corners, -1, axis=0)
    north, east = p[:, 0, None], p[:, 1, None]
    spans = (a[:, 0] > north) != (b[:, 0] > north)
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = a[:, 1] + (north - a[:, 0]) / (b[:, 0] - a[:, 0]) * (b[:, 1] - a[:, 1])
    found: Mask = (np.sum(spans & (east < crossing), axis=1) % 2).astype(bool)
    return found


class Fences:
    """All fences of a run, and the side of each fence on which each body is located."""

    def __init__(self, fences: Sequence[Fence], capacity: int, step_ns: int) -> None:
        self.fences = fences
        self._corners = [np.array([[c.north, c.east] for c in f.corner]) for f in fences]
        self._period = max(1, CHECK_PERIOD_NS // step_ns)
        self._violating = np.zeros((len(fences), capacity), bool)  # True on the wrong side

    def next_tick(self, tick: int) -> int:
        """Return the next tick at which fences are checked."""
        return (tick // self._period + 1) * self._period if self.fences else NEVER

    def remove(self, row: int) -> None:
        """Remove a body that has been removed from the simulation."""
        self._violating[:, row] = False

    def crossings(self, tick: int, rows: Ints, p_WB_W: Floats) -> Iterator[tuple[int, str]]:
        """Yield (row, notice) for each body in ``rows`` that has changed sides since the last check."""
        if not self.fences or tick % self._period:
            return
        for fence, corners, wrong in zip(self.fences, self._corners, self._violating, strict=True):
            now = is_inside(corners, p_WB_W[:, :2]) != (fence.keep == "inside")
            for row, is_wrong in zip(rows[now != wrong[rows]], now[now != wrong[rows]], strict=True):
                wrong[row] = is_wrong
                side = "left" if is_wrong == (fence.keep == "inside") else "entered"
                yield int(row), f"{side} the fence '{fence.name}' (keep {fence.keep})"
