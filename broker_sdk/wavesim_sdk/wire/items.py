"""What EVENTS and REQUESTS carry: numbered items, each delivered once and in order; see docs/PROTOCOL.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD
from wavesim_sdk.wire.messages import (
    FLAG,
    MAX_SENSORS,
    MAX_VALUE,
    MESSAGE_TEXT,
    NAME,
    PERIOD,
    TIME,
    UINT8,
    UINT32,
)
from wavesim_sdk.wire.schema import Bin, Int, List, Nullable, Number, Numbers, Struct, TaggedUnion, record_field

ROW = Int(0, 2**31 - 1)
ADDRESS = Int(0, 2**31 - 1)
SIGNAL = Int(0, 2**63 - 1)
HERTZ = Number(0.0, 1e9)
DECIBEL = Number(-1e4, 1e4)
POINT = Numbers(exact=3, low=-1e12, high=1e12)
MAX_OBSERVED_ROWS = 512  #: an observer names
MAX_SENSOR_FIELDS = 32  #: of a sensor
MAX_ITEM_WAYPOINTS = 24  #: in one item; more come in several
MAX_MISSION_WAYPOINTS = 4096
ALLOCATION_NUMBERS = 6 * 12  #: as many as fit a datagram: six for each thruster
WHICH, PLACE, SIZE = Int(1, 2**31 - 1), Int(0, MAX_MISSION_WAYPOINTS - 1), Int(1, MAX_MISSION_WAYPOINTS)
POINTS = Numbers(4 * MAX_ITEM_WAYPOINTS, low=-MAX_VALUE, high=MAX_VALUE)
_MISSION = "number of the mission, as its sender chose it: parts of one have the same"
_FIRST = "place of the first of these waypoints in it, from 0"
_POINTS = "north, east, down in W and speed of each waypoint, one after the other"
_KIND = "0 pulse, 1 data, 2 range request, 3 range reply"


class EventKind(IntEnum):
    RECEPTION = 1
    SENT = 2
    REQUEST_REFUSED = 3
    RUN_STATE = 4
    BODY = 5
    SIGNAL = 6
    FATE = 7
    NOTICE = 8
    ACTUATOR = 9
    SENSOR = 10
    ANSWER = 11
    MISSION = 12


class Request(IntEnum):
    PING = 1
    SEND = 2
    RANGE = 3
    OBSERVE = 4
    SUBSCRIBE = 5
    CONTROL = 6
    FAULT = 7
    PUSH = 8
    POSE = 9
    ALLOCATE = 10
    WEATHER = 11
    FRAMES = 12
    MISSION = 13
    MISSIONS = 14


# ------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class Reception:
    """A signal that the body's transducer heard, as its instrument reports it; times by the node's own clock."""

    reception_ns: int = record_field(TIME, "time of arrival by the node's clock, as its instrument reports it", "ns")
    id: int = record_field(SIGNAL, "number of the signal")
    query: int = record_field(SIGNAL, "number of the signal that it answers; 0 = none")
    kind: int = record_field(UINT8, _KIND)
    code: int = record_field(SIGNAL, "code; 0 = none")
    from_address: int = record_field(ADDRESS, "modem address of the sender; 0 = none")
    to_address: int = record_field(ADDRESS, "modem address of the destination; 0 = all")
    frequency: float = record_field(Number(), "frequency as received, with Doppler shift", "Hz")
    level: float = record_field(Number(), "received level", "dB re 1 uPa")
    snr: float = record_field(Number(), "level over the noise in band", "dB")
    range: float | None = record_field(
        Nullable(Number()), "two-way range, of an answer to an own query", "m", default=None
    )
    azimuth: float | None = record_field(
        Nullable(Number()), "direction of arrival in B, from forward to starboard (USBL heads)", "rad", default=None
    )
    elevation: float | None = record_field(
        Nullable(Number()), "the same, down from the horizontal of B", "rad", default=None
    )
    payload: bytes | None = record_field(Nullable(Bin(0, MAX_PAYLOAD)), "payload of a packet", default=None)


@dataclass(frozen=True, slots=True)
class SignalSent:
    """The body's own signal left the transducer; the time by the node's own clock."""

    request: int = record_field(UINT32, "number of the request; 0 = the node sent by itself, or for another session")
    id: int = record_field(SIGNAL, "number that the signal got")
    emission_ns: int = record_field(TIME, "time of emission by the node's clock", "ns")
    frequency: float = record_field(Number(), "carrier", "Hz")
    level: float = record_field(Number(), "source level", "dB re 1 uPa at 1 m")
    duration: float = record_field(Number(), "length of the signal", "s")


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The server refused a request."""

    request: int = record_field(UINT32, "number of the request")
    text: str = record_field(MESSAGE_TEXT, "why")


