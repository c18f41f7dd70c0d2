"""Views of arrays in kernels, made from the addresses of the arrays, for :mod:`wavesim_server.array_tables`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, get_type_hints

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

from wavesim_kernels import numba_internals
from wavesim_kernels.elementary_intrinsics import declared_function
from wavesim_server.dynamics.sizes import ARRAY_WORDS

_LONG = ir.IntType(64)


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
        found = builder.load(builder.gep(pointer, [_LONG(ARRAY_WORDS * row + k)]))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    return _view(context, builder, of, word)


def _view(context: Any, builder: Any, of: Any, word: Any) -> Any:
    """Return a view of an array; the view does not count references. ``word(0)`` is the address of the array, and
    ``word(1)`` is its first length.
    """
    shape = [word(1 + k) for k in range(of.ndim)]
    return numba_internals.array_view(context, builder, of, word(0), shape)


def make_views(name: str, arrays: Mapping[str, tuple[Any, int]]) -> Any:
    """Return a kernel function that creates a tuple of arrays from its address table.

    ``arrays`` states the element type and the number of dimensions of each array.
    """
    kind = _ArrayTupleType(name, arrays)

    @intrinsic
    def made(typing_context: Any, table: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return numba_internals.array_struct(context, builder, signature.args[0], arguments[0]).data

        return kind(table), build

    return made


def make_unpacker(of: Any) -> Any:
    """Return a kernel function that creates the tuples of a class from their address table."""

    def members(record: Any, kind: Any, name: str = "") -> Any:
        """Return the type of a tuple, together with the instructions that read its members."""
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


@intrinsic
def prefetch(typing_context: Any, array: Any, row: Any) -> Any:
    """Prefetch a row of an array."""

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
