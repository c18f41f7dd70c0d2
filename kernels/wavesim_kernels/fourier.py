"""Fourier transform with the same bits on every machine, and filters without delay."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from wavesim_kernels.compiler import kernel
from wavesim_sdk import elementary
from wavesim_sdk.arrays import Array, Floats, Ints


@functools.lru_cache(maxsize=8)
def _tables(size: int) -> tuple[Ints, Floats, Floats]:
    """Return the bit-reversed indices, and the cosines and sines of each stage; stage h is at h to 2 h."""
    bits = size.bit_length() - 1
    reverse, number = np.zeros(size, np.int64), np.arange(size)
    for k in range(bits):
        reverse |= ((number >> k) & 1) << (bits - 1 - k)
    stages = np.left_shift(1, np.arange(bits))
    h = stages.repeat(stages)
    angle = -math.pi * (np.arange(1, size) - h) / h
    sine, cosine = elementary.sin_cos(angle)
    return reverse, np.concatenate([[1.0], cosine]), np.concatenate([[0.0], sine])


@kernel
def _transform(re: Floats, im: Floats, reverse: Ints, cosine: Floats, sine: Floats) -> None:
    """Replace a complex signal, whose length is a power of two, by its discrete Fourier transform."""
    size = len(re)
    for i in range(size):
        j = reverse[i]
        if j > i:
            re[i], re[j] = re[j], re[i]
            im[i], im[j] = im[j], im[i]
    h = 1
    while h < size:
        c, s = cosine[h : 2 * h], sine[h : 2 * h]
        for start in range(0, size, 2 * h):
            a, b = re[start : start + h], im[start : start + h]
            p, q = re[start + h : start + 2 * h], im[start + h : start + 2 * h]
            for k in range(h):
                x = p[k] * c[k] - q[k] * s[k]
                y = p[k] * s[k] + q[k] * c[k]
                p[k], q[k] = a[k] - x, b[k] - y
                a[k], b[k] = a[k] + x, b[k] + y
        h *= 2


def transform(re: Floats, im: Floats) -> None:
    """Replace a complex signal by its discrete Fourier transform. The length must be a power of two."""
    _transform(re, im, *_tables(len(re)))


def inverse(re: Floats, im: Floats) -> None:
    """Replace a discrete Fourier transform by its complex signal. The length must be a power of two."""
    transform(im, re)
    re /= len(re)
    im /= len(im)


def power_of_two(least: int) -> int:
    """Return the smallest power of two that is not less than a number."""
    return 1 << max(least - 1, 0).bit_length()


def frequencies(size: int, sampling: float) -> Floats:
    """Return the frequencies in Hz from 0 to half the sampling rate, ``size / 2 + 1`` numbers."""
    return np.asarray(np.arange(size // 2 + 1) * (sampling / size))


def evaluate(function: Callable[[float], float], f: Floats) -> Floats:
    """Return the values of a function of one frequency at many frequencies, by interpolation in the logarithm of the
    frequency.

    The function is evaluated at 64 frequencies per octave.
    """
    low, high = float(f.min()), float(f.max())
    steps = int(64.0 * elementary.log(high / low) / 0.6931471805599453) + 2
    grid = np.linspace(0.0, elementary.log(high / low), steps)
    values = np.array([function(float(x)) for x in low * elementary.exp(grid)])
    at = elementary.log(f / low) / max(grid[-1], 1e-12) * (steps - 1)
    k = np.minimum(at.astype(np.int64), steps - 2)
    return np.asarray(values[k] + (at - k) * (values[k + 1] - values[k]))


def filtered(x: Floats, gains: Floats) -> tuple[Floats, Floats]:
    """Return a filtered signal and its Hilbert transform. ``gains`` are the factors of a filter without delay at the
    :func:`frequencies` of twice the signal's length or more; the result has the length of the filter.
    """
    size = 2 * (len(gains) - 1)
    re, im = np.zeros(size), np.zeros(size)
    re[: len(x)] = x
    transform(re, im)
    positive = np.zeros(size)
    positive[: len(gains)] = 2.0 * gains
    positive[0], positive[len(gains) - 1] = gains[0], gains[-1]
    re *= positive
    im *= positive
    inverse(re, im)
    return re, im


def window(size: int) -> Floats:
    """Return a Hann window, symmetric about index ``size / 2``."""
    return np.asarray(0.5 - 0.5 * elementary.cos(2.0 * math.pi * np.arange(size) / size))


def single(x: Floats) -> Array:
    """Return numbers in single precision."""
    return x.astype(np.float32)
