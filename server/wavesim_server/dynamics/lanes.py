"""A vector of numbers, one for each lane, for compiled code.

The kernel computes several bodies together. A compiler turns a loop over lanes into vector instructions only if it can
prove that no two arrays overlap; otherwise, it omits the vectorisation without a message. This module therefore makes
the vector a type with its own operations: :func:`load` reads a row; :func:`broadcast` copies a parameter into all
lanes; ``+ - * /``, :func:`select` and similar functions work on all lanes; :func:`store` and :func:`add_to` write a
row. With compilation off, the same code runs on small NumPy arrays, with bit-identical results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_kernels.compiler import MODE, Mode, always_inline
from wavesim_sdk.arrays import Floats
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.dynamics.types import Lanes

__all__ = [
    "add_to",
    "any_lane",
    "broadcast",
    "element",
    "load",
    "maximum",
    "minimum",
    "select",
    "splat",
    "sqrt",
    "store",
]

if TYPE_CHECKING or MODE is Mode.COMPILE:
    from wavesim_server.dynamics.lane_intrinsics import (
        any_lane,
        broadcast,
        load,
        maximum,
        minimum,
        select,
        splat,
        sqrt,
        store,
    )
else:

    def _row(array: Any, row: int) -> Any:
        return array[row * LANES : row * LANES + LANES]

    def _store_row(array: Any, row: int, value: Any) -> None:
        _row(array, row)[:] = value

    load = lambda array, row: _row(array, row).copy()  # noqa: E731
    broadcast = lambda array, index: np.full(LANES, array[index])  # noqa: E731
    store, sqrt, select, any_lane = _store_row, np.sqrt, np.where, np.any
    splat = lambda value: np.full(LANES, value)  # noqa: E731
    maximum = lambda a, b: np.where(b > a, b, a)  # noqa: E731
    minimum = lambda a, b: np.where(b < a, b, a)  # noqa: E731


@always_inline
def element(array: Floats, row: int, lane: int) -> float:
    """Return the element in one lane, for operations that cannot run on all lanes simultaneously."""
    return array[row * LANES + lane]


@always_inline
def add_to(array: Floats, row: int, value: Lanes | float) -> None:
    """Add a vector to a row of an array."""
    store(array, row, load(array, row) + value)
