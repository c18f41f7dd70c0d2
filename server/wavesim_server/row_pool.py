"""Rows of growing arrays: released rows are reused, so that memory follows the number in use."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np


class RowPool:
    """Pool of rows; the lowest free row is used first."""

    def __init__(self) -> None:
        self.size = 0  #: maximum number of rows in use at one time
        self._free: list[int] = []

    def acquire(self) -> int:
        """Take a free row."""
        if self._free:
            return heapq.heappop(self._free)
        self.size += 1
        return self.size - 1

    def release(self, row: int) -> None:
        """Release a row."""
        heapq.heappush(self._free, row)


CACHE_LINE = 64  #: bytes, as wide as the widest register


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Zeros that begin at a cache line.

    NumPy's arrays may begin anywhere in one, and then every row of eight numbers of a kernel spans two lines: that took
    a sixth of its time.
    """
    kind, count = np.dtype(dtype), math.prod(shape) if isinstance(shape, tuple) else shape
    room = np.zeros(count * kind.itemsize + CACHE_LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[first : first + count * kind.itemsize].view(kind).reshape(shape)


def grown_to(array: Any, rows: int) -> Any:
    """Return the array itself if it has enough rows, else a copy at least twice as long, with zeros at its end."""
    if len(array) >= rows:
        return array
    longer = aligned_zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
