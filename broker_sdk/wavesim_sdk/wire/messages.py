"""Declarations of every datagram in the wire protocol; see docs/PROTOCOL.md. The events and requests are in
:mod:`.items`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

import numpy as np

from wavesim_sdk.device_faults import MAX_NAME
from wavesim_sdk.tables import MAX_ACTUATORS
from wavesim_sdk.wire.schema import Bin, Int, List, Nullable, Number, Numbers, Struct, TaggedItem, Text, record_field

MAGIC = b"WVSM"
VERSION = 2
HEADER_BYTES = 24
MAX_DATAGRAM = 1200
SEAL_BYTES = 16  #: number of bytes that sealing adds to a payload
MIN_HELLO = 64
MAX_DEPTH = 6  #: maximum nesting depth of arrays in a payload from outside a session
COOKIE_BYTES = 16

NAME_BYTES = 31
TEXT_BYTES = 400
MAX_SENSORS = 64  #: maximum number of sensors on one body
MAX_ITEMS = 256  #: maximum number of events or requests in a datagram
PIECE_BYTES = 1120  #: number of frame bytes in one datagram; the last piece may have fewer
MAX_PIECES = 8192  #: maximum number of pieces of one frame
MOTION_NUMBERS = 16
EFFORT_NUMBERS = 48
ESTIMATE_NUMBERS = 10
MAX_COORDINATE = 1e6  #: maximum absolute value of an initial coordinate in m
MAX_VALUE = 1e9  #: maximum absolute value of a command, force or sensor value
UINT64 = Int(0, 2**64 - 1)
UINT32 = Int(0, 2**32 - 1)
UINT8 = Int(0, 255)
FLAG = Int(0, 1)
TICKS = Int(0, 2**62)
PERIOD = Int(0, 2**62)
TIME = Int(-(2**62), 2**62)
NAME = Text(NAME_BYTES)
MESSAGE_TEXT = Text(TEXT_BYTES)


class Type(IntEnum):
    __hash__ = int.__hash__  # faster in tables: the hash of an enumeration is a Python function

    HELLO = 1
    CHALLENGE = 2
    JOIN = 3
    WELCOME = 4
    REFUSE = 5
    ACTUATE = 16
    REQUESTS = 17
    DONE = 18
    KEEPALIVE_REPLY = 19
    LEAVE = 20
    ESTIMATE = 21
    ACK = 22
    PROOF = 23
    STATE = 32
    EVENTS = 33
    STEP = 34
    KEEPALIVE = 35
    BYE = 36
    FLEET = 37
    SENSORS = 38
    PROVE = 39
    FRAME = 40


class Refusal(IntEnum):
    """Reasons for refusing a join."""

    COOKIE = 1
    NAME_IN_USE = 2
    UNKNOWN_NAME = 3
    UNKNOWN_MODEL = 4
    FULL = 5
    BAD_VALUE = 6
    KEY = 7
    EXPIRED = 8
    ROLE = 9
    INTERNAL = 10


class Role(IntEnum):
    """Roles that a session can have for its body or, as an emulator, for its sensor type."""

    PILOT = 0
    INSTRUMENT = 1
    LISTENER = 2
    OBSERVER = 3
    EMULATOR = 4


class Resumption(IntEnum):
    """Ways in which a session can join its body."""

    NEW = 0
    RESUMED = 1
    TOOK_OVER = 2


class Right(IntFlag):
    """Additional rights of a session."""

    FAULT = 1
    PUSH = 2
    POSE = 4
    ALLOCATE = 8
    WEATHER = 16
    CONTROL = 32
    MISSION = 64
    FENCE = 128


# ------------------------------------------------------------------------------------------------ before a session


@dataclass(frozen=True, slots=True)
class Hello:
    nonce: int = record_field(UINT64, "any number, which the server returns")
    padding: bytes = record_field(Bin(0, MAX_DATAGRAM), "padding that extends the datagram to at least 64 bytes")


@dataclass(frozen=True, slots=True)
class Challenge:
    nonce: int = record_field(UINT64, "nonce of the HELLO")
    cookie: bytes = record_field(Bin(COOKIE_BYTES, COOKIE_BYTES), "cookie to return in JOIN")


@dataclass(frozen=True, slots=True)
class Join:
    """A client's request to join. ``position`` and ``attitude`` apply only if the name is new."""

    cookie: bytes = record_field(
        Bin(COOKIE_BYTES, COOKIE_BYTES), "cookie of the CHALLENGE", default=bytes(COOKIE_BYTES)
    )
    nonce: int = record_field(UINT64, "any number, which the server returns", default=0)
    name: str = record_field(
        NAME, "name of the body; for an observer, any descriptive name; for an emulator, its sensor type", default=""
    )
    role: int = record_field(
        UINT8, "role of the session: 0 pilot, 1 instrument, 2 listener, 3 observer, 4 emulator", default=Role.PILOT
    )
    model: str = record_field(NAME, "model of the new body, if the name is new; otherwise empty", default="")
    position: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_COORDINATE, high=MAX_COORDINATE),
        "initial position in W of a body with a new name",
        "m",
        default=(0.0, 0.0, 0.0),
    )
    attitude: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_COORDINATE, high=MAX_COORDINATE),
        "initial roll, pitch and heading of a body with a new name",
        "rad",
        default=(0.0, 0.0, 0.0),
    )
    lockstep_ns: int = record_field(
        PERIOD, "lockstep period of a pilot or an instrument; 0 = free-running", "ns", default=0
    )
    state_period_ns: int = record_field(
        PERIOD, "wall time between STATE messages; 0 = the server's default", "ns", default=0
    )
    previous: int = record_field(
        UINT64,
        "token of the session to resume or, if keys are used, the proof of its ticket; 0 = start a new session",
        default=0,
    )
    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)), "names of the sensors to report; nil = all", default=None
    )
    acoustics: int = record_field(FLAG, "1 = send RECEPTION events", default=1)
    effort: int = record_field(FLAG, "1 = include forces and accelerations in the states", default=0)
    others: int = record_field(FLAG, "1 = send BODY events when other bodies enter or leave", default=0)
    device: str = record_field(
        Text(MAX_NAME),
        "name of the device that the session serves, and whose faults it receives as DEVICE_FAULT events; if another "
        "device of the body already has this name, the server appends `-2`, `-3` and so on; empty = none",
        optional=True,
        default="",
    )


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's answer to a join."""

    nonce: int = record_field(UINT64, "nonce of the JOIN")
    id: int = record_field(Int(-1, 2**31 - 1), "row of the body; -1 for an observer")
    role: int = record_field(UINT8, "role of the session, as in JOIN")
    resumed: int = record_field(UINT8, "kind of session: 0 new, 1 resumed, 2 taken over from another client")
    step_ns: int = record_field(Int(1, 2**62), "duration of a tick", "ns")
    sound_speed: float = record_field(Number(), "speed of sound", "m/s")
    tick: int = record_field(TICKS, "current tick")
    run_state: int = record_field(UINT8, "current state of the simulation clock")
    state_period_ns: int = record_field(PERIOD, "wall time between STATE messages; 0 = no STATE messages", "ns")
    lockstep_ns: int = record_field(PERIOD, "lockstep period; 0 = free-running", "ns")
    keepalive_period: float = record_field(Number(0.0), "wall time between KEEPALIVE messages", "s")
    keepalive_timeout: float = record_field(
        Number(0.0), "time without datagrams after which the server removes a client", "s"
    )
    actuators: int = record_field(
        Int(0, MAX_ACTUATORS), "number of ACTUATOR events that follow, and length of `actuation`"
    )
    sensors: int = record_field(UINT32, "number of SENSOR events that follow")
    rights: int = record_field(UINT32, "additional rights of this session, as bits")


