"""Array types for annotations, and functions that view a table as a matrix of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]  #: array of numbers of any type
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Keys = np.ndarray[Any, np.dtype[np.uint64]]  #: array of keys for random number streams
Record = np.ndarray[Any, np.dtype[np.void]]  #: array of the rows in a table


def as_numbers(rows: Record) -> Floats:
    """Return a view of a table as a matrix of floats (rows, numbers). All its columns must have 8-byte elements; see
    ``Table.first_columns``.
    """
    return rows.view(np.float64).reshape(len(rows), rows.dtype.itemsize // 8)


def as_words(rows: Record) -> Ints:
    """Return a view of a table as a matrix of 64-bit integers (rows, 8-byte words)."""
    return rows.view(np.int64).reshape(len(rows), rows.dtype.itemsize // 8)
