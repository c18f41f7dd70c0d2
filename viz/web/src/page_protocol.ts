// Protocol with the viewer's server. Generated from viz/wavesim_viz/page_protocol.py by `make docs`; do not edit.

export const BODY_WIDTH = 10;
export const SIGNAL_WIDTH = 9;
export const OK = 0;
export const HELD = 1;
export const INVALID = 2;
export const MAX_ITEM_CORNERS = 48;
export const MIN_CORNERS = 3;
export const NAME_BYTES = 31;
export const DEVICE_PREFIX = "device:";
export const DEVICE_FAULTS = [
  "lost",
  "garbled",
  "doubled",
  "late",
  "silent",
  "stalled",
  "disconnected",
  "restarted",
  "none",
];

/** Shape of a hull. */
export interface HullShape {
  kind: "box" | "cylinder" | "sphere";
  /** length, width and height, m */
  size: [number, number, number];
}

/** Drawing of a thruster: position and direction of thrust in B. */
export interface ThrusterInfo {
  name: string;
  position: number[];
  direction: number[];
  swivel: boolean;
  deflector: boolean;
}

/** Drawing of a fin in B. */
export interface FinInfo {
  name: string;
  position: number[];
  normal: number[];
  chord: number[];
  /** m2 */
  area: number;
}

/** Position of a ballast tank in B. */
export interface TankInfo {
  name: string;
  position: number[];
}

/** Drawing and description of a model. */
export interface ModelInfo {
  name: string;
  type: string;
  title: string;
  source: string;
  validated: string;
  shape: HullShape;
  /** glTF file; if it is empty, the shape is drawn */
  appearance: string;
  /** draw thrusters and fins of which the glTF file has no node */
  draw_parts: boolean;
  /** kg */
  mass: number | null;
  thrusters: ThrusterInfo[];
  fins: FinInfo[];
  tanks: TankInfo[];
  transducer: number[] | null;
}

/** Depth of the sea bed on a grid; null outside the surveyed area. */
export interface BedGrid {
  north: number[];
  east: number[];
  depth: (number | null)[][];
  /** mean depth of all soundings in a log, m */
  mean?: number;
}

/** Polygon that bodies must either stay inside or stay outside. */
export interface FenceInfo {
  name: string;
  keep: string;
  /** north and east coordinates of each corner */
  corners: [number, number][];
}

/** Body as the configuration declares it. */
export interface PlannedBody {
  name: string;
  model: string;
  position: number[];
  attitude: number[];
  client: string;
  buoy: boolean;
  /** north, east, depth and speed of each waypoint */
  waypoints: [number, number, number, number][];
  anchor: number[] | null;
  transducer: number[] | null;
  /** address of its modem */
  address?: number;
}

/** Sound speed (m/s) and level of ambient noise (dB). */
export interface SoundInfo {
  speed: number;
  noise: number;
}

/** Static scene: sea bed, obstacles, models and missions. */
export interface Scene {
  name: string;
  /** configuration or log from which the scene comes; empty: unknown */
  file: string;
  /** latitude and longitude, degrees */
  origin: [number, number] | null;
  sound: SoundInfo;
  /** null: there is no sea bed, or the bed is in the `details` message */
  bed: BedGrid | null;
  boxes: number[][];
  /** position (3), radius and height of each pier */
  piers: number[][];
  /** three corners of each triangle, one after the other */
  triangles: number[];
  /** significant wave height; null: unknown */
  waves: number | null;
  bodies: PlannedBody[];
  models: Record<string, ModelInfo>;
  /** whether a second pilot takes over: no, yes, or return (until it leaves) */
  takeover?: string;
  warning?: string;
}

/** Body that is in the simulation. */
export type RosterEntry = [row: number, name: string, model: string, type: string, generation: number];

