// Tracks in the 3D view: for a running server, segments added with each picture; for a log, whole lines drawn up to the
// current time.

import * as THREE from "three";
import { bodyColour } from "./dom";
import { toThree } from "./coordinate_frames";
import { SOFTWARE_RENDERING } from "./canvas";
import type { SceneStore } from "./scene_store";
import { INVALID } from "./page_protocol";

const MOST = 60000; // track segments of all bodies together
const MOST_POINTS = SOFTWARE_RENDERING ? 4000 : 200000; // track points of a log, all bodies together
const LONGEST = 200; // m: a longer move between two pictures is a jump

export class Trails {
  readonly group = new THREE.Group();
  private readonly trail: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly ends = new Map<number, [number, number, number]>();
  private readonly owners = new Uint32Array(MOST); // row of the body of each segment
  private pieces = 0;
  private jumps = 0; // jumps of time that the tracks know
  private uploaded = 0; // segments uploaded to the graphics processor
  /** All tracks of a log in one drawing: segments in the order of time, as pairs of indices. */
  private readonly log = new THREE.LineSegments(
    new THREE.BufferGeometry(),
    new THREE.LineBasicMaterial({ vertexColors: true, transparent: true }),
  );
  private times: number[] = []; // end of each segment of the log

  constructor(private readonly store: SceneStore) {
    const trail = new THREE.BufferGeometry();
    trail.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * MOST), 3));
    trail.setAttribute("color", new THREE.BufferAttribute(new Float32Array(6 * MOST), 3));
    trail.setDrawRange(0, 0);
    this.trail = new THREE.LineSegments(
      trail,
      new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.85 }),
    );
    this.trail.frustumCulled = this.log.frustumCulled = false;
    this.group.add(this.trail, this.log);
  }

  /** Add tracks from before this page was opened. */
  history(dark: boolean): void {
    this.ends.clear();
    this.jumps = this.store.jumps;
    this.pieces = 0;
    this.trail.geometry.setDrawRange(0, 0);
    this.whole(dark);
    for (const [row, track] of this.store.tracks) {
      if (track.whole) continue;
      for (let k = 0; k < track.time.length; k++)
        this.extend(row, [track.ned[3 * k]!, track.ned[3 * k + 1]!, track.ned[3 * k + 2]!], 0.6);
    }
    this.uploaded = -MOST; // the complete track
  }

  /** Draw all tracks in the colours of a theme. */
  theme(dark: boolean): void {
    this.whole(dark);
    for (let at = 0; at < Math.min(this.pieces, MOST); at++) this.tint(at);
    this.uploaded = -MOST;
  }

  /** Set the complete tracks of a log. */
  private whole(dark: boolean): void {
    const all = [...this.store.tracks.values()].reduce(
        (n, t) => n + (t.whole ? (t.ned.length + t.believed.length) / 3 : 0),
        0,
      ),
      stride = Math.max(1, Math.ceil(all / MOST_POINTS)),
      position: number[] = [],
      colour: number[] = [],
      segments: [end: number, a: number, b: number][] = [];
    for (const [row, track] of this.store.tracks) {
      if (!track.whole) continue;
      for (const [points, times, style, opacity] of [
        [track.ned, track.time, bodyColour(row), 0.9],
        [track.believed, track.believedTime, dark ? "#ffffff" : "#12283a", 0.75],
      ] as const) {
        const c = new THREE.Color(style);
        let before = -1;
        for (let k = 0; k < times.length; k++) {
          if (k % stride !== 0 && k !== times.length - 1) continue;
          if (!Number.isFinite(points[3 * k])) {
            before = -1; // a gap
            continue;
          }
          const at = position.length / 3;
          position.push(...toThree(points[3 * k]!, points[3 * k + 1]!, points[3 * k + 2]!));
          colour.push(c.r, c.g, c.b, opacity);
          if (before >= 0) segments.push([times[k]!, before, at]);
          before = at;
        }
      }
    }
    segments.sort((a, b) => a[0] - b[0]);
    this.times = segments.map(([end]) => end);
    this.log.geometry.dispose();
    this.log.geometry = new THREE.BufferGeometry();
    this.log.geometry.setAttribute("position", new THREE.Float32BufferAttribute(position, 3));
    this.log.geometry.setAttribute("color", new THREE.Float32BufferAttribute(colour, 4));
    this.log.geometry.setIndex(segments.flatMap(([, a, b]) => [a, b]));
  }

  update(visible: boolean): void {
    this.trail.visible = visible;
    this.log.visible = visible && this.times.length > 0;
    let a = 0,
      b = this.times.length;
    while (a < b) {
      const m = (a + b) >> 1;
      if (this.times[m]! <= this.store.time) a = m + 1;
      else b = m;
    }
    this.log.geometry.setDrawRange(0, 2 * a);
    if (this.store.hello?.kind === "replay") return;
    if (this.jumps !== this.store.jumps) this.ends.clear(); // no line back to an earlier time
    this.jumps = this.store.jumps;
    const least = this.store.rows.length > 200 ? 3 : 0.6;
    for (let k = 0; k < this.store.rows.length; k++)
      if (this.store.condition[k] !== INVALID)
        this.extend(
          this.store.rows[k]!,
          [this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!],
          least,
        );
    const n = this.pieces - this.uploaded;
    if (n <= 0) return;
    const from = this.uploaded < 0 ? 0 : this.uploaded % MOST;
    for (const a of this.parts()) {
      if (this.uploaded >= 0 && from + n <= MOST) a.addUpdateRange(6 * from, 6 * n);
      a.needsUpdate = true;
    }
    this.uploaded = this.pieces;
    this.trail.geometry.setDrawRange(0, 2 * Math.min(this.pieces, MOST));
  }

  private parts(): THREE.BufferAttribute[] {
    return ["position", "color"].map((n) => this.trail.geometry.getAttribute(n) as THREE.BufferAttribute);
  }

  /** Add a segment of a body's track when it is long enough. */
  private extend(row: number, to: [number, number, number], least: number): void {
    const from = this.ends.get(row);
    if (!from) {
      this.ends.set(row, to);
      return;
    }
    const far = Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
    if (!(far >= least)) return;
    this.ends.set(row, to);
    if (far > LONGEST || this.store.bodies.get(row)?.type === "buoy") return; // the body jumped, or only swings
    const at = this.pieces++ % MOST,
      positions = this.trail.geometry.getAttribute("position");
    positions.setXYZ(2 * at, ...toThree(...from));
    positions.setXYZ(2 * at + 1, ...toThree(...to));
    this.owners[at] = row;
    this.tint(at);
  }

  /** Set the colour of a segment to that of its body. */
  private tint(at: number): void {
    const { r, g, b } = new THREE.Color(bodyColour(this.owners[at]!)),
      colours = this.trail.geometry.getAttribute("color");
    for (const i of [0, 1]) colours.setXYZ(2 * at + i, r, g, b);
  }
}
