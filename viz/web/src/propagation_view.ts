// What the propagation panel shows: two ends, and the field behind the rays between them.

import type { Triple } from "./coordinate_frames";
import type { SceneStore } from "./scene_store";

/** Name of a body, whose transducer is meant, or a point in W. */
export type End = string | Triple;
export const FIELDS = ["speed", "loss", "plane"] as const;
/** Sound speed or transmission loss in the vertical plane through the ends, or loss in a horizontal plane. */
export type Field = (typeof FIELDS)[number];

export interface PropagationView {
  source: End | null;
  receiver: End | null;
  field: Field;
  /** Depth of the horizontal plane, m. */
  depth: number;
  /** Carrier, Hz: absorption and losses at the boundaries depend on it. */
  frequency: number;
  rays: boolean;
  /** The field is also shown in the 3D view. */
  inSpace: boolean;
}
export const FIRST_VIEW: PropagationView = {
  source: null,
  receiver: null,
  field: "speed",
  depth: 10,
  frequency: 25_000,
  rays: true,
  inSpace: true,
};
const FARTHEST = 1e6; // m
/** Limits of the carrier, Hz. */
export const CARRIERS = [1, 1e6] as const;

export function isCarrier(v: unknown): v is number {
  return typeof v === "number" && v >= CARRIERS[0] && v <= CARRIERS[1];
}

function isEnd(v: unknown): boolean {
  if (v === null || typeof v === "string") return true;
  return Array.isArray(v) && v.length === 3 && v.every((x) => typeof x === "number" && Math.abs(x) <= FARTHEST);
}

/** True if a value from a link or from the last visit is a view. */
export function isPropagationView(value: unknown): value is PropagationView {
  if (typeof value !== "object" || value === null) return false;
  const v = value as Record<string, unknown>;
  return (
    isEnd(v["source"]) &&
    isEnd(v["receiver"]) &&
    FIELDS.includes(v["field"] as Field) &&
    typeof v["depth"] === "number" &&
    v["depth"] >= 0 &&
    v["depth"] <= FARTHEST &&
    isCarrier(v["frequency"]) &&
    typeof v["rays"] === "boolean" &&
    typeof v["inSpace"] === "boolean"
  );
}

/** Rotate a vector from B to W by q_WB, scalar first. */
export function rotate(q: ArrayLike<number>, [x, y, z]: Triple): Triple {
  const [w, a, b, c] = [q[0]!, q[1]!, q[2]!, q[3]!],
    // t = 2 q x v; v + w t + q x t
    [t, u, v] = [2 * (b * z - c * y), 2 * (c * x - a * z), 2 * (a * y - b * x)];
  return [x + w * t + b * v - c * u, y + w * u + c * t - a * v, z + w * v + a * u - b * t];
}

/** Mount of a body's transducer in B; null if it has none. */
export function transducerOf(store: SceneStore, row: number): Triple | null {
  const body = store.bodies.get(row),
    scene = store.scene;
  if (!body || !scene) return null;
  const own = scene.bodies.find((b) => b.name === body.name)?.transducer ?? scene.models[body.model]?.transducer;
  return own && own.length === 3 ? [own[0]!, own[1]!, own[2]!] : null;
}

/** Position of an end at the time that is drawn, or the reason why it is unknown. */
export function bodyPosition(store: SceneStore, end: End): Triple | string {
  if (typeof end !== "string") return end;
  const row = store.rowOf(end),
    k = row === undefined ? undefined : store.index.get(row);
  if (row === undefined || k === undefined)
    return `'${end}' is not in the simulation at this time; select another body`;
  const p = store.ned.subarray(3 * k, 3 * k + 3),
    mount = transducerOf(store, row) ?? [0, 0, 0],
    [n, e, d] = rotate(store.quaternion.subarray(4 * k, 4 * k + 4), mount),
    at: Triple = [p[0]! + n, p[1]! + e, p[2]! + d];
  return at.every(Number.isFinite) ? at : `the position of '${end}' is unknown`;
}

/** Ends for a first visit: the selected body, if it has a transducer, and another body with one. */
export function firstEnds(store: SceneStore): [source: string | null, receiver: string | null] {
  const rows = [...store.bodies.keys()].filter((row) => transducerOf(store, row)),
    source = rows.find((row) => row === store.chosen) ?? rows[0],
    receiver = rows.find((row) => row !== source),
    name = (row: number | undefined): string | null => (row === undefined ? null : store.name(row));
  return [name(source), name(receiver)];
}

/** Horizontal distances of points (three numbers each) along the line from one end towards the other, m. */
export function distancesAlong(points: number[], from: Triple, to: Triple): number[] {
  const far = Math.hypot(to[0] - from[0], to[1] - from[1]),
    [n, e] = far > 0 ? [(to[0] - from[0]) / far, (to[1] - from[1]) / far] : [1, 0],
    found: number[] = [];
  for (let k = 0; k < points.length; k += 3) found.push((points[k]! - from[0]) * n + (points[k + 1]! - from[1]) * e);
  return found;
}
