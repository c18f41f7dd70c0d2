"""Every datagram of the wire protocol, declared once; see docs/PROTOCOL.md. Events and requests: :mod:`.items`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Any

from wavesim_sdk.tables import MAX_ACTUATORS
from wavesim_sdk.wire.schema import Bin, Int, List, Nullable, Number, Numbers, Struct, TaggedItem, Text, record_field

MAGIC = b"WVSM"
VERSION = 2
HEADER_BYTES = 24
MAX_DATAGRAM = 1200
SEAL_BYTES = 16  #: a sealed body is longer by so much
MIN_HELLO = 64
MAX_DEPTH = 6  #: of arrays within arrays
COOKIE_BYTES = 16

NAME_BYTES = 31
TEXT_BYTES = 400
MAX_SENSORS = 64  #: of one body
MAX_ITEMS = 256  #: events or requests in a datagram
PIECE_BYTES = 1120  #: of a frame in a datagram; of its last piece less
MAX_PIECES = 8192  #: of a frame
MOTION_NUMBERS = 16
EFFORT_NUMBERS = 48
ESTIMATE_NUMBERS = 10
MAX_COORDINATE = 1e6  #: m; greatest coordinate of a start
MAX_VALUE = 1e9  #: greatest command, force, value
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
    __hash__ = int.__hash__  # an enumeration's own is a call of Python for each look into a table

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
    """Why a join is refused."""

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
    """What a session is to its body."""

    PILOT = 0
    INSTRUMENT = 1
    LISTENER = 2
    OBSERVER = 3


class Resumption(IntEnum):
    """How a session came to its body."""

    NEW = 0
    RESUMED = 1
    TOOK_OVER = 2


class Right(IntFlag):
    """What a session may do besides."""

    FAULT = 1
    PUSH = 2
    POSE = 4
    ALLOCATE = 8
    WEATHER = 16
    CONTROL = 32
    MISSION = 64


# ------------------------------------------------------------------------------------------------ before a session


@dataclass(frozen=True, slots=True)
class Hello:
    nonce: int = record_field(UINT64, "any number, comes back")
    padding: bytes = record_field(Bin(0, MAX_DATAGRAM), "to make 64 bytes in all")


@dataclass(frozen=True, slots=True)
class Challenge:
    nonce: int = record_field(UINT64, "of the HELLO")
    cookie: bytes = record_field(Bin(COOKIE_BYTES, COOKIE_BYTES), "to be returned in JOIN")


@dataclass(frozen=True, slots=True)
class Join:
    """What a client asks for. ``position`` and ``attitude`` matter for a new name only."""

    cookie: bytes = record_field(Bin(COOKIE_BYTES, COOKIE_BYTES), "of the CHALLENGE", default=bytes(COOKIE_BYTES))
    nonce: int = record_field(UINT64, "any number, comes back", default=0)
    name: str = record_field(NAME, "name of the body; of an observer, a name for people", default="")
    role: int = record_field(UINT8, "0 pilot, 1 instrument, 2 listener, 3 observer", default=Role.PILOT)
    model: str = record_field(NAME, "name of a model for a new name; else empty", default="")
    position: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_COORDINATE, high=MAX_COORDINATE),
        "start position in W for a new name",
        "m",
        default=(0.0, 0.0, 0.0),
    )
    attitude: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_COORDINATE, high=MAX_COORDINATE),
        "start roll, pitch, heading for a new name",
        "rad",
        default=(0.0, 0.0, 0.0),
    )
    lockstep_ns: int = record_field(PERIOD, "lockstep period, of a pilot; 0 = free", "ns", default=0)
    state_period_ns: int = record_field(
        PERIOD, "wall time between STATE messages; 0 = the server's default", "ns", default=0
    )
    previous: int = record_field(UINT64, "token of the session to resume; 0 = none", default=0)
    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)), "names of the sensors to be told of; nil = all", default=None
    )
    acoustics: int = record_field(FLAG, "1 = RECEPTION events, please", default=1)
    effort: int = record_field(FLAG, "1 = forces and accelerations in the states, please", default=0)
    others: int = record_field(FLAG, "1 = BODY events of others that come and go, please", default=0)


@dataclass(frozen=True, slots=True)
class Welcome:
    """The server's answer to a join."""

    nonce: int = record_field(UINT64, "of the JOIN")
    id: int = record_field(Int(-1, 2**31 - 1), "row of the body; -1 for an observer")
    role: int = record_field(UINT8, "as in JOIN")
    resumed: int = record_field(UINT8, "0 new, 1 resumed, 2 took over from another client")
    step_ns: int = record_field(Int(1, 2**62), "length of a tick", "ns")
    sound_speed: float = record_field(Number(), "speed of sound", "m/s")
    tick: int = record_field(TICKS, "tick now")
    run_state: int = record_field(UINT8, "state of the simulation timer now")
    state_period_ns: int = record_field(PERIOD, "wall time between STATE messages; 0 = none", "ns")
    lockstep_ns: int = record_field(PERIOD, "lockstep period; 0 = free", "ns")
    keepalive_period: float = record_field(Number(0.0), "wall time between KEEPALIVEs", "s")
    keepalive_timeout: float = record_field(Number(0.0), "a client silent for longer is removed", "s")
    actuators: int = record_field(Int(0, MAX_ACTUATORS), "ACTUATOR events that follow, and length of `actuation`")
    sensors: int = record_field(UINT32, "SENSOR events that follow")
    rights: int = record_field(UINT32, "bits of what this session may do besides")


