// Shapes of bodies from their models: hulls and moving parts. Axes of three.js, front towards -z.

import * as THREE from "three";
import { mergeGeometries } from "three/addons/utils/BufferGeometryUtils.js";
import { SOFTWARE_RENDERING } from "./canvas";
import { vertexLitMaterial } from "./lights";
import { toThree } from "./coordinate_frames";
import type { FinInfo, ModelInfo, ThrusterInfo } from "./page_protocol";

const HULL: Record<string, string> = {
  underwater: "#ffc933",
  surface: "#f4f6f8",
  buoy: "#ff7a2f",
  aircraft: "#e9edf2",
};

export function withColour(geometry: THREE.BufferGeometry, colour: string): THREE.BufferGeometry {
  const g = geometry.index ? geometry.toNonIndexed() : geometry;
  const c = new THREE.Color(colour),
    n = g.getAttribute("position").count,
    data = new Float32Array(3 * n);
  for (let k = 0; k < n; k++) data.set([c.r, c.g, c.b], 3 * k);
  g.setAttribute("color", new THREE.BufferAttribute(data, 3));
  g.deleteAttribute("uv");
  return g;
}

/** Rotate geometry so that its y axis points along a direction of B, and move it to a position in B. */
function placed(g: THREE.BufferGeometry, position: number[], direction: number[]): THREE.BufferGeometry {
  const d = new THREE.Vector3(...toThree(direction[0]!, direction[1]!, direction[2]!)).normalize();
  g.applyQuaternion(new THREE.Quaternion().setFromUnitVectors(new THREE.Vector3(0, 1, 0), d));
  g.translate(...toThree(position[0]!, position[1]!, position[2]!));
  return g;
}

function torpedo(length: number, radius: number, around: number): THREE.BufferGeometry[] {
  const nose = Math.min(radius * 2.2, length * 0.2),
    tail = Math.min(radius * 4.5, length * 0.28);
  const profile: THREE.Vector2[] = [];
  const along = around / 3;
  for (let k = 0; k <= along; k++) {
    // tail, seen from astern
    const x = k / along;
    profile.push(
      new THREE.Vector2(radius * (0.12 + 0.88 * Math.sin((x * Math.PI) / 2) ** 0.8), -length / 2 + tail * x),
    );
  }
  for (let k = 0; k <= along; k++) {
    const a = (k / along) * (Math.PI / 2);
    profile.push(new THREE.Vector2(Math.max(radius * Math.cos(a), 1e-4), length / 2 - nose + nose * Math.sin(a)));
  }
  const parts = [withColour(new THREE.LatheGeometry(profile, around), HULL["underwater"]!)];
  for (const at of [0.16, -0.12]) {
    const band = new THREE.CylinderGeometry(radius * 1.006, radius * 1.006, length * 0.025, around, 1, true);
    band.translate(0, length * at, 0);
    parts.push(withColour(band, "#1c2b38"));
  }
  return parts.map((g) => placed(g, [0, 0, 0], [1, 0, 0]));
}

function boat(length: number, width: number, height: number): THREE.BufferGeometry[] {
  const outline = new THREE.Shape();
  const w = width / 2,
    l = length / 2;
  outline.moveTo(-w, -l);
  outline.lineTo(w, -l);
  outline.lineTo(w, l * 0.35);
  outline.quadraticCurveTo(w * 0.9, l * 0.8, 0, l);
  outline.quadraticCurveTo(-w * 0.9, l * 0.8, -w, l * 0.35);
  outline.closePath();
  const hull = new THREE.ExtrudeGeometry(outline, { depth: height, bevelEnabled: false, curveSegments: 10 });
  hull.translate(0, 0, -height / 2); // x starboard, y forward, z up
  hull.rotateX(-Math.PI / 2); // forward -> -z, up -> y
  const cabin = new THREE.BoxGeometry(width * 0.55, height * 0.7, length * 0.24);
  cabin.translate(0, height * 0.85, length * 0.1);
  const mast = new THREE.CylinderGeometry(width * 0.025, width * 0.03, height * 2.2, 8);
  mast.translate(0, height * 1.7, length * 0.12);
  const deck = new THREE.BoxGeometry(width * 0.8, height * 0.04, length * 0.55);
  deck.translate(0, height * 0.52, length * 0.12);
  return [
    withColour(hull, HULL["surface"]!),
    withColour(cabin, "#d1495b"),
    withColour(mast, "#33475a"),
    withColour(deck, "#8fa3b3"),
  ];
}

