"""Argument types of kernels, for readers and type checkers; Numba infers its own types."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
Keys: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]  #: keys of random number streams
#: vector with one number per body of a block; see :mod:`wavesim_server.dynamics.lanes`
Lanes: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]
