"""Which contacts are news: a body that rests on something touches it in every tick, and is told of it once.

Compiled; each row remembers the last few things that its body touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_sdk.kernel_compiler import device_function
from wavesim_server.dynamics.types import Floats, Ints

QUIET_S = 1.0  #: without touching for so long: then it is a new meeting
PARTNERS = 4  #: things that a body remembers to be touching
BED = -1  #: partner: the sea bed; a row = another body; -2 - k = obstacle k
#: of what a row remembers; of a piece of news: row, partner, tick at whose end, speed of approach (m/s)
PARTNER, LAST_TICK = 0, 1
N_EVENTS, N_QUIET = 0, 1


class ContactEvents(NamedTuple):
    """Memory of them."""

    last_contacts: Floats  # (rows, PARTNERS, 2): WHO, WHEN
    events: Floats  # (n, 4)
    owners: Ints  # obstacle of each fixed geometry
    counters: Ints


def make_contact_events(capacity: int, owners: Sequence[int], step: float) -> ContactEvents:
    """Memory for a fleet of this size; ``step`` is the tick in s."""
    found = ContactEvents(
        np.zeros((capacity, PARTNERS, 2)),
        np.zeros((4 * capacity, 4)),
        np.asarray(owners, np.int64),
        np.array([0, round(QUIET_S / step)], np.int64),
    )
    found.last_contacts[:, :, LAST_TICK] = -np.inf
    return found


@device_function
def record_contact(m: ContactEvents, row: int, partner: int, tick: int, speed: float) -> None:
    """A body touches something at the end of this tick, which it approached at this speed."""
    mine = m.last_contacts[row]
    oldest = 0
    for k in range(PARTNERS):
        if mine[k, PARTNER] == partner and mine[k, LAST_TICK] > -np.inf:
            oldest = k
            break
        if mine[k, LAST_TICK] < mine[oldest, LAST_TICK]:
            oldest = k
    known, quiet = mine[oldest, PARTNER] == partner, tick - mine[oldest, LAST_TICK] > m.counters[N_QUIET]
    if not known and not quiet:
        return  # it touches many things at once, and is told of some
    mine[oldest, PARTNER], mine[oldest, LAST_TICK] = partner, tick
    if quiet and m.counters[N_EVENTS] < m.events.shape[0]:
        n = m.events[m.counters[N_EVENTS]]
        n[0], n[1], n[2], n[3] = row, partner, tick, speed
        m.counters[N_EVENTS] += 1
