"""What engine and front say to each other through the two rings: small records, each with one encode and one decode.

Large blocks (log records, signals) stay the bytes that they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar, Protocol

import msgpack

COMMANDS_BYTES = 4 * 1024 * 1024
EVENTS_BYTES = 32 * 1024 * 1024
MOST_BYTES = 1024 * 1024  #: of a block in an event; more goes in several
NO_RESOURCE = 10  #: exit code of a process that the system refused something


class CommandKind(IntEnum):
    """Front to engine."""

    ENTER = 1
    LEAVE = 2
    ACTUATE = 3
    SOUND = 4
    EXECUTE = 5
    RELEASE = 6


class EventKind(IntEnum):
    """Engine to front."""

    SIGNALS = 1
    LOG = 2
    STEP = 3
    RUN = 4
    EXECUTED = 5
    REFUSED = 6
    ROSTER = 7
    FROZEN = 8
    NOTICE = 9
    TURNED_AWAY = 10
    FAILED = 11


@dataclass(frozen=True, slots=True)
class Enter:
    """A pilot joined: let its body in, or keep it where it is."""

    KIND: ClassVar = CommandKind.ENTER
    row: int
    name: str
    model: str
    position: list[float]
    attitude: list[float]
    lockstep: int  # ticks; 0 = free


@dataclass(frozen=True, slots=True)
class Leave:
    """The pilot of a body is gone."""

    KIND: ClassVar = CommandKind.LEAVE
    row: int


@dataclass(frozen=True, slots=True)
class Actuate:
    """Actuator commands; None keeps the earlier one."""

    KIND: ClassVar = CommandKind.ACTUATE
    row: int
    values: list[float | None]


@dataclass(frozen=True, slots=True)
class Sound:
    """An acoustic request as it stands on the wire."""

    KIND: ClassVar = CommandKind.SOUND
    row: int
    number: int
    item: list[Any]


@dataclass(frozen=True, slots=True)
class Execute:
    """A command of the commander; ``number`` comes back."""

    KIND: ClassVar = CommandKind.EXECUTE
    number: int
    verb: str
    argument: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What a lockstep client answered."""

    row: int
    values: list[float | None] | None
    sounds: list[Sound]


@dataclass(frozen=True, slots=True)
class Release:
    """All lockstep clients of a tick have answered, or are waited for no longer."""

    KIND: ClassVar = CommandKind.RELEASE
    tick: int
    answers: list[Answer]


@dataclass(frozen=True, slots=True)
class Signals:
    """Records of the tables ``sent`` and ``reception``."""

    KIND: ClassVar = EventKind.SIGNALS
    sent: bytes
    receptions: bytes


@dataclass(frozen=True, slots=True)
class Log:
    """Records of a table for the log: their rows and their bytes. A row is that of a body (``state``, ``actuation``); for a type of
    sensor it is two numbers: that of the body, and the number of the instrument in its suite."""

    KIND: ClassVar = EventKind.LOG
    tick: int
    table: str
    rows: bytes
    records: bytes


@dataclass(frozen=True, slots=True)
class Step:
    """Lockstep clients are due; the engine waits for :class:`Release`."""

    KIND: ClassVar = EventKind.STEP
    tick: int
    rows: list[int]


@dataclass(frozen=True, slots=True)
class Run:
    """The timer changed."""

    KIND: ClassVar = EventKind.RUN
    state: int
    time_ns: int


@dataclass(frozen=True, slots=True)
class Executed:
    """What became of a command."""

    KIND: ClassVar = EventKind.EXECUTED
    number: int
    ok: bool
    text: str
    time_ns: int


@dataclass(frozen=True, slots=True)
class Refused:
    """An acoustic request that cannot be."""

    KIND: ClassVar = EventKind.REFUSED
    row: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Roster:
    """A body came or left."""

    KIND: ClassVar = EventKind.ROSTER
    time_ns: int
    row: int
    name: str
    model: str
    type: str
    present: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """Bodies that were frozen because their state was no longer finite."""

    KIND: ClassVar = EventKind.FROZEN
    time_ns: int
    names: list[str]


@dataclass(frozen=True, slots=True)
class Notice:
    """What a person should know."""

    KIND: ClassVar = EventKind.NOTICE
    time_ns: int
    row: int
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A body that could not enter; its pilot cannot stay."""

    KIND: ClassVar = EventKind.TURNED_AWAY
    row: int
    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    """An error of the engine's own, met while it did what the pilot of a row asked."""

    KIND: ClassVar = EventKind.FAILED
    row: int
    text: str


Command = Enter | Leave | Actuate | Sound | Execute | Release
Event = Signals | Log | Step | Run | Executed | Refused | Roster | Frozen | Notice | TurnedAway | Failed
_COMMANDS: dict[int, type[Any]] = {c.KIND: c for c in (Enter, Leave, Actuate, Sound, Execute, Release)}
_EVENTS: dict[int, type[Any]] = {
    e.KIND: e for e in (Signals, Log, Step, Run, Executed, Refused, Roster, Frozen, Notice, TurnedAway, Failed)
}


class Queue(Protocol):
    """A bounded queue of records in one direction: see :class:`~wavesim_server.ring.Ring`."""

    def push(self, kind: int, payload: bytes) -> int:
        """Append a record; 0 when there is no room now."""

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """(kind, payload) of every record there is."""

    def drop(self) -> None:
        """Count a record that was given up."""

    @property
    def dropped(self) -> int:
        """Records that were given up."""


def _values(record: Any) -> list[Any]:
    return [getattr(record, f.name) for f in fields(record)]


def encode(record: Command | Event) -> tuple[int, bytes]:
    """Kind and payload for a queue."""
    packed: bytes = msgpack.packb(_values(record), default=_values)
    return int(record.KIND), packed


def decode_command(kind: int, payload: bytes) -> Command:
    """What :func:`encode` made of a command."""
    values = msgpack.unpackb(payload)
    if kind == CommandKind.RELEASE:
        values[1] = [Answer(row, given, [Sound(*s) for s in sounds]) for row, given, sounds in values[1]]
    made: Command = _COMMANDS[kind](*values)
    return made


def decode_event(kind: int, payload: bytes) -> Event:
    """What :func:`encode` made of an event."""
    made: Event = _EVENTS[kind](*msgpack.unpackb(payload))
    return made
