// The one place where the simulator's axes meet those of three.js.
//
// W: north, east, down.  three.js: x right, y up, z towards the viewer.  We take x = east, y = up, z = south:
//     M = [0 1 0; 0 0 -1; -1 0 0],   det M = 1,   so that turning stays turning.
// A body's frame B (forward, starboard, down) goes through the same M: forward is -z, up is +y, starboard is +x, which is
// also how a camera of three.js looks.  A rotation R_WB becomes M R_WB M^T: its quaternion keeps the scalar, its vector
// goes through M.  Hence a camera with a body's quaternion looks out of the body's front.

export type Triple = [number, number, number];

/** A point or direction in W or B (north/forward, east/starboard, down) in three's axes. */
export function toThree(n: number, e: number, d: number): Triple {
  return [e, -d, -n];
}

/** The way back. */
export function fromThree(x: number, y: number, z: number): Triple {
  return [-z, x, -y];
}

/** q_WB, scalar first, as three's (x, y, z, w). */
export function quaternionToThree(w: number, x: number, y: number, z: number): [number, number, number, number] {
  return [y, -z, -x, w];
}

/** Roll, pitch, heading in degrees of q_WB. */
export function euler(w: number, x: number, y: number, z: number): Triple {
  const deg = 180 / Math.PI;
  return [
    Math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y)) * deg,
    Math.asin(Math.max(-1, Math.min(1, 2 * (w * y - z * x)))) * deg,
    Math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)) * deg,
  ];
}

/** An angle in degrees in [0, 360). */
export function wrapDegrees(degrees: number): number {
  return ((degrees % 360) + 360) % 360;
}
