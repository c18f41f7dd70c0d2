"""Types of arrays, for readers and type checkers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]  #: numbers of any type
Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
Keys = np.ndarray[Any, np.dtype[np.uint64]]  #: keys of random number streams
Record = np.ndarray[Any, np.dtype[np.void]]  #: rows of a table
