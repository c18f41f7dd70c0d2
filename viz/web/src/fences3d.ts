// Fences in 3D: their sides at the surface, and a line from each corner down to the sea bed.

import * as THREE from "three";
import { toThree } from "./coordinate_frames";
import { cssVariable } from "./dom";
import type { FenceInfo } from "./page_protocol";

export class Fences {
  readonly lines = new THREE.LineSegments(
    new THREE.BufferGeometry(),
    new THREE.LineBasicMaterial({ transparent: true, opacity: 0.9 }),
  );
  private of: FenceInfo[] | null = null;
  private deepest = 0;

  constructor() {
    this.lines.frustumCulled = false;
  }

  /** Take the colour of the theme. */
  theme(): void {
    this.lines.material.color.set(cssVariable("--fence"));
  }

  update(fences: FenceInfo[], deepest: number): void {
    if (fences === this.of && deepest === this.deepest) return;
    this.of = fences;
    this.deepest = deepest;
    const points = fences.flatMap(({ corners }) =>
      corners.flatMap(([n, e], k) => {
        const next = corners[(k + 1) % corners.length]!,
          corner = toThree(n, e, 0);
        return [...corner, ...toThree(next[0], next[1], 0), ...corner, ...toThree(n, e, deepest)];
      }),
    );
    this.lines.geometry.dispose();
    this.lines.geometry = new THREE.BufferGeometry();
    this.lines.geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
  }
}
