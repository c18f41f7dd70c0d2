"""What EVENTS and REQUESTS carry: numbered items, each delivered once and in order; see docs/PROTOCOL.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD
from wavesim_sdk.wire.messages import (
    CODE,
    COUNT,
    FLAG,
    GREAT,
    MOST_SENSORS,
    NAME,
    PERIOD,
    SAYING,
    TIME,
)
from wavesim_sdk.wire.schema import Bin, Family, Int, List, Maybe, Number, Numbers, Struct, item

ROW = Int(0, 2**31 - 1)
ADDRESS = Int(0, 2**31 - 1)
SIGNAL = Int(0, 2**63 - 1)
HERTZ = Number(0.0, 1e9)
DECIBEL = Number(-1e4, 1e4)
POINT = Numbers(exact=3, low=-1e12, high=1e12)
MOST_ROWS = 512  #: an observer names
MOST_FIELDS = 32  #: of a sensor
MOST_WAYPOINTS = 24  #: in one item; more come in several
MOST_IN_MISSION = 4096
ALLOCATION_NUMBERS = 6 * 12  #: as many as fit a datagram: six for each thruster
WHICH, PLACE, SIZE = Int(1, 2**31 - 1), Int(0, MOST_IN_MISSION - 1), Int(1, MOST_IN_MISSION)
POINTS = Numbers(4 * MOST_WAYPOINTS, low=-GREAT, high=GREAT)
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

    reception_ns: int = item(TIME, "time of arrival by the node's clock, as its instrument reports it", "ns")
    id: int = item(SIGNAL, "number of the signal")
    query: int = item(SIGNAL, "number of the signal that it answers; 0 = none")
    kind: int = item(CODE, _KIND)
    code: int = item(SIGNAL, "code; 0 = none")
    from_address: int = item(ADDRESS, "modem address of the sender; 0 = none")
    to_address: int = item(ADDRESS, "modem address of the destination; 0 = all")
    frequency: float = item(Number(), "frequency as received, with Doppler shift", "Hz")
    level: float = item(Number(), "received level", "dB re 1 uPa")
    snr: float = item(Number(), "level over the noise in band", "dB")
    range: float | None = item(Maybe(Number()), "two-way range, of an answer to an own query", "m", default=None)
    azimuth: float | None = item(
        Maybe(Number()), "direction of arrival in B, from forward to starboard (USBL heads)", "rad", default=None
    )
    elevation: float | None = item(Maybe(Number()), "the same, down from the horizontal of B", "rad", default=None)
    payload: bytes | None = item(Maybe(Bin(0, MAX_PAYLOAD)), "payload of a packet", default=None)


@dataclass(frozen=True, slots=True)
class SignalSent:
    """The body's own signal left the transducer; the time by the node's own clock."""

    request: int = item(COUNT, "number of the request; 0 = the node sent by itself, or for another session")
    id: int = item(SIGNAL, "number that the signal got")
    emission_ns: int = item(TIME, "time of emission by the node's clock", "ns")
    frequency: float = item(Number(), "carrier", "Hz")
    level: float = item(Number(), "source level", "dB re 1 uPa at 1 m")
    duration: float = item(Number(), "length of the signal", "s")


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The server refused a request."""

    request: int = item(COUNT, "number of the request")
    text: str = item(SAYING, "why")


@dataclass(frozen=True, slots=True)
class RunStateChanged:
    """The simulation was started, stopped or paused, or has ended."""

    run_state: int = item(CODE, "new state of the simulation timer")
    time_ns: int = item(TIME, "when", "ns")


@dataclass(frozen=True, slots=True)
class BodyChanged:
    """A body came, was there, or left."""

    id: int = item(ROW, "row")
    present: int = item(FLAG, "1 = it came (or was there), 0 = it left")
    type: int = item(CODE, "0 surface, 1 underwater, 2 buoy")
    name: str = item(NAME, "name")
    model: str = item(NAME, "model")


@dataclass(frozen=True, slots=True)
class SignalSeen:
    """To an observer: somebody sent a signal; true time and place."""

    id: int = item(SIGNAL, "number of the signal")
    source: int = item(ROW, "row of the sender")
    kind: int = item(CODE, _KIND)
    emission_ns: int = item(TIME, "true time of emission", "ns")
    frequency: float = item(Number(), "carrier", "Hz")
    level: float = item(Number(), "source level", "dB re 1 uPa at 1 m")
    origin: Sequence[float] = item(Numbers(exact=3), "place of emission in W", "m")


