"""Contents of the messages of :mod:`wavesim_viz.page_protocol`: scene, bodies, sound and events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

#: types: a list of numbers of which some may be missing, and a list of three numbers
Numbers = list[float | None]
Vector = tuple[float, ...]
HullKind = Literal["box", "cylinder", "sphere"]
ActuatorKindName = Literal["thruster", "fin", "angle", "deflector", "ballast", "other"]
ImageKind = Literal["forward", "sidescan", "scanning", "bathymetry", "camera", "3d", "lidar", "hydrophone"]

# -- scene ---------------------------------------------------------------------------------------------------------


class HullShape(TypedDict):
    """Shape of a hull."""

    kind: HullKind
    size: Annotated[tuple[float, float, float], "length, width and height, m"]


class ThrusterInfo(TypedDict):
    """Drawing of a thruster: position and direction of thrust in B."""

    name: str
    position: Vector
    direction: Vector
    swivel: bool
    deflector: bool


class FinInfo(TypedDict):
    """Drawing of a fin in B."""

    name: str
    position: Vector
    normal: Vector
    chord: Vector
    area: Annotated[float, "m2"]


class TankInfo(TypedDict):
    """Position of a ballast tank in B."""

    name: str
    position: Vector


class ModelInfo(TypedDict):
    """Drawing and description of a model."""

    name: str
    type: str
    title: str
    source: str
    validated: str
    shape: HullShape
    appearance: Annotated[str, "glTF file; if it is empty, the shape is drawn"]
    draw_parts: Annotated[bool, "draw thrusters and fins of which the glTF file has no node"]
    mass: Annotated[float | None, "kg"]
    thrusters: list[ThrusterInfo]
    fins: list[FinInfo]
    tanks: list[TankInfo]
    transducer: Vector | None


class BedGrid(TypedDict):
    """Depth of the sea bed on a grid; null outside the surveyed area."""

    north: list[float]
    east: list[float]
    depth: list[Numbers]
    mean: NotRequired[Annotated[float, "mean depth of all soundings in a log, m"]]


class FenceInfo(TypedDict):
    """Polygon that bodies must either stay inside or stay outside."""

    name: str
    keep: str
    corners: Annotated[list[tuple[float, float]], "north and east coordinates of each corner"]


class PlannedBody(TypedDict):
    """Body as the configuration declares it."""

    name: str
    model: str
    position: Vector
    attitude: Vector
    client: str
    buoy: bool
    waypoints: Annotated[list[tuple[float, float, float, float]], "north, east, depth and speed of each waypoint"]
    anchor: Vector | None
    transducer: Vector | None
    address: NotRequired[Annotated[int, "address of its modem"]]


class SoundInfo(TypedDict):
    """Sound speed (m/s) and level of ambient noise (dB)."""

    speed: float
    noise: float


class Scene(TypedDict):
    """Static scene: sea bed, obstacles, models and missions."""

    name: str
    file: Annotated[str, "configuration or log from which the scene comes; empty: unknown"]
    origin: Annotated[tuple[float, float] | None, "latitude and longitude, degrees"]
    sound: SoundInfo
    bed: Annotated[BedGrid | None, "null: there is no sea bed, or the bed is in the `details` message"]
    boxes: list[list[float]]
    piers: Annotated[list[list[float]], "position (3), radius and height of each pier"]
    triangles: Annotated[list[float], "three corners of each triangle, one after the other"]
    waves: Annotated[float | None, "significant wave height; null: unknown"]
    bodies: list[PlannedBody]
    models: dict[str, ModelInfo]
    takeover: NotRequired[Annotated[str, "whether a second pilot takes over: no, yes, or return (until it leaves)"]]
    warning: NotRequired[str]


# -- bodies --------------------------------------------------------------------------------------------------------


class RosterEntry(NamedTuple):
    """Body that is in the simulation."""

    row: int
    name: str
    model: str
    type: str
    generation: int


class ActuatorInfo(TypedDict):
    """Actuator. Its limits are in the unit of its values."""

    name: str
    kind: ActuatorKindName
    unit: Annotated[str, "SI unit; empty: a fraction"]
    minimum: float
    maximum: float
    rest: float
    part: Annotated[int, "number of the thruster, fin or tank that the actuator moves"]
    faults: list[str]


class BeamInfo(TypedDict):
    """Beams of an instrument in B."""

    field: Annotated[str, "field of the instrument's value that contains the ranges"]
    maximum: float
    rays: Annotated[list[float], "start and unit vector of each beam, one after the other"]
    level: Annotated[bool, "whether the vectors are in W instead of B"]
    turning: Annotated[bool, "whether the value `angle` rotates the beam about `axis`"]
    axis: list[float]


class FieldInfo(TypedDict):
    """Field of an instrument's value."""

    name: str
    unit: str
    count: int
    doc: str
    labels: Annotated[list[str] | None, "name of each component, if named"]
    units: Annotated[list[str] | None, "unit of each component, if the units differ"]


