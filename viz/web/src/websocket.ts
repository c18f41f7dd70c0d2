// Websocket: frames are binary (see wavesim_viz/frame.py), all other messages are JSON.

import type { TilesText } from "./tiles";
import { decodeSonarImage, type SonarImage } from "./sonar_image";

export interface Frame {
  state: number;
  time: number;
  tick: number;
  speed: number;
  factor: number;
  lateness: number;
  latenessMax: number;
  late: number;
  roster: number;
  level: number;
  jumps: number;
  bodies: Float32Array;
  signals: Float32Array;
}
export const BODY_WIDTH = 10,
  SIGNAL_WIDTH = 9;
export const OK = 0,
  HELD = 1,
  INVALID = 2; // conditions of a body, the last number of its row
const HEAD = 64,
  MAGIC = 0x31465657;

export interface PrimitiveShape {
  kind: "box" | "cylinder" | "sphere";
  size: [number, number, number];
}
export interface ThrusterLook {
  name: string;
  position: number[];
  direction: number[];
  swivel: boolean;
  deflector: boolean;
}
export interface FinLook {
  name: string;
  position: number[];
  normal: number[];
  chord: number[];
  area: number;
}
export interface TankLook {
  name: string;
  position: number[];
}
export interface ModelLook {
  name: string;
  type: string;
  title: string;
  source: string;
  validated: string;
  shape: PrimitiveShape;
  appearance: string;
  mass: number | null;
  thrusters: ThrusterLook[];
  fins: FinLook[];
  tanks: TankLook[];
  transducer: number[] | null;
}
/**
 * An actuator: values in ``unit`` (SI, empty = a share); ``part`` is the number of the thruster, fin or tank that it
 * moves.
 */
export interface ActuatorLook {
  name: string;
  kind: "thruster" | "fin" | "angle" | "deflector" | "ballast" | "other";
  unit: string;
  minimum: number;
  maximum: number;
  rest: number;
  part: number;
  faults: string[];
}
/**
 * Beams in B: start and unit vector of each, one after the other. ``level``: in W instead; ``turning``: rotated about
 * ``axis`` by the value `angle`.
 */
export interface BeamLook {
  field: string;
  maximum: number;
  rays: number[];
  level: boolean;
  turning: boolean;
  axis: number[];
}
/** A field of an instrument's value; ``labels`` and ``units``: for each of its numbers, if they differ. */
export interface FieldLook {
  name: string;
  unit: string;
  count: number;
  doc: string;
  labels: string[] | null;
  units: string[] | null;
}
export interface InstrumentLook {
  name: string;
  type: string;
  doc: string;
  period: number | null;
  fields: FieldLook[];
  position: number[] | null;
  beams: BeamLook | null;
  faults: string[];
}
/** Equipment of a body; it changes only when another body takes the row. */
export interface Kit {
  row: number;
  generation: number;
  actuators: ActuatorLook[];
  sensors: InstrumentLook[];
}
export interface Bed {
  north: number[];
  east: number[];
  depth: (number | null)[][];
}
export interface FenceShape {
  name: string;
  keep: string;
  corners: [number, number][];
}
export interface PlannedBody {
  name: string;
  model: string;
  position: number[];
  attitude: number[];
  client: string;
  buoy: boolean;
  waypoints: [number, number, number, number][];
  anchor: number[] | null;
  transducer: number[] | null;
}
export interface SceneText {
  name: string;
  file: string;
  origin: [number, number] | null;
  sound: { speed: number; noise: number };
  bed: Bed | null;
  boxes: number[][];
  piers: number[][];
  triangles: number[];
  waves: number | null;
  fences: FenceShape[];
  bodies: PlannedBody[];
  models: Record<string, ModelLook>;
  warning?: string;
}
export type RosterEntry = [row: number, name: string, model: string, type: string, generation: number];
export interface Sent {
  id: number;
  source: number;
  query: number;
  kind: number;
  outcome: number;
  frequency: number;
  source_level: number;
  duration: number;
  time: number;
  at: [number, number, number] | null;
}
export interface Reception {
  id: number;
  source: number;
  receiver: number;
  query: number;
  kind: number;
  outcome: number;
  level: number | null;
  range: number | null;
  distance: number | null;
  measured: number | null;
  one_way: number | null;
  duration: number;
  azimuth: number | null;
  elevation: number | null;
  time: number;
  emission: number | null;
  at: [number, number, number] | null;
  bounces: number;
}
export interface NoticeText {
  time: number;
  row: number;
  name: string;
  text: string;
}
export interface Motion3 {
  position: (number | null)[];
  euler: (number | null)[];
  velocity: (number | null)[];
  rates: (number | null)[];
  water: (number | null)[] | null;
}
export type FieldValue = number | null | (number | null)[];
/** Newest value of an instrument; age in s of simulation time, null = no value yet. */
export interface SensorValue {
  valid: boolean;
  age: number | null;
  fault: string;
  fields: Record<string, FieldValue>;
}
/** A session on board a body. */
export interface Client {
  role: string;
  address: string;
  status: string;
  silent: number | null;
  rtt_ms: number | null;
  lockstep_ms: number;
  datagrams: [number, number];
}
/** Forces (N) and moments (N m) on a body about its origin, in B: three each, by component. */
export type Forces = Record<
  "total" | "restoring" | "drag" | "actuators" | "environment" | "external" | "contact",
  (number | null)[]
