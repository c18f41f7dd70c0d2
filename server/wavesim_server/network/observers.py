"""Observer sessions. Viewers and monitors on other machines use them to receive all bodies and all signals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from wavesim_sdk.algebra import dot
from wavesim_sdk.arrays import Floats, Ints, Record
from wavesim_sdk.wire.items import AnyEvent, BodyChanged, FateSeen, Observe, SignalSeen
from wavesim_sdk.wire.messages import FLEET_BODIES, FLEET_DTYPE
from wavesim_sdk.wire.session import Session

MIN_PERIOD_S = 0.01
ROLL_CALL_PORTION = 1024  #: maximum number of unacknowledged events while all bodies are being announced to a session


@dataclass
class ObserverView:
    """The view that an observer has requested."""

    session: Session
    period: float = math.inf
    next: float = math.inf
    bodies: Ints | None = None
    center: Floats | None = None
    radius: float = math.inf
    wants_signals: bool = False


class Observers:
    """All observers of a server. ``push`` sends an event to a session."""

    def __init__(self, push: Callable[[Session, AnyEvent], None]) -> None:
        self.by_token: dict[int, ObserverView] = {}
        self._push = push
        self._roll_calls: dict[
            int, tuple[Session, dict[int, None]]
        ] = {}  # unfinished roll calls: by session, the rows still to be announced

    def join(self, session: Session, identity: Record, old: Session | None = None) -> None:
        """Add an observer or resume an existing one, and announce all bodies in the simulation to it."""
        if old is not None:
            self.leave(old)
        self.by_token[session.token] = ObserverView(session)
        self.roll_call(session, identity)

    def roll_call(self, session: Session, identity: Record) -> None:
        """Announce all bodies in the simulation to a session. Large fleets are announced in portions, at the rate at
        which the client acknowledges them.
        """
        self._roll_calls[session.token] = session, dict.fromkeys(np.flatnonzero(identity["present"]).tolist())
        self.continue_roll_calls(identity)

    @property
    def has_roll_calls(self) -> bool:
        """Whether any session has not yet been informed about all bodies."""
        return bool(self._roll_calls)

    def continue_roll_calls(self, identity: Record) -> None:
        """Send the next portions of unfinished announcements of all bodies."""
        for token, (session, rows) in list(self._roll_calls.items()):
            while rows and not session.is_over and len(session.outbox) < ROLL_CALL_PORTION:
                row = next(iter(rows))
                del rows[row]
                if (who := identity[row])["present"]:
                    name, model = (bytes(who[k]).decode() for k in ("name", "model"))
                    self._push(session, BodyChanged(row, 1, int(who["type"]), name, model))
            if session.is_over or not rows:
                del self._roll_calls[token]

    def leave(self, session: Session) -> None:
        """Remove an observer."""
        self.by_token.pop(session.token, None)
        self._roll_calls.pop(session.token, None)

    def set_view(self, session: Session, request: Observe, now: float) -> None:
        """Handle an OBSERVE request."""
        w = self.by_token[session.token]
        some = request.period_ns > 0
        w.period = max(request.period_ns * 1e-9, MIN_PERIOD_S) if some else math.inf
        w.next = now if some else math.inf
        w.bodies = None if request.bodies is None else np.array(request.bodies, np.int64)
        w.center = None if request.center is None else np.array(request.center, float)
        w.radius, w.wants_signals = request.radius, request.sounds == 1

    def due(self, now: float) -> list[ObserverView]:
        """Return the observers to which states of bodies must be sent now."""
        found = [w for w in self.by_token.values() if now >= w.next]
        for w in found:
            w.next = max(w.next + w.period, now)
        return found

    def next_timer(self) -> float:
        """Return the time at which states must next be sent to an observer."""
        return min((w.next for w in self.by_token.values()), default=math.inf)

    def fleet_parts(self, w: ObserverView, identity: Record, state: Record) -> Iterator[tuple[int, int, bytes]]:
        """Yield the records of the bodies that an observer receives, divided into parts, as (part, number of parts,
        records).
        """
        rows = np.flatnonzero(identity["present"])
        if w.bodies is not None:
            rows = rows[np.isin(rows, w.bodies)]
        with np.errstate(over="ignore"):  # positions may be so large that squares overflow to infinity
            if w.center is not None:
                away = state["p_WB_W"][rows] - w.center
                rows = rows[dot(away, away) <= w.radius * w.radius]
            records = np.zeros(len(rows), FLEET_DTYPE)
            records["id"] = rows
            for name in FLEET_DTYPE.names[1:]:  # type: ignore[index]  # a structured type has names
                records[name] = state[name][rows]
        parts = max(1, -(-len(rows) // FLEET_BODIES))
        for k in range(parts):
            yield k, parts, records[k * FLEET_BODIES : (k + 1) * FLEET_BODIES].tobytes()

    def announce_body(self, body: BodyChanged) -> None:
        """Announce that a body was added or removed; an unfinished announcement of all bodies then skips it."""
        for _, rows in self._roll_calls.values():
            rows.pop(body.id, None)
        for w in list(self.by_token.values()):
            self._push(w.session, body)

    def announce_signals(self, sent: Record, receptions: Record) -> None:
        """Announce signals to those observers that have requested them."""
        listening = [w for w in self.by_token.values() if w.wants_signals]
        if not listening:
            return
        events: list[AnyEvent] = [
            SignalSeen(
                int(s["id"]),
                int(s["source"]),
                int(s["kind"]),
                int(s["emission_ns"]),
                float(s["frequency"]),
                float(s["source_level"]),
                tuple(s["origin_W"].tolist()),
            )
            for s in sent[sent["outcome"] == 0]
        ]
        events += [
            FateSeen(
                int(r["id"]),
                int(r["source"]),
                int(r["receiver"]),
                int(r["outcome"]),
                int(r["arrival_ns"]),
                float(r["level"]) if np.isfinite(r["level"]) else None,
                float(r["range"]) if np.isfinite(r["range"]) else None,
            )
            for r in receptions
        ]
        for w in listening:
            for event in events:
                self._push(w.session, event)
