"""Elementary functions with bit-identical results on every machine.

The results of a C library or of NumPy can differ in the last bit between processors. The functions here use only ``+ -
* /``, square roots, comparisons and powers of two, for which IEEE 754 defines the rounding. The same source therefore
produces the same numbers for a float, for an array, and, when compiled (:mod:`wavesim_kernels.compiled_elementary`),
for a scalar or a SIMD vector.

Compared with mpmath, the errors are below one unit in the last place, or below two where a docstring says so. This
holds for every finite argument, including zeros of either sign, subnormal numbers and huge numbers. A result too large
for a float is infinite.

The functions use argument reduction with split constants whose products are exact (Cody & Waite 1980), and error-free
sums and products (Knuth; Veltkamp & Dekker 1971). Their minimax polynomials (Remez) were computed for this module with
60 digits. See Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed. 2018, ch. 10.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_ARRAYS = (np.ndarray, list, tuple)
_SMALL = 16  #: maximum size of an array whose elements are computed one by one, which is faster for small arrays
_NEAREST = 6755399441055744.0  #: 1.5 * 2^52: adding and then subtracting this number rounds a float to an integer
_SPLIT = 134217729.0  #: 2^27 + 1: multiplying by this number splits a float into two halves (Veltkamp)
_NORMAL = 2.2250738585072014e-308  #: smallest normal number; smaller numbers are subnormal
#: magnitude below which states, actuators and filters of the simulation are set to zero, see :func:`flush`
LEAST = 1e-60

# ------------------------------------------------------------------ primitives that the compiler replaces


def _where(mask: Any, a: Any, b: Any) -> Any:
    return np.where(mask, a, b) if isinstance(mask, np.ndarray) else a if mask else b


def _root(x: Any) -> Any:
    return np.sqrt(x) if isinstance(x, np.ndarray) else math.sqrt(x)


def _power(n: Any) -> Any:
    """Return 2^n for integers n from -1022 to 1023."""
    return np.ldexp(1.0, n.astype(np.int64)) if isinstance(n, np.ndarray) else math.ldexp(1.0, int(n))


def _mantissa(x: Any) -> Any:
    """Return the mantissa in [0.5, 1) of positive normal numbers."""
    return np.frexp(x)[0] if isinstance(x, np.ndarray) else math.frexp(x)[0]


def _exponent(x: Any) -> Any:
    """Return the exponent of positive normal numbers, such that x = mantissa * 2^exponent."""
    return np.frexp(x)[1].astype(float) if isinstance(x, np.ndarray) else float(math.frexp(x)[1])


# ------------------------------------------------------------------ parts


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a + b exactly, as a rounded sum and its error (Knuth)."""
    s = a + b
    v = s - a
    return s, (a - (s - v)) + (b - v)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return a b exactly, as a rounded product and its error (Dekker)."""
    c, d = _SPLIT * a, _SPLIT * b
    ah, bh = c - (c - a), d - (d - b)
    al, bl = a - ah, b - bh
    p = a * b
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _sine_cosine(x: Any) -> tuple[Any, Any]:
    """Return (sin x, cos x) from x = n pi/2 + y + tail. pi/2 is split into three parts of 33 bits and a remainder; this
    is exact up to n = 2^20.
    """
    x = _where(abs(x) > 1125899906842624.0, 0.0, x)  # above 2^50, adjacent floats differ by 0.25 or more
    n = (0.6366197723675814 * x + _NEAREST) - _NEAREST
    r, e = _two_sum(x - n * 1.5707963267341256, -(n * 6.077100506303966e-11))
    r, f = _two_sum(r, -(n * 2.0222662487111665e-21))
    low = (e + f) - n * 8.4784276603689e-32
    y = r + low
    tail = (r - y) + low
    z = y * y
    h = 0.5 * z
    zz = z * z
    s = (
        (-0.1666666666666663 + z * 0.008333333333322118)
        + zz * (-0.00019841269829589468 + z * 2.755731362135934e-06)
        + zz * zz * (-2.505074775843264e-08 + z * 1.5896229885728883e-10)
    )
    c = (
        (0.041666666666666595 - z * 0.0013888888888873056)
        + zz * (2.480158728885165e-05 - z * 2.7557314179276856e-07)
        + zz * zz * (2.0875700838852864e-09 - z * 1.1358536341516686e-11)
    )
    s = y + (y * z * s + tail * (1.0 - h))
    w = 1.0 - h
    c = w + (((1.0 - w) - h) + (zz * c - y * tail))
    k = n - 4.0 * ((0.25 * n + _NEAREST) - _NEAREST)  # -2 .. 2
    odd = abs(abs(k) - 1.0) < 0.5
    sine, cosine = _where(odd, c, s), _where(odd, s, c)
    return _where(abs(k - 0.5) > 1.0, -sine, sine), _where(abs(k + 0.5) > 1.0, -cosine, cosine)


def _grown(high: Any, low: Any) -> tuple[Any, Any]:
    """Write exp(high + low) as 2^n (1 + e), and return (e, n)."""
    high = _where(high > 710.0, 710.0, high)
    high = _where(high < -746.0, -746.0, high)
    n = (1.4426950408889634 * high + _NEAREST) - _NEAREST
    n = _where(abs(n) < 2000.0, n, 0.0)  # for NaN
    r = high - n * 0.6931471805598903
    w = n * 5.497923018708371e-14 - low
    y = r - w
    tail = (r - y) - w
    z = y * y
    q = (
        ((0.5 + y * 0.16666666666666674) + z * (0.04166666666662415 + y * 0.008333333333322215))
        + z
        * z
        * (
            (0.0013888888917200617 + y * 0.00019841269886564062)
            + z * (2.4801521317138755e-05 + y * 2.7557242367156263e-06)
        )
        + z * z * z * z * (2.762007807207849e-07 + y * 2.511003840733968e-08)
    )
    return y + (z * q + (tail + tail * y)), n


def _scaled(x: Any, n: Any) -> Any:
    """Return x 2^n, in two steps so that neither power overflows."""
    half = (0.5 * n + _NEAREST) - _NEAREST
    return x * _power(half) * _power(n - half)


def _normal(x: Any) -> tuple[Any, Any]:
    """Write a positive number as a normal number times 2^-shift, and return (normal, shift). Other numbers count as 1."""
    small = x < _NORMAL
    return _where(x > 0.0, x * _where(small, 18014398509481984.0, 1.0), 1.0), _where(small, 54.0, 0.0)


def _split(x: Any, shift: Any) -> tuple[Any, Any]:
    """Write x 2^-shift as (1 + f) 2^e, and return (f, e). 1 + f is between sqrt(1/2) and sqrt(2); x is positive and
    normal.
    """
    m, e = _mantissa(x), _exponent(x) - shift
    low = m < 0.7071067811865476
    return _where(low, m + m, m) - 1.0, _where(low, e - 1.0, e)


def _logarithm(x: Any, shift: Any) -> Any:
    """Return log(x 2^-shift)."""
    f, e = _split(x, shift)
    s = f / (2.0 + f)
    z = s * s
    zz = z * z
    r = z * (
        (0.6666666666666666 + z * 0.4000000000000624)
        + zz * (0.2857142856908733 + z * 0.22222222646574763)
        + zz
        * zz
        * ((0.18181775683518364 + z * 0.15387089960724484) + zz * (0.13250136291801667 + z * 0.13251162376948405))
    )
    h = 0.5 * f * f
    return e * 0.6931471805598903 - ((h - (s * (h + r) + e * 5.497923018708371e-14)) - f)


def _wide_logarithm(x: Any, shift: Any) -> tuple[Any, Any]:
    """Return log(x 2^-shift) as a sum of two numbers, accurate to 2^-65.

    The logarithm is 2 s + 2/3 s^3 + ... with s = f/(2 + f); the sum includes the errors of the first two terms.
    """
    f, e = _split(x, shift)
    d, d_low = _two_sum(2.0 + 0.0 * f, f)
    inverse = 1.0 / d
    s = f * inverse
    p, p_low = _two_product(s, d)
    s_low = (((f - p) - p_low) - s * d_low) * inverse
    z, z_low = _two_product(s, s)
    z_low = z_low + 2.0 * s * s_low
    c, c_low = _two_product(s, z)
    c_low = c_low + (s * z_low + s_low * z)
    t, t_low = _two_product(c, 0.6666666666666666 + 0.0 * f)
    t_low = t_low + (c * 3.700743415417188e-17 + c_low * 0.6666666666666666)
    zz = z * z
    tail = (
        s
        * zz
        * (
            (0.3999999999999998 + z * 0.285714285714451)
            + zz * (0.2222222221753929 + z * 0.18181818869967845)
            + zz
            * zz
            * ((0.15384556894678095 + z * 0.13336316507339857) + zz * (0.11674837026827266 + z * 0.11988858810348758))
        )
    )
    a, a_low = _two_sum(e * 0.6931471805598903, 2.0 * s)
    b, b_low = _two_sum(a, t)
    low = a_low + b_low + (2.0 * s_low + t_low + tail + e * 5.497923018708371e-14)
    return b + low, (b - (b + low)) + low


def _angle(y: Any, y_low: Any, x: Any, x_low: Any, level: Any) -> Any:
    """Return the angle of (x + x_low, y + y_low). The angle is the arc tangent of a quotient below tan(pi/8), plus a
    multiple of pi/4.

    ``level`` is a power of two that scales both components.
    """
    ax, ay = abs(x), abs(y)
    ax_low, ay_low = _where(x < 0.0, -x_low, x_low), _where(y < 0.0, -y_low, y_low)
    steep = ay > ax
    a, b = _where(steep, ax, ay), _where(steep, ay, ax)
    a_low, b_low = _where(steep, ax_low, ay_low), _where(steep, ay_low, ax_low)
    a, b, a_low, b_low = level * a, level * b, level * a_low, level * b_low
    far = a > 0.41421356237309503 * b
    less, less_low = _two_sum(a, -b)
    more, more_low = _two_sum(a, b)
    n, n_low = _where(far, less, a), _where(far, less_low + (a_low - b_low), a_low)
    d, d_low = _where(far, more, b), _where(far, more_low + (a_low + b_low), b_low)
    inverse = 1.0 / _where(d > 0.0, d, 1.0)
    q = n * inverse
    p, p_low = _two_product(q, d)
    q_low = ((((n - p) - p_low) + n_low) - q * d_low) * inverse
    z = q * q
    zz = z * z
    t = z * (
        (-0.33333333333333326 + z * 0.19999999999997695)
        + zz * (-0.14285714285391077 + z * 0.11111111088369316)
        + zz
        * zz
        * ((-0.09090908151446837 + z * 0.07692282915280906) + zz * (-0.06666229073007694 + z * 0.05877044501896157))
        + zz
        * zz
        * zz
        * zz
        * ((-0.05218550726323563 + z * 0.0450414526085579) + zz * (-0.03348834782359353 + z * 0.015209281572395912))
    )
    low = q * t + q_low * (1.0 - z)
    sign, eighths = _where(steep, -1.0, 1.0), _where(far, 1.0, 0.0)
    eighths = _where(steep, 2.0 - eighths, eighths)
    sign, eighths = _where(x < 0.0, -sign, sign), _where(x < 0.0, 4.0 - eighths, eighths)
    high, error = _two_sum(eighths * 0.7853981633974483, sign * q)
    angle = high + (error + (sign * low + eighths * 3.061616997868383e-17))
    return _where(y < 0.0, -angle, angle)


def _beside(x: Any) -> tuple[Any, Any]:
    """Return sqrt(1 - x^2) as a sum of two numbers, for :func:`asin` and :func:`acos`."""
    s, s_low = _two_product(x, x)
    r = 1.0 - s
    r_low = ((1.0 - r) - s) - s_low
    c = _root(r)
    p, p_low = _two_product(c, c)
    return c, (((r - p) - p_low) + r_low) / _where(c > 0.0, c + c, 1.0)


# ------------------------------------------------------------------ the functions


class _ForFloats(ast.NodeTransformer):
    """Rewriter that replaces calls to ``_where`` with conditional expressions and removes the decorators of the
    functions.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == _where.__name__:
            return ast.IfExp(*node.args)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = []
        return node


