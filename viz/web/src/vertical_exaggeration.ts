// Vertical exaggeration of the 3D view: the sea is one stretched group; bodies keep their shape and are placed at the
// stretched positions. The depth scale shows true metres.

import * as THREE from "three";
import { cssVariable } from "./dom";
import { toThree } from "./coordinate_frames";
import { roundStep } from "./canvas";

export class VerticalExaggeration {
  readonly sea = new THREE.Group();
  private readonly at = new THREE.Vector3();

  /** Vertical exaggeration factor. */
  get factor(): number {
    return this.sea.scale.y;
  }
  set factor(value: number) {
    this.sea.scale.y = value;
  }

  /** Drawn position of a point of W. */
  place(n: number, e: number, d: number): THREE.Vector3 {
    const [x, y, z] = toThree(n, e, d);
    return new THREE.Vector3(x, y * this.factor, z);
  }

  /** Canvas position of a point of W; null behind the camera. */
  private project(
    n: number,
    e: number,
    d: number,
    camera: THREE.Camera,
    w: number,
    hh: number,
  ): [number, number] | null {
    const p = this.at.copy(this.place(n, e, d)).project(camera);
    return p.z > 1 || p.z < -1 ? null : [((p.x + 1) / 2) * w, ((1 - p.y) / 2) * hh];
  }

  /** Draw depths along the leftmost vertical edge around the scene; returns the labelled depths. */
  scale(
    c: CanvasRenderingContext2D,
    text: (t: string, x: number, y: number, f: string) => void,
    camera: THREE.Camera,
    w: number,
    hh: number,
    middle: readonly number[],
    extent: number,
    deepest: number,
  ): number[] {
    const edges = [-0.5, 0.5].flatMap((a) =>
      [-0.5, 0.5].map((b) => [middle[0]! + a * extent, middle[1]! + b * extent] as const),
    );
    const visible = edges
      .map(([n, e]) => ({
        n,
        e,
        top: this.project(n, e, 0, camera, w, hh),
        low: this.project(n, e, deepest, camera, w, hh),
      }))
      .filter((s) => s.top && s.low && s.top[0] > 0 && s.top[0] < w - 60);
    const edge = visible.sort((a, b) => a.top![0] - b.top![0])[0];
    if (!edge) return [];
    const long = Math.hypot(edge.top![0] - edge.low![0], edge.top![1] - edge.low![1]),
      step = roundStep((deepest * 26) / Math.max(long, 1)),
      depths: number[] = [];
    c.strokeStyle = cssVariable("--soft");
    c.lineWidth = 1.2;
    c.beginPath();
    c.moveTo(...edge.top!);
    c.lineTo(...edge.low!);
    c.stroke();
    for (let d = 0; d <= deepest * 1.0001 && depths.length < 40; d += step) {
      const p = this.project(edge.n, edge.e, d, camera, w, hh);
      if (!p) continue;
      c.strokeStyle = cssVariable("--soft"); // text halos set another style
      c.lineWidth = 1.2;
      c.beginPath();
      c.moveTo(p[0] - 4, p[1]);
      c.lineTo(p[0] + 4, p[1]);
      c.stroke();
      text(`${+d.toFixed(3)} m`, p[0] + 8, p[1], cssVariable("--soft"));
      depths.push(+d.toFixed(3));
    }
    text(`heights ${this.factor} ×`, edge.top![0] + 8, edge.top![1] - 16, cssVariable("--warm"));
    return depths;
  }
}
