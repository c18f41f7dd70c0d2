// Bodies: a shape for each model, drawn for all its bodies at once; frame B through the map of frames.ts.

import * as THREE from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { quaternionToThree, toThree } from "./frames";
import type { ModelLook } from "./link";
import type { Store } from "./store";

const HULL: Record<string, string> = { underwater: "#ffc933", surface: "#f4f6f8", buoy: "#ff7a2f" };

function painted(geometry: THREE.BufferGeometry, colour: string): THREE.BufferGeometry {
  const g = geometry.index ? geometry.toNonIndexed() : geometry;
  const c = new THREE.Color(colour), n = g.getAttribute("position").count, data = new Float32Array(3 * n);
  for (let k = 0; k < n; k++) data.set([c.r, c.g, c.b], 3 * k);
  g.setAttribute("color", new THREE.BufferAttribute(data, 3));
  g.deleteAttribute("uv");
  return g;
}

/** Turn geometry made along its y axis so that y points along a direction of B, and put it at a place of B. */
function placed(g: THREE.BufferGeometry, position: number[], direction: number[]): THREE.BufferGeometry {
  const d = new THREE.Vector3(...toThree(direction[0]!, direction[1]!, direction[2]!)).normalize();
  g.applyQuaternion(new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 1, 0), d));
  g.translate(...toThree(position[0]!, position[1]!, position[2]!));
  return g;
}

function torpedo(length: number, radius: number, around: number): THREE.BufferGeometry[] {
  const nose = Math.min(radius * 2.2, length * 0.2), tail = Math.min(radius * 4.5, length * 0.28);
  const profile: THREE.Vector2[] = [];
  const along = around / 3;
  for (let k = 0; k <= along; k++) { // tail, from behind
    const x = k / along;
    profile.push(new THREE.Vector2(radius * (0.12 + 0.88 * Math.sin((x * Math.PI) / 2) ** 0.8), -length / 2 + tail * x));
  }
  for (let k = 0; k <= along; k++) {
    const a = (k / along) * (Math.PI / 2);
    profile.push(new THREE.Vector2(Math.max(radius * Math.cos(a), 1e-4), length / 2 - nose + nose * Math.sin(a)));
  }
  const parts = [painted(new THREE.LatheGeometry(profile, around), HULL["underwater"]!)];
  for (const at of [0.16, -0.12]) {
    const band = new THREE.CylinderGeometry(radius * 1.006, radius * 1.006, length * 0.025, around, 1, true);
    band.translate(0, length * at, 0);
    parts.push(painted(band, "#1c2b38"));
  }
  return parts.map((g) => placed(g, [0, 0, 0], [1, 0, 0]));
}

function boat(length: number, width: number, height: number): THREE.BufferGeometry[] {
  const outline = new THREE.Shape();
  const w = width / 2, l = length / 2;
  outline.moveTo(-w, -l);
  outline.lineTo(w, -l);
  outline.lineTo(w, l * 0.35);
  outline.quadraticCurveTo(w * 0.9, l * 0.8, 0, l);
  outline.quadraticCurveTo(-w * 0.9, l * 0.8, -w, l * 0.35);
  outline.closePath();
  const hull = new THREE.ExtrudeGeometry(outline, { depth: height, bevelEnabled: false, curveSegments: 10 });
  hull.translate(0, 0, -height / 2); // x starboard, y forward, z up
  hull.rotateX(-Math.PI / 2); // forward -> -z, up -> y
  const cabin = new THREE.BoxGeometry(width * 0.55, height * 0.7, length * 0.24);
  cabin.translate(0, height * 0.85, length * 0.1);
  const mast = new THREE.CylinderGeometry(width * 0.025, width * 0.03, height * 2.2, 8);
  mast.translate(0, height * 1.7, length * 0.12);
  const deck = new THREE.BoxGeometry(width * 0.8, height * 0.04, length * 0.55);
  deck.translate(0, height * 0.52, length * 0.12);
  return [painted(hull, HULL["surface"]!), painted(cabin, "#d1495b"), painted(mast, "#33475a"), painted(deck, "#8fa3b3")];
}

function frame(length: number, width: number, height: number): THREE.BufferGeometry[] {
  const foam = new THREE.BoxGeometry(width * 0.96, height * 0.34, length * 0.92);
  foam.translate(0, height * 0.33, 0);
  const parts = [painted(foam, HULL["underwater"]!)];
  const t = Math.min(width, height) * 0.06;
  for (const side of [-1, 1]) {
    const skid = new THREE.BoxGeometry(t, t, length);
    skid.translate(side * (width / 2 - t), -height / 2 + t / 2, 0);
    parts.push(painted(skid, "#1c2b38"));
    const plate = new THREE.BoxGeometry(t * 0.5, height * 0.66, length * 0.9);
    plate.translate(side * (width / 2 - t), -height * 0.17, 0);
    parts.push(painted(plate, "#26394a"));
  }
  const tube = new THREE.CylinderGeometry(height * 0.2, height * 0.2, length * 0.75, 20);
  tube.rotateX(Math.PI / 2);
  tube.translate(0, -height * 0.1, 0);
  parts.push(painted(tube, "#dfe7ee"));
  const eye = new THREE.SphereGeometry(height * 0.17, 20, 14);
  eye.translate(0, -height * 0.1, -length * 0.38);
  parts.push(painted(eye, "#6fd3ff"));
  return parts;
}

