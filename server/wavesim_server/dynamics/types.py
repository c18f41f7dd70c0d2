"""Argument types of kernels, for readers and type checkers; Numba infers its own types."""

from __future__ import annotations

from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Complexes: TypeAlias = npt.NDArray[np.complex128]
Keys: TypeAlias = npt.NDArray[np.uint64]  #: keys of random number streams
Packed: TypeAlias = npt.NDArray[
    np.void
]  #: arrays and numbers in one table; see :func:`wavesim_server.array_tables.pack`
#: vector with one number per body of a block; see :mod:`wavesim_server.dynamics.lanes`
Lanes: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
#: a number, or a vector of all lanes
Number = TypeVar("Number", float, Lanes)
