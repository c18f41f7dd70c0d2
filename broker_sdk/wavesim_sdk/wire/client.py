"""The client's side of a session, without socket or clock: bytes and ``now`` in, events and bytes out."""

from __future__ import annotations

import math
import secrets
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.messages import EVENTS, LATEST_WINS, MESSAGES, MIN_HELLO, Type
from wavesim_sdk.wire.reliable import ACK_DELAY_S, Inbox, Outbox

if TYPE_CHECKING:  # only those who have a key need the package that seals
    from wavesim_sdk.wire.seal import Seal

RETRY_S = 0.25


@dataclass(frozen=True)
class Join:
    """What a client asks for. ``position`` and ``attitude`` matter for a new name only."""

    name: str
    model: str = ""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    attitude: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lockstep_ns: int = 0
    state_period_ns: int = 0
    previous: int = 0
    observe: bool = False


@dataclass(frozen=True)
class Welcome:
    """The server's answer to a join."""

    token: int
    id: int
    step_ns: int
    sound_speed: float
    tick: int
    run_state: int
    state_period_ns: int
    keepalive_timeout: float


@dataclass(frozen=True)
class State:
    """The latest state of the client's body.

    ``motion`` is None when the configuration hides the truth; ``step`` is True when the server waits
    for :meth:`ClientSession.done`.
    """

    tick: int
    time_ns: int
    run_state: int
    motion: list[float] | None
    actuation: list[float]
    sensors: dict[str, list[float]]  #: [time_ns, values ...] of each that is fresh and valid; NaN = no such value
    step: bool = False


@dataclass(frozen=True)
class Reception:
    """A signal that the client's transducer heard, as its instrument reports it; times by the node's own clock.

    ``frequency`` is as received, with its Doppler shift. ``range`` (m) comes with answers to an own query,
    ``azimuth`` and ``elevation`` (rad, frame B) from a USBL head, ``payload`` in packets.
    """

    reception_ns: int
    id: int
    query: int
    kind: int
    code: int
    from_address: int
    to_address: int
    frequency: float
    level: float
    snr: float
    range: float | None = None
    azimuth: float | None = None
    elevation: float | None = None
    payload: bytes | None = None


@dataclass(frozen=True)
class SignalSent:
    """The client's own signal left the transducer; the time by the node's own clock."""

    request: int
    id: int
    emission_ns: int
    frequency: float
    level: float
    duration: float


@dataclass(frozen=True)
class RequestRefused:
    """The server refused a request."""

    request: int
    text: str


@dataclass(frozen=True)
class RunStateChanged:
    """The simulation was started, stopped or paused."""

    run_state: int
    time_ns: int


@dataclass(frozen=True)
class BodyChanged:
    """To an observer: a body came, was there, or left."""

    id: int
    present: int
    type: int
    name: str
    model: str


@dataclass(frozen=True)
class SignalSeen:
    """To an observer: somebody sent a signal; true time and place."""

    id: int
    source: int
    kind: int
    emission_ns: int
    frequency: float
    level: float
    origin: list[float]


@dataclass(frozen=True)
class FateSeen:
    """To an observer: what became of a signal at a node."""

    id: int
    source: int
    receiver: int
    outcome: int
    arrival_ns: int
    level: float | None
    range: float | None


@dataclass(frozen=True)
class Notice:
    """The server did something that a person should know."""

    time_ns: int
    text: str


@dataclass(frozen=True)
class FleetPart:
    """To an observer: some of the bodies at a tick; ``bodies`` are records as docs/PROTOCOL.md says."""

    tick: int
    time_ns: int
    run_state: int
    part: int
    parts: int
    bodies: bytes


@dataclass(frozen=True)
class JoinRefused:
    """The server refused the join."""

    code: int
    text: str


@dataclass(frozen=True)
class Ended:
    """The server ended the session."""

    text: str


_Event = Reception | SignalSent | RequestRefused | RunStateChanged | BodyChanged | SignalSeen | FateSeen | Notice
SessionEvent = Welcome | State | FleetPart | _Event | JoinRefused | Ended
_EVENTS: dict[int, type[_Event]] = {
    1: Reception,
    2: SignalSent,
    3: RequestRefused,
    4: RunStateChanged,
    5: BodyChanged,
    6: SignalSeen,
    7: FateSeen,
    8: Notice,
}