/** Actuator. Its limits are in the unit of its values. */
export interface ActuatorInfo {
  name: string;
  kind: "thruster" | "fin" | "angle" | "deflector" | "ballast" | "other";
  /** SI unit; empty: a fraction */
  unit: string;
  minimum: number;
  maximum: number;
  rest: number;
  /** number of the thruster, fin or tank that the actuator moves */
  part: number;
  faults: string[];
}

/** Beams of an instrument in B. */
export interface BeamInfo {
  /** field of the instrument's value that contains the ranges */
  field: string;
  maximum: number;
  /** start and unit vector of each beam, one after the other */
  rays: number[];
  /** whether the vectors are in W instead of B */
  level: boolean;
  /** whether the value `angle` rotates the beam about `axis` */
  turning: boolean;
  axis: number[];
}

/** Field of an instrument's value. */
export interface FieldInfo {
  name: string;
  unit: string;
  count: number;
  doc: string;
  /** name of each component, if named */
  labels: string[] | null;
  /** unit of each component, if the units differ */
  units: string[] | null;
}

/** Instrument: its fields, mount and beams. */
export interface InstrumentInfo {
  name: string;
  type: string;
  doc: string;
  /** s; null: unknown */
  period: number | null;
  fields: FieldInfo[];
  position: number[] | null;
  beams: BeamInfo | null;
  faults: string[];
}

/** Equipment of a body. It changes only when another body occupies the row. */
export interface BodyEquipment {
  row: number;
  generation: number;
  actuators: ActuatorInfo[];
  sensors: InstrumentInfo[];
}

/** Pose and velocities of a body. */
export interface BodyMotion {
  position: (number | null)[];
  /** roll, pitch and yaw, degrees */
  euler: (number | null)[];
  velocity: (number | null)[];
  /** degrees/s */
  rates: (number | null)[];
  /** velocity through the water; null: unknown */
  water: (number | null)[] | null;
}

/** Commands and values of the actuators, in the order of the equipment. */
export interface Actuation {
  command: (number | null)[];
  actual: (number | null)[];
  feedback: (number | null)[];
  /** fraction of a turn at which the propeller of each thruster is drawn */
  turns: (number | null)[];
  /** drawn rate of each propeller, 1/s of simulation time */
  turn_rates: (number | null)[];
  /** faults, by actuator */
  faults?: Record<string, string>;
}

export type FieldValue = number | (number | null)[] | null;

/** Newest value from an instrument. */
export interface SensorValue {
  valid: boolean;
  /** simulation time in s; null: no value yet */
  age: number | null;
  /** injected fault; empty: none */
  fault: string;
  fields: Record<string, number | (number | null)[] | null>;
}

/** Session of a client on board a body. */
export interface SessionInfo {
  row?: number;
  role: string;
  address: string;
  status: string;
  /** time in s since the client's last datagram */
  silent: number | null;
  rtt_ms: number | null;
  lockstep_ms: number;
  /** numbers of datagrams received from the client and sent to it */
  datagrams: [number, number];
  /** name of the device that the client serves; empty: none */
  device: string;
  /** kind of the fault injected into the device; empty: none */
  device_fault: string;
}

/** Force (N) and moment (N m) on a body about its origin, by component. Each has three numbers, in B. */
export interface Effort {
  total: (number | null)[];
  restoring: (number | null)[];
  drag: (number | null)[];
  actuators: (number | null)[];
  environment: (number | null)[];
  external: (number | null)[];
  contact: (number | null)[];
}

/** Flow, wind and water level at a body. */
export interface Surroundings {
  current_W: (number | null)[];
  wind_W: (number | null)[];
  level: number | null;
  wave: number | null;
}

/** Current data of one body. A source omits the parts that it cannot provide. */
export interface BodyPanel {
  row: number;
  /** simulation time, s */
  time: number;
  identity: Record<string, unknown>;
  geometry?: Record<string, unknown>;
  motion: BodyMotion;
  actuation?: Actuation | null;
  sensors?: Record<string, SensorValue>;
  crew?: SessionInfo[];
  /** reason why instrument values are missing */
  note?: string;
  effort?: Effort | null;
  surroundings?: Surroundings | null;
}

