"""The numbered items of EVENTS and REQUESTS. Each item is delivered once and in order; see docs/PROTOCOL.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from wavesim_sdk.tables import MAX_ACTUATORS, MAX_PAYLOAD, MAX_SIGNAL_S
from wavesim_sdk.wire.emulator_items import (
    ArrivalPart,
    Arrivals,
    Attach,
    Due,
    FramePart,
    Rows,
    Serve,
    TableDescription,
    Values,
    Written,
)
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
from wavesim_sdk.wire.schema import Bin, Int, List, Nullable, Number, Numbers, Struct, TaggedUnion, Text, record_field

ROW = Int(0, 2**31 - 1)
ADDRESS = Int(0, 2**31 - 1)
SIGNAL = Int(0, 2**63 - 1)
HERTZ = Number(0.0, 1e9)
DECIBEL = Number(-1e4, 1e4)
POINT = Numbers(exact=3, low=-1e12, high=1e12)
MAX_OBSERVED_ROWS = 512  #: maximum number of rows in one OBSERVE request
MAX_SENSOR_FIELDS = 32  #: maximum number of fields of one sensor
MAX_ITEM_WAYPOINTS = 24  #: maximum number of waypoints in one item; a longer mission requires several items
MAX_MISSION_WAYPOINTS = 4096
MAX_SNAPSHOT_NAME = 1000  #: maximum number of bytes in the name of a snapshot, or in the path of its file
MAX_SOUND_SAMPLES = 2**23  #: maximum number of samples of a sound
SOUND_PART_BYTES = 1120  #: maximum number of bytes of a sound in one item
MAX_ITEM_CORNERS = 48  #: maximum number of corners of a fence in a request
#: maximum size of an allocation matrix: six numbers for each of twelve thrusters, the most that fits into a datagram
ALLOCATION_NUMBERS = 6 * 12
WHICH, PLACE, SIZE = Int(1, 2**31 - 1), Int(0, MAX_MISSION_WAYPOINTS - 1), Int(1, MAX_MISSION_WAYPOINTS)
POINTS = Numbers(4 * MAX_ITEM_WAYPOINTS, low=-MAX_VALUE, high=MAX_VALUE)
_MISSION = "number of the mission, chosen by its sender; the same in all parts of the mission"
_FIRST = "index of the first waypoint of this part in the whole mission, from 0"
_POINTS = "four values for each waypoint: north, east and down in W, and speed"
_ACTION = "action: goto, loiter, return, pause, resume or abort"
_POINT = "target: north, east and down in W, and speed (0 = the vehicle's default cruise speed); nil = no target. `goto` needs a target"
COMMAND_POINT = Nullable(Numbers(exact=4, low=-MAX_VALUE, high=MAX_VALUE))
_KIND = "kind of the signal: 0 pulse, 1 data, 2 range request, 3 range reply, 4 sound"


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
    VEHICLE_COMMAND = 13
    TABLE = 14
    ROWS = 15
    DUE = 16
    DEVICE_FAULT = 17
    TIME_CHANGED = 18
    ARRIVALS = 19
    ARRIVAL_PART = 20
    CHANNEL_STATE = 21


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
    VEHICLE_COMMAND = 15
    COMMAND_ANSWER = 16
    ATTACH = 17
    SERVE = 18
    VALUES = 19
    WRITTEN = 20
    FRAME_PART = 21
    FENCE = 22
    SNAPSHOT = 23
    SOUND_PART = 24
    TRANSMIT = 25


class CommandResult(IntEnum):
    """Answers that a pilot gives to a vehicle command."""

    ACCEPTED = 0
    REFUSED = 1
    NOT_SUPPORTED = 2


# ------------------------------------------------------------------------------------------------ events


@dataclass(frozen=True, slots=True)
class Reception:
    """A signal that the body's transducer received, with the values that the instrument reports. Times are readings of
    the node's clock.
    """

    reception_ns: int = record_field(
        TIME, "time of arrival, as reported by the receiver according to its own clock", "ns"
    )
    id: int = record_field(SIGNAL, "number of the signal")
    query: int = record_field(SIGNAL, "number of the signal that this signal answers; 0 = none")
    kind: int = record_field(UINT8, _KIND)
    code: int = record_field(SIGNAL, "code of the signal; 0 = none")
    from_address: int = record_field(ADDRESS, "modem address of the sender; 0 = none")
    to_address: int = record_field(ADDRESS, "modem address of the destination; 0 = all")
    frequency: float = record_field(Number(), "frequency as received, with Doppler shift", "Hz")
    level: float = record_field(Number(), "received level", "dB re 1 uPa")
    snr: float = record_field(Number(), "level above the noise in the band", "dB")
    range: float | None = record_field(
        Nullable(Number()), "two-way range; only in a reply to the body's own query", "m", default=None
    )
    azimuth: float | None = record_field(
        Nullable(Number()),
        "azimuth of the arrival in B, from forward, positive to starboard; only from USBL heads",
        "rad",
        default=None,
    )
    elevation: float | None = record_field(
        Nullable(Number()), "elevation of the arrival in B, downwards from the horizontal plane", "rad", default=None
    )
    payload: bytes | None = record_field(Nullable(Bin(0, MAX_PAYLOAD)), "payload of a packet", default=None)


@dataclass(frozen=True, slots=True)
class SignalSent:
    """The body's own signal left the transducer. The time is a reading of the node's clock."""

    request: int = record_field(
        UINT32, "number of the request; 0 = the node sent the signal automatically or on behalf of another session"
    )
    id: int = record_field(SIGNAL, "number of the signal")
    emission_ns: int = record_field(TIME, "time of emission according to the node's clock", "ns")
    frequency: float = record_field(Number(), "carrier", "Hz")
    level: float = record_field(Number(), "source level", "dB re 1 uPa at 1 m")
    duration: float = record_field(Number(), "duration of the signal", "s")


@dataclass(frozen=True, slots=True)
class ChannelState:
    """The acoustic channel became busy or idle at the body's transducer. Only transducers with carrier sense report it."""

    time_ns: int = record_field(TIME, "time of the change according to the node's clock", "ns")
    busy: int = record_field(FLAG, "1 = the channel became busy; 0 = it became idle")


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The server refused a request."""

    request: int = record_field(UINT32, "number of the request")
    text: str = record_field(MESSAGE_TEXT, "reason")


@dataclass(frozen=True, slots=True)
class RunStateChanged:
    """The simulation clock was started, stopped or paused, or the simulation has ended."""

    run_state: int = record_field(UINT8, "new state of the simulation clock")
    time_ns: int = record_field(TIME, "simulation time", "ns")


@dataclass(frozen=True, slots=True)
class TimeChanged:
    """The simulation was reset or has returned to a snapshot. Ticks and times may therefore be lower than before."""

    time_ns: int = record_field(TIME, "simulation time from now on", "ns")
    before_ns: int = record_field(TIME, "simulation time before the change", "ns")


@dataclass(frozen=True, slots=True)
class BodyChanged:
    """A body was added, was already present, or was removed."""

    id: int = record_field(ROW, "row")
    present: int = record_field(FLAG, "1 = the body entered the simulation or was already in it; 0 = it left")
    type: int = record_field(UINT8, "type of the body: 0 surface, 1 underwater, 2 buoy, 3 aircraft")
    name: str = record_field(NAME, "name")
    model: str = record_field(NAME, "model")


@dataclass(frozen=True, slots=True)
class SignalSeen:
    """A node sent a signal. The event contains the true time and position, and is sent to observers."""

    id: int = record_field(SIGNAL, "number of the signal")
    source: int = record_field(ROW, "row of the sender")
    kind: int = record_field(UINT8, _KIND)
    emission_ns: int = record_field(TIME, "true time of emission", "ns")
    frequency: float = record_field(Number(), "carrier", "Hz")
    level: float = record_field(Number(), "source level", "dB re 1 uPa at 1 m")
    origin: Sequence[float] = record_field(Numbers(exact=3), "position of emission in W", "m")


@dataclass(frozen=True, slots=True)
class FateSeen:
    """The outcome of a signal at a node. The event is sent to observers."""

    id: int = record_field(SIGNAL, "number of the signal")
    source: int = record_field(ROW, "row of the sender")
    receiver: int = record_field(ROW, "row of the receiver")
    outcome: int = record_field(UINT8, "0 = received; other values: see the table of outcomes")
    arrival_ns: int = record_field(TIME, "true time of arrival", "ns")
    level: float | None = record_field(Nullable(Number()), "received level", "dB re 1 uPa")
    range: float | None = record_field(Nullable(Number()), "true length of the propagation path", "m")


@dataclass(frozen=True, slots=True)
class Notice:
    """A human-readable message from the server."""

    time_ns: int = record_field(TIME, "simulation time", "ns")
    text: str = record_field(MESSAGE_TEXT, "human-readable text of the notice, for example that the watchdog has acted")


@dataclass(frozen=True, slots=True)
class ActuatorDescription:
    """One actuator of the body."""

    number: int = record_field(Int(0, MAX_ACTUATORS - 1), "index of the actuator in `command` and `actuation`")
    name: str = record_field(NAME, "name")
    kind: int = record_field(
        UINT8, "kind of the actuator: 0 thruster, 1 fin, 2 thruster angle, 3 deflector, 4 ballast tank, 5 other"
    )
    unit: str = record_field(NAME, "unit of the actuator's commands and values: N, 1/s, rad or kg; empty = none")
    minimum: float = record_field(Number(), "minimum command of the actuator")
    maximum: float = record_field(Number(), "maximum command of the actuator")


@dataclass(frozen=True, slots=True)
class FieldDescription:
    """One field of a sensor."""

    name: str = record_field(NAME, "name")
    unit: str = record_field(NAME, "unit; empty = none")
    count: int = record_field(Int(1, 4096), "number of elements of the field")


@dataclass(frozen=True, slots=True)
class SensorDescription:
    """One sensor of the body."""

    number: int = record_field(Int(0, 2**31 - 1), "number by which states refer to the sensor")
    name: str = record_field(NAME, "name")
    type: str = record_field(NAME, "type")
    period_ns: int = record_field(PERIOD, "simulation time between two values of the sensor", "ns")
    fields: Sequence[FieldDescription] = record_field(
        List(Struct(FieldDescription), MAX_SENSOR_FIELDS), "fields of the sensor's values, in order"
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a request."""

    request: int = record_field(UINT32, "number of the request")
    ok: int = record_field(FLAG, "1 = done")
    text: str = record_field(MESSAGE_TEXT, "result of the request, or the reason why it failed")


