"""Data that a run has lost. The log and the status list each loss, so that an incomplete run can be recognised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wavesim_sdk.tables import RunState
from wavesim_server.logbook.writer import LogWriter

MAX_TEXTS = 100  #: maximum number of loss texts that are stored; later losses are only counted


class DataLossReport:
    """Data losses that occurred while the clock was running. ``clock`` returns the record of the clock."""

    def __init__(self, log: LogWriter | None, clock: Callable[[], Any]) -> None:
        self.log, self._clock = log, clock
        self._texts: list[str] = []
        self._unlisted_count = 0
        self._omitted_count = 0  # records of bodies that the log does not contain
        self._log_failed = False

    @property
    def texts(self) -> list[str]:
        """Return descriptions of the losses."""
        more = [f"and {self._unlisted_count} more"] if self._unlisted_count else []
        return [*self._texts, *more, *([self._omitted_text] if self._omitted_count else [])]

    @property
    def _omitted_text(self) -> str:
        return (
            f"{self._omitted_count} records are missing from the log: "
            "their bodies left the simulation while the front end was not running"
        )

    def count_omitted(self, records: int) -> None:
        """Count the records that are not logged because their bodies were removed before this front end took over."""
        self._omitted_count += records

    def write_summary(self) -> None:
        """Write the count of omitted records at the end of the log."""
        if self._omitted_count and self.log is not None:
            self.log.damage(int(self._clock()["time_ns"]), self._omitted_text)

    def record(self, text: str) -> None:
        """Record a loss, unless the clock is stopped."""
        clock = self._clock()
        if clock["state"] != RunState.RUNNING:
            return
        if len(self._texts) >= MAX_TEXTS:
            self._unlisted_count += 1
            return
        time_ns = int(clock["time_ns"])
        self._texts.append(f"{text}, at {time_ns * 1e-9:.1f} s")
        if self.log is not None:
            self.log.damage(time_ns, text)

    def take_log_failure(self) -> str:
        """Return, once after a log failure, the reason why the log is no longer being written. Otherwise, return an
        empty string.
        """
        if self.log is None or self._log_failed or not self.log.failure:
            return ""
        self._log_failed = True
        self._texts.append(self.log.failure)
        return self.log.failure
