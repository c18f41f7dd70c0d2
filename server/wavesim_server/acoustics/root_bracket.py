"""Root of a continuous function between two points at which it has opposite signs, by the Illinois method; compiled.

The caller evaluates the function, which can therefore take any form: a call, a ray, or a column of an array.

    bracket = Bracket(low, f(low), high, f(high), 0)
    for _ in range(...):
        x = estimate_root(bracket)
        ...f(x), return when it is close enough...
        bracket = narrow_bracket(bracket, x, f(x))
"""

from __future__ import annotations

from typing import NamedTuple

from wavesim_kernels.compiler import device_function


class Bracket(NamedTuple):
    """An interval at whose ends a function has opposite signs. ``moved`` is 1 if the last step moved the high end, -1
    if it moved the low end, and 0 before the first step.

    The function values at the ends serve as weights. The Illinois method halves the weight of an end that has not moved
    in two steps.
    """

    low: float
    f_low: float
    high: float
    f_high: float
    moved: int


@device_function
def estimate_root(b: Bracket) -> float:
    """Return the root of the straight line through the function values at the ends, or the midpoint of the bracket if
    rounding puts the root outside.
    """
    middle = 0.5 * (b.low + b.high)
    if b.f_low == b.f_high:
        return middle
    x = (b.low * b.f_high - b.high * b.f_low) / (b.f_high - b.f_low)
    return x if b.low <= x <= b.high else middle


@device_function
def narrow_bracket(b: Bracket, x: float, f: float) -> Bracket:
    """Return the bracket after the function was found to have the value ``f`` at ``x``. ``x`` replaces the end whose
    value has the same sign.
    """
    if f * b.f_high > 0.0:
        return Bracket(b.low, 0.5 * b.f_low if b.moved == 1 else b.f_low, x, f, 1)
    return Bracket(x, f, b.high, 0.5 * b.f_high if b.moved == -1 else b.f_high, -1)
