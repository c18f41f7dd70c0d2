// Static scene: sea bed with depth contours, obstacles, missions.

import * as THREE from "three";
import { toThree } from "./coordinate_frames";
import { depthColour } from "./colour_scales";
import { bodyColour } from "./dom";
import { SOFTWARE_RENDERING } from "./canvas";
import { vertexLitMaterial } from "./lights";
import { contours, depthRange } from "./bed_contours";
import type { BedGrid, Scene } from "./page_protocol";

/** Fewer points of a bed: at most about so many on each side, with the last ones. */
export function thinned(bed: BedGrid, most: number): BedGrid {
  const stride = Math.max(1, Math.round(Math.max(bed.north.length, bed.east.length) / most)),
    kept = <T>(all: T[]): T[] => all.filter((_, k) => k % stride === 0 || k === all.length - 1);
  return { ...bed, north: kept(bed.north), east: kept(bed.east), depth: kept(bed.depth).map(kept) };
}

export class Terrain {
  readonly group = new THREE.Group();
  private readonly still = new THREE.Group();
  extent = 400;
  middle: [number, number, number] = [0, 0, 20];
  deepest = 60;

  constructor() {
    this.group.add(this.still);
  }

  build(scene: Scene, dark: boolean): void {
    this.still.traverse((o) => {
      if (o instanceof THREE.Mesh || o instanceof THREE.LineSegments || o instanceof THREE.Line) o.geometry.dispose();
    });
    this.still.clear();
    const points = [...scene.bodies.map((b) => b.position), ...scene.bodies.flatMap((b) => b.waypoints)];
    const n = points.map((p) => p[0]!),
      e = points.map((p) => p[1]!);
    if (n.length) {
      this.middle = [(Math.min(...n) + Math.max(...n)) / 2, (Math.min(...e) + Math.max(...e)) / 2, 15];
      this.extent = Math.max(120, Math.max(...n) - Math.min(...n), Math.max(...e) - Math.min(...e));
    }
    if (scene.bed) this.bed(scene.bed, dark);
    this.obstacles(scene, dark);
    this.missions(scene);
  }

  private bed(whole: BedGrid, dark: boolean): void {
    const bed = SOFTWARE_RENDERING ? thinned(whole, 48) : whole,
      rows = bed.north.length,
      columns = bed.east.length;
    const position = new Float32Array(3 * rows * columns),
      colour = new Float32Array(3 * rows * columns);
    const [low, high] = depthRange(bed),
      tone = new THREE.Color();
    this.deepest = high;
    for (let i = 0; i < rows; i++)
      for (let k = 0; k < columns; k++) {
        const d = bed.depth[i]![k] ?? high,
          o = 3 * (i * columns + k);
        position.set(toThree(bed.north[i]!, bed.east[k]!, d), o);
        tone.setRGB(...depthColour((d - low) / (high - low)), THREE.SRGBColorSpace).toArray(colour, o);
      }
    const index: number[] = [];
    for (let i = 0; i + 1 < rows; i++)
      for (let k = 0; k + 1 < columns; k++) {
        if (
          [
            [i, k],
            [i + 1, k],
            [i, k + 1],
            [i + 1, k + 1],
          ].some(([a, b]) => bed.depth[a!]![b!] === null)
        )
          continue;
        const a = i * columns + k,
          b = a + columns;
        index.push(a, a + 1, b, b, a + 1, b + 1);
      }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
    geometry.setAttribute("color", new THREE.BufferAttribute(colour, 3));
    geometry.setIndex(index);
    geometry.computeVertexNormals();
    const tint = dark ? "#b4bec4" : "#ffffff";
    const mesh = new THREE.Mesh(
      geometry,
      SOFTWARE_RENDERING
        ? vertexLitMaterial(tint)
        : new THREE.MeshLambertMaterial({ color: tint, vertexColors: true, side: THREE.DoubleSide }),
    );
    mesh.name = "bed";
    this.still.add(mesh);
    const lines: number[] = [];
    for (const c of contours(bed))
      lines.push(...toThree(c[0]!, c[1]!, c[4]! - 0.05), ...toThree(c[2]!, c[3]!, c[4]! - 0.05));
    const drawn = new THREE.BufferGeometry();
    drawn.setAttribute("position", new THREE.Float32BufferAttribute(lines, 3));
    this.still.add(
      new THREE.LineSegments(
        drawn,
        new THREE.LineBasicMaterial({
          color: dark ? "#ffffff" : "#123",
          transparent: true,
          opacity: dark ? 0.16 : 0.2,
        }),
      ),
    );
  }

