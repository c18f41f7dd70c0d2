"""Types of kernel arguments, for readers and type checkers; Numba infers its own types."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

from wavesim_sdk.arrays import Floats, Ints, Keys, Mask, Record

__all__ = ["Complexes", "Floats", "Ints", "Keys", "Lanes", "Mask", "Number", "Packed"]

Complexes: TypeAlias = np.ndarray[Any, np.dtype[np.complex128]]
Packed: TypeAlias = Record  #: table that contains arrays and numbers; see :func:`wavesim_server.array_tables.pack`
#: vector with one number for each body in a block; see :mod:`wavesim_server.dynamics.lanes`
Lanes: TypeAlias = Floats
#: a number, or a vector with one number per lane
Number = TypeVar("Number", float, Lanes)
