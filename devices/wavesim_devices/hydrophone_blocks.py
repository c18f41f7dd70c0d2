"""Blocks of samples of one hydrophone, for devices that pass the samples on."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.onboard import BrokerBase

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame


@dataclass(frozen=True)
class HydrophoneBlock:
    """Samples (channels, n) as 32-bit floating-point values, where 1 is the full scale of the converter. Sample ``k``
    is taken at the time ``k / rate`` of the hydrophone's clock; ``first`` is the number of the first sample, and
    ``rate`` is in Hz.
    """

    first: int
    rate: float
    samples: Any


def sample_block(frame: ImagingFrame) -> HydrophoneBlock:
    """Return the samples of a hydrophone's frame."""
    bits = int(frame.record["tvg"])
    scale = 1.0 / (1 << (bits - 1)) if bits else 1.0 / float(frame.record["span"])
    rate = frame.sampling_rate
    samples = frame.samples.astype(np.float32) * np.float32(scale)
    return HydrophoneBlock(frame.first_sample, int(rate) if rate == int(rate) else rate, samples)


class HydrophoneBlocks:
    """Source of the blocks of one hydrophone, which the broker receives over the network."""

    def __init__(self, broker: BrokerBase, hydrophone: str) -> None:
        self.broker, self.hydrophone = broker, hydrophone
        broker.subscribe_frames(hydrophone)

    def take(self) -> list[HydrophoneBlock]:
        """Return the blocks received since the last call."""
        return [sample_block(f) for f in self.broker.take_frames() if f.name == self.hydrophone]


class MissingSamples(Exception):
    """Raised if samples were lost or are no longer kept."""


class SampleHistory:
    """The newest samples of the first channel, for ``seconds`` s."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rate = 0.0  #: sampling rate in Hz; 0 until the first block has arrived
        self._parts: deque[tuple[int, Any]] = deque()  # number of the first sample, and the samples
        self._start = 0  # number of the first sample after the start or a gap

    def add(self, block: HydrophoneBlock) -> None:
        """Add a block. After a gap, the earlier samples are dropped."""
        self.rate = block.rate
        if not self._parts or self.end != block.first:
            self._parts.clear()
            self._start = block.first
        self._parts.append((block.first, block.samples[0]))
        while self.end - self._parts[1 if len(self._parts) > 1 else 0][0] > self.seconds * self.rate:
            self._parts.popleft()
            self._start = self._parts[0][0]

    @property
    def end(self) -> int:
        """Number of the sample after the newest one; 0 before the first block."""
        return self._parts[-1][0] + len(self._parts[-1][1]) if self._parts else 0

    def between(self, first: int, last: int) -> Any:
        """Return the samples from ``first`` up to, but not including, ``last``, or None if they have not arrived yet.
        Samples before the start of the run are 0. Raises MissingSamples if they are not available.
        """
        if last > self.end:
            return None
        begin = max(first, 0)
        if begin < self._start:
            raise MissingSamples
        found = [s[max(begin - n, 0) : max(last - n, 0)] for n, s in self._parts]
        return np.concatenate([np.zeros(begin - first, np.float32), *found])
