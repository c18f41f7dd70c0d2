// The selected body with its moving parts: propellers spin, fins and nozzles turn, buckets come down, tanks fill; and the
// positions of its instruments. The parts are those of a glTF file or, where it has none, those of body_shapes.ts.

import * as THREE from "three";
import { toThree } from "./coordinate_frames";
import {
  quaternionTowards,
  bodyMaterial,
  deflectorGeometry,
  ductGeometry,
  finGeometry,
  finPosition,
  hullGeometry,
  mergeParts,
  propellerGeometry,
  propellerRadius,
} from "./body_shapes";
import { type OwnMesh, type OwnNode, type OwnSurface, ownParts, pivotOf, sweptDisc } from "./own_mesh";
import type { BodyEquipment, BodyPanel, FinInfo, ModelInfo, ThrusterInfo } from "./page_protocol";

const DOWN = (100 * Math.PI) / 180; // of a bucket, from lifted to full astern
const FOLLOW = 12; // 1/s: rate at which a part follows values received ten times per second
const BLUR = 0.3; // opacity of the disc that a fast propeller sweeps
const STILL = new THREE.Quaternion();
const AHEAD = new THREE.Vector3(0, 0, 1); // of a circle of three.js
const STARBOARD = new THREE.Vector3(1, 0, 0);
const BELOW = vector([0, 0, 1]);

function vector(b: number[]): THREE.Vector3 {
  return new THREE.Vector3(...toThree(b[0]!, b[1]!, b[2]!));
}

/** A part that rotates about an axis through its own position. */
interface Part {
  pivot: THREE.Object3D;
  axis: THREE.Vector3;
  base: THREE.Quaternion;
  angle: (value: number) => number;
}
/** A propeller, and the disc that it sweeps. */
interface Propeller {
  pivot: THREE.Object3D;
  axis: THREE.Vector3;
  disc: THREE.Mesh<THREE.CircleGeometry, THREE.MeshBasicMaterial>;
}
interface Tank {
  fill: THREE.Mesh;
  height: number;
}
/** A way in which a node of a glTF file moves. */
type Motion = { key: string; axis: THREE.Vector3; angle: (value: number) => number } | { propeller: number };

/** Angle of a bucket for its value: 1 is lifted, -1 full astern. */
function bucketAngle(value: number): number {
  return ((1 - value) / 2) * DOWN;
}

/** Axis about which a fin turns: its leading edge moves towards the normal. */
function finAxis(f: FinInfo): THREE.Vector3 {
  return vector(f.chord).cross(vector(f.normal)).normalize();
}

/** Share of the blur of a propeller: none if it is drawn at its true speed. */
export function blurShare(unit: string, value: number, limit: number, drawn: number): number {
  if (unit === "N") return Math.min(1, Math.abs(value) / Math.max(limit, 1e-9));
  return Math.abs(value) > 1e-9 ? Math.max(0, 1 - Math.abs(drawn / value)) : 0;
}

