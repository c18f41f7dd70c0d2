// Plans of several vehicles in time: predicted positions, and conflicts, where two vehicles come too close at the same
// time. Vehicles move straight from point to point at the planned speed in still water, and stay at their last waypoint.

import type { Waypoint } from "./survey_patterns";

export type Position = [north: number, east: number, depth: number];

export interface Plan {
  name: string;
  times: number[]; // s from now, ascending; the first is 0
  positions: Position[]; // at these times
}

export interface Conflict {
  names: [string, string];
  from: number; // s from now
  until: number; // s from now; Infinity: both stay too close
  time: number; // of the least distance
  distance: number; // m, in three dimensions
  positions: [Position, Position]; // at that time
}

/** Plan from a position through waypoints. A leg without speed never ends: the plan ends before it. */
export function planOf(name: string, from: Position, waypoints: Waypoint[]): Plan {
  const plan: Plan = { name, times: [0], positions: [from] };
  for (const [n, e, d, speed] of waypoints) {
    const last = plan.positions.at(-1)!,
      leg = Math.hypot(n - last[0], e - last[1], d - last[2]);
    if (!(speed > 0)) break;
    if (leg === 0) continue;
    plan.times.push(plan.times.at(-1)! + leg / speed);
    plan.positions.push([n, e, d]);
  }
  return plan;
}

export function durationOf(plan: Plan): number {
  return plan.times.at(-1)!;
}

/** Predicted position after a time in s. */
export function positionAt(plan: Plan, time: number): Position {
  let [low, high] = [0, plan.times.length - 1];
  if (time >= plan.times[high]!) return plan.positions[high]!;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (plan.times[middle]! <= time) low = middle;
    else high = middle;
  }
  const [a, b] = [plan.positions[low]!, plan.positions[high]!],
    share = (time - plan.times[low]!) / (plan.times[high]! - plan.times[low]!);
  return [0, 1, 2].map((k) => a[k]! + share * (b[k]! - a[k]!)) as Position;
}

/** Conflicts of all pairs of plans whose distance falls below a separation in m, earliest first. */
export function findConflicts(plans: Plan[], separation: number): Conflict[] {
  const found: Conflict[] = [];
  plans.forEach((a, k) => {
    for (const b of plans.slice(k + 1)) if (mayMeet(a, b, separation)) found.push(...conflictsOf(a, b, separation));
  });
  return found.sort((x, y) => x.from - y.from);
}

/** False if the boxes around two plans are farther apart than the separation. */
function mayMeet(a: Plan, b: Plan, separation: number): boolean {
  return [0, 1, 2].every((axis) => {
    const range = (p: Plan): [number, number] => {
      let [low, high] = [Infinity, -Infinity];
      for (const at of p.positions) [low, high] = [Math.min(low, at[axis]!), Math.max(high, at[axis]!)];
      return [low, high];
    };
    const [[a0, a1], [b0, b1]] = [range(a), range(b)];
    return a0 - separation < b1 && b0 - separation < a1;
  });
}

function conflictsOf(a: Plan, b: Plan, separation: number): Conflict[] {
  const times = [...new Set([...a.times, ...b.times])].sort((x, y) => x - y),
    found: Conflict[] = [];
  const distanceAt = (t: number): number => {
    const [p, q] = [positionAt(a, t), positionAt(b, t)];
    return Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
  };
  times.forEach((start, k) => {
    const end = times[k + 1] ?? Infinity, // after the last time, both stay
      [from, until, nearest] = closeInterval(a, b, start, end, separation);
    if (!(from < until)) return;
    const last = found.at(-1),
      distance = distanceAt(nearest);
    if (last && last.until === from) {
      last.until = until;
      if (distance >= last.distance) return;
      [last.time, last.distance, last.positions] = [
        nearest,
        distance,
        [positionAt(a, nearest), positionAt(b, nearest)],
      ];
    } else
      found.push({
        names: [a.name, b.name],
        from,
        until,
        time: nearest,
        distance,
        positions: [positionAt(a, nearest), positionAt(b, nearest)],
      });
  });
  return found;
}

/**
 * Part of a time interval, with constant velocities, in which two plans are closer than the separation, and the time of
 * their least distance; from > until: none. |r + v t|^2 = separation^2 is a quadratic equation.
 */
function closeInterval(a: Plan, b: Plan, start: number, end: number, separation: number): [number, number, number] {
  const never: [number, number, number] = [Infinity, -Infinity, start],
    r = difference(positionAt(a, start), positionAt(b, start)),
    c = dot(r, r) - separation ** 2;
  if (end === Infinity) return c < 0 ? [start, Infinity, start] : never;
  const span = end - start,
    v = difference(positionAt(a, end), positionAt(b, end)).map((x, k) => (x - r[k]!) / span) as Position,
    vv = dot(v, v),
    nearest = vv > 0 ? Math.min(Math.max(-dot(r, v) / vv, 0), span) : 0;
  if (vv < 1e-18) return c < 0 ? [start, end, start] : never;
  const root = dot(r, v) ** 2 - vv * c;
  if (root <= 0) return never;
  const from = (-dot(r, v) - Math.sqrt(root)) / vv,
    until = (-dot(r, v) + Math.sqrt(root)) / vv;
  if (until <= 0 || from >= span) return never;
  return [from <= 0 ? start : start + from, until >= span ? end : start + until, start + nearest];
}

function difference(p: Position, q: Position): Position {
  return [p[0] - q[0], p[1] - q[1], p[2] - q[2]];
}

function dot(p: Position, q: Position): number {
  return p[0] * q[0] + p[1] * q[1] + p[2] * q[2];
}
