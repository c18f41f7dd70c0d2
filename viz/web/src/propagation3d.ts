// Rays and fields of the propagation panel in the 3D view.

import * as THREE from "three";
import { LineMaterial } from "three/addons/lines/LineMaterial.js";
import { LineSegments2 } from "three/addons/lines/LineSegments2.js";
import { LineSegmentsGeometry } from "three/addons/lines/LineSegmentsGeometry.js";
import { type Colour, scaleColour } from "./colour_scales";
import { toThree, type Triple } from "./coordinate_frames";
import type { AcousticsRequest, FieldAnswer, RaysAnswer, SoundRay } from "./page_protocol";
import { arrivalScale, arrivalShares, firstRay } from "./propagation_section";

const OPACITY = 0.72,
  WIDE = 4,
  NARROW = 1.8; // px

/** What a field was computed for. */
export interface FieldPlace {
  from: Triple;
  to: Triple;
  request: AcousticsRequest;
}

/** Corners of a field in W, in the order of its picture: first row left and right, last row left and right. */
export function cornersOf(field: FieldAnswer, from: Triple, to: Triple, depth: number): Triple[] {
  const [a, b] = [field.columns[0]!, field.columns[field.columns.length - 1]!],
    [first, last] = [field.rows[0]!, field.rows[field.rows.length - 1]!];
  if (field.plane === "horizontal")
    return [
      [first, a, depth],
      [first, b, depth],
      [last, a, depth],
      [last, b, depth],
    ];
  const far = Math.hypot(to[0] - from[0], to[1] - from[1]),
    [n, e] = far > 0 ? [(to[0] - from[0]) / far, (to[1] - from[1]) / far] : [1, 0],
    at = (s: number, d: number): Triple => [from[0] + s * n, from[1] + s * e, d];
  return [at(a, first), at(b, first), at(a, last), at(b, last)];
}

/** Ends of the pieces of rays in three.js axes, and their colours: six numbers for each piece. */
export function segmentsOf(
  rays: SoundRay[],
  shares: number[],
  scale: Colour[],
): { positions: number[]; colours: number[] } {
  const positions: number[] = [],
    colours: number[] = [];
  rays.forEach((ray, k) => {
    const colour = scaleColour(scale, shares[k]!).map((v) => v ** 2.2); // linear, as the renderer computes
    for (let i = 3; i < ray.points.length; i += 3) {
      for (const o of [i - 3, i]) positions.push(...toThree(ray.points[o]!, ray.points[o + 1]!, ray.points[o + 2]!));
      colours.push(...colour, ...colour);
    }
  });
  return { positions, colours };
}

/** Lines of some rays with one width. */
class Lines {
  readonly object: LineSegments2;

  constructor(wide: number) {
    const material = new LineMaterial({ linewidth: wide, vertexColors: true, fog: false });
    this.object = new LineSegments2(new LineSegmentsGeometry(), material);
    this.object.frustumCulled = false;
    this.object.visible = false;
    this.object.renderOrder = 3;
  }

  set(rays: SoundRay[], shares: number[], scale: Colour[]): void {
    const { positions, colours } = segmentsOf(rays, shares, scale);
    this.object.visible = positions.length > 0;
    if (!positions.length) return;
    this.object.geometry.dispose();
    this.object.geometry = new LineSegmentsGeometry().setPositions(positions).setColors(colours);
  }
}

export class Propagation3D {
  readonly group = new THREE.Group();
  private readonly strong = new Lines(WIDE);
  private readonly others = new Lines(NARROW);
  private readonly plane = new THREE.Mesh(
    new THREE.BufferGeometry(),
    new THREE.MeshBasicMaterial({
      transparent: true,
      opacity: OPACITY,
      side: THREE.DoubleSide,
      depthWrite: false,
      fog: false,
    }),
  );

  constructor() {
    this.plane.visible = false;
    this.plane.frustumCulled = false;
    this.plane.renderOrder = 2;
    this.group.add(this.plane, this.others.object, this.strong.object);
  }

  /** Draw answers; without them, nothing. */
  show(
    { rays, field }: { rays?: RaysAnswer; field?: FieldAnswer & { of: FieldPlace } },
    chosen: number | null,
    picture: HTMLCanvasElement | null,
  ): void {
    this.setRays(rays?.rays ?? [], chosen, arrivalScale(field));
    const at = field?.of;
    this.setField(
      field && at ? picture : null,
      field && at ? cornersOf(field, at.from, at.to, at.request.depth ?? 0) : [],
    );
  }

  /** Draw rays; the first one, or the chosen one, is emphasised. */
  private setRays(rays: SoundRay[], chosen: number | null, scale: Colour[]): void {
    const shares = arrivalShares(rays),
      strong = chosen ?? firstRay(rays),
      others = rays.map((_, k) => k).filter((k) => k !== strong);
    this.strong.set(rays.slice(strong, strong + 1), shares.slice(strong, strong + 1), scale);
    this.others.set(
      others.map((k) => rays[k]!),
      others.map((k) => shares[k]!),
      scale,
    );
  }

  /** Draw the picture of a field between its corners; null: none. */
  private setField(picture: HTMLCanvasElement | null, corners: Triple[]): void {
    const { material, geometry } = this.plane;
    this.plane.visible = picture !== null;
    material.map?.dispose();
    material.map = null;
    if (!picture) return;
    const texture = new THREE.CanvasTexture(picture);
    texture.colorSpace = THREE.SRGBColorSpace;
    texture.generateMipmaps = false;
    texture.minFilter = THREE.LinearFilter;
    material.map = texture;
    material.needsUpdate = true;
    geometry.dispose();
    this.plane.geometry = new THREE.BufferGeometry();
    const positions = corners.flatMap(([n, e, d]) => toThree(n, e, d));
    this.plane.geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
    this.plane.geometry.setAttribute("uv", new THREE.Float32BufferAttribute([0, 1, 1, 1, 0, 0, 1, 0], 2));
    this.plane.geometry.setIndex([0, 2, 1, 1, 2, 3]);
  }
}