@dataclass(frozen=True, slots=True)
class Refuse:
    """The server refused the join."""

    nonce: int = record_field(UINT64, "nonce of the JOIN")
    code: int = record_field(UINT8, "code of the refusal")
    text: str = record_field(MESSAGE_TEXT, "human-readable text")


# ------------------------------------------------------------------------------------------------ from a client

COMMAND = Numbers(MAX_ACTUATORS, allow_nil=True, low=-MAX_VALUE, high=MAX_VALUE)
ESTIMATE_VALUES = Numbers(exact=ESTIMATE_NUMBERS, allow_nil=True)


@dataclass(frozen=True, slots=True)
class Actuate:
    command: Sequence[float | None] = record_field(
        COMMAND, "commands in the order of the ACTUATOR events; nil or missing = unchanged"
    )


@dataclass(frozen=True, slots=True)
class Requests:
    first: int = record_field(Int(1, 2**32 - 1), "number of the first event or request in the list")
    items: Sequence[Any] = record_field(List(TaggedItem("requests"), MAX_ITEMS), "the requests")


@dataclass(frozen=True, slots=True)
class Done:
    tick: int = record_field(TICKS, "tick of the STEP")
    last_request: int = record_field(UINT32, "number of the last request that belongs to this step")
    command: Sequence[float | None] | None = record_field(
        Nullable(COMMAND), "commands, as in ACTUATE; nil = all unchanged"
    )
    estimate: Sequence[float | None] | None = record_field(
        Nullable(ESTIMATE_VALUES), "estimate, as in ESTIMATE; nil = none"
    )