@dataclass(frozen=True, slots=True)
class RunStateChanged:
    """The simulation was started, stopped or paused, or has ended."""

    run_state: int = record_field(UINT8, "new state of the simulation timer")
    time_ns: int = record_field(TIME, "when", "ns")


@dataclass(frozen=True, slots=True)
class BodyChanged:
    """A body came, was there, or left."""

    id: int = record_field(ROW, "row")
    present: int = record_field(FLAG, "1 = it came (or was there), 0 = it left")
    type: int = record_field(UINT8, "0 surface, 1 underwater, 2 buoy")
    name: str = record_field(NAME, "name")
    model: str = record_field(NAME, "model")


@dataclass(frozen=True, slots=True)
class SignalSeen:
    """To an observer: somebody sent a signal; true time and place."""

    id: int = record_field(SIGNAL, "number of the signal")
    source: int = record_field(ROW, "row of the sender")
    kind: int = record_field(UINT8, _KIND)
    emission_ns: int = record_field(TIME, "true time of emission", "ns")
    frequency: float = record_field(Number(), "carrier", "Hz")
    level: float = record_field(Number(), "source level", "dB re 1 uPa at 1 m")
    origin: Sequence[float] = record_field(Numbers(exact=3), "place of emission in W", "m")


@dataclass(frozen=True, slots=True)
class FateSeen:
    """To an observer: what became of a signal at a node."""

    id: int = record_field(SIGNAL, "number of the signal")
    source: int = record_field(ROW, "row of the sender")
    receiver: int = record_field(ROW, "row of the receiver")
    outcome: int = record_field(UINT8, "0 heard, else why not: the table below")
    arrival_ns: int = record_field(TIME, "true time of arrival", "ns")
    level: float | None = record_field(Nullable(Number()), "received level", "dB re 1 uPa")
    range: float | None = record_field(Nullable(Number()), "true length of the path", "m")


@dataclass(frozen=True, slots=True)
class Notice:
    """The server did something that a person should know."""

    time_ns: int = record_field(TIME, "when", "ns")
    text: str = record_field(MESSAGE_TEXT, "for people, such as what the watchdog did")


@dataclass(frozen=True, slots=True)
class ActuatorDescription:
    """One actuator of the body."""

    number: int = record_field(Int(0, MAX_ACTUATORS - 1), "its place in `command` and `actuation`")
    name: str = record_field(NAME, "name")
    kind: int = record_field(
        UINT8, "0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 of another type"
    )
    unit: str = record_field(NAME, "unit of its commands and values: N, 1/s, rad, kg, or empty")
    minimum: float = record_field(Number(), "least command")
    maximum: float = record_field(Number(), "greatest command")


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """One field of a sensor."""

    name: str = record_field(NAME, "name")
    unit: str = record_field(NAME, "unit; empty = none")
    count: int = record_field(Int(1, 4096), "numbers in it")