function frame(length: number, width: number, height: number, coarse: boolean): THREE.BufferGeometry[] {
  const foam = new THREE.BoxGeometry(width * 0.96, height * 0.34, length * 0.92);
  foam.translate(0, height * 0.33, 0);
  const parts = [withColour(foam, HULL["underwater"]!)];
  const t = Math.min(width, height) * 0.06;
  for (const side of [-1, 1]) {
    const skid = new THREE.BoxGeometry(t, t, length);
    skid.translate(side * (width / 2 - t), -height / 2 + t / 2, 0);
    parts.push(withColour(skid, "#1c2b38"));
    const plate = new THREE.BoxGeometry(t * 0.5, height * 0.66, length * 0.9);
    plate.translate(side * (width / 2 - t), -height * 0.17, 0);
    parts.push(withColour(plate, "#26394a"));
  }
  const tube = new THREE.CylinderGeometry(height * 0.2, height * 0.2, length * 0.75, coarse ? 8 : 20);
  tube.rotateX(Math.PI / 2);
  tube.translate(0, -height * 0.1, 0);
  parts.push(withColour(tube, "#dfe7ee"));
  const eye = new THREE.SphereGeometry(height * 0.17, coarse ? 8 : 20, coarse ? 6 : 14);
  eye.translate(0, -height * 0.1, -length * 0.38);
  parts.push(withColour(eye, "#6fd3ff"));
  return parts;
}

function float(diameter: number, coarse: boolean): THREE.BufferGeometry[] {
  const r = diameter / 2;
  const ball = new THREE.SphereGeometry(r, coarse ? 12 : 28, coarse ? 8 : 20);
  const band = new THREE.CylinderGeometry(r * 1.01, r * 1.01, r * 0.22, coarse ? 12 : 28, 1, true);
  const mast = new THREE.CylinderGeometry(r * 0.07, r * 0.07, r * 1.1, 8);
  mast.translate(0, r * 1.4, 0);
  const lamp = new THREE.SphereGeometry(r * 0.17, coarse ? 6 : 12, coarse ? 5 : 10);
  lamp.translate(0, r * 2, 0);
  return [
    withColour(ball, HULL["buoy"]!),
    withColour(band, "#ffffff"),
    withColour(mast, "#33475a"),
    withColour(lamp, "#ffe66d"),
  ];
}

/** Fuselage, wing and tail of an aircraft. */
function aeroplane(length: number, span: number, height: number, coarse: boolean): THREE.BufferGeometry[] {
  const r = height * 0.5,
    around = coarse ? 8 : 20,
    chord = Math.min(span * 0.08, length * 0.3);
  const box = (
    x: number,
    y: number,
    z: number,
    w: number,
    h: number,
    l: number,
    colour: string,
  ): THREE.BufferGeometry => {
    const g = new THREE.BoxGeometry(w, h, l);
    g.translate(x, y, z);
    return withColour(g, colour);
  };
  const pod = new THREE.CapsuleGeometry(r * 0.8, length * 0.5, coarse ? 3 : 8, around);
  pod.rotateX(Math.PI / 2);
  pod.translate(0, 0, -length * 0.15);
  return [
    withColour(pod, HULL["aircraft"]!),
    box(0, r * 0.5, -length * 0.05, span, chord * 0.1, chord, HULL["aircraft"]!),
    box(span * 0.44, r * 0.5, -length * 0.05, span * 0.12, chord * 0.12, chord * 1.01, "#ff7a2f"),
    box(-span * 0.44, r * 0.5, -length * 0.05, span * 0.12, chord * 0.12, chord * 1.01, "#ff7a2f"),
    box(0, 0, length * 0.3, r * 0.4, r * 0.4, length * 0.4, "#5b6b7a"),
    box(0, 0, length * 0.46, span * 0.25, chord * 0.08, chord * 0.7, HULL["aircraft"]!),
    box(0, r * 0.6, length * 0.46, chord * 0.08, height * 0.9, chord * 0.7, "#ff7a2f"),
  ];
}

