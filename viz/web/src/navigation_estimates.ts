// Navigation estimates: a cloud of one standard deviation, a line to the true position, and the estimated track.

import * as THREE from "three";
import { bodyColour } from "./dom";
import { toThree } from "./coordinate_frames";
import type { SceneStore } from "./scene_store";

export class NavigationEstimates {
  readonly group = new THREE.Group();
  private readonly lines = new THREE.LineSegments(
    new THREE.BufferGeometry(),
    new THREE.LineBasicMaterial({ transparent: true, opacity: 0.8 }),
  );
  private readonly clouds = new Map<number, THREE.Mesh<THREE.SphereGeometry, THREE.MeshBasicMaterial>>();
  private due = 0;

  constructor(private readonly store: SceneStore) {
    this.lines.frustumCulled = false;
    this.group.add(this.lines);
  }

  update(dark: boolean): void {
    for (const [row, mesh] of this.clouds)
      if (!this.store.beliefs.has(row)) {
        this.group.remove(mesh);
        this.clouds.delete(row);
      }
    const now = performance.now(),
      rebuild = now > this.due,
      points: number[] = [];
    for (const [row, e] of this.store.beliefs) {
      if (!Number.isFinite(e[0])) continue;
      let mesh = this.clouds.get(row);
      if (!mesh) {
        mesh = new THREE.Mesh(
          new THREE.SphereGeometry(1, 24, 16),
          new THREE.MeshBasicMaterial({ color: bodyColour(row), transparent: true, opacity: 0.3, depthWrite: false }),
        );
        this.clouds.set(row, mesh);
        this.group.add(mesh);
      }
      mesh.position.set(...toThree(e[0]!, e[1]!, e[2]!));
      mesh.scale.set(Math.max(e[4] ?? 0, 0.3), Math.max(e[5] ?? 0, 0.3), Math.max(e[3] ?? 0, 0.3));
      mesh.material.color.set(bodyColour(row)); // of the current theme
      if (!rebuild) continue;
      const k = this.store.index.get(row);
      if (k !== undefined)
        points.push(
          ...toThree(e[0]!, e[1]!, e[2]!),
          ...toThree(this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!),
        );
      const track = this.store.tracks.get(row);
      if (!track || track.whole) continue;
      for (let i = 3; i < track.believed.length; i += 3)
        points.push(
          ...toThree(track.believed[i - 3]!, track.believed[i - 2]!, track.believed[i - 1]!),
          ...toThree(track.believed[i]!, track.believed[i + 1]!, track.believed[i + 2]!),
        );
    }
    if (!rebuild) return;
    this.due = now + 300;
    const room = this.lines.geometry.getAttribute("position") as THREE.BufferAttribute | undefined;
    if (!room || room.array.length < points.length) {
      this.lines.geometry.dispose();
      this.lines.geometry = new THREE.BufferGeometry();
      this.lines.geometry.setAttribute(
        "position",
        new THREE.BufferAttribute(new Float32Array(Math.max(3000, 2 * points.length)), 3),
      );
    }
    const at = this.lines.geometry.getAttribute("position") as THREE.BufferAttribute;
    (at.array as Float32Array).set(points);
    at.needsUpdate = true;
    this.lines.geometry.setDrawRange(0, points.length / 3);
    this.lines.material.color.set(dark ? "#ffffff" : "#12283a");
  }
}