class Phase(Enum):
    HELLO = "hello"
    JOINING = "joining"
    JOINED = "joined"
    CLOSED = "closed"


@dataclass
class ClientSession:
    """State machine of one session. Call :meth:`receive` for each datagram and :meth:`outgoing`
    after anything happened and whenever :meth:`next_timer` has passed."""

    join: Join
    key: bytes | None = None  #: pre-shared, of a server that wants keys
    phase: Phase = Phase.HELLO
    token: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    last_heard: float = 0.0

    def __post_init__(self) -> None:
        self._nonce = secrets.randbits(63)
        self._seal: Seal | None = None
        self._offered: Seal | None = None  # of a WELCOME that is being opened
        self._cookie = b""
        self._sequence = 0
        self._retry_at = 0.0
        self._latest: dict[Type, int] = {}
        self._outbox, self._inbox = Outbox(), Inbox()
        self._send: list[tuple[Type, list[Any]]] = []
        self._ack_at: float | None = None
        self._step: State | None = None
        self._step_needs = 0
        self._done: tuple[int, list[Any]] | None = None

    # -- what the application does ---------------------------------------------------------

    def actuate(self, command: list[float | None]) -> None:
        """Latest-wins actuator commands."""
        self._send.append((Type.ACTUATE, [command]))

    def request(self, item: list[Any]) -> int:
        """A request that is repeated until the server has it; returns its number."""
        return self._outbox.push(item)

    def estimate(self, values: list[float | None]) -> None:
        """Publish what the navigator believes."""
        self._send.append((Type.ESTIMATE, [values]))

    def done(self, tick: int, command: list[float | None] | None, estimate: list[float | None] | None) -> None:
        """Answer a lockstep step."""
        body = [tick, self._outbox.last, command, estimate]
        self._done = (tick, body)
        self._send.append((Type.DONE, body))

    def leave(self) -> None:
        """Orderly end of the session."""
        self._send.append((Type.LEAVE, []))
        self.phase = Phase.CLOSED

    # -- what the socket does --------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[SessionEvent]:
        """Take a datagram of the server; never raises on a peer's bytes."""
        try:
            header = codec.decode_header(data, from_client=False)
            if MESSAGES[header.type][1] and (self.phase is not Phase.JOINED or header.token != self.token):
                raise Dropped("token")
            body = codec.decode_body(data, header, self._opener(header))
            if header.type in LATEST_WINS:
                if header.sequence <= self._latest.get(header.type, 0):
                    raise Dropped("old")
                self._latest[header.type] = header.sequence
        except Dropped as dropped:
            self.drops[dropped.reason] += 1
            return []
        self.last_heard = now
        self._outbox.acknowledged(header.ack)
        return self._handle(header, body, now)

    def _opener(self, header: codec.Header) -> codec.Sealer | None:
        """What opens a datagram of the server."""
        if self.key is None or header.type is Type.CHALLENGE:
            return None
        from wavesim_sdk.wire import seal

        if header.type is Type.REFUSE:
            return seal.Handshake(self.key, seal.REFUSE)
        if header.type is Type.WELCOME and self.phase is Phase.JOINING:
            self._offered = seal.Seal(self.key, self._cookie, self._nonce, header.token, is_client=True)
            return self._offered
        return self._seal

    def _handle(self, header: codec.Header, body: list[Any], now: float) -> list[SessionEvent]:
        kind = header.type
        if kind is Type.CHALLENGE and self.phase is Phase.HELLO and body[0] == self._nonce:
            self._cookie, self.phase, self._retry_at = body[1], Phase.JOINING, now
        elif kind is Type.WELCOME and self.phase is Phase.JOINING and body[0] == self._nonce:
            self.token, self.phase = header.token, Phase.JOINED
            self._seal = self._offered
            return [Welcome(header.token, *body[1:8])]
        elif kind is Type.REFUSE and self.phase is Phase.JOINING and body[0] == self._nonce:
            if body[1] == 1:  # the cookie grew too old: ask for a new one
                self.phase, self._retry_at = Phase.HELLO, now
                return []
            self.phase = Phase.CLOSED
            return [JoinRefused(body[1], body[2])]
        elif kind is Type.STATE:
            return [_state(body)]
        elif kind is Type.FLEET:
            return [FleetPart(*body[:6])]
        elif kind is Type.EVENTS:
            self._ack_at = now + ACK_DELAY_S if self._ack_at is None else self._ack_at
            new = self._inbox.accept(body[0], body[1])
            return [_EVENTS[i[0]](*i[1 : 1 + _ARITY[i[0]]]) for _, i in new if i[0] in _EVENTS] + self._release_step()
        elif kind is Type.STEP:
            return self._on_step(body)
        elif kind is Type.KEEPALIVE:
            self._send.append((Type.KEEPALIVE_REPLY, [body[0]]))
        elif kind is Type.BYE:
            self.phase = Phase.CLOSED
            return [Ended(body[0])]
        return []

    def _on_step(self, body: list[Any]) -> list[SessionEvent]:
        if self._done is not None and self._done[0] == body[0]:
            self._send.append((Type.DONE, self._done[1]))
            return []
        if self._step is None or self._step.tick != body[0]:
            self._step, self._step_needs = replace(_state(body), step=True), body[6]
            return self._release_step()
        return []

    def _release_step(self) -> list[SessionEvent]:
        """Hand a step out once, when every event before it has come."""
        if self._step is None or self._inbox.received < self._step_needs or self._step_needs < 0:
            return []
        self._step_needs = -1
        return [self._step]

    def outgoing(self, now: float) -> list[bytes]:
        """Datagrams to send now."""
        out: list[bytes] = []
        if self.phase in (Phase.HELLO, Phase.JOINING) and now >= self._retry_at:
            self._retry_at = now + RETRY_S
            if self.phase is Phase.HELLO:
                out.append(self._encode(Type.HELLO, [self._nonce, bytes(MIN_HELLO)]))
            else:
                j = self.join
                body = [
                    self._cookie,
                    self._nonce,
                    j.name,
                    j.model,
                    list(j.position),
                    list(j.attitude),
                    j.lockstep_ns,
                    j.state_period_ns,
                    j.previous,
                    int(j.observe),
                ]
                out.append(self._join(body))
        if self.token:
            # Requests go before the DONE that counts them.
            out += [self._encode(Type.REQUESTS, body) for body in self._outbox.bodies(now)]
            out += [self._encode(kind, body) for kind, body in self._send]
            self._send.clear()
            if out:
                self._ack_at = None
            elif self._ack_at is not None and now >= self._ack_at:
                out.append(self._encode(Type.ACK, []))
                self._ack_at = None
        return out

    def _encode(self, kind: Type, body: list[Any]) -> bytes:
        self._sequence += 1
        return codec.encode(kind, body, self.token, self._sequence, self._inbox.received, self._seal)

    def _join(self, body: list[Any]) -> bytes:
        if self.key is None:
            return self._encode(Type.JOIN, body)
        from wavesim_sdk.wire import seal

        self._sequence += 1
        closer = seal.Handshake(self.key, seal.JOIN)
        return codec.encode(Type.JOIN, body, seal.key_id(self.key), self._sequence, 0, closer)

    def next_timer(self) -> float | None:
        """When :meth:`outgoing` must be called again, or None."""
        if self.phase in (Phase.HELLO, Phase.JOINING):
            return self._retry_at
        timers = [t for t in (self._ack_at, self._outbox.next_timer()) if t is not None]
        return min(timers) if timers and self.phase is Phase.JOINED else None


_ARITY = {int(kind): len(elements) for kind, elements in EVENTS.items()}


def _state(body: list[Any]) -> State:
    tick, time_ns, run_state, motion, actuation, sensors = body[:6]
    with_nan = {name: [math.nan if v is None else v for v in values] for name, values in sensors.items()}
    return State(tick, time_ns, run_state, motion, actuation, with_nan)
