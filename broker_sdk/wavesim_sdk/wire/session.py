"""One session as the server sees it, and what the server's sessions tell it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wavesim_sdk.wire.address_validation import Address, TokenBucket
from wavesim_sdk.wire.items import ActuatorDescription, AnyRequest, SensorDescription
from wavesim_sdk.wire.messages import Done, Join, Refusal, Resumption, Role, Type
from wavesim_sdk.wire.reliable import Inbox, Outbox, RttEstimator

if TYPE_CHECKING:  # a server without keys needs no package that seals
    from wavesim_sdk.wire.seal import SessionSeal


class NotAdmitted(Exception):
    """Raised by the admission callback."""

    def __init__(self, code: Refusal, text: str) -> None:
        super().__init__(text)
        self.code, self.text = code, text


@dataclass(frozen=True)
class Admission:
    """A join is accepted: what its client is told at once."""

    id: int  #: row of the body; -1 for an observer
    step_ns: int
    sound_speed: float
    state_period_ns: int = 0  #: 0 = no states by wall time
    sends_truth: bool = True
    rights: int = 0
    actuators: Sequence[ActuatorDescription] = ()
    sensors: Sequence[SensorDescription] = ()

    @property
    def state_period(self) -> float:
        """In seconds of wall time."""
        return self.state_period_ns * 1e-9 if self.state_period_ns else math.inf


@dataclass
class RttStatistics:
    """Statistics of the keep-alive."""

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


@dataclass
class PendingStep:
    """A STEP that waits for its DONE: the bodies of its datagrams, to be sent again."""

    tick: int
    bodies: Sequence[tuple[Type, bytes]]
    repeat_at: float
    repeats: int = 0


class Session:
    """One client."""

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
        self.key_name = ""  #: name that its key belongs to
        self.is_over = False  #: nothing more is sent or taken
        self.last_heard = now
        self.sequence = self.datagrams_in = self.datagrams_out = 0
        self.rtt_statistics, self.rtt_estimator = RttStatistics(), RttEstimator()
        self.outbox, self.inbox = Outbox(self.rtt_estimator), Inbox()
        self.newest_sequence = 0  #: sequence of what it said last from where it is
        self.latest_sequences: dict[Type, int] = {}
        self.keepalive_at = now
        self.keepalive_sent: dict[int, float] = {}
        self.ack_at: float | None = None
        self.pending_step: PendingStep | None = None
        self.pending_done: Done | None = None  # waiting for the requests it counts
        self.last_answered_tick = -1  # the last tick that was answered
        self.drop_notice_at = -math.inf  # of a malformed datagram
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


@dataclass(frozen=True)
class Joined:
    session: Session


@dataclass(frozen=True)
class Resumed:
    """A session goes on for one that is over: its client came back, or another client took over."""

    session: Session
    previous: Session
    resumption: Resumption


@dataclass(frozen=True)
class AddressMigrated:
    """The client has another address, and proved it."""

    session: Session
    old_address: Address


@dataclass(frozen=True)
class SessionGone:
    """A session ended: `left`, `silent`, `ended` (by the server), `unacknowledged`, `sequence` or `internal`."""

    session: Session
    reason: str


@dataclass(frozen=True)
class Actuated:
    session: Session
    command: Sequence[float | None]


@dataclass(frozen=True)
class Requested:
    session: Session
    number: int
    request: AnyRequest


@dataclass(frozen=True)
class Estimated:
    session: Session
    values: Sequence[float | None]


@dataclass(frozen=True)
class StepDone:
    """A lockstep client answered a step. To one before that which it is asked now: nothing of it is here."""

    session: Session
    tick: int
    command: Sequence[float | None] | None
    estimate: Sequence[float | None] | None


Happening = Joined | Resumed | AddressMigrated | SessionGone | Actuated | Requested | Estimated | StepDone
