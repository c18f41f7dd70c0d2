"""Selection of acoustic signals from a log by time."""

from __future__ import annotations

import numpy as np

from wavesim_sdk.arrays import Record

__all__ = ["signals_within"]


def signals_within(sent: Record, receptions: Record, since: float, until: float) -> tuple[Record, Record]:
    """Return the signals that are being sent or received between two times (s), and their receptions in that span."""
    first, last = since * 1e9, until * 1e9
    heard = receptions[
        (receptions["emission_ns"] <= last) & (receptions["arrival_ns"] + 1e9 * receptions["duration"] >= first)
    ]
    during = (sent["emission_ns"] <= last) & (sent["emission_ns"] + 1e9 * sent["duration"] >= first)
    return sent[during | np.isin(sent["id"], heard["id"])], heard
