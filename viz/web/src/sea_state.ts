// The sea of the simulation: the very components that bodies feel, summed at the crossings of lines that run north and east.

const PARTS = 5; // of a component: amplitude (m), angular frequency (rad/s), wave number north and east (rad/m), phase (rad)
// a component is drawn whole where a wave has this many cells, and is left out where it has half as many
const WHOLE = 8;

export class SeaState {
  readonly count: number;
  readonly shortest: number; // wave, m
  readonly height: number; // significant, m
  private readonly parts: Float64Array;
  private readonly numbers: Float64Array; // wave numbers
  private a = [new Float64Array(0), new Float64Array(0)] as [Float64Array, Float64Array]; // cosines and sines along a line's own axis
  private b = [new Float64Array(0), new Float64Array(0)] as [Float64Array, Float64Array];

  constructor(components: number[][]) {
    this.count = components.length;
    this.parts = Float64Array.from(components.flat());
    this.numbers = Float64Array.from(components, (c) => Math.hypot(c[2]!, c[3]!));
    this.shortest = this.count ? (2 * Math.PI) / Math.max(...this.numbers) : Infinity;
    this.height = 4 * Math.sqrt(components.reduce((s, c) => s + 0.5 * c[0]! * c[0]!, 0));
  }

  /** Elevation (m, up) of the surface over the still level at a point and a time. */
  at(time: number, north: number, east: number): number {
    let up = 0;
    for (let i = 0; i < this.count; i++) {
      const o = PARTS * i, p = this.parts;
      up += p[o]! * Math.cos(p[o + 1]! * time - p[o + 2]! * north - p[o + 3]! * east + p[o + 4]!);
    }
    return up;
  }

  /** Elevations at all crossings, row by row (a row is of one north). The angle of a component is a sum of one part by the row
   * and one by the column, so that only those need sines. Where lines lie too far apart for a wave it is faded. */
  fill(time: number, north: Float64Array, east: Float64Array, out: Float32Array): void {
    const rows = north.length, columns = east.length;
    if (this.a[0].length !== rows) this.a = [new Float64Array(rows), new Float64Array(rows)];
    if (this.b[0].length !== columns) this.b = [new Float64Array(columns), new Float64Array(columns)];
    const [ac, as] = this.a, [bc, bs] = this.b, p = this.parts;
    out.fill(0);
    for (let i = 0; i < this.count; i++) {
      const o = PARTS * i, k = this.numbers[i]!;
      for (let r = 0; r < rows; r++) {
        const size = p[o]! * share(k, north, r), angle = p[o + 1]! * time + p[o + 4]! - p[o + 2]! * north[r]!;
        ac[r] = size * Math.cos(angle);
        as[r] = size * Math.sin(angle);
      }
      for (let c = 0; c < columns; c++) {
        const size = share(k, east, c), angle = p[o + 3]! * east[c]!;
        bc[c] = size * Math.cos(angle);
        bs[c] = size * Math.sin(angle);
      }
      for (let r = 0, at = 0; r < rows; r++) {
        const x = ac[r]!, y = as[r]!;
        if (x === 0 && y === 0) { at += columns; continue; }
        for (let c = 0; c < columns; c++, at++) out[at]! += x * bc[c]! + y * bs[c]!;
      }
    }
  }
}

/** How much of a wave a line can show, by the wider of the cells beside it. */
function share(k: number, lines: Float64Array, i: number): number {
  const cell = Math.max(i > 0 ? lines[i]! - lines[i - 1]! : 0, i + 1 < lines.length ? lines[i + 1]! - lines[i]! : 0), cells = (2 * Math.PI) / (k * cell);
  return Math.min(Math.max((2 * cells) / WHOLE - 1, 0), 1);
}

const GROWTH = 1.1, FLAT = 0.4; // of the cells away from the middle; share of them that are all alike

/** Lines around a middle: alike near it, wider and wider away from it, the last ones at ``far``. */
export function gridLines(middle: number, cell: number, half: number, far: number): Float64Array {
  const found = new Float64Array(2 * half + 1);
  found[half] = middle;
  let away = 0, step = cell;
  for (let k = 1; k <= half; k++) {
    if (k > FLAT * half) step *= GROWTH;
    away = k === half ? Math.max(far, away + step) : away + step;
    found[half + k] = middle + away;
    found[half - k] = middle - away;
  }
  return found;
}

/** The least cell that is worth while: an eighth of the shortest wave, or what is a few pixels from so far away. */
export function smallestCell(sea: SeaState, far: number): number {
  const least = Number.isFinite(sea.shortest) ? sea.shortest / WHOLE : 1;
  return least * 2 ** (0.5 * Math.max(0, Math.round(2 * Math.log2(Math.max(far / 140, 1e-3) / least)))); // by steps, or waves would crawl
}
