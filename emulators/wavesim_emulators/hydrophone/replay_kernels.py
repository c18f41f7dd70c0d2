"""Compiled kernels for the replay of measured channels: a filter that changes with time, and a drift of the delays."""

from __future__ import annotations

import math
from typing import NamedTuple

from wavesim_emulators.hydrophone.sample_kernels import PHASES, TAPS
from wavesim_kernels.compiler import kernel
from wavesim_sdk.arrays import Array, Floats


class ResponseSplines(NamedTuple):
    """Impulse responses of one receiver as cubic splines over time.

    All arrays have the shape (times, delays): the real and imaginary parts, and a sixth of the second derivatives of
    both. The unit of time is the interval between two impulse responses.
    """

    real: Floats
    imaginary: Floats
    real_bend: Floats
    imaginary_bend: Floats


@kernel
def filter_baseband(
    splines: ResponseSplines, rate: float, start: float, real: Floats, imaginary: Floats, out: Floats
) -> None:
    """Write the output (2, samples), real and imaginary, of a time-varying filter. Sample n of the input and of the output is
    taken at the time ``(start + n) rate`` of the impulse responses, before and after which the output is 0.
    """
    times, delays = splines.real.shape
    h = out[:, :delays].copy()
    for n in range(out.shape[1]):
        out[0, n] = out[1, n] = 0.0
        t = (start + n) * rate
        if t < 0.0 or t > times - 1:
            continue
        j = min(int(t), times - 2)
        b = t - j
        a = 1.0 - b
        c, d = (a * a - 1.0) * a, (b * b - 1.0) * b
        r0, r1, s0, s1 = splines.real[j], splines.real[j + 1], splines.real_bend[j], splines.real_bend[j + 1]
        i0, i1 = splines.imaginary[j], splines.imaginary[j + 1]
        j0, j1 = splines.imaginary_bend[j], splines.imaginary_bend[j + 1]
        low, high = max(0, n - len(real) + 1), min(delays, n + 1)
        for k in range(low, high):
            h[0, k] = a * r0[k] + b * r1[k] + (c * s0[k] + d * s1[k])
            h[1, k] = a * i0[k] + b * i1[k] + (c * j0[k] + d * j1[k])
        x, y = 0.0, 0.0
        for k in range(low, high):
            p, q = real[n - k], imaginary[n - k]
            x += h[0, k] * p - h[1, k] * q
            y += h[0, k] * q + h[1, k] * p
        out[0, n], out[1, n] = x, y


@kernel
def take_at(signal: Floats, positions: Floats, table: Array, out: Floats) -> None:
    """Write the values of a signal (2, samples) at positions in units of samples, by a windowed sinc. Outside the signal,
    they are 0.
    """
    count = signal.shape[1]
    for n in range(len(positions)):
        i = math.floor(positions[n])
        z = PHASES * (positions[n] - i)
        q = int(z)
        r = z - q
        x, y = 0.0, 0.0
        first = i - TAPS // 2 + 1
        for j in range(max(0, -first), min(TAPS, count - first)):
            w = table[q, j] + r * (table[q + 1, j] - table[q, j])
            x += w * signal[0, first + j]
            y += w * signal[1, first + j]
        out[0, n], out[1, n] = x, y
