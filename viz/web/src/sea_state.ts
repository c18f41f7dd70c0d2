// Sea of the simulation: the same wave components that act on bodies, summed at the crossings of lines that run north
// and east.

// per component: amplitude (m), angular frequency (rad/s), wave number north and east (rad/m), phase (rad)
const PARTS = 5;
// a component is drawn fully with this many cells per wavelength, and left out with half as many
const WHOLE = 8;

export class SeaState {
  readonly count: number;
  readonly shortest: number; // wave, m
  readonly height: number; // significant wave height, m
  private readonly parts: Float64Array;
  private readonly numbers: Float64Array; // wave numbers
  // cosines and sines along each line's axis
  private a = [new Float64Array(0), new Float64Array(0)] as [Float64Array, Float64Array];
  private b = [new Float64Array(0), new Float64Array(0)] as [Float64Array, Float64Array];

  constructor(components: number[][]) {
    this.count = components.length;
    this.parts = Float64Array.from(components.flat());
    this.numbers = Float64Array.from(components, (c) => Math.hypot(c[2]!, c[3]!));
    this.shortest = this.count ? (2 * Math.PI) / Math.max(...this.numbers) : Infinity;
    this.height = 4 * Math.sqrt(components.reduce((s, c) => s + 0.5 * c[0]! * c[0]!, 0));
  }

  /** Elevation (m, up) of the surface above still water at a point and time. */
  at(time: number, north: number, east: number): number {
    let up = 0;
    for (let i = 0; i < this.count; i++) {
      const o = PARTS * i,
        p = this.parts;
      up += p[o]! * Math.cos(p[o + 1]! * time - p[o + 2]! * north - p[o + 3]! * east + p[o + 4]!);
    }
    return up;
  }

  /**
   * Elevations at all crossings, row by row (one north value per row). The phase of a component is a sum of a row part
   * and a column part, so only those need sines. A component fades where the lines are too far apart to show its waves.
   */
  fill(time: number, north: Float64Array, east: Float64Array, out: Float32Array): void {
    const rows = north.length,
      columns = east.length;
    if (this.a[0].length !== rows) this.a = [new Float64Array(rows), new Float64Array(rows)];
    if (this.b[0].length !== columns) this.b = [new Float64Array(columns), new Float64Array(columns)];
    const [ac, as] = this.a,
      [bc, bs] = this.b,
      p = this.parts;
    out.fill(0);
    for (let i = 0; i < this.count; i++) {
      const o = PARTS * i,
        k = this.numbers[i]!;
      for (let r = 0; r < rows; r++) {
        const size = p[o]! * share(k, north, r),
          angle = p[o + 1]! * time + p[o + 4]! - p[o + 2]! * north[r]!;
        ac[r] = size * Math.cos(angle);
        as[r] = size * Math.sin(angle);
      }
      for (let c = 0; c < columns; c++) {
        const size = share(k, east, c),
          angle = p[o + 3]! * east[c]!;
        bc[c] = size * Math.cos(angle);
        bs[c] = size * Math.sin(angle);
      }
      for (let r = 0, at = 0; r < rows; r++) {
        const x = ac[r]!,
          y = as[r]!;
        if (x === 0 && y === 0) {
          at += columns;
          continue;
        }
        for (let c = 0; c < columns; c++, at++) out[at]! += x * bc[c]! + y * bs[c]!;
      }
    }
  }
}

/** Fading factor of a wave at a line, from the wider of its two neighbouring cells. */
function share(k: number, lines: Float64Array, i: number): number {
  const cell = Math.max(i > 0 ? lines[i]! - lines[i - 1]! : 0, i + 1 < lines.length ? lines[i + 1]! - lines[i]! : 0),
    cells = (2 * Math.PI) / (k * cell);
  return Math.min(Math.max((2 * cells) / WHOLE - 1, 0), 1);
}

const GROWTH = 1.1,
  FLAT = 0.4; // growth of cells away from the middle; share of equal cells

/** Lines around a middle: equally spaced near it, wider away from it, the last ones at ``far``. */
export function gridLines(middle: number, cell: number, half: number, far: number): Float64Array {
  const found = new Float64Array(2 * half + 1);
  found[half] = middle;
  let away = 0,
    step = cell;
  for (let k = 1; k <= half; k++) {
    if (k > FLAT * half) step *= GROWTH;
    away = k === half ? Math.max(far, away + step) : away + step;
    found[half + k] = middle + away;
    found[half - k] = middle - away;
  }
  return found;
}

/** Smallest useful cell: an eighth of the shortest wavelength, or a few pixels at this distance. */
export function smallestCell(sea: SeaState, far: number): number {
  const least = Number.isFinite(sea.shortest) ? sea.shortest / WHOLE : 1;
  // in steps, otherwise the waves would appear to crawl
  return least * 2 ** (0.5 * Math.max(0, Math.round(2 * Math.log2(Math.max(far / 140, 1e-3) / least))));
}