export class MovingParts {
  readonly group = new THREE.Group();
  readonly marks = new THREE.Group();
  private readonly shape = new THREE.Group();
  private readonly gauges = new THREE.Group();
  private readonly parts = new Map<string, Part[]>(); // by kind and number of the actuator
  private readonly propellers = new Map<number, Propeller[]>(); // by number of the thruster
  private readonly tanks: Tank[] = [];
  private model: ModelInfo | null = null;
  private own: OwnMesh | null = null;
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
        if (!(o instanceof THREE.Mesh) || o.userData["shared"]) return;
        (o.geometry as THREE.BufferGeometry).dispose();
        if (o.material !== bodyMaterial) (o.material as THREE.Material).dispose();
      });
      g.clear();
    }
    this.parts.clear();
    this.propellers.clear();
    this.tanks.length = 0;
    this.model = this.kit = this.own = null;
  }

  /** Place the body; ``own``: its glTF file, if it has one. */
  place(model: ModelInfo, own: OwnMesh | null, p: THREE.Vector3, q: THREE.Quaternion, scale: number): void {
    if (model !== this.model || own !== this.own) this.build(model, own);
    this.group.position.copy(p);
    this.group.quaternion.copy(q);
    this.group.scale.setScalar(scale);
  }

  private build(model: ModelInfo, own: OwnMesh | null): void {
    this.reset();
    this.model = model;
    this.own = own;
    if (own) this.addOwn(model, own);
    else this.shape.add(new THREE.Mesh(mergeParts(hullGeometry(model)), bodyMaterial));
    const drawn = ownParts(model, own);
    for (const k of drawn.thrusters) this.addThruster(model, model.thrusters[k]!, k);
    for (const k of drawn.fins) this.addFin(model, model.fins[k]!, k);
    this.addTanks(model);
  }

  private register(key: string, part: Part): void {
    this.parts.set(key, [...(this.parts.get(key) ?? []), part]);
  }

  private addPropeller(k: number, pivot: THREE.Group, axis: THREE.Vector3, radius: number, middle: number): void {
    const material = new THREE.MeshBasicMaterial({
      color: "#b9c4cc",
      transparent: true,
      opacity: 0,
      depthWrite: false,
      side: THREE.DoubleSide,
    });
    const disc = new THREE.Mesh(new THREE.CircleGeometry(Math.max(radius, 1e-3), 40), material);
    disc.quaternion.setFromUnitVectors(AHEAD, axis);
    disc.position.copy(axis).multiplyScalar(middle);
    disc.visible = false;
    pivot.add(disc);
    this.propellers.set(k, [...(this.propellers.get(k) ?? []), { pivot, axis, disc }]);
  }

  // -- parts of a glTF file --

  private addOwn(model: ModelInfo, own: OwnMesh): void {
    const add = (to: THREE.Object3D, surfaces: OwnSurface[], origin: THREE.Vector3): void => {
      for (const s of surfaces) {
        const mesh = new THREE.Mesh(s.geometry, s.material);
        mesh.position.copy(origin).negate();
        mesh.userData["shared"] = true; // with the other bodies of the model
        to.add(mesh);
      }
    };
    const middle = new THREE.Vector3(),
      placed = new Map<string, { pivot: THREE.Object3D; at: THREE.Vector3 }>();
    add(this.shape, own.fixed, middle);
    for (const node of own.nodes.values()) {
      // those above come first
      const above = placed.get(node.parent) ?? { pivot: this.shape, at: middle },
        { motions, position } = this.motions(model, own, node),
        at = pivotOf(node, position);
      let holder = above.pivot,
        offset = at.clone().sub(above.at);
      for (const motion of motions) {
        const pivot = new THREE.Group();
        pivot.position.copy(offset);
        holder.add(pivot);
        if ("propeller" in motion) {
          const axis = vector(model.thrusters[motion.propeller]!.direction).normalize(),
            { radius, middle: along } = sweptDisc(node, at, axis);
          this.addPropeller(motion.propeller, pivot, axis, radius, along);
        } else this.register(motion.key, { pivot, axis: motion.axis, base: STILL, angle: motion.angle });
        offset = new THREE.Vector3();
        holder = pivot;
      }
      add(holder, node.surfaces, at);
      placed.set(node.name, { pivot: holder, at });
    }
  }

  /** How a node moves relative to the node above it, and the position of its actuator. */
  private motions(model: ModelInfo, own: OwnMesh, node: OwnNode): { motions: Motion[]; position: THREE.Vector3 } {
    const fin = model.fins.findIndex((f) => f.name === node.name);
    if (fin >= 0) {
      const f = model.fins[fin]!;
      return {
        motions: [{ key: `fin ${fin}`, axis: finAxis(f), angle: (v) => v }],
        position: vector(f.position),
      };
    }
    const k = model.thrusters.findIndex((t) => [t.name, `${t.name}-angle`, `${t.name}-deflector`].includes(node.name)),
      t = model.thrusters[k]!,
      motions: Motion[] = [];
    let turned = false; // by a node above
    for (let up = own.nodes.get(node.parent); up; up = own.nodes.get(up.parent))
      turned ||= up.name === `${t.name}-angle`;
    if (t.swivel && !turned) motions.push({ key: `angle ${k}`, axis: BELOW, angle: (v) => v });
    if (node.name === t.name) motions.push({ propeller: k });
    else if (node.name === `${t.name}-deflector`)
      motions.push({
        key: `deflector ${k}`,
        axis: STARBOARD.clone().applyQuaternion(quaternionTowards(t.direction)),
        angle: bucketAngle,
      });
    return { motions, position: vector(t.position) };
  }

  // -- parts of body_shapes.ts --

  private addThruster(model: ModelInfo, t: ThrusterInfo, k: number): void {
    const pivot = new THREE.Group(),
      propeller = new THREE.Group();
    pivot.position.copy(vector(t.position));
    pivot.add(new THREE.Mesh(mergeParts(ductGeometry(model, t)), bodyMaterial), propeller);
    propeller.add(new THREE.Mesh(mergeParts([propellerGeometry(model, t)]), bodyMaterial));
    this.addPropeller(k, propeller, vector(t.direction).normalize(), propellerRadius(model), 0);
    if (t.swivel) this.register(`angle ${k}`, { pivot, axis: BELOW, base: STILL, angle: (v) => v });
    if (t.deflector) {
      const hinge = new THREE.Group(),
        base = quaternionTowards(t.direction);
      hinge.quaternion.copy(base);
      hinge.add(new THREE.Mesh(mergeParts([deflectorGeometry(model)]), bodyMaterial));
      pivot.add(hinge);
      this.register(`deflector ${k}`, { pivot: hinge, axis: STARBOARD, base, angle: bucketAngle });
    }
    this.shape.add(pivot);
  }

  private addFin(model: ModelInfo, f: FinInfo, k: number): void {
    const pivot = new THREE.Group();
    pivot.position.copy(vector(finPosition(model, f)));
    pivot.add(new THREE.Mesh(mergeParts([finGeometry(model, f)]), bodyMaterial));
    this.register(`fin ${k}`, { pivot, axis: finAxis(f), base: STILL, angle: (v) => v });
    this.shape.add(pivot);
  }

  private addTanks(model: ModelInfo): void {
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

  /** Move and fill all parts to the newest values; ``time``: simulation time that is drawn. */
  update(kit: BodyEquipment, panel: BodyPanel | null, dt: number, time: number): void {
    if (!this.model) return;
    if (kit !== this.kit) this.mount(kit);
    const share = Math.min(1, FOLLOW * dt);
    kit.actuators.forEach((a, k) => {
      const target = panel?.actuation?.actual[k] ?? a.rest,
        v = (this.values[k] = this.values[k]! + share * (target - this.values[k]!));
      for (const part of this.parts.get(`${a.kind} ${a.part}`) ?? [])
        part.pivot.quaternion.copy(part.base).multiply(this.turn.setFromAxisAngle(part.axis, part.angle(v)));
      if (a.kind === "thruster") {
        const rate = panel?.actuation?.turn_rates[k] ?? 0,
          turns = (panel?.actuation?.turns[k] ?? 0) + rate * (time - (panel?.time ?? time)),
          blur = blurShare(a.unit, target, Math.max(Math.abs(a.minimum), Math.abs(a.maximum)), rate);
        for (const { pivot, axis, disc } of this.propellers.get(a.part) ?? []) {
          pivot.quaternion.setFromAxisAngle(axis, 2 * Math.PI * turns);
          disc.material.opacity = BLUR * blur;
          disc.visible = blur > 0.05;
        }
      }
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
