"""Protocol between the viewer's server and its page: every JSON message on the websocket, and every JSON answer to an
HTTP request.

This module is the only declaration. The Python modules build these types under mypy, and ``python docs/generate.py``
writes the TypeScript side, ``viz/web/src/page_protocol.ts``. Vectors are in the frames W and B, in SI units unless a
field names its unit; NaN and infinities are sent as null. Binary messages are described in ``frame.py`` (states at one
moment) and ``image_streams.py`` (images, whose header is an :class:`ImageHeader`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

#: numbers of which some may be missing; three numbers
Numbers = list[float | None]
Vector = tuple[float, ...]
HullKind = Literal["box", "cylinder", "sphere"]
ActuatorKindName = Literal["thruster", "fin", "angle", "deflector", "ballast", "other"]
ImageKind = Literal["forward", "sidescan", "scanning", "bathymetry", "camera"]

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
    appearance: Annotated[str, "glTF file; empty: draw the shape"]
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
    mean: NotRequired[Annotated[float, "of a log: mean depth of all soundings, m"]]


class FenceInfo(TypedDict):
    """Polygon that bodies must not leave or enter."""

    name: str
    keep: str
    corners: Annotated[list[tuple[float, float]], "north and east of each corner"]


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


class SoundInfo(TypedDict):
    """Sound speed (m/s) and level of ambient noise (dB)."""

    speed: float
    noise: float


class Scene(TypedDict):
    """Static scene: sea bed, obstacles, models and missions."""

    name: str
    file: Annotated[str, "configuration or log that it comes from; empty: unknown"]
    origin: Annotated[tuple[float, float] | None, "latitude and longitude, degrees"]
    sound: SoundInfo
    bed: BedGrid | None
    boxes: list[list[float]]
    piers: Annotated[list[list[float]], "position (3), radius and height of each pier"]
    triangles: Annotated[list[float], "three corners of each triangle, one after the other"]
    waves: Annotated[float | None, "significant wave height; null: unknown"]
    fences: list[FenceInfo]
    bodies: list[PlannedBody]
    models: dict[str, ModelInfo]
    warning: NotRequired[str]


# -- bodies --------------------------------------------------------------------------------------------------------


class RosterEntry(NamedTuple):
    """Body that is present."""

    row: int
    name: str
    model: str
    type: str
    generation: int


class ActuatorInfo(TypedDict):
    """Actuator, with limits in the unit of its values."""

    name: str
    kind: ActuatorKindName
    unit: Annotated[str, "SI unit; empty: a fraction"]
    minimum: float
    maximum: float
    rest: float
    part: Annotated[int, "number of the thruster, fin or tank that it moves"]
    faults: list[str]


class BeamInfo(TypedDict):
    """Beams of an instrument in B."""

    field: Annotated[str, "field of the instrument's value that holds the ranges"]
    maximum: float
    rays: Annotated[list[float], "start and unit vector of each beam, one after the other"]
    level: Annotated[bool, "the vectors are in W instead"]
    turning: Annotated[bool, "the value `angle` rotates the beam about `axis`"]
    axis: list[float]


class FieldInfo(TypedDict):
    """Field of an instrument's value."""

    name: str
    unit: str
    count: int
    doc: str
    labels: Annotated[list[str] | None, "name of each of its numbers, if they have names"]
    units: Annotated[list[str] | None, "unit of each of its numbers, if the units differ"]


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


FieldValue = float | list[float | None] | None


class SensorValue(TypedDict):
    """Newest value of an instrument."""

    valid: bool
    age: Annotated[float | None, "s of simulation time; null: no value yet"]
    fault: Annotated[str, "injected fault; empty: none"]
    fields: dict[str, FieldValue]


class SessionInfo(TypedDict):
    """Session of a client on board a body."""

    row: NotRequired[int]
    role: str
    address: str
    status: str
    silent: Annotated[float | None, "s since its last datagram"]
    rtt_ms: float | None
    lockstep_ms: float
    datagrams: Annotated[tuple[int, int], "received from it and sent to it"]


