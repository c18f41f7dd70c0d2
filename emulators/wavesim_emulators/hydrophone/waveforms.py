"""Waveforms of signals: tones and sweeps in closed form, and sampled waveforms."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wavesim_emulators.hydrophone.sample_kernels import PHASES, TAPS
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, Spectrum
from wavesim_kernels import fourier, randomness
from wavesim_sdk.arrays import Array, Floats, Record
from wavesim_sdk.elementary import asin, cos, power, sin
from wavesim_sdk.sounds import USABLE, mean_square
from wavesim_sdk.tables import SignalKind

MODULATED = 8.0  #: product of bandwidth and duration from which a signal is a sweep or a sequence of tones
TONES = 8  #: number of frequencies in a sequence of tones
_SWEEP_PIECES = 16
_EDGE_SHARE, _EDGE_PERIODS = 0.05, 10.0
_FILTER_STEP_DB = 0.1
_PAD = 256  # samples before and after a waveform into which its filter may spread it
#: number of samples that are filtered at once, and number of samples that are discarded at each end. With this margin,
#: the Hilbert transform of a signal above 1 kHz is exact to -80 dB
SECTION, MARGIN = 2**19, 2**16


class ToneWave(NamedTuple):
    """Waveform in closed form: duration and length of the edges in s, the pieces (see ``Tones``), and the amplitude of a
    wave whose level is 0 dB, in uPa.
    """

    duration: float
    edge: float
    pieces: Floats
    scale: float


def band_gain(settings: HydrophoneSettings, f: Floats) -> Floats:
    """Return the factor of the hydrophone's band at frequencies in Hz.

    The factor is sqrt(1/2) at the lower edge and decreases by 12 dB per octave below it, unless the edge is 0. It is 1 up to the upper edge
    and decreases to 0 at 1.25 times the upper edge, so that no frequency above half the sampling rate is sampled.
    """
    high = settings.high or USABLE * settings.sampling
    squares, low = f * f, settings.low * settings.low
    lower = np.where(f > 0.0, squares / np.sqrt(np.maximum(squares * squares + low * low, 1e-300)), 0.0)
    above = np.clip((f - high) / (0.25 * high), 0.0, 1.0)
    return np.asarray(lower * (0.5 + 0.5 * cos(math.pi * above)))


def nominal_wave(wave: Record, settings: HydrophoneSettings, absorption: Spectrum | None) -> ToneWave:
    """Return the nominal waveform of a row of the WAVEFORM table.

    A pulse is a tone, or a rising linear sweep over its band if the product of bandwidth and duration is at least 8. All
    other signals are sequences of tones at eight frequencies, which the number and the code of the signal determine. The
    edges are raised cosines over 5 % of the duration, but at most over ten periods.
    """
    duration, carrier, band = float(wave["duration"]), float(wave["frequency"]), float(wave["band"])
    modulated = band * duration >= MODULATED
    if not modulated:
        starts, ends = np.array([carrier]), np.array([carrier])
    elif wave["kind"] == SignalKind.PULSE:
        edges = carrier + band * (np.arange(_SWEEP_PIECES + 1) / _SWEEP_PIECES - 0.5)
        starts, ends = edges[:-1], edges[1:]
    else:
        starts = ends = carrier + band * ((_tone_numbers(wave, round(band * duration / TONES)) + 0.5) / TONES - 0.5)
    part = duration / len(starts)
    turns = 0.5 * (starts + ends) * part
    cycles = np.concatenate([[0.0], np.cumsum(turns - np.floor(turns))[:-1]])
    edge = min(_EDGE_SHARE * duration, _EDGE_PERIODS / carrier)
    pieces = np.stack(
        [
            starts,
            (ends - starts) / part,
            cycles,
            *(more_absorption(absorption, carrier, f) for f in (starts, ends)),
            *(band_gain(settings, f) for f in (starts, ends)),
        ],
        axis=-1,
    )
    return ToneWave(duration, edge, np.ascontiguousarray(pieces), math.sqrt(2.0 / _mean_square(duration, edge)))


def _tone_numbers(wave: Record, count: int) -> Floats:
    key = np.array(randomness.key(0, f"{wave['kind']} {wave['code']} {wave['signal']}", "tones"), np.uint64)
    return np.asarray(np.floor(TONES * randomness.uniform(key, np.arange(max(count, 1)))))


def more_absorption(absorption: Spectrum | None, carrier: float, f: Floats) -> Floats:
    """Return the absorption at frequencies in Hz minus the absorption at the carrier, dB/m."""
    if absorption is None:
        return np.zeros(len(f))
    values = {x: absorption(x) for x in {carrier, *map(float, f)}}
    return np.array([values[float(x)] - values[carrier] for x in f])


def _mean_square(duration: float, edge: float) -> float:
    """Return the mean square of the envelope while it is above -20 dB: sin^2 edges, 1 between them."""
    start = 2.0 / math.pi * asin(math.sqrt(math.sqrt(0.01)))
    a = 0.5 * math.pi
    below = 0.375 * start - sin(2.0 * a * start) / (4.0 * a) + sin(4.0 * a * start) / (32.0 * a)
    return float((duration - 2.0 * edge * (0.625 + below)) / (duration - 2.0 * edge * start))


# ------------------------------------------------------------------ sampled waveforms


def interpolation_table() -> Array:
    """Return the weights of a sinc with a Kaiser window of 32 taps, at 512 fractions of a sample (513, 32), in single
    precision.
    """
    beta = 9.5
    offset = np.arange(TAPS) - (TAPS // 2 - 1) - np.arange(PHASES + 1)[:, np.newaxis] / PHASES
    share = 2.0 * offset / TAPS
    argument = beta * np.sqrt(np.maximum(1.0 - share * share, 0.0))
    x = math.pi * np.where(offset == 0.0, 1.0, offset)
    sinc = np.where(offset == 0.0, 1.0, sin(x) / x)
    return fourier.single(np.where(abs(share) <= 1.0, sinc * _bessel(argument) / _bessel(np.array(beta)), 0.0))


def _bessel(x: Floats) -> Floats:
    """Return the modified Bessel function of order 0, by its power series."""
    term, total = np.ones(np.shape(x)), np.ones(np.shape(x))
    for k in range(1, 40):
        term = term * (x / (2.0 * k)) * (x / (2.0 * k))
        total = total + term
    return total


@dataclass
class SampledWave:
    """Sampled waveform with an rms value of 1 (see :mod:`wavesim_sdk.sounds`), and its versions after absorption and band.

    A version belongs to a path length. Lengths are rounded so that the levels within the band of the signal are exact
    to 0.05 dB.
    """

    samples: Floats
    sampling: float
    carrier: float
    gains: Floats
    more: Floats  #: absorption minus the absorption at the carrier at the frequencies of the filter, dB/m
    step: float  #: difference in m between the path lengths of two versions
    versions: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def number(self, length: float) -> int:
        """Return the number of the version for a path length in m."""
        return round(length / self.step) if math.isfinite(self.step) else 0

    def version(self, number: int) -> tuple[Array, Array]:
        """Return the waveform and its Hilbert transform in single precision, each with ``TAPS`` zeros at both ends."""
        if number not in self.versions:
            length = number * self.step if number else 0.0
            gains = self.gains * power(10.0, -0.05 * np.maximum(self.more * length, -200.0))
            x, hilbert = (np.zeros(len(self.samples) + 2 * TAPS, np.float32) for _ in range(2))
            for first, end, parts in self._filtered(gains):
                for out, y in zip((x, hilbert), parts, strict=True):
                    out[TAPS + first : TAPS + end] = fourier.single(y)
            if len(self.versions) >= 32:
                self.versions.pop(next(iter(self.versions)))
            self.versions[number] = x, hilbert
        return self.versions[number]

    def _filtered(self, gains: Floats) -> Iterator[tuple[int, int, list[Floats]]]:
        """Yield the filtered waveform and its Hilbert transform in parts: first sample, last sample + 1, both."""
        count, room = len(self.samples), 2 * (len(gains) - 1)
        margin = MARGIN if room < count + 2 * _PAD else 0
        for first in range(0, count, room - 2 * margin - 2 * _PAD):
            end = min(first + room - 2 * margin - 2 * _PAD, count)
            begin = max(first - margin, 0)
            padded = np.concatenate([np.zeros(_PAD), self.samples[begin : end + margin]])
            at = _PAD + first - begin
            yield first, end, [y[at : at + end - first] for y in fourier.filtered(padded, gains)]


def sampled_wave(
    samples: Array, sampling: float, wave: Record, settings: HydrophoneSettings, absorption: Spectrum | None
) -> SampledWave:
    """Return a sampled waveform for a row of the WAVEFORM table."""
    carrier, band = float(wave["frequency"]), float(wave["band"])
    size = min(fourier.power_of_two(len(samples) + 2 * _PAD), SECTION)
    f = fourier.frequencies(size, sampling)
    more = np.zeros(len(f))
    step = math.inf
    if absorption is not None:
        more[1:] = fourier.evaluate(absorption, f[1:]) - absorption(carrier)
        more[0] = more[1]
        inside = abs(f - carrier) <= 0.5 * band
        most = float(abs(more[inside]).max()) if inside.any() else 0.0
        step = _FILTER_STEP_DB / most if most > 0.0 else math.inf
    rms = math.sqrt(mean_square(samples))
    return SampledWave(samples / rms, sampling, carrier, band_gain(settings, f), more, step)