@dataclass(frozen=True, slots=True)
class Refuse:
    """The server refused the join."""

    nonce: int = record_field(UINT64, "of the JOIN")
    code: int = record_field(UINT8, "refusal code")
    text: str = record_field(MESSAGE_TEXT, "for people")


# ------------------------------------------------------------------------------------------------ from a client

COMMAND = Numbers(MAX_ACTUATORS, allow_nil=True, low=-MAX_VALUE, high=MAX_VALUE)
ESTIMATE_VALUES = Numbers(exact=ESTIMATE_NUMBERS, allow_nil=True)


@dataclass(frozen=True, slots=True)
class Actuate:
    command: Sequence[float | None] = record_field(
        COMMAND, "commands in the order of the ACTUATOR events; nil and missing ones: as before"
    )


@dataclass(frozen=True, slots=True)
class Requests:
    first: int = record_field(Int(1, 2**32 - 1), "number of the first item")
    items: Sequence[Any] = record_field(List(TaggedItem("requests"), MAX_ITEMS), "the items")


@dataclass(frozen=True, slots=True)
class Done:
    tick: int = record_field(TICKS, "of the STEP")
    last_request: int = record_field(UINT32, "number of the last request that belongs to this step")
    command: Sequence[float | None] | None = record_field(Nullable(COMMAND), "as in ACTUATE; nil = all as before")
    estimate: Sequence[float | None] | None = record_field(Nullable(ESTIMATE_VALUES), "as in ESTIMATE; nil = none")


@dataclass(frozen=True, slots=True)
class KeepaliveReply:
    number: int = record_field(UINT32, "of the KEEPALIVE")


@dataclass(frozen=True, slots=True)
class Leave:
    pass


@dataclass(frozen=True, slots=True)
class Estimate:
    values: Sequence[float | None] = record_field(
        ESTIMATE_VALUES,
        "what the navigator believes: position x3, sigma x3, dead reckoning x3 (m), last range innovation (m)",
    )


@dataclass(frozen=True, slots=True)
class Ack:
    pass


@dataclass(frozen=True, slots=True)
class Proof:
    number: int = record_field(UINT64, "of the PROVE")


# ------------------------------------------------------------------------------------------------ from the server


@dataclass(frozen=True, slots=True)
class Reading:
    """Some values of one sensor."""

    number: int = record_field(Int(0, 2**31 - 1), "of the SENSOR event")
    time_ns: int = record_field(TIME, "simulation time of the values", "ns")
    first: int = record_field(Int(0, 2**31 - 1), "place of the first of these values among those of the sensor")
    values: Sequence[float | None] = record_field(
        Numbers(MAX_DATAGRAM, allow_nil=True), "the values; nil = there is none"
    )


READINGS = List(Struct(Reading), MAX_DATAGRAM)


