"""Arrays that are passed to kernels by address.

Passing a tuple of many arrays to a kernel has two costs. At each call, the caller looks up and unboxes every array (85
us per call, measured with forty arrays). Inside the kernel, the references to every array are counted at each function
boundary (2 us per call). Here, the caller fills a table of addresses and shapes once, and the kernel receives only a
pointer to that table. Where the kernel uses an array, it creates a view without a reference count. Passing the tuple to
another function therefore costs nothing. The owner of the arrays must keep them alive and must refill the table when
one of them is replaced; kernels never change the table.

For functions that work on nested tuples, :func:`pack` and :func:`make_unpacker` do the same: the kernel that is called
from Python rebuilds the tuples from views that do not count references.

If compilation is disabled, the tuple itself takes the place of the table.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_kernels.compiler import JIT_DISABLED, MODE, Mode
from wavesim_server.dynamics.sizes import ARRAY_WORDS

if TYPE_CHECKING or MODE is Mode.COMPILE:
    from wavesim_server import array_intrinsics
    from wavesim_server.array_intrinsics import make_unpacker, make_views

    prefetch: Any = array_intrinsics.prefetch
else:
    make_views = lambda name, arrays: lambda table: table  # noqa: E731
    make_unpacker = lambda of: lambda table: table  # noqa: E731
    prefetch = lambda array, row: None  # noqa: E731

__all__ = ["address_table", "make_unpacker", "make_views", "pack", "prefetch", "record_argument"]


def address_table(arrays: Any) -> Any:
    """Return a table (n, 3) with the address and up to two lengths of each array of a tuple."""
    if JIT_DISABLED:
        return arrays
    rows = np.zeros((len(arrays), ARRAY_WORDS), np.int64)
    for row, a in zip(rows, arrays, strict=True):
        if not a.flags.c_contiguous:
            raise ValueError("only contiguous arrays can be passed by address")
        row[0] = a.ctypes.data
        row[1 : 1 + a.ndim] = a.shape
    return rows


def record_argument(array: Any) -> Any:
    """Return an array of records as a kernel argument.

    With compilation on, the argument is a plain NumPy array, whose type Numba recognises quickly. With compilation off,
    it is an array whose members are attributes.
    """
    return array.view(np.recarray) if JIT_DISABLED else np.asarray(array)


def _named_leaves(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Yield the leaves of nested tuples as pairs: the dotted path of the member, and its array or number."""
    if not isinstance(value, tuple):
        return [(name, value)]
    names = value._fields  # type: ignore[attr-defined]  # of named tuples
    return [leaf for n, v in zip(names, value, strict=True) for leaf in _named_leaves(v, f"{name}.{n}")]


def pack(value: Any) -> Any:
    """Return the table (1,) for nested tuples of arrays and numbers, for use by :func:`make_unpacker`.

    The table contains the address and the lengths of each array, and each number. The types of the arrays are part of
    the type of the table, and therefore of the signature of the kernel.
    """
    if JIT_DISABLED:
        return value
    columns: list[Any] = []
    words: list[Any] = []
    for name, leaf in _named_leaves(value):
        if not isinstance(leaf, np.ndarray):
            columns.append((name, "i8" if isinstance(leaf, int) else "f8"))  # a bool is stored as an integer
            words.append(leaf)
            continue
        if not leaf.flags.c_contiguous or not leaf.flags.writeable:
            raise ValueError("only contiguous, writable arrays can be passed by address")
        columns.append((f"{name}:{leaf.dtype.str}", "i8", (1 + leaf.ndim,)))
        words.append((leaf.__array_interface__["data"][0], *leaf.shape))
    return np.array([tuple(words)], _shared_dtype(tuple(columns)))


@functools.cache
def _shared_dtype(columns: tuple[Any, ...]) -> Any:
    """Return one dtype object for all equal dtypes.

    Numba recognises this object immediately, whereas comparing an equal copy costs 7 us per call.
    """
    return np.dtype(list(columns))
