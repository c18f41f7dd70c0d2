"""Watch on the arrivals that the emulator of hydrophones has lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from wavesim_sdk.arrays import Floats
from wavesim_sdk.shared_memory import DONE, TableView

SENSOR = "hydrophone"  #: sensor type whose emulator reads arrivals


class ArrivalLosses:
    """Watch on the number of lost arrivals in the table of the hydrophones. It calls ``report`` with a description of
    each loss.
    """

    def __init__(self, tables: Mapping[str, TableView], report: Callable[[str], None]) -> None:
        self._table, self._report = tables.get(SENSOR), report
        self._writes = 0
        if self._table is not None:
            self._known = self._counts(self._table)  # continues from the counts of an earlier front end

    def poll(self) -> None:
        """Report the losses since the last call."""
        if self._table is None or self._table.header[DONE] == self._writes:
            return
        counts = self._counts(self._table)
        # each hydrophone counts the losses of all; a count that decreases belongs to another hydrophone or to another run
        new = int(max((counts - self._known).max(initial=0.0), 0.0))
        self._known = counts
        if new:
            self._report(
                f"{new} arrivals of sound were lost, because the emulator of the hydrophones was too slow; their sound is "
                "missing from the samples"
            )

    def _counts(self, table: TableView) -> Floats:
        self._writes = int(table.header[DONE])
        return np.array(table.snapshot()[1]["lost_count"])
