// Bodies: one instanced shape per model, placed through the axes of coordinate_frames.ts. The selected body is drawn
// separately, with its moving
// parts.

import * as THREE from "three";
import { quaternionToThree, toThree } from "./coordinate_frames";
import { MovingParts } from "./moving_parts";
import { SOFTWARE_RENDERING } from "./canvas";
import { bodyGeometry, fleetMaterial } from "./body_shapes";
import type { SceneStore } from "./scene_store";
import type { ModelInfo } from "./page_protocol";

/** Number of bodies of a model from which each is drawn coarsely. */
const MANY = SOFTWARE_RENDERING ? 24 : 128;
const GENERIC: ModelInfo = {
  name: "",
  type: "underwater",
  title: "",
  source: "",
  validated: "",
  shape: { kind: "cylinder", size: [2, 0.2, 0.2] },
  appearance: "",
  mass: null,
  thrusters: [],
  fins: [],
  tanks: [],
  transducer: null,
};

interface Kind {
  model: ModelInfo;
  meshes: THREE.InstancedMesh[];
  rows: number[];
  capacity: number;
  size: number;
  own: boolean;
  coarse: boolean;
}

/** Meshes of all bodies. */
export class BodyMeshes {
  readonly group = new THREE.Group();
  heights = 1; // vertical exaggeration
  readonly moving = new MovingParts(); // the selected body
  private readonly kinds = new Map<string, Kind>();
  private readonly matrix = new THREE.Matrix4();
  private readonly q = new THREE.Quaternion();
  private readonly p = new THREE.Vector3();
  private readonly s = new THREE.Vector3();

  model(store: SceneStore, name: string): ModelInfo {
    return store.scene?.models[name] ?? GENERIC;
  }

  /** Drop all shapes: the scene has changed. */
  reset(): void {
    for (const kind of this.kinds.values())
      for (const m of kind.meshes) {
        this.group.remove(m);
        m.geometry.dispose();
        m.dispose();
      }
    this.kinds.clear();
    this.moving.reset();
  }

  private kind(store: SceneStore, name: string, count: number): Kind {
    let kind = this.kinds.get(name);
    // hysteresis: do not switch with every body that joins or leaves
    const coarse = store.rows.length >= (kind?.coarse ? MANY / 2 : MANY);
    if (kind && kind.capacity >= count + 1 && kind.coarse === coarse) return kind;
    const capacity = Math.max(16, 2 ** Math.ceil(Math.log2(count + 1)));
    const model = kind?.model ?? this.model(store, name);
    const old =
      kind && (kind.own || kind.coarse === coarse) ? kind.meshes.map((m) => [m.geometry, m.material] as const) : null;
    const parts = old ?? [[bodyGeometry(model, coarse), fleetMaterial] as const];
    for (const m of kind?.meshes ?? []) {
      this.group.remove(m);
      m.dispose();
    }
    const meshes = parts.map(([g, material]) => this.instanced(g, material, capacity, name));
    if (!kind && model.appearance) this.load(name).catch(() => undefined); // keep the primitive
    kind = { model, meshes, rows: [], capacity, size: model.shape.size[0], own: kind?.own ?? false, coarse };
    this.kinds.set(name, kind);
    return kind;
  }

  private instanced(
    g: THREE.BufferGeometry,
    material: THREE.Material | THREE.Material[],
    capacity: number,
    name: string,
  ): THREE.InstancedMesh {
    const mesh = new THREE.InstancedMesh(g, material, capacity);
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    mesh.frustumCulled = false;
    mesh.name = name;
    this.group.add(mesh);
    return mesh;
  }

  /**
   * Replace the primitive of a model by its glTF file as soon as it is loaded. A glTF model faces +z, so it is turned
   * around.
   */
  private async load(name: string): Promise<void> {
    const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
    const gltf = await new GLTFLoader().loadAsync(`/appearance/${encodeURIComponent(name)}`);
    const kind = this.kinds.get(name);
    if (!kind) return;
    const meshes: THREE.InstancedMesh[] = [];
    gltf.scene.updateMatrixWorld(true);
    gltf.scene.traverse((o) => {
      if (!(o instanceof THREE.Mesh)) return;
      const g = (o.geometry as THREE.BufferGeometry).clone().applyMatrix4(o.matrixWorld).rotateY(Math.PI);
      meshes.push(this.instanced(g, o.material as THREE.Material, kind.capacity, name));
    });
    for (const m of kind.meshes) {
      this.group.remove(m);
      m.geometry.dispose();
      m.dispose();
    }
    kind.meshes = meshes;
    kind.own = true;
  }

  /** Place every body; ``magnify`` gives the enlargement for a distance. */
  place(store: SceneStore, camera: THREE.Camera, magnify: (size: number, distance: number) => number, hide = -1): void {
    const groups = new Map<string, number[]>();
    const alone = store.kit?.row ?? -1; // drawn separately if its actuators are known
    let chosen: number | null = null;
    for (let k = 0; k < store.rows.length; k++) {
      const body = store.bodies.get(store.rows[k]!);
      if (!body || store.rows[k] === hide) continue;
      let list = groups.get(body.model);
      if (!list) groups.set(body.model, (list = []));
      if (store.rows[k] === alone) chosen = k;
      else list.push(k);
    }
    for (const [name, kind] of this.kinds) if (!groups.has(name)) for (const m of kind.meshes) m.count = 0;
    for (const [name, list] of groups) {
      const kind = this.kind(store, name, list.length);
      kind.rows = list.map((k) => store.rows[k]!);
      const put = (k: number, i: number): void => {
        this.pose(store, k, magnify(kind.size, this.at(store, k).distanceTo(camera.position)));
        for (const m of kind.meshes) m.setMatrixAt(i, this.matrix);
      };
      list.forEach(put);
      let count = list.length;
      if (chosen !== null && store.bodies.get(alone)?.model === name) {
        if (kind.own) {
          kind.rows.push(alone);
          put(chosen, count++);
        } // a glTF drawing has no known moving parts
        else this.pose(store, chosen, magnify(kind.size, this.at(store, chosen).distanceTo(camera.position)));
        this.moving.place(kind.model, !kind.own, this.p, this.q, this.s.x);
      }
      for (const m of kind.meshes) {
        m.count = count;
        m.instanceMatrix.needsUpdate = true;
        m.boundingSphere = null;
      }
    }
    this.moving.group.visible = chosen !== null;
  }

  private at(store: SceneStore, k: number): THREE.Vector3 {
    this.p.set(...toThree(store.ned[3 * k]!, store.ned[3 * k + 1]!, store.ned[3 * k + 2]!));
    this.p.y *= this.heights;
    return this.p;
  }

  private pose(store: SceneStore, k: number, scale: number): void {
    this.at(store, k);
    this.q.set(
      ...quaternionToThree(
        store.quaternion[4 * k]!,
        store.quaternion[4 * k + 1]!,
        store.quaternion[4 * k + 2]!,
        store.quaternion[4 * k + 3]!,
      ),
    );
    this.matrix.compose(this.p, this.q, this.s.setScalar(scale));
  }

  /** Row of the body under a ray, or null. */
  pick(ray: THREE.Raycaster, chosen: number | null): number | null {
    const hit = ray.intersectObjects(this.group.children, false)[0],
      own = this.moving.group.visible ? ray.intersectObject(this.moving.group, true)[0] : undefined;
    if (own && (!hit || own.distance < hit.distance)) return chosen;
    if (!hit || hit.instanceId === undefined) return null;
    return this.kinds.get(hit.object.name)?.rows[hit.instanceId] ?? null;
  }
}
