"""The band that a sound occupies, with the same bits on every machine."""

from __future__ import annotations

import math

import numpy as np

from wavesim_kernels import fourier
from wavesim_sdk.arrays import Array, Floats

SIZE = 4096  #: number of samples of a section
OUTSIDE = 0.005  #: share of the energy below the band, and above it


def occupied_band(samples: Array, sampling: float) -> tuple[float, float]:
    """Return the lower and the upper edge in Hz of the band that contains 99 % of the energy of a sound.

    The spectrum is the sum of the spectra of overlapping sections of 4096 samples. The window of a section is the root of
    a Hann window, so that every sample has the same weight.
    """
    power = _power(samples)
    total = np.cumsum(power)
    edges = np.searchsorted(total, [OUTSIDE * total[-1], (1.0 - OUTSIDE) * total[-1]])
    step = sampling / SIZE
    return max(float(edges[0]) - 0.5, 0.5) * step, min(float(edges[1]) + 0.5, 0.5 * SIZE) * step


def _power(samples: Array) -> Floats:
    """Return the energy at the frequencies of a section."""
    half = SIZE // 2
    sections = math.ceil(len(samples) / half) + 1
    padded = np.zeros((sections + 1) * half)
    padded[half : half + len(samples)] = samples
    window, total = np.sqrt(fourier.window(SIZE)), np.zeros(half + 1)
    for k in range(0, sections, 2):  # two real sections are one complex transform
        re = padded[k * half : k * half + SIZE] * window
        im = np.zeros(SIZE)
        if k + 1 < sections:
            im = padded[(k + 1) * half : (k + 1) * half + SIZE] * window
        fourier.transform(re, im)
        both = re * re + im * im
        # the energies of the two sections at a frequency are half the sum of both sides of the complex spectrum
        total += 0.5 * (both[: half + 1] + np.concatenate([both[:1], both[: half - 1 : -1]]))
    return total
