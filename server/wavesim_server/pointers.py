"""Arrays handed to kernels by address.

A kernel that is given a tuple of many arrays pays for each of them at each call: the caller's lookup and unboxing,
and counting references at every function boundary inside (measured: 85 us and 2 us a call with forty arrays).  Here
the caller fills a table of addresses and shapes once, and the kernel makes its own uncounted views from it.  Whoever
owns the arrays must keep them alive, and fill the table anew when one of them is replaced.

With compilation off the table is the tuple itself.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.core import cgutils, config, types
from numba.extending import intrinsic

PLAIN: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
_inline = nb.njit(cache=True, error_model="numpy", forceinline=True)
#: for functions that take such views: inlined into their kernel, and without the wrappers for calls from outside,
#: which would unbox every array
_options: dict[str, Any] = dict.fromkeys(("forceinline", "no_cpython_wrapper", "no_cfunc_wrapper"), True)
inner: Any = nb.njit(cache=True, error_model="numpy", **_options)


def table(arrays: Any) -> Any:
    """(n, 3): address and up to two lengths of each array of a tuple."""
    if PLAIN:
        return arrays
    rows = np.zeros((len(arrays), 3), np.int64)
    for row, a in zip(rows, arrays, strict=True):
        if not a.flags.c_contiguous:
            raise ValueError("only contiguous arrays can be handed over by address")
        row[0] = a.ctypes.data
        row[1 : 1 + a.ndim] = a.shape
    return rows


def records(array: Any) -> Any:
    """An array of records as an argument of a kernel: NumPy's own, which Numba knows quickly; with compilation off one whose
    members are attributes."""
    return array.view(np.recarray) if PLAIN else np.asarray(array)


@intrinsic
def _address(typing_context: Any, address: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), build


_pointer: Any = _address
_array: Any = nb.carray  # type: ignore[attr-defined]


@_inline
def view1(t: Any, k: int, dtype: Any) -> Any:
    """Array k as (n,) numbers or records."""
    return _array(_pointer(t[k, 0]), (t[k, 1],), dtype)


@_inline
def view2(t: Any, k: int, dtype: Any) -> Any:
    """Array k as (n, m) numbers or records."""
    return _array(_pointer(t[k, 0]), (t[k, 1], t[k, 2]), dtype)
