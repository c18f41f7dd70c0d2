"""Who is on board: the sessions of each body by role, and what each of them wants to hear.

A body has one pilot (ordinal 0) and any number of instruments and listeners (ordinals from 1, the lowest that is free).
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wavesim_sdk.config.sensors import InstrumentConfig
from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.messages import Right, Role
from wavesim_sdk.wire.session import Session

_NUMBER, _ORDINAL, _EPOCH = (1 << 32) - 1, (1 << 16) - 1, (1 << 15) - 1


@dataclass(frozen=True)
class SessionGrant:
    """What a join was given: decided by the admission, kept as long as the session lives."""

    row: int  #: -1 for an observer
    body: str  #: its name
    model: str
    type: int  #: of the body
    sends_truth: bool
    may_send: bool  #: acoustics
    rights: Right
    watches_others: bool  #: the rights are for other bodies too
    actuator_count: int
    suite: tuple[InstrumentConfig, ...]  #: the sensors of the body, by number
    max_age_ns: tuple[int, ...]  #: how old a value of each may be
    lockstep_ticks: int = 0
    is_newcomer: bool = False  #: the configuration does not name it


@dataclass
class CrewMember:
    """A session, and what it is told. ``chosen`` are numbers of sensors."""

    session: Session
    grant: SessionGrant
    period: float  #: wall time between states; infinite = none
    sensor_numbers: tuple[int, ...] = ()
    described_sensors: set[int] = field(default_factory=set)  #: sensors that its client knows
    wants_acoustics: bool = True
    wants_effort: bool = False
    wants_others: bool = False
    takes_missions: bool = False  #: this pilot takes them
    ordinal: int = 0
    epoch: int = 0
    is_aboard: bool = False  #: its body is there, with a state
    next_state: float = 0.0
    datagram_shape: Any = field(default=None, repr=False)  #: of its states: a note of their writer

    @property
    def row(self) -> int:
        return self.grant.row

    @property
    def role(self) -> Role:
        return self.session.role

    @property
    def in_lockstep(self) -> bool:
        return self.grant.lockstep_ticks > 0

    def select_sensors(self, names: Sequence[str] | None) -> str:
        """The sensors to be told of (None = all); what is wrong with them, if anything."""
        known = {i.name: k for k, i in enumerate(self.grant.suite) if i.parameters.send}
        for name in names or ():
            if name not in known:
                return f"'{self.grant.body}' has no sensor '{name}'{suggest_name(name, known) or '; it has none'}"
        self.sensor_numbers = tuple(k for name, k in known.items() if names is None or name in names)
        self.datagram_shape = None
        return ""


class Crews:
    """All sessions that belong to bodies."""

    def __init__(self) -> None:
        self.by_token: dict[int, CrewMember] = {}
        self.unpaced: list[CrewMember] = []  #: those that are sent their states by wall time
        self.shortest_period = math.inf  #: least period of one of them
        self.effort_rows: tuple[int, ...] = ()  #: rows whose forces somebody wants
        self._rows: dict[int, dict[int, CrewMember]] = {}
        self.first_epoch = 0  #: of a place that nobody had yet
        self._epochs: dict[tuple[int, int], int] = {}

    def join(self, member: CrewMember) -> None:
        """A new session."""
        row = member.row
        crew = self._rows.setdefault(row, {})
        if member.role is Role.PILOT:
            member.ordinal = 0
        else:
            member.ordinal = next(k for k in range(1, len(crew) + 2) if k not in crew)
        key = (row, member.ordinal)
        member.epoch = self._epochs[key] = (self._epochs.get(key, self.first_epoch - 1) + 1) & _EPOCH
        crew[member.ordinal] = member
        self.by_token[member.session.token] = member
        self.rearrange()

    def start_new_epochs(self, rng: random.Random) -> None:
        """Answers to sessions of a front before this one may still come: none of them is for those that join now."""
        self.first_epoch = rng.randrange(1, _EPOCH)

    def leave(self, token: int) -> CrewMember | None:
        """A session is over; None if it was no member."""
        member = self.by_token.pop(token, None)
        if member is None:
            return None
        crew = self._rows[member.row]
        if crew.get(member.ordinal) is member:
            del crew[member.ordinal]
        if not crew:
            del self._rows[member.row]
        self.rearrange()
        return member

    def rearrange(self) -> None:
        """After a session came or went, or asked for something else."""
        members = self.by_token.values()
        self.unpaced = [m for m in members if not m.in_lockstep and math.isfinite(m.period)]
        self.shortest_period = min((m.period for m in self.unpaced), default=math.inf)
        self.effort_rows = tuple(sorted({m.row for m in members if m.wants_effort}))

    def members_of(self, row: int) -> list[CrewMember]:
        """The crew of a body, by ordinal."""
        crew = self._rows.get(row)
        return [crew[k] for k in sorted(crew)] if crew else []

    def pilot(self, row: int) -> CrewMember | None:
        """Who steers a body."""
        return self._rows.get(row, {}).get(0)

    def mission_pilot(self, body: str) -> CrewMember | None:
        """The pilot of a body of that name, if it takes missions."""
        return next((m for m in self.pilots() if m.grant.body == body and m.takes_missions), None)

    def pilots(self) -> Iterator[CrewMember]:
        """All of them."""
        return (m for m in self.by_token.values() if m.role is Role.PILOT)

    def watching_others(self) -> list[CrewMember]:
        """Those that want to know who comes and goes."""
        return [m for m in self.by_token.values() if m.wants_others]

    @staticmethod
    def request_tag(member: CrewMember, number: int) -> int:
        """The number of a request together with its session's, as it stands in records: an answer finds its way by it."""
        return number | member.ordinal << 32 | member.epoch << 48

    def request_owner(self, row: int, tag: int) -> tuple[CrewMember | None, int]:
        """Whose request that was (None if that session is over), and its number."""
        number, ordinal, epoch = tag & _NUMBER, tag >> 32 & _ORDINAL, tag >> 48
        member = self._rows.get(row, {}).get(ordinal)
        return (member if member is not None and member.epoch == epoch else None), number
