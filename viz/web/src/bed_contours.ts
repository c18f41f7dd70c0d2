// Depth contours of the sea bed, for the chart and the 3D view.

import { roundStep } from "./canvas";
import type { BedGrid } from "./page_protocol";

/** Minimum and maximum depth, widened so that a level bed gets a medium colour. */
export function depthRange(bed: BedGrid): [number, number] {
  let low = Infinity,
    high = -Infinity;
  for (const row of bed.depth)
    for (const d of row)
      if (d !== null) {
        low = Math.min(low, d);
        high = Math.max(high, d);
      }
  if (!Number.isFinite(low)) return [0, 1];
  return high - low < 2 ? [low - 5, high + 5] : [low, high];
}

export function contourStep(low: number, high: number): number {
  return roundStep(Math.max((high - low) / 12, 1e-3));
}

/** Line segments (north, east, north, east, depth) of depth contours: marching triangles. */
export function contours(bed: BedGrid): number[][] {
  const [low, high] = depthRange(bed),
    step = contourStep(low, high),
    found: number[][] = [];
  const triangle = (p: number[][]): void => {
    const least = Math.min(p[0]![2]!, p[1]![2]!, p[2]![2]!),
      most = Math.max(p[0]![2]!, p[1]![2]!, p[2]![2]!);
    for (let c = Math.ceil(least / step) * step; c <= most && c > least; c += step) {
      const cut: number[] = [];
      for (let i = 0; i < 3 && cut.length < 4; i++) {
        const a = p[i]!,
          b = p[(i + 1) % 3]!;
        if (a[2]! < c !== b[2]! < c) {
          const f = (c - a[2]!) / (b[2]! - a[2]!);
          cut.push(a[0]! + f * (b[0]! - a[0]!), a[1]! + f * (b[1]! - a[1]!));
        }
      }
      if (cut.length === 4) found.push([...cut, c]);
    }
  };
  for (let i = 0; i + 1 < bed.north.length; i++)
    for (let k = 0; k + 1 < bed.east.length; k++) {
      const at = (a: number, b: number): number[] | null => {
        const d = bed.depth[a]![b];
        return d === null || d === undefined ? null : [bed.north[a]!, bed.east[b]!, d];
      };
      const a = at(i, k),
        b = at(i + 1, k),
        c = at(i, k + 1),
        d = at(i + 1, k + 1);
      if (a && b && c) triangle([a, b, c]);
      if (b && d && c) triangle([b, d, c]);
    }
  return found;
}
