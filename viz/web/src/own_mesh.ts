// glTF files that replace the shapes of models: their materials, and nodes that move with an actuator. All geometry is
// converted to the axes of body_shapes.ts.

import * as THREE from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import type { ErrorAnswer, ModelInfo } from "./page_protocol";

/** A mesh at rest, in the axes of the body. */
export interface OwnSurface {
  geometry: THREE.BufferGeometry;
  material: THREE.Material;
}

/** Node of a glTF file that moves with an actuator. */
export interface OwnNode {
  /** Name of the actuator. */
  name: string;
  /** Name of the actuator of the next node above that moves; empty: none. */
  parent: string;
  /** Origin of the node, in the axes of the body. */
  origin: THREE.Vector3;
  surfaces: OwnSurface[];
}

export interface OwnMesh {
  fixed: OwnSurface[];
  nodes: Map<string, OwnNode>;
  triangles: number;
}

/** Names of the actuators that move a part of the drawing. */
export function movingNames(model: ModelInfo): string[] {
  return [
    ...model.thrusters.flatMap((t) => [
      t.name,
      ...(t.swivel ? [`${t.name}-angle`] : []),
      ...(t.deflector ? [`${t.name}-deflector`] : []),
    ]),
    ...model.fins.map((f) => f.name),
  ];
}

/** Numbers of the thrusters and fins that the page draws itself, because a glTF file has no node for them. */
export function ownParts(model: ModelInfo, own: OwnMesh | null): { thrusters: number[]; fins: number[] } {
  const lacks = (...names: string[]): boolean =>
    !own || (model.draw_parts && !names.some((name) => own.nodes.has(name)));
  return {
    thrusters: [...model.thrusters.keys()].filter((k) => {
      const { name } = model.thrusters[k]!;
      return lacks(name, `${name}-angle`, `${name}-deflector`);
    }),
    fins: [...model.fins.keys()].filter((k) => lacks(model.fins[k]!.name)),
  };
}

/** The form of a node's name that an actuator can have: letters, digits, `_` and `-`. */
export function actuatorName(node: string): string {
  return node.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "");
}

/** Load the glTF file of a model; throws an Error with the reason if it cannot be drawn. */
export async function loadOwnMesh(model: ModelInfo, environment: THREE.Texture): Promise<OwnMesh> {
  const answer = await fetch(`/appearance/${encodeURIComponent(model.name)}`);
  if (!answer.ok) {
    const json = answer.headers.get("Content-Type")?.startsWith("application/json");
    throw new Error(json ? ((await answer.json()) as ErrorAnswer).error : await answer.text());
  }
  const { GLTFLoader } = await import("three/addons/loaders/GLTFLoader.js");
  const gltf = await new GLTFLoader().parseAsync(await answer.arrayBuffer(), "");
  const own = convert(gltf.scene, new Set(movingNames(model)));
  for (const { material } of [own.fixed, ...[...own.nodes.values()].map((n) => n.surfaces)].flat())
    prepare(material, environment);
  return own;
}

/** Metals show the sky; glass is transparent, because light refracted behind it would need a second picture. */
function prepare(material: THREE.Material, environment: THREE.Texture): void {
  if (!(material instanceof THREE.MeshStandardMaterial)) return;
  material.envMap = environment;
  material.envMapIntensity = 0.3 + 0.7 * material.metalness; // the lights of the scene shine on other surfaces
  if (material instanceof THREE.MeshPhysicalMaterial && material.transmission > 0) {
    material.transparent = true;
    material.opacity = Math.min(material.opacity, 1 - 0.75 * material.transmission);
    material.transmission = 0;
    material.depthWrite = false;
  }
}

