"""The server's side of all sessions, without socket, clock or simulation.

Bytes, address and ``now`` in; :class:`Happening` objects and datagrams out.  Who may join is decided
by a callback, so that this module knows nothing of vehicles.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.client import Join
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.messages import LATEST_WINS, MESSAGES, MIN_HELLO, Refusal, Type
from wavesim_sdk.wire.reliable import ACK_DELAY_S, Inbox, Outbox

Address = tuple[str, int]
COOKIE_PERIOD_S = 10.0
RETRANSMIT_STEP_S = 0.2


@dataclass(frozen=True)
class Admission:
    """A join is accepted: the body's row and what goes into WELCOME."""

    id: int
    truth: bool
    welcome: list[Any]  # WELCOME's elements after the nonce
    state_period: float


@dataclass
class RoundTrip:
    """Statistics of the keep-alive."""

    sent: int = 0
    replies: int = 0
    last: float = 0.0
    mean: float = 0.0
    least: float = 0.0
    greatest: float = 0.0

    def add(self, seconds: float) -> None:
        self.replies += 1
        self.last = seconds
        self.mean += (seconds - self.mean) / self.replies
        self.least = min(self.least, seconds) if self.replies > 1 else seconds
        self.greatest = max(self.greatest, seconds)


@dataclass
class Session:
    """One client."""

    token: int
    address: Address
    nonce: int
    join: Join
    admission: Admission
    last_heard: float
    sequence: int = 0
    datagrams_in: int = 0
    datagrams_out: int = 0
    rtt: RoundTrip = field(default_factory=RoundTrip)
    outbox: Outbox = field(default_factory=Outbox)
    inbox: Inbox = field(default_factory=Inbox)
    latest: dict[Type, int] = field(default_factory=dict)
    keepalive_at: float = 0.0
    keepalive_sent: dict[int, float] = field(default_factory=dict)
    ack_at: float | None = None
    next_state: float = 0.0
    step: list[Any] | None = None  # STEP waiting for its DONE
    step_repeat_at: float = 0.0
    done: list[Any] | None = None  # DONE waiting for the requests it counts

    @property
    def name(self) -> str:
        return self.join.name


@dataclass(frozen=True)
class Joined:
    session: Session


@dataclass(frozen=True)
class Resumed:
    session: Session


@dataclass(frozen=True)
class Gone:
    """A session ended: by LEAVE, or by silence."""

    session: Session
    reason: str  # "left" or "silent"


@dataclass(frozen=True)
class Actuated:
    session: Session
    command: list[float | None]


@dataclass(frozen=True)
class Requested:
    session: Session
    number: int
    item: list[Any]


@dataclass(frozen=True)
class Estimated:
    session: Session
    values: list[float | None]


@dataclass(frozen=True)
class StepDone:
    session: Session
    tick: int
    command: list[float | None] | None
    estimate: list[float | None] | None


Happening = Joined | Resumed | Gone | Actuated | Requested | Estimated | StepDone


