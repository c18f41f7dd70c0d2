// Latitude and longitude of points in W on the WGS 84 ellipsoid; and depths interpolated in a grid.

import type { BedGrid } from "./page_protocol";

const A = 6378137.0,
  F = 1 / 298.257223563,
  E2 = F * (2 - F),
  RAD = Math.PI / 180;

/** Latitude and longitude in degrees of a point north, east and down of an origin at height 0. */
export function geodetic(origin: [number, number], n: number, e: number, d: number): [number, number] {
  const [lat, lon] = [origin[0] * RAD, origin[1] * RAD],
    [s, c, sl, cl] = [Math.sin(lat), Math.cos(lat), Math.sin(lon), Math.cos(lon)],
    r = A / Math.sqrt(1 - E2 * s * s);
  // the origin and the offset from it, in the Earth-fixed frame
  const x = r * c * cl - s * cl * n - sl * e - c * cl * d,
    y = r * c * sl - s * sl * n + cl * e - c * sl * d,
    z = r * (1 - E2) * s + c * n - s * d;
  const p = Math.hypot(x, y);
  let phi = Math.atan2(z, p * (1 - E2));
  for (let k = 0; k < 4; k++) {
    // Bowring; near the ground it converges to the last digits in two iterations
    const sp = Math.sin(phi),
      np = A / Math.sqrt(1 - E2 * sp * sp);
    phi = Math.atan2(z + E2 * np * sp, p);
  }
  return [phi / RAD, Math.atan2(y, x) / RAD];
}

/** North and east in m of a geodetic position, relative to an origin. */
export function toLocal(origin: [number, number], latitude: number, longitude: number): [number, number] {
  const earth = (lat: number, lon: number): [number, number, number] => {
    const s = Math.sin(lat * RAD),
      c = Math.cos(lat * RAD),
      r = A / Math.sqrt(1 - E2 * s * s);
    return [r * c * Math.cos(lon * RAD), r * c * Math.sin(lon * RAD), r * (1 - E2) * s];
  };
  const a = earth(...origin),
    b = earth(latitude, longitude),
    [x, y, z] = [b[0] - a[0], b[1] - a[1], b[2] - a[2]],
    [lat, lon] = [origin[0] * RAD, origin[1] * RAD];
  return [
    -Math.sin(lat) * (Math.cos(lon) * x + Math.sin(lon) * y) + Math.cos(lat) * z,
    -Math.sin(lon) * x + Math.cos(lon) * y,
  ];
}

/** Format as on a chart: degrees and minutes with hemisphere. */
export function formatDegrees(value: number, sides: "NS" | "EW"): string {
  const side = value < -1e-9 ? sides[1]! : sides[0]!,
    whole = Math.abs(value),
    d = Math.floor(whole + 1e-9),
    m = Math.max((whole - d) * 60, 0);
  return `${d}°${m.toFixed(4).padStart(7, "0")}'${side}`;
}

/** Format metres from the origin with their side: 200 S, 15.0 E. Without digits, all that the value has. */
export function formatOffset(value: number, sides: "NS" | "EW", digits?: number): string {
  const whole = digits === undefined ? String(Math.abs(value)) : Math.abs(value).toFixed(digits);
  return `${whole} ${value < 0 && Number(whole) ? sides[1]! : sides[0]!}`;
}

/** Depth of the bed at a point, interpolated between the four grid points; null if unknown. */
export function depthAt(bed: BedGrid | null | undefined, n: number, e: number): number | null {
  if (!bed) return null;
  const place = (axis: number[], v: number): [number, number] | null => {
    const step = (axis[axis.length - 1]! - axis[0]!) / (axis.length - 1),
      at = (v - axis[0]!) / step,
      k = Math.min(Math.floor(at), axis.length - 2);
    return at < 0 || at > axis.length - 1 ? null : [k, at - k];
  };
  const [i, k] = [place(bed.north, n), place(bed.east, e)];
  if (!i || !k) return null;
  const at = (a: number, b: number): number => bed.depth[i[0] + a]![k[0] + b] ?? NaN;
  const depth =
    (1 - i[1]) * ((1 - k[1]) * at(0, 0) + k[1] * at(0, 1)) + i[1] * ((1 - k[1]) * at(1, 0) + k[1] * at(1, 1));
  return Number.isFinite(depth) ? depth : null;
}

/** Distance in m and bearing in degrees from one point (north, east) to another. */
export function distanceAndBearing(from: [number, number], to: [number, number]): [number, number] {
  return [
    Math.hypot(to[0] - from[0], to[1] - from[1]),
    (Math.atan2(to[1] - from[1], to[0] - from[0]) / RAD + 360) % 360,
  ];
}