/** Another vessel, with the closest point of approach if both vessels keep their course and speed. */
export interface Encounter {
  row: number;
  /** m */
  range: number;
  /** rad */
  bearing: number;
  /** rad */
  course: number;
  /** m/s */
  speed: number;
  /** distance at the closest point of approach, m */
  dcpa: number;
  /** time until the closest point of approach, s */
  tcpa: number;
  /** own ship's role under the collision regulations */
  role: string;
  /** position of own ship at the closest point of approach, north and east */
  own_at: [number, number];
  other_at: [number, number];
}

/** Encounters of a surface vessel (`row`) with other vessels, and the radii of its domain in m. */
export interface Traffic {
  row: number;
  time: number;
  length: number;
  least: number;
  preferred: number;
  others: Encounter[];
}

/** Tether, mooring or tow cable. */
export interface CableInfo {
  name: string;
  /** maximum tension, N */
  tension: number | null;
  /** number of the broken segment; -1: none */
  broken: number;
  /** nodes in W, one after the other */
  points: number[];
}

/** Signal that a node has sent, or could not send. */
export interface SentSignal {
  id: number;
  source: number;
  query: number;
  kind: number;
  outcome: number;
  frequency: number;
  source_level: number;
  duration: number;
  code: number;
  /** modem address; 0: none */
  from_address: number;
  /** modem address; 0: all */
  to_address: number;
  /** length of the payload in bytes */
  payload: number;
  time: number;
  at: [number, number, number] | null;
}

/** Outcome of a signal at a receiver. */
export interface SignalReception {
  id: number;
  source: number;
  receiver: number;
  query: number;
  kind: number;
  outcome: number;
  /** modem address; 0: all */
  to_address: number;
  level: number | null;
  /** noise in the band of the signal at the receiver, dB */
  noise: number | null;
  /** distance derived from the travel time, m */
  range: number | null;
  /** true distance, m */
  distance: number | null;
  /** two-way range measured by the node, m */
  measured: number | null;
  /** one-way range measured by the node, m */
  one_way: number | null;
  duration: number;
  /** as measured, rad */
  azimuth: number | null;
  /** as measured, rad */
  elevation: number | null;
  /** time of arrival, s */
  time: number;
  emission: number | null;
  at: [number, number, number] | null;
  bounces: number;
}

/** Text that the server has published about a body; `row` is -1 if the body is unknown. */
export interface Notice {
  time: number;
  row: number;
  name: string;
  text: string;
}

/** Newest signals, receptions and notices. */
export interface SignalEvents {
  sent: SentSignal[];
  receptions: SignalReception[];
  notices: Notice[];
  /** number of events that are not listed because there were too many */
  missed: number;
  /** whether the events in this message replace all earlier events */
  anew?: boolean;
}

/** Track of a body and track of its navigator's estimates, each with times and with three numbers per point. */
export interface TrackPoints {
  name?: string;
  time: number[];
  position: (number | null)[];
  believed_time: number[];
  believed: (number | null)[];
}

/** Event in a log, marked on the time slider. */
export interface TimeMark {
  time: number;
  kind: string;
  text: string;
}

/** Abnormal condition of a body, with the start and end of its newest occurrence in s of simulation time. */
export interface Alarm {
  id: number;
  kind: string;
  severity: "high" | "medium" | "low";
  name: string;
  row: number;
  text: string;
  since: number;
  /** time at which the condition ended; null: still active */
  until: number | null;
  seen: boolean;
  /** number of occurrences */
  count: number;
  /** time until which the alarm is shelved; null: not shelved */
  shelved: number | null;
}

/** Current, wind and water level of the simulation. */
export interface Weather {
  current_W: (number | null)[];
  wind_speed: number | null;
  wind_direction: number | null;
  level: number | null;
  wave_height: number | null;
  wave_peak: number | null;
  wave_direction: number | null;
}

