"""Age of information: how old the newest packet that a node has received from another one is, over time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Record


def information_ages(received: Record, end_s: float) -> list[dict[str, Any]]:
    """Return the ages of information of each pair of nodes, in the order of the rows of sender and receiver.

    ``received`` contains the receptions that count as delivered, and ``end_s`` is the time in s at which the observation
    ends. The age at a time is the time since the newest packet that has arrived completely was sent. It is observed from
    the first arrival of the pair on; an older packet that arrives later does not change it.

    Each entry has the rows ``source`` and ``receiver``, the number of ``updates``, and the ages in s: ``mean`` over time,
    mean ``peak`` just before an update, and ``highest``. Without a second update, ``peak`` is NaN.

    Sources: Kaul, Yates and Gruteser, IEEE INFOCOM (2012); Costa, Codreanu and Ephremides, IEEE ISIT (2014).
    """
    if not len(received):
        return []
    sent = received["emission_ns"] * 1e-9
    arrived = received["arrival_ns"] * 1e-9 + received["duration"]
    order = np.lexsort((arrived, received["receiver"], received["source"]))
    pairs = np.stack([received["source"][order], received["receiver"][order]])
    starts = np.flatnonzero(np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0)))
    found = []
    for first, after in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        mine = order[first:after]
        newest = np.maximum.accumulate(sent[mine])
        updates = mine[np.append(True, newest[1:] > newest[:-1])]
        s, t = sent[updates], np.append(arrived[updates], max(end_s, float(arrived[updates[-1]])))
        lowest, highest = t[:-1] - s, t[1:] - s  # the age between two updates, and after the last one
        observed = float(t[-1] - t[0])
        area = 0.5 * float((highest * highest - lowest * lowest).sum())
        found.append(
            {
                "source": int(pairs[0, first]),
                "receiver": int(pairs[1, first]),
                "updates": len(updates),
                "mean": area / observed if observed > 0.0 else float(lowest[0]),
                "peak": float(highest[:-1].mean()) if len(updates) > 1 else math.nan,
                "highest": float(highest.max()),
            }
        )
    return found