@dataclass(frozen=True, slots=True)
class MissionPart:
    """Waypoints that replace the pilot's mission. A long mission is sent in several parts."""

    number: int = record_field(WHICH, _MISSION)
    first: int = record_field(PLACE, _FIRST)
    count: int = record_field(SIZE, "number of waypoints in the whole mission")
    points: Sequence[float] = record_field(POINTS, _POINTS, "m, m/s")


@dataclass(frozen=True, slots=True)
class CommandReceived:
    """A vehicle command for the pilot, which answers it with COMMAND_ANSWER."""

    number: int = record_field(UINT32, "number of the command, which the answer must repeat")
    action: str = record_field(NAME, _ACTION)
    point: Sequence[float] | None = record_field(COMMAND_POINT, _POINT, "m, m/s")


@dataclass(frozen=True, slots=True)
class DeviceFault:
    """A fault on the line between the device that this session serves and its hosts. It replaces the previous fault."""

    kind: str = record_field(NAME, "kind of the fault, as in docs/CONFIG.md; `none` = no fault")
    amount: float = record_field(
        Number(0.0, MAX_VALUE), "probability per byte (lost, garbled, doubled), or delay in s (late); otherwise 0"
    )


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
        EventKind.VEHICLE_COMMAND: CommandReceived,
        EventKind.TABLE: TableDescription,
        EventKind.ROWS: Rows,
        EventKind.DUE: Due,
        EventKind.DEVICE_FAULT: DeviceFault,
        EventKind.TIME_CHANGED: TimeChanged,
        EventKind.ARRIVALS: Arrivals,
        EventKind.ARRIVAL_PART: ArrivalPart,
        EventKind.CHANNEL_STATE: ChannelState,
    },
)
AnyEvent = (
    Reception
    | SignalSent
    | RequestRefused
    | RunStateChanged
    | BodyChanged
    | SignalSeen
    | FateSeen
    | Notice
    | ActuatorDescription
    | SensorDescription
    | Answer
    | MissionPart
    | CommandReceived
    | TableDescription
    | Rows
    | Due
    | DeviceFault
    | TimeChanged
    | Arrivals
    | ArrivalPart
    | ChannelState
)