@dataclass(frozen=True, slots=True)
class KeepaliveReply:
    number: int = record_field(UINT32, "number from the KEEPALIVE")


@dataclass(frozen=True, slots=True)
class Leave:
    pass


@dataclass(frozen=True, slots=True)
class Estimate:
    values: Sequence[float | None] = record_field(
        ESTIMATE_VALUES,
        "navigator's estimate in m: position (3 values), its standard deviation (3), dead-reckoned position (3), last range innovation (1)",
    )


@dataclass(frozen=True, slots=True)
class Ack:
    pass


@dataclass(frozen=True, slots=True)
class Proof:
    number: int = record_field(UINT64, "number from the PROVE")


# ------------------------------------------------------------------------------------------------ from the server


@dataclass(frozen=True, slots=True)
class Reading:
    """Some of the values from one sensor."""

    number: int = record_field(Int(0, 2**31 - 1), "number of the sensor, as in its SENSOR event")
    time_ns: int = record_field(TIME, "simulation time of the values", "ns")
    first: int = record_field(Int(0, 2**31 - 1), "index of the first of these values among all values of the sensor")
    values: Sequence[float | None] = record_field(Numbers(MAX_DATAGRAM, allow_nil=True), "the values; nil = no value")


READINGS = List(Struct(Reading), MAX_DATAGRAM)


# not frozen: that would triple the cost of making one, and each step brings one
@dataclass(slots=True)
class StateContents:
    """The fields common to STATE and STEP."""

    tick: int = record_field(TICKS, "tick of this state")
    time_ns: int = record_field(TIME, "simulation time", "ns")
    run_state: int = record_field(UINT8, "state of the simulation clock")
    parts: int = record_field(UINT32, "number of SENSORS datagrams that belong to this state")
    motion: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=MOTION_NUMBERS)), "true motion; nil = not sent to this client", "SI"
    )
    actuation: Sequence[float] = record_field(
        Numbers(MAX_ACTUATORS), "actual values in the order of the ACTUATOR events", "SI"
    )
    effort: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=EFFORT_NUMBERS)), "accelerations and forces; nil unless requested", "SI"
    )
    sensors: Sequence[Reading] = record_field(
        READINGS, "latest values of sensors; those that do not fit are sent in SENSORS"
    )


@dataclass(slots=True)
class StateMessage(StateContents):
    pass


@dataclass(slots=True)
class StepMessage(StateContents):
    last_event: int = record_field(UINT32, "number of the last event before this step")


@dataclass(frozen=True, slots=True)
class SensorsMessage:
    tick: int = record_field(TICKS, "tick of the STATE or STEP")
    part: int = record_field(UINT32, "number of this part of the tick, from 0")
    sensors: Sequence[Reading] = record_field(READINGS, "values, as in STATE")


@dataclass(frozen=True, slots=True)
class Events:
    first: int = record_field(Int(1, 2**32 - 1), "number of the first event or request in the list")
    items: Sequence[Any] = record_field(List(TaggedItem("events"), MAX_ITEMS), "the events")


@dataclass(frozen=True, slots=True)
class Keepalive:
    number: int = record_field(
        UINT32, "number that the receiver must return; 0 = this message is only an acknowledgement"
    )