@dataclass(frozen=True, slots=True)
class FateSeen:
    """To an observer: what became of a signal at a node."""

    id: int = item(SIGNAL, "number of the signal")
    source: int = item(ROW, "row of the sender")
    receiver: int = item(ROW, "row of the receiver")
    outcome: int = item(CODE, "0 heard, else why not: the table below")
    arrival_ns: int = item(TIME, "true time of arrival", "ns")
    level: float | None = item(Maybe(Number()), "received level", "dB re 1 uPa")
    range: float | None = item(Maybe(Number()), "true length of the path", "m")


@dataclass(frozen=True, slots=True)
class Notice:
    """The server did something that a person should know."""

    time_ns: int = item(TIME, "when", "ns")
    text: str = item(SAYING, "for people, such as what the watchdog did")


@dataclass(frozen=True, slots=True)
class ActuatorDescription:
    """One actuator of the body."""

    number: int = item(Int(0, MAX_ACTUATORS - 1), "its place in `command` and `actuation`")
    name: str = item(NAME, "name")
    kind: int = item(CODE, "0 thruster, 1 fin, 2 angle of a thruster, 3 deflector, 4 ballast tank, 5 of another type")
    unit: str = item(NAME, "unit of its commands and values: N, 1/s, rad, kg, or empty")
    minimum: float = item(Number(), "least command")
    maximum: float = item(Number(), "greatest command")


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """One field of a sensor."""

    name: str = item(NAME, "name")
    unit: str = item(NAME, "unit; empty = none")
    count: int = item(Int(1, 4096), "numbers in it")