# not frozen: that would make them three times as dear, and one comes with each step
@dataclass(slots=True)
class Snapshot:
    """What STATE and STEP have in common."""

    tick: int = record_field(TICKS, "tick of this state")
    time_ns: int = record_field(TIME, "simulation time", "ns")
    run_state: int = record_field(UINT8, "state of the simulation timer")
    parts: int = record_field(UINT32, "SENSORS datagrams that belong to this one")
    motion: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=MOTION_NUMBERS)), "true motion; nil = hidden", "SI"
    )
    actuation: Sequence[float] = record_field(
        Numbers(MAX_ACTUATORS), "actual values in the order of the ACTUATOR events", "SI"
    )
    effort: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=EFFORT_NUMBERS)), "accelerations and forces; nil unless asked for", "SI"
    )
    sensors: Sequence[Reading] = record_field(READINGS, "latest values; more of them in SENSORS")


@dataclass(slots=True)
class StateMessage(Snapshot):
    pass


@dataclass(slots=True)
class StepMessage(Snapshot):
    last_event: int = record_field(UINT32, "number of the last event before this step")


@dataclass(frozen=True, slots=True)
class SensorsMessage:
    tick: int = record_field(TICKS, "of the STATE or STEP")
    part: int = record_field(UINT32, "number of this part, from 0")
    sensors: Sequence[Reading] = record_field(READINGS, "as in STATE")


@dataclass(frozen=True, slots=True)
class Events:
    first: int = record_field(Int(1, 2**32 - 1), "number of the first item")
    items: Sequence[Any] = record_field(List(TaggedItem("events"), MAX_ITEMS), "the items")


@dataclass(frozen=True, slots=True)
class Keepalive:
    number: int = record_field(UINT32, "to be returned; 0 = only an acknowledgement")


@dataclass(frozen=True, slots=True)
class Fleet:
    """To an observer: some of the bodies at a tick; ``bodies`` are records as docs/PROTOCOL.md says."""

    tick: int = record_field(TICKS, "tick of these states")
    time_ns: int = record_field(TIME, "simulation time", "ns")
    run_state: int = record_field(UINT8, "state of the simulation timer")
    part: int = record_field(UINT32, "number of this part, from 0")
    parts: int = record_field(Int(1, 2**32 - 1), "parts of this tick")
    bodies: bytes = record_field(Bin(0, MAX_DATAGRAM), "records of the bodies of this part, below")


@dataclass(frozen=True, slots=True)
class Bye:
    """The server ended the session."""

    text: str = record_field(MESSAGE_TEXT, "why")


@dataclass(frozen=True, slots=True)
class Prove:
    number: int = record_field(UINT64, "to be returned in PROOF")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some bytes of a frame of an imaging sonar. Never repeated: a frame that lost a piece is lost."""

    sensor: int = record_field(Int(0, 2**31 - 1), "number of the SENSOR event")
    number: int = record_field(Int(1, 2**62), "the how-many-th frame of this sonar that this session is sent")
    part: int = record_field(Int(0, MAX_PIECES - 1), "number of this piece, from 0")
    parts: int = record_field(Int(1, MAX_PIECES), "pieces of this frame")
    data: bytes = record_field(Bin(1, MAX_DATAGRAM), "bytes of the frame, from `part` times 1120 on")


#: type -> (from the client?, needs a session?, record)
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

#: a body in FLEET: little-endian, without gaps
FLEET_RECORD = (
    ("id", "u4", 1, "row"),
    ("p_WB_W", "f8", 3, "position in W, m"),
    ("q_WB", "f4", 4, "attitude"),
    ("v_WB_B", "f4", 3, "velocity over ground in B, m/s"),
    ("w_WB_B", "f4", 3, "angular velocity in B, rad/s"),
)
FLEET_BODIES = 16  #: in one datagram

#: the parts of `effort`, each of six numbers in B
EFFORT = (
    ("acceleration", "m/s2, rad/s2", "linear and angular acceleration"),
    ("total", "N, N m", "total force and moment"),
    ("restoring", "N, N m", "weight and buoyancy"),
    ("drag", "N, N m", "of the hull"),
    ("actuators", "N, N m", "thrusters and fins"),
    ("environment", "N, N m", "wind and waves"),
    ("external", "N, N m", "pushes"),
    ("contact", "N, N m", "moorings and contact"),
)
