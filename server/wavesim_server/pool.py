"""Rows of growing arrays: those that are given back are taken again, so that memory follows what is in use."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np


class Pool:
    """Which rows are in use; the lowest free one is taken first."""

    def __init__(self) -> None:
        self.size = 0  #: rows that have ever been in use at one time
        self._free: list[int] = []

    def take(self) -> int:
        """A free row."""
        if self._free:
            return heapq.heappop(self._free)
        self.size += 1
        return self.size - 1

    def give(self, row: int) -> None:
        """A row is free again."""
        heapq.heappush(self._free, row)


def roomy(array: Any, rows: int) -> Any:
    """The array itself if it has so many rows, else a copy at least twice as long, zero at its end."""
    if len(array) >= rows:
        return array
    longer = np.zeros_like(array, shape=(max(rows, 2 * len(array)), *array.shape[1:]))
    longer[: len(array)] = array
    return longer
