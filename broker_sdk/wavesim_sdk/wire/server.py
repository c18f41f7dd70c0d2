"""Server side of all sessions, without a socket, a clock or a simulation.

The input consists of bytes, addresses and ``now``. The output consists of :data:`~wavesim_sdk.wire.session.Happening`
records and datagrams. A callback decides who may join, so that this module does not depend on vehicles. An error while
serving a session ends only that session.
"""

from __future__ import annotations

import math
import random
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wavesim_sdk.wire import codec, joining
from wavesim_sdk.wire.address_validation import JOIN_COST, Address, AddressValidator, TokenBucket
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.items import EVENTS, REQUESTS, AnyEvent, EventKind, Notice, RequestRefused, TimeChanged
from wavesim_sdk.wire.messages import (
    HEADER_BYTES,
    MAX_DATAGRAM,
    MESSAGES,
    MIN_HELLO,
    SEAL_BYTES,
    TEXT_BYTES,
    Actuate,
    Bye,
    Challenge,
    Done,
    Estimate,
    Events,
    Join,
    Keepalive,
    KeepaliveReply,
    Leave,
    Proof,
    Prove,
    Refusal,
    Refuse,
    Requests,
    Resumption,
    Role,
    SensorsMessage,
    StepMessage,
    Type,
)
from wavesim_sdk.wire.recently_ended import RecentlyEnded
from wavesim_sdk.wire.reliable import ACK_DELAY_S, MAX_PENDING, PROMPT_ACK_LISTS
from wavesim_sdk.wire.schema import Malformed, sanitise_text, schema_of
from wavesim_sdk.wire.session import (
    MAX_SEQUENCE,
    Actuated,
    AddressMigrated,
    Admission,
    Estimated,
    Happening,
    Joined,
    LocalClient,
    NotAdmitted,
    PendingStep,
    PilotReturned,
    Requested,
    Resumed,
    Session,
    SessionGone,
    StepDone,
)

if TYPE_CHECKING:  # a server without keys does not need the package for sealing
    from wavesim_sdk.wire.key_file import KeyHolder
    from wavesim_sdk.wire.seal import Keyring

PROVE_BYTES = HEADER_BYTES + 10  #: maximum size in bytes of an unsealed PROVE
LOCAL_ADDRESS: Address = ("in this process", 0)  #: address used for clients in the server's process
DROP_NOTICE_INTERVAL_S = 1.0  #: minimum time in s between two notices to a client about its malformed datagrams
_OF_REQUESTS = frozenset({EventKind.SENT, EventKind.REQUEST_REFUSED, EventKind.ANSWER})
_OF_THE_BODY = frozenset({EventKind.ACTUATOR, EventKind.SENSOR})


