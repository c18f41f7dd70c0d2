"""Ambient noise at the elements of a hydrophone: Gaussian noise with a given spectrum."""

from __future__ import annotations

import math

import numpy as np

from wavesim_emulators.hydrophone.settings import HydrophoneSettings, Spectrum
from wavesim_emulators.hydrophone.waveforms import band_gain
from wavesim_kernels import compiled_elementary as _compiled  # noqa: F401  # registers the functions with Numba
from wavesim_kernels import fourier
from wavesim_kernels.compiler import kernel
from wavesim_kernels.randomness import random_bits
from wavesim_sdk.arrays import Floats
from wavesim_sdk.elementary import log, power, sin_cos

TAPS = 4096  #: length of the filter that forms the spectrum
SIZE = 4 * TAPS  #: length of its Fourier transforms
HOP = SIZE - TAPS  #: number of samples that each transform adds
_FAR = 1 << 40  # counters of random numbers stay positive before the start


@kernel
def fill_normal(key: np.uint64, channel: int, first: int, out: Floats) -> None:
    """Fill an array of even length with the independent standard normal numbers of a channel. ``first`` is the even
    number of the first sample (Box & Muller 1958).
    """
    for k in range(len(out) // 2):
        bits = random_bits(key, np.uint64(first // 2 + k), np.uint64(channel))
        u = (np.float64(bits >> np.uint64(32)) + 0.5) * 2.0**-32
        v = (np.float64(bits & np.uint64(0xFFFFFFFF)) + 0.5) * 2.0**-32
        r = math.sqrt(-2.0 * log(u))
        s, c = sin_cos(2.0 * math.pi * v)
        out[2 * k], out[2 * k + 1] = r * c, r * s


class AmbientNoise:
    """Gaussian noise, independent at each element, that depends only on the key, the channel and the sample number.

    The noise is white noise through a filter of 4096 taps. Therefore, its spectrum is smoothed over four times the
    sampling rate divided by 4096.
    """

    def __init__(self, key: int, spectrum: Spectrum, settings: HydrophoneSettings) -> None:
        self._channels = settings.elements
        self.restart(key)
        f = fourier.frequencies(SIZE, settings.sampling)
        gain = np.zeros(len(f))
        gain[1:] = power(10.0, 0.05 * fourier.evaluate(spectrum, f[1:])) * math.sqrt(0.5 * settings.sampling)
        gain *= band_gain(settings, f)
        self._gains = _shortened(gain)

    def restart(self, key: int) -> None:
        """Use another key from now on."""
        self._key = np.uint64(key)
        self._chunk: int | None = None
        self._values = np.zeros((0, HOP))

    def add(self, first: int, out: Floats, factor: float = 1.0) -> None:
        """Add the noise, multiplied by a factor, to the pressure (channels, samples) in uPa. ``first`` is the number of
        the first sample.
        """
        end = first + out.shape[1]
        for chunk in range(first // HOP, (end - 1) // HOP + 1):
            if chunk != self._chunk:
                self._values, self._chunk = self._make(chunk), chunk
            a, b = max(first, chunk * HOP), min(end, (chunk + 1) * HOP)
            out[:, a - first : b - first] += factor * self._values[:, a - chunk * HOP : b - chunk * HOP]

    def _make(self, chunk: int) -> Floats:
        """Return the noise of all channels for ``HOP`` samples. Two channels share a complex transform."""
        values = np.zeros((self._channels + self._channels % 2, SIZE))
        for channel in range(self._channels):
            fill_normal(self._key, channel, chunk * HOP - TAPS // 2 + _FAR, values[channel])
        for a, b in zip(values[::2], values[1::2], strict=True):
            fourier.transform(a, b)
            a *= self._gains
            b *= self._gains
            fourier.inverse(a, b)
        return values[: self._channels, TAPS // 2 : TAPS // 2 + HOP]


def _shortened(gain: Floats) -> Floats:
    """Return the response of a filter of ``TAPS`` taps without delay, at all frequencies of a transform."""
    re, im = np.concatenate([gain, gain[-2:0:-1]]), np.zeros(SIZE)
    fourier.inverse(re, im)
    taper = np.zeros(SIZE)
    taper[SIZE // 2 - TAPS // 2 : SIZE // 2 + TAPS // 2] = fourier.window(TAPS)
    re *= np.roll(taper, SIZE // 2)
    im[:] = 0.0
    fourier.transform(re, im)
    return re