# ------------------------------------------------------------------------------------------------ requests

_AT = (Nullable(TIME), "time of emission according to the node's clock; nil or a past time = now", "ns")
_LEVEL = (Nullable(DECIBEL), "source level; nil = the transducer's own", "dB re 1 uPa at 1 m")
_DURATION = (
    Nullable(Number(0.0, MAX_SIGNAL_S)),
    "duration of the signal; nil = from the transducer's settings",
    "s",
    True,
)
_BODY = (NAME, "name of the body; empty = the client's own body")


@dataclass(frozen=True, slots=True)
class Ping:
    """Request that the transducer send a pulse."""

    frequency: float = record_field(HERTZ, "carrier", "Hz")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)
    code: int | None = record_field(Nullable(SIGNAL), "code of the signal; nil = the transducer's own", default=None)
    duration: float | None = record_field(*_DURATION, default=None)


@dataclass(frozen=True, slots=True)
class Send:
    """Request that the modem send a packet."""

    to: int = record_field(ADDRESS, "modem address of the destination; 0 = all")
    payload: bytes = record_field(Bin(0, MAX_PAYLOAD), "payload")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)
    duration: float | None = record_field(*_DURATION, default=None)


@dataclass(frozen=True, slots=True)
class Range:
    """Request a reply from the modem with a given address, to measure the range to it."""

    to: int = record_field(ADDRESS, "address of the modem that must reply")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)
    payload: bytes = record_field(
        Bin(0, MAX_PAYLOAD),
        "payload of the request; a reply confirms that the modem has received the payload",
        "",
        True,
        default=b"",
    )
    duration: float | None = record_field(*_DURATION, default=None)