@dataclass(frozen=True, slots=True)
class Fleet:
    """Some of the bodies at one tick, for observers. docs/PROTOCOL.md defines the records in ``bodies``."""

    tick: int = record_field(TICKS, "tick of these states")
    time_ns: int = record_field(TIME, "simulation time", "ns")
    run_state: int = record_field(UINT8, "state of the simulation clock")
    part: int = record_field(UINT32, "number of this part of the tick, from 0")
    parts: int = record_field(Int(1, 2**32 - 1), "number of parts of this tick")
    bodies: bytes = record_field(
        Bin(0, MAX_DATAGRAM), "records of the bodies in this part; see 'Bodies (inside FLEET)'"
    )


#: reason given in a BYE when the server is being shut down; the shutdown ends the run
SHUTDOWN = "the server shuts down"


@dataclass(frozen=True, slots=True)
class Bye:
    """The server ended the session."""

    text: str = record_field(MESSAGE_TEXT, "reason")


@dataclass(frozen=True, slots=True)
class Prove:
    number: int = record_field(UINT64, "number to return in PROOF")


@dataclass(frozen=True, slots=True)
class Piece:
    """Piece of a frame from an imaging sonar. The server never repeats a piece; if a piece is lost, the frame is lost."""

    sensor: int = record_field(Int(0, 2**31 - 1), "number of the sensor, as in its SENSOR event")
    number: int = record_field(Int(1, 2**62), "number of the frame, counted per sonar and session from 1")
    part: int = record_field(Int(0, MAX_PIECES - 1), "index of this piece, from 0")
    parts: int = record_field(Int(1, MAX_PIECES), "number of pieces of this frame")
    data: bytes = record_field(Bin(1, MAX_DATAGRAM), "bytes of the frame, starting at offset `part` x 1120")


#: for each datagram type, whether the client sends it, whether it needs a session, and its record
MESSAGES: dict[Type, tuple[bool, bool, type[Any]]] = {
    Type.HELLO: (True, False, Hello),
    Type.CHALLENGE: (False, False, Challenge),
    Type.JOIN: (True, False, Join),
    Type.WELCOME: (False, False, Welcome),
    Type.REFUSE: (False, False, Refuse),
    Type.ACTUATE: (True, True, Actuate),
    Type.REQUESTS: (True, True, Requests),
    Type.DONE: (True, True, Done),
    Type.KEEPALIVE_REPLY: (True, True, KeepaliveReply),
    Type.LEAVE: (True, True, Leave),
    Type.ESTIMATE: (True, True, Estimate),
    Type.ACK: (True, True, Ack),
    Type.PROOF: (True, True, Proof),
    Type.STATE: (False, True, StateMessage),
    Type.EVENTS: (False, True, Events),
    Type.STEP: (False, True, StepMessage),
    Type.KEEPALIVE: (False, True, Keepalive),
    Type.BYE: (False, True, Bye),
    Type.FLEET: (False, True, Fleet),
    Type.SENSORS: (False, True, SensorsMessage),
    Type.PROVE: (False, True, Prove),
    Type.FRAME: (False, True, Piece),
}

LATEST_WINS = frozenset({Type.STATE, Type.ACTUATE, Type.ESTIMATE})

#: record of one body in FLEET: little-endian, without padding
FLEET_RECORD = (
    ("id", "u4", 1, "row"),
    ("p_WB_W", "f8", 3, "position in W, m"),
    ("q_WB", "f4", 4, "attitude"),
    ("v_WB_B", "f4", 3, "velocity over ground in B, m/s"),
    ("w_WB_B", "f4", 3, "angular velocity in B, rad/s"),
)
FLEET_DTYPE = np.dtype([(name, f"<{kind}", (count,) if count > 1 else ()) for name, kind, count, _ in FLEET_RECORD])
FLEET_BODIES = 16  #: maximum number of bodies in one datagram

#: components of `effort`; each component consists of six numbers, in B
EFFORT = (
    ("acceleration", "m/s2, rad/s2", "linear acceleration (three values) and angular acceleration (three values)"),
    ("total", "N, N m", "total force and moment"),
    ("restoring", "N, N m", "weight and buoyancy"),
    ("drag", "N, N m", "hull damping"),
    ("actuators", "N, N m", "thrusters and fins"),
    ("environment", "N, N m", "wind and waves"),
    ("external", "N, N m", "external force and moment set by PUSH"),
    ("contact", "N, N m", "moorings and contact"),
)
