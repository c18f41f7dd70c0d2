"""Records that the engine and the front end exchange through two rings, one in each direction.

Messages from clients are forwarded unchanged, as bytes in the wire format. The row of the body and the number of the
session or request precede these bytes (:func:`forward`). The server's own records are declared like the wire messages
(:mod:`wavesim_sdk.wire.schema`). Large blocks (log records, signals) are sent as raw bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgpack

from wavesim_sdk.wire import codec
from wavesim_sdk.wire.items import REQUESTS, AnyRequest
from wavesim_sdk.wire.messages import Actuate, Done, Leave, Type
from wavesim_sdk.wire.schema import (
    Bin,
    Int,
    List,
    Malformed,
    Number,
    Numbers,
    TaggedUnion,
    Text,
    record_field,
    sanitise_text,
)
from wavesim_sdk.wire.value_types import Checker

COMMANDS_BYTES = 4 * 1024 * 1024
EVENTS_BYTES = 32 * 1024 * 1024
MAX_RECORD_BYTES = 1024 * 1024  #: maximum size of a block in an event; larger data are split into several blocks
NO_BODY = -1  #: generation of a record that does not belong to a body
EXIT_NO_RESOURCE = 10  #: exit code of a process that could not obtain a system resource
EXIT_FAILED = 70  #: exit code of an engine that failed at a tick and has already reported it


class _SanitisedText(Text):
    """Human-readable text that may quote any input. It is sanitised and truncated when it is encoded."""

    def make_encoder(self) -> Checker | None:
        return lambda text: sanitise_text(text, self.max_bytes)


_ROW = Int(0, 2**31 - 1)
_TICK = Int(0, 2**62)
_TIME = Int(-(2**62), 2**62)
_REQUEST = Int(0, 2**63 - 1)
_NAME = Text(64)
_MESSAGE_TEXT = _SanitisedText(4000)
_ROWS = List(_ROW, 2**20)
_BLOCK = Bin(0, 2**28)
_FLAG = Int(0, 1)
_GENERATION = Int(0, 2**62)

# ------------------------------------------------------------------------------------------------ front to engine


@dataclass(frozen=True, slots=True)
class EnterCommand:
    """A pilot joined, so its body must be added. A body that is already in the simulation stays at its position."""

    row: int = record_field(_ROW, "row")
    session: int = record_field(_REQUEST, "session number of the pilot, which identifies the session in the reply")
    name: str = record_field(_NAME, "name")
    model: str = record_field(_NAME, "model of a body that is not in the configuration")
    position: Sequence[float] = record_field(Numbers(exact=3), "position in W", "m")
    attitude: Sequence[float] = record_field(Numbers(exact=3), "roll, pitch, heading", "rad")
    lockstep: int = record_field(_TICK, "lockstep period; 0 = free-running", "ticks")
    generation: int = record_field(_GENERATION, "generation of the body in this row")


@dataclass(frozen=True, slots=True)
class ReleaseCommand:
    """The answers to a step have been sent: either all participants have answered, or the server no longer waits for
    them.
    """

    tick: int = record_field(_TICK, "tick of the step")


@dataclass(frozen=True, slots=True)
class EffortCommand:
    """The bodies whose forces clients want to receive."""

    rows: Sequence[int] = record_field(_ROWS, "rows of the bodies")


@dataclass(frozen=True, slots=True)
class InstrumentStepsCommand:
    """The bodies whose instruments run in lockstep, and the periods of these instruments."""

    rows: Sequence[int] = record_field(_ROWS, "row of each period")
    periods: Sequence[int] = record_field(List(_TICK, 2**20), "lockstep periods", "ticks")


#: kinds of the server's own records; forwarded messages keep the kinds of their datagrams, which have higher numbers
COMMANDS = TaggedUnion("commands", {1: EnterCommand, 2: ReleaseCommand, 3: EffortCommand, 4: InstrumentStepsCommand})


@dataclass(slots=True)  # not frozen: that would triple the cost of making one for each command
class ClientMessage:
    """A message from a client, or a command from the commander. It crosses the ring as bytes in the wire format."""

    row: int  #: row of the body; -1 for a command
    number: int  #: number of the session or, for a request, the number that its result contains
    message: Actuate | Done | Leave | AnyRequest
    payload: bytes  #: payload of ACTUATE, DONE or LEAVE, or an encoded item of one of the types in REQUESTS


FrontCommand = EnterCommand | ReleaseCommand | EffortCommand | InstrumentStepsCommand
EngineCommand = FrontCommand | ClientMessage
_FORWARDED = frozenset({Type.ACTUATE, Type.DONE, Type.LEAVE, Type.REQUESTS})
_ADDRESS = struct.Struct("<iQ")  # row and number of a forwarded message
_unpack_address, _ADDRESS_BYTES = _ADDRESS.unpack_from, _ADDRESS.size
LEAVE_PAYLOAD = codec.encode_payload(Leave())[1]

# ------------------------------------------------------------------------------------------------ engine to front


@dataclass(frozen=True, slots=True)
class SignalsEvent:
    """Records of the ``sent`` and ``reception`` tables."""

    sent: bytes = record_field(_BLOCK, "records")
    receptions: bytes = record_field(_BLOCK, "records")
    senders: bytes = record_field(_BLOCK, "for each sender, the generation of the body in its row, int64")
    receivers: bytes = record_field(_BLOCK, "for each receiver, the generation of the body in its row, int64")


@dataclass(frozen=True, slots=True)
class ChannelStatesEvent:
    """Changes of the channel between busy and idle at transducers with carrier sense, in chronological order."""

    rows: Sequence[int] = record_field(_ROWS, "row of the body of each change")
    generations: Sequence[int] = record_field(List(_GENERATION, 2**20), "generations of these bodies")
    busy: Sequence[int] = record_field(List(_FLAG, 2**20), "1 = the channel became busy; 0 = it became idle")
    times: Sequence[int] = record_field(List(_TIME, 2**20), "times by the clocks of the transducers", "ns")


@dataclass(frozen=True, slots=True)
class LogRecordsEvent:
    """Records of one tick for the log, table by table."""

    tick: int = record_field(_TICK, "tick")
    tables: Sequence[str] = record_field(List(_NAME, 2**10), "names of the tables")
    counts: Sequence[int] = record_field(_ROWS, "number of records of each table")
    rows: bytes = record_field(
        _BLOCK, "for each record, the row of its body (or line) and the number of its instrument (or 0), int64"
    )
    records: bytes = record_field(_BLOCK, "the records")
    generations: bytes = record_field(_BLOCK, "for each record, the generation of its body (or NO_BODY), int64")


@dataclass(frozen=True, slots=True)
class LockstepDueEvent:
    """Lockstep participants are due; the engine waits for :class:`ReleaseCommand`."""

    tick: int = record_field(_TICK, "tick")
    rows: Sequence[int] = record_field(_ROWS, "rows of the clients")
    generations: Sequence[int] = record_field(List(_GENERATION, 2**20), "generations of these bodies")


@dataclass(frozen=True, slots=True)
class RunStateEvent:
    """The state of the timer changed."""

    state: int = record_field(Int(0, 255), "state of the timer")
    time_ns: int = record_field(_TIME, "simulation time", "ns")


@dataclass(frozen=True, slots=True)
class ExecutedEvent:
    """The result of a command."""

    number: int = record_field(_REQUEST, "command number; 0 = from the configuration")
    ok: int = record_field(_FLAG, "1 = done")
    text: str = record_field(_MESSAGE_TEXT, "reason for the refusal, or result of the command")
    time_ns: int = record_field(_TIME, "simulation time", "ns")
    command: bytes = record_field(_BLOCK, "the command, encoded as an item of REQUESTS")


@dataclass(frozen=True, slots=True)
class SoundRefusedEvent:
    """An acoustic request that was refused."""

    row: int = record_field(_ROW, "row")
    number: int = record_field(_REQUEST, "number that combines the request number and the session number")
    text: str = record_field(_MESSAGE_TEXT, "reason")


@dataclass(frozen=True, slots=True)
class SoundEvent:
    """A sound that was played for the first time, for the log."""

    time_ns: int = record_field(_TIME, "time of emission", "ns")
    signal: int = record_field(_REQUEST, "number of the signal")
    name: str = record_field(_NAME, "name of the body that played the sound")
    sampling: float = record_field(Number(), "sampling rate", "Hz")
    samples: bytes = record_field(_BLOCK, "samples: 32-bit floating-point values, little-endian")


@dataclass(frozen=True, slots=True)
class BodyPresenceEvent:
    """A body was added or removed."""

    time_ns: int = record_field(_TIME, "simulation time", "ns")
    row: int = record_field(_ROW, "row")
    name: str = record_field(_NAME, "name")
    model: str = record_field(_NAME, "model")
    type: str = record_field(_NAME, "surface, underwater or buoy")
    is_present: int = record_field(_FLAG, "1 = entered, 0 = left")
    is_new: int = record_field(
        _FLAG, "1 = the body has just entered or left; 0 = an earlier entry, repeated for the log when the clock starts"
    )
    is_logged: int = record_field(_FLAG, "1 = write this event to the log")
    generation: int = record_field(_GENERATION, "generation of the body in this row")


@dataclass(frozen=True, slots=True)
class BodiesFrozenEvent:
    """Bodies that were frozen because their state diverged (NaN or infinity)."""

    time_ns: int = record_field(_TIME, "simulation time", "ns")
    names: Sequence[str] = record_field(List(_NAME, 2**20), "names of the bodies")


@dataclass(frozen=True, slots=True)
class NoticeEvent:
    """A human-readable notice."""

    time_ns: int = record_field(_TIME, "simulation time", "ns")
    row: int = record_field(_ROW, "row of the body")
    name: str = record_field(_NAME, "name of the body")
    text: str = record_field(_MESSAGE_TEXT, "the notice")
    generation: int = record_field(_GENERATION, "generation of the body in that row")


@dataclass(frozen=True, slots=True)
class SessionFailedEvent:
    """A session must end because its body cannot be added, or because the engine failed while executing its request."""

    row: int = record_field(_ROW, "row of the session's body")
    session: int = record_field(_REQUEST, "session number")
    text: str = record_field(_MESSAGE_TEXT, "reason")
    is_internal: int = record_field(_FLAG, "1 = internal error of the engine")


@dataclass(frozen=True, slots=True)
class SlowEmulator:
    """The simulation started or stopped waiting for a slow synchronous emulator."""

    sensor: str = record_field(_NAME, "sensor type of the emulator")
    slow: int = record_field(_FLAG, "1 = the emulator is slow")
    text: str = record_field(_MESSAGE_TEXT, "human-readable notice")


@dataclass(frozen=True, slots=True)
class TimeChangedEvent:
    """The simulation was reset, or has returned to a snapshot."""

    time_ns: int = record_field(_TIME, "simulation time from now on", "ns")
    before_ns: int = record_field(_TIME, "simulation time before the change", "ns")


EVENTS = TaggedUnion(
    "events",
    {
        1: SignalsEvent,
        2: LogRecordsEvent,
        3: LockstepDueEvent,
        4: RunStateEvent,
        5: ExecutedEvent,
        6: SoundRefusedEvent,
        7: BodyPresenceEvent,
        8: BodiesFrozenEvent,
        9: NoticeEvent,
        10: SessionFailedEvent,
        11: SlowEmulator,
        12: TimeChangedEvent,
        13: SoundEvent,
        14: ChannelStatesEvent,
    },
)
EngineEvent = (
    SignalsEvent
    | LogRecordsEvent
    | LockstepDueEvent
    | RunStateEvent
    | ExecutedEvent
    | SoundRefusedEvent
    | BodyPresenceEvent
    | BodiesFrozenEvent
    | NoticeEvent
    | SessionFailedEvent
    | SlowEmulator
    | TimeChangedEvent
    | SoundEvent
    | ChannelStatesEvent
)


class RecordQueue(Protocol):
    """A bounded queue of records in one direction; see :class:`~wavesim_server.ring.Ring`."""

    def push(self, kind: int, payload: bytes) -> int:
        """Append a record; return 0 if the queue is full."""

    def pop_all(self) -> Iterator[tuple[int, bytes]]:
        """Yield the kind and the payload of every record in the queue."""

    def count_dropped(self) -> None:
        """Count a record that was dropped."""

    def count_damaged(self) -> None:
        """Count a record that the reader cannot decode."""

    @property
    def dropped(self) -> int:
        """Number of dropped records."""

    @property
    def damaged(self) -> int:
        """Number of times that the reader has found the queue damaged and has skipped its content."""


def forward(kind: Type, row: int, number: int, content: bytes) -> tuple[int, bytes]:
    """Return the kind and the payload of the record that carries a client's message unchanged; see
    :class:`ClientMessage`.
    """
    return kind, _ADDRESS.pack(row, number) + content


def encode(record: FrontCommand | EngineEvent) -> tuple[int, bytes]:
    """Return the kind and payload of a record for a queue."""
    family = COMMANDS if type(record) in COMMANDS.numbers else EVENTS
    kind, *values = family.encode(record)
    return kind, msgpack.packb(values)


def _decode(family: TaggedUnion, kind: int, payload: bytes) -> Any:
    record = family.decode((kind, *msgpack.unpackb(payload, use_list=False)))
    if record is None:
        raise Malformed(f"unknown record kind {kind}")
    return record


def decode_command(kind: int, payload: bytes) -> EngineCommand:
    """Decode a command that was produced by :func:`encode` or :func:`forward`."""
    if kind in _FORWARDED:
        row, number = _unpack_address(payload)
        content = payload[_ADDRESS_BYTES:]
        message = REQUESTS.unpack(content) if kind == Type.REQUESTS else codec.decode_forwarded(content, kind)
        return ClientMessage(row, number, message, content)
    command: EngineCommand = _decode(COMMANDS, kind, payload)
    return command


def decode_event(kind: int, payload: bytes) -> EngineEvent:
    """Decode an event that was produced by :func:`encode`."""
    event: EngineEvent = _decode(EVENTS, kind, payload)
    return event
