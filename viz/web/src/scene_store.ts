// State of the page: the newest frames, drawn with motion between them; bodies present; tracks; signals.

import { Mosaic } from "./mosaic";
import { type Frame } from "./websocket";
import type { SeaState } from "./sea_state";
import {
  type Alarm,
  BODY_WIDTH,
  type BodyEquipment,
  type BodyPanel,
  type CableInfo,
  type FenceInfo,
  type EstimatesMessage,
  type FleetStatus,
  type HelloMessage,
  INVALID,
  type Notice,
  type RosterEntry,
  type Scene,
  type SentSignal,
  SIGNAL_WIDTH,
  type SignalReception,
  type TrackPoints,
  type Traffic,
  type WeatherReport,
} from "./page_protocol";

export interface BodyEntry {
  row: number;
  name: string;
  model: string;
  type: string;
  generation: number;
}

/** Track of one body, thinned when it grows long. */
export class Track {
  time: number[] = [];
  ned: number[] = []; // three numbers per point
  believedTime: number[] = [];
  believed: number[] = [];
  whole = false; // of a log: the whole track is known

  append(t: number, n: number, e: number, d: number): boolean {
    const k = this.time.length;
    if (k) {
      const far = Math.hypot(n - this.ned[3 * k - 3]!, e - this.ned[3 * k - 2]!, d - this.ned[3 * k - 1]!);
      if (t <= this.time[k - 1]! || (far < 0.5 && t - this.time[k - 1]! < 2) || far < 0.02) return false;
    }
    this.time.push(t);
    this.ned.push(n, e, d);
    if (this.time.length > 4000) thin(this.time, this.ned);
    return true;
  }
  believe(t: number, n: number, e: number, d: number): void {
    const k = this.believedTime.length;
    if (k && t - this.believedTime[k - 1]! < 0.4) return;
    this.believedTime.push(t);
    this.believed.push(n, e, d);
    if (k > 4000) thin(this.believedTime, this.believed);
  }
  /** The part of this track up to a time: another object, so that drawings of the whole track are recognised as old. */
  before(t: number): Track {
    const track = new Track(),
      [n, m] = [this.until(t), this.until(t, this.believedTime)];
    track.time = this.time.slice(0, n);
    track.ned = this.ned.slice(0, 3 * n);
    track.believedTime = this.believedTime.slice(0, m);
    track.believed = this.believed.slice(0, 3 * m);
    return track;
  }
  /** Number of points up to a time. */
  until(t: number, times = this.time): number {
    let a = 0,
      b = times.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (times[m]! <= t) a = m + 1;
      else b = m;
    }
    return a;
  }
}

function thin(times: number[], points: number[]): void {
  const keep = times.length >> 1;
  for (let k = 0; k < keep; k++) {
    times[k] = times[2 * k]!;
    for (let i = 0; i < 3; i++) points[3 * k + i] = points[6 * k + i]!;
  }
  times.length = keep;
  points.length = 3 * keep;
}

const MOST_EVENTS = 4000; // one minute with much acoustic traffic

export class SceneStore {
  hello: HelloMessage | null = null;
  scene: Scene | null = null;
  bodies = new Map<number, BodyEntry>();
  weather: WeatherReport | null = null;
  sea: SeaState | null = null; // of the simulation; null if unknown
  cables: CableInfo[] = [];
  fences: FenceInfo[] = []; // at the time that is drawn
  traffic: Traffic | null = null; // of the selected body
  panel: BodyPanel | null = null;
  kit: BodyEquipment | null = null; // equipment of the selected body
  beliefs = new Map<number, (number | null)[]>(); // position and standard deviations
  tracks = new Map<number, Track>();
  sent = new Map<number, SentSignal>();
  distances = new Map<string, number>(); // signal:receiver -> true distance of receptions
  events: (SentSignal | SignalReception)[] = [];
  notices: Notice[] = [];
  alarms: Alarm[] = [];
  fleet: FleetStatus = { charges: {}, missions: {} };
  readonly mosaic = new Mosaic();
  jumps = 0; // jumps of time between two frames
  lost = ""; // reason why no data arrive: the values shown are stale
  last: Frame | null = null;
  chosen: number | null = null;

  // state at the time that is drawn
  time = 0;
  rows = new Int32Array(0);
  ned = new Float32Array(0);
  quaternion = new Float32Array(0); // scalar first
  speed = new Float32Array(0);
  condition = new Uint8Array(0);
  spheres = new Float32Array(0); // as in a frame, with the radius at the drawn time
  index = new Map<number, number>(); // row -> index in these arrays

  private readonly good = new Map<number, Float32Array>(); // last position and attitude of each body
  private readonly past = new Map<number, string>(); // names of bodies that left
  private before: Frame | null = null;
  private places = new Map<number, number>();
  private arrived = 0;
  private span = 50;