/** Time span of a log, and how it is played. */
export interface ReplayClock {
  start: number;
  end: number;
  playing: boolean;
  speed: number;
  /** name of the log drawn for comparison; empty: none */
  other: string;
  /** number of pages that share this clock */
  pages?: number;
}

/** Weather and clients of a simulation. */
export interface WeatherReport {
  weather: Weather | null;
  clients: SessionInfo[];
  /** number of clients; null: unknown */
  connected: number | null;
  /** state of the log: ok, off, or what is wrong with it; empty: unknown */
  log?: string;
  replay?: ReplayClock;
  /** times of the automatic snapshots that the server holds, s; missing: unknown */
  snapshots?: number[];
}

/** Activity of a vehicle, as its program reports it. */
export interface MissionState {
  mode: string;
  /** number of the current waypoint, from 1; 0: none */
  waypoint: number;
  /** number of waypoints in the mission; 0: none */
  count: number;
  /** position (north, east) in W to which the vehicle is going; null: none */
  target: number[] | null;
}

/** Battery and mission of the vehicles, by row. A vehicle without an entry has no such value. */
export interface FleetStatus {
  /** battery charge, as a fraction of the capacity */
  charges: Record<string, number>;
  missions: Record<string, MissionState>;
}

/** Description of a raster chart. */
export interface TilesetInfo {
  name: string;
  attribution: string;
  /** minimum zoom level of the tiles */
  least: number;
  most: number;
}

/** Rays between two positions, or a field in the vertical plane through them or in a horizontal plane. */
export interface AcousticsRequest {
  kind: "rays" | "loss" | "section";
  source: [number, number, number];
  receiver: [number, number, number];
  /** simulation time, s */
  time: number;
  /** carrier, Hz */
  frequency: number;
  /** depth of a horizontal plane, m; null: vertical plane */
  depth: number | null;
}

/** Path along which sound arrives. */
export interface SoundRay {
  /** travel time, s */
  time: number;
  /** transmission loss, dB */
  loss: number;
  /** number of reflections by the surface */
  surface: number;
  /** number of reflections by the sea bed */
  bed: number;
  /** launch angle below the horizontal, degrees */
  launch: number;
  /** error of the range computed from the travel time and the nominal sound speed, m */
  error: number;
  /** obstacle that blocks the path; empty: none */
  blocked: string;
  /** whether the simulation follows this path */
  followed: boolean;
  /** points of the path in W, one after the other */
  points: number[];
}

/** Rays between two positions, in the order of their travel times. */
export interface RaysAnswer {
  rays: SoundRay[];
  /** restrictions of the answer, one sentence each */
  notes: string[];
}

/**
 * Transmission loss or sound speed at the points of a grid in a plane. In a vertical plane, the columns are distances
 * from the source and the rows are depths. In a horizontal plane, the columns are east and the rows are north.
 */
export interface FieldAnswer {
  plane: "vertical" | "horizontal";
  /** dB or m/s */
  unit: string;
  /** coordinate of each column, m */
  columns: number[];
  /** coordinate of each row, m */
  rows: number[];
  /** row by row; null: no sound, or no water */
  values: (number | null)[][];
  /** depth of the sea bed at each column, m; empty: unknown, or a horizontal plane */
  bed: (number | null)[];
  /** restrictions of the answer, one sentence each */
  notes: string[];
}

/** First message: the source, and what the page may do. */
export interface HelloMessage {
  type: "hello";
  /** live, replay or remote; none = only the configurator is served */
  kind: string;
  name: string;
  /** interval between two frames, s */
  period: number;
  version: string;
  /** whether this page may start, pause and seek */
  control: boolean;
  /** whether this page may also save files and run programs */
  write: boolean;
  tiles: TilesetInfo | null;
  chart: boolean;
}

/** Static scene, with the models of its bodies but without its sea bed. */
export interface SceneMessage {
  type: "scene";
  scene: Scene;
}

