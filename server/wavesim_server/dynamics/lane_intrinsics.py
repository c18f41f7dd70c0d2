"""Numba type for a vector of lanes, with its operations, for use by :mod:`wavesim_server.dynamics.lanes`."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, overload, register_model, type_callable

from wavesim_kernels import elementary_intrinsics, numba_internals
from wavesim_sdk import elementary
from wavesim_server.dynamics.sizes import LANES
from wavesim_server.dynamics.types import Floats, Lanes, Mask


class LaneVectorType(types.Type):
    """A vector register with LANES float64 numbers."""

    def __init__(self) -> None:
        super().__init__(name=f"lanes{LANES}")


class LaneMaskType(types.Type):
    """One truth value for each lane."""

    def __init__(self) -> None:
        super().__init__(name=f"mask{LANES}")


VECTOR, MASK = LaneVectorType(), LaneMaskType()
_DOUBLES, _BITS = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(1), LANES)
_F = types.float64


@register_model(LaneVectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _DOUBLES)


@register_model(LaneMaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _BITS)


def _splat(builder: Any, value: Any) -> Any:
    """Return a vector with the same number in all lanes."""
    one = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_DOUBLES, ir.Undefined), zeros)


def _to_vector(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Convert a value to a vector."""
    if kind == VECTOR:
        return value
    return _splat(builder, numba_internals.as_float(context, builder, kind, value))


_MIXED = [(VECTOR, VECTOR), (VECTOR, types.Number), (types.Number, VECTOR)]
_ARITHMETIC = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
    operator.iadd: "fadd",
    operator.isub: "fsub",
    operator.imul: "fmul",
}
_ORDER = {operator.gt: ">", operator.lt: "<", operator.ge: ">=", operator.le: "<="}


def _define_binary(function: Any, result: Any, body: Any) -> None:
    """Define the type inference and the machine code of a binary operator on vectors."""

    @type_callable(function)
    def _(context: Any) -> Any:
        def of(a: Any, b: Any) -> Any:
            vectors = [kind == VECTOR for kind in (a, b)]
            numbers = [isinstance(kind, types.Number) for kind in (a, b)]
            return result if any(vectors) and all(map(operator.or_, vectors, numbers)) else None

        return of

    for pair in _MIXED:

        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            a, b = (_to_vector(context, builder, t, v) for t, v in zip(sig.args, args, strict=True))
            return body(builder, a, b)

        lower_builtin(function, *pair)(lower)


for _operator, _name in _ARITHMETIC.items():
    _define_binary(_operator, VECTOR, lambda builder, a, b, name=_name: getattr(builder, name)(a, b))
for _operator, _name in _ORDER.items():
    _define_binary(_operator, MASK, lambda builder, a, b, name=_name: builder.fcmp_ordered(name, a, b))
_define_binary(max, VECTOR, lambda builder, a, b: builder.select(builder.fcmp_ordered(">", b, a), b, a))
_define_binary(min, VECTOR, lambda builder, a, b: builder.select(builder.fcmp_ordered("<", b, a), b, a))


def _define_unary(function: Any, body: Any) -> None:
    @type_callable(function)
    def _(context: Any) -> Any:
        return lambda a: VECTOR if a == VECTOR else None

    lower_builtin(function, VECTOR)(lambda context, builder, sig, args: body(builder, args[0]))


def _call(builder: Any, name: str, value: Any) -> Any:
    kind = ir.FunctionType(_DOUBLES, [_DOUBLES])
    return builder.call(elementary_intrinsics.declared_function(builder, f"llvm.{name}.v{LANES}f64", kind), [value])


_define_unary(operator.neg, lambda builder, a: builder.fsub(ir.Constant(_DOUBLES, [-0.0] * LANES), a))
_define_unary(abs, lambda builder, a: _call(builder, "fabs", a))


def _pointer(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Return the address of a row of a flat array."""
    data = numba_internals.array_struct(context, builder, kind, array).data
    first = builder.mul(row, ir.Constant(row.type, LANES))
    return builder.bitcast(builder.gep(data, [first]), _DOUBLES.as_pointer())


@intrinsic
def _load(typing: Any, array: Any, row: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], args[0], args[1])
        loaded = builder.load(pointer, typ=_DOUBLES)
        loaded.align = 8
        return loaded

    return VECTOR(array, types.intp), code


@intrinsic
def _store(typing: Any, array: Any, row: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig.args[0], args[0], args[1])
        builder.store(_to_vector(context, builder, sig.args[2], args[2]), pointer, align=8)
        return numba_internals.NONE

    return types.void(array, types.intp, VECTOR if value == VECTOR else _F), code


@intrinsic
def _select(typing: Any, mask: Any, a: Any, b: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y = (_to_vector(context, builder, t, v) for t, v in zip(sig.args[1:], args[1:], strict=True))
        return builder.select(args[0], x, y)

    return VECTOR(mask, VECTOR if a == VECTOR else _F, VECTOR if b == VECTOR else _F), code


@intrinsic
def _any_lane(typing: Any, mask: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = ir.IntType(LANES)
        return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), bits(0))

    return types.boolean(MASK), code


@intrinsic
def _splat_number(typing: Any, a: Any) -> Any:
    return VECTOR(_F), lambda context, builder, sig, args: _splat(builder, args[0])


def _overload_for_lanes(function: Any, made: Any) -> None:
    """Overload an elementary function for vectors."""

    @overload(function, strict=False)
    def _(x: Any) -> Any:
        return (lambda x: made(x)) if x == VECTOR else None


def _lane_intrinsic(code: Any) -> Any:
    @intrinsic
    def made(typing: Any, x: Any) -> Any:
        return VECTOR(VECTOR), lambda context, builder, sig, args: code(builder, args[0])

    return made


for _part in ("mantissa", "exponent", "power", "root"):
    _overload_for_lanes(
        getattr(elementary, f"_{_part}"), _lane_intrinsic(getattr(elementary_intrinsics, f"{_part}_code"))
    )


_choose: Any = _select


@overload(elementary._where, strict=False)
def _elementary_where(mask: Any, a: Any, b: Any) -> Any:
    return (lambda mask, a, b: _choose(mask, a, b)) if mask == MASK else None


@intrinsic
def _broadcast_one(typing: Any, array: Any, index: Any) -> Any:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = numba_internals.array_struct(context, builder, sig.args[0], args[0]).data
        return _splat(builder, builder.load(builder.gep(data, [args[1]])))

    return VECTOR(array, types.intp), code


load = cast("Callable[[Floats, int], Lanes]", _load)
#: function that reads one parameter from an array into all lanes
broadcast = cast("Callable[[Floats, int], Lanes]", _broadcast_one)
store = cast("Callable[[Floats, int, Lanes | float], None]", _store)
any_lane = cast("Callable[[Mask], bool]", _any_lane)
select = cast("Callable[[Mask, Lanes | float, Lanes | float], Lanes]", _select)
sqrt: Callable[[Lanes], Lanes] = _lane_intrinsic(elementary_intrinsics.root_code)
splat = cast("Callable[[float], Lanes]", _splat_number)
maximum = cast("Callable[[Lanes, Lanes | float], Lanes]", max)
minimum = cast("Callable[[Lanes, Lanes | float], Lanes]", min)
