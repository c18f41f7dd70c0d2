"""Sound between the engine and the crews: requests in, within their rate; what was sent and heard out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_sdk.shared_memory import Record
from wavesim_sdk.tables import Outcome
from wavesim_sdk.wire.items import AnyEvent, Reception, RequestRefused, SignalSent
from wavesim_sdk.wire.session import Session
from wavesim_server.network.crews import Crews

BURST_S = 10.0
PAYLOAD_LIFETIME_NS = 600_000_000_000
PushEvent = Callable[[Session, AnyEvent], None]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class RequestAllowance:
    """Requests per simulated second: ten seconds' worth at once, filled in simulated time."""

    def __init__(self, rate: float, what: str = "acoustic requests") -> None:
        self.rate, self.what = rate, what
        self.refused: Counter[str] = Counter()  # by client
        self._left: dict[int, tuple[float, int]] = {}  # session -> requests left, and when that was

    def consume(self, token: int, name: str, now_ns: int) -> None:
        """One request more of a session; ValueError if it is too many."""
        left, since = self._left.get(token, (BURST_S * self.rate, now_ns))
        left = min(left + self.rate * (now_ns - since) * 1e-9, BURST_S * self.rate)
        self._left[token] = (left - 1.0, now_ns) if left >= 1.0 else (left, now_ns)
        if left < 1.0:
            self.refused[name] += 1
            raise ValueError(f"more than {self.rate:g} {self.what} per simulated second; this one is dropped")

    def remove(self, token: int) -> None:
        """A session is over."""
        self._left.pop(token, None)


class PayloadStore:
    """Payloads of signals that may still be heard."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[bytes, int]] = {}  # signal -> payload, emission

    def keep(self, sent: Any) -> None:
        """Remember one until its signal can be heard no more."""
        now, size = int(sent["emission_ns"]), int(sent["payload_bytes"])
        self._kept[int(sent["id"])] = (bytes(sent["payload"]).ljust(size, b"\0")[:size], now)
        for old, (_, since) in list(self._kept.items()):
            if now - since < PAYLOAD_LIFETIME_NS:
                break
            del self._kept[old]

    def payload_of(self, signal: int) -> bytes | None:
        """The payload of a signal."""
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
    """Events for the sessions that sent and those that listen. ``senders`` and ``receivers``: whether the body that was in the row
    of each is there still; else there is nobody to be told."""
    for s, there in zip(sent, senders, strict=True):
        if s["payload_bytes"] and s["outcome"] == Outcome.HEARD:
            payloads.keep(s)
        if there:
            _push_sent_event(s, crews, push)
    for r in receptions[receivers & (receptions["outcome"] == Outcome.HEARD)]:
        listening = [m for m in crews.members_of(int(r["receiver"])) if m.wants_acoustics]
        if not listening:
            continue
        reception = _reception_event(r, payloads)
        for m in listening:
            push(m.session, reception)


def _reception_event(r: Any, payloads: PayloadStore) -> Reception:
    def some(name: str) -> float | None:
        return None if np.isnan(r[name]) else float(r[name])

    return Reception(
        int(r["reported_ns"]), int(r["id"]), int(r["query"]), int(r["kind"]), int(r["code"]), int(r["from_address"]),
        int(r["to_address"]), float(r["heard_frequency"]), float(r["heard_level"]), float(r["heard_level"] - r["noise"]),
        some("measured"), some("azimuth"), some("elevation"), payloads.payload_of(int(r["id"])),
    )  # fmt: skip


def _push_sent_event(s: Any, crews: Crews, push: PushEvent) -> None:
    """To the session that asked; what a node sent by itself, to all that listen."""
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