@functools.cache
def _functions_of_floats() -> dict[str, Callable[..., Any]]:
    """Return versions of this module's functions that accept only floats. They are generated from the same source and
    are twice as fast.
    """
    try:
        tree = ast.parse(inspect.getsource(sys.modules[__name__]))
    except OSError:  # without its source, for example in a frozen program
        return {}
    names: dict[str, Any] = {"__name__": f"{__name__} (floats)"}
    exec(compile(ast.fix_missing_locations(_ForFloats().visit(tree)), __file__, "exec"), names)
    return names


def _everywhere(f: Callable[..., Any]) -> Any:
    """Decorate a function of one or two arguments so that it accepts floats and arrays."""

    of_floats: Callable[..., Any] | None = None

    def everywhere(*x: Any) -> Any:
        nonlocal of_floats
        if of_floats is None:
            of_floats = _functions_of_floats().get(f.__name__, f)
        for v in x:
            if isinstance(v, _ARRAYS):
                break
        else:
            return of_floats(*map(float, x))
        arrays: Any = [np.asarray(v, float) for v in x]
        shape, size = arrays[0].shape, arrays[0].size
        if any(a.shape != shape for a in arrays):
            arrays = np.broadcast_arrays(*arrays)
            shape, size = arrays[0].shape, arrays[0].size
        if size > _SMALL:
            return f(*arrays)
        found = [of_floats(*v) for v in zip(*[a.ravel().tolist() for a in arrays], strict=True)]
        if found and isinstance(found[0], tuple):
            return tuple(np.array(v).reshape(shape) for v in zip(*found, strict=True))
        return np.array(found, float).reshape(shape)

    # floats, by far the most frequent arguments, take a short path
    def of_one(x: Any, /) -> Any:
        return of_floats(x) if type(x) is float and of_floats is not None else everywhere(x)

    def of_two(x: Any, y: Any, /) -> Any:
        return of_floats(x, y) if type(x) is type(y) is float and of_floats is not None else everywhere(x, y)

    return functools.wraps(f)(of_one if f.__code__.co_argcount == 1 else of_two)