class Effort(TypedDict):
    """Force (N) and moment (N m) on a body about its origin, in B: three numbers each, by component."""

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
    """Current data of one body. A source omits the parts that it never knows."""

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
    """Other vessel, with the closest point of approach if both vessels keep course and speed."""

    row: int
    range: Annotated[float, "m"]
    bearing: Annotated[float, "rad"]
    course: Annotated[float, "rad"]
    speed: Annotated[float, "m/s"]
    dcpa: Annotated[float, "distance at the closest point of approach, m"]
    tcpa: Annotated[float, "time until the closest point of approach, s"]
    role: Annotated[str, "own ship's role under the collision regulations"]
    own_at: Annotated[tuple[float, float], "position of own ship at that time, north and east"]
    other_at: tuple[float, float]


class Traffic(TypedDict):
    """Encounters of a surface vessel (`row`), with the radii of its domain in m."""

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
    level: float | None
    range: Annotated[float | None, "distance derived from the travel time, m"]
    distance: Annotated[float | None, "true distance, m"]
    measured: Annotated[float | None, "two-way range as the node measures it, m"]
    one_way: Annotated[float | None, "one-way range as the node measures it, m"]
    duration: float
    azimuth: Annotated[float | None, "as measured, rad"]
    elevation: Annotated[float | None, "as measured, rad"]
    time: Annotated[float, "time of arrival, s"]
    emission: float | None
    at: tuple[float, float, float] | None
    bounces: int


class Notice(TypedDict):
    """Text that the server has published about a body; `row` is -1 if it is unknown."""

    time: float
    row: int
    name: str
    text: str


class SignalEvents(TypedDict):
    """Signals, receptions and notices."""

    sent: list[SentSignal]
    receptions: list[SignalReception]
    notices: list[Notice]
    missed: Annotated[int, "number of events that are not listed because there were too many"]
    anew: NotRequired[Annotated[bool, "these replace all earlier ones"]]


class TrackPoints(TypedDict):
    """Track of a body and of its navigator's estimates: times, and three numbers per point."""

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


@dataclass
class Alarm:
    """Abnormal condition of a body, with its start and end in s of simulation time."""

    id: int
    kind: str
    name: str
    row: int
    text: str
    since: float
    until: Annotated[float | None, "time at which the condition ended; null: still active"] = None
    seen: bool = False


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


class WeatherReport(TypedDict):
    """Weather and clients of a simulation."""

    weather: Weather | None
    clients: list[SessionInfo]
    connected: Annotated[int | None, "number of clients; null: unknown"]
    replay: NotRequired[ReplayClock]


@dataclass(frozen=True)
class TilesetInfo:
    """Description of a raster chart."""

    name: str
    attribution: str
    least: Annotated[int, "minimum zoom level of the tiles"]
    most: int


# -- messages to a page --------------------------------------------------------------------------------------------


class HelloMessage(TypedDict):
    """First message: the source, and what the page may do."""

    type: Literal["hello"]
    kind: Annotated[str, "live, replay, remote, or none: only the configurator is served"]
    name: str
    period: Annotated[float, "interval between two frames, s"]
    version: str
    control: Annotated[bool, "may start, seek and so on"]
    write: Annotated[bool, "may also save files and run programs"]
    tiles: TilesetInfo | None
    chart: bool


class SceneMessage(TypedDict):
    """Static scene."""

    type: Literal["scene"]
    scene: Scene


class RosterMessage(TypedDict):
    """Bodies that are present."""

    type: Literal["roster"]
    bodies: list[RosterEntry]


class SoundsMessage(SignalEvents):
    """New signals, receptions and notices."""

    type: Literal["sounds"]


class MarksMessage(TypedDict):
    """Events for the time slider."""

    type: Literal["marks"]
    marks: list[TimeMark]


class TracksMessage(TypedDict):
    """Tracks so far, by row; `whole`: of a log from its start to its end."""

    type: Literal["tracks"]
    whole: bool
    bodies: dict[str, TrackPoints]


class AlarmsMessage(TypedDict):
    """All alarms, newest last."""

    type: Literal["alarms"]
    alarms: list[Alarm]