/** The hull with all fixed parts. */
export function hullGeometry(model: ModelInfo, coarse = false): THREE.BufferGeometry[] {
  const [l, w, d] = model.shape.size;
  const parts =
    model.type === "aircraft"
      ? aeroplane(l, w, d, coarse)
      : model.shape.kind === "cylinder"
        ? torpedo(l, w / 2, coarse ? 9 : 36)
        : model.shape.kind === "sphere"
          ? float(l, coarse)
          : model.type === "surface"
            ? boat(l, w, d)
            : frame(l, w, d, coarse);
  if (model.transducer) {
    const size = Math.min(w, d) * 0.1;
    parts.push(
      withColour(
        placed(new THREE.CylinderGeometry(size, size, size * 2.2, coarse ? 6 : 14), model.transducer, [0, 0, 1]),
        "#b388ff",
      ),
    );
  }
  return parts;
}

export function thrusterSize(model: ModelInfo): number {
  const [l, w, d] = model.shape.size,
    small = Math.min(w, d);
  return Math.min(small * 0.32, Math.max(l * 0.045, small * 0.2));
}

const ORIGIN = [0, 0, 0];

/** A thruster without its propeller, relative to its own position. */
export function ductGeometry(model: ModelInfo, t: ThrusterInfo, coarse = false): THREE.BufferGeometry[] {
  const size = thrusterSize(model),
    duct = new THREE.CylinderGeometry(size, size * 0.92, size * 0.9, coarse ? 8 : 20, 1, true),
    parts = [withColour(placed(duct, ORIGIN, t.direction), "#14202b")];
  if (t.swivel || t.deflector) {
    // a nozzle behind it shows its direction
    const nozzle = new THREE.CylinderGeometry(size * 0.55, size * 0.85, size * 1.5, coarse ? 8 : 20, 1, true)
      .rotateX(Math.PI / 2)
      .translate(0, 0, size * 0.9);
    parts.push(withColour(aimed(nozzle, t.direction), "#2b3f50"));
  }
  return parts;
}

/** The propeller of a thruster, relative to the position of the thruster. */
export function propellerGeometry(model: ModelInfo, t: ThrusterInfo): THREE.BufferGeometry {
  const size = thrusterSize(model),
    blades = new THREE.BoxGeometry(2 * propellerRadius(model), size * 0.16, size * 0.28);
  return withColour(placed(blades, ORIGIN, t.direction), "#c9a227");
}

export function propellerRadius(model: ModelInfo): number {
  return thrusterSize(model) * 0.875;
}

/** Rotate geometry made for a thruster that points ahead (-z) to the thruster's direction. */
function aimed(g: THREE.BufferGeometry, direction: number[]): THREE.BufferGeometry {
  return g.applyQuaternion(quaternionTowards(direction));
}

export function quaternionTowards(direction: number[]): THREE.Quaternion {
  return new THREE.Quaternion().setFromUnitVectors(
    new THREE.Vector3(0, 0, -1),
    new THREE.Vector3(...toThree(direction[0]!, direction[1]!, direction[2]!)).normalize(),
  );
}

/**
 * The bucket of a jet that points ahead, relative to its hinge and lifted: a shell above the nozzle. A rotation about x
 * lowers it behind the nozzle.
 */