class InstrumentInfo(TypedDict):
    """Instrument: its fields, mount and beams."""

    name: str
    type: str
    doc: str
    period: Annotated[float | None, "s; null: unknown"]
    fields: list[FieldInfo]
    position: list[float] | None
    beams: BeamInfo | None
    faults: list[str]


class BodyEquipment(TypedDict):
    """Equipment of a body. It changes only when another body occupies the row."""

    row: int
    generation: int
    actuators: list[ActuatorInfo]
    sensors: list[InstrumentInfo]


class BodyMotion(TypedDict):
    """Pose and velocities of a body."""

    position: Numbers
    euler: Annotated[Numbers, "roll, pitch and yaw, degrees"]
    velocity: Numbers
    rates: Annotated[Numbers, "degrees/s"]
    water: Annotated[Numbers | None, "velocity through the water; null: unknown"]


class Actuation(TypedDict):
    """Commands and values of the actuators, in the order of the equipment."""

    command: Numbers
    actual: Numbers
    feedback: Numbers
    turns: Annotated[Numbers, "fraction of a turn at which the propeller of each thruster is drawn"]
    turn_rates: Annotated[Numbers, "drawn rate of each propeller, 1/s of simulation time"]
    faults: NotRequired[Annotated[dict[str, str], "faults, by actuator"]]


FieldValue = float | list[float | None] | None


class SensorValue(TypedDict):
    """Newest value from an instrument."""

    valid: bool
    age: Annotated[float | None, "simulation time in s; null: no value yet"]
    fault: Annotated[str, "injected fault; empty: none"]
    fields: dict[str, FieldValue]


class SessionInfo(TypedDict):
    """Session of a client on board a body."""

    row: NotRequired[int]
    role: str
    address: str
    status: str
    silent: Annotated[float | None, "time in s since the client's last datagram"]
    rtt_ms: float | None
    lockstep_ms: float
    datagrams: Annotated[tuple[int, int], "numbers of datagrams received from the client and sent to it"]
    device: Annotated[str, "name of the device that the client serves; empty: none"]
    device_fault: Annotated[str, "kind of the fault injected into the device; empty: none"]


class Effort(TypedDict):
    """Force (N) and moment (N m) on a body about its origin, by component. Each has three numbers, in B."""

    total: Numbers
    restoring: Numbers
    drag: Numbers
    actuators: Numbers
    environment: Numbers
    external: Numbers
    contact: Numbers


class Surroundings(TypedDict):
    """Flow, wind and water level at a body."""

    current_W: Numbers
    wind_W: Numbers
    level: float | None
    wave: float | None


class BodyPanel(TypedDict):
    """Current data of one body. A source omits the parts that it cannot provide."""

    row: int
    time: Annotated[float, "simulation time, s"]
    identity: dict[str, Any]
    geometry: NotRequired[dict[str, Any]]
    motion: BodyMotion
    actuation: NotRequired[Actuation | None]
    sensors: NotRequired[dict[str, SensorValue]]
    crew: NotRequired[list[SessionInfo]]
    note: NotRequired[Annotated[str, "reason why instrument values are missing"]]
    effort: NotRequired[Effort | None]
    surroundings: NotRequired[Surroundings | None]


class Encounter(TypedDict):
    """Another vessel, with the closest point of approach if both vessels keep their course and speed."""

    row: int
    range: Annotated[float, "m"]
    bearing: Annotated[float, "rad"]
    course: Annotated[float, "rad"]
    speed: Annotated[float, "m/s"]
    dcpa: Annotated[float, "distance at the closest point of approach, m"]
    tcpa: Annotated[float, "time until the closest point of approach, s"]
    role: Annotated[str, "own ship's role under the collision regulations"]
    own_at: Annotated[tuple[float, float], "position of own ship at the closest point of approach, north and east"]
    other_at: tuple[float, float]


class Traffic(TypedDict):
    """Encounters of a surface vessel (`row`) with other vessels, and the radii of its domain in m."""

    row: int
    time: float
    length: float
    least: float
    preferred: float
    others: list[Encounter]


class CableInfo(TypedDict):
    """Tether, mooring or tow cable."""

    name: str
    tension: Annotated[float | None, "maximum tension, N"]
    broken: Annotated[int, "number of the broken segment; -1: none"]
    points: Annotated[list[float], "nodes in W, one after the other"]


