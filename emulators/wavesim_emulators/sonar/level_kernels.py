"""Compiled kernels of the receiver: pulse, beam pattern, speckle, noise and gain. Levels are linear unless a name says
dB.
"""

from __future__ import annotations

import numpy as np

from wavesim_emulators.sonar.types import Levels, Singles
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the random numbers with Numba
from wavesim_kernels.compiler import kernel
from wavesim_kernels.randomness import random_bits
from wavesim_sdk.arrays import Floats


@kernel
def convolve_pulse(energy: Floats, pulse: Floats, out: Floats) -> None:
    """Convolve each row over the bins with a pulse envelope of odd length."""
    half = len(pulse) // 2
    bins = energy.shape[1]
    for j in range(energy.shape[0]):
        for i in range(bins):
            total = 0.0
            for k in range(max(-half, i - bins + 1), min(half, i) + 1):
                total += energy[j, i - k] * pulse[half + k]
            out[j, i] = total


@kernel
def pattern_matrix(u_beams: Floats, u_columns: Floats, shift: Floats, table: Floats, per: float, out: Floats) -> None:
    """Interpolate receive gains (beams, columns) in a table of the beam pattern. The position in the table is ``per`` times
    the absolute difference in u between beam and shifted column; beyond the table the gain is 0.
    """
    for i in range(len(u_beams)):
        for j in range(len(u_columns)):
            x = abs(u_columns[j] + shift[j] - u_beams[i]) * per
            k = int(x)
            out[i, j] = table[k] + (x - k) * (table[k + 1] - table[k]) if k < len(table) - 1 else 0.0


@kernel
def apply_speckle(
    power: Floats,
    noise: Floats,
    key: np.uint64,
    ping: int,
    old: Singles,
    memory: Floats,
    normal: Floats,
    exponential: Floats,
) -> None:
    """Multiply mean powers (beams, bins) by |z|^2, where z is the complex speckle amplitude, and add exponentially
    distributed noise, in place.

    ``old`` (beams, bins, 2) is z of the previous ping. The function replaces it with z of this ping, ``z = m old +
    sqrt(1 - m^2) w``, where m is ``memory`` (beams). Random numbers are hashes of (key, ping, beam and bin), mapped to
    their distributions by quantile tables.
    """
    bins = power.shape[1]
    top = np.uint64(65535)
    for j in range(power.shape[0]):
        m = memory[j]
        fresh = np.sqrt(max(0.0, 1.0 - m * m))
        for i in range(bins):
            h = random_bits(key, np.uint64(ping), np.uint64(j * bins + i))
            a = np.float32(m * old[j, i, 0] + fresh * normal[h & top])
            b = np.float32(m * old[j, i, 1] + fresh * normal[(h >> np.uint64(16)) & top])
            old[j, i, 0], old[j, i, 1] = a, b
            power[j, i] = power[j, i] * (a * a + b * b) + noise[i] * exponential[(h >> np.uint64(32)) & top]


@kernel
def to_levels(power: Floats, gain_dB: Floats, floor_dB: float, per_dB: float, top: int, out: Levels) -> int:
    """Convert powers (beams, bins) to integers ``(10 log10 power + gain - floor) per_dB``, limited to the range from 0
    to ``top``. Return the number of saturated values.
    """
    cut = 0
    least = 10.0 ** (0.1 * (floor_dB - gain_dB) - 1e-9)  # powers below it are 0 without a logarithm
    for j in range(power.shape[0]):
        for i in range(power.shape[1]):
            if power[j, i] < least[i]:
                out[j, i] = 0
                continue
            level = (10.0 / np.log(10.0)) * np.log(max(power[j, i], 1e-30)) + gain_dB[i] - floor_dB  # faster than log10
            x = int(np.floor(level * per_dB + 0.5))
            if x > top:
                x, cut = top, cut + 1
            out[j, i] = max(x, 0)
    return cut
