// Tracks in the 3D view: for a running server, segments added with each picture; for a log, whole lines drawn up to the
// current time.

import * as THREE from "three";
import { bodyColour } from "./dom";
import { toThree } from "./coordinate_frames";
import { SOFTWARE_RENDERING } from "./canvas";
import type { SceneStore } from "./scene_store";
import { INVALID } from "./page_protocol";

const MOST = 60000; // track segments of all bodies together
const MOST_POINTS = SOFTWARE_RENDERING ? 12000 : 200000; // track points of a log, all bodies together
const LONGEST = 200; // m: a longer move between two pictures is a jump

export class Trails {
  readonly group = new THREE.Group();
  private readonly trail: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly ends = new Map<number, [number, number, number]>();
  private pieces = 0;
  private uploaded = 0; // segments uploaded to the graphics processor
  private tracks: THREE.Line[] = [];

  constructor(private readonly store: SceneStore) {
    const trail = new THREE.BufferGeometry();
    trail.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * MOST), 3));
    trail.setAttribute("color", new THREE.BufferAttribute(new Float32Array(6 * MOST), 3));
    trail.setDrawRange(0, 0);
    this.trail = new THREE.LineSegments(
      trail,
      new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.85 }),
    );
    this.trail.frustumCulled = false;
    this.group.add(this.trail);
  }

  /** Add tracks from before this page was opened. */
  history(dark: boolean): void {
    this.ends.clear();
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

  /** Set the complete tracks of a log. */
  private whole(dark: boolean): void {
    for (const line of this.tracks) {
      this.group.remove(line);
      line.geometry.dispose();
    }
    this.tracks = [];
    const all = [...this.store.tracks.values()].reduce(
        (n, t) => n + (t.whole ? (t.ned.length + t.believed.length) / 3 : 0),
        0,
      ),
      stride = Math.max(1, Math.ceil(all / MOST_POINTS));
    for (const [row, track] of this.store.tracks) {
      if (!track.whole) continue;
      for (const [points, times, c, opacity] of [
        [track.ned, track.time, bodyColour(row), 0.9],
        [track.believed, track.believedTime, dark ? "#ffffff" : "#12283a", 0.75],
      ] as const) {
        const kept = times.map((_, k) => k).filter((k) => k % stride === 0 || k === times.length - 1);
        if (kept.length < 2) continue; // an empty draw costs as much as a short line
        const position = new Float32Array(
          kept.flatMap((k) => toThree(points[3 * k]!, points[3 * k + 1]!, points[3 * k + 2]!)),
        );
        const g = new THREE.BufferGeometry();
        g.setAttribute("position", new THREE.BufferAttribute(position, 3));
        const line = new THREE.Line(g, new THREE.LineBasicMaterial({ color: c, transparent: true, opacity }));
        line.frustumCulled = false;
        line.userData = { times: kept.map((k) => times[k]!) };
        this.tracks.push(line);
        this.group.add(line);
      }
    }
  }

  update(visible: boolean): void {
    this.trail.visible = visible;
    for (const line of this.tracks) {
      line.visible = visible;
      const times = line.userData["times"] as number[];
      let a = 0,
        b = times.length;
      while (a < b) {
        const m = (a + b) >> 1;
        if (times[m]! <= this.store.time) a = m + 1;
        else b = m;
      }
      line.geometry.setDrawRange(0, a);
    }
    if (this.store.hello?.kind === "replay") return;
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
      tint = new THREE.Color(bodyColour(row)),
      [p, c] = this.parts() as [THREE.BufferAttribute, THREE.BufferAttribute];
    p.setXYZ(2 * at, ...toThree(...from));
    p.setXYZ(2 * at + 1, ...toThree(...to));
    for (const i of [0, 1]) c.setXYZ(2 * at + i, tint.r, tint.g, tint.b);
  }
}
