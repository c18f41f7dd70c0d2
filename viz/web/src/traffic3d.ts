// Traffic in the 3D view: ship domains and lines to the closest points of approach, on still water.

import * as THREE from "three";
import { bodyColour, cssVariable } from "./dom";
import { toThree } from "./coordinate_frames";
import { SOFTWARE_RENDERING } from "./canvas";
import type { SceneStore } from "./scene_store";
import { upcomingMeetings, dangerLevel, DANGER_COLOURS, timeLeft, MOST_DOMAINS } from "./traffic_list";

const ROUND = SOFTWARE_RENDERING ? 40 : 72; // segments of a circle
const LIFT = 0.3; // m above still water
const ROOM = 2 * (2 * ROUND * MOST_DOMAINS + 128); // points

export class Traffic3D {
  readonly lines: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private points = 0;
  private readonly tint = new THREE.Color();

  constructor(private readonly store: SceneStore) {
    const g = new THREE.BufferGeometry();
    for (const name of ["position", "color"])
      g.setAttribute(name, new THREE.BufferAttribute(new Float32Array(3 * ROOM), 3));
    this.lines = new THREE.LineSegments(
      g,
      new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.9, depthTest: false }),
    );
    this.lines.frustumCulled = false;
    this.lines.renderOrder = 8;
  }

  update(show: boolean): void {
    const t = this.store.traffic,
      own = t ? this.store.index.get(t.row) : undefined,
      down = -(this.store.last?.level ?? 0) - LIFT;
    this.lines.visible = show && t !== null && own !== undefined;
    if (!this.lines.visible || !t || own === undefined) return;
    this.points = 0;
    const tones = DANGER_COLOURS.map(cssVariable) as [string, string, string];
    const place = (k: number): [number, number] => [this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!];
    for (const m of t.others.slice(0, MOST_DOMAINS)) {
      const k = this.store.index.get(m.row);
      if (k === undefined) continue;
      this.circle(place(k), t.least, down, tones[0], 1);
      this.circle(place(k), t.preferred, down, tones[1], 2);
    }
    for (const m of upcomingMeetings(t)) {
      const k = this.store.index.get(m.row);
      if (k === undefined || timeLeft(m, this.store) <= 0) continue;
      this.line(place(own), m.own_at, down, bodyColour(t.row));
      this.line(place(k), m.other_at, down, bodyColour(m.row));
      this.line(m.own_at, m.other_at, down, tones[dangerLevel(m, t)]);
    }
    for (const name of ["position", "color"]) {
      const a = this.lines.geometry.getAttribute(name) as THREE.BufferAttribute;
      a.clearUpdateRanges();
      a.addUpdateRange(0, 3 * this.points);
      a.needsUpdate = true;
    }
    this.lines.geometry.setDrawRange(0, this.points);
  }

  /** Add a circle, or every n-th segment of it. */
  private circle([n, e]: [number, number], radius: number, down: number, tone: string, each: number): void {
    for (let k = 0; k < ROUND; k += each) {
      const [a, b] = [k, k + 1].map((i) => (i * 2 * Math.PI) / ROUND) as [number, number];
      this.line(
        [n + radius * Math.cos(a), e + radius * Math.sin(a)],
        [n + radius * Math.cos(b), e + radius * Math.sin(b)],
        down,
        tone,
      );
    }
  }

  private line(from: [number, number], to: [number, number], down: number, tone: string): void {
    if (this.points + 2 > ROOM) return;
    const [p, c] = ["position", "color"].map(
      (name) => this.lines.geometry.getAttribute(name) as THREE.BufferAttribute,
    ) as [THREE.BufferAttribute, THREE.BufferAttribute];
    this.tint.set(tone);
    for (const [n, e] of [from, to]) {
      p.setXYZ(this.points, ...toThree(n, e, down));
      c.setXYZ(this.points++, this.tint.r, this.tint.g, this.tint.b);
    }
  }
}