  frame(f: Frame): void {
    const now = performance.now();
    const jumped = this.last !== null && (f.jumps !== this.last.jumps || f.time < this.last.time);
    if (jumped) this.jumps++;
    if (jumped && this.hello?.kind !== "replay") this.cutTracks(f.time);
    this.before = jumped ? null : this.last;
    this.span = Math.min(Math.max(now - this.arrived, 8), 500);
    this.arrived = now;
    this.last = f;
    this.places.clear();
    const b = this.before?.bodies;
    if (b) for (let k = 0; k < b.length / BODY_WIDTH; k++) this.places.set(b[k * BODY_WIDTH]!, k);
    for (let k = 0; k < f.bodies.length / BODY_WIDTH; k++) {
      const o = k * BODY_WIDTH,
        row = f.bodies[o]!;
      if (f.bodies[o + 9] === INVALID) {
        // a frozen body keeps its last pose
        f.bodies.set(this.good.get(row) ?? [0, 0, 0, 1, 0, 0, 0], o + 1);
        f.bodies[o + 8] = NaN;
        continue;
      }
      this.good.set(row, f.bodies.slice(o + 1, o + 8));
      this.track(row).append(f.time, f.bodies[o + 1]!, f.bodies[o + 2]!, f.bodies[o + 3]!);
    }
  }

  private cutTracks(time: number): void {
    for (const [row, track] of this.tracks) this.tracks.set(row, track.before(time));
  }

  /** Discard everything that is later than a time, because the simulation has returned to it. */
  discardAfter(time: number): void {
    this.cutTracks(time);
    this.events = this.events.filter((e) => e.time < time); // those at this time occur again
    this.notices = this.notices.filter((n) => n.time < time);
    for (const [id, s] of this.sent) if (s.time >= time) this.sent.delete(id);
    this.distances.clear(); // numbers of signals are used again
    for (const e of this.events) if ("receiver" in e) this.measure(e);
  }

  private measure(r: SignalReception): void {
    if (r.outcome === 0 && r.distance !== null) this.distances.set(`${r.id}:${r.receiver}`, r.distance);
  }

  /** True if a signal went from one buoy to another. */
  betweenBuoys({ source, receiver }: SignalReception): boolean {
    return [source, receiver].every((row) => this.bodies.get(row)?.type === "buoy");
  }

  /** Time in s since the newest frame arrived. */
  age(): number {
    return this.last ? (performance.now() - this.arrived) * 1e-3 : 0;
  }

  /** Row of a body that is in the simulation. */
  rowOf(name: string): number | undefined {
    for (const b of this.bodies.values()) if (b.name === name) return b.row;
    return undefined;
  }

  /** Where a body is now; before it joins, where its configuration puts it. */
  placeOf(name: string): [north: number, east: number, depth: number] | null {
    const k = this.index.get(this.rowOf(name) ?? -1),
      p =
        k === undefined
          ? this.scene?.bodies.find((b) => b.name === name)?.position
          : this.ned.subarray(3 * k, 3 * k + 3);
    return p && Number.isFinite(p[0]) ? [p[0]!, p[1]!, p[2]!] : null;
  }

  track(row: number): Track {
    let track = this.tracks.get(row);
    if (!track) this.tracks.set(row, (track = new Track()));
    return track;
  }

  roster(entries: RosterEntry[]): { joined: string[]; left: string[] } {
    const old = this.bodies;
    this.bodies = new Map(
      entries.map(([row, name, model, type, generation]) => [row, { row, name, model, type, generation }]),
    );
    const joined: string[] = [],
      left: string[] = [];
    for (const [row, b] of this.bodies) {
      const was = old.get(row);
      if (!was || was.generation !== b.generation || was.name !== b.name) {
        joined.push(b.name);
        if (this.hello?.kind !== "replay") this.tracks.delete(row);
      }
    }
    for (const [row, b] of old)
      if (!this.bodies.has(row)) {
        left.push(b.name);
        this.past.set(row, b.name);
        this.beliefs.delete(row);
      }
    return { joined, left };
  }

