"""Observer sessions: every body and every signal, for viewers and monitors elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wavesim_sdk.area import Record
from wavesim_sdk.observer import RECORD
from wavesim_sdk.tables import IDENTITY
from wavesim_sdk.wire import codec
from wavesim_sdk.wire.messages import FLEET_BODIES, Event, Request
from wavesim_sdk.wire.server import Session

LEAST_PERIOD_S = 0.01


@dataclass
class Watch:
    """What an observer asked for."""

    session: Session
    period: float = math.inf
    next: float = math.inf
    bodies: np.ndarray[Any, np.dtype[np.int64]] | None = None
    center: np.ndarray[Any, np.dtype[np.float64]] | None = None
    radius: float = math.inf
    sounds: bool = False


class Observers:
    """All of them. ``push`` hands an event to a session."""

    def __init__(self, push: Callable[[Session, list[Any]], None]) -> None:
        self.by_token: dict[int, Watch] = {}
        self._push = push
        self._identity: Record = np.zeros(0, IDENTITY.dtype)

    def join(self, session: Session, identity: Record) -> None:
        """A new observer: it is told who is there."""
        self.by_token[session.token] = Watch(session)
        for row in np.flatnonzero(identity["present"]):
            self._push(session, _body(int(row), identity[row], 1))

    def leave(self, session: Session) -> None:
        """An observer is gone."""
        self.by_token.pop(session.token, None)

    def ask(self, session: Session, item: list[Any], now: float) -> str:
        """The request OBSERVE; why it is refused, if it is."""
        if item[0] != Request.OBSERVE:
            return "an observer only observes"
        period, bodies, center, radius, sounds = item[1:6]
        numbers = [*(bodies or ()), *(center or ())]
        if any(not isinstance(v, int | float) for v in numbers) or (center is not None and len(center) != 3):
            return "rows and the middle of an area are numbers"
        w = self.by_token[session.token]
        w.period = max(period * 1e-9, LEAST_PERIOD_S) if period > 0 else math.inf
        w.next = now if period > 0 else math.inf
        w.bodies = None if bodies is None else np.array(bodies, np.int64)
        w.center = None if center is None else np.array(center, float)
        w.radius, w.sounds = float(radius), sounds == 1
        return ""

    def due(self, now: float) -> list[Watch]:
        """Observers that want bodies now."""
        found = [w for w in self.by_token.values() if now >= w.next]
        for w in found:
            w.next = max(w.next + w.period, now)
        return found

    def next_timer(self) -> float:
        """When somebody is due."""
        return min((w.next for w in self.by_token.values()), default=math.inf)

    def fleet(
        self, w: Watch, tick: int, time_ns: int, run_state: int, identity: Record, state: Record
    ) -> Iterator[list[Any]]:
        """Bodies of FLEET for an observer."""
        rows = np.flatnonzero(identity["present"])
        if w.bodies is not None:
            rows = rows[np.isin(rows, w.bodies)]
        if w.center is not None:
            away = state["p_WB_W"][rows] - w.center
            rows = rows[np.einsum("ni,ni->n", away, away) <= w.radius * w.radius]
        records = np.zeros(len(rows), RECORD)
        records["id"] = rows
        for name in RECORD.names[1:]:  # type: ignore[index]  # a structured type has names
            records[name] = state[name][rows]
        parts = max(1, -(-len(rows) // FLEET_BODIES))
        for k in range(parts):
            yield [tick, time_ns, run_state, k, parts, records[k * FLEET_BODIES : (k + 1) * FLEET_BODIES].tobytes()]

    def roster(self, row: int, identity: Any, present: bool) -> None:
        """A body came or left."""
        for w in list(self.by_token.values()):
            self._push(w.session, _body(row, identity, int(present)))

    def run_state(self, state: int, time_ns: int) -> None:
        """The timer changed."""
        for w in list(self.by_token.values()):
            self._push(w.session, codec.event(Event.RUN_STATE, state, time_ns))

    def sounds(self, sent: Record, receptions: Record) -> None:
        """Signals, for those who asked for them."""
        listening = [w for w in self.by_token.values() if w.sounds]
        if not listening:
            return
        events = [
            codec.event(
                Event.SIGNAL, *(int(s[k]) for k in ("id", "source", "kind", "emission_ns")),
                float(s["frequency"]), float(s["source_level"]), s["origin_W"].tolist(),
            )
            for s in sent[sent["outcome"] == 0]
        ]  # fmt: skip
        events += [
            codec.event(
                Event.FATE, *(int(r[k]) for k in ("id", "source", "receiver", "outcome", "arrival_ns")),
                *(float(r[k]) if np.isfinite(r[k]) else None for k in ("level", "range")),
            )
            for r in receptions
        ]  # fmt: skip
        for w in listening:
            for event in events:
                if w.session.token in self.by_token:  # it may be ended for not keeping up
                    self._push(w.session, event)


def _body(row: int, identity: Any, present: int) -> list[Any]:
    name, model = (bytes(identity[k]).decode() for k in ("name", "model"))
    return codec.event(Event.BODY, row, present, int(identity["type"]), name, model)