export function deflectorGeometry(model: ModelInfo): THREE.BufferGeometry {
  const size = thrusterSize(model),
    arc = (100 * Math.PI) / 180;
  const shell = new THREE.CylinderGeometry(
    size * 1.9,
    size * 1.9,
    size * 1.9,
    16,
    1,
    true,
    Math.PI / 2 - arc / 2,
    arc,
  ).rotateZ(Math.PI / 2);
  return withColour(shell, "#e07a3f");
}

/** A fin, relative to its own position. */
export function finGeometry(model: ModelInfo, f: FinInfo): THREE.BufferGeometry {
  const { span, chord } = finSize(model, f),
    plate = new THREE.BoxGeometry(span, chord, chord * 0.1);
  const up = new THREE.Vector3(...toThree(f.chord[0]!, f.chord[1]!, f.chord[2]!)).normalize();
  const out = new THREE.Vector3(...toThree(f.normal[0]!, f.normal[1]!, f.normal[2]!)).normalize();
  plate.applyMatrix4(new THREE.Matrix4().makeBasis(new THREE.Vector3().crossVectors(up, out), up, out));
  return withColour(plate, "#d1495b");
}

function finSize(model: ModelInfo, f: FinInfo): { span: number; chord: number } {
  const [, w, d] = model.shape.size,
    small = Math.min(w, d),
    area = f.area > 0 ? f.area : 0.25 * small * small,
    chord = Math.sqrt(area / 1.3);
  return { chord, span: area / chord };
}

/** Position at which a fin is drawn: its centre of pressure, moved out of a round hull. */
export function finPosition(model: ModelInfo, f: FinInfo): [number, number, number] {
  const size = Math.hypot(f.position[1]!, f.position[2]!);
  const shift =
    size > 1e-6 && model.shape.kind === "cylinder"
      ? Math.max(0, model.shape.size[1] / 2 + finSize(model, f).span / 2 - size) / size
      : 0;
  return [f.position[0]!, f.position[1]! * (1 + shift), f.position[2]! * (1 + shift)];
}

/** Merge several geometries into one. */
export function mergeParts(parts: THREE.BufferGeometry[]): THREE.BufferGeometry {
  const whole = mergeGeometries(
    parts.map((g) => {
      g.deleteAttribute("uv");
      return g.index ? g.toNonIndexed() : g;
    }),
  );
  whole.computeVertexNormals();
  return whole;
}

/** The drawing of a model with its actuators at neutral; coarse if there are many bodies of it. */
export function bodyGeometry(model: ModelInfo, coarse = false): THREE.BufferGeometry {
  return mergeParts([...hullGeometry(model, coarse), ...partGeometry(model, model.thrusters, model.fins, coarse)]);
}

/** Thrusters and fins of a model at neutral. */
export function partGeometry(
  model: ModelInfo,
  thrusters: ThrusterInfo[],
  fins: FinInfo[],
  coarse = false,
): THREE.BufferGeometry[] {
  const put = (g: THREE.BufferGeometry, at: number[]): THREE.BufferGeometry =>
    g.translate(...toThree(at[0]!, at[1]!, at[2]!));
  return [
    ...thrusters.flatMap((t) =>
      [...ductGeometry(model, t, coarse), propellerGeometry(model, t)].map((g) => put(g, t.position)),
    ),
    ...fins.map((f) => put(finGeometry(model, f), finPosition(model, f))),
  ];
}

/** Material of a body that moves its parts. */
export const bodyMaterial = SOFTWARE_RENDERING
  ? new THREE.MeshLambertMaterial({ vertexColors: true, side: THREE.DoubleSide })
  : new THREE.MeshStandardMaterial({ vertexColors: true, roughness: 0.55, metalness: 0.08, side: THREE.DoubleSide });

/** Material of all other bodies. */
export const fleetMaterial = SOFTWARE_RENDERING ? vertexLitMaterial() : bodyMaterial;
