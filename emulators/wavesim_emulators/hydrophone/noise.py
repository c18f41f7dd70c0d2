"""Ambient noise at the elements of a hydrophone: Gaussian or impulsive noise with a given spectrum."""

from __future__ import annotations

import functools
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
STABLE_LIMIT = 100.0  #: largest alpha-stable number, 40 dB above the scale, so that the power is finite
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


@kernel
def fill_stable(key: np.uint64, channel: int, first: int, alpha: float, out: Floats) -> None:
    """Fill an array with the independent numbers of a channel from a symmetric alpha-stable distribution of unit scale
    (Chambers, Mallows & Stuck 1976), limited to STABLE_LIMIT. ``first`` is the number of the first sample.
    """
    for k in range(len(out)):
        bits = random_bits(key, np.uint64(first + k), np.uint64(channel))
        v = math.pi * ((np.float64(bits >> np.uint64(32)) + 0.5) * 2.0**-32 - 0.5)
        w = -log((np.float64(bits & np.uint64(0xFFFFFFFF)) + 0.5) * 2.0**-32)
        _, c = sin_cos(v)
        s, _ = sin_cos(alpha * v)
        _, d = sin_cos((alpha - 1.0) * v)
        x = s * power(c, -1.0 / alpha) * power(w / d, (alpha - 1.0) / alpha)
        out[k] = min(max(x, -STABLE_LIMIT), STABLE_LIMIT)


@functools.lru_cache(maxsize=8)
def stable_rms(alpha: float) -> float:
    """Return the rms value of the numbers of :func:`fill_stable`, integrated over the two random variables of each number."""
    edges = power(10.0, np.linspace(-9.0, 0.0, 501)) * (0.5 * math.pi)
    angle, width = 0.5 * (edges[1:] + edges[:-1]), np.diff(edges) / (0.5 * math.pi)  # angle from pi/2
    v = 0.5 * math.pi - angle[:, np.newaxis]
    w = -log((np.arange(100) + 0.5) / 100.0)
    c, (s, _) = sin_cos(angle)[0][:, np.newaxis], sin_cos(alpha * v)
    d = sin_cos((alpha - 1.0) * v)[1]
    x = np.minimum(abs(s) * power(c, -1.0 / alpha) * power(w / d, (alpha - 1.0) / alpha), STABLE_LIMIT)
    return math.sqrt(float(np.sum(width * np.mean(x * x, axis=1))))


class AmbientNoise:
    """Noise at the elements of a hydrophone that depends only on the key, the channel and the sample number.

    The noise is white noise through a filter of 4096 taps. Therefore, its spectrum is smoothed over four times the
    sampling rate divided by 4096. The white noise is Gaussian, or symmetric alpha-stable with an exponent ``alpha`` below 2.
    It is independent at each element, or with ``spacing`` (see ``SeaSettings``) that of an isotropic sound field.
    """

    def __init__(
        self,
        key: int,
        spectrum: Spectrum,
        settings: HydrophoneSettings,
        alpha: float = 2.0,
        spacing: Floats | None = None,
    ) -> None:
        self._channels, self._alpha = settings.elements, alpha
        self.restart(key)
        f = fourier.frequencies(SIZE, settings.sampling)
        gain = np.zeros(len(f))
        gain[1:] = power(10.0, 0.05 * fourier.evaluate(spectrum, f[1:])) * math.sqrt(0.5 * settings.sampling)
        gain *= band_gain(settings, f)
        if alpha < 2.0:
            gain /= stable_rms(alpha)
        self._gains = _shortened(gain)
        #: factors by which the independent noises contribute to each channel, at all frequencies of a transform
        self._mixing: Floats | None = None
        if spacing is not None and self._channels > 1:
            parts = _triangle(spacing, f)
            self._mixing = np.array(
                [[_shortened(gain * p) if p.any() else np.zeros(SIZE) for p in row] for row in parts]
            )

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
            first = chunk * HOP - TAPS // 2 + _FAR
            if self._alpha < 2.0:
                fill_stable(self._key, channel, first, self._alpha, values[channel])
            else:
                fill_normal(self._key, channel, first, values[channel])
        if self._mixing is not None:
            values = self._mixed(values, self._mixing)
        for a, b in zip(values[::2], values[1::2], strict=True):
            if self._mixing is None:
                fourier.transform(a, b)
                a *= self._gains
                b *= self._gains
            fourier.inverse(a, b)
        return values[: self._channels, TAPS // 2 : TAPS // 2 + HOP]

    def _mixed(self, white: Floats, mixing: Floats) -> Floats:
        """Return the complex transforms of the noise of pairs of channels, from the white noise of each channel."""
        made = np.zeros_like(white)
        for channel in range(self._channels):
            re, im = white[channel].copy(), np.zeros(SIZE)
            fourier.transform(re, im)
            for to in range(channel, self._channels):
                g, pair = mixing[to, channel], 2 * (to // 2)
                # the second channel of a pair is its imaginary part
                x, y = (g * re, g * im) if to == pair else (-g * im, g * re)
                made[pair] += x
                made[pair + 1] += y
        return made


def _triangle(spacing: Floats, f: Floats) -> Floats:
    """Return the lower triangular matrix whose product with its transpose is the coherence sin(kd)/(kd) of isotropic
    noise, at frequencies in Hz (elements, elements, frequencies). ``spacing`` contains the distances in s.
    """
    n = len(spacing)
    x = 2.0 * math.pi * spacing[:, :, np.newaxis] * f
    coherence = np.where(x > 1e-6, sin_cos(x)[0] / np.maximum(x, 1e-6), 1.0)
    made = np.zeros_like(coherence)
    for j in range(n):
        # at low frequencies, all elements hear the same noise, and rounding could make the remainder negative
        rest = coherence[j, j] - (made[j, :j] * made[j, :j]).sum(axis=0)
        made[j, j] = np.sqrt(np.maximum(rest, 1e-6))
        for i in range(j + 1, n):
            made[i, j] = (coherence[i, j] - (made[i, :j] * made[j, :j]).sum(axis=0)) / made[j, j]
    return made


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
