"""Client side of a session, without a socket or clock: bytes and ``now`` go in, events and bytes come out."""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.frame_pieces import FrameAssembler, WholeFrame
from wavesim_sdk.wire.items import (
    EVENTS,
    REQUESTS,
    ActuatorDescription,
    AnyEvent,
    AnyRequest,
    SensorDescription,
    TimeChanged,
)
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    LATEST_WINS,
    MESSAGES,
    MIN_HELLO,
    Ack,
    Actuate,
    Bye,
    Challenge,
    Done,
    Estimate,
    Events,
    Fleet,
    Hello,
    Join,
    Keepalive,
    KeepaliveReply,
    Leave,
    Piece,
    Proof,
    Prove,
    Refusal,
    Refuse,
    Requests,
    SensorsMessage,
    StateContents,
    StateMessage,
    StepMessage,
    Type,
    Welcome,
)
from wavesim_sdk.wire.reliable import ACK_DELAY_S, PROMPT_ACK_LISTS, Inbox, RttEstimator, make_outbox
from wavesim_sdk.wire.schema import Malformed, check, schema_of
from wavesim_sdk.wire.state import Body, Parts, State

if TYPE_CHECKING:  # only clients with a key need the package for sealing
    from wavesim_sdk.wire.seal import ClientExchange, SessionSeal, WelcomeSeal

RETRY_S = 0.25  #: time in s between two HELLO or JOIN datagrams of a client
LEAVE_TRIES = 6
SEND_QUEUE_LENGTH = 1024  #: maximum number of messages that may wait to be sent
_STATES = frozenset({Type.STATE, Type.STEP})
_DONE = schema_of(Done)
ROOM_TO_PROVE = (
    b"\x99" + 9 * b"\xc0"
    #: payload that makes an ACK as long as a PROVE, because a server sends no more bytes to an unproven address than it
    #: has received from that address
)
SILENT_PERIODS = 1.5  #: number of keep-alive periods without a datagram after which a client sends an ACK


@dataclass(frozen=True)
class JoinRefused:
    """The server refused the join."""

    code: int
    text: str


@dataclass(frozen=True)
class SessionClosed:
    """The server ended the session."""

    text: str


SessionEvent = Welcome | State | Fleet | WholeFrame | AnyEvent | JoinRefused | SessionClosed


class Phase(Enum):
    HELLO = "hello"
    JOINING = "joining"
    JOINED = "joined"
    LEAVING = "leaving"
    CLOSED = "closed"