@dataclass(frozen=True, slots=True)
class SensorDescription:
    """One sensor of the body."""

    number: int = item(Int(0, 2**31 - 1), "its number in states")
    name: str = item(NAME, "name")
    type: str = item(NAME, "type")
    period_ns: int = item(PERIOD, "simulation time between its values", "ns")
    fields: Sequence[FieldDescription] = item(List(Struct(FieldDescription), MOST_FIELDS), "its values, in order")


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a request."""

    request: int = item(COUNT, "number of the request")
    ok: int = item(FLAG, "1 = done")
    text: str = item(SAYING, "why not, or what was done")


@dataclass(frozen=True, slots=True)
class MissionPart:
    """Waypoints that the pilot shall follow from now on instead of those before; a long mission comes in several parts."""

    number: int = item(WHICH, _MISSION)
    first: int = item(PLACE, _FIRST)
    count: int = item(SIZE, "waypoints of the whole mission")
    points: Sequence[float] = item(POINTS, _POINTS, "m, m/s")


EVENTS = Family(
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

_AT = (Maybe(TIME), "when, by the node's clock; nil or past = now", "ns")
_LEVEL = (Maybe(DECIBEL), "source level; nil = the transducer's own", "dB re 1 uPa at 1 m")
_BODY = (NAME, "name of the body; empty = the own one")


@dataclass(frozen=True, slots=True)
class Ping:
    """Send a pulse."""

    frequency: float = item(HERTZ, "carrier", "Hz")
    level: float | None = item(*_LEVEL, default=None)
    at_ns: int | None = item(*_AT, default=None)
    code: int | None = item(Maybe(SIGNAL), "code; nil = its own", default=None)


@dataclass(frozen=True, slots=True)
class Send:
    """Send a packet by modem."""

    to: int = item(ADDRESS, "modem address of the destination; 0 = all")
    payload: bytes = item(Bin(0, MAX_PAYLOAD), "payload")
    level: float | None = item(*_LEVEL, default=None)
    at_ns: int | None = item(*_AT, default=None)


@dataclass(frozen=True, slots=True)
class Range:
    """Ask the modem of an address to answer."""

    to: int = item(ADDRESS, "modem address of the one that shall answer")
    level: float | None = item(*_LEVEL, default=None)
    at_ns: int | None = item(*_AT, default=None)


@dataclass(frozen=True, slots=True)
class Observe:
    """What an observer wants to see."""

    period_ns: int = item(PERIOD, "wall time between FLEETs; 0 = none", "ns")
    bodies: Sequence[int] | None = item(Maybe(List(ROW, MOST_ROWS)), "rows to be told of; nil = all", default=None)
    center: Sequence[float] | None = item(
        Maybe(POINT), "middle of the area of interest in W; nil = everywhere", "m", default=None
    )
    radius: float = item(Number(0.0, 1e12), "of that area", "m", default=1e12)
    sounds: int = item(FLAG, "1 = SIGNAL and FATE events too", default=0)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """What a session of a body wants to hear from now on."""

    sensors: Sequence[str] | None = item(
        Maybe(List(NAME, MOST_SENSORS)), "names of the sensors to be told of; nil = all", default=None
    )
    acoustics: int = item(FLAG, "1 = RECEPTION events, please", default=1)
    effort: int = item(FLAG, "1 = forces and accelerations in the states, please", default=0)
    others: int = item(FLAG, "1 = BODY events of others that come and go, please", default=0)
    state_period_ns: int = item(PERIOD, "wall time between STATE messages; 0 = as it is", "ns", default=0)


@dataclass(frozen=True, slots=True)
class Control:
    """Right `control`: the simulation's timer."""

    verb: str = item(NAME, "start, pause, step, speed, stop or shutdown")
    value: float | None = item(
        Maybe(Number(0.0, 1e9)), "of step: ticks; of speed: simulated seconds per wall second, 0 = as fast as possible",
        default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """Right `fault`: something breaks, or is whole again."""

    body: str = item(*_BODY)
    part: str = item(NAME, "name of an actuator or a sensor")
    kind: str = item(NAME, "the fault, as in docs/CONFIG.md; `none` = whole again")
    amount: float = item(Number(-GREAT, GREAT), "where the fault has one", default=0.0)
    field: str = item(NAME, "field of a sensor; empty = all", default="")


@dataclass(frozen=True, slots=True)
class Push:
    """Right `push`: an external force until the next one."""

    body: str = item(*_BODY)
    force: Sequence[float] = item(Numbers(exact=3, low=-GREAT, high=GREAT), "in B", "N")
    torque: Sequence[float] = item(Numbers(exact=3, low=-GREAT, high=GREAT), "in B", "N m", default=(0.0, 0.0, 0.0))


@dataclass(frozen=True, slots=True)
class Pose:
    """Right `pose`: put the body elsewhere."""

    body: str = item(*_BODY)
    position: Sequence[float] | None = item(
        Maybe(Numbers(exact=3, low=-1e6, high=1e6)), "in W; nil = as it is", "m", default=None
    )
    attitude: Sequence[float] | None = item(
        Maybe(Numbers(exact=3, low=-1e6, high=1e6)), "roll, pitch, heading; nil = as it is", "rad", default=None
    )
    velocity: Sequence[float] | None = item(
        Maybe(Numbers(exact=6, low=-1e3, high=1e3)), "over ground and angular, in B; nil = as it is", "m/s, rad/s",
        default=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Allocate:
    """Right `allocate`: another allocation matrix."""

    body: str = item(*_BODY)
    matrix: Sequence[float] = item(
        Numbers(ALLOCATION_NUMBERS, low=-GREAT, high=GREAT),
        "6 rows of one number per thruster: force and torque in B per unit of thrust",
    )


@dataclass(frozen=True, slots=True)
class Weather:
    """Right `weather`: the sea and the wind from now on."""

    current_north: float | None = item(
        Maybe(Number(-100.0, 100.0)), "mean current; nil = as it is", "m/s", default=None
    )
    current_east: float | None = item(Maybe(Number(-100.0, 100.0)), "mean current; nil = as it is", "m/s", default=None)
    wind_speed: float | None = item(Maybe(Number(0.0, 200.0)), "mean wind; nil = as it is", "m/s", default=None)
    wind_direction: float | None = item(
        Maybe(Number(-100.0, 100.0)), "from which it blows; nil = as it is", "rad", default=None
    )
    wave_height: float | None = item(
        Maybe(Number(0.0, 100.0)), "significant wave height; nil = as it is", "m", default=None
    )
    wave_peak: float | None = item(Maybe(Number(0.0, 100.0)), "peak frequency; nil = as it is", "rad/s", default=None)
    wave_direction: float | None = item(
        Maybe(Number(-100.0, 100.0)), "to which they travel; nil = as it is", "rad", default=None
    )


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of imaging sonars from now on, instead of those that were asked for before."""

    sensors: Sequence[str] | None = item(
        Maybe(List(NAME, MOST_SENSORS)), "names of sonars; nil = all of the body; an empty list = none", default=None
    )
    period_ns: int = item(PERIOD, "least wall time between two frames of a sonar; 0 = as they come", "ns", default=0)


@dataclass(frozen=True, slots=True)
class Mission:
    """Right `mission`: waypoints for the pilot of a body that takes missions; its parts follow each other."""

    body: str = item(*_BODY)
    number: int = item(WHICH, _MISSION)
    first: int = item(PLACE, _FIRST)
    count: int = item(SIZE, "waypoints of the whole mission")
    points: Sequence[float] = item(POINTS, _POINTS, "m, m/s")


@dataclass(frozen=True, slots=True)
class Missions:
    """A pilot says that missions may be sent to it, and what it does with them."""

    take: int = item(FLAG, "1 = MISSION events, please; 0 = no more")
    text: str = item(SAYING, "for people, such as `takes 12 waypoints`; becomes a notice; empty = none", default="")


REQUESTS = Family(
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