>;
export interface Surroundings {
  current_W: number[];
  wind_W: number[];
  level: number;
  wave: number;
}
export interface Panel {
  row: number;
  time: number;
  identity: Record<string, unknown>;
  geometry?: Record<string, unknown>;
  motion: Motion3;
  actuation?: { command: number[]; actual: number[]; feedback: (number | null)[] } | null;
  sensors?: Record<string, SensorValue>;
  crew?: Client[];
  note?: string;
  effort?: Forces | null;
  surroundings?: Surroundings | null;
}
/** ``control``: may start, seek and so on; ``write``: may also save files and run programs. */
export interface Hello {
  kind: string;
  name: string;
  period: number;
  version: string;
  control: boolean;
  write: boolean;
  tiles: TilesText | null;
  chart: boolean;
}
/** An alarm; ``until`` null: still active. */
export interface Alarm {
  id: number;
  kind: string;
  name: string;
  row: number;
  text: string;
  since: number;
  until: number | null;
  seen: boolean;
}
/** An event in a log. */
export interface TimelineMark {
  time: number;
  kind: string;
  text: string;
}
export interface TrackText {
  time: number[];
  position: (number | null)[];
  believed_time: number[];
  believed: (number | null)[];
}
/**
 * Encounters of own ship (``row``). Own ship: domain radii in m. Each encounter: range in m, angles in rad, speed in
 * m/s, DCPA in m, TCPA in s, own role, and the positions of both vessels at that time.
 */
export interface Meeting {
  row: number;
  range: number;
  bearing: number;
  course: number;
  speed: number;
  dcpa: number;
  tcpa: number;
  role: string;
  own_at: [number, number];
  other_at: [number, number];
}
/** A tether, mooring or tow cable: nodes one after the other, W; ``broken``: a segment, -1 = none. */
export interface CableText {
  name: string;
  tension: number;
  broken: number;
  points: number[];
}
export interface TrafficText {
  row: number;
  time: number;
  length: number;
  least: number;
  preferred: number;
  others: Meeting[];
}
export interface Weather {
  weather: { current_W: number[]; wind_speed: number; wind_direction: number; level: number } | null;
  clients: (Client & { row: number })[];
  connected: number | null;
  replay?: { start: number; end: number; playing: boolean; speed: number; other: string };
}
export type Message =
  | ({ type: "hello" } & Hello)
  | { type: "scene"; scene: SceneText }
  | { type: "roster"; bodies: RosterEntry[] }
  // anew: these replace the whole list
  | { type: "sounds"; sent: Sent[]; receptions: Reception[]; notices: NoticeText[]; missed: number; anew?: boolean }
  | { type: "marks"; marks: TimelineMark[] }
  | { type: "tracks"; whole: boolean; bodies: Record<string, TrackText> }
  | { type: "alarms"; alarms: Alarm[] }
  | { type: "beliefs"; bodies: number[][] }
  | ({ type: "weather" } & Weather)
  | { type: "sea"; components: number[][] | null }
  | { type: "cables"; cables: CableText[] }
  | { type: "traffic"; row: number; traffic: TrafficText | null }
  | { type: "kit"; row: number; kit: Kit | null }
  | { type: "panel"; row: number; panel: Panel | null }
  // reason why a sonar has no image; the images shown belong to this epoch
  | { type: "picture"; row: number; name: string; trouble: string; epoch: number }
  | { type: "trouble"; text: string }
  | { type: "mishaps"; total: number; parts: Record<string, string> }
  | { type: "reply"; ok: boolean; text: string };