@dataclass(frozen=True, slots=True)
class SensorDescription:
    """One sensor of the body."""

    number: int = record_field(Int(0, 2**31 - 1), "its number in states")
    name: str = record_field(NAME, "name")
    type: str = record_field(NAME, "type")
    period_ns: int = record_field(PERIOD, "simulation time between its values", "ns")
    fields: Sequence[FieldDescription] = record_field(
        List(Struct(FieldDescription), MAX_SENSOR_FIELDS), "its values, in order"
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    request: int = record_field(UINT32, "number of the request")
    ok: int = record_field(FLAG, "1 = done")
    text: str = record_field(MESSAGE_TEXT, "why not, or what was done")


@dataclass(frozen=True, slots=True)
class MissionPart:
    """Waypoints that the pilot shall follow from now on instead of those before; a long mission comes in several parts."""

    number: int = record_field(WHICH, _MISSION)
    first: int = record_field(PLACE, _FIRST)
    count: int = record_field(SIZE, "waypoints of the whole mission")
    points: Sequence[float] = record_field(POINTS, _POINTS, "m, m/s")


EVENTS = TaggedUnion(
    "events",
    {
        EventKind.RECEPTION: Reception,
        EventKind.SENT: SignalSent,
        EventKind.REQUEST_REFUSED: RequestRefused,
        EventKind.RUN_STATE: RunStateChanged,
        EventKind.BODY: BodyChanged,
        EventKind.SIGNAL: SignalSeen,
        EventKind.FATE: FateSeen,
        EventKind.NOTICE: Notice,
        EventKind.ACTUATOR: ActuatorDescription,
        EventKind.SENSOR: SensorDescription,
        EventKind.ANSWER: Answer,
        EventKind.MISSION: MissionPart,
    },
)
AnyEvent = (
    Reception | SignalSent | RequestRefused | RunStateChanged | BodyChanged | SignalSeen | FateSeen | Notice
    | ActuatorDescription | SensorDescription | Answer | MissionPart
)  # fmt: skip

# ------------------------------------------------------------------------------------------------ requests

_AT = (Nullable(TIME), "when, by the node's clock; nil or past = now", "ns")
_LEVEL = (Nullable(DECIBEL), "source level; nil = the transducer's own", "dB re 1 uPa at 1 m")
_BODY = (NAME, "name of the body; empty = the own one")


@dataclass(frozen=True, slots=True)
class Ping:
    """Send a pulse."""

    frequency: float = record_field(HERTZ, "carrier", "Hz")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)
    code: int | None = record_field(Nullable(SIGNAL), "code; nil = its own", default=None)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a packet by modem."""

    to: int = record_field(ADDRESS, "modem address of the destination; 0 = all")
    payload: bytes = record_field(Bin(0, MAX_PAYLOAD), "payload")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)


@dataclass(frozen=True, slots=True)
class Range:
    """Ask the modem of an address to answer."""

    to: int = record_field(ADDRESS, "modem address of the one that shall answer")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)


@dataclass(frozen=True, slots=True)
class Observe:
    """What an observer wants to see."""

    period_ns: int = record_field(PERIOD, "wall time between FLEETs; 0 = none", "ns")
    bodies: Sequence[int] | None = record_field(
        Nullable(List(ROW, MAX_OBSERVED_ROWS)), "rows to be told of; nil = all", default=None
    )
    center: Sequence[float] | None = record_field(
        Nullable(POINT), "middle of the area of interest in W; nil = everywhere", "m", default=None
    )
    radius: float = record_field(Number(0.0, 1e12), "of that area", "m", default=1e12)
    sounds: int = record_field(FLAG, "1 = SIGNAL and FATE events too", default=0)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """What a session of a body wants to hear from now on."""

    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)), "names of the sensors to be told of; nil = all", default=None
    )
    acoustics: int = record_field(FLAG, "1 = RECEPTION events, please", default=1)
    effort: int = record_field(FLAG, "1 = forces and accelerations in the states, please", default=0)
    others: int = record_field(FLAG, "1 = BODY events of others that come and go, please", default=0)
    state_period_ns: int = record_field(PERIOD, "wall time between STATE messages; 0 = as it is", "ns", default=0)


@dataclass(frozen=True, slots=True)
class Control:
    """Right `control`: the simulation's timer."""

    verb: str = record_field(NAME, "start, pause, step, speed, stop or shutdown")
    value: float | None = record_field(
        Nullable(Number(0.0, 1e9)), "of step: ticks; of speed: simulated seconds per wall second, 0 = as fast as possible",
        default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """Right `fault`: something breaks, or is whole again."""

    body: str = record_field(*_BODY)
    part: str = record_field(NAME, "name of an actuator or a sensor")
    kind: str = record_field(NAME, "the fault, as in docs/CONFIG.md; `none` = whole again")
    amount: float = record_field(Number(-MAX_VALUE, MAX_VALUE), "where the fault has one", default=0.0)
    field: str = record_field(NAME, "field of a sensor; empty = all", default="")


@dataclass(frozen=True, slots=True)
class Push:
    """Right `push`: an external force until the next one."""

    body: str = record_field(*_BODY)
    force: Sequence[float] = record_field(Numbers(exact=3, low=-MAX_VALUE, high=MAX_VALUE), "in B", "N")
    torque: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_VALUE, high=MAX_VALUE), "in B", "N m", default=(0.0, 0.0, 0.0)
    )