/** Rest of the scene: sea bed and all models. Because of its size, it is sent after the bodies. */
export interface DetailsMessage {
  type: "details";
  bed: BedGrid | null;
  models: Record<string, ModelInfo>;
}

/** Bodies that are in the simulation. */
export interface RosterMessage {
  type: "roster";
  bodies: RosterEntry[];
}

/** New signals, receptions and notices. */
export interface SoundsMessage {
  sent: SentSignal[];
  receptions: SignalReception[];
  notices: Notice[];
  /** number of events that are not listed because there were too many */
  missed: number;
  /** whether the events in this message replace all earlier events */
  anew?: boolean;
  type: "sounds";
}

/** Events for the time slider. */
export interface MarksMessage {
  type: "marks";
  marks: TimeMark[];
}

/** Tracks so far, by row. `whole` is true for tracks that cover a log from its start to its end. */
export interface TracksMessage {
  type: "tracks";
  whole: boolean;
  bodies: Record<string, TrackPoints>;
}

/**
 * Time to which the simulation was reset or has returned; -1 means that another run has begun. The page discards
 * everything that it has received about later times.
 */
export interface TimeChangeMessage {
  type: "time_change";
  time: number;
}

/** All alarms, with the newest last. */
export interface AlarmsMessage {
  type: "alarms";
  alarms: Alarm[];
}

/** Estimates from navigators: row, north, east, down and three standard deviations of each estimate. */
export interface EstimatesMessage {
  type: "beliefs";
  bodies: (number | null)[][];
}

/** Weather and clients. */
export interface WeatherMessage {
  weather: Weather | null;
  clients: SessionInfo[];
  /** number of clients; null: unknown */
  connected: number | null;
  /** state of the log: ok, off, or what is wrong with it; empty: unknown */
  log?: string;
  replay?: ReplayClock;
  /** times of the automatic snapshots that the server holds, s; missing: unknown */
  snapshots?: number[];
  type: "weather";
}

/** Battery and mission of the vehicles. */
export interface FleetMessage {
  /** battery charge, as a fraction of the capacity */
  charges: Record<string, number>;
  missions: Record<string, MissionState>;
  type: "fleet";
}

/** Wave components (`sea_surface.py`); null means that they are unknown. */
export interface SeaMessage {
  type: "sea";
  components: number[][] | null;
}

/** Current tethers, moorings and tow cables. */
export interface CablesMessage {
  type: "cables";
  cables: CableInfo[];
}

/** Fences at the time that the page shows. */
export interface FencesMessage {
  type: "fences";
  fences: FenceInfo[];
}

/** Encounters of the body that the page watches; null means that the body is not a surface vessel. */
export interface TrafficMessage {
  type: "traffic";
  row: number;
  traffic: Traffic | null;
}

/** Equipment of the body that the page watches; null means that the body is not in the simulation. */
export interface EquipmentMessage {
  type: "kit";
  row: number;
  kit: BodyEquipment | null;
}

/** Current data of the body that the page watches; null means that the body is not in the simulation. */
export interface PanelMessage {
  type: "panel";
  row: number;
  panel: BodyPanel | null;
}

/** State of a sonar, camera, lidar or hydrophone that the page shows. Images from other epochs are invalid. */
export interface ImageMessage {
  type: "picture";
  row: number;
  name: string;
  channel: number;
  /** reason why there is no image; empty if there is one */
  trouble: string;
  epoch: number;
}

/** Mosaic of one sonar. Tiles from other epochs are invalid. */
export interface MosaicLayer {
  row: number;
  body: string;
  name: string;
  kind: "sidescan" | "bathymetry";
  epoch: number;
  /** size of a cell, m */
  cell: number;
  /** value of the first colour: dB above the median level at the same angle, or depth in m */
  low: number;
  /** value of the last colour */
  high: number;
}

/** All mosaics that have data. */
export interface MosaicMessage {
  type: "mosaic";
  layers: MosaicLayer[];
  /** number of sonars that have sent no frame yet */
  waiting: number;
}

