"""Sound between the engine and the clients: requests in, within their rate; what was sent and heard out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from wavesim_sdk.area import Record
from wavesim_sdk.tables import Outcome
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import Event, Request

BURST_S = 10.0
FORGET_NS = 600_000_000_000
Push = Callable[[int, list[Any]], None]  #: an event for the client of a row


class Allowance:
    """Acoustic requests per simulated second: ten seconds' worth at once, filled in simulated time."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.refused: Counter[str] = Counter()  # by client
        self._left: dict[int, tuple[float, int]] = {}  # row -> requests left, and when that was

    def why_not(self, row: int, name: str, kind: int, now_ns: int) -> str:
        """Why a request is refused; empty if it is allowed."""
        if kind not in (Request.PING, Request.SEND, Request.RANGE):
            return f"unknown request {kind}"
        left, since = self._left.get(row, (BURST_S * self.rate, now_ns))
        left = min(left + self.rate * (now_ns - since) * 1e-9, BURST_S * self.rate)
        self._left[row] = (left - 1.0, now_ns) if left >= 1.0 else (left, now_ns)
        if left >= 1.0:
            return ""
        self.refused[name] += 1
        return f"more than {self.rate:g} acoustic requests per simulated second; this one is dropped"

    def forget(self, row: int) -> None:
        """The client of a row left."""
        self._left.pop(row, None)


class Payloads:
    """Payloads of signals that may still be heard."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[bytes, int]] = {}  # signal -> payload, emission

    def keep(self, sent: Any) -> None:
        """Remember one until its signal can be heard no more."""
        now, size = int(sent["emission_ns"]), int(sent["payload_bytes"])
        self._kept[int(sent["id"])] = (bytes(sent["payload"]).ljust(size, b"\0")[:size], now)
        for old, (_, since) in list(self._kept.items()):
            if now - since < FORGET_NS:
                break
            del self._kept[old]

    def of(self, signal: int) -> bytes | None:
        """The payload of a signal."""
        return self._kept.get(signal, (None, 0))[0]


def tell(sent: Record, receptions: Record, payloads: Payloads, clients: Any, push: Push) -> None:
    """Events for the clients (rows of ``clients``) that sent and heard."""
    for s in sent:
        if s["payload_bytes"] and s["outcome"] == Outcome.HEARD:
            payloads.keep(s)
        row = int(s["source"])
        if row not in clients:
            continue
        number = int(s["request"])
        if s["outcome"] == Outcome.HEARD:
            values = [number, int(s["id"]), int(s["clock_ns"])]
            numbers = [float(s[k]) for k in ("frequency", "source_level", "duration")]
            push(row, codec.event(Event.SENT, *values, *numbers))
        else:
            text = "the transducer was recharging; nothing was sent"
            push(row, codec.event(Event.REQUEST_REFUSED, number, text))
    for r in receptions[receptions["outcome"] == Outcome.HEARD]:
        row = int(r["receiver"])
        if row in clients:
            values = [int(r[k]) for k in ("reported_ns", "id", "query", "kind", "code", "from_address", "to_address")]
            numbers = [float(r["heard_frequency"]), float(r["heard_level"]), float(r["heard_level"] - r["noise"])]
            measured = [None if np.isnan(r[k]) else float(r[k]) for k in ("measured", "azimuth", "elevation")]
            push(row, codec.event(Event.RECEPTION, *values, *numbers, *measured, payloads.of(int(r["id"]))))
