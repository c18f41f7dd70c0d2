// Survey tracks over an area: parallel legs and circles, with their lengths and durations.
// wavesim_sdk/guidance/survey_patterns.py has the same patterns for programs; a test compares the two.

export type Point = [number, number]; // north, east
export type Waypoint = [number, number, number, number]; // north, east, depth, speed through the water

export const MAX_WAYPOINTS = 400; // maximum number of waypoints added at once

/**
 * Ends, in order, of parallel legs back and forth over a polygon along a heading (degrees). No point of the polygon is
 * farther than half the spacing from a leg.
 */
export function parallelLegs(area: Point[], spacing: number, heading: number): Point[] {
  if (area.length < 3 || !(spacing > 0)) return [];
  const c = Math.cos((heading * Math.PI) / 180),
    s = Math.sin((heading * Math.PI) / 180);
  const turned = area.map(([n, e]): Point => [n * c + e * s, e * c - n * s]); // along, across
  const across = turned.map((p) => p[1]),
    low = Math.min(...across),
    width = Math.max(...across) - low,
    count = Math.max(1, Math.ceil(width / spacing - 1e-9));
  if (2 * count > MAX_WAYPOINTS) return [];
  const found: Point[] = [];
  for (let k = 0; k < count; k++) {
    const at = low + (width - (count - 1) * spacing) / 2 + k * spacing,
      ends: number[] = [];
    turned.forEach((a, i) => {
      const b = turned[(i + 1) % turned.length]!;
      if (a[1] <= at !== b[1] <= at) ends.push(a[0] + ((at - a[1]) / (b[1] - a[1])) * (b[0] - a[0]));
    });
    ends.sort((a, b) => (k % 2 ? b - a : a - b));
    for (const along of ends) found.push([along * c - at * s, along * s + at * c]);
  }
  return found;
}

/** Points of a closed circle, starting north. */
export function circlePoints(middle: Point, radius: number, points = 12): Point[] {
  return Array.from({ length: points + 1 }, (_, k): Point => [
    middle[0] + radius * Math.cos((2 * Math.PI * k) / points),
    middle[1] + radius * Math.sin((2 * Math.PI * k) / points),
  ]);
}

/** Distance in m and time in s from the start to each waypoint, in still water. */
export function distancesAndTimes(
  from: [number, number, number],
  points: Waypoint[],
): { distance: number; time: number }[] {
  let [distance, time] = [0, 0],
    last = from;
  return points.map(([n, e, d, speed]) => {
    const leg = Math.hypot(n - last[0], e - last[1], d - last[2]);
    [distance, time, last] = [distance + leg, time + (speed > 0 ? leg / speed : Infinity), [n, e, d]];
    return { distance, time };
  });
}