  private obstacles(scene: Scene, dark: boolean): void {
    const material = new THREE.MeshLambertMaterial({
      color: dark ? "#8d99a6" : "#7b8794",
      transparent: true,
      opacity: 0.92,
    });
    for (const b of scene.boxes) {
      const mesh = new THREE.Mesh(new THREE.BoxGeometry(2 * b[4]!, 2 * b[5]!, 2 * b[3]!), material);
      mesh.position.set(...toThree(b[0]!, b[1]!, b[2]!));
      mesh.rotation.y = -b[6]!;
      this.still.add(mesh);
    }
    for (const p of scene.piers) {
      const mesh = new THREE.Mesh(new THREE.CylinderGeometry(p[3]!, p[3]!, p[4]!, 32), material);
      mesh.position.set(...toThree(p[0]!, p[1]!, p[2]!));
      this.still.add(mesh);
    }
    if (scene.triangles.length) {
      const position = new Float32Array(scene.triangles.length);
      for (let k = 0; k < position.length; k += 3)
        position.set(toThree(scene.triangles[k]!, scene.triangles[k + 1]!, scene.triangles[k + 2]!), k);
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(position, 3));
      geometry.computeVertexNormals();
      this.still.add(
        new THREE.Mesh(geometry, new THREE.MeshLambertMaterial({ color: "#a0764a", side: THREE.DoubleSide })),
      );
    }
  }

  private missions(scene: Scene): void {
    const lines = (points: number[], colour: string, opacity: number, dashed = false): void => {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
      const material = dashed
        ? new THREE.LineDashedMaterial({
            color: colour,
            transparent: true,
            opacity,
            dashSize: this.extent / 110,
            gapSize: this.extent / 160,
          })
        : new THREE.LineBasicMaterial({ color: colour, transparent: true, opacity });
      const line = new THREE.LineSegments(geometry, material);
      if (dashed) line.computeLineDistances();
      this.still.add(line);
    };
    const marker = new THREE.OctahedronGeometry(this.extent / 220);
    for (const [row, body] of scene.bodies.entries()) {
      // the server gives configured bodies their rows in this order
      const colour = bodyColour(row);
      if (body.anchor)
        lines(
          [
            ...toThree(body.position[0]!, body.position[1]!, body.position[2]!),
            ...toThree(body.anchor[0]!, body.anchor[1]!, body.anchor[2]!),
          ],
          "#c9b27c",
          0.7,
        );
      const way = [body.position, ...body.waypoints];
      const pieces: number[] = [];
      for (let k = 1; k < way.length; k++) {
        const depth = way[k]![2]!; // held on the leg that leads here
        pieces.push(
          ...toThree(way[k - 1]![0]!, way[k - 1]![1]!, k === 1 ? way[0]![2]! : depth),
          ...toThree(way[k]![0]!, way[k]![1]!, depth),
        );
        const mesh = new THREE.Mesh(
          marker,
          new THREE.MeshBasicMaterial({ color: colour, transparent: true, opacity: 0.8 }),
        );
        mesh.position.set(...toThree(way[k]![0]!, way[k]![1]!, depth));
        this.still.add(mesh);
      }
      if (pieces.length) lines(pieces, colour, 0.6, true);
    }
  }
}
