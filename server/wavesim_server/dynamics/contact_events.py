"""Detection of new contacts. A body at rest touches its support in every tick, but the contact is reported only once.

The functions are compiled. Each row stores the last few partners that its body touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavesim_kernels.compiler import device_function
from wavesim_sdk.arrays import Floats, Ints

QUIET_S = 1.0  #: time in s without touching after which a contact counts as new
PARTNERS = 4  #: number of recent contact partners stored for each body
BED = -1  #: contact partner: -1 is the sea bed, -2 - k is obstacle k, and any other number is the row of another body
#: columns of a recent contact of a body
PARTNER, LAST_TICK = 0, 1
N_EVENTS, N_QUIET = 0, 1


class ContactEvents(NamedTuple):
    """Recent contacts of each body, and the contact events that have been recorded."""

    last_contacts: Floats  # (rows, PARTNERS, 2): partner, tick
    events: Floats  # (n, 4): row, partner, tick at the end of which they touched, approach speed (m/s)
    owners: Ints  # obstacle of each fixed geometry
    counters: Ints


def make_contact_events(capacity: int, owners: Sequence[int], step: float) -> ContactEvents:
    """Create the contact events for a fleet of up to ``capacity`` bodies; ``step`` is the duration of a tick in s."""
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
    """Record that a body touches a partner at the end of this tick, with the given approach speed."""
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
        return  # the body touches many partners at once, and some are not reported
    mine[oldest, PARTNER], mine[oldest, LAST_TICK] = partner, tick
    if quiet and m.counters[N_EVENTS] < m.events.shape[0]:
        n = m.events[m.counters[N_EVENTS]]
        n[0], n[1], n[2], n[3] = row, partner, tick, speed
        m.counters[N_EVENTS] += 1