@dataclass(frozen=True, slots=True)
class Pose:
    """Right `pose`: put the body elsewhere."""

    body: str = record_field(*_BODY)
    position: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=3, low=-1e6, high=1e6)), "in W; nil = as it is", "m", default=None
    )
    attitude: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=3, low=-1e6, high=1e6)), "roll, pitch, heading; nil = as it is", "rad", default=None
    )
    velocity: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=6, low=-1e3, high=1e3)), "over ground and angular, in B; nil = as it is", "m/s, rad/s",
        default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Allocate:
    """Right `allocate`: another allocation matrix."""

    body: str = record_field(*_BODY)
    matrix: Sequence[float] = record_field(
        Numbers(ALLOCATION_NUMBERS, low=-MAX_VALUE, high=MAX_VALUE),
        "6 rows of one number per thruster: force and torque in B per unit of thrust",
    )


@dataclass(frozen=True, slots=True)
class Weather:
    """Right `weather`: the sea and the wind from now on."""

    current_north: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "mean current; nil = as it is", "m/s", default=None
    )
    current_east: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "mean current; nil = as it is", "m/s", default=None
    )
    wind_speed: float | None = record_field(
        Nullable(Number(0.0, 200.0)), "mean wind; nil = as it is", "m/s", default=None
    )
    wind_direction: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "from which it blows; nil = as it is", "rad", default=None
    )
    wave_height: float | None = record_field(
        Nullable(Number(0.0, 100.0)), "significant wave height; nil = as it is", "m", default=None
    )
    wave_peak: float | None = record_field(
        Nullable(Number(0.0, 100.0)), "peak frequency; nil = as it is", "rad/s", default=None
    )
    wave_direction: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "to which they travel; nil = as it is", "rad", default=None
    )


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of imaging sonars from now on, instead of those that were asked for before."""

    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)), "names of sonars; nil = all of the body; an empty list = none", default=None
    )
    period_ns: int = record_field(
        PERIOD, "least wall time between two frames of a sonar; 0 = as they come", "ns", default=0
    )


@dataclass(frozen=True, slots=True)
class Mission:
    """Right `mission`: waypoints for the pilot of a body that takes missions; its parts follow each other."""

    body: str = record_field(*_BODY)
    number: int = record_field(WHICH, _MISSION)
    first: int = record_field(PLACE, _FIRST)
    count: int = record_field(SIZE, "waypoints of the whole mission")
    points: Sequence[float] = record_field(POINTS, _POINTS, "m, m/s")


@dataclass(frozen=True, slots=True)
class Missions:
    """A pilot says that missions may be sent to it, and what it does with them."""

    take: int = record_field(FLAG, "1 = MISSION events, please; 0 = no more")
    text: str = record_field(
        MESSAGE_TEXT, "for people, such as `takes 12 waypoints`; becomes a notice; empty = none", default=""
    )


REQUESTS = TaggedUnion(
    "requests",
    {
        Request.PING: Ping,
        Request.SEND: Send,
        Request.RANGE: Range,
        Request.OBSERVE: Observe,
        Request.SUBSCRIBE: Subscribe,
        Request.CONTROL: Control,
        Request.FAULT: Fault,
        Request.PUSH: Push,
        Request.POSE: Pose,
        Request.ALLOCATE: Allocate,
        Request.WEATHER: Weather,
        Request.FRAMES: Frames,
        Request.MISSION: Mission,
        Request.MISSIONS: Missions,
    },
)
AnyRequest = (
    Ping | Send | Range | Observe | Subscribe | Control | Fault | Push | Pose | Allocate | Weather | Frames | Mission
    | Missions
)  # fmt: skip
