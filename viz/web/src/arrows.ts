// Many arrows in one draw call.

import * as THREE from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";

export class Arrows {
  readonly mesh: THREE.InstancedMesh;
  private readonly matrix = new THREE.Matrix4();
  private readonly q = new THREE.Quaternion();
  private readonly s = new THREE.Vector3();
  private static readonly up = new THREE.Vector3(0, 1, 0);

  constructor(
    colour: string,
    private readonly most: number,
    slender: number,
  ) {
    const shaft = new THREE.CylinderGeometry(0.5 * slender, 0.5 * slender, 0.8, 8),
      head = new THREE.ConeGeometry(1.6 * slender, 0.24, 12);
    shaft.translate(0, 0.4, 0);
    head.translate(0, 0.88, 0);
    this.mesh = new THREE.InstancedMesh(
      mergeGeometries([shaft, head]),
      new THREE.MeshBasicMaterial({ color: colour, transparent: true, opacity: 0.85 }),
      most,
    );
    this.mesh.frustumCulled = false;
    this.mesh.count = 0;
  }

  /** Remove all arrows. */
  clear(): void {
    this.mesh.count = 0;
  }

  /** Add an arrow from a point along a unit vector. */
  add(from: THREE.Vector3, direction: THREE.Vector3, length: number): void {
    if (this.mesh.count >= this.most) return;
    this.q.setFromUnitVectors(Arrows.up, direction);
    this.matrix.compose(from, this.q, this.s.setScalar(length));
    this.mesh.setMatrixAt(this.mesh.count++, this.matrix);
    this.mesh.instanceMatrix.needsUpdate = true;
  }
}
