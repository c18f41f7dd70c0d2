"""Receiver for JANUS: detection of the preamble, search over time and Doppler, soft decisions, decoding.

The decisions use the energies at the tones only, so the receiver needs no phase. A packet is reported if its check sum
and its version are right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.janus import coding, waveform
from wavesim_sdk.janus.baseband import PER_CHIP, Complex, Downconverter
from wavesim_sdk.janus.packet import Packet, cargo_size
from wavesim_sdk.janus.waveform import INITIAL_BAND, PREAMBLE, ParameterSet

__all__ = ["JanusReceiver", "JanusReception"]

THRESHOLD = 2.25  #: mean energy of the preamble's chips relative to the noise; noise alone gives 1
SOUND_SPEED = 1500.0
_HOP = 5  #: baseband samples between two start times of the detector (an eighth of a chip)
_SPEED_STEP = 2.5  #: m/s between two hypotheses of the detector
_GUARD = len(PREAMBLE) * PER_CHIP // _HOP  #: a detection has the highest peak within one preamble before and after it
_CHIPS = len(PREAMBLE) + coding.PACKET_CHIPS
_SPAN = int(1.01 * _CHIPS * PER_CHIP) + 2 * PER_CHIP  #: baseband samples from a detection to the end of its packet
_SLACK = 2 * PER_CHIP  #: baseband samples around a packet that the search needs

_DRIFT = np.arange(-3.0, 4.0)  #: baseband samples by which the timing may change within 144 chips of cargo
_SHAPE = waveform.envelope((np.arange(PER_CHIP) + 0.5) / PER_CHIP).astype(np.float32)
_FLOOR = 1e-6  #: energy relative to the strongest one nearby that counts as silence: filters ring there

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class JanusReception:
    """A packet that was received.

    ``start`` is the time of the preamble's first chip in s after the first sample, ``speed`` the speed in m/s at which
    the range decreases, and ``ec_n0`` the energy of a chip relative to the noise density in dB, averaged over the
    packet. ``cargo`` is None if the packet announces cargo and the samples end before it is complete. Cargo has no
    check sum.
    """

    packet: Packet
    start: float
    speed: float
    ec_n0: float
    cargo: bytes | None = b""


class _Detection(NamedTuple):
    start: int  # baseband sample
    speed: float


@dataclass
class _Decoded:
    packet: Packet
    start: float  # baseband sample from which the chips were read
    peak: float  # the same, between samples
    speed: float
    ec_n0: float


class JanusReceiver:
    """Receiver for a stream of samples of one channel.

    ``sampling`` is in Hz. ``max_speed`` (m/s) limits the search over Doppler. A lower ``threshold`` detects weaker
    packets and costs more time, because the receiver then tries to decode more noise.
    """

    def __init__(
        self,
        sampling: float,
        parameters: ParameterSet = INITIAL_BAND,
        *,
        max_speed: float = 5.0,
        sound_speed: float = SOUND_SPEED,
        threshold: float = THRESHOLD,
    ) -> None:
        if not (0 <= max_speed <= 20 and 1000 < sound_speed < 2000 and threshold > 1):
            raise InvalidArgument(
                "expected a max_speed of 0 to 20 m/s, a sound_speed of 1000 to 2000 m/s and a threshold above 1, got"
                f" {max_speed:g}, {sound_speed:g} and {threshold:g}"
            )
        self.parameters, self.sound_speed, self.threshold = parameters, sound_speed, threshold
        self._converter = Downconverter(sampling, parameters)
        self.rate = self._converter.rate
        steps = math.ceil(max_speed / _SPEED_STEP)
        self._speeds = np.linspace(-max_speed, max_speed, 2 * steps + 1)
        self.detections = 0  #: number of detected preambles; some of them lead to no packet
        self._signal = np.zeros(0, np.complex64)  # baseband from the sample self._first on
        self._first = 0
        self._scored, self._confirmed = 0, 0  # in steps of _HOP
        self._score = np.zeros((0, len(self._speeds)))  # from self._score_first on
        self._score_first = 0
        self._pending: list[_Detection] = []
        self._cargo: _Decoded | None = None  # packet whose cargo is still incomplete
        self._busy = 0.0  # baseband sample at which the last packet ends

    def push(self, samples: npt.ArrayLike) -> list[JanusReception]:
        """Process samples of any number, and return the packets that they complete."""
        return self._process(self._converter.push(samples), None)

    def finish(self) -> list[JanusReception]:
        """Return the packets that the last samples contain. Call this method once, after all samples."""
        rate = self._converter.sampling
        total = self._converter.position
        end = total * self.rate // rate
        silence = np.zeros(3 * rate - total % rate)  # completes the last blocks and the last packet
        return self._process(self._converter.push(silence), end)

    # ---------------------------------------------------------------- stream

    def _process(self, new: Complex, last: int | None) -> list[JanusReception]:
        """Append baseband samples. ``last`` is the end of the recording, if known."""
        self._signal = np.concatenate([self._signal, new])
        end = self._first + len(self._signal)
        self._detect(end if last is None else last, last is not None)
        result: list[JanusReception] = []
        while True:
            if self._cargo is not None:
                if (reception := self._finish_cargo(self._cargo, end, last)) is None:
                    break
                result.append(reception)
                self._cargo = None
            if not self._pending or (last is None and self._pending[0].start + _SPAN > end):
                break
            detection = self._pending.pop(0)
            if detection.start < self._busy or (decoded := self._decode(detection)) is None:
                continue
            self._busy = decoded.start + _CHIPS * PER_CHIP
            if size := cargo_size(decoded.packet):
                self._busy += coding.chip_count(size) * PER_CHIP
                self._cargo = decoded
            else:
                result.append(self._reception(decoded, b""))
        self._forget()
        return result

    def _forget(self) -> None:
        """Drop the samples that are no longer needed."""
        needed = [self._scored * _HOP, *(d.start for d in self._pending[:1])]
        if self._cargo is not None:
            needed.append(int(self._cargo.start))
        elif self._score_first + len(self._score) > self._confirmed:
            needed.append(self._confirmed * _HOP)
        drop = max(0, min(needed) - _SLACK - self._first)
        self._signal = self._signal[drop:]
        self._first += drop

    # ---------------------------------------------------------------- detection

    def _stretch(self, speed: float) -> float:
        """Return the factor by which frequencies are higher at the receiver."""
        return 1.0 + speed / self.sound_speed

    def _offsets(self, frequencies: npt.NDArray[Any], stretch: float) -> Floats:
        """Return baseband frequencies in cycles per sample."""
        return (frequencies * stretch - self.parameters.centre) / self.rate

    def _detect(self, end: int, last: bool) -> None:
        """Compute the scores of all start times before ``end``, and find the peaks that no later score can exceed."""
        length = math.ceil(len(PREAMBLE) * PER_CHIP * 1.02)
        count = (end - self._scored * _HOP - length - PER_CHIP) // _HOP
        if count > 0:
            begin = self._scored * _HOP - self._first
            frames = np.lib.stride_tricks.sliding_window_view(self._signal[begin:], PER_CHIP)[::_HOP]
            self._score = np.concatenate([self._score, self._scores_of(frames, count)])
            self._scored += count
        scores = self._score.max(axis=1, initial=0.0)
        limit = self._scored - (0 if last else _GUARD)
        for near in np.flatnonzero(scores[: max(0, limit - self._score_first)] >= self.threshold):
            at = int(near) + self._score_first
            if at >= self._confirmed and scores[near] == scores[max(0, near - _GUARD) : near + _GUARD + 1].max():
                speed = float(self._speeds[int(np.argmax(self._score[near]))])
                self._pending.append(_Detection(at * _HOP, speed))
                self.detections += 1
        self._confirmed = max(self._confirmed, limit)
        drop = max(0, self._confirmed - _GUARD - self._score_first)
        self._score, self._score_first = self._score[drop:], self._score_first + drop

    def _scores_of(self, frames: Complex, count: int) -> Floats:
        """Return the energy of the preamble's chips relative to the noise, (start times, speeds).

        The noise is the mean energy at all other tones during the same chips.
        """
        spacing, pairs = self.parameters.spacing, waveform.PAIRS
        grid = self.parameters.centre + spacing * np.arange(-pairs, pairs, dtype=float)
        own = (waveform.tones(PREAMBLE, self.parameters) - int(grid[0])) // spacing
        result = np.zeros((count, len(self._speeds)))
        for i, speed in enumerate(self._speeds):
            stretch = self._stretch(speed)
            phases = np.outer(np.arange(PER_CHIP), self._offsets(grid, stretch))
            energies = np.abs(frames @ np.exp(-2j * np.pi * phases).astype(np.complex64)) ** 2
            energies += _FLOOR * energies.max()
            of_all = energies.sum(axis=1)
            at = np.rint(np.arange(len(PREAMBLE)) * PER_CHIP / _HOP / stretch).astype(int)
            wanted, total = np.zeros(count), np.zeros(count)
            for k, tone in zip(at, own, strict=True):
                wanted += energies[k : k + count, tone]
                total += of_all[k : k + count]
            noise = (total - wanted) / (len(grid) - 1)
            np.divide(wanted, noise, out=result[:, i], where=noise > 0)
        return result

    # ---------------------------------------------------------------- decoding

    def _energies(self, starts: Floats, speed: float, chips: npt.NDArray[np.int64]) -> Floats:
        """Return the energies at both tones of some chips for some start times: (starts, chips, 2)."""
        stretch = self._stretch(speed)
        at = np.rint(np.asarray(starts)[:, None] + chips * PER_CHIP / stretch).astype(np.int64) - self._first
        at = np.clip(at, 0, max(0, len(self._signal) - PER_CHIP))
        windows = self._signal[at[..., None] + np.arange(PER_CHIP)]
        low = waveform.tones(np.zeros(int(chips[-1]) + 1), self.parameters)[chips]
        both = np.stack([low, low + self.parameters.spacing], axis=-1)
        phases = self._offsets(both, stretch)[:, None, :] * np.arange(PER_CHIP)[:, None]
        template = _SHAPE[:, None] * np.exp((-2j * np.pi * phases).astype(np.complex64))
        energies: Floats = np.abs(np.moveaxis(windows, 0, 1) @ template).swapaxes(0, 1).astype(float) ** 2
        return energies

    def _search(
        self, start: float, speed: float, around: tuple[int, Floats], known: coding.Bits, count: int
    ) -> tuple[float, float]:
        """Return the start and the speed for which the first ``count`` chips have the most energy.

        ``around`` contains the largest distance from ``start`` and the distances from ``speed`` to try. ``known`` are
        the first chips; each chip after them counts with its stronger tone.
        """
        starts = start + np.arange(-around[0], around[0] + 1, dtype=float)
        chips = np.arange(count)
        best, found = -1.0, (start, speed)
        for candidate in speed + around[1]:
            energies = self._energies(starts, candidate, chips)
            first = energies[:, np.arange(len(known)), known.astype(int)].sum(axis=1)
            sums = first + energies[:, len(known) :].max(axis=2).sum(axis=1)
            at = int(np.argmax(sums))
            if sums[at] > best:
                best, found = float(sums[at]), (float(starts[at]), float(candidate))
        return found

    def _decode(self, detection: _Detection) -> _Decoded | None:
        """Return the packet at a detection, or None if its check sum is wrong."""
        start, speed = self._search(
            detection.start, detection.speed, (6, np.linspace(-1.25, 1.25, 5)), PREAMBLE, len(PREAMBLE)
        )
        start, speed = self._search(start, speed, (4, np.linspace(-1.5, 1.5, 7)), PREAMBLE, _CHIPS)
        for _ in range(2):
            energies = self._energies(np.array([start]), speed, np.arange(_CHIPS))[0]
            data = coding.decode(energies[len(PREAMBLE) :, 1] - energies[len(PREAMBLE) :, 0])
            assert isinstance(data, bytes)
            chips = np.concatenate([PREAMBLE, coding.encode(data)])
            start, speed = self._search(start, speed, (3, np.linspace(-1.0, 1.0, 11)), chips, _CHIPS)
            try:
                decoded = Packet.from_bytes(data)
            except InvalidArgument:
                continue
            near = self._energies(start + np.array([-2.0, 0.0, 2.0]), speed, np.arange(_CHIPS))
            before, own, after = near[:, np.arange(_CHIPS), chips].mean(axis=1)
            other = near[1, np.arange(_CHIPS), 1 - chips].mean()
            ratio = max(own - other, 0.0) / max(other, 1e-12 * own)
            # vertex of a parabola; the chips' samples are half a sample off the symmetric template
            peak = start - 0.5 + (before - after) / min(before - 2 * own + after, -1e-12 * own)
            return _Decoded(decoded, start, float(peak), speed, 10 * math.log10(max(ratio, 1e-3)))
        return None

    def _finish_cargo(self, decoded: _Decoded, end: int, last: int | None) -> JanusReception | None:
        """Return the packet with its cargo, or None if more samples are needed."""
        size = cargo_size(decoded.packet)
        count = coding.chip_count(size)
        needed = decoded.start + (_CHIPS + count) * PER_CHIP / self._stretch(decoded.speed)
        if last is None and needed + _SLACK > end:
            return None
        if last is not None and needed > last + PER_CHIP:
            return self._reception(decoded, None)
        start, soft = decoded.start, []
        for first in range(_CHIPS, _CHIPS + count, coding.PACKET_CHIPS):  # follows changes of the range rate
            chips = np.arange(first, min(first + coding.PACKET_CHIPS, _CHIPS + count))
            energies = self._energies(start + _DRIFT, decoded.speed, chips)
            at = int(np.argmax(energies.max(axis=2).sum(axis=1)))
            start += float(_DRIFT[at])
            soft.append(energies[at, :, 1] - energies[at, :, 0])
        cargo = coding.decode(np.concatenate(soft))
        assert isinstance(cargo, bytes)
        return self._reception(decoded, cargo)

    def _reception(self, decoded: _Decoded, cargo: bytes | None) -> JanusReception:
        return JanusReception(decoded.packet, decoded.peak / self.rate, decoded.speed, decoded.ec_n0, cargo)