@_everywhere
def sin_cos(x: Any) -> tuple[Any, Any]:
    """Return (sin x, cos x), for abs(x) below 1e6.

    For larger arguments, the error grows, but never exceeds the error caused by rounding x to the nearest float. Above
    2^50, where adjacent floats differ by 0.25 or more, the results are those for 0.
    """
    return _sine_cosine(x)


@_everywhere
def sin(x: Any) -> Any:
    """Return the sine of x in rad; see :func:`sin_cos`."""
    return _sine_cosine(x)[0]


@_everywhere
def cos(x: Any) -> Any:
    """Return the cosine of x in rad; see :func:`sin_cos`."""
    return _sine_cosine(x)[1]


@_everywhere
def exp(x: Any) -> Any:
    """Return e^x."""
    e, n = _grown(x, 0.0 * x)
    return _scaled(1.0 + e, n)


@_everywhere
def expm1(x: Any) -> Any:
    """Return e^x - 1, also accurate for small x."""
    e, n = _grown(x, 0.0 * x)
    return _where(abs(n) < 0.5, e, 2.0 * (_scaled(e, n - 1.0) + (_scaled(1.0 + 0.0 * e, n - 1.0) - 0.5)))


@_everywhere
def log(x: Any) -> Any:
    """Return the natural logarithm of x; NaN unless x is positive."""
    y, shift = _normal(x)
    return _where(x > 0.0, _logarithm(y, shift), math.nan)


