"""LLVM code of the elementary functions and of the random-number hash.

Importing this module registers the functions with Numba for use in kernels. Only
:mod:`wavesim_kernels.compiled_elementary` imports it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from wavesim_kernels import numba_internals, randomness
from wavesim_sdk import elementary

_options: Any = numba_internals.OPTIONS
#: options for functions that are inlined wherever they are called, so that loops can be vectorised
_ALWAYS_INLINE: Any = {**_options, "forceinline": True, "pipeline_class": numba_internals.DeviceFunctionCompiler}
_DOUBLE, _LONG = ir.DoubleType(), ir.IntType(64)


def lane_type(kind: Any, of: Any) -> Any:
    """Return an LLVM type or, if ``of`` is a vector, a vector of this type with the same number of lanes as ``of``."""
    return ir.VectorType(kind, of.count) if isinstance(of, ir.VectorType) else kind


def lane_constant(kind: Any, value: float) -> Any:
    """Return a constant, repeated in all lanes if the type is a vector."""
    return ir.Constant(kind, [value] * kind.count if isinstance(kind, ir.VectorType) else value)


def declared_function(builder: Any, name: str, kind: Any) -> Any:
    """Return an LLVM function. If the module does not declare the function yet, declare it."""
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


def mantissa_code(builder: Any, x: Any) -> Any:
    """Build code that keeps the fraction bits of a number and gives the number the exponent of 0.5."""
    long = lane_type(_LONG, x.type)
    bits = builder.and_(builder.bitcast(x, long), lane_constant(long, 0x000FFFFFFFFFFFFF))
    return builder.bitcast(builder.or_(bits, lane_constant(long, 0x3FE0000000000000)), x.type)


def exponent_code(builder: Any, x: Any) -> Any:
    """Build code that reads the exponent via a number near 2^52, because integer conversions of vectors are slow."""
    long = lane_type(_LONG, x.type)
    bits = builder.lshr(builder.bitcast(x, long), lane_constant(long, 52))
    found = builder.bitcast(builder.or_(bits, lane_constant(long, 0x4330000000000000)), x.type)
    return builder.fsub(found, lane_constant(x.type, 2.0**52 + 1022.0))


def power_code(builder: Any, n: Any) -> Any:
    """Build code for 2^n. The lowest bits of n + 1.5 * 2^52 are the bits of n."""
    long = lane_type(_LONG, n.type)
    bits = builder.bitcast(builder.fadd(n, lane_constant(n.type, 1.5 * 2.0**52 + 1023.0)), long)
    return builder.bitcast(builder.shl(bits, lane_constant(long, 52)), n.type)


def define_intrinsic(function: Any, code: Any) -> None:
    """Define a primitive of the elementary functions for scalars."""

    @intrinsic
    def made(typing: Any, x: Any) -> Any:
        return types.float64(types.float64), lambda context, builder, sig, args: code(builder, args[0])

    known: Any = made

    @overload(function, jit_options=_options, strict=False)
    def _(x: Any) -> Any:
        return (lambda x: known(x)) if isinstance(x, types.Float) else None


define_intrinsic(elementary._mantissa, mantissa_code)
define_intrinsic(elementary._exponent, exponent_code)
define_intrinsic(elementary._power, power_code)


@intrinsic
def _select(typing: Any, mask: Any, a: Any, b: Any) -> Any:
    made = types.float64(types.boolean, types.float64, types.float64)
    return made, lambda context, builder, sig, args: builder.select(*args)


_choose: Any = _select


@overload(elementary._where, jit_options=_options, strict=False)
def _where(mask: Any, a: Any, b: Any) -> Any:
    """Select one of two values without a branch, so that the compiler can vectorise loops."""
    return (lambda mask, a, b: _choose(mask, a, b)) if isinstance(mask, types.Boolean) else None


def root_code(builder: Any, x: Any) -> Any:
    """Build the square-root instruction. ``math.sqrt`` would instead call a function that sets ``errno``."""
    name = f"llvm.sqrt.v{x.type.count}f64" if isinstance(x.type, ir.VectorType) else "llvm.sqrt.f64"
    return builder.call(declared_function(builder, name, ir.FunctionType(x.type, [x.type])), [x])


define_intrinsic(elementary._root, root_code)


def _define(function: Any) -> None:
    """Let Numba inline a function into its callers, so that loops can be vectorised and no status check is needed."""
    source = getattr(function, "__wrapped__", function)
    overload(function, jit_options=_ALWAYS_INLINE, strict=False)(lambda *args: source)


_RANDOM = (randomness.splitmix64, randomness.random_bits)
for _function in (*elementary.INTERNAL_FUNCTIONS, *elementary.FUNCTIONS, *_RANDOM):
    _define(_function)
