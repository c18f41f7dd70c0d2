"""Compiled kernel for sampled waveforms: interpolation at the emission time by a windowed sinc."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.hydrophone.clock_kernels import number_at, time_of
from wavesim_emulators.hydrophone.tone_kernels import (
    AMPLITUDE,
    AMPLITUDE_END,
    END,
    PHASE,
    PHASE_CHANGE,
    START,
    fade_factor,
    hermite,
)
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.elementary import sin_cos

TAPS = 32
PHASES = 512
CONSTANT, RISING, FALLING = range(3)  #: weight of a waveform within a segment


@device_function
def _sum(x: Array, i: int, table: Array, q: int, r: np.float32) -> np.float32:
    """Return the interpolated value from the samples x[i], ... and the rows q and q + 1 of the table.

    Eight sums, which the processor adds at the same time, have a fixed order.
    """
    a = b = c = d = e = f = g = h = np.float32(0.0)
    for j in range(0, TAPS, 8):
        a += x[i + j] * (table[q, j] + r * (table[q + 1, j] - table[q, j]))
        b += x[i + j + 1] * (table[q, j + 1] + r * (table[q + 1, j + 1] - table[q, j + 1]))
        c += x[i + j + 2] * (table[q, j + 2] + r * (table[q + 1, j + 2] - table[q, j + 2]))
        d += x[i + j + 3] * (table[q, j + 3] + r * (table[q + 1, j + 3] - table[q, j + 3]))
        e += x[i + j + 4] * (table[q, j + 4] + r * (table[q + 1, j + 4] - table[q, j + 4]))
        f += x[i + j + 5] * (table[q, j + 5] + r * (table[q + 1, j + 5] - table[q, j + 5]))
        g += x[i + j + 6] * (table[q, j + 6] + r * (table[q + 1, j + 6] - table[q, j + 6]))
        h += x[i + j + 7] * (table[q, j + 7] + r * (table[q + 1, j + 7] - table[q, j + 7]))
    return np.float32(((a + e) + (c + g)) + ((b + f) + (d + h)))


@kernel
def add_samples(
    segment: tuple[Floats, Floats, int, int],
    wave: tuple[Array, Array, float],
    table: Array,
    clock: Floats,
    first: int,
    out: Floats,
) -> None:
    """Add a segment of a sampled waveform to the pressure (elements, samples) in uPa.

    ``segment`` contains the values of the segment, its times (elements, 4), its fades, and whether its weight is
    constant, rises or falls. ``wave`` contains the waveform and its Hilbert transform, each with ``TAPS`` zeros at both
    ends, and its sampling rate in Hz.
    """
    values, all_times, fades, ramp = segment
    x, hilbert, sampling = wave
    one = values[PHASE_CHANGE] == 0.0
    s, c = sin_cos(values[PHASE])
    last = len(x) - 2 * TAPS
    for e in range(out.shape[0]):
        times = all_times[e]
        h = times[END] - times[START]
        if not h > 0.0:
            continue
        c0, c1, c2, c3 = hermite(values, times)
        begin, end = number_at(times[START], clock), number_at(times[END], clock)
        for n in range(max(begin, first), min(end, first + out.shape[1])):
            u = (time_of(n, clock) - times[START]) / h
            y = sampling * (c0 + u * (c1 + u * (c2 + u * c3)))
            i = math.floor(y)
            if i < 0 or i > last:
                continue
            z = PHASES * (y - i)
            q = int(z)
            r = np.float32(z - q)
            i += TAPS // 2 + 1
            a = values[AMPLITUDE] + u * (values[AMPLITUDE_END] - values[AMPLITUDE])
            if fades:
                a *= fade_factor(fades, u * h, h)
            if ramp == RISING:
                a *= u
            elif ramp == FALLING:
                a *= 1.0 - u
            if not one:
                s, c = sin_cos(values[PHASE] + u * values[PHASE_CHANGE])
            total = c * _sum(x, i, table, q, r)
            if abs(s) > 1e-9:
                total -= s * _sum(hilbert, i, table, q, r)
            out[e, n - first] += a * total
