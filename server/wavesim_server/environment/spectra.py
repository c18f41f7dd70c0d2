"""Sea states, wave spectra and gust spectra, cut into components with random phases that the seed alone decides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk import randomness
from wavesim_sdk.algebra import interpolate
from wavesim_sdk.config.world import Waves, Wind
from wavesim_sdk.elementary import cos, exp, log, power, sin
from wavesim_server.environment.weather import S_A, S_EAST, S_NORTH, S_PHASE, S_TO, S_W, SEA

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
        s = s * power(waves.gamma, exp(-0.5 * ((w / peak - 1) / width) ** 2))
    return np.asarray(s)


def components(waves: Waves, gravity: float, seed: int) -> Array:
    """The sea as (n, SEA) components of equal energy; their variances add up to Hs^2/16 exactly.

    The spectrum from 0.3 to 8 peak frequencies is cut into pieces of equal energy; each component has the mean
    frequency of its piece and a random phase, so that the record does not repeat soon.
    """
    height, peak = sea_state(waves)
    if height == 0.0:
        return np.zeros((0, SEA))
    n = waves.components
    w = np.linspace(0.3 * peak, 8.0 * peak, 40_001)
    energy = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(w) * (lambda s: s[1:] + s[:-1])(spectrum(waves, height, peak, w)))]
    )
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (w[1:] + w[:-1]))])
    edges = interpolate(np.linspace(0.0, energy[-1], n + 1), energy, w)
    mean = np.diff(interpolate(edges, w, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "waves", str(i)) for i in range(n)], np.uint64)
    sea = np.zeros((n, SEA))
    sea[:, S_A] = math.sqrt(2.0 * height * height / 16.0 / n)
    sea[:, S_W] = mean
    sea[:, S_PHASE] = 2.0 * math.pi * randomness.uniform(keys, 0)
    to = np.full(n, waves.direction)
    if waves.spreading > 0.0:
        angle = np.linspace(-math.pi, math.pi, 3601)
        weight = np.cumsum(power(np.maximum(cos(0.5 * angle), 0.0), 2.0 * waves.spreading))
        to += interpolate(randomness.uniform(keys, 1), weight / weight[-1], angle)
    k = sea[:, S_W] ** 2 / gravity
    sea[:, S_NORTH], sea[:, S_EAST], sea[:, S_TO] = k * cos(to), k * sin(to), to
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
    return np.asarray(4.0 * drag * length * mean / power(2.0 + (length * f / mean) ** 2, 5.0 / 6.0))
