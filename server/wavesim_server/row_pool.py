"""Rows of growing arrays. Released rows are reused, so that memory use follows the number of rows in use."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np


class RowPool:
    """Pool of rows; the lowest free row is used first."""

    def __init__(self) -> None:
        self.size = 0  #: maximum number of rows that have been in use at the same time so far
        self._free: list[int] = []

    def acquire(self) -> int:
        """Take a free row and return it."""
        if self._free:
            return heapq.heappop(self._free)
        self.size += 1
        return self.size - 1

    def release(self, row: int) -> None:
        """Return a row to the pool."""
        heapq.heappush(self._free, row)


CACHE_LINE = 64  #: size of a cache line in bytes, which is also the width of the widest register


def aligned_zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Any:
    """Return an array of zeros that begins on a cache line.

    NumPy arrays may begin anywhere in a cache line, in which case every row of eight numbers may span two cache lines.
    In one kernel, this took a sixth of the run time.
    """
    kind, count = np.dtype(dtype), math.prod(shape) if isinstance(shape, tuple) else shape
    room = np.zeros(count * kind.itemsize + CACHE_LINE, np.uint8)
    first = -room.__array_interface__["data"][0] % CACHE_LINE
    return room[first : first + count * kind.itemsize].view(kind).reshape(shape)


def grown_to(array: Any, rows: int) -> Any:
    """Return the array itself if it has at least ``rows`` rows; otherwise, return a copy at least twice as long, padded
    with zeros.
    """
    if len(array) >= rows:
        return array
    longer = aligned_zeros((max(rows, 2 * len(array)), *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
