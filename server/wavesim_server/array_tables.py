"""Arrays passed to kernels by address.

Passing a tuple of many arrays to a kernel has two costs. At each call, the caller looks up and unboxes every array (85
us per call, measured with forty arrays). Inside the kernel, the references to every array are counted at each function
boundary (2 us per call). Here, the caller fills a table of addresses and shapes once, and the kernel receives only a
pointer to that table. Where the kernel uses an array, it creates a view without a reference count. Passing the tuple to
another function therefore costs nothing. The owner of the arrays must keep them alive and refill the table when one is
replaced; kernels never change the table.

For functions that work on nested tuples, :func:`pack` and :func:`make_unpacker` do the same: the kernel that Python
calls rebuilds the tuples from uncounted views.

If compilation is disabled, the tuple itself takes the place of the table.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

from wavesim_kernels import numba_internals
from wavesim_kernels.compiled_elementary import declared_function
from wavesim_kernels.compiler import JIT_DISABLED

_WORDS = 3  #: words per array in the table: its address and up to two lengths
_LONG = ir.IntType(64)


def address_table(arrays: Any) -> Any:
    """Return a table (n, 3) with the address and up to two lengths of each array of a tuple."""
    if JIT_DISABLED:
        return arrays
    rows = np.zeros((len(arrays), _WORDS), np.int64)
    for row, a in zip(rows, arrays, strict=True):
        if not a.flags.c_contiguous:
            raise ValueError("only contiguous arrays can be passed by address")
        row[0] = a.ctypes.data
        row[1 : 1 + a.ndim] = a.shape
    return rows


def record_argument(array: Any) -> Any:
    """Return an array of records as a kernel argument.

    With compilation on, this is a plain NumPy array, whose type Numba recognises quickly. With compilation off, it is
    an array whose members are attributes.
    """
    return array.view(np.recarray) if JIT_DISABLED else np.asarray(array)


class _ArrayTupleType(types.Type):
    """The type of a tuple of arrays in a kernel."""

    def __init__(self, name: str, arrays: Mapping[str, tuple[Any, int]]) -> None:
        self.arrays = {
            member: (row, types.Array(from_dtype(np.dtype(dtype)), dimensions, "C"))
            for row, (member, (dtype, dimensions)) in enumerate(arrays.items())
        }
        layout = hashlib.sha256(
            repr(self.arrays).encode()
        ).hexdigest()  # part of the type's identity, by which Numba caches kernels
        super().__init__(name=f"{name} by address {layout[:16]}")


@register_model(_ArrayTupleType)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LONG.as_pointer())


@infer_getattr
class _MemberTemplate(numba_internals.AttributeTemplate):
    key = _ArrayTupleType

    def generic_resolve(self, kind: Any, name: str) -> Any:  # type: ignore[override]  # the base class declares another type
        return kind.arrays[name][1] if name in kind.arrays else None


@lower_getattr_generic(_ArrayTupleType)
def _lower_member(context: Any, builder: Any, kind: Any, pointer: Any, name: str) -> Any:
    """Load the view of an array. The table never changes, so the compiler need not read it twice."""
    row, of = kind.arrays[name]

    def word(k: int) -> Any:
        found = builder.load(builder.gep(pointer, [_LONG(_WORDS * row + k)]))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    return _view(context, builder, of, word)


def _view(context: Any, builder: Any, of: Any, word: Any) -> Any:
    """Return a view of an array without a reference count. ``word(0)`` is the address of the array, ``word(1)`` its
    first length.
    """
    shape = [word(1 + k) for k in range(of.ndim)]
    return numba_internals.array_view(context, builder, of, word(0), shape)


def make_views(name: str, arrays: Mapping[str, tuple[Any, int]]) -> Any:
    """Return a kernel function that creates the tuple of these arrays from its table.

    ``arrays`` states the element type and the number of dimensions of each array.
    """
    if JIT_DISABLED:
        return lambda table: table
    kind = _ArrayTupleType(name, arrays)

    @intrinsic
    def made(typing_context: Any, table: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return numba_internals.array_struct(context, builder, signature.args[0], arguments[0]).data

        return kind(table), build

    return made


def _named_leaves(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return (dotted member path, array or number) of each leaf of nested tuples."""
    if not isinstance(value, tuple):
        return [(name, value)]
    names = value._fields  # type: ignore[attr-defined]  # of named tuples
    return [leaf for n, v in zip(names, value, strict=True) for leaf in _named_leaves(v, f"{name}.{n}")]


