// The selected body with its moving parts: fins and nozzles turn, buckets come down, tanks fill; and the positions of
// its instruments.

import * as THREE from "three";
import { toThree } from "./coordinate_frames";
import {
  quaternionTowards,
  bodyMaterial,
  deflectorGeometry,
  finGeometry,
  finPosition,
  hullGeometry,
  mergeParts,
  thrusterGeometry,
} from "./body_shapes";
import type { BodyEquipment, BodyPanel, ModelInfo } from "./page_protocol";

const DOWN = (100 * Math.PI) / 180; // of a bucket, from lifted to full astern
const FOLLOW = 12; // 1/s: rate at which a part follows values received ten times per second

/** A part that rotates about an axis through its own position. */
interface Part {
  pivot: THREE.Object3D;
  axis: THREE.Vector3;
  base: THREE.Quaternion;
  angle: (value: number) => number;
}
interface Tank {
  fill: THREE.Mesh;
  height: number;
}

export class MovingParts {
  readonly group = new THREE.Group();
  readonly marks = new THREE.Group();
  private readonly shape = new THREE.Group();
  private readonly gauges = new THREE.Group();
  private readonly parts = new Map<string, Part>(); // kind and number -> part
  private readonly tanks: Tank[] = [];
  private model: ModelInfo | null = null;
  private kit: BodyEquipment | null = null;
  private values: number[] = [];
  private readonly turn = new THREE.Quaternion();

  constructor() {
    this.group.add(this.shape, this.gauges, this.marks);
    this.group.visible = false;
  }

  reset(): void {
    for (const g of [this.shape, this.gauges, this.marks]) {
      g.traverse((o) => {
        if (o instanceof THREE.Mesh) {
          (o.geometry as THREE.BufferGeometry).dispose();
          if (o.material !== bodyMaterial) (o.material as THREE.Material).dispose();
        }
      });
      g.clear();
    }
    this.parts.clear();
    this.tanks.length = 0;
    this.model = this.kit = null;
  }

  /** Place the body; ``whole``: with its hull. */
  place(model: ModelInfo, whole: boolean, p: THREE.Vector3, q: THREE.Quaternion, scale: number): void {
    if (model !== this.model) this.build(model);
    this.shape.visible = whole;
    this.group.position.copy(p);
    this.group.quaternion.copy(q);
    this.group.scale.setScalar(scale);
  }

  private build(model: ModelInfo): void {
    this.reset();
    this.model = model;
    this.shape.add(new THREE.Mesh(mergeParts(hullGeometry(model)), bodyMaterial));
    const down = new THREE.Vector3(...toThree(0, 0, 1)),
      still = new THREE.Quaternion();
    model.thrusters.forEach((t, k) => {
      const pivot = new THREE.Group();
      pivot.position.set(...toThree(t.position[0]!, t.position[1]!, t.position[2]!));
      pivot.add(new THREE.Mesh(mergeParts(thrusterGeometry(model, t)), bodyMaterial));
      if (t.swivel) this.parts.set(`angle ${k}`, { pivot, axis: down, base: still, angle: (v) => v });
      if (t.deflector) {
        const hinge = new THREE.Group(),
          base = quaternionTowards(t.direction);
        hinge.quaternion.copy(base);
        hinge.add(new THREE.Mesh(mergeParts([deflectorGeometry(model)]), bodyMaterial));
        pivot.add(hinge);
        this.parts.set(`deflector ${k}`, {
          pivot: hinge,
          axis: new THREE.Vector3(1, 0, 0),
          base,
          angle: (v) => ((1 - v) / 2) * DOWN,
        });
      }
      this.shape.add(pivot);
    });
    model.fins.forEach((f, k) => {
      const pivot = new THREE.Group(),
        chord = new THREE.Vector3(...toThree(f.chord[0]!, f.chord[1]!, f.chord[2]!)),
        normal = new THREE.Vector3(...toThree(f.normal[0]!, f.normal[1]!, f.normal[2]!));
      pivot.position.set(...toThree(...finPosition(model, f)));
      pivot.add(new THREE.Mesh(mergeParts([finGeometry(model, f)]), bodyMaterial));
      // the leading edge moves towards the normal
      this.parts.set(`fin ${k}`, { pivot, axis: chord.cross(normal).normalize(), base: still, angle: (v) => v });
      this.shape.add(pivot);
    });
    const small = Math.min(model.shape.size[1], model.shape.size[2]),
      radius = 0.13 * small,
      height = 0.62 * small;
    for (const t of model.tanks) {
      // a gauge that is visible through the hull
      const at = toThree(t.position[0]!, t.position[1]!, t.position[2]!),
        through = { depthTest: false, depthWrite: false, transparent: true };
      const glass = new THREE.Mesh(
        new THREE.CylinderGeometry(radius, radius, height, 20),
        new THREE.MeshBasicMaterial({ color: "#dfeaf2", opacity: 0.35, ...through }),
      );
      const fill = new THREE.Mesh(
        new THREE.CylinderGeometry(radius * 0.86, radius * 0.86, height, 20),
        new THREE.MeshBasicMaterial({ color: "#3fa7ff", opacity: 0.9, ...through }),
      );
      glass.position.set(...at);
      fill.position.set(...at);
      glass.renderOrder = 7;
      fill.renderOrder = 8;
      this.gauges.add(glass, fill);
      this.tanks.push({ fill, height });
    }
  }

  private mount(kit: BodyEquipment): void {
    this.kit = kit;
    this.values = kit.actuators.map((a) => a.rest);
    this.marks.traverse((o) => {
      if (o instanceof THREE.Mesh) (o.geometry as THREE.BufferGeometry).dispose();
    });
    this.marks.clear();
    const size = Math.max(...(this.model?.shape.size ?? [1])) * 0.012;
    for (const s of kit.sensors) {
      if (!s.position) continue;
      const mark = new THREE.Mesh(
        new THREE.SphereGeometry(size, 12, 8),
        new THREE.MeshBasicMaterial({ color: "#5bd68a", depthTest: false, transparent: true, opacity: 0.9 }),
      );
      mark.position.set(...toThree(s.position[0]!, s.position[1]!, s.position[2]!));
      mark.renderOrder = 9;
      mark.name = s.name;
      this.marks.add(mark);
    }
  }

  /** Move and fill all parts to the newest values. */
  update(kit: BodyEquipment, panel: BodyPanel | null, dt: number): void {
    if (!this.model) return;
    if (kit !== this.kit) this.mount(kit);
    const share = Math.min(1, FOLLOW * dt);
    kit.actuators.forEach((a, k) => {
      const target = panel?.actuation?.actual[k] ?? a.rest,
        v = (this.values[k] = this.values[k]! + share * (target - this.values[k]!));
      const part = this.parts.get(`${a.kind} ${a.part}`);
      if (part) part.pivot.quaternion.copy(part.base).multiply(this.turn.setFromAxisAngle(part.axis, part.angle(v)));
      const tank = a.kind === "ballast" ? this.tanks[a.part] : undefined;
      if (tank) {
        const full = Math.min(1, Math.max(0, (v - a.minimum) / Math.max(a.maximum - a.minimum, 1e-9))),
          place = this.model!.tanks[a.part]!.position;
        tank.fill.scale.y = Math.max(full, 1e-3);
        tank.fill.position.y = toThree(place[0]!, place[1]!, place[2]!)[1] - ((1 - full) * tank.height) / 2;
      }
    });
  }
}
