"""Protocol between the viewer's server and its page: every JSON message on the websocket, and every JSON answer to an
HTTP request.

This module, ``page_content.py`` and ``page_acoustics.py`` are the only declaration of these messages. mypy checks the
Python modules that build them, and ``python docs/generate.py`` writes the TypeScript side,
``viz/web/src/page_protocol.ts``. Vectors are in the frames W and B, in SI units unless a field names its unit; NaN and
infinities are sent as null. Binary messages are described in ``frame.py`` (states at one moment) and
``image_streams.py`` (images, whose header is an :class:`ImageHeader`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

from wavesim_viz.page_content import (
    Alarm,
    BedGrid,
    BodyEquipment,
    BodyPanel,
    CableInfo,
    FenceInfo,
    FleetStatus,
    ImageKind,
    InstrumentInfo,
    ModelInfo,
    Numbers,
    RosterEntry,
    Scene,
    SignalEvents,
    TilesetInfo,
    TimeMark,
    TrackPoints,
    Traffic,
    WeatherReport,
)

# -- messages to a page --------------------------------------------------------------------------------------------


class HelloMessage(TypedDict):
    """First message: the source, and what the page may do."""

    type: Literal["hello"]
    kind: Annotated[str, "live, replay or remote; none = only the configurator is served"]
    name: str
    period: Annotated[float, "interval between two frames, s"]
    version: str
    control: Annotated[bool, "whether this page may start, pause and seek"]
    write: Annotated[bool, "whether this page may also save files and run programs"]
    tiles: TilesetInfo | None
    chart: bool


class SceneMessage(TypedDict):
    """Static scene, with the models of its bodies but without its sea bed."""

    type: Literal["scene"]
    scene: Scene


class DetailsMessage(TypedDict):
    """Rest of the scene: sea bed and all models. Because of its size, it is sent after the bodies."""

    type: Literal["details"]
    bed: BedGrid | None
    models: dict[str, ModelInfo]


class RosterMessage(TypedDict):
    """Bodies that are in the simulation."""

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
    """Tracks so far, by row. `whole` is true for tracks that cover a log from its start to its end."""

    type: Literal["tracks"]
    whole: bool
    bodies: dict[str, TrackPoints]


class TimeChangeMessage(TypedDict):
    """Time to which the simulation was reset or has returned; -1 means that another run has begun. The page discards
    everything that it has received about later times.
    """

    type: Literal["time_change"]
    time: float


class AlarmsMessage(TypedDict):
    """All alarms, with the newest last."""

    type: Literal["alarms"]
    alarms: list[Alarm]


class EstimatesMessage(TypedDict):
    """Estimates from navigators: row, north, east, down and three standard deviations of each estimate."""

    type: Literal["beliefs"]
    bodies: list[Numbers]


class WeatherMessage(WeatherReport):
    """Weather and clients."""

    type: Literal["weather"]


class FleetMessage(FleetStatus):
    """Battery and mission of the vehicles."""

    type: Literal["fleet"]


class SeaMessage(TypedDict):
    """Wave components (`sea_surface.py`); null means that they are unknown."""

    type: Literal["sea"]
    components: list[list[float]] | None


class CablesMessage(TypedDict):
    """Current tethers, moorings and tow cables."""

    type: Literal["cables"]
    cables: list[CableInfo]


class FencesMessage(TypedDict):
    """Fences at the time that the page shows."""

    type: Literal["fences"]
    fences: list[FenceInfo]


class TrafficMessage(TypedDict):
    """Encounters of the body that the page watches; null means that the body is not a surface vessel."""

    type: Literal["traffic"]
    row: int
    traffic: Traffic | None


class EquipmentMessage(TypedDict):
    """Equipment of the body that the page watches; null means that the body is not in the simulation."""

    type: Literal["kit"]
    row: int
    kit: BodyEquipment | None


class PanelMessage(TypedDict):
    """Current data of the body that the page watches; null means that the body is not in the simulation."""

    type: Literal["panel"]
    row: int
    panel: BodyPanel | None


class ImageMessage(TypedDict):
    """State of a sonar, camera, lidar or hydrophone that the page shows. Images from other epochs are invalid."""

    type: Literal["picture"]
    row: int
    name: str
    channel: int
    trouble: Annotated[str, "reason why there is no image; empty if there is one"]
    epoch: int


class MosaicLayer(TypedDict):
    """Mosaic of one sonar. Tiles from other epochs are invalid."""

    row: int
    body: str
    name: str
    kind: Literal["sidescan", "bathymetry"]
    epoch: int
    cell: Annotated[float, "size of a cell, m"]
    low: Annotated[float, "value of the first colour: dB above the median level at the same angle, or depth in m"]
    high: Annotated[float, "value of the last colour"]


class MosaicMessage(TypedDict):
    """All mosaics that have data."""

    type: Literal["mosaic"]
    layers: list[MosaicLayer]
    waiting: Annotated[int, "number of sonars that have sent no frame yet"]


class SourceErrorMessage(TypedDict):
    """Reason why the source has no data. An empty text means that it has data."""

    type: Literal["trouble"]
    text: str


class ErrorsMessage(TypedDict):
    """Errors of the viewer's server: the number of all errors so far, and the last error of each failing part."""

    type: Literal["mishaps"]
    total: int
    parts: dict[str, str]


