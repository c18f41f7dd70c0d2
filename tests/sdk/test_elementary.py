"""Elementary functions and small matrices: errors against mpmath in units of the last place, numbers against arrays."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pymap3d
import pytest

from wavesim_sdk import algebra
from wavesim_sdk import elementary as el
from wavesim_sdk.geodesy import Origin

N = 150
RNG = np.random.default_rng(3)
_ends = 10.0 ** RNG.uniform(-16, 0, N)
UNIT = np.concatenate([RNG.uniform(-1, 1, N), _ends, 1.0 - _ends, _ends - 1.0, [-1.0, 0.0, 1.0]])
ANGLES = np.concatenate(
    [RNG.uniform(-4, 4, N), RNG.uniform(-1e6, 1e6, N), 0.5 * math.pi * RNG.integers(-600_000, 600_000, N), _ends, [0.0]]
)
POSITIVE = np.concatenate([RNG.uniform(0.5, 2, N), 10.0 ** RNG.uniform(-300, 300, N), 1.0 + _ends, 1.0 - 0.5 * _ends])
POWERS = np.concatenate([RNG.uniform(-1, 1, N), RNG.uniform(-700, 700, N), _ends, -_ends, [0.0]])
CIRCLE = np.concatenate(
    [RNG.uniform(-1, 1, (2, N)), 10.0 ** RNG.uniform(-20, 20, (2, N)), -(10.0 ** RNG.uniform(-9, 9, (2, N)))], axis=1
)
BASES = np.array([10.0 ** RNG.uniform(-3, 3, N), RNG.uniform(-20, 20, N)])
LARGE = np.array([1.0 + _ends, 10.0 ** RNG.uniform(0, 2.5, N)])


@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("sin", (ANGLES,), 1.0),
        ("cos", (ANGLES,), 1.0),
        ("exp", (POWERS,), 1.0),
        ("log", (POSITIVE,), 1.0),
        ("atan2", tuple(CIRCLE), 1.0),
        ("asin", (UNIT,), 1.0),
        ("acos", (UNIT,), 1.0),
        ("power", tuple(BASES), 1.0),
        ("power", tuple(LARGE), 1.0),
        ("expm1", (POWERS,), 2.0),
        ("log10", (POSITIVE,), 2.0),
        ("asinh", (np.concatenate([POWERS, POSITIVE[:N], 1e3 * UNIT]),), 2.0),
        ("hypot", tuple(CIRCLE), 2.0),
    ],
)
def test_error_in_the_last_place(name: str, arguments: tuple[Any, ...], limit: float) -> None:
    function, exact = getattr(el, name), getattr(mpmath, name)
    found = function(*arguments)
    with mpmath.workprec(200):
        for value, *x in zip(found.tolist(), *[a.tolist() for a in arguments], strict=True):
            true = exact(*map(mpmath.mpf, x))
            assert abs(mpmath.mpf(value) - true) < limit * math.ulp(abs(float(true))), (name, x)
    alone = [function(*x) for x in zip(*[a.tolist() for a in arguments], strict=True)]
    assert np.array(alone).tobytes() == found.tobytes(), "one by one, and all at once"


#: zero, subnormal numbers, the least normal ones, those whose squares or inverses are no normal numbers, huge ones
SIZES = (
    0.0, 5e-324, 1e-320, 1e-310, 5e-309, 2.2e-308, 2.3e-308, 1e-300, 1e-280, 1e-201, 1e-160, 1e-141, 1e-139, 1e-100, 1e-20, 1e-3,
    0.7, 1.0, 3.0, 700.0, 709.5, 1e9, 1.1e9, 1e20, 1e99, 1e101, 1e149, 1e151, 1e200, 1e289, 1e291, 1e305, 1.7e308,
)  # fmt: skip
ALL = (*SIZES, *(-x for x in SIZES[1:]))
PAIRS = tuple((x, y) for x in ALL for y in ALL)


@pytest.mark.parametrize(
    ("name", "arguments", "limit"),
    [
        ("atan2", PAIRS, 1.0),
        ("hypot", PAIRS, 2.0),
        ("power", [p for p in PAIRS if p[0] > 0.0], 1.0),
        ("sin", [(x,) for x in ALL if abs(x) <= 1e3], 1.0),
        ("cos", [(x,) for x in ALL if abs(x) <= 1e3], 1.0),
        ("asin", [(x,) for x in ALL if abs(x) <= 1.0], 1.0),
        ("acos", [(x,) for x in ALL if abs(x) <= 1.0], 1.0),
        ("asinh", [(x,) for x in ALL], 2.0),
        ("exp", [(x,) for x in ALL if abs(x) < 1e4], 1.0),
        ("expm1", [(x,) for x in ALL if abs(x) < 1e4], 2.0),
        ("log", [(x,) for x in SIZES[1:]], 1.0),
        ("log10", [(x,) for x in SIZES[1:]], 2.0),
    ],
)
def test_numbers_of_any_size(name: str, arguments: list[tuple[float, ...]], limit: float) -> None:
    """atan2(0, 1e-309) was NaN, hypot(1e-308, 1e-308) 0, asinh(1e200) NaN."""
    function, exact = getattr(el, name), getattr(mpmath, name)
    with np.errstate(over="ignore"):
        together = function(*np.array(arguments).T)
    with mpmath.workprec(3000):  # of 1.7e308 + 5e-324
        for x, value in zip(arguments, together.tolist(), strict=True):
            true = exact(*map(mpmath.mpf, x))
            assert function(*x) == value, (x, "one by one, and all at once")
            if math.isinf(float(true)):
                assert value == float(true), x
            else:
                assert abs(mpmath.mpf(value) - true) < limit * math.ulp(float(true)), (x, value)


def test_angles_of_any_size() -> None:
    """Beyond 2^50 rad an angle has no digits left that say where in a turn it is; its sine was infinite."""
    for x in (1e10, 1e15, 1e16, 1e300, 1.7e308):
        sines, cosines = el.sin_cos(np.array([x, -x] * 20))
        assert (np.abs(sines * sines + cosines * cosines - 1.0) < 1e-15).all()
        assert (sines[1], cosines[1]) == el.sin_cos(-x)


def test_flush() -> None:
    x = np.array([0.0, 5e-324, -1e-310, 0.99 * el.LEAST, -el.LEAST, 1.0, -math.inf, math.nan] * 3)
    found = el.flush(x)
    assert not found[:4].any() and np.array_equal(found[4:8], x[4:8], equal_nan=True)
    assert [el.flush(v) for v in x[:7]] == found[:7].tolist()


def test_special_places() -> None:
    assert el.atan2(0.0, 0.0) == 0.0 and el.atan2(0.0, -1.0) == math.pi == el.atan2(-0.0, -1.0)
    assert el.atan2(-1.0, 0.0) == -math.pi / 2 and el.acos(-1.0) == math.pi and el.acos(1.5) == 0.0
    assert el.exp(0.0) == 1.0 and el.exp(1000.0) == math.inf and el.exp(-1000.0) == 0.0
    assert el.log(1.0) == 0.0 and math.isnan(el.log(0.0)) and math.isnan(el.log(-1.0))
    assert el.power(0.0, 2.0) == 0.0 and el.power(3.0, 0.0) == 1.0 and math.isnan(el.power(-1.0, 2.0))
    for function in (el.sin, el.cos, el.exp, el.log, el.log10, el.asinh, el.expm1):
        assert math.isnan(function(math.nan)) and np.isnan(function(np.full(40, math.nan))).all()
    assert el.sin(np.zeros((3, 2))).shape == (3, 2) and el.atan2(np.zeros((3, 1)), np.ones(20)).shape == (3, 20)
    assert el.cos(np.zeros(0)).shape == (0,) and isinstance(el.cos(np.float64(1.0)), float)


def test_small_matrices() -> None:
    m, v = RNG.normal(size=(7, 3, 3)), RNG.normal(size=(7, 3))
    assert np.allclose(algebra.matvec(m, v), np.einsum("nij,nj->ni", m, v), rtol=1e-13)
    assert np.allclose(algebra.vecmat(v, m), np.einsum("nji,nj->ni", m, v), rtol=1e-13)
    assert np.allclose(algebra.matmul(m, m[0]), m @ m[0], rtol=1e-13)
    assert np.allclose(algebra.norm(v), np.linalg.norm(v, axis=1), rtol=1e-14)
    six = RNG.normal(size=(6, 6))
    six[0, 0] = 0.0
    assert np.allclose(algebra.inverse(six) @ six, np.eye(6), atol=1e-11)
    with pytest.raises(ValueError, match="cannot be inverted"):
        algebra.inverse(np.zeros((2, 2)))
    points = RNG.normal(size=(5, 3))
    found, rank, _ = algebra.pseudo_inverse(points)
    assert rank == 3 and np.allclose(found, np.linalg.pinv(points), atol=1e-12)
    assert np.allclose(algebra.pseudo_inverse([[2.0], [0.0]])[0], [[0.5, 0.0]])
    points[:, 2] = 0.5 * points[:, 0] - points[:, 1]  # in a plane
    found, rank, directions = algebra.pseudo_inverse(points)
    assert rank == 2 and np.allclose(found, np.linalg.pinv(points), atol=1e-11)
    assert abs(abs(directions[2] @ np.array([0.5, -1.0, -1.0])) - 1.5) < 1e-12
    x, at, values = RNG.uniform(-2, 12, 50), np.arange(10.0), RNG.normal(size=10)
    assert np.allclose(algebra.interpolate(x, at, values), np.interp(x, at, values), rtol=1e-14)


@pytest.mark.parametrize(("latitude", "longitude"), [(41.18, -8.7), (-77.0, 179.999), (0.0, 0.0)])
def test_places_on_the_ellipsoid(latitude: float, longitude: float) -> None:
    origin = Origin(math.radians(latitude), math.radians(longitude))
    p_W = np.column_stack([*RNG.uniform(-2e5, 2e5, (2, 40)), RNG.uniform(-50.0, 9.0, 40)])
    found = origin.geodetic(p_W)
    known = pymap3d.ned2geodetic(*p_W.T, latitude, longitude, 0.0)
    assert np.abs(np.degrees(found[0]) - known[0]).max() < 1e-11
    assert np.abs((np.degrees(found[1]) - known[1] + 180.0) % 360.0 - 180.0).max() < 1e-11
    assert np.abs(found[2] - known[2]).max() < 1e-7
    back = [origin.ned(*place) for place in zip(*found, strict=True)]
    assert np.abs(back - p_W).max() < 1e-6
