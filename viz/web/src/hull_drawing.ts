// The hull in the configurator: the parts of a hull file, which can be picked, or the mesh of <hull>.

import * as THREE from "three";
import { fromThree, toThree, type Triple } from "./coordinate_frames";
import { cssVariable } from "./dom";
import { decodeBase64 } from "./http";
import type { HullFile, HullProperties } from "./page_protocol";

/** Point of a surface and the direction out of it, in body axes. */
export interface SurfacePoint {
  position: Triple;
  normal: Triple;
}

export class HullDrawing {
  readonly group = new THREE.Group();
  private parts: THREE.Mesh<THREE.BufferGeometry, THREE.MeshStandardMaterial>[] = [];
  private solid: THREE.Mesh | null = null;
  /** Centre of buoyancy of the mesh of <hull>, in body axes. */
  centre: [number, number, number] | null = null;

  /** True while the parts of a file are shown. */
  get shown(): boolean {
    return this.parts.length > 0;
  }

  private clear(): void {
    for (const m of this.parts) {
      m.geometry.dispose();
      m.material.dispose();
      this.group.remove(m);
    }
    this.parts = [];
  }

  /** Take the parts of a file; null removes them. They are drawn once they are placed. */
  take(file: HullFile | null): void {
    this.clear();
    for (const p of file?.parts ?? []) {
      const g = new THREE.BufferGeometry();
      g.setAttribute("position", new THREE.BufferAttribute(new Float32Array(decodeBase64(p.vertices)), 3));
      g.setIndex(new THREE.BufferAttribute(new Uint32Array(decodeBase64(p.corners)), 1));
      const mesh = new THREE.Mesh(
        g,
        new THREE.MeshStandardMaterial({
          color: p.colour,
          flatShading: true,
          metalness: 0.1,
          roughness: 0.75,
          side: THREE.DoubleSide,
          transparent: true,
          opacity: 0.8,
          polygonOffset: true,
          polygonOffsetFactor: 1,
        }),
      );
      mesh.name = p.name;
      mesh.matrixAutoUpdate = false;
      mesh.visible = false;
      this.parts.push(mesh);
      this.group.add(mesh);
    }
  }

  /** Place the parts in body axes; `visible` and `clear` state how each is drawn. */
  place(fit: HullProperties, visible: boolean[], opacity: number): void {
    const r = fit.rotation,
      column = (k: number): [number, number, number] =>
        toThree(fit.scale * r[k]!, fit.scale * r[3 + k]!, fit.scale * r[6 + k]!),
      at = toThree(fit.offset[0]!, fit.offset[1]!, fit.offset[2]!);
    const m = new THREE.Matrix4().makeBasis(
      new THREE.Vector3(...column(0)),
      new THREE.Vector3(...column(1)),
      new THREE.Vector3(...column(2)),
    );
    m.setPosition(...at);
    this.parts.forEach((p, k) => {
      p.matrix.copy(m);
      p.matrixWorldNeedsUpdate = true;
      p.visible = visible[k] ?? true;
      p.material.opacity = opacity;
      p.material.depthWrite = opacity > 0.5;
    });
  }

  highlight(chosen: number | null): void {
    this.parts.forEach((p, k) => {
      p.material.emissive.set(k === chosen ? cssVariable("--accent") : "#000000");
      p.material.emissiveIntensity = k === chosen ? 0.7 : 0;
    });
  }

  /** Number of the part under a ray. */
  pick(ray: THREE.Raycaster): number | null {
    const hit = ray.intersectObjects(
      this.parts.filter((p) => p.visible),
      false,
    )[0];
    return hit ? this.parts.indexOf(hit.object as (typeof this.parts)[number]) : null;
  }

  /** True if a surface is drawn: parts of a file, or the mesh of <hull>. */
  get surface(): boolean {
    return this.shown || this.solid !== null;
  }

  /** Point of the surface under a ray; the normal points towards the eye, also on an inverted mesh. */
  point(ray: THREE.Raycaster): SurfacePoint | null {
    const drawn: THREE.Object3D[] = this.shown ? this.parts.filter((p) => p.visible) : this.solid ? [this.solid] : [],
      hit = ray.intersectObjects(drawn, false)[0];
    if (!hit?.face) return null;
    const normal = hit.face.normal.clone().transformDirection(hit.object.matrixWorld);
    if (normal.dot(ray.ray.direction) > 0) normal.negate();
    return {
      position: fromThree(hit.point.x, hit.point.y, hit.point.z),
      normal: fromThree(normal.x, normal.y, normal.z),
    };
  }

  /** Show the mesh of <hull>, from the answer of the check; an empty text removes it. */
  mesh(text: string, material: THREE.Material): boolean {
    if (this.solid) {
      this.group.remove(this.solid);
      this.solid.geometry.dispose();
      this.solid = null;
    }
    this.centre = null;
    if (!text) return this.shown;
    const at = new Float32Array(decodeBase64(text));
    this.centre = centreOf(at);
    if (this.shown) return true;
    const out = new Float32Array(at.length);
    for (let k = 0; k < at.length; k += 3) out.set(toThree(at[k]!, at[k + 1]!, at[k + 2]!), k);
    const g = new THREE.BufferGeometry().setAttribute("position", new THREE.BufferAttribute(out, 3));
    g.computeVertexNormals();
    this.solid = new THREE.Mesh(g, material);
    this.group.add(this.solid);
    return true;
  }
}

/** Centre of the volume inside triangles (nine numbers each), from the tetrahedra between them and the first vertex. */
function centreOf(at: Float32Array): [number, number, number] {
  const sum = [0, 0, 0],
    o = [at[0]!, at[1]!, at[2]!];
  let six = 0;
  for (let k = 0; k < at.length; k += 9) {
    const [a, b, c] = [0, 3, 6].map((j) => o.map((v, i) => at[k + j + i]! - v)) as [number[], number[], number[]],
      volume =
        a[0]! * (b[1]! * c[2]! - b[2]! * c[1]!) +
        a[1]! * (b[2]! * c[0]! - b[0]! * c[2]!) +
        a[2]! * (b[0]! * c[1]! - b[1]! * c[0]!);
    six += volume;
    for (let i = 0; i < 3; i++) sum[i]! += (volume * (a[i]! + b[i]! + c[i]!)) / 4;
  }
  return o.map((v, i) => v + (six ? sum[i]! / six : 0)) as [number, number, number];
}