class ReplyMessage(TypedDict):
    """Result of a request that this page has sent."""

    type: Literal["reply"]
    ok: bool
    text: str


class CommandAnswerMessage(TypedDict):
    """Answer from a vehicle's program to a command that this page has sent."""

    type: Literal["answer"]
    row: int
    number: Annotated[int, "number of the command, as in its request"]
    ok: Annotated[bool, "whether the vehicle is carrying out the command"]
    text: str


ServerMessage = (
    HelloMessage
    | SceneMessage
    | DetailsMessage
    | RosterMessage
    | SoundsMessage
    | MarksMessage
    | TracksMessage
    | TimeChangeMessage
    | AlarmsMessage
    | EstimatesMessage
    | WeatherMessage
    | FleetMessage
    | SeaMessage
    | CablesMessage
    | FencesMessage
    | TrafficMessage
    | EquipmentMessage
    | PanelMessage
    | ImageMessage
    | MosaicMessage
    | SourceErrorMessage
    | ErrorsMessage
    | ReplyMessage
    | CommandAnswerMessage
)


class ImageHeader(TypedDict):
    """Header of a binary image."""

    row: int
    body: str
    name: str
    preset: str
    kind: ImageKind
    epoch: Annotated[int, "a new epoch makes all earlier images invalid"]
    number: int
    time: float
    beams: int
    bins: int
    saturated: int
    heading: Annotated[float, "degrees"]
    at: Annotated[Numbers, "position of the instrument in W"]
    range: float
    sector: float
    height: Annotated[float, "vertical beam width; 3D sonar: vertical angle of the image, rad"]
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
    channel: Annotated[int, "channel of a hydrophone, from 0"]
    channels: Annotated[int, "number of channels of a hydrophone"]


class MosaicTileHeader(TypedDict):
    """Header of a binary tile of a mosaic (`live_mosaic.py`)."""

    row: int
    name: str
    epoch: int
    south: Annotated[float, "north coordinate of the south-west corner, m"]
    west: Annotated[float, "east coordinate of the south-west corner, m"]
    cell: float
    cells: Annotated[int, "number of cells along each side"]