/** Reason why the source has no data. An empty text means that it has data. */
export interface SourceErrorMessage {
  type: "trouble";
  text: string;
}

/** Errors of the viewer's server: the number of all errors so far, and the last error of each failing part. */
export interface ErrorsMessage {
  type: "mishaps";
  total: number;
  parts: Record<string, string>;
}

/** Result of a request that this page has sent. */
export interface ReplyMessage {
  type: "reply";
  ok: boolean;
  text: string;
}

/** Answer from a vehicle's program to a command that this page has sent. */
export interface CommandAnswerMessage {
  type: "answer";
  row: number;
  /** number of the command, as in its request */
  number: number;
  /** whether the vehicle is carrying out the command */
  ok: boolean;
  text: string;
}

export type ServerMessage =
  | HelloMessage
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
  | CommandAnswerMessage;

/** Header of a binary image. */
export interface ImageHeader {
  row: number;
  body: string;
  name: string;
  preset: string;
  kind: "forward" | "sidescan" | "scanning" | "bathymetry" | "camera" | "3d" | "lidar" | "hydrophone";
  /** a new epoch makes all earlier images invalid */
  epoch: number;
  number: number;
  time: number;
  beams: number;
  bins: number;
  saturated: number;
  /** degrees */
  heading: number;
  /** position of the instrument in W */
  at: (number | null)[];
  range: number;
  sector: number;
  /** vertical beam width; 3D sonar: vertical angle of the image, rad */
  height: number;
  azimuth: number;
  tilt: number;
  frequency: number;
  /** height of the instrument above the bed; null: unknown */
  altitude: number | null;
  gain: number;
  tvg: number;
  hold: number | null;
  absorption: number;
  floor: number;
  span: number;
  /** channel of a hydrophone, from 0 */
  channel: number;
  /** number of channels of a hydrophone */
  channels: number;
}

/** Header of a binary tile of a mosaic (`live_mosaic.py`). */
export interface MosaicTileHeader {
  row: number;
  name: string;
  epoch: number;
  /** north coordinate of the south-west corner, m */
  south: number;
  /** east coordinate of the south-west corner, m */
  west: number;
  cell: number;
  /** number of cells along each side */
  cells: number;
}

/** Request the data of one body. If `row` is None, request no data. */
export interface WatchRequest {
  do: "watch";
  row: number | null;
}

/**
 * Request the frames from exactly these sonars; each is given as (row, name, channel). Only a hydrophone has several
 * channels.
 */
export interface PicturesRequest {
  do: "pictures";
  sonars: [number, string, number][];
}

/** Start or stop requesting the mosaics of all sonars. */
export interface MosaicRequest {
  do: "mosaic";
  on: boolean;
}

/** Control the simulation or the replay: start, stop, seek and other verbs. */
export interface ControlRequest {
  do: "control";
  verb: string;
  value: number | null;
}

/** Inject a fault into a part of a body. */
export interface FaultRequest {
  do: "fault";
  row: number;
  part: string;
  kind: string;
  amount: string;
  field: string;
}

/** Acknowledge an alarm; None acknowledges all alarms. */
export interface AcknowledgeRequest {
  do: "acknowledge";
  alarm: number | null;
}

/** Suppress an alarm for a given simulation time (in s); 0 returns it to service. */
export interface ShelveRequest {
  do: "shelve";
  alarm: number;
  seconds: number;
}

/**
 * Commander verb with its values: apply a force, move a body, change the weather, or send a mission. `row` is None if
 * the verb does not concern a body.
 */
export interface CommanderRequest {
  do: "order";
  verb: string;
  row: number | null;
  values: Record<string, number | number[]>;
}

/** Add, replace or remove fences of a running server. A fence without corners is removed. */
export interface FencesRequest {
  do: "fences";
  changes: FenceInfo[];
}

