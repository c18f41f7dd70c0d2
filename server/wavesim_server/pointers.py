"""Arrays handed to kernels by address.

A kernel that is given a tuple of many arrays pays for each of them at each call: the caller's lookup and unboxing,
and counting references at every function boundary inside (measured: 85 us and 2 us a call with forty arrays).  Here
the caller fills a table of addresses and shapes once.  Inside, the tuple is one pointer to that table, and a member of it
an uncounted view of its array, made where it is used; so it costs nothing to hand the tuple on.  Whoever
owns the arrays must keep them alive, and fill the table anew when one of them is replaced; no kernel changes it.

With compilation off the table is the tuple itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import config, types
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype

PLAIN: bool = config.DISABLE_JIT  # type: ignore[attr-defined]
_WORDS = 3  #: of each array in the table: its address and up to two lengths
_LONG = ir.IntType(64)


def table(arrays: Any) -> Any:
    """(n, 3): address and up to two lengths of each array of a tuple."""
    if PLAIN:
        return arrays
    rows = np.zeros((len(arrays), _WORDS), np.int64)
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


class _Tuple(types.Type):
    """The type of a tuple of arrays in a kernel."""

    def __init__(self, name: str, arrays: Mapping[str, tuple[Any, int]]) -> None:
        self.arrays = {
            member: (row, types.Array(from_dtype(np.dtype(dtype)), dimensions, "C"))
            for row, (member, (dtype, dimensions)) in enumerate(arrays.items())
        }
        layout = hashlib.sha256(
            repr(self.arrays).encode()
        ).hexdigest()  # part of what the type is: kernels are kept by it
        super().__init__(name=f"{name} by address {layout[:16]}")


@register_model(_Tuple)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LONG.as_pointer())


@infer_getattr
class _Members(AttributeTemplate):
    key = _Tuple

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]  # declared as what it is not
        return kind.arrays[name][1] if name in kind.arrays else None


@lower_getattr_generic(_Tuple)
def _member(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    """The view of an array; what stands in the table stays, so the compiler need not read it twice."""
    row, of = kind.arrays[name]

    def word(k: int) -> Any:
        found = builder.load(builder.gep(pointer, [_LONG(_WORDS * row + k)]))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    array = context.make_array(of)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(of.dtype))
    shape = [word(1 + k) for k in range(of.ndim)]
    strides = [_LONG(size)]
    for length in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    address = builder.inttoptr(word(0), array.data.type)
    arrayobj.populate_array(array, data=address, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return array._getvalue()


def views(name: str, arrays: Mapping[str, tuple[Any, int]]) -> Any:
    """A function for kernels: the tuple of these arrays (type of the elements, number of dimensions) from its table."""
    if PLAIN:
        return lambda table: table
    kind = _Tuple(name, arrays)

    @intrinsic
    def made(typing_context: Any, table: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.make_array(signature.args[0])(context, builder, arguments[0]).data

        return kind(table), build

    return made
