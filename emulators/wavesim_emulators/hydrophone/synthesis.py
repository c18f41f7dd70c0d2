"""Synthesis of the samples of a hydrophone from the fronts of each signal and from noise."""

from __future__ import annotations

from wavesim_emulators.hydrophone.settings import Block, HydrophoneSettings, PressureBlock, SeaSettings
from wavesim_sdk.arrays import Array, Record


class Synthesiser:
    """Synthesiser of the samples of one hydrophone.

    Its results depend only on the records that it received and on the numbers of the samples. The order of the records
    and the size of the blocks change no bit.
    """

    def __init__(self, settings: HydrophoneSettings, sea: SeaSettings) -> None:
        self.settings = settings
        self.sea = sea

    @property
    def lookahead(self) -> float:
        """Time in s for which the caller waits after the end of a block: all fronts that arrive at the reference point
        until then must have been added before the block is made.
        """
        raise NotImplementedError

    def add_waveforms(self, records: Record) -> None:
        """Add records of the WAVEFORM table."""
        raise NotImplementedError

    def add_samples(self, number: int, samples: Array, sampling: float) -> None:
        """Add the samples of a waveform under the number that the ``samples`` column of WAVEFORM refers to."""
        raise NotImplementedError

    def add_fronts(self, records: Record) -> None:
        """Add records of the FRONT table. They must belong to this hydrophone."""
        raise NotImplementedError

    def first_after(self, time: float) -> int:
        """Return the number of the first sample at or after a simulation time in s."""
        raise NotImplementedError

    def pressure(self, first: int, count: int) -> PressureBlock:
        """Return the pressure of ``count`` samples from number ``first`` on. Blocks must be made in ascending order."""
        raise NotImplementedError

    def block(self, first: int, count: int) -> Block:
        """Return ``count`` samples from number ``first`` on, as the converter outputs them."""
        raise NotImplementedError
