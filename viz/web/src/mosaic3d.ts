// Mosaics laid over the sea bed of the 3D view.

import * as THREE from "three";
import { toThree } from "./coordinate_frames";
import { depthAt } from "./geodesy";
import type { Mosaic, MosaicTile } from "./mosaic";
import type { BedGrid } from "./page_protocol";

const STEPS = 16, // facets along each side of a tile
  ABOVE = 0.03; // m above the bed

export class Mosaic3D {
  readonly group = new THREE.Group();
  private readonly meshes = new Map<MosaicTile["canvas"], { mesh: THREE.Mesh; version: number }>();
  private version = -1;
  private bed: BedGrid | null | undefined;

  constructor(private readonly mosaic: Mosaic) {}

  /** Follow the tiles that have changed. */
  update(bed: BedGrid | null | undefined): void {
    this.group.visible = this.mosaic.shown;
    if (bed !== this.bed) {
      for (const canvas of this.meshes.keys()) this.remove(canvas);
      this.bed = bed;
      this.version = -1;
    }
    if (!this.mosaic.shown || this.mosaic.version === this.version) return;
    this.version = this.mosaic.version;
    const present = new Set<HTMLCanvasElement>();
    for (const tile of this.mosaic.tiles()) {
      present.add(tile.canvas);
      const known = this.meshes.get(tile.canvas);
      if (known?.version === tile.version) continue;
      if (known) ((known.mesh.material as THREE.MeshBasicMaterial).map as THREE.Texture).needsUpdate = true;
      else this.add(tile);
      this.meshes.get(tile.canvas)!.version = tile.version;
    }
    for (const canvas of this.meshes.keys()) if (!present.has(canvas)) this.remove(canvas);
  }

  private add(tile: MosaicTile): void {
    const texture = new THREE.CanvasTexture(tile.canvas);
    texture.magFilter = THREE.NearestFilter;
    texture.colorSpace = THREE.SRGBColorSpace;
    const material = new THREE.MeshBasicMaterial({
      map: texture,
      alphaTest: 0.5,
      side: THREE.DoubleSide,
      polygonOffset: true,
      polygonOffsetFactor: -4,
      polygonOffsetUnits: -4,
    });
    const mesh = new THREE.Mesh(this.geometry(tile), material);
    this.meshes.set(tile.canvas, { mesh, version: 0 });
    this.group.add(mesh);
  }

  private geometry({ head }: MosaicTile): THREE.BufferGeometry {
    const position: number[] = [],
      uv: number[] = [],
      index: number[] = [],
      side = head.cell * head.cells;
    for (let i = 0; i <= STEPS; i++)
      for (let k = 0; k <= STEPS; k++) {
        const [north, east] = [head.south + (side * i) / STEPS, head.west + (side * k) / STEPS];
        position.push(...toThree(north, east, (depthAt(this.bed, north, east) ?? 0) - ABOVE));
        uv.push(k / STEPS, i / STEPS);
        if (i === STEPS || k === STEPS) continue;
        const a = i * (STEPS + 1) + k,
          b = a + STEPS + 1;
        index.push(a, a + 1, b, b, a + 1, b + 1);
      }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(position, 3));
    geometry.setAttribute("uv", new THREE.Float32BufferAttribute(uv, 2));
    geometry.setIndex(index);
    return geometry;
  }

  private remove(canvas: HTMLCanvasElement): void {
    const { mesh } = this.meshes.get(canvas)!,
      material = mesh.material as THREE.MeshBasicMaterial;
    this.group.remove(mesh);
    mesh.geometry.dispose();
    material.map?.dispose();
    material.dispose();
    this.meshes.delete(canvas);
  }
}
