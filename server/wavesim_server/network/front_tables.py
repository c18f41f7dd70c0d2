"""Tables that the front end writes to shared memory: clients, crews, recent signals and receptions, notices, and
estimates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record, as_numbers, as_words
from wavesim_sdk.shared_memory import SharedMemoryArea, TableView
from wavesim_sdk.tables import CLIENTS, CREW, ESTIMATE, NOTICE, RECEPTION, SENT, TIME_CHANGE
from wavesim_sdk.wire.messages import ESTIMATE_NUMBERS, Role
from wavesim_sdk.wire.value_types import sanitise_text
from wavesim_server.network.crews import CrewMember

CLIENTS_PERIOD_S = 0.2
HISTORY_PERIOD_S = 0.02


class NewestRecords:
    """The newest records of a table.

    The table's tick counts all records that were ever added, so that a reader can compute how many it has missed.
    """

    def __init__(self, table: TableView) -> None:
        self.table = table
        self.total, self.rows = table.snapshot()  # continues after an earlier front
        self._published = self.total
        self._before = -1  # total published before the last time; -1 = not yet by this front
        self._words = as_words(self.rows)

    def add(self, records: Record) -> None:
        if not len(records):
            return
        first = max(0, len(records) - self.table.capacity)
        self._words[self._slots(self.total + first, self.total + len(records))] = as_words(records[first:])
        self.total += len(records)

    def publish(self) -> None:
        if self._published == self.total:
            return
        # the buffer to be written holds what was published the time before last
        known = self._before if self._before >= 0 else self.total - self.table.capacity
        self._before, self._published = self._published, self.total
        slots = self._slots(max(known, self.total - self.table.capacity), self.total)
        as_words(self.table.begin_write())[slots] = self._words[slots]
        self.table.end_write(self.total)

    def _slots(self, first: int, end: int) -> Any:
        return np.arange(first, end) % self.table.capacity


class FrontTables:
    """All tables that the front end writes."""

    def __init__(self, simulation: SharedMemoryArea, vehicles: SharedMemoryArea) -> None:
        self.clients, self.crew = simulation[CLIENTS.name], simulation[CREW.name]
        self.sent, self.receptions = NewestRecords(simulation[SENT.name]), NewestRecords(simulation[RECEPTION.name])
        self.notices = NewestRecords(simulation[NOTICE.name])
        self.time_changes = simulation[TIME_CHANGE.name]
        self.estimates = vehicles[ESTIMATE.name]
        self.departed_status: dict[int, int] = {}  # row -> status to publish
        self._estimate_records = np.zeros(self.estimates.capacity, self.estimates.dtype)
        self._estimate_numbers = as_numbers(self._estimate_records)
        self._new_estimates: dict[int, Sequence[float | None]] = {}  # row -> numbers to publish
        self._publish_clients_at = self._publish_history_at = 0.0
        self._has_others = True  # whether the published table `crew` has, or may have, rows

    def signals(self, sent: Record, receptions: Record) -> None:
        """Add sent signals, and receptions with their outcomes."""
        self.sent.add(sent)
        self.receptions.add(receptions)

    def notice(self, time_ns: int, row: int, name: str, text: str) -> None:
        """Add a human-readable notice."""
        record = sanitise_text(text, NOTICE.dtype["text"].itemsize).encode()  # cut between characters
        self.notices.add(np.array([(time_ns, row, name.encode(), record)], NOTICE.dtype))

    def time_change(self, time_ns: int, before_ns: int, tick: int) -> None:
        """Publish a time change. Records that are added from now on belong to the run that continues."""
        self.flush(tick)
        count = int(self.time_changes.snapshot()[1]["count"][0]) + 1
        totals = (self.sent.total, self.receptions.total, self.notices.total)
        self.time_changes.publish_row(tick, count, time_ns, before_ns, *totals)

    def estimate(self, row: int, values: Sequence[float | None]) -> None:
        """Set the estimate from an on-board navigator."""
        if len(values) >= ESTIMATE_NUMBERS:
            self._new_estimates[row] = values

    def mark_departed(self, row: int, status: int) -> None:
        """Mark a client that has left; status 2 means silent, and 3 means left."""
        self.departed_status[row] = status
        self._new_estimates[row] = (0.0,) * ESTIMATE_NUMBERS

    def poll(self, now: float, tick: int, members: Iterable[CrewMember]) -> None:
        """Publish the tables that are due."""
        if now >= self._publish_clients_at:
            self._publish_clients_at = now + CLIENTS_PERIOD_S
            everybody = list(members)
            self._publish_clients(now, tick, [m for m in everybody if m.role is Role.PILOT])
            self._publish_crew(now, tick, [m for m in everybody if m.role is not Role.PILOT])
        if now >= self._publish_history_at:
            self._publish_history_at = now + HISTORY_PERIOD_S
            self.flush(tick)

    def flush(self, tick: int) -> None:
        """Publish signals, notices and estimates immediately."""
        self.sent.publish()
        self.receptions.publish()
        self.notices.publish()
        if self._new_estimates:
            for row, values in self._new_estimates.items():
                self._estimate_numbers[row] = [np.nan if v is None else v for v in values[:ESTIMATE_NUMBERS]]
            self._new_estimates.clear()
            self.estimates.publish(self._estimate_records, tick)

    def _publish_clients(self, now: float, tick: int, pilots: list[CrewMember]) -> None:
        rows = self.clients.snapshot()[1]
        for row, status in self.departed_status.items():
            rows["status"][row] = status
        self.departed_status.clear()
        words = as_words(rows)
        for m in pilots:
            self.clients.row_format.pack_into(words[m.row], 0, *_client_row(m, now))
        self.clients.publish(rows, tick)

    def _publish_crew(self, now: float, tick: int, others: list[CrewMember]) -> None:
        if not (others or self._has_others):
            return
        self._has_others = bool(others)
        rows = np.zeros(self.crew.capacity, CREW.dtype)
        rows["body"] = -1
        words = as_words(rows)
        for row, m in zip(words, sorted(others, key=lambda m: (m.row, m.ordinal)), strict=False):
            self.crew.row_format.pack_into(row, 0, *_crew_row(m, now))
        self.crew.publish(rows, tick)


def _crew_row(m: CrewMember, now: float) -> tuple[float | bytes, ...]:
    s = m.session
    return (
        m.row,
        int(m.role),
        m.ordinal,
        s.address[0].encode(),
        s.address[1],
        now - s.last_heard,
        s.rtt_statistics.mean,
        s.datagrams_in,
        s.datagrams_out,
        m.device.encode(),
        m.device_fault.encode(),
    )


def _client_row(m: CrewMember, now: float) -> tuple[float | bytes, ...]:
    s, rtt = m.session, m.session.rtt_statistics
    return (
        1,
        m.grant.type,
        s.name.encode(),
        s.address[0].encode(),
        s.address[1],
        s.join.lockstep_ns,
        now - s.last_heard,
        rtt.last,
        rtt.mean,
        rtt.minimum,
        rtt.maximum,
        rtt.sent,
        rtt.replies,
        s.datagrams_in,
        s.datagrams_out,
        m.device.encode(),
        m.device_fault.encode(),
    )