function float(diameter: number): THREE.BufferGeometry[] {
  const r = diameter / 2;
  const ball = new THREE.SphereGeometry(r, 28, 20);
  const band = new THREE.CylinderGeometry(r * 1.01, r * 1.01, r * 0.22, 28, 1, true);
  const mast = new THREE.CylinderGeometry(r * 0.07, r * 0.07, r * 1.1, 8);
  mast.translate(0, r * 1.4, 0);
  const lamp = new THREE.SphereGeometry(r * 0.17, 12, 10);
  lamp.translate(0, r * 2, 0);
  return [painted(ball, HULL["buoy"]!), painted(band, "#ffffff"), painted(mast, "#33475a"), painted(lamp, "#ffe66d")];
}

/** The drawing of a model, in three's axes with its front to -z; coarse where there are many of it. */
export function geometry(model: ModelLook, coarse = false): THREE.BufferGeometry {
  const [l, w, d] = model.shape.size;
  const parts = model.shape.kind === "cylinder" ? torpedo(l, w / 2, coarse ? 9 : 36) : model.shape.kind === "sphere" ? float(l) : model.type === "surface" ? boat(l, w, d) : frame(l, w, d);
  const small = Math.min(w, d);
  for (const t of model.thrusters) {
    const size = Math.min(small * 0.32, Math.max(l * 0.045, small * 0.2));
    parts.push(painted(placed(new THREE.CylinderGeometry(size, size * 0.92, size * 0.9, coarse ? 8 : 20, 1, true), t.position, t.direction), "#14202b"));
    parts.push(painted(placed(new THREE.BoxGeometry(size * 1.75, size * 0.16, size * 0.28), t.position, t.direction), "#c9a227"));
  }
  for (const f of model.fins) {
    const area = f.area > 0 ? f.area : 0.25 * small * small, chord = Math.sqrt(area / 1.3), span = area / chord;
    const plate = new THREE.BoxGeometry(span, chord, chord * 0.1);
    const up = new THREE.Vector3(...toThree(f.chord[0]!, f.chord[1]!, f.chord[2]!)).normalize();
    const out = new THREE.Vector3(...toThree(f.normal[0]!, f.normal[1]!, f.normal[2]!)).normalize();
    plate.applyMatrix4(new THREE.Matrix4().makeBasis(new THREE.Vector3().crossVectors(up, out), up, out));
    const away = [0, f.position[1]!, f.position[2]!], size = Math.hypot(away[1]!, away[2]!);
    const shift = size > 1e-6 && model.shape.kind === "cylinder" ? Math.max(0, w / 2 + span / 2 - size) / size : 0;
    plate.translate(...toThree(f.position[0]!, f.position[1]! * (1 + shift), f.position[2]! * (1 + shift)));
    parts.push(painted(plate, "#d1495b"));
  }
  if (model.transducer) {
    const size = small * 0.1;
    parts.push(painted(placed(new THREE.CylinderGeometry(size, size, size * 2.2, 14), model.transducer, [0, 0, 1]), "#b388ff"));
  }
  const merged = mergeGeometries(parts.map((g) => { g.deleteAttribute("uv"); return g.index ? g.toNonIndexed() : g; }));
  merged.computeVertexNormals();
  return merged;
}

export const bodyMaterial = new THREE.MeshStandardMaterial({ vertexColors: true, roughness: 0.55, metalness: 0.08, side: THREE.DoubleSide });
/** From so many bodies of a model on, each is drawn coarsely. */
const MANY = 128;
const GENERIC: ModelLook = { name: "", type: "underwater", title: "", source: "", validated: "", shape: { kind: "cylinder", size: [2, 0.2, 0.2] }, appearance: "", mass: null, thrusters: [], fins: [], actuators: [], slots: [], transducer: null };

interface Kind { model: ModelLook; meshes: THREE.InstancedMesh[]; rows: number[]; capacity: number; size: number; own: boolean }

/** All bodies. */
export class Bodies {
  readonly group = new THREE.Group();
  private readonly kinds = new Map<string, Kind>();
  private readonly matrix = new THREE.Matrix4();
  private readonly q = new THREE.Quaternion();
  private readonly p = new THREE.Vector3();
  private readonly s = new THREE.Vector3();
  private readonly loader = new GLTFLoader();