def pack(value: Any) -> Any:
    """Return the table (1,) of nested tuples of arrays and numbers, for :func:`make_unpacker`.

    The table holds the address and lengths of each array, and each number. The types of the arrays are part of the type
    of the table, and therefore of the signature of the kernel.
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
    """Return the same dtype object for the same columns.

    Numba recognises the same object at once; an equal copy costs 7 us per call.
    """
    return np.dtype(list(columns))


def make_unpacker(of: Any) -> Any:
    """Return a kernel function that creates the tuples of a class from their table."""
    if JIT_DISABLED:
        return lambda table: table

    def members(record: Any, kind: Any, name: str = "") -> Any:
        """Return the type of a tuple, and how to read its members."""
        kinds, reads = [], []
        hints = get_type_hints(kind)
        for member in kind._fields:
            path, hint = f"{name}.{member}", hints[member]
            if isinstance(hint, type) and issubclass(hint, tuple):
                found, read = members(record, hint, path)
            else:
                column = next(c for c in record.fields if c == path or c.startswith(f"{path}:"))
                field, dtype = record.fields[column], column.partition(":")[2]
                if dtype:
                    found = types.Array(from_dtype(np.dtype(dtype)), field.type.shape[0] - 1, "C")
                else:
                    found = types.boolean if hint is bool else field.type
                read = (found, field.offset)
            kinds.append(found)
            reads.append(read)
        made = types.BaseTuple.from_types(tuple(kinds), kind)
        return made, (made, reads)

    def built(context: Any, builder: Any, pointer: Any, read: Any) -> Any:
        kind, where = read
        if isinstance(where, list):
            members = [built(context, builder, pointer, one) for one in where]
            return numba_internals.tuple_of(context, builder, kind, members)

        def word(k: int, of: Any = _LONG) -> Any:
            place = builder.gep(pointer, [ir.IntType(64)(where + 8 * k)])
            return builder.load(builder.bitcast(place, of.as_pointer()))

        if isinstance(kind, types.Array):
            return _view(context, builder, kind, word)
        if isinstance(kind, types.Boolean):
            return builder.icmp_unsigned("!=", word(0), _LONG(0))
        return word(0, numba_internals.llvm_type(context, kind))

    @intrinsic
    def made(typing_context: Any, table: Any) -> Any:
        kind, read = members(table.dtype, of)

        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = numba_internals.array_struct(context, builder, signature.args[0], arguments[0]).data
            return built(context, builder, builder.bitcast(data, ir.IntType(8).as_pointer()), read)

        return kind(table), build

    return made


def _prefetch() -> Any:
    if JIT_DISABLED:
        return lambda array, row: None

    @intrinsic
    def made(typing_context: Any, array: Any, row: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            view = numba_internals.array_struct(context, builder, signature.args[0], arguments[0])
            row = builder.sext(arguments[1], _LONG) if signature.args[1].bitwidth < 64 else arguments[1]
            stride = builder.extract_value(view.strides, 0)
            address = builder.add(builder.ptrtoint(view.data, _LONG), builder.mul(row, stride))
            byte = ir.IntType(8).as_pointer()
            kind = ir.FunctionType(ir.VoidType(), [byte, *[ir.IntType(32)] * 3])
            called = declared_function(builder, "llvm.prefetch.p0i8", kind)
            flags = [ir.IntType(32)(flag) for flag in (0, 3, 1)]  # for reading, high locality, data cache
            builder.call(called, [builder.inttoptr(address, byte), *flags])
            return numba_internals.NONE

        return types.none(array, row), build

    return made


#: prefetch a row of an array that is needed soon while other work continues; an invalid row number is harmless
prefetch: Any = _prefetch()