# -- sound and events ----------------------------------------------------------------------------------------------


class SentSignal(TypedDict):
    """Signal that a node has sent, or could not send."""

    id: int
    source: int
    query: int
    kind: int
    outcome: int
    frequency: float
    source_level: float
    duration: float
    code: int
    from_address: Annotated[int, "modem address; 0: none"]
    to_address: Annotated[int, "modem address; 0: all"]
    payload: Annotated[int, "length of the payload in bytes"]
    time: float
    at: tuple[float, float, float] | None


class SignalReception(TypedDict):
    """Outcome of a signal at a receiver."""

    id: int
    source: int
    receiver: int
    query: int
    kind: int
    outcome: int
    to_address: Annotated[int, "modem address; 0: all"]
    level: float | None
    noise: Annotated[float | None, "noise in the band of the signal at the receiver, dB"]
    range: Annotated[float | None, "distance derived from the travel time, m"]
    distance: Annotated[float | None, "true distance, m"]
    measured: Annotated[float | None, "two-way range measured by the node, m"]
    one_way: Annotated[float | None, "one-way range measured by the node, m"]
    duration: float
    azimuth: Annotated[float | None, "as measured, rad"]
    elevation: Annotated[float | None, "as measured, rad"]
    time: Annotated[float, "time of arrival, s"]
    emission: float | None
    at: tuple[float, float, float] | None
    bounces: int


class Notice(TypedDict):
    """Text that the server has published about a body; `row` is -1 if the body is unknown."""

    time: float
    row: int
    name: str
    text: str


class SignalEvents(TypedDict):
    """Newest signals, receptions and notices."""

    sent: list[SentSignal]
    receptions: list[SignalReception]
    notices: list[Notice]
    missed: Annotated[int, "number of events that are not listed because there were too many"]
    anew: NotRequired[Annotated[bool, "whether the events in this message replace all earlier events"]]


class TrackPoints(TypedDict):
    """Track of a body and track of its navigator's estimates, each with times and with three numbers per point."""

    name: NotRequired[str]
    time: list[float]
    position: Numbers
    believed_time: list[float]
    believed: Numbers


class TimeMark(TypedDict):
    """Event in a log, marked on the time slider."""

    time: float
    kind: str
    text: str


Severity = Literal["high", "medium", "low"]


@dataclass
class Alarm:
    """Abnormal condition of a body, with the start and end of its newest occurrence in s of simulation time."""

    id: int
    kind: str
    severity: Severity
    name: str
    row: int
    text: str
    since: float
    until: Annotated[float | None, "time at which the condition ended; null: still active"] = None
    seen: bool = False
    count: Annotated[int, "number of occurrences"] = 1
    shelved: Annotated[float | None, "time until which the alarm is shelved; null: not shelved"] = None


class Weather(TypedDict):
    """Current, wind and water level of the simulation."""

    current_W: Numbers
    wind_speed: float | None
    wind_direction: float | None
    level: float | None
    wave_height: float | None
    wave_peak: float | None
    wave_direction: float | None


class ReplayClock(TypedDict):
    """Time span of a log, and how it is played."""

    start: float
    end: float
    playing: bool
    speed: float
    other: Annotated[str, "name of the log drawn for comparison; empty: none"]
    pages: NotRequired[Annotated[int, "number of pages that share this clock"]]


class WeatherReport(TypedDict):
    """Weather and clients of a simulation."""

    weather: Weather | None
    clients: list[SessionInfo]
    connected: Annotated[int | None, "number of clients; null: unknown"]
    log: NotRequired[Annotated[str, "state of the log: ok, off, or what is wrong with it; empty: unknown"]]
    replay: NotRequired[ReplayClock]
    snapshots: NotRequired[
        Annotated[list[float], "times of the automatic snapshots that the server holds, s; missing: unknown"]
    ]


class MissionState(TypedDict):
    """Activity of a vehicle, as its program reports it."""

    mode: str
    waypoint: Annotated[int, "number of the current waypoint, from 1; 0: none"]
    count: Annotated[int, "number of waypoints in the mission; 0: none"]
    target: Annotated[list[float] | None, "position (north, east) in W to which the vehicle is going; null: none"]


class FleetStatus(TypedDict):
    """Battery and mission of the vehicles, by row. A vehicle without an entry has no such value."""

    charges: Annotated[dict[str, float], "battery charge, as a fraction of the capacity"]
    missions: dict[str, MissionState]


@dataclass(frozen=True)
class TilesetInfo:
    """Description of a raster chart."""

    name: str
    attribution: str
    least: Annotated[int, "minimum zoom level of the tiles"]
    most: int
