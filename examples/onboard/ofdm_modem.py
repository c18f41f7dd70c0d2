"""A modem in software: OFDM with differential phases, from 20 to 28 kHz.

A packet is two chirps, a reference symbol, a header symbol, and the symbols of the payload::

    chirp . . . chirp . . . | reference | header | payload ...

The receiver finds the chirps with a matched filter. The interval between them gives the Doppler shift, and the first arrival gives
the start. Each symbol has 85 carriers and begins with a copy of its end, which is longer than the echoes. A carrier
conveys two bits by the change of its phase since the last symbol, so the receiver needs no estimate of the channel. The
code of rate 1/2 and its interleaver are those of JANUS.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from wavesim_sdk import elementary
from wavesim_sdk.arrays import Floats, Ints
from wavesim_sdk.checksums import crc16
from wavesim_sdk.janus import coding

RATE = 96_000  #: sampling rate, Hz
SIZE = 1024  #: samples of a symbol
PREFIX = 960  #: samples that are repeated before each symbol, 10 ms
CARRIERS = range(214, 299)  #: multiples of RATE/SIZE = 93.75 Hz
CENTRE = 256  #: 24 kHz
CHIRP = 1920  #: samples of a chirp, 20 ms
SPACING = 7680  #: samples from one chirp to the next, 80 ms
DATA = 10_560  #: sample at which the reference symbol begins
HEADER_BYTES = 6  #: to, from, length, number, check sum
MAX_PAYLOAD = 64  #: bytes
MAX_SPEED = 5.0  #: m/s
SOUND_SPEED = 1500.0  #: m/s
THRESHOLD = 40.0  #: power of a detected chirp behind the matched filter, relative to the median power

Complex = npt.NDArray[np.complex128]
WINDOW = 65_536  #: samples that are searched at a time


def symbols_of(count: int) -> int:
    """Return the number of symbols that carry ``count`` bytes."""
    return -(-coding.chip_count(count) // (2 * len(CARRIERS)))


LONGEST = DATA + (2 + symbols_of(MAX_PAYLOAD + 2)) * (SIZE + PREFIX) + 2 * PREFIX


@dataclass(frozen=True)
class Heard:
    """A packet that was received. ``sample`` is the number of the sample at which its first chirp began, and ``speed``
    the speed in m/s at which the range decreases. ``payload`` is None if its check sum was wrong.
    """

    sample: int
    speed: float
    sender: int
    to: int
    number: int
    payload: bytes | None


# ------------------------------------------------------------------ transmitter


@cache
def chirp() -> Floats:
    """Return the chirp: 20 to 28 kHz in 20 ms, with soft edges."""
    t = np.arange(CHIRP) / RATE
    turns = 20e3 * t + 0.5 * 8e3 * t * t * RATE / CHIRP
    edge = np.minimum(np.minimum(np.arange(CHIRP), CHIRP - 1 - np.arange(CHIRP)) / 96.0, 1.0)
    return np.asarray(edge * elementary.cos(2.0 * math.pi * (turns - np.floor(turns))))


def symbol(eighths: Ints) -> Floats:
    """Return a symbol with its prefix. ``eighths`` are the phases of the carriers in eighths of a turn."""
    n = np.arange(-PREFIX, SIZE)
    total = np.zeros(len(n))
    for k, phase in zip(CARRIERS, eighths.tolist(), strict=True):
        turns = (k * n + phase * (SIZE // 8)) % SIZE / SIZE
        total += elementary.cos(2.0 * math.pi * turns)
    return total * math.sqrt(1.0 / len(CARRIERS))  # the power of a chirp


def packet(payload: bytes, *, sender: int, to: int, number: int = 0) -> Floats:
    """Return the samples of a packet."""
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"a payload has at most {MAX_PAYLOAD} bytes, got {len(payload)}")
    head = bytes([to, sender, len(payload), number & 255])
    parts = [head + crc16(head, 0xFFFF).to_bytes(2, "big")]
    if payload:
        parts.append(payload + crc16(payload, 0xFFFF).to_bytes(2, "big"))
    phases = np.array([k * k % 8 for k in range(len(CARRIERS))])  # the reference: phases whose sum has no peak
    samples = [np.zeros(DATA), symbol(phases)]
    for start in (0, SPACING):
        samples[0][start : start + CHIRP] = chirp()
    for part in parts:
        bits = np.zeros(symbols_of(len(part)) * 2 * len(CARRIERS), np.int64)
        coded = coding.encode(part)
        bits[: len(coded)] = coded
        for pair in bits.reshape(-1, len(CARRIERS), 2):
            phases = (phases + np.array([1, 7, 3, 5])[2 * pair[:, 0] + pair[:, 1]]) % 8
            samples.append(symbol(phases))
    return np.concatenate(samples)


# ------------------------------------------------------------------ receiver


class OfdmReceiver:
    """Receiver for a stream of samples at 96 kHz."""

    def __init__(self) -> None:
        self._samples = np.zeros(0)
        self._first = 0  # number of the first sample
        spectrum = np.fft.fft(chirp(), WINDOW)
        band = np.fft.fftfreq(WINDOW, 1.0 / RATE)
        self._pass = np.where((band > 19e3) & (band < 29e3), 2.0, 0.0)
        self._match = np.conj(spectrum)
        self._last = -LONGEST  # start of the last packet

    def push(self, samples: Floats, first: int | None = None) -> list[Heard]:
        """Process samples, and return the packets that they complete. ``first`` is the number of the first sample; a gap
        before it discards an incomplete packet.
        """
        if first is not None and first != self._first + len(self._samples):
            self._samples, self._first = np.zeros(0), first
        self._samples = np.concatenate([self._samples, samples])
        found: list[Heard] = []
        while len(self._samples) >= WINDOW:
            found += self._search(self._samples[:WINDOW])
            self._samples = self._samples[WINDOW - LONGEST :]
            self._first += WINDOW - LONGEST
        return found

    def finish(self) -> list[Heard]:
        """Return the packets in the last samples."""
        return self.push(np.zeros(WINDOW))

    def _search(self, samples: Floats) -> list[Heard]:
        """Return the packets that begin in the part of a window in which they are complete."""
        analytic = np.fft.ifft(np.fft.fft(samples) * self._pass)
        matched = np.fft.ifft(np.fft.fft(analytic) * self._match)
        power = np.abs(matched) ** 2
        # a packet has two chirps: the weaker one decides
        reach = math.ceil(SPACING * MAX_SPEED / SOUND_SPEED) + 2
        near = np.max([power[SPACING + d : SPACING + d + WINDOW - LONGEST] for d in range(-reach, reach + 1)], axis=0)
        both = np.minimum(power[: WINDOW - LONGEST], near)
        found = []
        limit = THRESHOLD * float(np.median(power))
        while both.max() > limit > 0.0:
            peak = int(np.argmax(both))
            both[max(0, peak - CHIRP) : peak + CHIRP] = 0.0
            if abs(self._first + peak - self._last) < DATA:
                continue
            if (heard := self._read(analytic, matched, peak)) is not None:
                self._last = self._first + peak
                found.append(heard)
        return sorted(found, key=lambda heard: heard.sample)

    def _read(self, analytic: Complex, matched: Complex, peak: int) -> Heard | None:
        """Return the packet whose strongest arrival of the first chirp begins at ``peak``."""
        power = np.abs(matched) ** 2
        early = max(0, peak - PREFIX + 100)
        start = early + int(np.argmax(power[early : peak + 1] > 0.1 * power[peak]))
        stretch = self._stretch(matched, peak)
        soft = self._soft(analytic, start, stretch, 1)
        head = coding.decode(soft[: coding.chip_count(HEADER_BYTES)])
        assert isinstance(head, bytes)
        to, sender, length, number = head[:4]
        if crc16(head[:4], 0xFFFF).to_bytes(2, "big") != head[4:] or length > MAX_PAYLOAD:
            return None
        payload: bytes | None = b""
        if length:
            soft = self._soft(analytic, start, stretch, 1 + symbols_of(length + 2))[2 * len(CARRIERS) :]
            data = coding.decode(soft[: coding.chip_count(length + 2)])
            assert isinstance(data, bytes)
            right = crc16(data[:-2], 0xFFFF).to_bytes(2, "big") == data[-2:]
            payload = data[:-2] if right else None
        return Heard(self._first + start, (stretch - 1.0) * SOUND_SPEED, sender, to, number, payload)

    @staticmethod
    def _stretch(matched: Complex, peak: int) -> float:
        """Return the factor by which frequencies are higher at the receiver, from the interval between both chirps."""
        reach = math.ceil(SPACING * MAX_SPEED / SOUND_SPEED) + 2
        width = 200
        first = matched[max(0, peak - width) : peak + width]
        begin = max(0, peak - width) + SPACING
        sums = np.array([abs(np.vdot(first, matched[begin + d :][: len(first)])) for d in range(-reach, reach + 1)])
        best = int(np.clip(np.argmax(sums), 1, len(sums) - 2))
        left, middle, right = sums[best - 1 : best + 2]
        vertex = 0.5 * (left - right) / min(left - 2.0 * middle + right, -1e-12 * middle)
        return SPACING / (SPACING + best - reach + float(np.clip(vertex, -1.0, 1.0)))

    @staticmethod
    def _soft(analytic: Complex, start: int, stretch: float, count: int) -> Floats:
        """Return the soft decisions of ``count`` symbols after the reference."""
        k = np.array(CARRIERS) - CENTRE
        sums = []
        for number in range(count + 1):
            # half of the prefix remains on either side for echoes, and for an error of the start
            sent = DATA + number * (SIZE + PREFIX) + PREFIX - 100 + np.arange(SIZE)
            at = start + sent / stretch
            low = np.floor(at).astype(np.int64)
            base = analytic[low[0] : low[-1] + 2] * np.exp(-2j * np.pi * CENTRE / SIZE * np.arange(low[0], low[-1] + 2))
            part = base[low - low[0]] + (at - low) * (base[low - low[0] + 1] - base[low - low[0]])
            sums.append(np.fft.fft(part * np.exp(2j * np.pi * CENTRE / SIZE * (at - sent)))[k])
        changes = np.array(sums[1:]) * np.conj(np.array(sums[:-1]))
        # changes by 1, 7, 3, 5 eighths of a turn are 00, 01, 10, 11
        return np.stack([-changes.real, -changes.imag], axis=-1).ravel()
