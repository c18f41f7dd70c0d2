"""Relay of the fronts of a simulation to several readers in the same process.

:meth:`~wavesim_server.simulation.Simulation.take_fronts` returns each front once. The relay keeps the newest fronts, so
that an emulator that starts later can still hear them, as in the rings of a server.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from wavesim_sdk.front_rings import WAVEFORMS
from wavesim_sdk.front_tables import FrontBatch
from wavesim_sdk.sounds import MAX_SAMPLES

KEPT_FRONTS = 16_384  #: number of fronts that are kept for each hydrophone, as in the rings of a server

__all__ = ["FrontRelay"]


class FrontRelay:
    """Relay of fronts. ``take`` returns the fronts since its last call; ``hydrophones`` is the number of hydrophones."""

    def __init__(self, take: Callable[[], FrontBatch], hydrophones: int) -> None:
        self._take, self._capacity = take, KEPT_FRONTS * max(hydrophones, 1)
        self._batches: deque[FrontBatch] = deque()
        self._first = 0  # number of the first batch that is kept
        self._epoch = 0
        self._size = self._waveforms = self._samples = 0  # numbers of fronts, waveforms and samples that are kept

    def reader(self) -> Callable[[], FrontBatch]:
        """Return a function that returns the fronts since its last call. The first call returns all kept fronts."""
        epoch, number = -1, 0

        def take() -> FrontBatch:
            nonlocal epoch, number
            newest = self._refresh()
            is_restarted = epoch != self._epoch
            if is_restarted:
                epoch, number = self._epoch, self._first
            new = list(self._batches)[max(number - self._first, 0) :]
            number = self._first + len(self._batches)
            waveforms = np.concatenate([newest.waveforms[:0], *(b.waveforms for b in new)])
            fronts = np.concatenate([newest.fronts[:0], *(b.fronts for b in new)])
            sounds = {sound.number: sound for b in new for sound in b.sounds}
            lost = sum(b.lost for b in new)
            return FrontBatch(waveforms, fronts, newest.time_ns, is_restarted, lost, tuple(sounds.values()))

        return take

    def _refresh(self) -> FrontBatch:
        batch = self._take()
        if batch.is_restarted:
            self._epoch += 1
            self._first += len(self._batches)
            self._batches.clear()
            self._size = self._waveforms = self._samples = 0
        if len(batch.waveforms) or len(batch.fronts) or batch.lost:
            self._batches.append(batch)
            self._size += len(batch.fronts)
            self._waveforms += len(batch.waveforms)
            self._samples += _samples(batch)
            while self._is_full() and len(self._batches) > 1:
                oldest = self._batches.popleft()
                self._size -= len(oldest.fronts)
                self._waveforms -= len(oldest.waveforms)
                self._samples -= _samples(oldest)
                self._first += 1
        return batch

    def _is_full(self) -> bool:
        return self._size > self._capacity or self._waveforms > WAVEFORMS or self._samples > MAX_SAMPLES


def _samples(batch: FrontBatch) -> int:
    """Return the number of samples of all sounds in a batch."""
    return sum(len(sound.samples) for sound in batch.sounds)
