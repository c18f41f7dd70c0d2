"""Virtual passive sonar board with the stream of a Sylphase board: endless samples of four hydrophones over TCP.

The stream has no header and accepts no commands. Each group of four 16-bit integers (signed, big-endian) contains the
samples of the four elements at one time; 32768 is the full scale of the converter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from wavesim_sdk.broker import Step
from wavesim_sdk.errors import BrokerError
from wavesim_sdk.onboard import BrokerBase

if TYPE_CHECKING:
    from wavesim_sdk.imaging_frames import ImagingFrame

CHANNELS = 4
MAX_GAP_S = 1.0  #: maximum duration in s of missing samples that silence replaces


class SylphaseStream:
    """Stream of the samples of one hydrophone to all hosts."""

    errors = 0  #: number of invalid commands; the board has none

    def __init__(self, broker: BrokerBase, hydrophone: str, send: Callable[[bytes], None]) -> None:
        self._broker, self._hydrophone, self._send = broker, hydrophone, send
        self._next: int | None = None  # number of the sample after the last one that was sent
        broker.subscribe_frames(hydrophone)

    def receive(self, data: bytes) -> None:
        """Ignore bytes from a host."""

    def step(self, step: Step) -> None:
        """Send the blocks that have arrived."""
        for frame in self._broker.take_frames():
            if frame.name == self._hydrophone:
                self._send(self._encode(frame))

    def _encode(self, frame: ImagingFrame) -> bytes:
        """Return the bytes of a block. Silence replaces missing samples before it, so that times in the stream stay
        correct.
        """
        samples = frame.sixteen_bit_samples
        if len(samples) != CHANNELS:
            raise BrokerError(f"hydrophone '{frame.name}' has {len(samples)} elements; this device needs {CHANNELS}")
        gap = 0 if self._next is None else frame.first_sample - self._next
        if not 0 <= gap <= MAX_GAP_S * frame.sampling_rate:
            gap = 0  # the run was reset or rewound, or too much is missing
        self._next = frame.first_sample + samples.shape[1]
        return bytes(2 * CHANNELS * gap) + np.ascontiguousarray(samples.T).astype(">i2").tobytes()
