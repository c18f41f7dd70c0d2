"""Crews: the sessions of each body by role, and the data that each session receives.

A body has one pilot (ordinal 0) and any number of instruments and listeners. Each instrument or listener receives the
lowest free ordinal from 1 upwards.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wavesim_sdk.names import suggest_name
from wavesim_sdk.wire.items import DeviceFault
from wavesim_sdk.wire.messages import Right, Role
from wavesim_sdk.wire.session import Session
from wavesim_world.config.sensors import InstrumentConfig

_NUMBER, _ORDINAL, _EPOCH = (1 << 32) - 1, (1 << 16) - 1, (1 << 15) - 1


@dataclass(frozen=True)
class SessionGrant:
    """The rights and data that are granted to a session when it joins; they stay fixed for the life of the session."""

    row: int  #: row of the body; -1 for observers
    body: str  #: name of the body
    model: str
    type: int  #: type of the body
    sends_truth: bool
    may_send: bool  #: whether the session may send sound
    rights: Right
    watches_others: bool  #: whether the rights also apply to other bodies
    actuator_count: int
    suite: tuple[InstrumentConfig, ...]  #: sensors of the body, by number
    max_age_ns: tuple[int, ...]  #: maximum age of a value from each sensor
    lockstep_ticks: int = 0
    is_newcomer: bool = False  #: whether the body is not in the configuration


@dataclass
class CrewMember:
    """A session and its subscriptions."""

    session: Session
    grant: SessionGrant
    period: float  #: wall time between two states; infinite means that no states are sent
    sensor_numbers: tuple[int, ...] = ()  #: numbers of the sensors that the session receives
    described_sensors: set[int] = field(default_factory=set)  #: sensors whose descriptions the client has received
    wants_acoustics: bool = True
    wants_effort: bool = False
    wants_others: bool = False
    takes_missions: bool = False  #: whether this pilot accepts missions
    device: str = ""  #: name of the device that the session serves
    device_fault: str = ""  #: kind of fault injected into the device
    ordinal: int = 0
    epoch: int = 0
    is_aboard: bool = False  #: whether the session's body is in the simulation and has a state
    next_state: float = 0.0
    #: layout of the session's state messages, cached by the code that writes them
    state_layout: Any = field(default=None, repr=False)

    @property
    def row(self) -> int:
        return self.grant.row

    @property
    def role(self) -> Role:
        return self.session.role

    @property
    def in_lockstep(self) -> bool:
        return self.grant.lockstep_ticks > 0

    def set_device_fault(self, fault: DeviceFault) -> None:
        """Record the fault of the device for publication in the tables."""
        self.device_fault = "" if fault.kind == "none" else fault.kind

    def is_due(self, tick: int) -> bool:
        """Return whether the session receives the STEP at a tick."""
        return self.in_lockstep and tick % self.grant.lockstep_ticks == 0

    def select_sensors(self, names: Sequence[str] | None) -> str:
        """Select the sensors that the session receives (None = all). Returns an error message, which is empty if all
        names are valid.
        """
        known = {i.name: k for k, i in enumerate(self.grant.suite) if i.parameters.send}
        for name in names or ():
            if name not in known:
                return f"'{self.grant.body}' has no sensor '{name}'{suggest_name(name, known) or '; this body has no sensors'}"
        self.sensor_numbers = tuple(k for name, k in known.items() if names is None or name in names)
        self.state_layout = None
        return ""


class Crews:
    """All sessions that belong to bodies."""

    def __init__(self) -> None:
        self.by_token: dict[int, CrewMember] = {}
        self.unpaced: list[CrewMember] = []  #: members that receive states at intervals of wall time
        self.shortest_period = math.inf  #: shortest state period of the members that receive states
        self.effort_rows: tuple[int, ...] = ()  #: rows of the bodies whose forces at least one session receives
        #: row and period in ticks of each instrument in lockstep
        self.instrument_steps: tuple[tuple[int, int], ...] = ()
        self._rows: dict[int, dict[int, CrewMember]] = {}
        self.device_faults: dict[tuple[str, str], DeviceFault] = {}  #: newest faults by body and device
        self.first_epoch = 0  #: epoch of an ordinal that has not been used yet
        self._epochs: dict[tuple[int, int], int] = {}

    def join(self, member: CrewMember) -> None:
        """Add a session."""
        row = member.row
        crew = self._rows.setdefault(row, {})
        if member.role is Role.PILOT:
            member.ordinal = 0
        else:
            member.ordinal = next(k for k in range(1, len(crew) + 2) if k not in crew)
        self._name_device(member)
        key = (row, member.ordinal)
        member.epoch = self._epochs[key] = (self._epochs.get(key, self.first_epoch - 1) + 1) & _EPOCH
        crew[member.ordinal] = member
        self.by_token[member.session.token] = member
        self.rearrange()

    def start_new_epochs(self, rng: random.Random) -> None:
        """Start the epochs at random numbers, so that a late answer to a session of an earlier front end does not match
        a new session.
        """
        self.first_epoch = rng.randrange(1, _EPOCH)

    def leave(self, token: int) -> CrewMember | None:
        """Remove a session and return its member; None if the session was not a member."""
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
        """Update the derived lists after a session has joined, left or changed its subscriptions."""
        members = self.by_token.values()
        self.unpaced = [m for m in members if not m.in_lockstep and math.isfinite(m.period)]
        self.shortest_period = min((m.period for m in self.unpaced), default=math.inf)
        self.effort_rows = tuple(sorted({m.row for m in members if m.wants_effort}))
        stepped = {(m.row, m.grant.lockstep_ticks) for m in members if m.in_lockstep and m.role is not Role.PILOT}
        self.instrument_steps = tuple(sorted(stepped))

    def members_of(self, row: int) -> list[CrewMember]:
        """Return the crew of a body, by ordinal."""
        crew = self._rows.get(row)
        return [crew[k] for k in sorted(crew)] if crew else []

    def instruments_due(self, row: int, tick: int) -> list[CrewMember]:
        """Return those instruments of a body that are in lockstep and due at a tick, by ordinal."""
        return [m for m in self.members_of(row) if m.role is not Role.PILOT and m.is_due(tick)]

    def pilot(self, row: int) -> CrewMember | None:
        """Return the pilot of a body, or None if there is none."""
        return self._rows.get(row, {}).get(0)

    def mission_pilot(self, body: str) -> CrewMember | None:
        """Return the pilot of the body with this name if it accepts missions, otherwise None."""
        pilot = self.pilot_of(body)
        return pilot if pilot is not None and pilot.takes_missions else None

    def pilot_of(self, body: str) -> CrewMember | None:
        """Return the pilot of the body with this name, or None if there is none."""
        return next((m for m in self.pilots() if m.grant.body == body), None)

    def device(self, body: str, name: str) -> CrewMember | None:
        """Return the session that serves the device with this name on a body, or None if there is none."""
        return next((m for m in self.by_token.values() if m.device == name and m.grant.body == body), None)

    def devices_of(self, body: str) -> list[str]:
        """Return the names of the devices of a body."""
        return [m.device for m in self.by_token.values() if m.device and m.grant.body == body]

    def _name_device(self, member: CrewMember) -> None:
        """Give a session's device the requested name or, if this name is taken, the first free name among name-2,
        name-3, ...
        """
        if name := member.session.join.device:
            taken = {m.device for m in self.members_of(member.row)}
            variants = (f"{name}-{k}" for k in range(2, len(taken) + 3))
            member.device = next(n for n in (name, *variants) if n not in taken)

    def pilots(self) -> Iterator[CrewMember]:
        """Yield all pilots."""
        return (m for m in self.by_token.values() if m.role is Role.PILOT)

    def watching_others(self) -> list[CrewMember]:
        """Return the members that are informed when other bodies are added or removed."""
        return [m for m in self.by_token.values() if m.wants_others]

    @staticmethod
    def request_tag(member: CrewMember, number: int) -> int:
        """Combine the number of a request with the number of its session, for use in records.

        The answer to the request contains this combined number, which identifies the session.
        """
        return number | member.ordinal << 32 | member.epoch << 48

    def request_owner(self, row: int, tag: int) -> tuple[CrewMember | None, int]:
        """Return the session that made a request (None if the session has ended), and the request number."""
        number, ordinal, epoch = tag & _NUMBER, tag >> 32 & _ORDINAL, tag >> 48
        member = self._rows.get(row, {}).get(ordinal)
        return (member if member is not None and member.epoch == epoch else None), number
