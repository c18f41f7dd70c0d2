"""The numbers of :mod:`wavesim_sdk.randomness`, compiled."""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

_njit = nb.njit(cache=True, error_model="numpy")


@_njit
def _hash(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@_njit
def uniform(key: Any, counter: int, index: int) -> float:
    """The same number as :func:`wavesim_sdk.randomness.uniform`."""
    n = np.uint64(2 * counter + 1) * np.uint64(0x9E3779B97F4A7C15)
    n = n + np.uint64(index) * np.uint64(0xD1342543DE82EF95)
    bits = _hash(_hash(key + n) + np.uint64(0x9E3779B97F4A7C15))
    return (np.float64(bits >> np.uint64(11)) + 0.5) * 2.0**-53


@_njit
def normal(key: Any, counter: int, index: int) -> float:
    """The same number as :func:`wavesim_sdk.randomness.normal`."""
    u, v = uniform(key, counter, 2 * index), uniform(key, counter, 2 * index + 1)
    return math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v)
