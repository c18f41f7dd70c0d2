"""Blocks of samples of one hydrophone, for devices that pass the samples on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from wavesim_sdk.onboard import BrokerBase

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame


@dataclass(frozen=True)
class SampleBlock:
    """Samples (channels, n) as 32-bit floating-point values, where 1 is the full scale of the converter. Sample ``k``
    is taken at the time ``k / rate`` of the hydrophone's clock; ``first`` is the number of the first sample, and
    ``rate`` is in Hz.
    """

    first: int
    rate: float
    samples: Any


def sample_block(frame: ImagingFrame) -> SampleBlock:
    """Return the samples of a hydrophone's frame."""
    bits = int(frame.record["tvg"])
    scale = 1.0 / (1 << (bits - 1)) if bits else 1.0 / float(frame.record["span"])
    rate = frame.sampling_rate
    samples = frame.samples.astype(np.float32) * np.float32(scale)
    return SampleBlock(frame.first_sample, int(rate) if rate == int(rate) else rate, samples)


class HydrophoneBlocks:
    """Source of the blocks of one hydrophone, which the broker receives over the network."""

    def __init__(self, broker: BrokerBase, hydrophone: str) -> None:
        self.broker, self.hydrophone = broker, hydrophone
        broker.subscribe_frames(hydrophone)

    def take(self) -> list[SampleBlock]:
        """Return the blocks received since the last call."""
        return [sample_block(f) for f in self.broker.take_frames() if f.name == self.hydrophone]