class ServerSessions:
    """All sessions of a server.

    ``admit`` returns the admission for a join or raises NotAdmitted; its second argument is the session that the join
    continues. ``clock`` returns the tick and the run state of the simulation. ``on_error`` is called with each
    unexpected exception. ``rng`` generates secrets and tokens.
    """

    def __init__(
        self,
        admit: Callable[[Join, Session | None], Admission],
        clock: Callable[[], tuple[int, int]],
        keepalive_period: float,
        keepalive_timeout: float,
        keys: Keyring | None = None,
        takeover: bool = False,
        rate: float = math.inf,
        max_sessions: int = 4096,
        rng: random.Random | None = None,
        on_error: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.keys, self.takeover = keys, takeover
        self.by_token: dict[int, Session] = {}
        self.drops: Counter[str] = Counter()
        self.outgoing: list[tuple[bytes, Address]] = []
        self._admit, self._clock, self._on_error = admit, clock, on_error
        self._period, self._timeout = keepalive_period, keepalive_timeout
        self._rate, self._limit = rate, max_sessions
        self._rng = rng if rng is not None else secrets.SystemRandom()
        self._address_validator = AddressValidator(rate, self._rng)
        self._now = 0.0  # time of the last call
        self._by_join: dict[tuple[Address, int], Session] = {}
        self._pilots: dict[str, Session] = {}
        #: whether a replaced pilot is only suspended while another client drives, and resumes control afterwards
        self.returns_pilot = False
        self._recently_ended = RecentlyEnded()
        self._ended_events: list[Happening] = []  # ends of sessions between two calls
        self._local_joins = 0  # number of joins of clients in this process
        self._unflushed: dict[int, Session] = {}  # sessions with unsent events

    # -- datagrams -------------------------------------------------------------------------

    def receive(self, data: bytes, address: Address, now: float) -> list[Happening]:
        """Process a datagram and return the resulting records. This method never raises an exception, even if the bytes
        are invalid.
        """
        self._now = max(self._now, now)
        before, happened = self.take_ended(), []
        session: Session | None = None
        try:
            header = codec.decode_header(data, from_client=True)
            if MESSAGES[header.type][1]:
                session = self.by_token.get(header.token)
            happened = self._take(session, header, data, address, now)
        except Dropped as dropped:
            self.drops[dropped.reason] += 1
            if dropped.reason == "version":
                self._old_version(data, address, now)
        except Exception as error:  # last line of defence: a fault in the server costs this session only
            self.fail_session(session, error)
        return [*before, *happened, *self.take_ended()] if before or self._ended_events else happened

    def _take(
        self, session: Session | None, header: codec.Header, data: bytes, address: Address, now: float
    ) -> list[Happening]:
        if not MESSAGES[header.type][1]:
            return self._before_session(header, data, address, now)
        if session is None:
            self._answer_unknown_token(header.token, address, now)
            raise Dropped("token")
        try:
            return self._receive_in_session(session, header, data, address, now)
        except Dropped as dropped:
            if dropped.reason in ("fields", "body") and address == session.address:
                self._notify_dropped(session, dropped.detail or "the payload is not a msgpack array", now)
            raise

    def _receive_in_session(
        self, session: Session, header: codec.Header, data: bytes, address: Address, now: float
    ) -> list[Happening]:
        if session.address != address:
            return self._receive_from_new_address(session, header, data, address, now)
        message, payload = session.open(header, data, now)
        if header.sequence > MAX_SEQUENCE:
            self.bye(session, "this client has used up its sequence numbers; join again", "sequence")
            return []
        if header.ack and session.outbox.has_unsent:
            self.flush_events(session, now)
        return self._handle(session, message, payload, now)

    def _receive_from_new_address(
        self, session: Session, header: codec.Header, data: bytes, address: Address, now: float
    ) -> list[Happening]:
        """Process a session's datagram from a new address, which must be validated first (RFC 9000, section 9).

        A datagram from an address that has not been validated may be an attacker's copy that overtook the original. It
        therefore changes nothing: it neither moves the replay window nor counts as activity. It is not checked against
        the replay window either, so if a copy has moved the session to another address, the original datagram can move
        it back.
        """
        self._address_validator.count_datagram(address[0], now)
        message = codec.decode_plain(codec.open_payload(data, header, session.seal, record=False), header.type)
        if type(message) is Proof and self._address_validator.is_valid_proof(
            message.number, session.token, address, now
        ):
            if (
                header.sequence < session.newest_sequence
            ):  # the proof is older than a datagram from the session's present address
                raise Dropped("old")
            # If a copy of this proof came first, from the session's present address, the proof moves the session
            # nevertheless, but it is not a second sign of life.
            if session.seal is None or session.seal.is_new(header.sequence):
                session.last_heard = now
            if session.seal is not None:
                session.seal.record(header.sequence)
            before, session.address = session.address, address
            session.newest_sequence = header.sequence
            return [AddressMigrated(session, before)]
        if self._address_validator.affords(address[0], len(data), PROVE_BYTES + (SEAL_BYTES if header.sealed else 0)):
            self._transmit(session, Prove(self._address_validator.make_challenge(session.token, address, now)), address)
        raise Dropped("address")

    def _answer_unknown_token(self, token: int, address: Address, now: float) -> None:
        """Send BYE again to a client that does not yet know that its session has ended."""
        self._address_validator.count_datagram(address[0], now)
        over = self._recently_ended.find_for(token, address, now)
        if over is not None:
            self._send_bye(*over)

    def _old_version(self, data: bytes, address: Address, now: float) -> None:
        """Answer the HELLO of a version 1 client in the format of that version."""
        answer = joining.version_1_refusal(data)
        if answer:
            try:
                self._address_validator.count_datagram(address[0], now)
                self._address_validator.count_hello(now)
            except Dropped as dropped:
                self.drops[dropped.reason] += 1
            else:
                self.outgoing.append((answer, address))

    def _notify_dropped(self, session: Session, detail: str, now: float) -> None:
        """Send a notice that a datagram in this session was dropped, because this indicates a fault in the client
        program.
        """
        if now - session.drop_notice_at >= DROP_NOTICE_INTERVAL_S:
            session.drop_notice_at = now
            time_ns = self._clock()[0] * session.admission.step_ns
            self.push(session, Notice(time_ns, sanitise_text(f"a datagram was dropped: {detail}", TEXT_BYTES)))

    def _before_session(self, header: codec.Header, data: bytes, address: Address, now: float) -> list[Happening]:
        if header.type is Type.HELLO:
            self._address_validator.count_datagram(address[0], now)
            self._address_validator.count_hello(now)
            if len(data) < MIN_HELLO:
                raise Dropped("size")
            hello = codec.decode_payload(data, header)
            challenge = Challenge(hello.nonce, self._address_validator.make_cookie(address, now))
            self.outgoing.append((codec.encode(challenge), address))
            return []
        self._address_validator.count_datagram(address[0], now, JOIN_COST)
        self._address_validator.count_join(now)
        if (self.keys is not None) != header.sealed:
            raise Dropped("flags")
        owner = None
        if self.keys is not None:
            owner = self.keys.by_id.get(header.token)
            if owner is None:
                raise Dropped("key")
        opener = self.keys.join_seal(owner) if owner is not None and self.keys is not None else None
        payload = codec.unpack_payload(codec.open_payload(data, header, opener), Type.JOIN)
        try:
            return self._join(payload, data, address, now, owner)
        except NotAdmitted as refused:
            self._refuse(payload[1], refused, address, owner)
            return []

    # -- joining ---------------------------------------------------------------------------

    def _join(
        self, payload: tuple[Any, ...], data: bytes, address: Address, now: float, owner: KeyHolder | None
    ) -> list[Happening]:
        cookie, nonce = joining.cookie_and_nonce(payload)
        size = len(data)
        if not self._address_validator.is_valid_cookie(cookie, address, now):
            if size < MIN_HELLO:
                raise Dropped("size")
            self._refuse(nonce, NotAdmitted(Refusal.COOKIE, "wrong or old cookie"), address, owner, size)
            return []
        if self._address_validator.is_replayed_join(
            address, nonce
        ):  # a replayed JOIN of an ended session, or one whose WELCOME was lost
            self.drops["replay"] += 1
            raise NotAdmitted(
                Refusal.COOKIE, "the session that this JOIN opened has ended; join again with a new nonce"
            )
        repeated = self._by_join.get((address, nonce))
        if repeated is not None:
            if (
                not repeated.datagrams_in
            ):  # the client has not received WELCOME yet, so the repetition is its sign of life
                repeated.last_heard = now
            self._welcome(repeated, self._clock())
            return []
        return self._open_session(payload, address, now, owner, cookie, data)

    def join_local(self, join: Join, client: LocalClient, now: float) -> tuple[Session, list[Happening]]:
        """Open a session for a client in this process, and return it together with the resulting records. Raises
        NotAdmitted if the client is refused.
        """
        self._now = max(self._now, now)
        self._local_joins += 1
        payload = schema_of(Join).encode(replace(join, nonce=self._local_joins))
        happened = self._open_session(payload, LOCAL_ADDRESS, now, client=client)
        return happened[0].session, happened

    def _open_session(
        self,
        payload: tuple[Any, ...],
        address: Address,
        now: float,
        owner: KeyHolder | None = None,
        cookie: bytes = b"",
        data: bytes = b"",
        client: LocalClient | None = None,
    ) -> list[Happening]:
        public, exchange = b"", None
        if owner is not None and self.keys is not None:  # only here, after the cookie: an exchange takes 0.1 ms
            public = self.keys.public_of_join(data)
            exchange = self.keys.exchange(owner, public)
        join, previous, resumption = joining.resolve_join(
            payload,
            lambda name: self._check_key(owner, name),
            lambda join: self._find_previous(join, owner, public),
            self._pilots,
            self.takeover,
        )
        if previous is None and len(self.by_token) >= self._limit:
            raise NotAdmitted(Refusal.FULL, f"the server already has its maximum of {self._limit} sessions")
        try:
            admission, clock = self._admit(join, previous), self._clock()
        except NotAdmitted:
            raise
        except Exception as error:  # a fault in the server costs this join only
            self.fail_session(None, error)
            raise NotAdmitted(Refusal.INTERNAL, "internal server error during this join") from None
        token = self._rng.getrandbits(63) | 1
        while token in self.by_token or token in self._recently_ended:
            token = self._rng.getrandbits(63) | 1
        seal = exchange.session_seal(cookie, join.nonce, token) if exchange is not None else None
        session = Session(token, address, join, admission, now, seal)
        session.client = client
        session.key_holder, session.resumed, session.rate_limiter = owner, resumption, TokenBucket(self._rate)
        if previous is not None:
            self._hand_over(previous, session, now)
        self.by_token[token] = self._by_join[session.handshake_id] = session
        if session.role is Role.PILOT:
            self._pilots[session.name] = session
        self._welcome(session, clock)
        descriptions: list[AnyEvent] = [*admission.actuators, *admission.sensors]
        for event in descriptions:
            self.push(session, event)
        if previous is not None and resumption is Resumption.RESUMED:
            self._carry_over(previous, session)
        self.flush_events(session, now)
        return [Joined(session) if previous is None else Resumed(session, previous, resumption)]

    def _check_key(self, owner: KeyHolder | None, name: str) -> None:
        if owner is not None and self.keys is not None:
            joining.check_key(owner, name, self.keys.has_own_key)

    def _find_previous(self, join: Join, owner: KeyHolder | None, public: bytes) -> Session | None:
        """Return the session that a join resumes. If keys are used, only the client that opened a session can resume
        it, and must prove its identity with the ticket. The token is not a proof, because every header contains it
        unencrypted.
        """
        if owner is None:
            found = self.by_token.get(join.previous)
            return found if found is not None and found.key_holder is None else None
        for session in self.by_token.values():
            if session.seal is None or (session.name, session.join.role) != (join.name, join.role):
                continue
            if session.seal.proves(join.previous, public):
                return session
        return None

    def replace_keys(self, keys: Keyring) -> list[Session]:
        """Replace the keys of the server. End the sessions whose keys were removed, and return these sessions. All
        other sessions continue, including those of retired keys, because each session has its own derived keys.
        """
        assert self.keys is not None
        self.keys = keys
        revoked = [s for s in self.by_token.values() if s.key_holder is not None and not keys.includes(s.key_holder)]
        for session in revoked:
            self.bye(session, "the key of this session was revoked", "revoked")
        return revoked

    def _carry_over(self, old: Session, session: Session) -> None:
        """Repeat the events that the client of the old session did not acknowledge.

        The repeated events refer to request 0, because their requests belong to the old session.
        """
        for item in old.outbox.unacknowledged():
            if item[0] in _OF_THE_BODY:
                continue
            if len(session.outbox) >= MAX_PENDING:
                self.bye(session, f"the client acknowledged none of the last {MAX_PENDING} events", "unacknowledged")
                return
            session.outbox.push((item[0], 0, *item[2:]) if item[0] in _OF_REQUESTS else item)

    def _hand_over(self, old: Session, session: Session, now: float) -> None:
        session.suspended, old.suspended = old.suspended, None
        if session.resumed is Resumption.TOOK_OVER and self.returns_pilot and session.suspended is None:
            session.suspended, old.is_suspended = old, True
            old.pending_step = old.pending_done = None
            return
        text = "another session has resumed this session"
        if session.resumed is Resumption.TOOK_OVER:
            text = "another client took over"
            self._send_bye(old, text)
        self._forget(old, now)
        self._recently_ended.add(old, text, now, unasked=session.resumed is Resumption.TOOK_OVER)

    def _welcome(self, session: Session, clock: tuple[int, int]) -> None:
        self.send(session, joining.make_welcome(session, clock, (self._period, self._timeout)))

    def _refuse(
        self, nonce: int, refused: NotAdmitted, address: Address, owner: KeyHolder | None, most: int = MAX_DATAGRAM
    ) -> None:
        closer = self.keys.refuse_seal(owner) if owner is not None and self.keys is not None else None
        refuse = Refuse(nonce, int(refused.code), sanitise_text(refused.text, TEXT_BYTES))
        data = codec.encode(refuse, seal=closer)
        if len(data) > most:
            raise Dropped("size")  # an unproven address receives no more bytes than it sent
        self.outgoing.append((data, address))

    # -- messages from clients -------------------------------------------------------------

    def receive_local(self, session: Session, message: Actuate | Done | Estimate | Leave) -> list[Happening]:
        """Process a message from a client in this process and return the resulting records."""
        happened = [] if session.is_over else self._handle(session, message, b"", self._now)
        return happened or self.take_ended()

    def request_local(self, session: Session, number: int, item: Any) -> list[Happening]:
        """Process a request, with its number, from a client in this process."""
        return [] if session.is_over else self._request(session, number, item)

    def _handle(self, session: Session, message: Any, payload: bytes, now: float) -> list[Happening]:
        match message:
            case Actuate():
                return [Actuated(session, message, payload)]
            case Done(tick):
                question = session.pending_step
                if question is not None and session.last_answered_tick < tick < question.tick:
                    session.last_answered_tick = (
                        tick  # too late for its content, but the server waits for this client again
                    )
                    return [StepDone(session, Done(tick, 0, None, None))]
                if question is not None and tick == question.tick:
                    session.pending_done = StepDone(session, message, payload)
                return self._release_done(session)
            case Requests(first, items):
                session.unacknowledged_lists += 1
                session.ack_at = now + ACK_DELAY_S if session.ack_at is None else session.ack_at
                new: list[Happening] = []
                for number, item in session.inbox.accept(first, items):
                    new += self._request(session, number, item)
                if session.unacknowledged_lists >= PROMPT_ACK_LISTS:
                    self.send(session, Keepalive(0))
                return new + self._release_done(session)
            case KeepaliveReply(number):
                sent = session.keepalive_sent.pop(number, None)
                if sent is not None:
                    session.rtt_statistics.add_sample(now - sent)
                    session.rtt_estimator.add_sample(now - sent)
            case Estimate():
                return [Estimated(session, message)]
            case Leave():
                self.bye(session, "left", "left")
        return []

    def _request(self, session: Session, number: int, item: Any) -> list[Happening]:
        try:
            request = REQUESTS.decode(item)
        except Malformed as malformed:
            self.drops["item"] += 1
            self.refuse(session, number, f"malformed: {malformed}")
            return []
        if request is None:
            self.refuse(session, number, f"unknown kind of request: {item[0]}")
            return []
        return [Requested(session, number, request, item)]

    def _release_done(self, session: Session) -> list[Happening]:
        done = session.pending_done
        if done is None or session.inbox.received < done.message.last_request:
            return []
        session.pending_done = session.pending_step = None
        session.last_answered_tick = done.message.tick
        return [done]

    # -- messages to clients ---------------------------------------------------------------

    def send(self, session: Session, message: Any) -> None:
        """Queue a datagram for a client."""
        if session.is_over:
            return
        session.ack_at = None
        try:
            self._transmit(session, message, session.address)
        except Exception as error:
            self.fail_session(session, error)

    def _transmit(self, session: Session, message: Any, address: Address) -> None:
        if session.client is not None:
            session.client.take_message(message)
            return
        self._post(session, *codec.encode_payload(message), address)

    def _post(self, session: Session, kind: Type, payload: bytes, address: Address) -> None:
        session.sequence += 1
        session.datagrams_out += 1
        session.unacknowledged_lists = 0
        data = codec.encode_datagram(
            kind, payload, session.token, session.sequence, session.inbox.received, session.seal
        )
        self.outgoing.append((data, address))

    def push(self, session: Session, event: AnyEvent) -> None:
        """Queue an event, which is delivered once and in order when :meth:`flush` sends it.

        If the client does not acknowledge events, its session ends.
        """
        if session.is_over:
            return
        if session.client is not None:
            session.client.take_event(event)
            return
        try:
            session.outbox.push(EVENTS.encode(event))
            self._unflushed[session.token] = session
        except OverflowError:
            self.bye(session, f"the client acknowledged none of the last {MAX_PENDING} events", "unacknowledged")
        except Exception as error:
            self.fail_session(session, error)

    def announce_time_change(self, event: TimeChanged) -> None:
        """Report to all clients that the simulation time has changed, and discard the steps that they have not
        answered.
        """
        for session in list(self.by_token.values()):
            session.pending_step = session.pending_done = None
            session.last_answered_tick = -1
            self.push(session, event)

    def refuse(self, session: Session, number: int, text: str) -> None:
        """Refuse a request."""
        self.push(session, RequestRefused(number, sanitise_text(text, TEXT_BYTES)))

    def step(self, session: Session, step: StepMessage, parts: Sequence[SensorsMessage], now: float) -> None:
        """Send a STEP to a lockstep client. :meth:`poll` repeats it until the client answers. This method sets the
        ``last_event`` field of the STEP.
        """
        self.flush_events(session, now)
        step = StepMessage(
            step.tick,
            step.time_ns,
            step.run_state,
            len(parts),
            step.motion,
            step.actuation,
            step.effort,
            step.sensors,
            session.outbox.last,
        )
        payloads = [codec.encode_payload(m) for m in (step, *parts)]
        self.track_step(session, step.tick, payloads, now)
        self.send_payloads(session, payloads)

    def track_step(self, session: Session, tick: int, payloads: Sequence[tuple[Type, bytes]], now: float) -> None:
        """Store the encoded STEP and SENSORS messages. The caller sends them once, and :meth:`poll` repeats them until the
        client answers.
        """
        session.pending_step, session.pending_done = (
            PendingStep(tick, payloads, now + session.rtt_estimator.timeout()),
            None,
        )

    def send_payloads(self, session: Session, payloads: Sequence[tuple[Type, bytes]]) -> None:
        """Queue a datagram for each of these encoded payloads."""
        if session.is_over:
            return
        session.ack_at = None
        try:
            for kind, payload in payloads:
                self._post(session, kind, payload, session.address)
        except Exception as error:
            self.fail_session(session, error)

    def bye(self, session: Session, text: str, reason: str = "ended") -> None:
        """End a session and send BYE, which is repeated a few times.

        The next call to :meth:`receive` or :meth:`poll` returns SessionGone for this session.
        """
        if session.is_over:
            return
        text = sanitise_text(text, TEXT_BYTES)
        self._send_bye(session, text)
        self._forget(session, self._now)
        self._recently_ended.add(session, text, self._now, unasked=reason != "left")
        waiting, session.suspended = session.suspended, None
        if waiting is None or waiting.is_over:
            self._ended_events.append(SessionGone(session, reason))
            return
        waiting.is_suspended, self._pilots[waiting.name] = False, waiting
        self._ended_events.append(PilotReturned(waiting, session, reason))

    def _send_bye(self, session: Session, text: str) -> None:
        try:
            self._transmit(session, Bye(text), session.address)
        except Exception as error:
            self.drops["internal"] += 1
            self._on_error(error)

    def fail_session(self, session: Session | None, error: Exception) -> None:
        """Report an unexpected exception, and end the session that was being served, if there was one."""
        self.drops["internal"] += 1
        self._on_error(error)
        if session is not None:
            self.bye(session, "internal server error while serving this session", "internal")

    def flush(self, now: float) -> None:
        """Send all new events for all sessions."""
        for session in list(self._unflushed.values()):
            self.flush_events(session, now)
        self._unflushed.clear()

    def flush_events(self, session: Session, now: float) -> None:
        """Send those events for a session that are new or due to be repeated."""
        for first, items in session.outbox.take_due(now):
            self.send(session, Events(first, items))

    # -- time ------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Happening]:
        """Send keep-alives, repeat messages that were not acknowledged, and remove silent clients. Call this method at
        least every 50 ms.
        """
        self._now = max(self._now, now)
        for session in list(self.by_token.values()):
            try:
                self._tick(session, now)
            except Exception as error:
                self.fail_session(session, error)
        self._unflushed.clear()
        for over in self._recently_ended.take_due(now):
            self._send_bye(*over)
        return self.take_ended()

    def exclude_stall(self, seconds: float, now: float) -> None:
        """Adjust all timers after a stall of the server itself, which lasted ``seconds`` s and ended at ``now``. The
        stall then counts neither as silence of a client nor in round-trip times.
        """
        for session in self.by_token.values():
            session.last_heard = min(session.last_heard + seconds, now)
            session.keepalive_sent.clear()

    def _tick(self, session: Session, now: float) -> None:
        if session.client is not None:
            return
        if now - session.last_heard > self._timeout:
            self.bye(session, "no activity within the keep-alive timeout", "silent")
            return
        if session.sequence > MAX_SEQUENCE:
            self.bye(session, "the server has used up its sequence numbers for this session; join again", "sequence")
            return
        if now >= session.keepalive_at:
            session.keepalive_at = now + self._period
            session.rtt_statistics.sent += 1
            if len(session.keepalive_sent) > 64:
                session.keepalive_sent.clear()
            session.keepalive_sent[session.rtt_statistics.sent] = now
            self.send(session, Keepalive(session.rtt_statistics.sent))
        self.flush_events(session, now)
        question = session.pending_step
        if question is not None and now >= question.repeat_at:
            question.repeats += 1
            question.repeat_at = now + session.rtt_estimator.timeout(question.repeats)
            self.send_payloads(session, question.payloads)
        if session.ack_at is not None and now >= session.ack_at:
            self.send(session, Keepalive(0))

    def take_ended(self) -> list[Happening]:
        """Return the sessions that have ended since the last call to this method, :meth:`receive` or :meth:`poll`."""
        gone, self._ended_events = self._ended_events, []
        return gone

    def _forget(self, session: Session, now: float) -> None:
        session.is_over = True
        self.by_token.pop(session.token, None)
        self._unflushed.pop(session.token, None)
        self._by_join.pop(session.handshake_id, None)
        if self._pilots.get(session.name) is session:
            del self._pilots[session.name]
        self._address_validator.mark_join_used(*session.handshake_id, now)
