"""Collected waveforms and fronts: those that have not been taken yet, and recent ones for readers that start again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.front_tables import FRONT, WAVEFORM, FrontBatch

#: time in s for which fronts are kept after their arrival: longer than the longest block of samples and the interval
#: between two fronts, so that a reader can continue after a return to a snapshot
HISTORY_S = 2.0
MAX_WAITING = 131_072  #: maximum number of fronts that wait to be taken; the oldest are discarded
MANY_WAVEFORMS = 256  #: number of waveforms from which on those of past signals are discarded


@dataclass
class FrontHistory:
    """The waveforms and fronts of a simulation since the last call of :meth:`take`, and recent earlier ones.

    A batch is discarded when it has been taken and all its fronts are older than HISTORY_S.
    """

    recent: list[Record] = field(default_factory=list)  #: batches of fronts, the oldest first
    kept: int = 0  #: total number of fronts in ``recent``
    waiting: int = 0  #: number of batches at the end of ``recent`` that have not been taken yet
    waveforms: dict[int, Record] = field(default_factory=dict)  #: waveform of each signal, by its number
    new_waveforms: list[int] = field(default_factory=list)  #: numbers of the waveforms that have not been taken yet
    is_restarted: bool = True
    lost: int = 0  #: fronts that were discarded before they were taken

    def add(self, waveforms: Record, fronts: Record, in_progress: Callable[[], set[int]]) -> None:
        """Add records. ``in_progress`` returns the numbers of the signals that may have further fronts."""
        for k in range(len(waveforms)):
            number = int(waveforms[k]["signal"])
            self.waveforms[number] = waveforms[k : k + 1]
            self.new_waveforms.append(number)
        if len(fronts):
            self.recent.append(fronts)
            self.kept += len(fronts)
            self.waiting += 1
            self._discard(float(fronts["arrival"].max()))
        if len(self.waveforms) > MANY_WAVEFORMS and len(waveforms):
            self._discard_waveforms(in_progress())

    def _discard(self, now: float) -> None:
        """Discard batches that are too old, or too many."""
        first, taken = 0, len(self.recent) - self.waiting
        while first < len(self.recent) - 1:
            oldest = self.recent[first]
            is_old = first < taken and float(oldest["arrival"].max()) < now - HISTORY_S
            if not is_old and self.kept <= MAX_WAITING:
                break
            self.lost += len(oldest) if first >= taken else 0
            self.kept -= len(oldest)
            first += 1
        del self.recent[:first]
        self.waiting = min(self.waiting, len(self.recent))

    def _discard_waveforms(self, in_progress: set[int]) -> None:
        """Discard the waveforms of signals that are over and have no recent front."""
        needed = in_progress | self.heard()
        self.waveforms = {n: record for n, record in self.waveforms.items() if n in needed}
        self.new_waveforms = [n for n in self.new_waveforms if n in needed]

    def heard(self) -> set[int]:
        """Return the numbers of the signals that have a recent front."""
        return {n for fronts in self.recent for n in np.unique(fronts["signal"]).tolist()}

    def restart(self, in_progress: set[int]) -> None:
        """Prepare to repeat all recent records, because the simulation time has changed."""
        self._discard_waveforms(in_progress)
        self.new_waveforms, self.waiting, self.lost = list(self.waveforms), len(self.recent), 0
        self.is_restarted = True

    def take(self, time_ns: int) -> FrontBatch:
        """Return the records since the last call; after a restart, all recent records."""
        waveforms = _joined([self.waveforms[n] for n in self.new_waveforms], WAVEFORM.dtype)
        fronts = _joined(self.recent[len(self.recent) - self.waiting :], FRONT.dtype)
        batch = FrontBatch(waveforms, fronts, time_ns, self.is_restarted, self.lost)
        self.new_waveforms, self.waiting, self.is_restarted, self.lost = [], 0, False, 0
        return batch


def _joined(parts: list[Any], dtype: Any) -> Record:
    return np.concatenate(parts) if parts else np.zeros(0, dtype)
