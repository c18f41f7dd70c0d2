"""Rows of growing arrays: those that are given back are taken again, so that memory follows what is in use."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np


class RowPool:
    """Which rows are in use; the lowest free one is taken first."""

    def __init__(self) -> None:
        self.size = 0  #: rows that have ever been in use at one time
        self._free: list[int] = []

    def acquire(self) -> int:
        """A free row."""
        if self._free:
            return heapq.heappop(self._free)
        self.size += 1
        return self.size - 1

    def release(self, row: int) -> None:
        """A row is free again."""
        heapq.heappush(self._free, row)


CACHE_LINE = 64  #: bytes, as wide as the widest register


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Zeros that begin with a cache line. NumPy's begin anywhere in one, and then every row of eight numbers of a kernel lies in
    two: that took a sixth of its time."""
    kind, count = np.dtype(dtype), math.prod(shape) if isinstance(shape, tuple) else shape
    room = np.zeros(count * kind.itemsize + CACHE_LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[first : first + count * kind.itemsize].view(kind).reshape(shape)


def grown_to(array: Any, rows: int) -> Any:
    """The array itself if it has so many rows, else a copy at least twice as long, zero at its end."""
    if len(array) >= rows:
        return array
    longer = aligned_zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
