// Rules for fences, as the server applies them, and the difference between two sets of fences.

import { MAX_ITEM_CORNERS, MIN_CORNERS, NAME_BYTES, type FenceInfo } from "./page_protocol";

type Corner = readonly [north: number, east: number];

/** Numbers of two sides of a polygon that cross each other, from 1; side k begins at corner k. */
export function crossingSides(corners: readonly Corner[]): [number, number] | null {
  const n = corners.length,
    /** Side of the line through side i on which corner j is: positive, negative, or 0 on the line. */
    side = (i: number, j: number): number => {
      const [a, b, p] = [corners[i]!, corners[(i + 1) % n]!, corners[j % n]!];
      return Math.sign((b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]));
    };
  for (let i = 0; i < n; i++)
    for (let j = i + 1; j < n; j++)
      if (side(i, j) * side(i, j + 1) < 0 && side(j, i) * side(j, i + 1) < 0) return [i + 1, j + 1];
  return null;
}

/** Reason why a configuration or a server would refuse these fences; "": they are valid. */
export function fenceProblem(fences: readonly FenceInfo[]): string {
  const seen = new Set<string>();
  for (const { name, corners } of fences) {
    if (!name.trim()) return "a fence has no name: enter one in the list of fences";
    if (seen.has(name)) return `two fences are named '${name}': give each its own name`;
    if (new TextEncoder().encode(name).length > NAME_BYTES)
      return `the name '${name}' is too long: use at most ${NAME_BYTES} bytes`;
    seen.add(name);
    if (corners.length < MIN_CORNERS)
      return `fence '${name}' has fewer than ${MIN_CORNERS} corners: add corners, or delete it`;
    const crossing = crossingSides(corners);
    if (crossing)
      return `fence '${name}' crosses itself: the sides that begin at corners ${crossing.join(" and ")} cross; move a corner`;
  }
  return "";
}

/** Reason why a running server would refuse these changes; "": it takes them. */
export function changeProblem(changes: readonly FenceInfo[]): string {
  const large = changes.find(({ corners }) => corners.length > MAX_ITEM_CORNERS);
  return large
    ? `fence '${large.name}' has ${large.corners.length} corners: a running server accepts at most ${MAX_ITEM_CORNERS}`
    : "";
}

const same = (a: FenceInfo, b: FenceInfo): boolean => a.keep === b.keep && String(a.corners) === String(b.corners);

/** Changes from one set of fences to another: new and changed fences, and removed fences, which have no corners. */
export function fenceChanges(before: readonly FenceInfo[], after: readonly FenceInfo[]): FenceInfo[] {
  const old = new Map(before.map((f) => [f.name, f])),
    names = new Set(after.map((f) => f.name));
  return [
    ...before.filter((f) => !names.has(f.name)).map((f) => ({ ...f, corners: [] })),
    ...after.filter((f) => !old.has(f.name) || !same(old.get(f.name)!, f)),
  ];
}

/** Fences after changes. Objects of the changes are kept, all others are copied. */
export function withChanges(fences: readonly FenceInfo[], changes: readonly FenceInfo[]): FenceInfo[] {
  const changed = new Map(changes.map((f) => [f.name, f])),
    known = new Set(fences.map((f) => f.name));
  return [
    ...fences.map((f) => changed.get(f.name) ?? structuredClone(f)),
    ...changes.filter((f) => !known.has(f.name)),
  ].filter((f) => f.corners.length);
}
