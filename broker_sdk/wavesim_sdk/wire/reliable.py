"""Numbered items over datagrams in both directions; each item is delivered once and in order.

The sender repeats an item that is not acknowledged in time. The timeout follows the measured round-trip time: it is the
smoothed mean plus four times the deviation (RFC 6298), and it doubles with each unsuccessful repetition. Only items
that were sent once are measured (Karn's rule).
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgpack

from wavesim_sdk.wire.messages import HEADER_BYTES, MAX_DATAGRAM, MAX_ITEMS, SEAL_BYTES, Join, Role

FIRST_WAIT_S = 0.2  #: timeout in s until the round-trip time has been measured
MIN_TIMEOUT_S, MAX_TIMEOUT_S = 0.02, 1.0
ACK_DELAY_S = 0.02
#: number of unacknowledged lists of items after which a receiver no longer delays its acknowledgement
PROMPT_ACK_LISTS = 8
ITEMS_BYTES = (
    MAX_DATAGRAM - HEADER_BYTES - SEAL_BYTES - 10
)  #: maximum total size in bytes of the items in one datagram; the array around them needs the remaining bytes
MAX_PENDING = 4096
WINDOW = 32  #: maximum number of datagrams in flight; after a loss, the window restarts at SMALL_WINDOW
SMALL_WINDOW = 4
EMULATOR_WINDOW = (
    128  #: maximum number of datagrams in flight in an emulator's session, because its states and frames are large
)


class RttEstimator:
    """Estimator of the round-trip time and of the timeout for an acknowledgement."""

    __slots__ = ("rtt_variation", "smoothed_rtt")

    def __init__(self) -> None:
        self.smoothed_rtt: float | None = None
        self.rtt_variation = 0.0

    def add_sample(self, seconds: float) -> None:
        """Add the measured round-trip time of an item that was sent once."""
        if self.smoothed_rtt is None:
            self.smoothed_rtt, self.rtt_variation = seconds, 0.5 * seconds
            return
        self.rtt_variation += 0.25 * (abs(seconds - self.smoothed_rtt) - self.rtt_variation)
        self.smoothed_rtt += 0.125 * (seconds - self.smoothed_rtt)

    def timeout(self, repeats: int = 0) -> float:
        """Return the time in s until the next repetition, after ``repeats`` unsuccessful repetitions."""
        base = (
            FIRST_WAIT_S
            if self.smoothed_rtt is None
            else max(self.smoothed_rtt + 4.0 * self.rtt_variation, MIN_TIMEOUT_S)
        )
        return min(base * float(2 ** min(repeats, 10)), MAX_TIMEOUT_S)


class Outbox:
    """Items that the peer has not yet acknowledged."""

    def __init__(self, rtt_estimator: RttEstimator, window: int = WINDOW) -> None:
        self.last = 0
        self._rtt_estimator = rtt_estimator
        self._pending: deque[tuple[int, Any, int]] = deque()  # number, item, bytes
        self._next = 1  # number of the item to send next
        self._sent = 0  # highest number sent so far
        self._repeat_at = 0.0
        self._repeats = 0
        self._window = self._full_window = window
        self._timed: tuple[int, float] | None = None  # the item whose acknowledgement measures the round trip
        self._under_way: deque[tuple[int, float]] = (
            deque()
        )  # of each group sent together: number of the last item, and the time

    def __len__(self) -> int:
        return len(self._pending)

    @property
    def has_unsent(self) -> bool:
        """Return whether any items have never been sent, or must be sent again because of a gap."""
        return self._next <= self.last

    def push(self, item: Any, more: int = 0) -> int:
        """Queue an item, which consists of its type number and its values, and return its sequence number. ``more`` is
        the number of items by which the queue may be longer than MAX_PENDING, for long sequences of items.

        Raises OverflowError if the peer does not acknowledge items, and ValueError if the item does not fit into a
        datagram.
        """
        if len(self._pending) >= MAX_PENDING + more:
            raise OverflowError(f"the peer acknowledged none of the last {MAX_PENDING + more} items")
        size = len(msgpack.packb(item))
        if size > ITEMS_BYTES:
            raise ValueError(f"the item has {size} bytes; the maximum that fits in a datagram is {ITEMS_BYTES}")
        self.last += 1
        self._pending.append((self.last, item, size))
        return self.last

    def unacknowledged(self) -> list[Any]:
        """Return the items that the peer has not acknowledged, oldest first."""
        return [item for _, item, _ in self._pending]

    def acknowledge(self, number: int, now: float) -> None:
        """Record that the peer has received all items up to ``number``; ignore a number that was never sent."""
        if number > self._sent or not self._pending or number < self._pending[0][0]:
            return
        while self._pending and self._pending[0][0] <= number:
            self._pending.popleft()
        self._next = max(self._next, number + 1)
        if self._timed is not None and number >= self._timed[0]:
            self._rtt_estimator.add_sample(now - self._timed[1])
            self._timed = None
        while self._under_way and self._under_way[0][0] <= number:
            self._under_way.popleft()
        self._repeats = 0
        self._window = min(2 * self._window, self._full_window)
        # The next item may have been lost long ago, so its timeout counts from its own transmission, not from now.
        self._repeat_at = (
            (self._under_way[0][1] if self._under_way else now) + self._rtt_estimator.timeout() + ACK_DELAY_S
        )

    def take_due(self, now: float) -> list[tuple[int, list[Any]]]:
        """Return the items to send now, as one (number of the first item, items) pair for each datagram. A datagram
        contains new items, or items whose timeout has expired.
        """
        if not self._pending:
            return []
        base = self._pending[0][0]
        if self._next > base and now >= self._repeat_at:  # the receiver accepts nothing after a gap: repeat from there
            self._next, self._timed, self._window = base, None, SMALL_WINDOW
            self._under_way.clear()
            self._repeats += 1
        elif self._next > self.last:
            return []
        found: list[tuple[int, list[Any]]] = []
        room, sent_before = 0, 0
        for number, item, size in self._pending:
            if number < self._next:
                sent_before += size
                continue
            if not found or size > room or len(found[-1][1]) >= MAX_ITEMS:
                if sent_before + ITEMS_BYTES * len(found) >= ITEMS_BYTES * self._window:
                    break
                found.append((number, []))
                room = ITEMS_BYTES
            found[-1][1].append(item)
            room -= size
        if not found:
            return []
        last = found[-1][0] + len(found[-1][1]) - 1
        if self._timed is None and last > self._sent and not self._repeats:
            self._timed = (last, now)
        if self._next == base:
            self._repeat_at = now + self._rtt_estimator.timeout(self._repeats) + ACK_DELAY_S
        self._next, self._sent = last + 1, max(self._sent, last)
        self._under_way.append((last, now))
        return found

    def next_timer(self) -> float | None:
        """Return the time at which :meth:`take_due` must be called again, or None if no timer is running."""
        return self._repeat_at if self._pending else None


def make_outbox(rtt_estimator: RttEstimator, join: Join) -> Outbox:
    """Return the outbox of a session."""
    return Outbox(rtt_estimator, EMULATOR_WINDOW if join.role == Role.EMULATOR else WINDOW)


class Inbox:
    """Items received in order from the peer."""

    def __init__(self) -> None:
        self.received = 0

    def accept(self, first: int, items: Any) -> list[tuple[int, Any]]:
        """Return those items that are new, as (number, item) pairs. If earlier items are missing, accept none of them."""
        if first < 1 or first > self.received + 1:
            return []
        new = items[self.received + 1 - first :]
        numbered = list(enumerate(new, self.received + 1))
        self.received += len(new)
        return numbered