  /** Interpolate all states between the last two frames. */
  now(): void {
    const f = this.last;
    if (!f) return;
    const a = this.before ? Math.min((performance.now() - this.arrived) / this.span, 1) : 1;
    const n = f.bodies.length / BODY_WIDTH,
      b = this.before?.bodies;
    if (this.rows.length !== n) {
      this.rows = new Int32Array(n);
      this.ned = new Float32Array(3 * n);
      this.quaternion = new Float32Array(4 * n);
      this.speed = new Float32Array(n);
      this.condition = new Uint8Array(n);
    }
    this.index.clear();
    // exactly the time of the frame at the end: rounding would keep the picture from ever settling
    this.time = this.before && a < 1 ? this.before.time + a * (f.time - this.before.time) : f.time;
    for (let k = 0; k < n; k++) {
      const o = k * BODY_WIDTH,
        row = f.bodies[o]!;
      this.rows[k] = row;
      this.index.set(row, k);
      this.speed[k] = f.bodies[o + 8]!;
      this.condition[k] = f.bodies[o + 9]!;
      const was = b ? this.places.get(row) : undefined;
      if (was === undefined || a >= 1) {
        for (let i = 0; i < 3; i++) this.ned[3 * k + i] = f.bodies[o + 1 + i]!;
        for (let i = 0; i < 4; i++) this.quaternion[4 * k + i] = f.bodies[o + 4 + i]!;
        continue;
      }
      const p = was * BODY_WIDTH;
      for (let i = 0; i < 3; i++) this.ned[3 * k + i] = b![p + 1 + i]! + a * (f.bodies[o + 1 + i]! - b![p + 1 + i]!);
      let dot = 0;
      for (let i = 0; i < 4; i++) dot += b![p + 4 + i]! * f.bodies[o + 4 + i]!;
      const sign = dot < 0 ? -1 : 1;
      let size = 0;
      for (let i = 0; i < 4; i++) {
        const q = b![p + 4 + i]! * (1 - a) + sign * a * f.bodies[o + 4 + i]!;
        this.quaternion[4 * k + i] = q;
        size += q * q;
      }
      size = Math.sqrt(size) || 1;
      for (let i = 0; i < 4; i++) this.quaternion[4 * k + i]! /= size;
    }
    this.spheres = f.signals.slice();
    const back = (f.time - this.time) * (this.scene?.sound.speed ?? 1500);
    for (let k = 0; k < this.spheres.length / SIGNAL_WIDTH; k++)
      this.spheres[k * SIGNAL_WIDTH + 5] = Math.max(0, this.spheres[k * SIGNAL_WIDTH + 5]! - back);
  }

  /** True while the picture moves between the last two frames. */
  moving(): boolean {
    return this.before !== null && performance.now() - this.arrived < this.span + 50;
  }

  /** True if the last frame is drawn without interpolation. */
  settled(): boolean {
    return this.last === null || this.time === this.last.time;
  }

  /** Take tracks from before this page was opened; for a log, complete tracks. */
  history(bodies: Record<string, TrackPoints>, whole: boolean): void {
    this.tracks.clear();
    for (const [row, t] of Object.entries(bodies)) {
      const track = this.track(Number(row)),
        hole = (v: number | null): number => v ?? NaN;
      Object.assign(track, {
        time: t.time,
        ned: t.position.map(hole),
        believedTime: t.believed_time,
        believed: t.believed.map(hole),
        whole,
      });
      if (whole) track.append = () => false;
    }
  }

  sounds(sent: SentSignal[], receptions: SignalReception[], notices: Notice[], anew: boolean): void {
    if (anew) {
      this.events = [];
      this.notices = [];
    }
    this.notices.push(...notices);
    if (this.notices.length > 500) this.notices.splice(0, this.notices.length - 500);
    for (const s of sent) this.sent.set(s.id, s);
    if (this.sent.size > 4000) for (const id of [...this.sent.keys()].slice(0, 2000)) this.sent.delete(id);
    for (const r of receptions) this.measure(r);
    if (this.distances.size > 8000)
      for (const key of [...this.distances.keys()].slice(0, 4000)) this.distances.delete(key);
    this.events.push(...sent, ...receptions);
    if (this.events.length > MOST_EVENTS) this.events.splice(0, this.events.length - MOST_EVENTS);
  }

  believe(entries: EstimatesMessage["bodies"]): void {
    this.beliefs = new Map(entries.map((e) => [e[0]!, e.slice(1)]));
    if (this.hello?.kind === "replay") return;
    for (const e of entries)
      if (Number.isFinite(e[1])) this.track(e[0]!).believe(this.last?.time ?? 0, e[1]!, e[2]!, e[3]!);
  }

  name(row: number): string {
    return this.bodies.get(row)?.name ?? this.past.get(row) ?? `row ${row}`;
  }
}

export const OUTCOMES = [
  "received",
  "below threshold",
  "faded",
  "out of band",
  "transmitting",
  "recharging",
  "receiver left",
  "not sent",
  "collision",
  "blocked",
  "shadow",
  "echo",
  "dropped",
  "corrupt",
  "foreign",
];
/** Losses that carry no information: out of range, or no receiver was active. */
export const INAUDIBLE_OUTCOMES = new Set([2, 3, 11]);
export const SIGNAL_KINDS = ["pulse", "data", "range request", "range reply", "sound"];
export const RANGE_KINDS = new Set([2, 3]); // range request and reply
export const RUN_STATES = ["stopped", "running", "paused", "ended"];
