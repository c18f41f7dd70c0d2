"""Replay of measured channels: the waveform of a signal after a measured, time-varying impulse response.

The received waveform is a function of the emission time on the first path of the medium, like a transmitted one. Its
time 0 is the first arrival in the file. Therefore, the medium determines when the waveform arrives, and the motion of both
ends affects it like a transmitted waveform.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wavesim_emulators.hydrophone import sample_kernels, tone_kernels
from wavesim_emulators.hydrophone.replay_kernels import ResponseSplines, filter_baseband, take_at
from wavesim_emulators.hydrophone.sample_kernels import TAPS
from wavesim_emulators.hydrophone.waveforms import SampledWave, ToneWave, interpolation_table
from wavesim_kernels import fourier, randomness
from wavesim_sdk.arrays import Array, Floats, Record
from wavesim_sdk.elementary import sin_cos
from wavesim_sdk.front_tables import FRONT_INTERVAL_S, WAVEFORM
from wavesim_world.ocean.measured_channels import MeasuredChannel

_PAD = 32  # samples of the baseband before and after a signal into which filters may spread it
_USED_SHARE = 0.38  # highest frequency of the received waveform, as a share of its sampling rate
EARLY_S = 0.015  #: maximum time in s by which sound may arrive before the first arrival


class ReplayedWave(NamedTuple):
    """Received waveform at each element, or one for all elements, with ``TAPS`` zeros at both ends.

    ``start`` is the time of the first sample after these zeros in s since the start of the emission.
    """

    channels: tuple[Array, ...]
    sampling: float
    start: float


class ReplayChannel:
    """Measured channel between a transducer and a hydrophone, ready for signals.

    :param channel: the measured channel at the receivers in use
    :param start: time in s, in the file, at which each signal starts; None = drawn for each signal
    :param is_absolute: whether the level is that of the file; otherwise, the mean power of the impulse response is 1
    """

    def __init__(self, channel: MeasuredChannel, start: float | None, is_absolute: bool) -> None:
        self.channel, self.start, self.is_absolute = channel, start, is_absolute
        self._first = channel.first_arrival
        dropped = max(self._first - int(EARLY_S * channel.delay_rate), 0)
        scale = 1.0 if is_absolute else 1.0 / math.sqrt(channel.mean_power)
        self._splines = [
            _splines(scale * re[:, dropped:], scale * im[:, dropped:])
            for re, im in zip(channel.real, channel.imaginary, strict=True)
        ]
        self._first -= dropped
        highest = channel.carrier + 0.5 * channel.delay_rate
        self._finer = fourier.power_of_two(math.ceil(highest / (_USED_SHARE * channel.delay_rate)))
        self._table = interpolation_table()

    @property
    def receivers(self) -> int:
        """Number of receivers: one for all elements, or one for each element."""
        return len(self._splines)

    @property
    def lead(self) -> float:
        """Time in s for which the waveform may begin before the start of the emission."""
        c = self.channel
        return min(c.stretch * (self._first + _PAD) / c.delay_rate, FRONT_INTERVAL_S)

    def tail(self, duration: float) -> float:
        """Return the time in s for which the waveform of a signal may last after the end of the emission."""
        c = self.channel
        drift = float(np.max(np.max(c.phase, axis=1) - np.min(c.phase, axis=1))) if c.drifts else 0.0
        late = c.spread + 2.0 * _PAD / c.delay_rate + drift / (2.0 * math.pi * c.carrier)
        return c.stretch * late + max(c.stretch - 1.0, 0.0) * duration

    def refusal(self, wave: Record) -> str:
        """Return why the channel cannot carry the signal of a row of WAVEFORM, or an empty string."""
        return self.channel.refusal(float(wave["frequency"]), float(wave["band"]), float(wave["duration"]), self.start)

    def start_sample(self, wave: Record, key: int) -> int:
        """Return the number of the sample in the file, at the sampling rate of the delays, at which a signal starts."""
        c = self.channel
        if self.start is not None:
            return int(self.start * c.delay_rate)
        room = int((c.duration - float(wave["duration"]) - c.spread) * c.delay_rate)
        keys = randomness.stream(np.array([key], np.uint64), "replay")
        return int(randomness.uniform(keys, int(wave["signal"]))[0] * (room + 1))

    def received(self, wave: ToneWave | SampledWave, row: Record, key: int) -> ReplayedWave:
        """Return the received waveform of a signal. ``row`` is its row of WAVEFORM, and ``key`` the random-stream key of
        the hydrophone.
        """
        c, fine = self.channel, self._finer
        sampling, start = fine * c.delay_rate, self.start_sample(row, key)
        count = math.ceil(float(row["duration"]) * c.delay_rate) + 2 * _PAD
        sent = transmitted(wave, float(row["duration"]), -_PAD * fine, count * fine, sampling, self._table)
        sine, cosine = _carrier(c.carrier / sampling, -_PAD * fine, len(sent))
        real, imaginary = _decimated(sent * cosine, -sent * sine, fine)
        made = []
        for splines, phase in zip(self._splines, c.phase, strict=True):
            turned = phase - phase[min(start, len(phase) - 1)] if c.drifts else phase
            delays, late = splines.real.shape[1], 0
            if c.drifts:
                window = turned[start : start + count + delays]
                late = max(
                    math.ceil(-float(np.min(window, initial=0.0)) * c.delay_rate / (2.0 * math.pi * c.carrier)), 0
                )
            out = np.empty((2, count + delays + late))
            filter_baseband(
                splines, c.time_rate / c.delay_rate, float(start - _PAD), real[:count], imaginary[:count], out
            )
            place = np.clip(np.arange(out.shape[1]) + (start - _PAD), 0, len(turned) - 1)
            s, cs = sin_cos(turned[place])
            out = np.stack([out[0] * cs - out[1] * s, out[0] * s + out[1] * cs])
            y = _refined(out, fine)
            if c.drifts:
                at = np.arange(y.shape[1]) * 1.0
                drift = _between(turned, at / fine + (start - _PAD)) * (sampling / (2.0 * math.pi * c.carrier))
                moved = np.empty_like(y)
                take_at(y, at + drift, self._table, moved)
                y = moved
            sine, cosine = _carrier(c.carrier / sampling, -_PAD * fine, y.shape[1])
            passband = 2.0 * (y[0] * cosine - y[1] * sine)
            made.append(fourier.single(np.concatenate([np.zeros(TAPS), passband, np.zeros(TAPS)])))
        first = -c.stretch * (_PAD + self._first) / c.delay_rate
        return ReplayedWave(tuple(made), sampling / c.stretch, first)


def transmitted(
    wave: ToneWave | SampledWave, duration: float, first: int, count: int, sampling: float, table: Array
) -> Floats:
    """Return ``count`` samples of a waveform with an rms value of 1. The first one has the number ``first``, and number 0
    is at the start of the emission.
    """
    out = np.zeros((1, count))
    start, end = first / sampling, (first + count) / sampling
    scale = wave.scale if isinstance(wave, ToneWave) else 1.0
    values = np.array([start, end, scale, scale, 0.0, 0.0, 0.0, 0.0])
    times, clock = np.array([[start, end, 1.0, 1.0, 1.0, 1.0]]), np.array([sampling, 0.0, 0.0])
    if isinstance(wave, SampledWave):
        segment = values, times, 0, sample_kernels.CONSTANT
        sample_kernels.add_samples(segment, (*wave.version(0), wave.sampling), table, clock, first, out)
    else:
        tone_kernels.add_tones(
            tone_kernels.Segments(values[np.newaxis], times[np.newaxis], np.zeros(1, np.int64), np.zeros(1, np.int64)),
            tone_kernels.Tones(
                np.zeros(1, np.int64),
                np.array([len(wave.pieces)]),
                np.array([duration]),
                np.array([wave.edge]),
                wave.pieces,
            ),
            clock,
            first,
            out,
        )
    return np.asarray(out[0])


def extended(fronts: Record, lead: float, tail: float) -> Record:
    """Return fronts with additional ones before the first front and after the last front of a signal, on each path, as if both ends
    moved uniformly there. ``lead`` and ``tail`` are the additional emission times in s.
    """
    before, after = fronts[fronts["number"] == 0].copy(), fronts[fronts["last"] != 0].copy()
    for some, by in ((before, -lead), (after, tail)):
        some["number"] += -1 if by < 0.0 else 1
        some["emission"] += by
        some["arrival"] += by
        some["times"] += by / some["rates"]
    before["last"] = 0
    changed = fronts.copy()
    changed["last"] = 0
    return np.concatenate([before, changed, after])


def _splines(real: Floats, imaginary: Floats) -> ResponseSplines:
    """Return the not-a-knot splines of impulse responses (times, delays) over the time."""
    return ResponseSplines(*(np.ascontiguousarray(x) for x in (real, imaginary, _bends(real), _bends(imaginary))))


def _bends(y: Floats) -> Floats:
    """Return a sixth of the second derivatives of the not-a-knot spline through equidistant values, in units of their
    interval.
    """
    m = np.zeros_like(y)
    second = y[:-2] - 2.0 * y[1:-1] + y[2:]
    m[1], m[-2] = second[0] / 6.0, second[-1] / 6.0
    # m[k-1] + 4 m[k] + m[k+1] = second[k-1] between the two ends, by elimination
    factors, count = np.zeros(len(y)), len(y)
    for k in range(2, count - 2):
        factors[k] = 1.0 / (4.0 - factors[k - 1])
        m[k] = (second[k - 1] - m[k - 1]) * factors[k]
    for k in range(count - 3, 1, -1):
        m[k] -= factors[k] * m[k + 1]
    m[0], m[-1] = 2.0 * m[1] - m[2], 2.0 * m[-2] - m[-3]
    return m


def _carrier(cycles: float, first: int, count: int) -> tuple[Floats, Floats]:
    """Return (sine, cosine) of a carrier with a number of cycles per sample, from number ``first`` on."""
    phase = cycles * np.arange(first, first + count)
    sine, cosine = sin_cos(2.0 * math.pi * (phase - np.floor(phase)))
    return sine, cosine


def _between(values: Floats, at: Floats) -> Floats:
    """Interpolate values linearly at fractional positions. Outside, the first or the last value applies."""
    at = np.clip(at, 0.0, len(values) - 1.0)
    k = np.minimum(at.astype(np.int64), max(len(values) - 2, 0))
    following = np.minimum(k + 1, len(values) - 1)
    return np.asarray(values[k] + (at - k) * (values[following] - values[k]))


def _decimated(real: Floats, imaginary: Floats, by: int) -> tuple[Floats, Floats]:
    """Return a complex signal at a sampling rate that is lower by a power of two, without frequencies above its band."""
    coarse = fourier.power_of_two(-(-len(real) // by) + _PAD)
    re, im = np.zeros(coarse * by), np.zeros(coarse * by)
    re[: len(real)], im[: len(imaginary)] = real, imaginary
    fourier.transform(re, im)
    half, kept = coarse // 2, []
    for x in (re, im):
        part = np.concatenate([x[:half], x[-half:]]) / by
        part[half] = 0.0
        kept.append(part)
    fourier.inverse(*kept)
    return kept[0], kept[1]


def _refined(signal: Floats, by: int) -> Floats:
    """Return a complex signal (2, samples) at a sampling rate that is higher by a power of two."""
    count = signal.shape[1]
    coarse = fourier.power_of_two(count + _PAD)
    half, parts = coarse // 2, np.zeros((2, coarse))
    parts[:, :count] = signal
    fourier.transform(*parts)
    fine = np.zeros((2, coarse * by))
    fine[:, :half], fine[:, -half:] = parts[:, :half] * by, parts[:, half:] * by
    fourier.inverse(*fine)
    return np.ascontiguousarray(fine[:, : count * by])


def load_kernels() -> None:
    """Compile or load all kernels of replays."""
    response = np.zeros((1, 4, 2))
    channel = MeasuredChannel("", response + 1.0, response, np.zeros((1, 1)), True, 1e3, 1e3, 1e3, 1.0)
    wave = ToneWave(1e-3, 1e-4, np.array([[1e3, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]]), 1.0)
    row = np.zeros(1, WAVEFORM.dtype)[0]
    row["duration"] = 1e-3
    ReplayChannel(channel, 0.0, False).received(wave, row, 0)
