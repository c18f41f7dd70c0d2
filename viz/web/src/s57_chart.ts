// Electronic chart below the viewer's own: depth areas, land, contours, soundings and marks of an S-57 cell, in the
// colours of the chart.

import { cssVariable } from "./dom";
import { toLocal } from "./geodesy";
import { depthColour } from "./colour_scales";
import type { ChartContent } from "./page_protocol";

type Px = (n: number, e: number) => [number, number];
interface Box {
  n0: number;
  n1: number;
  e0: number;
  e1: number;
}
interface Shape {
  rings: Float64Array[];
  box: Box;
  depth: number | null;
  kind: string;
}

const DEEP = 50; // m: depth at which the colour scale ends
const CELL = [34, 16] as const; // px: one sounding per cell of this size, the shallowest

export class S57Chart {
  version = 0; // incremented when another chart is loaded
  private content: ChartContent | null = null;
  private origin: readonly number[] = [];
  private areas: Shape[] = [];
  private lines: Shape[] = [];
  private soundings = new Float64Array(0); // north, east, depth; shallowest first
  private marks: { kind: string; name: string; at: [number, number] }[] = [];

  get isLoaded(): boolean {
    return this.content !== null;
  }

  async load(): Promise<void> {
    this.content = (await (await fetch("/chart")).json()) as ChartContent;
    this.origin = [];
    this.version++;
  }

  private project(content: ChartContent, origin: [number, number]): void {
    this.origin = origin;
    const path = (flat: number[]): Float64Array => {
      const out = new Float64Array(flat.length);
      for (let k = 0; k < flat.length; k += 2) out.set(toLocal(origin, flat[k]!, flat[k + 1]!), k);
      return out;
    };
    const shape = (kind: string, depth: number | null, rings: number[][]): Shape => {
      const laid = rings.map(path);
      return { rings: laid, box: boxOf(laid), depth, kind };
    };
    this.areas = content.areas.map((a) => shape(a.kind, a.depth, a.rings));
    this.lines = content.lines.map((l) => shape(l.kind, l.depth, [l.path]));
    const points: [number, number, number][] = [];
    for (let k = 0; k < content.soundings.length; k += 3)
      points.push([...toLocal(origin, content.soundings[k]!, content.soundings[k + 1]!), content.soundings[k + 2]!]);
    this.soundings = Float64Array.from(points.sort((a, b) => a[2] - b[2]).flat());
    this.marks = content.marks.map((m) => ({ ...m, at: toLocal(origin, ...m.at) }));
  }

  /** Draw everything between two corners (north, east). */
  draw(
    c: CanvasRenderingContext2D,
    origin: [number, number],
    low: [number, number],
    high: [number, number],
    px: Px,
    dark: boolean,
  ): void {
    if (!this.content) return;
    if (origin[0] !== this.origin[0] || origin[1] !== this.origin[1]) this.project(this.content, origin);
    const isVisible = (b: Box): boolean => b.n1 >= low[0] && b.n0 <= high[0] && b.e1 >= low[1] && b.e0 <= high[1];
    const trace = (rings: Float64Array[], close: boolean): void => {
      c.beginPath();
      for (const ring of rings) {
        for (let k = 0; k < ring.length; k += 2) {
          const [x, y] = px(ring[k]!, ring[k + 1]!);
          if (k) c.lineTo(x, y);
          else c.moveTo(x, y);
        }
        if (close) c.closePath();
      }
    };
    for (const a of this.areas) {
      if (!isVisible(a.box)) continue;
      c.fillStyle =
        a.kind === "LNDARE"
          ? dark
            ? "#4a4331"
            : "#e8d9a8"
          : `rgb(${depthColour(Math.sqrt(Math.max(a.depth ?? 0, 0) / DEEP))
              .map((v) => Math.round(255 * v))
              .join(",")})`;
      c.globalAlpha = dark ? 0.6 : 0.85;
      trace(a.rings, true);
      c.fill("evenodd");
    }
    c.globalAlpha = 1;
    c.font = "10px system-ui, sans-serif";
    for (const l of this.lines) {
      if (!isVisible(l.box)) continue;
      const contour = l.kind === "DEPCNT";
      c.strokeStyle = contour ? (dark ? "#ffffff60" : "#12283a70") : cssVariable("--ink");
      c.lineWidth = contour ? 0.9 : 1.6;
      trace(l.rings, false);
      c.stroke();
      const ring = l.rings[0]!,
        half = 2 * Math.floor(ring.length / 4),
        [x, y] = px(ring[half]!, ring[half + 1]!);
      c.fillStyle = cssVariable("--soft");
      if (contour && l.depth !== null) c.fillText(`${l.depth}`, x + 2, y - 2);
    }
    this.write(c, px, low, high);
  }

  private write(c: CanvasRenderingContext2D, px: Px, low: [number, number], high: [number, number]): void {
    const taken = new Set<string>(),
      p = this.soundings;
    c.fillStyle = cssVariable("--ink");
    c.textAlign = "center";
    for (let k = 0; k < p.length; k += 3) {
      if (p[k]! < low[0] || p[k]! > high[0] || p[k + 1]! < low[1] || p[k + 1]! > high[1]) continue;
      const [x, y] = px(p[k]!, p[k + 1]!),
        place = `${Math.floor(x / CELL[0])},${Math.floor(y / CELL[1])}`;
      if (taken.has(place)) continue;
      taken.add(place);
      const d = p[k + 2]!;
      c.fillText(d < 31 ? d.toFixed(1) : d.toFixed(0), x, y + 3);
    }
    for (const m of this.marks) {
      const [x, y] = px(...m.at);
      c.beginPath();
      if (/^(WRECKS|OBSTRN|UWTROC)$/.test(m.kind)) {
        c.moveTo(x - 4, y);
        c.lineTo(x + 4, y);
        c.moveTo(x, y - 4);
        c.lineTo(x, y + 4);
      } else {
        c.moveTo(x, y - 6);
        c.lineTo(x + 4, y + 1);
        c.lineTo(x, y + 4);
        c.lineTo(x - 4, y + 1);
        c.closePath();
      }
      c.strokeStyle = cssVariable("--warm");
      c.lineWidth = 1.4;
      c.stroke();
      if (m.name) c.fillText(m.name, x, y + 15);
    }
    c.textAlign = "start";
  }

  /** Draw the source of the chart. */
  sign(c: CanvasRenderingContext2D, hh: number): void {
    if (!this.content) return;
    c.font = "10px system-ui, sans-serif";
    c.fillStyle = cssVariable("--soft");
    c.fillText(`${this.content.name} · depths below chart datum`, 98, hh - 32);
  }
}

function boxOf(rings: Float64Array[]): Box {
  const b = { n0: Infinity, n1: -Infinity, e0: Infinity, e1: -Infinity };
  for (const r of rings)
    for (let k = 0; k < r.length; k += 2) {
      b.n0 = Math.min(b.n0, r[k]!);
      b.n1 = Math.max(b.n1, r[k]!);
      b.e0 = Math.min(b.e0, r[k + 1]!);
      b.e1 = Math.max(b.e1, r[k + 1]!);
    }
  return b;
}
