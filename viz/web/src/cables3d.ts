// Lines of the simulation (tethers, moorings, tow cables) in 3D.

import * as THREE from "three";
import { cableColour, unbrokenSegments } from "./cables";
import { toThree } from "./coordinate_frames";
import type { CableInfo } from "./page_protocol";

export class Cables {
  readonly lines = new THREE.LineSegments(new THREE.BufferGeometry(), new THREE.LineBasicMaterial());
  private of: CableInfo[] | null = null;

  constructor() {
    this.lines.frustumCulled = false;
  }

  update(cables: CableInfo[], dark: boolean): void {
    this.lines.material.color.set(cableColour(dark));
    if (cables === this.of) return;
    this.of = cables;
    const points = cables.flatMap((c) =>
      unbrokenSegments(c).flatMap((ends) => ends.flatMap(([n, e, d]) => toThree(n!, e!, d!))),
    );
    this.lines.geometry.dispose();
    this.lines.geometry = new THREE.BufferGeometry();
    this.lines.geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  }
}
