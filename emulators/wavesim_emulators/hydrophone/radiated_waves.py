"""Waveforms of the noise that bodies radiate: broadband noise, and the tones of propellers and machines.

The noise of a body has no end. A waveform is a segment of it, extended at both ends by samples that also belong to the
neighbouring segments, so that consecutive segments join without an edge. The samples depend only on the key of the body
and on the time of emission. Hydrophones with the same sampling rate and band therefore receive the same noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wavesim_emulators.hydrophone.noise import AmbientNoise
from wavesim_emulators.hydrophone.sample_kernels import TAPS
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, Spectrum
from wavesim_emulators.hydrophone.waveforms import band_gain, more_absorption
from wavesim_kernels import fourier
from wavesim_kernels.radiated_noise import relative_spectrum
from wavesim_sdk.arrays import Array, Floats, Record
from wavesim_sdk.elementary import power, sin_cos
from wavesim_sdk.front_tables import NOISE_SEGMENT_S
from wavesim_sdk.sounds import USABLE

HARMONICS = 32  #: maximum number of tones of a propeller or a machine
_LEAST_MARGIN = 4096  # samples before and after a segment over which its filter may spread
_FILTER_STEP_DB = 0.5  # difference in level, at the upper edge of the band, between the path lengths of two versions


class _Series(NamedTuple):
    """A fundamental and its harmonics: cosine and sine of the fundamental at each sample, the frequencies in Hz, and the
    amplitudes of the tones at both ends of the segment (tones, 2).
    """

    cosine: Floats
    sine: Floats
    frequencies: Floats
    amplitudes: Floats

    def sum(self, factors: Floats, u: Floats) -> Floats:
        """Return the sum of the tones, each multiplied by a factor, and its Hilbert transform (2, n). ``u`` is the fraction
        of the segment that has passed at each sample.
        """
        total, c, s = np.zeros((2, len(u))), self.cosine, self.sine
        for k, (start, end) in enumerate(self.amplitudes * factors[:, np.newaxis]):
            if k:
                s, c = s * self.cosine + c * self.sine, c * self.cosine - s * self.sine
            amplitude = start + u * (end - start)
            total[0] += amplitude * s
            total[1] -= amplitude * c
        return total


@dataclass
class RadiatedWave:
    """A segment of the noise of a body, relative to noise whose spectrum level at the reference frequency is 0 dB, and
    its versions after absorption. Each version belongs to a path length.
    """

    noise: Floats
    series: list[_Series]
    share: Floats  #: fraction of the segment that has passed at each sample, 0 before and 1 after it
    margin: int  #: number of samples before and after the segment
    sampling: float
    gains: Floats  #: absorption minus the absorption at the reference frequency, dB/m
    absorption: Spectrum | None
    carrier: float
    step: float  #: difference in m between the path lengths of two versions
    versions: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def number(self, length: float) -> int:
        """Return the number of the version for a path length in m."""
        return round(length / self.step) if math.isfinite(self.step) else 0

    def version(self, number: int) -> tuple[Array, Array]:
        """Return the waveform and its Hilbert transform in single precision, each with ``TAPS`` samples of the
        neighbouring segments at both ends.
        """
        if number not in self.versions:
            length = number * self.step if number else 0.0
            lost = power(10.0, -0.05 * np.maximum(self.gains * length, -200.0))
            parts = np.stack(fourier.filtered(self.noise, lost))[:, : len(self.noise)]
            for tones in self.series:
                more = more_absorption(self.absorption, self.carrier, tones.frequencies)
                parts = parts + tones.sum(power(10.0, -0.05 * more * length), self.share)
            inner = slice(self.margin - TAPS, len(self.noise) - self.margin + TAPS)
            if len(self.versions) >= 8:
                self.versions.pop(next(iter(self.versions)))
            self.versions[number] = fourier.single(parts[0, inner]), fourier.single(parts[1, inner])
        return self.versions[number]


class RadiatedWaves:
    """Source of the waveforms for one hydrophone."""

    def __init__(self, settings: HydrophoneSettings, absorption: Spectrum | None) -> None:
        # with an even sampling rate, each segment begins at a sample
        sampling = 2.0 * math.ceil(0.5 * settings.sampling)
        self._settings = settings._replace(
            elements=1, sampling=sampling, high=settings.high or USABLE * settings.sampling
        )
        self._absorption = absorption
        self._count = round(NOISE_SEGMENT_S * sampling)
        size = fourier.power_of_two(self._count + 2 * _LEAST_MARGIN)
        self._margin = (size - self._count) // 2
        self._noise = AmbientNoise(0, relative_spectrum, self._settings)
        self._frequencies = fourier.frequencies(size, sampling)

    def wave(self, row: Record) -> RadiatedWave:
        """Return the waveform of a row of the WAVEFORM table."""
        s, start, carrier = self._settings, float(row["emission"]), float(row["frequency"])
        first = round(start * s.sampling) - self._margin
        noise = np.zeros((1, self._count + 2 * self._margin))
        self._noise.restart(int(row["code"]))
        self._noise.add(first, noise)
        t = (np.arange(noise.shape[1]) - self._margin) / s.sampling
        level, rates = float(row["source_level"]), (float(row["rate"]), float(row["rate_end"]))
        series = self._series(t, float(row["cycles"]), rates, float(row["blade_level"]) - level)
        machine = float(row["machine"])
        turns = machine * start
        series += self._series(t, turns - math.floor(turns), (machine, machine), float(row["machine_level"]) - level)
        more, step = np.zeros(len(self._frequencies)), math.inf
        if self._absorption is not None:
            more[1:] = fourier.evaluate(self._absorption, self._frequencies[1:]) - self._absorption(carrier)
            more[0] = more[1]
            most = abs(self._absorption(s.high) - self._absorption(carrier))
            step = _FILTER_STEP_DB / most if most > 0.0 else math.inf
        share = np.clip(t / NOISE_SEGMENT_S, 0.0, 1.0)
        return RadiatedWave(noise[0], series, share, self._margin, s.sampling, more, self._absorption, carrier, step)

    def _series(self, t: Floats, cycles: float, rates: tuple[float, float], level: float) -> list[_Series]:
        """Return a fundamental of a level in dB and its harmonics, whose levels decrease by 6 dB per octave.

        ``t`` is the time from the start of the segment in s, ``cycles`` the phase at the start, and ``rates`` the
        frequencies in Hz at both ends. Below 1 Hz, the tones fade, so that a propeller at rest is silent.
        """
        count = min(HARMONICS, int(USABLE * self._settings.sampling / max(*rates, 1.0)))
        if not max(rates) > 0.0 or count < 1:
            return []
        turns = cycles + t * (rates[0] + 0.5 * (rates[1] - rates[0]) / NOISE_SEGMENT_S * t)
        sine, cosine = sin_cos(2.0 * math.pi * (turns - np.floor(turns)))
        number, ends = np.arange(1.0, count + 1.0), np.array(rates)
        size = math.sqrt(2.0) * float(power(10.0, 0.05 * level)) / number[:, np.newaxis]
        amplitudes = size * band_gain(self._settings, number[:, np.newaxis] * ends) * np.minimum(ends, 1.0)
        return [_Series(cosine, sine, 0.5 * number * (rates[0] + rates[1]), amplitudes)]
