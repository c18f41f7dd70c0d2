"""Exchange of acoustic data between the engine and the crews. Requests go to the engine at a limited rate; sent and
received signals go to the crews.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_sdk.arrays import Mask, Record
from wavesim_sdk.tables import RECEPTION, Outcome
from wavesim_sdk.wire.items import AnyEvent, ChannelState, Reception, RequestRefused, SignalSent
from wavesim_sdk.wire.session import Session
from wavesim_server.messages import ChannelStatesEvent
from wavesim_server.network.crews import Crews

BURST_S = 10.0
PAYLOAD_LIFETIME_NS = 600_000_000_000
_RECEPTION_COLUMNS = tuple(f.name for f in RECEPTION.fields)
PushEvent = Callable[[Session, AnyEvent], None]


class RequestAllowance:
    """Limit on the request rate in simulated time. A session may send ten seconds' worth of requests in one burst."""

    def __init__(self, rate: float, what: str = "acoustic requests") -> None:
        self.rate, self.what = rate, what
        self.refused: Counter[str] = Counter()  # by client name
        self._left: dict[int, tuple[float, int]] = {}  # session -> requests left, and the time of the last update

    def consume(self, token: int, name: str, now_ns: int) -> None:
        """Count one request from a session. Raises ValueError if the session's limit is exceeded."""
        left, since = self._left.get(token, (BURST_S * self.rate, now_ns))
        left = min(left + self.rate * (now_ns - since) * 1e-9, BURST_S * self.rate)
        self._left[token] = (left - 1.0, now_ns) if left >= 1.0 else (left, now_ns)
        if left < 1.0:
            self.refused[name] += 1
            raise ValueError(f"more than {self.rate:g} {self.what} per simulated second; this request is dropped")

    def clear(self) -> None:
        """Reset the allowances, because the simulation time has changed."""
        self._left.clear()

    def remove(self, token: int) -> None:
        """Remove a session that has ended."""
        self._left.pop(token, None)


class PayloadStore:
    """Payloads of signals that a node may still receive."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[bytes, int]] = {}  # signal -> payload, emission time

    def keep(self, sent: Any) -> None:
        """Keep the payload of a signal until no node can receive it any more."""
        now, size = int(sent["emission_ns"]), int(sent["payload_bytes"])
        self._kept[int(sent["id"])] = (bytes(sent["payload"]).ljust(size, b"\0")[:size], now)
        for old, (_, since) in list(self._kept.items()):
            if now - since < PAYLOAD_LIFETIME_NS:
                break
            del self._kept[old]

    def payload_of(self, signal: int) -> bytes | None:
        """Return the payload of a signal, or None if it is not stored."""
        return self._kept.get(signal, (None, 0))[0]


def push_signal_events(
    sent: Record,
    receptions: Record,
    senders: Mask,
    receivers: Mask,
    payloads: PayloadStore,
    crews: Crews,
    push: PushEvent,
) -> None:
    """Push events to the sessions that sent a signal and to the sessions that listen.

    ``senders`` and ``receivers`` are True for the records whose row is still occupied by the same body. The other
    records do not concern any session.
    """
    for s, there in zip(sent, senders, strict=True):
        if s["payload_bytes"] and s["outcome"] == Outcome.HEARD:
            payloads.keep(s)
        if there:
            _push_sent_event(s, crews, push)
    heard = np.flatnonzero(receivers & (receptions["outcome"] == Outcome.HEARD))
    for k, receiver in zip(heard.tolist(), receptions["receiver"][heard].tolist(), strict=True):
        listening = [m for m in crews.members_of(receiver) if m.wants_acoustics]
        if not listening:
            continue
        reception = _reception_event(receptions[k], payloads)
        for m in listening:
            push(m.session, reception)


def push_channel_states(e: ChannelStatesEvent, generations: Any, crews: Crews, push: PushEvent) -> None:
    """Push the changes of the channel to the listening sessions of each body. Changes at a body that has left its row are
    dropped.
    """
    for row, generation, busy, time_ns in zip(e.rows, e.generations, e.busy, e.times, strict=True):
        if generations[row] == generation:
            for m in crews.members_of(row):
                if m.wants_acoustics:
                    push(m.session, ChannelState(time_ns, busy))


def _reception_event(record: Any, payloads: PayloadStore) -> Reception:
    r = dict(zip(_RECEPTION_COLUMNS, record.tolist(), strict=True))

    def some(name: str) -> float | None:
        return None if math.isnan(r[name]) else r[name]

    return Reception(
        r["reported_ns"],
        r["id"],
        r["query"],
        r["kind"],
        r["code"],
        r["from_address"],
        r["to_address"],
        r["heard_frequency"],
        r["heard_level"],
        r["heard_level"] - r["noise"],
        some("measured"),
        some("azimuth"),
        some("elevation"),
        payloads.payload_of(r["id"]),
    )


def _push_sent_event(s: Any, crews: Crews, push: PushEvent) -> None:
    """Push the result to the session that requested the signal.

    If the node sent the signal automatically, all listening sessions receive the result.
    """
    row, tag = int(s["source"]), int(s["request"])
    asker, number = crews.request_owner(row, tag)
    to = [m for m in crews.members_of(row) if m.wants_acoustics] if not tag else [asker] if asker is not None else []
    if not to:
        return
    event: AnyEvent
    if s["outcome"] == Outcome.HEARD:
        values = [float(s[k]) for k in ("frequency", "source_level", "duration")]
        event = SignalSent(number if tag else 0, int(s["id"]), int(s["clock_ns"]), *values)
    elif tag:
        event = RequestRefused(number, "the transducer was recharging; nothing was sent")
    else:
        return
    for m in to:
        push(m.session, event)