class ClientSession:
    """State machine of one client session.

    Call :meth:`receive` for each datagram. Call :meth:`outgoing` after every other call, and whenever the time returned
    by :meth:`next_timer` has passed. Methods raise Malformed if the program passes a message that cannot be sent.
    """

    def __init__(self, join: Join, key: bytes | None = None, rng: random.Random | None = None) -> None:
        self.join = check(join)
        self.key = key  #: pre-shared key, if the server requires keys; the public key of the server may follow it
        self.phase = Phase.HELLO
        self.token = 0
        self.end_reason = ""  #: reason why the server ended the session; empty if the server has not ended it
        self.drops: Counter[str] = Counter()
        self.last_heard = 0.0
        self.body = Body()  #: actuators and sensors, as described by the server
        self.welcome: Welcome | None = None  #: the server's WELCOME; None until the server has described the body
        self._rng = rng if rng is not None else secrets.SystemRandom()
        self._nonce = self._rng.getrandbits(63)
        self._seal: SessionSeal | None = None
        self._offered: WelcomeSeal | None = None  # seal of a WELCOME that may still turn out to be forged
        self._exchange: ClientExchange | None = None  # exchange of the present nonce, until the client has joined
        self._cookie = b""
        self._sequence = 0
        self._retry_at = self._asked_at = self._sent_at = 0.0
        self._tries = 0
        self._latest: dict[Type, int] = {}
        self._rtt_estimator = RttEstimator()
        self._outbox, self._inbox = make_outbox(self._rtt_estimator, join), Inbox()
        self._send: list[Any] = []
        self._ack_at: float | None = None
        self._unacknowledged_lists = 0  # lists of events since the last datagram to the server
        self._pending_welcome: Welcome | None = None  # welcome to a body that is not fully described yet
        self._period = math.inf  # keep-alive period, s
        self._parts = Parts()
        self.frames = FrameAssembler()  #: assembles the frames from imaging sonars
        self._state: StateMessage | None = None  # a state that waits for its parts
        self._step: StepMessage | None = None
        self._first_step_event = 0  # number of the last TIME_CHANGED event
        self._handed = False  # whether the program has received the step
        self._done: Done | None = None
        self._idle_until = -math.inf  # time before which outgoing() returns nothing; -inf = something changed

    # -- called by the program -------------------------------------------------------------

    @property
    def ticket(self) -> int:
        """Number with which a later join resumes this session: the token or, if keys are used, a secret number that
        only this client and the server know.
        """
        return self.token if self._seal is None else self._seal.ticket

    def actuate(self, command: Sequence[float | None]) -> None:
        """Send actuator commands. The server uses only the latest commands that it has received."""
        self._queue(check(Actuate(command)))

    def request(self, request: AnyRequest, more: int = 0) -> int:
        """Queue a request and return its number. The request is repeated until the server acknowledges it. ``more`` is
        as in :meth:`Outbox.push`.

        Raises OverflowError if the server does not acknowledge requests.
        """
        self._idle_until = -math.inf
        return self._outbox.push(REQUESTS.encode(check(request)), more)

    @property
    def unacknowledged_requests(self) -> int:
        """Number of requests that the server has not yet acknowledged."""
        return len(self._outbox)

    def estimate(self, values: Sequence[float | None]) -> None:
        """Send the navigator's estimate."""
        self._queue(check(Estimate(values)))

    def done(
        self, tick: int, command: Sequence[float | None] | None, estimate: Sequence[float | None] | None = None
    ) -> None:
        """Answer the current step in lockstep."""
        numbers = None if command is None else tuple(command)
        estimated = None if estimate is None else tuple(estimate)
        self._done = _DONE.decode((tick, self._outbox.last, numbers, estimated))
        self._queue(self._done)

    def leave(self) -> None:
        """End the session in an orderly way: LEAVE is repeated until the server confirms it."""
        if self.phase is Phase.JOINED:
            self.phase, self._tries, self._retry_at = Phase.LEAVING, 0, 0.0
        elif self.phase is not Phase.LEAVING:
            self.phase = Phase.CLOSED
        self._idle_until = -math.inf

    def _queue(self, message: Any) -> None:
        self._idle_until = -math.inf
        if len(self._send) >= SEND_QUEUE_LENGTH:
            del self._send[0]
        self._send.append(message)

    # -- called by the socket --------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> list[SessionEvent]:
        """Process a datagram from the server and return its events. This method never raises an exception, even if the
        bytes are invalid.
        """
        try:
            header = codec.decode_header(data, from_client=False)
            live = self.phase is Phase.JOINED or self.phase is Phase.LEAVING
            if MESSAGES[header.type][1] and (not live or header.token != self.token):
                raise Dropped("token")
            message = codec.decode_payload(data, header, self._opener(header))
            if header.type in LATEST_WINS:
                if header.sequence <= self._latest.get(header.type, 0):
                    raise Dropped("old")
                self._latest[header.type] = header.sequence
        except Dropped as dropped:
            self.drops[dropped.reason] += 1
            return []
        if live and not MESSAGES[header.type][1]:
            return []  # a repeated answer; anybody can send one, so it does not count as a sign of life
        self.last_heard = now
        if header.type not in _STATES or self._outbox:
            self._idle_until = -math.inf
        if not live:
            return self._before(header, message, now)
        self._outbox.acknowledge(header.ack, now)
        return self._handle(message, now)

    def _opener(self, header: codec.Header) -> codec.Sealer | None:
        """Return the seal that decrypts a datagram from the server."""
        if self.key is None or header.type is Type.CHALLENGE:
            return None
        from wavesim_sdk.wire import seal

        if header.type is Type.REFUSE:
            return seal.HandshakeSeal(self.key, seal.REFUSE)
        if header.type is Type.WELCOME and self.phase is Phase.JOINING:
            if self._exchange is None:  # no JOIN was sent, so this is a forged WELCOME
                raise Dropped("seal")
            self._offered = seal.WelcomeSeal(self._exchange, self._cookie, self._nonce, header.token)
            return self._offered
        if self._seal is None:
            raise Dropped("seal")
        return self._seal

    def _before(self, header: codec.Header, message: Any, now: float) -> list[SessionEvent]:
        if message.nonce != self._nonce or self.phase is Phase.CLOSED:
            return []
        match message:
            case Challenge(_, cookie) if self.phase is Phase.HELLO:
                self._measured(now)
                self._cookie, self.phase, self._retry_at, self._tries = cookie, Phase.JOINING, now, 0
            case Welcome() if self.phase is Phase.JOINING:
                self._measured(now)
                self.token, self.phase = header.token, Phase.JOINED
                self._seal = None if self._offered is None else self._offered.session
                self._exchange = self._offered = None  # its private key would open a recorded session
                self._pending_welcome = message
                return self._described()
            case Refuse(_, Refusal.COOKIE) if (
                self.phase is Phase.JOINING
            ):  # the cookie is too old, or the session of this nonce has ended
                self._nonce, self._exchange = self._rng.getrandbits(63), None
                self.phase, self._retry_at, self._tries = Phase.HELLO, now, 0
            case Refuse(_, code, text):
                self.phase = Phase.CLOSED
                return [JoinRefused(code, text)]
        return []

    def _measured(self, now: float) -> None:
        if self._tries == 1:
            self._rtt_estimator.add_sample(now - self._asked_at)

    def _described(self) -> list[SessionEvent]:
        """Return the WELCOME as an event once the server has described all actuators and sensors that it announces;
        until then, return no events.
        """
        w = self._pending_welcome
        if w is None or len(self.body.actuators) < w.actuators or len(self.body.layouts) < w.sensors:
            return []
        self.welcome, self._pending_welcome = w, None
        self._period = max(w.keepalive_period, ACK_DELAY_S)
        return [w]

    def _handle(self, message: Any, now: float) -> list[SessionEvent]:
        if self.phase is Phase.LEAVING and type(message) is not Bye:
            return []
        match message:  # the most frequent types first
            case StepMessage():
                return self._on_step(message)
            case StateMessage():
                return self._on_state(message)
            case Bye(text):
                leaving, self.phase = self.phase is Phase.LEAVING, Phase.CLOSED
                self.end_reason = "" if leaving else text
                return [] if leaving else [SessionClosed(text)]
            case SensorsMessage(tick, part, readings):
                self._parts.add(tick, part, readings)
                return self._release_state() + self._release_step()
            case Events(first, items):
                self._unacknowledged_lists += 1
                if self._unacknowledged_lists >= PROMPT_ACK_LISTS:
                    self._ack_at = now
                elif self._ack_at is None:
                    self._ack_at = now + ACK_DELAY_S
                found: list[SessionEvent] = []
                for number, item in self._inbox.accept(first, items):
                    found += self._on_event(item, number)
                return found + self._release_step()
            case Piece():
                whole = self.frames.add(message) if message.sensor in self.body.layouts else None
                return [] if whole is None else [whole]
            case Fleet():
                return [message]
            case Keepalive(number):
                self._queue(KeepaliveReply(number))
            case Prove(number):
                self._queue(Proof(number))
        return []

    def _on_event(self, item: Any, number: int) -> list[SessionEvent]:
        try:
            event = EVENTS.decode(item)
        except Malformed:
            self.drops["item"] += 1
            return []
        if isinstance(event, TimeChanged):  # steps before this event are void, and ticks begin again
            self._first_step_event = number
            self._state = self._step = self._done = None
            self._parts = Parts()
        return [] if event is None else self._apply_event(event)  # None: a kind of a later version

    def _apply_event(self, event: AnyEvent) -> list[SessionEvent]:
        match event:
            case ActuatorDescription():
                self.body.add_actuator(event)
                return self._described()
            case SensorDescription():
                self.body.add_sensor(event)
                return self._described()
        return [event]

    def _on_state(self, message: StateMessage) -> list[SessionEvent]:
        overtaken = self._state
        self._state = message
        found: list[SessionEvent] = []
        if overtaken is not None and overtaken.tick < message.tick:  # it can no longer become complete
            found = self._build_state(overtaken)
        return found + self._release_state()

    def _release_state(self) -> list[SessionEvent]:
        if self._state is None or not self._parts.is_complete(self._state):
            return []
        whole, self._state = self._state, None
        return self._build_state(whole)

    def _build_state(self, message: StateContents, step: bool = False) -> list[SessionEvent]:
        if self.welcome is None:
            return []  # the names of its values are not known yet
        if not message.parts:
            return [self.body.build_state(message, (), step)]
        state = self.body.build_state(message, self._parts.readings(message.tick), step)
        self._parts.discard_until(message.tick)
        return [state]

    def _on_step(self, message: StepMessage) -> list[SessionEvent]:
        if message.last_event < self._first_step_event:
            return []  # a delayed copy from before the last change of time
        if self._done is not None and self._done.tick == message.tick:
            self._queue(self._done)
            return []
        if self._step is None or self._step.tick < message.tick:  # an earlier one is a delayed copy
            self._step, self._handed = message, False
        return self._release_step()

    def _release_step(self) -> list[SessionEvent]:
        """Return the next step as soon as all its parts and every event before it have arrived. Each step is returned
        once.
        """
        step = self._step
        if step is None or self._handed or self._inbox.received < step.last_event or not self._parts.is_complete(step):
            return []
        self._handed = True
        return self._build_state(step, step=True)

    def outgoing(self, now: float) -> list[bytes]:
        """Return the datagrams to send now."""
        if now < self._idle_until:
            return []
        out = self._collect_outgoing(now)
        self._idle_until = math.inf if (timer := self._timer()) is None else timer
        return out

    def _collect_outgoing(self, now: float) -> list[bytes]:
        out: list[bytes] = []
        if self.phase in (Phase.HELLO, Phase.JOINING) and now >= self._retry_at:
            self._retry_at, self._asked_at = now + RETRY_S, now
            self._tries += 1
            if self.phase is Phase.HELLO:
                out.append(self._encode(Hello(self._nonce, bytes(MIN_HELLO - HEADER_BYTES))))
            else:
                out.append(self._join())
        elif self.phase is Phase.JOINED:
            # Requests precede the DONE that counts them.
            out += [self._encode(Requests(first, items)) for first, items in self._outbox.take_due(now)]
            out += [self._encode(message) for message in self._send]
            self._send.clear()
            if not out and now >= self._silent_at():
                self._sequence += 1
                out.append(
                    codec.encode_datagram(
                        Type.ACK, ROOM_TO_PROVE, self.token, self._sequence, self._inbox.received, self._seal
                    )
                )
            elif not out and self._ack_at is not None and now >= self._ack_at:
                out.append(self._encode(Ack()))
            if out:
                self._ack_at, self._unacknowledged_lists = None, 0
        elif self.phase is Phase.LEAVING and now >= self._retry_at:
            out += [self._encode(message) for message in self._send]
            self._send.clear()
            if self._tries >= LEAVE_TRIES:
                self.phase = Phase.CLOSED
            else:
                out.append(self._encode(Leave()))
            self._retry_at = now + self._rtt_estimator.timeout(self._tries)
            self._tries += 1
        if out:
            self._sent_at = now
        return out

    def _silent_at(self) -> float:
        """Return the time at which the client sends an ACK if nothing arrives before then. The silence may mean that
        the client's address has changed; the ACK shows the server the new address.
        """
        heard, sent = self.last_heard + SILENT_PERIODS * self._period, self._sent_at + self._period
        return heard if heard > sent else sent

    def _encode(self, message: Any) -> bytes:
        self._sequence += 1
        return codec.encode(message, self.token, self._sequence, self._inbox.received, self._seal)

    def _join(self) -> bytes:
        join = replace(self.join, cookie=self._cookie, nonce=self._nonce)
        if self.key is None:
            return self._encode(join)
        from wavesim_sdk.wire import seal

        self._sequence += 1
        if self._exchange is None:
            self._exchange = seal.ClientExchange(self.key)
        public = self._exchange.public
        if join.previous:
            join = replace(join, previous=seal.previous_proof(join.previous, public))
        closer = seal.HandshakeSeal(self.key, seal.JOIN, public=public)
        return codec.encode(join, seal.key_id(self.key), self._sequence, 0, closer)

    def next_timer(self) -> float | None:
        """Return the time at which :meth:`outgoing` must be called again, or None if no timer is running."""
        if self._idle_until == -math.inf:
            return self._timer()
        return self._idle_until if self._idle_until < math.inf else None

    def _timer(self) -> float | None:
        if self.phase is Phase.CLOSED:
            return None
        if self.phase is not Phase.JOINED:
            return self._retry_at
        first = self._silent_at()
        for timer in (self._ack_at, self._outbox.next_timer()):
            if timer is not None and timer < first:
                first = timer
        return first if first < math.inf else None