@dataclass(frozen=True, slots=True)
class SoundPart:
    """Part of the samples of a sound. The parts are sent in order, and TRANSMIT plays the sound."""

    sound: int = record_field(UINT32, "number of the sound, chosen by its sender; the same in all parts of the sound")
    first: int = record_field(Int(0, MAX_SOUND_SAMPLES - 1), "number of the first sample of this part, from 0")
    count: int = record_field(Int(1, MAX_SOUND_SAMPLES), "number of samples of the whole sound")
    data: bytes = record_field(Bin(4, SOUND_PART_BYTES), "samples: 32-bit floating-point values, little-endian")


@dataclass(frozen=True, slots=True)
class Transmit:
    """Request that the transducer play a sound, whose samples have been sent before."""

    sound: int = record_field(UINT32, "number of the sound, as in SOUND_PART")
    sampling_rate: float = record_field(Number(0.0, 1e9), "sampling rate", "Hz")
    level: float | None = record_field(*_LEVEL, default=None)
    at_ns: int | None = record_field(*_AT, default=None)
    is_peak: int = record_field(
        FLAG, "0 = `level` is the rms level of the sound; 1 = `level` is that of a sine between -1 and 1", default=0
    )


@dataclass(frozen=True, slots=True)
class Observe:
    """Select what an observer receives."""

    period_ns: int = record_field(PERIOD, "wall time between FLEET messages; 0 = no FLEET messages", "ns")
    bodies: Sequence[int] | None = record_field(
        Nullable(List(ROW, MAX_OBSERVED_ROWS)), "rows of the bodies to report; nil = all", default=None
    )
    center: Sequence[float] | None = record_field(
        Nullable(POINT), "centre of the area of interest in W; nil = everywhere", "m", default=None
    )
    radius: float = record_field(Number(0.0, 1e12), "radius of the area of interest", "m", default=1e12)
    sounds: int = record_field(FLAG, "1 = also send SIGNAL and FATE events", default=0)


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Select what a session of a body receives from now on."""

    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)), "names of the sensors to report; nil = all", default=None
    )
    acoustics: int = record_field(FLAG, "1 = send RECEPTION events", default=1)
    effort: int = record_field(FLAG, "1 = include forces and accelerations in the states", default=0)
    others: int = record_field(FLAG, "1 = send BODY events when other bodies enter or leave the simulation", default=0)
    state_period_ns: int = record_field(PERIOD, "wall time between STATE messages; 0 = unchanged", "ns", default=0)


@dataclass(frozen=True, slots=True)
class Control:
    """Control the simulation clock (requires the `control` right)."""

    verb: str = record_field(NAME, "verb: start, pause, step, speed, stop, reset, rewind or shutdown")
    value: float | None = record_field(
        Nullable(Number(0.0, 1e9)),
        "for step: number of ticks; for speed: simulated seconds per second of wall time, 0 = as fast as possible; for "
        "rewind: simulation time in s",
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Fault:
    """Set or clear a fault on an actuator, a sensor or a device (requires the `fault` right)."""

    body: str = record_field(*_BODY)
    part: str = record_field(NAME, "name of an actuator or a sensor, or `device:` followed by the name of a device")
    kind: str = record_field(NAME, "type of fault, as in docs/CONFIG.md; `none` clears the fault")
    amount: float = record_field(
        Number(-MAX_VALUE, MAX_VALUE), "magnitude of the fault, if its type has one", default=0.0
    )
    field: str = record_field(NAME, "field of a sensor; empty = all", default="")


@dataclass(frozen=True, slots=True)
class Push:
    """Apply an external force until the next PUSH, or for a limited time (requires the `push` right)."""

    body: str = record_field(*_BODY)
    force: Sequence[float] = record_field(Numbers(exact=3, low=-MAX_VALUE, high=MAX_VALUE), "force in B", "N")
    torque: Sequence[float] = record_field(
        Numbers(exact=3, low=-MAX_VALUE, high=MAX_VALUE), "moment in B", "N m", default=(0.0, 0.0, 0.0)
    )
    duration: float | None = record_field(
        Nullable(Number(0.0, MAX_VALUE)),
        "simulation time after which the force ends; nil = the force acts until the next PUSH",
        "s",
        True,
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Pose:
    """Set the pose and the velocity of a body (requires the `pose` right)."""

    body: str = record_field(*_BODY)
    position: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=3, low=-1e6, high=1e6)), "position in W; nil = unchanged", "m", default=None
    )
    attitude: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=3, low=-1e6, high=1e6)), "roll, pitch, heading; nil = unchanged", "rad", default=None
    )
    velocity: Sequence[float] | None = record_field(
        Nullable(Numbers(exact=6, low=-1e3, high=1e3)),
        "velocity over ground and angular velocity, in B; nil = unchanged",
        "m/s, rad/s",
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Allocate:
    """Replace the allocation matrix of a body (requires the `allocate` right)."""

    body: str = record_field(*_BODY)
    matrix: Sequence[float] = record_field(
        Numbers(ALLOCATION_NUMBERS, low=-MAX_VALUE, high=MAX_VALUE),
        "six rows (X, Y, Z, K, M, N), each with one value per thruster: force and moment in B per unit of thrust",
    )


@dataclass(frozen=True, slots=True)
class Weather:
    """Change the current, wind and waves (requires the `weather` right)."""

    current_north: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "mean current to the north; nil = unchanged", "m/s", default=None
    )
    current_east: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "mean current to the east; nil = unchanged", "m/s", default=None
    )
    wind_speed: float | None = record_field(
        Nullable(Number(0.0, 200.0)), "mean wind speed; nil = unchanged", "m/s", default=None
    )
    wind_direction: float | None = record_field(
        Nullable(Number(-100.0, 100.0)), "direction from which the wind blows; nil = unchanged", "rad", default=None
    )
    wave_height: float | None = record_field(
        Nullable(Number(0.0, 100.0)), "significant wave height; nil = unchanged", "m", default=None
    )
    wave_peak: float | None = record_field(
        Nullable(Number(0.0, 100.0)), "peak frequency of the waves; nil = unchanged", "rad/s", default=None
    )
    wave_direction: float | None = record_field(
        Nullable(Number(-100.0, 100.0)),
        "direction towards which the waves travel; nil = unchanged",
        "rad",
        default=None,
    )
    current_down: float | None = record_field(
        Nullable(Number(-100.0, 100.0)),
        "vertical component of the mean current, positive down; nil = unchanged",
        "m/s",
        default=None,
    )


@dataclass(frozen=True, slots=True)
class Frames:
    """Select the imaging sonars whose frames are sent. The selection replaces the earlier one."""

    sensors: Sequence[str] | None = record_field(
        Nullable(List(NAME, MAX_SENSORS)),
        "names of the sonars; nil = every sonar of the body; an empty list = none",
        default=None,
    )
    period_ns: int = record_field(
        PERIOD, "minimum wall time between two frames of a sonar; 0 = no limit", "ns", default=0
    )


@dataclass(frozen=True, slots=True)
class Mission:
    """Send waypoints to the pilot of a body that accepts missions (requires the `mission` right). The parts must be
    sent in order.
    """

    body: str = record_field(*_BODY)
    number: int = record_field(WHICH, _MISSION)
    first: int = record_field(PLACE, _FIRST)
    count: int = record_field(SIZE, "number of waypoints in the whole mission")
    points: Sequence[float] = record_field(POINTS, _POINTS, "m, m/s")


@dataclass(frozen=True, slots=True)
class Missions:
    """Announce whether a pilot accepts missions, and what it does with them."""

    take: int = record_field(FLAG, "1 = send MISSION events; 0 = stop sending them")
    text: str = record_field(
        MESSAGE_TEXT, "human-readable text, such as `accepts 12 waypoints`; sent as a notice; empty = none", default=""
    )


@dataclass(frozen=True, slots=True)
class VehicleCommand:
    """Send a vehicle command to the pilot of a body (requires the `mission` right). ANSWER contains the pilot's answer."""

    body: str = record_field(*_BODY)
    action: str = record_field(NAME, _ACTION)
    point: Sequence[float] | None = record_field(COMMAND_POINT, _POINT, "m, m/s", default=None)


