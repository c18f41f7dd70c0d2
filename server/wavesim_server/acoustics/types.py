"""Argument types of the acoustic kernels; when compilation is off, the arguments have exactly these types."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]
Record = np.record  #: a record whose members are attributes, as its table declares them
Records = np.recarray[Any, np.dtype[Any]]  #: an array of records whose members are attributes
