// Beams of the selected body's instruments, each from its transducer to the point it hit.

import * as THREE from "three";
import { quaternionToThree, toThree } from "./coordinate_frames";
import type { SceneStore } from "./scene_store";
import type { InstrumentInfo, SensorValue } from "./page_protocol";

const COLOURS = ["#5bd68a", "#ffd166", "#7fd8ff", "#ff9f68", "#b388ff"];
const RAYS = 512; // for all instruments of a body together

export class Beams {
  readonly group = new THREE.Group();
  count = 0; // beams drawn
  private readonly lines: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly ends: THREE.Points<THREE.BufferGeometry, THREE.PointsMaterial>;
  private met = 0;
  private readonly q = new THREE.Quaternion();
  private readonly p = new THREE.Vector3();
  private readonly from = new THREE.Vector3();
  private readonly along = new THREE.Vector3();
  private readonly side = new THREE.Vector3();
  private readonly tint = new THREE.Color();

  constructor() {
    const room = (points: number, size: number): THREE.BufferAttribute =>
      new THREE.BufferAttribute(new Float32Array(points * size), size).setUsage(THREE.DynamicDrawUsage);
    const lines = new THREE.BufferGeometry()
      .setAttribute("position", room(2 * RAYS, 3))
      .setAttribute("color", room(2 * RAYS, 4));
    const ends = new THREE.BufferGeometry()
      .setAttribute("position", room(RAYS, 3))
      .setAttribute("color", room(RAYS, 4));
    this.lines = new THREE.LineSegments(
      lines,
      new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }),
    );
    this.ends = new THREE.Points(
      ends,
      new THREE.PointsMaterial({
        vertexColors: true,
        transparent: true,
        size: 5,
        sizeAttenuation: false,
        depthWrite: false,
      }),
    );
    this.lines.frustumCulled = this.ends.frustumCulled = false;
    this.lines.renderOrder = this.ends.renderOrder = 5;
    this.group.add(this.lines, this.ends);
  }

  update(store: SceneStore, show: boolean): void {
    this.count = this.met = 0;
    const k = store.kit ? store.index.get(store.kit.row) : undefined,
      values = store.panel?.row === store.kit?.row ? store.panel?.sensors : undefined;
    if (show && k !== undefined && values) {
      this.p.set(...toThree(store.ned[3 * k]!, store.ned[3 * k + 1]!, store.ned[3 * k + 2]!));
      this.q.set(
        ...quaternionToThree(
          store.quaternion[4 * k]!,
          store.quaternion[4 * k + 1]!,
          store.quaternion[4 * k + 2]!,
          store.quaternion[4 * k + 3]!,
        ),
      );
      let colour = 0;
      for (const s of store.kit!.sensors)
        if (s.beams) {
          const v = values[s.name];
          if (v) this.add(s, v, COLOURS[colour % COLOURS.length]!);
          colour++;
        }
    }
    this.lines.geometry.setDrawRange(0, 2 * this.count);
    this.ends.geometry.setDrawRange(0, this.met);
    for (const o of [this.lines, this.ends])
      for (const a of ["position", "color"]) (o.geometry.getAttribute(a) as THREE.BufferAttribute).needsUpdate = true;
  }

  private add(s: InstrumentInfo, v: SensorValue, colour: string): void {
    const b = s.beams!,
      ranges = v.fields[b.field],
      angle = b.turning ? v.fields["angle"] : 0;
    if (typeof angle !== "number") return;
    const [lp, lc] = ["position", "color"].map((a) => this.lines.geometry.getAttribute(a) as THREE.BufferAttribute) as [
      THREE.BufferAttribute,
      THREE.BufferAttribute,
    ];
    const [ep, ec] = ["position", "color"].map((a) => this.ends.geometry.getAttribute(a) as THREE.BufferAttribute) as [
      THREE.BufferAttribute,
      THREE.BufferAttribute,
    ];
    this.tint.set(v.valid ? colour : "#9aa7b3");
    for (let i = 0; 6 * i < b.rays.length && this.count < RAYS; i++) {
      const r = b.rays.slice(6 * i, 6 * i + 6) as [number, number, number, number, number, number],
        range = Array.isArray(ranges) ? ranges[i] : ranges;
      this.from
        .set(...toThree(r[0], r[1], r[2]))
        .applyQuaternion(this.q)
        .add(this.p);
      this.along.set(...toThree(r[3], r[4], r[5]));
      if (b.turning)
        this.along
          .multiplyScalar(Math.cos(angle))
          .addScaledVector(this.side.set(...toThree(b.axis[0]!, b.axis[1]!, b.axis[2]!)), Math.sin(angle));
      if (!b.level) this.along.applyQuaternion(this.q);
      const met = typeof range === "number",
        strength = met && v.valid ? 0.75 : 0.13;
      lp.setXYZ(2 * this.count, this.from.x, this.from.y, this.from.z);
      this.from.addScaledVector(this.along, met ? range : b.maximum);
      lp.setXYZ(2 * this.count + 1, this.from.x, this.from.y, this.from.z);
      lc.setXYZW(2 * this.count, this.tint.r, this.tint.g, this.tint.b, strength);
      lc.setXYZW(2 * this.count + 1, this.tint.r, this.tint.g, this.tint.b, met ? strength : 0);
      if (met) {
        ep.setXYZ(this.met, this.from.x, this.from.y, this.from.z);
        ec.setXYZW(this.met++, this.tint.r, this.tint.g, this.tint.b, v.valid ? 1 : 0.4);
      }
      this.count++;
    }
  }
}