class EstimatesMessage(TypedDict):
    """Estimates of navigators: row, north, east, down and three standard deviations of each."""

    type: Literal["beliefs"]
    bodies: list[Numbers]


class WeatherMessage(WeatherReport):
    """Weather and clients."""

    type: Literal["weather"]


class SeaMessage(TypedDict):
    """Wave components (`sea_surface.py`); null: unknown."""

    type: Literal["sea"]
    components: list[list[float]] | None


class CablesMessage(TypedDict):
    """Current tethers, moorings and tow cables."""

    type: Literal["cables"]
    cables: list[CableInfo]


class TrafficMessage(TypedDict):
    """Encounters of the body that the page watches; null: it is not a surface vessel."""

    type: Literal["traffic"]
    row: int
    traffic: Traffic | None


class EquipmentMessage(TypedDict):
    """Equipment of the body that the page watches; null: the body is not present."""

    type: Literal["kit"]
    row: int
    kit: BodyEquipment | None


class PanelMessage(TypedDict):
    """Current data of the body that the page watches; null: the body is not present."""

    type: Literal["panel"]
    row: int
    panel: BodyPanel | None


class ImageMessage(TypedDict):
    """State of a sonar or camera that the page shows; the images shown belong to this epoch."""

    type: Literal["picture"]
    row: int
    name: str
    trouble: Annotated[str, "reason why there is no image; empty: none"]
    epoch: int


class SourceErrorMessage(TypedDict):
    """Reason why the source has no data; empty: it has data."""

    type: Literal["trouble"]
    text: str


class ErrorsMessage(TypedDict):
    """Errors of the viewer's server: number of all errors so far, and the last error of each part that fails."""

    type: Literal["mishaps"]
    total: int
    parts: dict[str, str]


class ReplyMessage(TypedDict):
    """Result of a request of this page."""

    type: Literal["reply"]
    ok: bool
    text: str


ServerMessage = (
    HelloMessage
    | SceneMessage
    | RosterMessage
    | SoundsMessage
    | MarksMessage
    | TracksMessage
    | AlarmsMessage
    | EstimatesMessage
    | WeatherMessage
    | SeaMessage
    | CablesMessage
    | TrafficMessage
    | EquipmentMessage
    | PanelMessage
    | ImageMessage
    | SourceErrorMessage
    | ErrorsMessage
    | ReplyMessage
)


class ImageHeader(TypedDict):
    """Header of a binary image."""

    row: int
    body: str
    name: str
    preset: str
    kind: ImageKind
    epoch: Annotated[int, "a new epoch voids all earlier images"]
    number: int
    time: float
    beams: int
    bins: int
    saturated: int
    heading: Annotated[float, "degrees"]
    at: Annotated[Numbers, "position of the instrument in W"]
    range: float
    sector: float
    azimuth: float
    tilt: float
    frequency: float
    altitude: Annotated[float | None, "height of the instrument above the bed; null: unknown"]
    gain: float
    tvg: float
    hold: float | None
    absorption: float
    floor: float
    span: float


# -- requests of a page, with the word that selects each of them ("do") ----------------------------------------------


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Request the data of one body; None: request no data."""

    row: int | None


@dataclass(frozen=True, slots=True)
class PicturesRequest:
    """Request the frames of exactly these sonars; each is given as (row, name)."""

    sonars: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """Control the simulation or the replay: start, stop, seek and other verbs."""

    verb: str
    value: float | None


@dataclass(frozen=True, slots=True)
class FaultRequest:
    """Inject a fault into a part of a body."""

    row: int
    part: str
    kind: str
    amount: str
    field: str


@dataclass(frozen=True, slots=True)
class AcknowledgeRequest:
    """Acknowledge an alarm; None acknowledges all."""

    alarm: int | None


@dataclass(frozen=True, slots=True)
class CommanderRequest:
    """Commander verb with its values: apply a force, move a body, change the weather, or send a mission. ``row`` is
    None if the verb does not concern a body.
    """

    verb: str
    row: int | None
    values: dict[str, float | list[float]]


@dataclass(frozen=True, slots=True)
class DriveRequest:
    """Drive a body from a page. The values are fractions of the actuators' ranges, -1 to 1; None: leave the body."""

    body: str
    shares: tuple[float | None, ...] | None


