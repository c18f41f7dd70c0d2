"""Sea states, wave spectra and gust spectra, cut into components with random phases that the seed alone decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk import randomness
from wavesim_sdk.algebra import interpolate
from wavesim_sdk.config.world import Waves, Wind
from wavesim_sdk.elementary import cos, exp, expm1, log, power, sin_cos
from wavesim_server.environment import weather

Array = np.ndarray[Any, np.dtype[np.float64]]

#: significant wave height (m) and peak frequency (rad/s) by Beaufort number (Oedegaard 2017, tables 2.4 and 3.2)
SEA_STATES = (
    (0.0, 1.9858), (0.2, 1.9858), (0.5, 1.2559), (1.0, 0.8881), (2.0, 0.6280), (3.0, 0.5127), (4.0, 0.4440),
    (5.5, 0.3787), (7.5, 0.3243), (10.0, 0.2808), (12.5, 0.2512), (15.0, 0.2293), (16.0, 0.2220),
)  # fmt: skip


def spectrum(waves: Waves, height: float, peak: float, w: Array) -> Array:
    """S(w) in m2 s/rad of a sea with significant height and peak frequency."""
    with np.errstate(over="ignore", divide="ignore"):
        square, w2 = (peak / w) * (peak / w), w * w
        s = 0.3125 * height * height * (peak * peak) * (peak * peak) / (w2 * w2 * w) * exp(-1.25 * square * square)
    if waves.spectrum == "jonswap":
        width = np.where(w <= peak, 0.07, 0.09)
        off = (w / peak - 1) / width
        s = s * power(waves.gamma, exp(-0.5 * off * off))
    return np.asarray(s)


def wave_number(w: Array, gravity: float, depth: float) -> Array:
    """k of w^2 = g k tanh(k h), by Newton from the deep water's or the shallow water's, whichever is greater."""
    kh = np.maximum(w * w * depth / gravity, w * math.sqrt(depth / gravity)) if depth < math.inf else w * w / gravity
    if depth == math.inf:
        return np.asarray(kh)
    goal = w * w * depth / gravity
    for _ in range(12):
        e = expm1(-2.0 * kh)
        t = -e / (2.0 + e)  # tanh
        kh = kh - (kh * t - goal) / (t + kh * (1.0 - t * t))
    return np.asarray(kh / depth)


def components(waves: Waves, gravity: float, seed: int, depth: float = math.inf) -> Array:
    """The sea as (n, SEA) components of equal energy; their variances add up to Hs^2/16 exactly.

    The spectrum from 0.3 to 8 peak frequencies is cut into pieces of equal energy; each component has the mean
    frequency of its piece and a random phase, so that the record does not repeat soon.
    """
    height, peak = sea_state(waves)
    if height == 0.0:
        return np.zeros((0, weather.SEA))
    n = waves.components
    w = np.linspace(0.3 * peak, 8.0 * peak, 40_001)
    energy = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(w) * (lambda s: s[1:] + s[:-1])(spectrum(waves, height, peak, w)))]
    )
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (w[1:] + w[:-1]))])
    edges = interpolate(np.linspace(0.0, energy[-1], n + 1), energy, w)
    mean = np.diff(interpolate(edges, w, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "waves", str(i)) for i in range(n)], np.uint64)
    sea = np.zeros((n, weather.SEA))
    sea[:, weather.S_A] = math.sqrt(2.0 * height * height / 16.0 / n)
    sea[:, weather.S_W] = mean
    sea[:, weather.S_PHASE] = 2.0 * math.pi * randomness.uniform(keys, 0)
    to = np.full(n, waves.direction)
    if waves.spreading > 0.0:
        angle = np.linspace(-math.pi, math.pi, 3601)
        weight = np.cumsum(power(np.maximum(cos(0.5 * angle), 0.0), 2.0 * waves.spreading))
        to += interpolate(randomness.uniform(keys, 1), weight / weight[-1], angle)
    k = wave_number(mean, gravity, depth)
    east, north = sin_cos(to)
    sea[:, weather.S_NORTH], sea[:, weather.S_EAST], sea[:, weather.S_TO] = k * north, k * east, to
    sea[:, weather.S_COS], sea[:, weather.S_SIN], sea[:, weather.S_K] = north, east, k
    twice = np.minimum(2.0 * k * depth, 800.0)  # also where there is no bottom
    sea[:, weather.S_BED], sea[:, weather.S_DEEP] = exp(-twice), 1.0 / -expm1(-twice)
    return sea


def sea_state(waves: Waves) -> tuple[float, float]:
    """(Hs, peak frequency) of a sea."""
    return SEA_STATES[waves.beaufort] if waves.beaufort >= 0 else (waves.height, waves.peak)


def gust_components(wind: Wind, seed: int) -> Array:
    """(n, 3) gust components of the Harris spectrum, spaced by equal energy from 1/3600 to 1 Hz."""
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


def harris(drag: float, length: float, mean: float, f: Array) -> Array:
    """Harris gust spectrum in (m/s)^2/Hz."""
    x = length * f / mean
    return np.asarray(4.0 * drag * length * mean / power(2.0 + x * x, 5.0 / 6.0))
