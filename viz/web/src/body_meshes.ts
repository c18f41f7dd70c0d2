// Bodies: one instanced shape per model, placed through the axes of coordinate_frames.ts. The selected body is drawn
// separately, with its moving
// parts.

import * as THREE from "three";
import { quaternionToThree, toThree } from "./coordinate_frames";
import { MovingParts } from "./moving_parts";
import { SOFTWARE_RENDERING } from "./canvas";
import { bodyGeometry, bodyMaterial, fleetMaterial, mergeParts, partGeometry } from "./body_shapes";
import { toast } from "./dom";
import { disposeOwnMesh, loadOwnMesh, type OwnMesh, ownParts } from "./own_mesh";
import type { SceneStore } from "./scene_store";
import type { ModelInfo } from "./page_protocol";

/** Number of bodies of a model from which each is drawn coarsely. */
const MANY = SOFTWARE_RENDERING ? 24 : 128;
/** Number of triangles of all bodies of a model from which each is drawn as its shape instead of its glTF file. */
const MOST_TRIANGLES = SOFTWARE_RENDERING ? 400_000 : 2_000_000;
const GENERIC: ModelInfo = {
  name: "",
  type: "underwater",
  title: "",
  source: "",
  validated: "",
  shape: { kind: "cylinder", size: [2, 0.2, 0.2] },
  appearance: "",
  draw_parts: true,
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
  own: OwnMesh | null;
  coarse: boolean;
  /** Too many bodies to draw each as its glTF file. */
  heavy: boolean;
  /** Geometry that only these meshes use. */
  made: THREE.BufferGeometry[];
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

  /** ``environment``: makes what polished surfaces reflect; ``loaded``: called when the picture has changed. */
  constructor(
    private readonly environment: () => THREE.Texture,
    private readonly loaded: () => void,
  ) {}

  /** Drop all shapes: the scene has changed. */
  reset(): void {
    this.moving.reset();
    for (const kind of this.kinds.values()) {
      this.remove(kind);
      if (kind.own) disposeOwnMesh(kind.own);
    }
    this.kinds.clear();
  }

  private remove(kind: Kind): void {
    for (const m of kind.meshes) {
      this.group.remove(m);
      m.dispose();
    }
    for (const g of kind.made) g.dispose();
    kind.meshes = [];
    kind.made = [];
  }

  private kind(store: SceneStore, name: string, count: number): Kind {
    let kind = this.kinds.get(name);
    // hysteresis: do not switch with every body that joins or leaves
    const coarse = store.rows.length >= (kind?.coarse ? MANY / 2 : MANY),
      triangles = (kind?.own?.triangles ?? 0) * count,
      heavy = triangles > (kind?.heavy ? MOST_TRIANGLES / 2 : MOST_TRIANGLES);
    if (!kind) {
      const model = this.model(store, name),
        size = model.shape.size[0];
      kind = { model, meshes: [], rows: [], capacity: 0, size, own: null, coarse, heavy, made: [] };
      this.kinds.set(name, kind);
      if (model.appearance) void this.load(name, kind);
    }
    if (kind.meshes.length && kind.capacity >= count + 1 && kind.coarse === coarse && kind.heavy === heavy) return kind;
    this.remove(kind);
    Object.assign(kind, { coarse, heavy, capacity: Math.max(16, 2 ** Math.ceil(Math.log2(count + 1))) });
    this.build(name, kind);
    return kind;
  }

  private build(name: string, kind: Kind): void {
    const { model, own, coarse, capacity } = kind,
      add = (g: THREE.BufferGeometry, material: THREE.Material): void => {
        kind.meshes.push(this.instanced(g, material, capacity, name));
      },
      make = (g: THREE.BufferGeometry, material: THREE.Material): void => {
        kind.made.push(g);
        add(g, material);
      };
    if (!own || kind.heavy) {
      make(bodyGeometry(model, coarse), fleetMaterial);
      return;
    }
    for (const surfaces of [own.fixed, ...[...own.nodes.values()].map((n) => n.surfaces)])
      for (const s of surfaces) add(s.geometry, s.material);
    const { thrusters, fins } = ownParts(model, own),
      parts = partGeometry(
        model,
        thrusters.map((k) => model.thrusters[k]!),
        fins.map((k) => model.fins[k]!),
        coarse,
      );
    if (parts.length) make(mergeParts(parts), bodyMaterial);
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

  /** Replace the shape of a model by its glTF file as soon as it is loaded; if it cannot be drawn, keep the shape. */
  private async load(name: string, kind: Kind): Promise<void> {
    try {
      const own = await loadOwnMesh(kind.model, this.environment());
      if (this.kinds.get(name) !== kind) {
        disposeOwnMesh(own); // the scene has changed
        return;
      }
      kind.own = own;
      this.remove(kind);
      this.loaded();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      toast(`model ${name} is drawn as its shape: ${reason}`, true);
    }
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
      if (chosen !== null && store.bodies.get(alone)?.model === name) {
        this.pose(store, chosen, magnify(kind.size, this.at(store, chosen).distanceTo(camera.position)));
        this.moving.place(kind.model, kind.own, this.p, this.q, this.s.x);
      }
      for (const m of kind.meshes) {
        m.count = list.length;
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
