"""Message about the signals of a time span of a log."""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Record
from wavesim_sdk.logged_signals import signals_within
from wavesim_viz.frame import reception_rows, sent_rows
from wavesim_viz.page_content import SignalEvents

MOST_RECEPTIONS_LISTED = 6000  #: maximum number of receptions in an answer


def signals_between(sent: Record, receptions: Record, since: float, until: float) -> SignalEvents:
    """Return the message about the signals of a time span. If there are too many receptions, it contains only every
    k-th signal, and states how many are omitted.
    """
    sent, heard = signals_within(sent, receptions, since, until)
    known = np.union1d(sent["id"], heard["id"])
    kept = known[:: max(1, -(-len(heard) // MOST_RECEPTIONS_LISTED))]
    return {
        "sent": sent_rows(sent[np.isin(sent["id"], kept)]),
        "receptions": reception_rows(heard[np.isin(heard["id"], kept)]),
        "notices": [],
        "missed": len(known) - len(kept),
    }
