"""The server's side of all sessions, without socket, clock or simulation.

Bytes, address and ``now`` in; :class:`Happening` objects and datagrams out.  Who may join is decided
by a callback, so that this module knows nothing of vehicles.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.batch import pack_address
from wavesim_sdk.wire.client import Join
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.messages import LATEST_WINS, MESSAGES, MIN_HELLO, Refusal, Type
from wavesim_sdk.wire.reliable import ACK_DELAY_S, Inbox, Outbox

if TYPE_CHECKING:  # a server without keys needs no package that seals
    from wavesim_sdk.wire.seal import Holder, Keyring, Seal

Address = tuple[str, int]
MAX_HOSTS = 4096
MAX_SEQUENCE = 2**32 - 2**20
COOKIE_PERIOD_S = 10.0
RETRANSMIT_STEP_S = 0.2


@dataclass(frozen=True)
class Admission:
    """A join is accepted: the body's row and what goes into WELCOME."""

    id: int
    truth: bool
    welcome: list[Any]  # WELCOME's elements after the nonce
    state_period: float


class Bucket:
    """Datagrams per second, with a second's worth at once."""

    __slots__ = ("left", "rate", "since")

    def __init__(self, rate: float) -> None:
        self.rate = self.left = rate
        self.since = 0.0

    def take(self, now: float) -> bool:
        """Whether one more is within the rate."""
        if self.rate == math.inf:
            return True
        self.left = min(self.left + self.rate * (now - self.since), self.rate)
        self.since = now
        if self.left < 1.0:
            return False
        self.left -= 1.0
        return True


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
    seal: Seal | None = None
    kind: int = 0  # of the body
    packed_address: bytes = b""
    ready: bool = False  # its body has entered
    bucket: Bucket = field(default_factory=lambda: Bucket(math.inf))

    @property
    def name(self) -> str:
        return self.join.name

    @property
    def slot(self) -> tuple[bool, str]:
        """Observers and bodies may have the same names."""
        return self.join.observe, self.join.name


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
        keys: Keyring | None = None,
        takeover: bool = False,
        rate: float = math.inf,
    ) -> None:
        self.keys, self.takeover = keys, takeover
        self._rate = rate
        self._strangers: dict[str, Bucket] = {}  # host -> datagrams outside a session
        self._spent: dict[tuple[Address, int], float] = {}  # joins of sessions that are over, and when they ended
        self.by_token: dict[int, Session] = {}
        self.drops: Counter[str] = Counter()
        self.outgoing: list[tuple[bytes, Address]] = []
        self._by_join: dict[tuple[Address, int], Session] = {}
        self._by_name: dict[tuple[bool, str], Session] = {}
        self._admit = admit
        self._period, self._timeout = keepalive_period, keepalive_timeout
        self._secret = secrets.token_bytes(32)

    # -- datagrams -------------------------------------------------------------------------

    def receive(self, data: bytes, address: Address, now: float) -> list[Happening]:
        """Take a datagram; never raises on a peer's bytes."""
        try:
            header = codec.decode_header(data, from_client=True)
            session = self.by_token.get(header.token) if MESSAGES[header.type][1] else None
            if session is None:
                self._stranger(address[0], now)
                if MESSAGES[header.type][1]:
                    raise Dropped("token")
                return self._before_session(header, data, address, now)
            if session.address != address:
                raise Dropped("address")
            if not session.bucket.take(now):
                raise Dropped("rate")
            body = codec.decode_body(data, header, session.seal)
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

    def _stranger(self, host: str, now: float) -> None:
        """Limit what comes from a host outside of its sessions."""
        bucket = self._strangers.get(host)
        if bucket is None:
            if len(self._strangers) >= MAX_HOSTS:
                self._strangers.clear()
            bucket = self._strangers[host] = Bucket(self._rate)
        if not bucket.take(now):
            raise Dropped("rate")

    def _before_session(self, header: codec.Header, data: bytes, address: Address, now: float) -> list[Happening]:
        if header.type is Type.HELLO:
            body = codec.decode_body(data, header)
            if len(data) < MIN_HELLO:
                raise Dropped("size")
            self._send_raw(Type.CHALLENGE, [body[0], self._cookie(address, int(now // COOKIE_PERIOD_S))], address)
            return []
        holder = None
        if self.keys is not None and header.sealed:
            holder = self.keys.by_id.get(header.token)
            if holder is None:
                raise Dropped("key")
        body = codec.decode_body(
            data, header, self.keys.opener(holder) if holder is not None and self.keys is not None else None
        )
        if (self.keys is not None) != header.sealed:
            raise Dropped("flags")
        return self._join(body, address, now, holder)

    def _cookie(self, address: Address, period: int) -> bytes:
        return hmac.digest(self._secret, f"{address[0]}|{address[1]}|{period}".encode(), hashlib.sha256)[:16]

    def _join(self, body: list[Any], address: Address, now: float, owner: Holder | None) -> list[Happening]:
        cookie, nonce = body[0], body[1]
        period = int(now // COOKIE_PERIOD_S)
        if not any(hmac.compare_digest(cookie, self._cookie(address, p)) for p in (period, period - 1)):
            self._refuse(nonce, Refusal.COOKIE, "the cookie is wrong or too old", address, owner)
            return []
        if (address, nonce) in self._spent:  # a captured JOIN of a session that is over
            raise Dropped("replay")
        known = self._by_join.get((address, nonce))
        if known is not None:
            self._welcome(known)
            return []
        if None in body[4] or None in body[5]:
            raise Dropped("fields")
        join = Join(body[2], body[3], tuple(body[4]), tuple(body[5]), body[6], body[7], body[8], body[9] == 1)
        if owner is not None and owner.name not in ("*", join.name):
            self._refuse(nonce, Refusal.KEY, f"this key is that of '{owner.name}'", address, owner)
            return []
        holder = self._by_name.get((join.observe, join.name))
        returns = holder is not None and join.previous == holder.token
        if holder is not None and not returns and not self.takeover:
            self._refuse(
                nonce,
                Refusal.NAME_IN_USE,
                f"'{join.name}' is in use by a client at {holder.address[0]}:{holder.address[1]}",
                address,
                owner,
            )
            return []
        try:
            admission = self._admit(join) if holder is None else holder.admission
        except Refused as refused:
            self._refuse(nonce, refused.code, refused.text, address, owner)
            return []
        token = secrets.randbits(63) | 1
        session = Session(token, address, nonce, join, admission, now, keepalive_at=now, next_state=now)
        session.bucket, session.packed_address = Bucket(self._rate), pack_address(address)
        if owner is not None and self.keys is not None:
            session.seal = self.keys.session(owner, cookie, nonce, token)
        if holder is not None:
            if not returns:
                self.send(holder, Type.BYE, ["another client took over"])
            self._forget(holder, now)
        self.by_token[token] = self._by_join[(address, nonce)] = self._by_name[session.slot] = session
        self._welcome(session)
        return [Resumed(session) if holder is not None else Joined(session)]

    def _welcome(self, session: Session) -> None:
        self.send(session, Type.WELCOME, [session.nonce, *session.admission.welcome])

    def _refuse(self, nonce: int, code: Refusal, text: str, address: Address, owner: Holder | None) -> None:
        closer = self.keys.refuser(owner) if owner is not None and self.keys is not None else None
        self._send_raw(Type.REFUSE, [nonce, int(code), text[:400]], address, closer)

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
            self._forget(session, now)
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
            (
                codec.encode(kind, body, session.token, session.sequence, session.inbox.received, session.seal),
                session.address,
            )
        )

    def _send_raw(self, kind: Type, body: list[Any], address: Address, closer: codec.Sealer | None = None) -> None:
        self.outgoing.append((codec.encode(kind, body, seal=closer), address))

    def step(self, session: Session, state: list[Any], now: float) -> None:
        """Ask a lockstep client; repeated by :meth:`tick` until it answers."""
        self.flush_events(session, now)
        session.step = [*state, session.outbox.last]
        session.step_repeat_at = now + RETRANSMIT_STEP_S
        self.send(session, Type.STEP, session.step)

    def bye(self, session: Session, text: str) -> None:
        """End a session from the server's side."""
        self.send(session, Type.BYE, [text[:400]])
        self._forget(session, session.last_heard)

    def flush_events(self, session: Session, now: float) -> None:
        """Send the events that are new, or due to be repeated."""
        for body in session.outbox.bodies(now):
            self.send(session, Type.EVENTS, body)

    def tick(self, now: float) -> list[Happening]:
        """Keep-alive, repeats, removal of silent clients. Call it at least every 50 ms."""
        gone: list[Happening] = []
        for session in list(self.by_token.values()):
            if now - session.last_heard > self._timeout:
                self._forget(session, now)
                self.send(session, Type.BYE, ["no sign of life within the keep-alive time"])
                gone.append(Gone(session, "silent"))
                continue
            if session.sequence > MAX_SEQUENCE:
                self.bye(session, "its sequence numbers are used up; join again")
                gone.append(Gone(session, "silent"))
                continue
            if now >= session.keepalive_at:
                session.keepalive_at = now + self._period
                session.rtt.sent += 1
                if len(session.keepalive_sent) > 64:
                    session.keepalive_sent.clear()
                session.keepalive_sent[session.rtt.sent] = now
                self.send(session, Type.KEEPALIVE, [session.rtt.sent])
            self.flush_events(session, now)
            if session.step is not None and now >= session.step_repeat_at:
                session.step_repeat_at = now + RETRANSMIT_STEP_S
                self.send(session, Type.STEP, session.step)
            if session.ack_at is not None and now >= session.ack_at:
                self.send(session, Type.KEEPALIVE, [0])
        return gone

    def _forget(self, session: Session, now: float) -> None:
        self.by_token.pop(session.token, None)
        self._by_join.pop((session.address, session.nonce), None)
        if self._by_name.get(session.slot) is session:
            del self._by_name[session.slot]
        while self._spent and now - next(iter(self._spent.values())) > 2.0 * COOKIE_PERIOD_S:
            del self._spent[next(iter(self._spent))]
        self._spent[session.address, session.nonce] = now
