"""Synthesis of the samples of a hydrophone from the fronts of each signal and from noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_emulators.hydrophone import replay as replays
from wavesim_emulators.hydrophone import sample_kernels, tone_kernels
from wavesim_emulators.hydrophone.converter import convert, volts_per_unit, volts_per_uPa
from wavesim_emulators.hydrophone.noise import AmbientNoise, fill_stable
from wavesim_emulators.hydrophone.radiated_waves import RadiatedWave, RadiatedWaves
from wavesim_emulators.hydrophone.replay import ReplayChannel, ReplayedWave, extended
from wavesim_emulators.hydrophone.segments import FrontStore, PathSegments
from wavesim_emulators.hydrophone.settings import HydrophoneSettings, PressureBlock, SampleBlock, SeaSettings
from wavesim_emulators.hydrophone.waveforms import (
    SampledWave,
    ToneWave,
    interpolation_table,
    nominal_wave,
    sampled_wave,
)
from wavesim_sdk.arrays import Array, Floats, Record
from wavesim_sdk.elementary import power
from wavesim_sdk.front_tables import FRONT, FRONT_ELEMENTS, RADIATED_NOISE, WAVEFORM
from wavesim_sdk.sounds import checked_sound

Waveform = ToneWave | SampledWave | RadiatedWave | ReplayedWave
_SHRIMP = 0x5368726D  # distinguishes the random numbers of the shrimp from those of the other noise
_MAX_TRAVEL_S = 120.0  # after this time, no front of a signal arrives any more
_ELEMENT_MARGIN_S = 0.008  # sound crosses the 5 m from the reference point to an element in less time


class Synthesiser:
    """Synthesiser of the samples of one hydrophone.

    Its results depend only on the records that it received and on the numbers of the samples. The order of the records
    and the size of the blocks change no bit.
    """

    def __init__(self, settings: HydrophoneSettings, sea: SeaSettings) -> None:
        self.settings = settings
        self.sea = sea
        #: time in s by which a block may begin before the end of the previous one
        self.overlap = 0.0
        self.unknown = 0  #: number of fronts whose signal has no row in WAVEFORM
        self.replayed = 0  #: number of signals in the newest block that a measured channel has shaped
        self.refused = 0  #: number of signals in the newest block that their measured channel cannot carry
        self._clock = np.array([settings.sampling, settings.clock_offset, settings.clock_drift])
        self._noise: dict[int, AmbientNoise] = {}  # by the number that distinguishes their random numbers
        if sea.noise is not None:
            self._noise[0] = AmbientNoise(sea.key, sea.noise, settings, spacing=sea.spacing)
        if sea.shrimp is not None:
            self._noise[_SHRIMP] = AmbientNoise(sea.key ^ _SHRIMP, sea.shrimp, settings, sea.shrimp_alpha, sea.spacing)
        self._groups = [  # of FRONT_ELEMENTS elements
            FrontStore(
                min(FRONT_ELEMENTS, settings.elements - k), settings.delays[k : k + FRONT_ELEMENTS], sea.spreading
            )
            for k in range(0, settings.elements, FRONT_ELEMENTS)
        ]
        self._rows: dict[int, Record] = {}
        self._waves: dict[int, Waveform] = {}
        self._replays: dict[int, ReplayChannel] = {}  # by signal
        self._refused: set[int] = set()
        self._first_paths: dict[int, int] = {}  # path on which a replayed signal arrives first
        self._radiated: RadiatedWaves | None = None
        self._samples: dict[int, tuple[Array, float]] = {}
        self._table: Array | None = None

    @property
    def lookahead(self) -> float:
        """Time in s for which the caller waits after the end of a block: all fronts that arrive at the reference point
        until then must have been added before the block is made.
        """
        return 1.1 * self.settings.interval + _ELEMENT_MARGIN_S

    def restart_noise(self, key: int) -> None:
        """Use the ambient noise of another random-stream key from now on."""
        self.sea = self.sea._replace(key=key)
        for number, noise in self._noise.items():
            noise.restart(key ^ number)
        for signal in self._replays:  # the key determines which part of the measured channel is used
            self._waves.pop(signal, None)

    def add_waveforms(self, records: Record) -> None:
        """Add records of the WAVEFORM table."""
        for row in records:
            self._rows[int(row["signal"])] = row.copy()

    def replay(self, signal: int, channel: ReplayChannel) -> None:
        """Hear a signal through a measured channel, if the channel can carry it. The waveform of the signal must have
        been added, and none of its fronts.
        """
        if channel.refusal(self._rows[signal]):
            self._refused.add(signal)
        else:
            self._replays[signal] = channel

    def add_samples(self, number: int, samples: Array, sampling: float) -> None:
        """Add the samples of a waveform under the number that the ``samples`` column of WAVEFORM refers to. Their scale
        does not matter, because the level of the signal determines their rms value.

        Raises InvalidArgument if the samples are not a sound; see :func:`wavesim_sdk.sounds.checked_sound`.
        """
        self._samples[number] = checked_sound(samples, sampling)

    def add_fronts(self, records: Record, group: int = 0) -> None:
        """Add records of the FRONT table. They must belong to this hydrophone and to one group of its elements, and the
        waveform of their signal must have been added before the block in which they arrive is made.
        """
        for signal, channel in self._replays.items():
            mine = records["signal"] == signal
            if mine.any():
                tail = channel.tail(float(self._rows[signal]["duration"]))
                records = np.concatenate([records[~mine], extended(records[mine], channel.lead, tail)])
        self._groups[group].add(records)

    def first_after(self, time: float) -> int:
        """Return the number of the first sample at or after a simulation time in s."""
        s = self.settings
        return math.ceil((time + s.clock_offset + s.clock_drift * time) * s.sampling)

    def time_of(self, number: int) -> float:
        """Return the simulation time of a sample in s."""
        return float((number / self._clock[0] - self._clock[1]) / (1.0 + self._clock[2]))

    def pressure(self, first: int, count: int, noise: float = 1.0) -> PressureBlock:
        """Return the pressure of ``count`` samples from number ``first`` on. Blocks must be made in ascending order;
        with an :attr:`overlap`, a block may repeat the end of the previous one.
        ``noise`` is a factor of the ambient noise.
        """
        out = np.zeros((self.settings.elements, count))
        start, end = self.time_of(first), self.time_of(first + count)
        used: set[int] = set()
        for number, group in enumerate(self._groups):
            part = out[number * FRONT_ELEMENTS : (number + 1) * FRONT_ELEMENTS]
            found = self._heard(group, group.segments(start, end))
            waves = [self._wave(int(s)) for s in found.signals]
            self._add_tones(found, waves, first, part)
            self._add_samples(found, waves, first, part)
            self._add_replayed(found, waves, first, part)
            group.forget(end - self.overlap)
            used.update(found.signals.tolist())
        for source in self._noise.values():
            source.add(first, out, noise)
        self._forget_waves(end, used)
        return PressureBlock(first, start, out)

    def block(self, first: int, count: int, noise: float = 1.0) -> SampleBlock:
        """Return ``count`` samples from number ``first`` on, as the converter outputs them. ``noise`` is a factor of the
        ambient noise.
        """
        made = self.pressure(first, count, noise)
        pressure = made.pressure
        if self.settings.gains:
            pressure = pressure * power(10.0, 0.05 * np.array(self.settings.gains))[:, np.newaxis]
        samples, clipped = convert(pressure, self.settings)
        volts = volts_per_unit(self.settings)
        return SampleBlock(first, made.time, samples, clipped, volts, volts / volts_per_uPa(self.settings))

    # -- waveforms ------------------------------------------------------------------------------

    def _wave(self, signal: int) -> Waveform | None:
        """Return the waveform of a signal, or None if it is unknown."""
        made = self._waves.get(signal)
        row = self._rows.get(signal)
        if made is not None or row is None:
            self.unknown += row is None
            return made
        number = int(row["samples"])
        if number and number not in self._samples:
            self.unknown += 1
            return None
        channel = self._replays.get(signal)
        absorption = None if channel is not None else self.sea.absorption  # the impulse response contains it
        if row["kind"] == RADIATED_NOISE:  # it uses the paths of the medium even if there is a measured channel
            if self._radiated is None:
                self._radiated = RadiatedWaves(self.settings, self.sea.absorption)
            made = self._radiated.wave(row)
        else:
            sent = (
                sampled_wave(*self._samples[number], row, self.settings, absorption)
                if number
                else nominal_wave(row, self.settings, absorption)
            )
            made = sent if channel is None else channel.received(sent, row, self.sea.key)
        self._waves[signal] = made
        return made

    def _forget_waves(self, time: float, used: set[int]) -> None:
        """Forget the signals that are over at a time in s, and the segments of noise that the last block did not use;
        these are long, and can be computed again.
        """
        for signal in [n for n, wave in self._waves.items() if isinstance(wave, RadiatedWave) and n not in used]:
            del self._waves[signal]
        over = [signal for signal, row in self._rows.items() if not can_be_heard(row, time)]
        for signal in over:
            for known in (self._rows, self._waves, self._replays, self._first_paths):
                known.pop(signal, None)
            self._refused.discard(signal)
        if over and self._samples:
            played = {int(row["samples"]) for row in self._rows.values()}
            self._samples = {number: known for number, known in self._samples.items() if number in played}

    # -- signals --------------------------------------------------------------------------------

    def _heard(self, group: FrontStore, found: PathSegments) -> PathSegments:
        """Return the segments of a group of elements that are heard: of a replayed signal, only those on the path on
        which it arrived first.
        """
        if not (self._replays or self._refused):
            return found
        present = set(found.signals.tolist())
        self.replayed, self.refused = len(present & self._replays.keys()), len(present & self._refused)
        heard = np.ones(len(found.signals), bool)
        for signal in present & self._replays.keys():
            if signal not in self._first_paths:
                self._first_paths[signal] = group.first_path(signal)
            heard &= (found.signals != signal) | (found.paths == self._first_paths[signal])
        return found.chosen(heard)

    def _add_tones(self, found: PathSegments, waves: list[Any], first: int, out: Floats) -> None:
        chosen = [k for k, wave in enumerate(waves) if isinstance(wave, ToneWave)]
        if not chosen:
            return
        used: dict[int, int] = {}
        for k in chosen:
            used.setdefault(int(found.signals[k]), k)
        tones = [waves[k] for k in used.values()]
        places = {signal: n for n, signal in enumerate(used)}
        rows = np.array([places[int(found.signals[k])] for k in chosen])
        values, count = self._values(found, chosen, waves), np.array([len(w.pieces) for w in tones])
        tone_kernels.add_tones(
            tone_kernels.Segments(values, np.ascontiguousarray(found.times[chosen]), rows, found.fades[chosen]),
            tone_kernels.Tones(
                np.cumsum(count) - count,
                count,
                np.array([w.duration for w in tones]),
                np.array([w.edge for w in tones]),
                np.concatenate([w.pieces for w in tones]),
            ),
            self._clock,
            first,
            out,
        )

    def _add_samples(self, found: PathSegments, waves: list[Any], first: int, out: Floats) -> None:
        chosen = [k for k, wave in enumerate(waves) if isinstance(wave, (SampledWave, RadiatedWave))]
        if not chosen:
            return
        if self._table is None:
            self._table = interpolation_table()
        for values, k in zip(self._values(found, chosen, waves), chosen, strict=True):
            wave = waves[k]
            a, b = wave.number(values[tone_kernels.LENGTH]), wave.number(values[tone_kernels.LENGTH_END])
            parts = [(a, sample_kernels.CONSTANT)]
            if a != b:
                parts = [(a, sample_kernels.FALLING), (b, sample_kernels.RISING)]
            for number, ramp in parts:
                sample_kernels.add_samples(
                    (values, np.ascontiguousarray(found.times[k]), int(found.fades[k]), ramp),
                    (*wave.version(number), wave.sampling),
                    self._table,
                    self._clock,
                    first,
                    out,
                )

    def _add_replayed(self, found: PathSegments, waves: list[Any], first: int, out: Floats) -> None:
        """Add the signals that a measured channel has shaped."""
        chosen = [k for k, wave in enumerate(waves) if isinstance(wave, ReplayedWave)]
        if not chosen:
            return
        if self._table is None:
            self._table = interpolation_table()
        for values, k in zip(self._values(found, chosen, waves), chosen, strict=True):
            wave, times = waves[k], found.times[k].copy()
            signal = int(found.signals[k])
            values[:2] -= wave.start
            values[tone_kernels.PHASE] = values[tone_kernels.PHASE_CHANGE] = 0.0
            if self._replays[signal].is_absolute:
                level = power(10.0, 0.05 * float(self._rows[signal]["source_level"]))
                values[tone_kernels.AMPLITUDE] = values[tone_kernels.AMPLITUDE_END] = level
                times[:, tone_kernels.NEAR] = times[:, tone_kernels.NEAR_END] = 1.0
            several = len(wave.channels) > 1  # the file then contains the delays between the elements
            for e in range(len(out)):
                sample_kernels.add_samples(
                    (values, times[:1] if several else times[e : e + 1], int(found.fades[k]), sample_kernels.CONSTANT),
                    (wave.channels[e if several else 0], wave.channels[0][:0], wave.sampling),
                    self._table,
                    self._clock,
                    first,
                    out[e : e + 1],
                )

    def _values(self, found: PathSegments, chosen: list[int], waves: list[Any]) -> Floats:
        """Return the values of the chosen segments for the kernels."""
        values = found.values[chosen]
        emission = np.array([self._rows[int(found.signals[k])]["emission"] for k in chosen])
        values[:, :2] -= emission[:, np.newaxis]
        scale = np.array([waves[k].scale if isinstance(waves[k], ToneWave) else 1.0 for k in chosen])
        values[:, 2:4] *= scale[:, np.newaxis]
        return values


def can_be_heard(wave: Record, time: float) -> bool:
    """Return whether the signal of a row of the WAVEFORM table can arrive at a simulation time in s, or later."""
    return bool(wave["emission"] + wave["duration"] + _MAX_TRAVEL_S >= time)


def load_kernels() -> None:
    """Compile or load all kernels of the synthesis."""
    made = Synthesiser(HydrophoneSettings(), SeaSettings(noise=lambda f: 0.0))
    fill_stable(np.uint64(1), 0, 0, 1.6, np.zeros(2))
    waves, fronts = np.zeros(2, WAVEFORM.dtype), np.zeros(4, FRONT.dtype)
    waves["signal"], waves["samples"] = (1, 2), (0, 1)
    waves["duration"], waves["frequency"] = 1e-3, 1e3
    fronts["signal"], fronts["number"] = (1, 1, 2, 2), (0, 1, 0, 1)
    fronts["emission"] = fronts["arrival"] = fronts["number"] * 1e-3
    fronts["times"], fronts["rates"], fronts["last"] = fronts["emission"][:, np.newaxis], 1.0, fronts["number"]
    made.add_waveforms(waves)
    made.add_samples(1, np.ones(16), 16e3)
    made.add_fronts(fronts)
    made.block(0, 64)
    replays.load_kernels()
