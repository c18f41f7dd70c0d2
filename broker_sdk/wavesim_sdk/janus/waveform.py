"""The waveform of JANUS: frequency-hopped binary frequency-shift keying (FH-BFSK)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from wavesim_sdk import elementary
from wavesim_sdk.errors import InvalidArgument
from wavesim_sdk.janus.coding import Bits, encode
from wavesim_sdk.janus.packet import Packet

__all__ = ["INITIAL_BAND", "ParameterSet", "Transmission"]

PREAMBLE: Bits = np.unpackbits(np.frombuffer(bytes.fromhex("AEC7CD20"), np.uint8))
PAIRS = 13
EDGE = 1 / 16  #: length of the rise and of the fall of a chip, as a fraction of the chip
WAKE_UP_CHIPS = 4  #: length of each of the three wake-up tones
WAKE_UP_SILENCE = 0.4  #: s between the wake-up tones and the preamble
SILENCE_CHIPS = 5  #: silence at both ends of a file, as in the files of the reference implementation

Samples = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ParameterSet:
    """The band of a JANUS transmission. The default is parameter set 1, 9440 to 13600 Hz.

    Without a ``bandwidth`` (Hz), it is a third of the ``centre`` frequency (Hz).
    """

    centre: int = 11520
    bandwidth: int = 0

    def __post_init__(self) -> None:
        if self.bandwidth == 0:
            default = 4160 if self.centre == 11520 else round(self.centre / 3)
            object.__setattr__(self, "bandwidth", default)
        if not (0 < self.centre <= 1_000_000 and 260 <= self.bandwidth <= self.centre):
            raise InvalidArgument(
                "expected a centre frequency up to 1 MHz, and a bandwidth between 260 Hz and the centre frequency, got "
                f"{self.centre} Hz and {self.bandwidth} Hz"
            )

    @property
    def spacing(self) -> int:
        """Spacing of the tones in Hz, which is also the number of chips per second."""
        return round(self.bandwidth / (2 * PAIRS))

    @property
    def min_sampling(self) -> int:
        """Lowest sampling rate in Hz for this band."""
        return 2 * (self.centre + 15 * self.spacing)

    def check_sampling(self, sampling: float, name: str = "the sampling rate") -> int:
        """Return the sampling rate in Hz. Raise InvalidArgument if it is too low or not a whole number."""
        if sampling != int(sampling):
            raise InvalidArgument(f"{name} must be a whole number of Hz, got {sampling:g} Hz")
        if sampling < self.min_sampling:
            raise InvalidArgument(
                f"{name} of {sampling:g} Hz is too low for JANUS around {self.centre} Hz: use at least"
                f" {self.min_sampling} Hz"
            )
        return int(sampling)


INITIAL_BAND = ParameterSet()


@functools.lru_cache(maxsize=16)
def hops(count: int) -> npt.NDArray[np.int64]:
    """Return the pair of tones of each chip, counted from the first chip of the preamble."""
    result = np.empty(count, np.int64)
    for i in range(count):
        block, place = divmod(i, PAIRS - 1)
        root = pow(2, place + 1, PAIRS)  # 2 is a primitive root of 13
        result[i] = (-(-(i + 1) // (PAIRS * (PAIRS - 1))) * root + block * root * root) % PAIRS
    result.flags.writeable = False  # shared by all callers
    return result


def tones(chips: npt.ArrayLike, parameters: ParameterSet = INITIAL_BAND) -> npt.NDArray[np.int64]:
    """Return the frequency in Hz of each chip, counted from the first chip of the preamble."""
    values = np.asarray(chips, np.int64)
    spacing = parameters.spacing
    return parameters.centre - PAIRS * spacing + 2 * spacing * hops(len(values)) + spacing * values


def envelope(phase: Samples) -> Samples:
    """Return the amplitude of a chip at a fraction of its length (0 to 1). The edges are raised cosines."""
    beside = np.minimum(np.minimum(phase, 1.0 - phase), EDGE) / EDGE
    return np.asarray(0.5 - 0.5 * elementary.cos(math.pi * beside))


@dataclass(frozen=True)
class Transmission:
    """A JANUS signal: preamble, packet and cargo, optionally with wake-up tones before them.

    Time 0 is the start of the preamble; wake-up tones have negative times. The amplitude of the tones is 1.
    """

    packet: Packet
    cargo: bytes = b""
    parameters: ParameterSet = INITIAL_BAND
    wake_up: bool = False
    chips: Bits = field(init=False, repr=False, compare=False)  #: with the preamble

    def __post_init__(self) -> None:
        parts = [PREAMBLE, encode(self.packet.to_bytes())]
        if self.cargo:
            parts.append(encode(self.cargo))
        object.__setattr__(self, "chips", np.concatenate(parts))

    @property
    def start(self) -> float:
        """Time of the first sound in s: 0, or negative with wake-up tones."""
        return -(3 * WAKE_UP_CHIPS / self.parameters.spacing + WAKE_UP_SILENCE) if self.wake_up else 0.0

    @property
    def end(self) -> float:
        """Time of the end in s."""
        return len(self.chips) / self.parameters.spacing

    def pressure(self, times: Samples) -> Samples:
        """Return the signal at any times in s."""
        result = _tone_sequence(times, tones(self.chips, self.parameters), 1 / self.parameters.spacing)
        if self.wake_up:
            edge = (PAIRS - 1) * self.parameters.spacing
            wake_up = self.parameters.centre + np.array([-edge, 0, edge])
            result += _tone_sequence(times - self.start, wake_up, WAKE_UP_CHIPS / self.parameters.spacing)
        return result

    def samples(self, sampling: float, silence: float | None = None) -> Samples:
        """Return the signal at a sampling rate in Hz, with ``silence`` (s) at both ends, by default 5 chips."""
        rate = self.parameters.check_sampling(sampling)
        silence = SILENCE_CHIPS / self.parameters.spacing if silence is None else silence
        count = math.ceil((self.end - self.start + 2 * silence) * rate - 1e-6)
        return self.pressure(np.arange(count) / rate + (self.start - silence))


def _tone_sequence(times: Samples, frequencies: npt.NDArray[np.int64], length: float) -> Samples:
    """Return tones of equal length (s), one after the other from time 0, each beginning at phase 0."""
    position = times / length
    index = np.floor(position).astype(np.int64)
    inside = (index >= 0) & (index < len(frequencies))
    result = np.zeros(len(times))
    number, fraction = index[inside], (position - index)[inside]
    turns = frequencies[number] * length * fraction
    result[inside] = envelope(fraction) * elementary.cos(2 * math.pi * (turns - np.floor(turns)))
    return result