@_everywhere
def log10(x: Any) -> Any:
    """Return the logarithm of x to base 10, with an error below 2 units in the last place."""
    y, shift = _normal(x)
    return _where(x > 0.0, 0.4342944819032518 * _logarithm(y, shift), math.nan)


@_everywhere
def asinh(x: Any) -> Any:
    """Return the inverse hyperbolic sine of x, with an error below 2 units in the last place."""
    a = abs(x)
    large = a > 1e9  # log 2a
    b = _where(large, 1.0, a)
    h, low = _two_sum(1.0 + 0.0 * b, b + b * b / (1.0 + _root(1.0 + b * b)))
    y = _logarithm(_where(large, a, h), 0.0) + _where(large, 0.6931471805599453, low / h)
    return _where(x < 0.0, -y, y)


@_everywhere
def power(x: Any, y: Any) -> Any:
    """Return x^y for x >= 0; 0 to any power is 0."""
    good = x > 0.0
    y = _where(y > 1e19, 1e19, _where(y < -1e19, -1e19, y))  # beyond, the result is 0 or infinite for any x but 1
    z, shift = _normal(x)
    high, low = _wide_logarithm(z, shift)
    p, p_low = _two_product(y, high)
    e, n = _grown(p, _where(abs(p) < 1000.0, p_low + y * low, 0.0))
    return _where(good, _scaled(1.0 + e, n), _where(x >= 0.0, 0.0, math.nan))


