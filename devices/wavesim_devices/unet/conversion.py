"""Conversion between passband samples and complex baseband samples.

A baseband sample ``x`` at the time ``t`` represents the passband value ``Re(x exp(2 pi i fc t))``, where ``t`` is counted
from the first sample. A baseband signal of magnitude 1 is therefore a passband sine of amplitude 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

REACH = 32  #: reach of the interpolation filter to each side, in baseband samples
_BETA = 9.0  #: shape of the Kaiser window: images and aliases are below -90 dB beyond the edges of the band


def _taps(factor: int) -> Any:
    """Return the filter at intervals of 1/``factor`` of a baseband sample."""
    u = np.arange(-REACH * factor, REACH * factor + 1) / factor
    window = np.i0(_BETA * np.sqrt(np.maximum(1.0 - np.square(u / REACH), 0.0))) / np.i0(_BETA)
    return np.sinc(u) * window


def _carrier(count: int, frequency: float, rate: float, sign: float) -> Any:
    cycles = np.arange(count) * (frequency / rate)
    return np.exp(sign * 2j * math.pi * (cycles - np.floor(cycles)))


def to_passband(baseband: Any, rate: float, frequency: float, factor: int) -> Any:
    """Return the passband samples at ``factor`` times the sampling rate of the baseband samples (Hz)."""
    taps, count = _taps(factor), len(baseband)
    out = np.empty((count, factor), np.complex128)
    for phase in range(factor):
        # sample i of this phase lies phase / factor behind baseband sample i
        weights = taps[phase::factor]
        out[:, phase] = np.convolve(baseband, weights)[REACH : REACH + count]
    return (out.ravel() * _carrier(count * factor, frequency, rate * factor, 1.0)).real


def margin(factor: int) -> int:
    """Return the number of passband samples that :func:`to_baseband` needs before the first and after the last one."""
    return REACH * factor


def to_baseband(passband: Any, rate: float, frequency: float, factor: int) -> Any:
    """Return the baseband samples at 1/``factor`` of the sampling rate of the passband samples (Hz). The first baseband
    sample belongs to the passband sample with the index :func:`margin`, and the last one to the passband sample that
    is as far from the end.
    """
    before = margin(factor)
    count = (len(passband) - 2 * before - 1) // factor + 1
    carrier = _carrier(len(passband), frequency, rate, -1.0)
    carrier *= np.exp(2j * math.pi * math.fmod(before * frequency / rate, 1.0))
    mixed = np.zeros((count + 2 * REACH + 1) * factor, np.complex128)
    length = min(len(passband), len(mixed))
    mixed[:length] = (passband * carrier)[:length]
    taps = np.zeros((2 * REACH + 1) * factor)
    taps[: 2 * before + 1] = _taps(factor) * (2.0 / factor)
    out = np.zeros(count, np.complex128)
    for phase in range(factor):
        out += np.correlate(mixed[phase::factor], taps[phase::factor], "valid")[:count]
    return out