/** Convert a glTF scene, which faces +z, to the axes of the body, which faces -z. */
export function convert(scene: THREE.Object3D, names: ReadonlySet<string>): OwnMesh {
  const root = new THREE.Group();
  root.rotation.y = Math.PI;
  root.add(scene);
  root.updateMatrixWorld(true);
  const nodes = new Map<string, OwnNode>(),
    fixed: OwnSurface[] = [];
  let triangles = 0;
  const visit = (o: THREE.Object3D, above: OwnNode | null): void => {
    // three.js changes names that are not unique, and keeps the original
    const original = String((o.userData as { name?: unknown })["name"] ?? o.name),
      name = names.has(original) ? original : actuatorName(original);
    let node = above;
    if (names.has(name) && !nodes.has(name)) {
      node = {
        name,
        parent: above?.name ?? "",
        origin: new THREE.Vector3().setFromMatrixPosition(o.matrixWorld),
        surfaces: [],
      };
      nodes.set(name, node);
    }
    if (o instanceof THREE.Mesh) {
      const geometry = placed(o.geometry as THREE.BufferGeometry, o.matrixWorld);
      triangles += (geometry.index ?? geometry.getAttribute("position")).count / 3;
      (node?.surfaces ?? fixed).push({ geometry, material: o.material as THREE.Material });
    }
    for (const child of o.children) visit(child, node);
  };
  visit(scene, null);
  for (const node of nodes.values()) node.surfaces = merged(node.surfaces);
  return { fixed: merged(fixed), nodes, triangles };
}

function placed(shared: THREE.BufferGeometry, matrix: THREE.Matrix4): THREE.BufferGeometry {
  const g = shared.clone().applyMatrix4(matrix);
  if (!g.getAttribute("normal")) g.computeVertexNormals();
  if (matrix.determinant() < 0) turnOver(g);
  return g;
}

/** Reverse the order of the corners of each triangle, because a mirror image shows the back of its faces. */
function turnOver(g: THREE.BufferGeometry): void {
  const count = g.getAttribute("position").count,
    corners = Array.from({ length: g.index?.count ?? count }, (_, k) => g.index?.getX(k) ?? k);
  for (let k = 0; k + 2 < corners.length; k += 3) [corners[k], corners[k + 1]] = [corners[k + 1]!, corners[k]!];
  g.setIndex(corners);
}

/** Merge surfaces of the same material, so that a drawing of many small parts needs few draw calls. */
function merged(surfaces: OwnSurface[]): OwnSurface[] {
  const groups = new Map<string, OwnSurface[]>();
  for (const s of surfaces) {
    const key = [s.material.uuid, s.geometry.index !== null, ...Object.keys(s.geometry.attributes).sort()].join();
    groups.set(key, [...(groups.get(key) ?? []), s]);
  }
  return [...groups.values()].flatMap((group) => {
    if (group.length === 1) return group;
    const whole = mergeGeometries(group.map((s) => s.geometry));
    if (!whole) return group; // for example, of different number formats
    for (const s of group) s.geometry.dispose();
    return [{ geometry: whole, material: group[0]!.material }];
  });
}

export function disposeOwnMesh(own: OwnMesh): void {
  for (const { geometry, material } of [own.fixed, ...[...own.nodes.values()].map((n) => n.surfaces)].flat()) {
    geometry.dispose();
    for (const value of Object.values(material))
      if (value instanceof THREE.Texture && !value.isRenderTargetTexture) value.dispose();
    material.dispose();
  }
}

/**
 * Point about which a node turns: its origin if that is within its box; otherwise the position of the actuator in the
 * model, because many CAD programs put all origins at the origin of the vehicle.
 */
export function pivotOf(node: OwnNode, position: THREE.Vector3): THREE.Vector3 {
  const box = new THREE.Box3();
  for (const s of node.surfaces) {
    s.geometry.computeBoundingBox();
    box.union(s.geometry.boundingBox!);
  }
  if (box.isEmpty()) return node.origin.lengthSq() ? node.origin : position; // a node that carries others
  box.expandByScalar(0.02 * box.getSize(new THREE.Vector3()).length());
  return box.containsPoint(node.origin) ? node.origin : position;
}

/** Largest distance of a node's surfaces from an axis through a point, and their middle along it. */
export function sweptDisc(
  node: OwnNode,
  point: THREE.Vector3,
  axis: THREE.Vector3,
): { radius: number; middle: number } {
  let most = 0,
    from = Infinity,
    to = -Infinity;
  const v = new THREE.Vector3();
  for (const s of node.surfaces) {
    const at = s.geometry.getAttribute("position");
    for (let k = 0; k < at.count; k++) {
      v.fromBufferAttribute(at, k).sub(point);
      const along = v.dot(axis);
      most = Math.max(most, v.lengthSq() - along * along);
      from = Math.min(from, along);
      to = Math.max(to, along);
    }
  }
  return { radius: Math.sqrt(most), middle: most ? (from + to) / 2 : 0 };
}