@dataclass(frozen=True, slots=True)
class Fence:
    """Add a fence, or replace the fence with this name (requires the `fence` right). If `corners` is empty, remove the
    fence.
    """

    name: str = record_field(NAME, "name of the fence")
    keep: str = record_field(NAME, "side on which bodies must stay: inside or outside", default="inside")
    corners: Sequence[float] = record_field(
        Numbers(2 * MAX_ITEM_CORNERS, low=-1e6, high=1e6),
        "north and east coordinates of each corner in W, in order around the area; empty = remove the fence",
        "m",
        default=(),
    )


@dataclass(frozen=True, slots=True)
class SnapshotAction:
    """Save the complete state of the simulation in the server's memory, or return to it (requires the `control`
    right).
    """

    action: str = record_field(NAME, "action: save, restore or remove")
    name: str = record_field(Text(MAX_SNAPSHOT_NAME), "name of the snapshot: 1 to 32 letters, digits, `-`, `_` or `.`")


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    """A pilot's answer to a vehicle command."""

    number: int = record_field(UINT32, "number of the command, as in the VEHICLE_COMMAND event")
    result: int = record_field(Int(0, 2), "0 accepted, 1 refused, 2 not supported")
    text: str = record_field(MESSAGE_TEXT, "human-readable text: what the vehicle does, or the reason for the refusal")


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
        Request.VEHICLE_COMMAND: VehicleCommand,
        Request.COMMAND_ANSWER: CommandAnswer,
        Request.ATTACH: Attach,
        Request.SERVE: Serve,
        Request.VALUES: Values,
        Request.WRITTEN: Written,
        Request.FRAME_PART: FramePart,
        Request.FENCE: Fence,
        Request.SNAPSHOT: SnapshotAction,
        Request.SOUND_PART: SoundPart,
        Request.TRANSMIT: Transmit,
    },
)
AnyRequest = (
    Ping
    | Send
    | Range
    | Observe
    | Subscribe
    | Control
    | Fault
    | Push
    | Pose
    | Allocate
    | Weather
    | Frames
    | Mission
    | Missions
    | VehicleCommand
    | CommandAnswer
    | Attach
    | Serve
    | Values
    | Written
    | FramePart
    | Fence
    | SnapshotAction
    | SoundPart
    | Transmit
)