# -- requests of a page, with the word that selects each of them ("do") ----------------------------------------------


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Request the data of one body. If `row` is None, request no data."""

    row: int | None


@dataclass(frozen=True, slots=True)
class PicturesRequest:
    """Request the frames from exactly these sonars; each is given as (row, name, channel). Only a hydrophone has
    several channels.
    """

    sonars: tuple[tuple[int, str, int], ...]


@dataclass(frozen=True, slots=True)
class MosaicRequest:
    """Start or stop requesting the mosaics of all sonars."""

    on: bool


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
    """Acknowledge an alarm; None acknowledges all alarms."""

    alarm: int | None


@dataclass(frozen=True, slots=True)
class ShelveRequest:
    """Suppress an alarm for a given simulation time (in s); 0 returns it to service."""

    alarm: int
    seconds: float


@dataclass(frozen=True, slots=True)
class CommanderRequest:
    """Commander verb with its values: apply a force, move a body, change the weather, or send a mission. ``row`` is
    None if the verb does not concern a body.
    """

    verb: str
    row: int | None
    values: dict[str, float | list[float]]


@dataclass(frozen=True, slots=True)
class FencesRequest:
    """Add, replace or remove fences of a running server. A fence without corners is removed."""

    changes: tuple[FenceInfo, ...]


@dataclass(frozen=True, slots=True)
class VehicleCommandRequest:
    """Command a vehicle: go to, loiter, return, pause, resume or abort. ``point`` contains north, east and down in W
    and a speed (0 means the vehicle's default cruise speed); it is None if the command has no point. The page chooses ``number``,
    and the answer contains the same number.
    """

    row: int
    number: int
    action: str
    point: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class DriveRequest:
    """Drive a body from a page. If the demands are None, the page releases control of the body.

    The mapping ``allocation`` has four demands (surge, sway, heave, yaw): fractions of the maximum force or moment, from -1
    to 1. ``force`` has the same four demands as forces in N and a moment in N m on the hull. ``actuators`` has a fraction of
    the range of each actuator.
    """

    body: str
    axes: tuple[float, ...] | None
    mapping: Literal["allocation", "force", "actuators"]


@dataclass(frozen=True, slots=True)
class DetailsRequest:
    """Request the details of the scene and the history, after the first picture. A socket that was opened as
    ``/ws?first`` receives them only after this request.
    """


PageRequest = (
    WatchRequest
    | DetailsRequest
    | PicturesRequest
    | MosaicRequest
    | ControlRequest
    | FaultRequest
    | AcknowledgeRequest
    | ShelveRequest
    | CommanderRequest
    | FencesRequest
    | VehicleCommandRequest
    | DriveRequest
)
#: value of the "do" key in each request
VERBS: dict[type, str] = {
    WatchRequest: "watch",
    DetailsRequest: "details",
    PicturesRequest: "pictures",
    MosaicRequest: "mosaic",
    ControlRequest: "control",
    FaultRequest: "fault",
    AcknowledgeRequest: "acknowledge",
    ShelveRequest: "shelve",
    CommanderRequest: "order",
    FencesRequest: "fences",
    VehicleCommandRequest: "command",
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
    reduced: Annotated[
        bool, "whether the answer contains only minima and maxima, because the time span has too many values"
    ]


class ChartArea(TypedDict):
    """Area on an electronic chart, with its S-57 class, minimum depth, and rings of latitude and longitude."""

    kind: str
    depth: float | None
    rings: list[list[float]]


class ChartLine(TypedDict):
    """Line on an electronic chart, with its S-57 class, depth, and path of latitude and longitude."""

    kind: str
    depth: float | None
    path: list[float]


class ChartMark(TypedDict):
    """Buoy, beacon, wreck or other mark on an electronic chart, with its latitude and longitude."""

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
    """/api/model: an XML element of a model, with the elements that it contains."""

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
    """Permitted element within another element; `of` names its rules."""

    name: str
    of: str
    many: bool
    required: bool
    doc: str


class ElementRule(TypedDict):
    """/api/schema: permitted content of one element. The answer maps the names of the rules to these objects."""

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
    """/api/check and /api/fit: the result of a check, and the drawing of the model if it can be simulated."""

    ok: bool
    error: NotRequired[str]
    look: NotRequired[ModelInfo]
    instruments: NotRequired[list[InstrumentInfo]]
    hull: NotRequired[Annotated[str, "mesh of <hull> in body axes: base64 of 32-bit floats, nine for each triangle"]]
    given: NotRequired[Annotated[list[str], "inherited instruments"]]


class VehicleInstruments(TypedDict):
    """/api/vehicle: instruments of a body in a configuration, and the drawing of its model."""

    file: str
    sensors: XmlTree | None
    look: ModelInfo
    instruments: list[InstrumentInfo]
    given: Annotated[list[str], "inherited instruments"]


class ReceivedFile(TypedDict):
    """/api/upload: a file that the viewer keeps until a request uses it."""

    upload: Annotated[str, "key of the file"]
    file: str
    size: int


class HullPartMesh(TypedDict):
    """Part of a hull file, in the axes and the unit of the file."""

    name: str
    colour: str
    triangles: int
    vertices: Annotated[str, "base64 of 32-bit floats x y z"]
    corners: Annotated[str, "base64 of 32-bit vertex numbers, three for each triangle"]


class HullFile(TypedDict):
    """/api/hull: the parts of a hull file, and guesses of its unit and axes."""

    hull: Annotated[str, "key of the hull"]
    file: str
    size: Annotated[list[float], "extent along the axes of the file, in its unit"]
    unit: str
    up: str
    forward: str
    known: Annotated[bool, "whether the format defines its unit and its vertical axis"]
    parts: list[HullPartMesh]


class MeshJobState(TypedDict):
    """/api/from-mesh: a model that `wavesim vehicles from-mesh` computes in the background."""

    state: Literal["none", "running", "done", "failed", "cancelled"]
    name: Annotated[str, "name of the model"]
    step: Annotated[str, "name of the current step"]
    share: Annotated[float, "progress of all steps, 0 to 1"]
    text: Annotated[str, "detail of the current step"]
    error: Annotated[str, "reason why it failed"]
    files: Annotated[list[str], "files that were written to the working folder"]
    notes: list[str]


class HullPartFrame(TypedDict):
    """Position of a part in body axes, m."""

    name: str
    centre: list[float]
    size: list[float]
    axis: Annotated[list[float], "direction of its axis of symmetry"]
    normal: Annotated[list[float], "direction in which it is thinnest"]
    area: float


class FloatingHull(TypedDict):
    """Hull that floats upright with the mass of the model: z of the waterline (m), draft (m), wetted area (m2), centre
    of buoyancy (m) and metacentric heights (m).
    """

    waterline: float
    draft: float
    wetted: float
    centre: list[float]
    gm_roll: float
    gm_pitch: float


class HullProperties(TypedDict):
    """/api/hull-fit: a hull in body axes, its mass properties, and the files that a model can name.

    A position in body axes is scale * rotation * p + offset, for a position p in the file.
    """

    file: str
    appearance: str
    rotation: Annotated[list[float], "3x3, row by row"]
    scale: float
    offset: list[float]
    size: Annotated[list[float], "length, breadth and height, m"]
    closed: bool
    triangles: int
    volume: Annotated[float, "m3"]
    area: Annotated[float, "m2"]
    centre: Annotated[list[float], "centre of the volume, m"]
    gyration: Annotated[list[float], "radii of gyration for evenly distributed mass, m"]
    afloat: FloatingHull | None
    parts: list[HullPartFrame]
    notes: list[str]


class MissingValue(TypedDict):
    """Value that an imported file lacks, as a key of `wavesim vehicles import --set`."""

    key: str
    meaning: str


class ImportedVessel(TypedDict):
    """/api/vessel: the models of an uploaded vessel, or the values that it lacks."""

    models: list[XmlTree]
    notes: list[str]
    missing: list[MissingValue]
    angles: Annotated[bool, "whether the unit of the angles must be stated"]
    omitted: Annotated[list[str], "content that a model cannot represent"]
    source: str


class SimulatedMotion(TypedDict):
    """/api/test: motion of a simulated model, with one column per quantity."""

    commands: dict[str, float]
    columns: dict[str, list[float]]


class SavedFile(TypedDict):
    """/api/mount: the file that was written."""

    file: str


class SavedModel(SavedFile):
    """/api/save: the file that was written, and a configuration that simulates the model."""

    trial: str


class ImportedMission(TypedDict):
    """/api/mission-file: north, east, depth and speed of each waypoint in a mission file, and what the file contains
    besides waypoints.
    """

    points: list[tuple[float, float, float, float]]
    notices: list[str]


class SavedMission(SavedFile):
    """/api/mission: the file that was written, and warnings about waypoints."""

    warnings: list[str]
