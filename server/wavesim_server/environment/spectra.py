"""Gust spectra. They are divided into components whose random phases depend only on the seed.

Sea spectra are in ``wavesim_world.ocean.surface``.
"""

from __future__ import annotations

import math

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.algebra import interpolate
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import exp, log, power
from wavesim_world.config.world import Wind


def gust_components(wind: Wind, seed: int) -> Floats:
    """Return gust components of the Harris spectrum from 1/3600 to 1 Hz, shape (n, 3), spaced such that each component
    has the same energy.
    """
    n, mean = wind.gusts, wind.mean
    if n == 0 or mean == 0.0:
        return np.zeros((0, 3))
    f = exp(np.linspace(-log(3600.0), 0.0, 20_001))
    s = harris(wind.drag, wind.gust_length, mean, f)
    energy = np.concatenate([[0.0], np.cumsum(0.5 * np.diff(f) * (s[1:] + s[:-1]))])
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (f[1:] + f[:-1]))])
    edges = interpolate(np.linspace(0.0, energy[-1], n + 1), energy, f)
    middle = np.diff(interpolate(edges, f, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "gusts", str(i)) for i in range(n)], np.uint64)
    amplitude = np.full(n, math.sqrt(2.0 * energy[-1] / n))
    return np.stack([amplitude, 2.0 * math.pi * middle, 2.0 * math.pi * randomness.uniform(keys, 0)], axis=1)


def harris(drag: float, length: float, mean: float, f: Floats) -> Floats:
    """Return the Harris gust spectrum in (m/s)^2/Hz."""
    x = length * f / mean
    return np.asarray(4.0 * drag * length * mean / power(2.0 + x * x, 5.0 / 6.0))