export function decodeFrame(data: ArrayBuffer): Frame | null {
  if (data.byteLength < HEAD) return null;
  const v = new DataView(data);
  if (v.getUint32(0, true) !== MAGIC) return null;
  const n = v.getUint32(48, true),
    m = v.getUint32(52, true);
  if (data.byteLength !== HEAD + 4 * (BODY_WIDTH * n + SIGNAL_WIDTH * m)) return null;
  return {
    state: v.getUint32(4, true),
    time: v.getFloat64(8, true),
    tick: v.getFloat64(16, true),
    speed: v.getFloat32(24, true),
    factor: v.getFloat32(28, true),
    lateness: v.getFloat32(32, true),
    latenessMax: v.getFloat32(36, true),
    late: v.getUint32(40, true),
    roster: v.getUint32(44, true),
    level: v.getFloat32(56, true),
    jumps: v.getUint32(60, true),
    bodies: new Float32Array(data, HEAD, BODY_WIDTH * n),
    signals: new Float32Array(data, HEAD + 4 * BODY_WIDTH * n, SIGNAL_WIDTH * m),
  };
}

/** A websocket that reconnects automatically. */
export class ViewerSocket {
  private socket: WebSocket | null = null;
  private tries = 0;
  frames = 0;

  constructor(
    private readonly onFrame: (frame: Frame) => void,
    private readonly onMessage: (message: Message) => void,
    private readonly onState: (connected: boolean) => void,
    private readonly onPicture: (picture: SonarImage) => void,
    private readonly onError: (part: string, error: unknown) => void,
  ) {
    this.open();
  }

  private open(): void {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.tries = 0;
      this.onState(true);
    };
    socket.onmessage = (event: MessageEvent<ArrayBuffer | string>) => {
      try {
        // one message that cannot be shown must not lose the next one
        if (typeof event.data === "string") this.onMessage(JSON.parse(event.data) as Message);
        else {
          const frame = decodeFrame(event.data),
            picture = frame ? null : decodeSonarImage(event.data);
          if (frame) {
            this.frames++;
            this.onFrame(frame);
          } else if (picture) this.onPicture(picture);
        }
      } catch (error) {
        this.onError("a message from the viewer's server", error);
      }
    };
    socket.onclose = () => {
      this.onState(false);
      window.setTimeout(() => this.open(), Math.min(500 * 2 ** this.tries++, 5000));
    };
    this.socket = socket;
  }

  send(message: unknown): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
  watch(row: number | null): void {
    this.send({ do: "watch", row });
  }
  pictures(sonars: [row: number, name: string][]): void {
    this.send({ do: "pictures", sonars });
  }
  fault(row: number, part: string, kind: string, amount: string, field: string): void {
    this.send({ do: "fault", row, part, kind, amount, field });
  }
  order(verb: string, row: number | null, values: Record<string, number | number[]>): void {
    this.send({ do: "order", verb, row, values });
  }
  drive(body: string, shares: (number | null)[] | null): void {
    this.send({ do: "drive", body, shares });
  }
  acknowledge(alarm: number | null): void {
    this.send({ do: "acknowledge", alarm });
  }
  control(verb: string, value?: number): void {
    this.send({ do: "control", verb, value: value ?? null });
  }
}
