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
WHO, WHEN = 0, 1
N_NEWS, N_QUIET = 0, 1


class Meetings(NamedTuple):
    """Memory of them."""

    last: Floats  # (rows, PARTNERS, 2): WHO, WHEN
    news: Floats  # (n, 4)
    owners: Ints  # obstacle of each fixed geometry
    counters: Ints


def meetings(capacity: int, owners: Sequence[int], step: float) -> Meetings:
    """Memory for a fleet of this size; ``step`` is the tick in s."""
    found = Meetings(
        np.zeros((capacity, PARTNERS, 2)),
        np.zeros((4 * capacity, 4)),
        np.asarray(owners, np.int64),
        np.array([0, round(QUIET_S / step)], np.int64),
    )
    found.last[:, :, WHEN] = -np.inf
    return found


@device_function
def meet(m: Meetings, row: int, partner: int, tick: int, speed: float) -> None:
    """A body touches something at the end of this tick, which it approached at this speed."""
    mine = m.last[row]
    oldest = 0
    for k in range(PARTNERS):
        if mine[k, WHO] == partner and mine[k, WHEN] > -np.inf:
            oldest = k
            break
        if mine[k, WHEN] < mine[oldest, WHEN]:
            oldest = k
    known, quiet = mine[oldest, WHO] == partner, tick - mine[oldest, WHEN] > m.counters[N_QUIET]
    if not known and not quiet:
        return  # it touches many things at once, and is told of some
    mine[oldest, WHO], mine[oldest, WHEN] = partner, tick
    if quiet and m.counters[N_NEWS] < m.news.shape[0]:
        n = m.news[m.counters[N_NEWS]]
        n[0], n[1], n[2], n[3] = row, partner, tick, speed
        m.counters[N_NEWS] += 1