  model(store: Store, name: string): ModelLook { return store.scene?.models[name] ?? GENERIC; }

  /** Forget shapes: the scene has changed. */
  reset(): void {
    for (const kind of this.kinds.values()) for (const m of kind.meshes) { this.group.remove(m); m.geometry.dispose(); m.dispose(); }
    this.kinds.clear();
  }

  private kind(store: Store, name: string, count: number): Kind {
    let kind = this.kinds.get(name);
    if (kind && kind.capacity >= count) return kind;
    const capacity = Math.max(16, 2 ** Math.ceil(Math.log2(count)));
    const model = kind?.model ?? this.model(store, name);
    const old = kind && (kind.own || kind.capacity < MANY === capacity < MANY) ? kind.meshes.map((m) => [m.geometry, m.material] as const) : null;
    const parts = old ?? [[geometry(model, capacity >= MANY), bodyMaterial] as const];
    for (const m of kind?.meshes ?? []) { this.group.remove(m); m.dispose(); }
    const meshes = parts.map(([g, material]) => this.instanced(g, material, capacity, name));
    if (!kind && model.appearance) this.load(name);
    kind = { model, meshes, rows: [], capacity, size: model.shape.size[0], own: kind?.own ?? false };
    this.kinds.set(name, kind);
    return kind;
  }

  private instanced(g: THREE.BufferGeometry, material: THREE.Material | THREE.Material[], capacity: number, name: string): THREE.InstancedMesh {
    const mesh = new THREE.InstancedMesh(g, material, capacity);
    mesh.instanceMatrix.setUsage(THREE.DynamicDrawUsage);
    mesh.frustumCulled = false;
    mesh.name = name;
    this.group.add(mesh);
    return mesh;
  }

  /** The glTF file of a model takes the place of its primitive when it is there. glTF has its front to +z: turned about. */
  private load(name: string): void {
    this.loader.load(`/appearance/${encodeURIComponent(name)}`, (gltf) => {
      const kind = this.kinds.get(name);
      if (!kind) return;
      const meshes: THREE.InstancedMesh[] = [];
      gltf.scene.updateMatrixWorld(true);
      gltf.scene.traverse((o) => {
        if (!(o instanceof THREE.Mesh)) return;
        const g = (o.geometry as THREE.BufferGeometry).clone().applyMatrix4(o.matrixWorld).rotateY(Math.PI);
        meshes.push(this.instanced(g, o.material as THREE.Material, kind.capacity, name));
      });
      for (const m of kind.meshes) { this.group.remove(m); m.geometry.dispose(); m.dispose(); }
      kind.meshes = meshes;
      kind.own = true;
    }, undefined, () => undefined); // a file that cannot be read leaves the primitive
  }

  /** Put every body where it is; ``magnify`` gives the factor of size for a distance. */
  place(store: Store, camera: THREE.Camera, magnify: (size: number, distance: number) => number, hide = -1): void {
    const groups = new Map<string, number[]>();
    for (let k = 0; k < store.rows.length; k++) {
      const body = store.bodies.get(store.rows[k]!);
      if (!body || store.rows[k] === hide) continue;
      let list = groups.get(body.model);
      if (!list) groups.set(body.model, (list = []));
      list.push(k);
    }
    for (const [name, kind] of this.kinds) if (!groups.has(name)) for (const m of kind.meshes) m.count = 0;
    for (const [name, list] of groups) {
      const kind = this.kind(store, name, list.length);
      kind.rows = list.map((k) => store.rows[k]!);
      list.forEach((k, i) => {
        this.p.set(...toThree(store.ned[3 * k]!, store.ned[3 * k + 1]!, store.ned[3 * k + 2]!));
        this.q.set(...quaternionToThree(store.quaternion[4 * k]!, store.quaternion[4 * k + 1]!, store.quaternion[4 * k + 2]!, store.quaternion[4 * k + 3]!));
        this.s.setScalar(magnify(kind.size, this.p.distanceTo(camera.position)));
        this.matrix.compose(this.p, this.q, this.s);
        for (const m of kind.meshes) m.setMatrixAt(i, this.matrix);
      });
      for (const m of kind.meshes) { m.count = list.length; m.instanceMatrix.needsUpdate = true; m.boundingSphere = null; }
    }
  }

  /** Row of the body under a ray, or null. */
  pick(ray: THREE.Raycaster): number | null {
    const hit = ray.intersectObjects(this.group.children, false)[0];
    if (!hit || hit.instanceId === undefined) return null;
    return this.kinds.get(hit.object.name)?.rows[hit.instanceId] ?? null;
  }
}
