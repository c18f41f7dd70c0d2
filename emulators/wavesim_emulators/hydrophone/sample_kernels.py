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
    nearness,
)
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the functions with Numba
from wavesim_kernels.compiler import device_function, kernel
from wavesim_sdk.arrays import Array, Floats
from wavesim_sdk.elementary import sin_cos

TAPS = 32
PHASES = 512
CONSTANT, RISING, FALLING = range(3)  #: weight of a waveform within a segment


@device_function
def _added(w: Array) -> float:
    """Return the sum of 32 products, in a fixed order in which the processor adds several at a time."""
    for j in range(16):
        w[j] += w[j + 16]
    for j in range(8):
        w[j] += w[j + 8]
    return float(((w[0] + w[4]) + (w[2] + w[6])) + ((w[1] + w[5]) + (w[3] + w[7])))


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

    ``segment`` contains the values of the segment, its times (elements, 6), its fades, and whether its weight is
    constant, rises or falls. ``wave`` contains the waveform and its Hilbert transform, each with ``TAPS`` zeros at both
    ends, and its sampling rate in Hz.
    """
    values, all_times, fades, ramp = segment
    x, hilbert, sampling = wave
    one = values[PHASE_CHANGE] == 0.0
    s, c = sin_cos(values[PHASE])
    last = len(x) - 2 * TAPS
    w = np.empty(TAPS, np.float32)
    for e in range(out.shape[0]):
        times = all_times[e]
        h = times[END] - times[START]
        if not h > 0.0:
            continue
        c0, c1, c2, c3 = hermite(values, times)
        begin, end = number_at(times[START], clock), number_at(times[END], clock)
        for n in range(max(begin, first), min(end, first + out.shape[1])):
            u = (time_of(n, clock) - times[START]) / h
            position = sampling * (c0 + u * (c1 + u * (c2 + u * c3)))
            i = math.floor(position)
            if i < 0 or i > last:
                continue
            z = PHASES * (position - i)
            q = int(z)
            r = np.float32(z - q)
            i += TAPS // 2 + 1
            a = values[AMPLITUDE] + u * (values[AMPLITUDE_END] - values[AMPLITUDE])
            a *= nearness(times, u)
            if fades:
                a *= fade_factor(fades, u * h, h)
            if ramp == RISING:
                a *= u
            elif ramp == FALLING:
                a *= 1.0 - u
            if not one:
                s, c = sin_cos(values[PHASE] + u * values[PHASE_CHANGE])
            lower, upper, y = table[q], table[q + 1], x[i : i + TAPS]
            if abs(s) < 1e-9:
                for j in range(TAPS):
                    w[j] = y[j] * (lower[j] + r * (upper[j] - lower[j]))
                out[e, n - first] += a * c * _added(w)
            else:
                cosine, sine, g = np.float32(c), np.float32(s), hilbert[i : i + TAPS]
                for j in range(TAPS):
                    w[j] = (cosine * y[j] - sine * g[j]) * (lower[j] + r * (upper[j] - lower[j]))
                out[e, n - first] += a * _added(w)
