"""Server side of a session, and the records that report what happened in sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.address_validation import Address, TokenBucket
from wavesim_sdk.wire.codec import Dropped
from wavesim_sdk.wire.items import ActuatorDescription, AnyEvent, AnyRequest, SensorDescription
from wavesim_sdk.wire.key_file import KeyHolder
from wavesim_sdk.wire.messages import (
    LATEST_WINS,
    Actuate,
    Done,
    Estimate,
    Join,
    Refusal,
    Resumption,
    Role,
    Type,
)
from wavesim_sdk.wire.reliable import Inbox, RttEstimator, make_outbox

if TYPE_CHECKING:
    from wavesim_sdk.wire.seal import SessionSeal  # a server without keys does not need the package for sealing
    from wavesim_sdk.wire.state import Body, State

MAX_SEQUENCE = 2**32 - 2**20


class NotAdmitted(Exception):
    """Refusal of a join, which the admission callback raises."""

    def __init__(self, code: Refusal, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass(frozen=True)
class Admission:
    """The values that an accepted client receives in WELCOME and in its first events."""

    id: int  #: row of the body; -1 for an observer
    step_ns: int
    sound_speed: float
    state_period_ns: int = 0  #: interval of STATE messages in ns (wall time); 0 = none
    sends_truth: bool = True
    rights: int = 0
    actuators: Sequence[ActuatorDescription] = ()
    sensors: Sequence[SensorDescription] = ()

    @property
    def state_period(self) -> float:
        """Interval of STATE messages in s (wall time)."""
        return self.state_period_ns * 1e-9 if self.state_period_ns else math.inf


@dataclass
class RttStatistics:
    """Statistics of the round-trip times (in seconds) of keep-alive datagrams."""

    sent: int = 0
    replies: int = 0
    last: float = 0.0
    mean: float = 0.0
    minimum: float = 0.0
    maximum: float = 0.0

    def add_sample(self, seconds: float) -> None:
        self.replies += 1
        self.last = seconds
        self.mean += (seconds - self.mean) / self.replies
        self.minimum = min(self.minimum, seconds) if self.replies > 1 else seconds
        self.maximum = max(self.maximum, seconds)


@dataclass(slots=True)
class PendingStep:
    """A STEP message that is waiting for its DONE. The payloads of its datagrams are stored so that they can be
    repeated.
    """

    tick: int
    payloads: Sequence[tuple[Type, bytes]] = ()
    repeat_at: float = math.inf
    repeats: int = 0


class LocalClient(Protocol):
    """Client in the server's process, which receives messages, events and states as objects."""

    body: Body  #: the body, as described by the server

    def take_state(self, state: State) -> None:
        """Receive a state from the server."""

    def take_message(self, message: Any) -> None:
        """Receive a message from the server."""

    def take_event(self, event: AnyEvent) -> None:
        """Receive an event from the server."""


class Session:
    """Session of one client."""

    client: LocalClient | None = None  #: the client if it is in this process, otherwise None

    def __init__(
        self,
        token: int,
        address: Address,
        join: Join,
        admission: Admission,
        now: float,
        seal: SessionSeal | None = None,
    ) -> None:
        self.token, self.address, self.join, self.admission, self.seal = token, address, join, admission, seal
        self.resumed = Resumption.NEW
        self.key_holder: KeyHolder | None = None  #: key with which the client joined; None if the server has no keys
        self.is_over = False  #: True after the session has ended
        self.is_suspended = False  #: True while another client drives the body in place of this pilot
        self.suspended: Session | None = None  #: suspended pilot that resumes control after this session has ended
        self.last_heard = now
        self.sequence = self.datagrams_in = self.datagrams_out = 0
        self.rtt_statistics, self.rtt_estimator = RttStatistics(), RttEstimator()
        self.outbox, self.inbox = make_outbox(self.rtt_estimator, join), Inbox()
        self.newest_sequence = 0  #: highest sequence number received from the current address of the session
        self.latest_sequences: dict[Type, int] = {}
        self.keepalive_at = now
        self.keepalive_sent: dict[int, float] = {}
        self.ack_at: float | None = None
        self.unacknowledged_lists = 0  #: number of request lists received since the last datagram to the client
        self.pending_step: PendingStep | None = None
        self.pending_done: StepDone | None = None  # a DONE that waits for the requests it counts
        self.last_answered_tick = -1  # the last tick with a DONE
        self.drop_notice_at = -math.inf  # time of the last notice about a malformed datagram
        self.rate_limiter = TokenBucket(math.inf)
        self.handshake_id = (address, join.nonce)

    @property
    def name(self) -> str:
        return self.join.name

    @property
    def nonce(self) -> int:
        return self.join.nonce

    @property
    def role(self) -> Role:
        return Role(self.join.role)

    def open(self, header: codec.Header, data: bytes, now: float) -> tuple[Any, bytes]:
        """Decrypt and check a datagram from the session's address, and return its message and payload.

        Raises Dropped if the datagram must be ignored. The rate limit is applied only after decryption, so that forged
        datagrams cannot use up the session's rate.
        """
        plain = codec.open_payload(data, header, self.seal)
        if not self.rate_limiter.consume(now):
            raise Dropped("rate")
        message = codec.decode_plain(plain, header.type)
        if header.type in LATEST_WINS:
            if header.sequence <= self.latest_sequences.get(header.type, 0):
                raise Dropped("old")
            self.latest_sequences[header.type] = header.sequence
        self.last_heard = now
        self.datagrams_in += 1
        if header.sequence > self.newest_sequence:
            self.newest_sequence = header.sequence
        if header.ack and header.sequence <= MAX_SEQUENCE:
            self.outbox.acknowledge(header.ack, now)
        return message, plain


@dataclass(frozen=True)
class Joined:
    session: Session


@dataclass(frozen=True)
class Resumed:
    """A session continues an earlier one, because its client returned or another client took over."""

    session: Session
    previous: Session
    resumption: Resumption


@dataclass(frozen=True)
class PilotReturned:
    """A suspended pilot drives again, because the session that had taken over has ended."""

    session: Session
    previous: Session
    reason: str  #: reason for the end of the previous session, as in :class:`SessionGone`


@dataclass(frozen=True)
class AddressMigrated:
    """The client has a new, validated address."""

    session: Session
    old_address: Address


@dataclass(frozen=True)
class SessionGone:
    """A session ended. The reason is `left`, `silent`, `ended` (by the server), `revoked` (its key was removed),
    `unacknowledged`, `sequence` or `internal`.
    """

    session: Session
    reason: str


@dataclass(slots=True)  # not frozen: that would triple the cost of making one, and each command brings one
class Actuated:
    session: Session
    message: Actuate
    payload: bytes = field(default=b"", compare=False, repr=False)  #: the payload of the message as received


@dataclass(frozen=True)
class Requested:
    session: Session
    number: int
    request: AnyRequest
    #: the request as received: its number and values
    item: Sequence[Any] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True)
class Estimated:
    session: Session
    message: Estimate


@dataclass(slots=True)
class StepDone:
    """A lockstep client answered a step. A late answer refers to a step before the pending one; its content is ignored."""

    session: Session
    message: Done
    payload: bytes = field(default=b"", compare=False, repr=False)  #: the payload of the answer as received


Happening = (
    Joined | Resumed | PilotReturned | AddressMigrated | SessionGone | Actuated | Requested | Estimated | StepDone
)
