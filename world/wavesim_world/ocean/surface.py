"""Sea surface: sea states and spectra, split into components whose random phases depend only on the seed.

The server computes wave motion and forces from these components. Programs that draw or predict the sea can compute the
same components.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from wavesim_kernels import randomness
from wavesim_sdk.algebra import interpolate
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import cos, exp, expm1, power, sin_cos
from wavesim_world.config.loaded import LoadedConfig
from wavesim_world.config.world import Waves
from wavesim_world.ocean.bed import mean_depth

#: Columns of a sea component. The last constant is the number of columns.
# amplitude, frequency, wave number north, east, phase, direction and its unit vector, wave number, exp(-2 k h) for the
# water depth h, 1/(1 - exp(-2 k h))
(
    S_AMPLITUDE,
    S_FREQUENCY,
    S_NORTH,
    S_EAST,
    S_PHASE,
    S_DIRECTION,
    S_COS,
    S_SIN,
    S_WAVE_NUMBER,
    S_BED_FACTOR,
    S_DEEP_FACTOR,
    SEA_COLUMNS,
) = range(12)
#: height in m below which the sea is flat: the spectrum of a much lower sea vanishes when its height is squared
LEAST_HEIGHT = 1e-9
#: significant wave height (m) and peak frequency (rad/s) by Beaufort number (Oedegaard 2017, tables 2.4 and 3.2)
SEA_STATES = (
    (0.0, 1.9858),
    (0.2, 1.9858),
    (0.5, 1.2559),
    (1.0, 0.8881),
    (2.0, 0.6280),
    (3.0, 0.5127),
    (4.0, 0.4440),
    (5.5, 0.3787),
    (7.5, 0.3243),
    (10.0, 0.2808),
    (12.5, 0.2512),
    (15.0, 0.2293),
    (16.0, 0.2220),
)


def spectrum(waves: Waves, height: float, peak: float, w: Floats) -> Floats:
    """Return the spectrum S(w) in m2 s/rad for a significant wave height (m) and peak frequency (rad/s)."""
    with np.errstate(over="ignore", divide="ignore"):
        square, w2 = (peak / w) * (peak / w), w * w
        s = 0.3125 * height * height * (peak * peak) * (peak * peak) / (w2 * w2 * w) * exp(-1.25 * square * square)
    if waves.spectrum == "jonswap":
        width = np.where(w <= peak, 0.07, 0.09)
        off = (w / peak - 1) / width
        s = s * power(waves.gamma, exp(-0.5 * off * off))
    return np.asarray(s)


def wave_number(w: Floats, gravity: float, depth: float) -> Floats:
    """Solve w^2 = g k tanh(k h) for k by Newton's method. The start value is the larger of the deep-water and
    shallow-water values.
    """
    kh = np.maximum(w * w * depth / gravity, w * math.sqrt(depth / gravity)) if depth < math.inf else w * w / gravity
    if depth == math.inf:
        return np.asarray(kh)
    goal = w * w * depth / gravity
    for _ in range(12):
        e = expm1(-2.0 * kh)
        t = -e / (2.0 + e)  # tanh
        kh = kh - (kh * t - goal) / (t + kh * (1.0 - t * t))
    return np.asarray(kh / depth)


def wave_components(waves: Waves, gravity: float, seed: int, depth: float = math.inf) -> Floats:
    """Return the sea as (n, SEA_COLUMNS) components of equal energy. Their variances add up to exactly Hs^2/16.

    The spectrum from 0.3 to 8 times the peak frequency is split into bands of equal energy. Each component has the
    mean frequency of its band and a random phase, so the waves repeat only after a long time.
    """
    height, peak = sea_state(waves)
    if height < LEAST_HEIGHT:
        return np.zeros((0, SEA_COLUMNS))
    n = waves.components
    w = np.linspace(0.3 * peak, 8.0 * peak, 40_001)
    energy = np.concatenate(
        [[0.0], np.cumsum(0.5 * np.diff(w) * (lambda s: s[1:] + s[:-1])(spectrum(waves, height, peak, w)))]
    )
    moment = np.concatenate([[0.0], np.cumsum(np.diff(energy) * 0.5 * (w[1:] + w[:-1]))])
    edges = interpolate(np.linspace(0.0, energy[-1], n + 1), energy, w)
    mean = np.diff(interpolate(edges, w, moment)) / (energy[-1] / n)
    keys = np.array([randomness.key(seed, "waves", str(i)) for i in range(n)], np.uint64)
    sea = np.zeros((n, SEA_COLUMNS))
    sea[:, S_AMPLITUDE] = math.sqrt(2.0 * height * height / 16.0 / n)
    sea[:, S_FREQUENCY] = mean
    sea[:, S_PHASE] = 2.0 * math.pi * randomness.uniform(keys, 0)
    to = np.full(n, waves.direction)
    if waves.spreading > 0.0:
        angle = np.linspace(-math.pi, math.pi, 3601)
        weight = np.cumsum(power(np.maximum(cos(0.5 * angle), 0.0), 2.0 * waves.spreading))
        to += interpolate(randomness.uniform(keys, 1), weight / weight[-1], angle)
    k = wave_number(mean, gravity, depth)
    east, north = sin_cos(to)
    sea[:, S_NORTH], sea[:, S_EAST], sea[:, S_DIRECTION] = k * north, k * east, to
    sea[:, S_COS], sea[:, S_SIN], sea[:, S_WAVE_NUMBER] = north, east, k
    twice = np.minimum(2.0 * k * depth, 800.0)  # finite also for infinite depth
    sea[:, S_BED_FACTOR], sea[:, S_DEEP_FACTOR] = exp(-twice), 1.0 / -expm1(-twice)
    return sea


def sea_state(waves: Waves) -> tuple[float, float]:
    """Return the significant wave height in m and the peak frequency in rad/s of a sea."""
    return SEA_STATES[waves.beaufort] if waves.beaufort >= 0 else (waves.height, waves.peak)


def sea_components(
    loaded: LoadedConfig,
    seed: int,
    height: float | None = None,
    peak: float | None = None,
    direction: float | None = None,
    depth: float | None = None,
) -> Floats:
    """Return the (n, SEA_COLUMNS) sea components of a configuration for a seed.

    ``height`` (m), ``peak`` (rad/s) and ``direction`` (of travel, rad) replace the configured values if a command
    changed them during the run. ``depth`` (m) replaces the depth of the bed if its soundings are not available.
    """
    world = loaded.config.world
    waves, (h, p) = world.waves, sea_state(world.waves)
    if height is not None or peak is not None:
        waves = dataclasses.replace(
            waves, beaufort=-1, height=h if height is None else height, peak=p if peak is None else peak
        )
    if direction is not None:
        waves = dataclasses.replace(waves, direction=direction)
    return wave_components(waves, world.gravity, seed, waves.depth or depth or mean_depth(loaded))


def elevation(sea: Floats, time: float, north: Any, east: Any) -> Floats:
    """Return the surface elevation (m, up) above still water at the given time (s) and at points. The coordinates of
    the points in m are arrays of any shape.
    """
    x, y = np.asarray(north, float)[..., None], np.asarray(east, float)[..., None]
    angle = sea[:, S_FREQUENCY] * time - sea[:, S_NORTH] * x - sea[:, S_EAST] * y + sea[:, S_PHASE]
    return np.asarray(np.sum(sea[:, S_AMPLITUDE] * cos(angle), axis=-1))