PageRequest = (
    WatchRequest
    | PicturesRequest
    | ControlRequest
    | FaultRequest
    | AcknowledgeRequest
    | CommanderRequest
    | DriveRequest
)
#: value of the key "do" in each request
VERBS: dict[type, str] = {
    WatchRequest: "watch",
    PicturesRequest: "pictures",
    ControlRequest: "control",
    FaultRequest: "fault",
    AcknowledgeRequest: "acknowledge",
    CommanderRequest: "order",
    DriveRequest: "drive",
}

# -- answers to HTTP requests ----------------------------------------------------------------------------------------


class ErrorAnswer(TypedDict):
    """Reason why a request failed, in an answer with an error status."""

    error: str


class ChartData(TypedDict):
    """/series: lines of a chart at common times."""

    time: list[float]
    values: list[Numbers]


class ChartArea(TypedDict):
    """Area of an electronic chart: S-57 class, minimum depth, and rings of latitude and longitude."""

    kind: str
    depth: float | None
    rings: list[list[float]]


class ChartLine(TypedDict):
    """Line of an electronic chart: S-57 class, depth, and a path of latitude and longitude."""

    kind: str
    depth: float | None
    path: list[float]


class ChartMark(TypedDict):
    """Buoy, beacon, wreck or other mark of an electronic chart, at latitude and longitude."""

    kind: str
    name: str
    at: tuple[float, float]


class ChartContent(TypedDict):
    """/chart: the user's electronic chart."""

    name: str
    areas: list[ChartArea]
    lines: list[ChartLine]
    soundings: Annotated[list[float], "latitude, longitude and depth of each sounding, one after the other"]
    marks: list[ChartMark]


class XmlTree(TypedDict):
    """/api/model: an XML element of a model, with the elements in it."""

    tag: str
    attributes: dict[str, str]
    text: str
    children: list[XmlTree]


class AttributeRule(TypedDict):
    """Permitted attribute of an element."""

    name: str
    kind: str
    doc: str
    units: list[str]
    count: int
    required: bool
    default: str | None
    low: str | None
    high: str | None
    choices: list[str]


class ChildRule(TypedDict):
    """Permitted element in an element; `of` names its rules."""

    name: str
    of: str
    many: bool
    required: bool
    doc: str


class ElementRule(TypedDict):
    """/api/schema: permitted content of an element, by name of the rules."""

    doc: str
    keys: list[AttributeRule]
    children: list[ChildRule]


class ModelEntry(TypedDict):
    """/api/models: a model that can be opened."""

    name: str
    title: str
    type: str
    file: str


class VehicleEntry(TypedDict):
    """/api/vehicles: a body whose own instruments can be edited."""

    file: str
    name: str
    model: str


class ModelCheck(TypedDict):
    """/api/check and /api/fit: result of a check, and the drawing if the model can be simulated."""

    ok: bool
    error: NotRequired[str]
    look: NotRequired[ModelInfo]
    instruments: NotRequired[list[InstrumentInfo]]
    given: NotRequired[Annotated[list[str], "inherited instruments"]]


class VehicleInstruments(TypedDict):
    """/api/vehicle: instruments of a body of a configuration, and the drawing of its model."""

    file: str
    sensors: XmlTree | None
    look: ModelInfo
    instruments: list[InstrumentInfo]
    given: Annotated[list[str], "inherited instruments"]


class SimulatedMotion(TypedDict):
    """/api/test: motion of a simulated model, one column per quantity."""

    commands: dict[str, float]
    columns: dict[str, list[float]]


class SavedFile(TypedDict):
    """/api/mount: the file written."""

    file: str


class SavedModel(SavedFile):
    """/api/save: the file written, and a configuration that simulates the model."""

    trial: str


class SavedMission(SavedFile):
    """/api/mission: the file written, and warnings about waypoints."""

    warnings: list[str]