class Refused(Exception):
    """Raised by the admission callback."""

    def __init__(self, code: Refusal, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


class ServerSessions:
    """All sessions of a server."""

    def __init__(
        self,
        admit: Callable[[Join], Admission],
        keepalive_period: float,
        keepalive_timeout: float,
    ) -> None:
        self.by_token: dict[int, Session] = {}
        self.drops: Counter[str] = Counter()
        self.outgoing: list[tuple[bytes, Address]] = []
        self._by_join: dict[tuple[Address, int], Session] = {}
        self._admit = admit
        self._period, self._timeout = keepalive_period, keepalive_timeout
        self._secret = secrets.token_bytes(32)

    # -- datagrams -------------------------------------------------------------------------

    def receive(self, data: bytes, address: Address, now: float) -> list[Happening]:
        """Take a datagram; never raises on a peer's bytes."""
        try:
            header = codec.decode_header(data, from_client=True)
            if not MESSAGES[header.type][1]:
                return self._before_session(header, data, address, now)
            session = self.by_token.get(header.token)
            if session is None:
                raise Dropped("token")
            if session.address != address:
                raise Dropped("address")
            body = codec.decode_body(data, header.type)
            if header.type in LATEST_WINS:
                if header.sequence <= session.latest.get(header.type, 0):
                    raise Dropped("old")
                session.latest[header.type] = header.sequence
        except Dropped as dropped:
            self.drops[dropped.reason] += 1
            return []
        session.last_heard = now
        session.datagrams_in += 1
        session.outbox.acknowledged(header.ack)
        return self._handle(session, header.type, body, now)

    def _before_session(self, header: codec.Header, data: bytes, address: Address, now: float) -> list[Happening]:
        body = codec.decode_body(data, header.type)
        if header.type is Type.HELLO:
            if len(data) < MIN_HELLO:
                raise Dropped("size")
            self._send_raw(Type.CHALLENGE, [body[0], self._cookie(address, int(now // COOKIE_PERIOD_S))], address)
            return []
        return self._join(body, address, now)

    def _cookie(self, address: Address, period: int) -> bytes:
        return hmac.digest(self._secret, f"{address[0]}|{address[1]}|{period}".encode(), hashlib.sha256)[:16]

    def _join(self, body: list[Any], address: Address, now: float) -> list[Happening]:
        cookie, nonce = body[0], body[1]
        period = int(now // COOKIE_PERIOD_S)
        if not any(hmac.compare_digest(cookie, self._cookie(address, p)) for p in (period, period - 1)):
            self._refuse(nonce, Refusal.COOKIE, "the cookie is wrong or too old", address)
            return []
        known = self._by_join.get((address, nonce))
        if known is not None:
            self._welcome(known)
            return []
        if None in body[4] or None in body[5]:
            raise Dropped("fields")
        join = Join(body[2], body[3], tuple(body[4]), tuple(body[5]), body[6], body[7], body[8])
        holder = next((s for s in self.by_token.values() if s.name == join.name), None)
        if holder is not None and (not join.previous or holder.token != join.previous):
            self._refuse(
                nonce,
                Refusal.NAME_IN_USE,
                f"'{join.name}' is in use by a client at {holder.address[0]}:{holder.address[1]}",
                address,
            )
            return []
        try:
            admission = self._admit(join) if holder is None else holder.admission
        except Refused as refused:
            self._refuse(nonce, refused.code, refused.text, address)
            return []
        token = secrets.randbits(63) | 1
        session = Session(token, address, nonce, join, admission, now, keepalive_at=now, next_state=now)
        if holder is not None:
            self._forget(holder)
        self.by_token[token] = self._by_join[(address, nonce)] = session
        self._welcome(session)
        return [Resumed(session) if holder is not None else Joined(session)]

    def _welcome(self, session: Session) -> None:
        self.send(session, Type.WELCOME, [session.nonce, *session.admission.welcome])

    def _refuse(self, nonce: int, code: Refusal, text: str, address: Address) -> None:
        self._send_raw(Type.REFUSE, [nonce, int(code), text[:400]], address)

    def _handle(self, session: Session, kind: Type, body: list[Any], now: float) -> list[Happening]:
        if kind is Type.ACTUATE:
            return [Actuated(session, body[0])]
        if kind is Type.ESTIMATE:
            return [Estimated(session, body[0])]
        if kind is Type.REQUESTS:
            session.ack_at = now + ACK_DELAY_S if session.ack_at is None else session.ack_at
            new: list[Happening] = [
                Requested(session, number, item) for number, item in session.inbox.accept(body[0], body[1])
            ]
            return new + self._release_done(session)
        if kind is Type.DONE:
            if session.step is not None and session.step[0] == body[0]:
                session.done = body
            return self._release_done(session)
        if kind is Type.KEEPALIVE_REPLY:
            sent = session.keepalive_sent.pop(body[0], None)
            if sent is not None:
                session.rtt.add(now - sent)
        if kind is Type.LEAVE:
            self._forget(session)
            return [Gone(session, "left")]
        return []

    def _release_done(self, session: Session) -> list[Happening]:
        done = session.done
        if done is None or session.inbox.received < done[1]:
            return []
        session.done = session.step = None
        return [StepDone(session, done[0], done[2], done[3])]

    # -- what the server says --------------------------------------------------------------

    def send(self, session: Session, kind: Type, body: list[Any]) -> None:
        """Queue a datagram for a client."""
        session.sequence += 1
        session.datagrams_out += 1
        session.ack_at = None
        self.outgoing.append(
            (codec.encode(kind, body, session.token, session.sequence, session.inbox.received), session.address)
        )

    def _send_raw(self, kind: Type, body: list[Any], address: Address) -> None:
        self.outgoing.append((codec.encode(kind, body), address))

    def step(self, session: Session, state: list[Any], now: float) -> None:
        """Ask a lockstep client; repeated by :meth:`tick` until it answers."""
        self._flush_events(session, now)
        session.step = [*state, session.outbox.last]
        session.step_repeat_at = now + RETRANSMIT_STEP_S
        self.send(session, Type.STEP, session.step)

    def bye(self, session: Session, text: str) -> None:
        """End a session from the server's side."""
        self.send(session, Type.BYE, [text[:400]])
        self._forget(session)

    def _flush_events(self, session: Session, now: float) -> None:
        for body in session.outbox.bodies(now):
            self.send(session, Type.EVENTS, body)

    def tick(self, now: float) -> list[Happening]:
        """Keep-alive, repeats, removal of silent clients. Call it at least every 50 ms."""
        gone: list[Happening] = []
        for session in list(self.by_token.values()):
            if now - session.last_heard > self._timeout:
                self._forget(session)
                self.send(session, Type.BYE, ["no sign of life within the keep-alive time"])
                gone.append(Gone(session, "silent"))
                continue
            if now >= session.keepalive_at:
                session.keepalive_at = now + self._period
                session.rtt.sent += 1
                if len(session.keepalive_sent) > 64:
                    session.keepalive_sent.clear()
                session.keepalive_sent[session.rtt.sent] = now
                self.send(session, Type.KEEPALIVE, [session.rtt.sent])
            self._flush_events(session, now)
            if session.step is not None and now >= session.step_repeat_at:
                session.step_repeat_at = now + RETRANSMIT_STEP_S
                self.send(session, Type.STEP, session.step)
            if session.ack_at is not None and now >= session.ack_at:
                self.send(session, Type.KEEPALIVE, [0])
        return gone

    def _forget(self, session: Session) -> None:
        self.by_token.pop(session.token, None)
        self._by_join.pop((session.address, session.nonce), None)