@_everywhere
def atan2(y: Any, x: Any) -> Any:
    """Return the angle of (x, y) in rad, -pi < angle <= pi; zeros count as positive, and the angle of (0, 0) is 0."""
    size = _where(abs(y) > abs(x), abs(y), abs(x))
    # 2^600, 2^-100: no intermediate product is subnormal or overflows
    level = _where(size < 1e100, 4.149515568880993e180, _where(size > 1e290, 7.888609052210118e-31, 1.0))
    return _angle(y, 0.0 * y, x, 0.0 * x, level)


@_everywhere
def asin(x: Any) -> Any:
    """Return the arc sine of x in rad; arguments beyond +-1 count as +-1."""
    x = _where(x > 1.0, 1.0, _where(x < -1.0, -1.0, x))
    c, c_low = _beside(x)
    return _angle(x, 0.0 * x, c, c_low, 1.0)


@_everywhere
def acos(x: Any) -> Any:
    """Return the arc cosine of x in rad; arguments beyond +-1 count as +-1."""
    x = _where(x > 1.0, 1.0, _where(x < -1.0, -1.0, x))
    c, c_low = _beside(x)
    return _angle(c, c_low, x, 0.0 * x, 1.0)


@_everywhere
def hypot(x: Any, y: Any) -> Any:
    """Return sqrt(x^2 + y^2) with an error below 2 units in the last place."""
    size = _where(abs(x) > abs(y), abs(x), abs(y))
    large, small = size > 1e150, size < 1e-140
    level = _where(large, 2.409919865102884e-181, _where(small, 4.149515568880993e180, 1.0))  # 2^-600, 2^600
    x, y = level * x, level * y
    return _root(x * x + y * y) * _where(large, 4.149515568880993e180, _where(small, 2.409919865102884e-181, 1.0))


@_everywhere
def flush(x: Any) -> Any:
    """Return 0 where abs(x) is below LEAST, and x elsewhere.

    Decaying values, such as the velocity of a body that is coming to rest, then end at zero instead of at subnormal
    numbers. Subnormal numbers slow processors down, and their inverses overflow. Sums of flushed numbers and products
    of up to four of them are never subnormal.
    """
    return _where(abs(x) < LEAST, 0.0, x)


#: internal functions that the compiled version of this module needs; it replaces the primitives with its own versions
INTERNAL_FUNCTIONS = (
    _two_sum,
    _two_product,
    _sine_cosine,
    _grown,
    _scaled,
    _normal,
    _split,
    _logarithm,
    _wide_logarithm,
    _angle,
    _beside,
)
FUNCTIONS = (sin_cos, sin, cos, exp, expm1, log, log10, asinh, power, atan2, asin, acos, hypot, flush)