/**
 * Command a vehicle: go to, loiter, return, pause, resume or abort. `point` contains north, east and down in W and a
 * speed (0 means the vehicle's default cruise speed); it is None if the command has no point. The page chooses
 * `number`, and the answer contains the same number.
 */
export interface VehicleCommandRequest {
  do: "command";
  row: number;
  number: number;
  action: string;
  point: number[] | null;
}

/**
 * Drive a body from a page. If the demands are None, the page releases control of the body. The mapping `allocation`
 * has four demands (surge, sway, heave, yaw): fractions of the maximum force or moment, from -1 to 1. `force` has the
 * same four demands as forces in N and a moment in N m on the hull. `actuators` has a fraction of the range of each
 * actuator.
 */
export interface DriveRequest {
  do: "drive";
  body: string;
  axes: number[] | null;
  mapping: "allocation" | "force" | "actuators";
}

/**
 * Request the details of the scene and the history, after the first picture. A socket that was opened as `/ws?first`
 * receives them only after this request.
 */
export interface DetailsRequest {
  do: "details";
}

export type PageRequest =
  | WatchRequest
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
  | DriveRequest;

/** Reason why a request failed, in an answer with an error status. */
export interface ErrorAnswer {
  error: string;
}

/** /series: lines of a chart at common times. */
export interface ChartData {
  time: number[];
  values: (number | null)[][];
  /** whether the answer contains only minima and maxima, because the time span has too many values */
  reduced: boolean;
}

/** Area on an electronic chart, with its S-57 class, minimum depth, and rings of latitude and longitude. */
export interface ChartArea {
  kind: string;
  depth: number | null;
  rings: number[][];
}

/** Line on an electronic chart, with its S-57 class, depth, and path of latitude and longitude. */
export interface ChartLine {
  kind: string;
  depth: number | null;
  path: number[];
}

/** Buoy, beacon, wreck or other mark on an electronic chart, with its latitude and longitude. */
export interface ChartMark {
  kind: string;
  name: string;
  at: [number, number];
}

/** /chart: the user's electronic chart. */
export interface ChartContent {
  name: string;
  areas: ChartArea[];
  lines: ChartLine[];
  /** latitude, longitude and depth of each sounding, one after the other */
  soundings: number[];
  marks: ChartMark[];
}

/** /api/model: an XML element of a model, with the elements that it contains. */
export interface XmlTree {
  tag: string;
  attributes: Record<string, string>;
  text: string;
  children: XmlTree[];
}

/** Permitted attribute of an element. */
export interface AttributeRule {
  name: string;
  kind: string;
  doc: string;
  units: string[];
  count: number;
  required: boolean;
  default: string | null;
  low: string | null;
  high: string | null;
  choices: string[];
}

/** Permitted element within another element; `of` names its rules. */
export interface ChildRule {
  name: string;
  of: string;
  many: boolean;
  required: boolean;
  doc: string;
}

/** /api/schema: permitted content of one element. The answer maps the names of the rules to these objects. */
export interface ElementRule {
  doc: string;
  keys: AttributeRule[];
  children: ChildRule[];
}

/** /api/models: a model that can be opened. */
export interface ModelEntry {
  name: string;
  title: string;
  type: string;
  file: string;
}

/** /api/vehicles: a body whose own instruments can be edited. */
export interface VehicleEntry {
  file: string;
  name: string;
  model: string;
}

/** /api/check and /api/fit: the result of a check, and the drawing of the model if it can be simulated. */
export interface ModelCheck {
  ok: boolean;
  error?: string;
  look?: ModelInfo;
  instruments?: InstrumentInfo[];
  /** mesh of <hull> in body axes: base64 of 32-bit floats, nine for each triangle */
  hull?: string;
  /** inherited instruments */
  given?: string[];
}

/** /api/vehicle: instruments of a body in a configuration, and the drawing of its model. */
export interface VehicleInstruments {
  file: string;
  sensors: XmlTree | null;
  look: ModelInfo;
  instruments: InstrumentInfo[];
  /** inherited instruments */
  given: string[];
}

