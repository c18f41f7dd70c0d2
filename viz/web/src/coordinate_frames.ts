// The only conversion between the simulator's axes and those of three.js. W: north, east, down. three.js: x right, y
// up, z towards the viewer. We
// take x = east, y = up, z = south: M = [0 1 0; 0 0 -1; -1 0 0], det M = 1, so that rotations keep their sense. A
// body's frame B (forward, starboard,
// down) maps through the same M: forward is -z, up is +y, starboard is +x, as for a camera of three.js. A rotation R_WB
// becomes M R_WB M^T: its
// quaternion keeps the scalar part, and M maps the vector part. A camera with a body's quaternion therefore looks ahead
// of the body.

export type Triple = [number, number, number];

/** Map a point or direction from W or B (north/forward, east/starboard, down) to three.js axes. */
export function toThree(n: number, e: number, d: number): Triple {
  return [e, -d, -n];
}

/** Inverse mapping. */
export function fromThree(x: number, y: number, z: number): Triple {
  return [-z, x, -y];
}

/** Map q_WB, scalar first, to three.js order (x, y, z, w). */
export function quaternionToThree(w: number, x: number, y: number, z: number): [number, number, number, number] {
  return [y, -z, -x, w];
}

/** Roll, pitch and heading of q_WB in degrees. */
export function euler(w: number, x: number, y: number, z: number): Triple {
  const deg = 180 / Math.PI;
  return [
    Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) * deg,
    Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))) * deg,
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * deg,
  ];
}

/** Format a heading or bearing in degrees: 000 to 359. */
export function formatHeading(degrees: number | null | undefined, digits = 0): string {
  if (typeof degrees !== "number" || !Number.isFinite(degrees)) return "–";
  const text = wrapDegrees(degrees).toFixed(digits);
  return (Number(text) === 360 ? (0).toFixed(digits) : text).padStart(digits ? 4 + digits : 3, "0");
}

/** Wrap an angle in degrees to [0, 360). */
export function wrapDegrees(degrees: number): number {
  return ((degrees % 360) + 360) % 360;
}
