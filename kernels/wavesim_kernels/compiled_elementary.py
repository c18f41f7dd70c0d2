"""Compiled functions of :mod:`wavesim_sdk.elementary`, :mod:`wavesim_kernels.randomness` and :mod:`wavesim_sdk.frames`.

The results of the compiled functions are bit-identical to those of the originals. Where kernels are compiled, importing
this module registers the elementary functions and the random-number hash with Numba.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_kernels import randomness
from wavesim_kernels.compiler import MODE, Mode, always_inline, device_function
from wavesim_sdk import elementary, frames

if MODE is Mode.COMPILE:
    from wavesim_kernels import elementary_intrinsics as elementary_intrinsics

_cos, _log = elementary.cos, elementary.log
#: R_WB of a unit quaternion, in row-major order; the components are numbers, or vectors with one number per lane
rotation_elements = always_inline(frames.rotation_elements)


@device_function
def uniform(key: np.uint64, counter: int, index: int) -> float:
    """Return the same number as :func:`wavesim_kernels.randomness.uniform`."""
    bits = randomness.random_bits(key, np.uint64(counter), np.uint64(index))
    return (np.float64(bits >> np.uint64(11)) + 0.5) * 2.0**-53


@device_function
def normal(key: np.uint64, counter: int, index: int) -> float:
    """Return the same number as :func:`wavesim_kernels.randomness.normal`."""
    u, v = uniform(key, counter, 2 * index), uniform(key, counter, 2 * index + 1)
    return float(math.sqrt(-2.0 * _log(u)) * _cos(2.0 * math.pi * v))