/** /api/upload: a file that the viewer keeps until a request uses it. */
export interface ReceivedFile {
  /** key of the file */
  upload: string;
  file: string;
  size: number;
}

/** Part of a hull file, in the axes and the unit of the file. */
export interface HullPartMesh {
  name: string;
  colour: string;
  triangles: number;
  /** base64 of 32-bit floats x y z */
  vertices: string;
  /** base64 of 32-bit vertex numbers, three for each triangle */
  corners: string;
}

/** /api/hull: the parts of a hull file, and guesses of its unit and axes. */
export interface HullFile {
  /** key of the hull */
  hull: string;
  file: string;
  /** extent along the axes of the file, in its unit */
  size: number[];
  unit: string;
  up: string;
  forward: string;
  /** whether the format defines its unit and its vertical axis */
  known: boolean;
  parts: HullPartMesh[];
}

/** /api/from-mesh: a model that `wavesim vehicles from-mesh` computes in the background. */
export interface MeshJobState {
  state: "none" | "running" | "done" | "failed" | "cancelled";
  /** name of the model */
  name: string;
  /** name of the current step */
  step: string;
  /** progress of all steps, 0 to 1 */
  share: number;
  /** detail of the current step */
  text: string;
  /** reason why it failed */
  error: string;
  /** files that were written to the working folder */
  files: string[];
  notes: string[];
}

/** Position of a part in body axes, m. */
export interface HullPartFrame {
  name: string;
  centre: number[];
  size: number[];
  /** direction of its axis of symmetry */
  axis: number[];
  /** direction in which it is thinnest */
  normal: number[];
  area: number;
}

/**
 * Hull that floats upright with the mass of the model: z of the waterline (m), draft (m), wetted area (m2), centre of
 * buoyancy (m) and metacentric heights (m).
 */
export interface FloatingHull {
  waterline: number;
  draft: number;
  wetted: number;
  centre: number[];
  gm_roll: number;
  gm_pitch: number;
}

/**
 * /api/hull-fit: a hull in body axes, its mass properties, and the files that a model can name. A position in body axes
 * is scale * rotation * p + offset, for a position p in the file.
 */
export interface HullProperties {
  file: string;
  appearance: string;
  /** 3x3, row by row */
  rotation: number[];
  scale: number;
  offset: number[];
  /** length, breadth and height, m */
  size: number[];
  closed: boolean;
  triangles: number;
  /** m3 */
  volume: number;
  /** m2 */
  area: number;
  /** centre of the volume, m */
  centre: number[];
  /** radii of gyration for evenly distributed mass, m */
  gyration: number[];
  afloat: FloatingHull | null;
  parts: HullPartFrame[];
  notes: string[];
}

/** Value that an imported file lacks, as a key of `wavesim vehicles import --set`. */
export interface MissingValue {
  key: string;
  meaning: string;
}

/** /api/vessel: the models of an uploaded vessel, or the values that it lacks. */
export interface ImportedVessel {
  models: XmlTree[];
  notes: string[];
  missing: MissingValue[];
  /** whether the unit of the angles must be stated */
  angles: boolean;
  /** content that a model cannot represent */
  omitted: string[];
  source: string;
}

/** /api/test: motion of a simulated model, with one column per quantity. */
export interface SimulatedMotion {
  commands: Record<string, number>;
  columns: Record<string, number[]>;
}

/** /api/mount: the file that was written. */
export interface SavedFile {
  file: string;
}

/** /api/save: the file that was written, and a configuration that simulates the model. */
export interface SavedModel {
  file: string;
  trial: string;
}

/**
 * /api/mission-file: north, east, depth and speed of each waypoint in a mission file, and what the file contains
 * besides waypoints.
 */
export interface ImportedMission {
  points: [number, number, number, number][];
  notices: string[];
}

/** /api/mission: the file that was written, and warnings about waypoints. */
export interface SavedMission {
  file: string;
  warnings: string[];
}
