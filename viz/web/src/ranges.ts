// Ranges and bearings that the chosen body measured, as points over time: two-way, one-way, bearing, elevation, and how wrong the
// ranges are. The true range is a line.

import { colour, css, h, number, put } from "./dom";
import type { Reception } from "./link";
import { keep } from "./keep";
import type { Store } from "./store";
import { pen } from "./pen";

const LEFT = 58, BOTTOM = 18, TOP = 6, DEG = 180 / Math.PI;
const SPANS = [30, 60, 120, 300, 600, 1800]; // s
export interface Measured { time: number; from: number; value: number; truth: number | null; one: boolean }
type What = "range" | "error" | "azimuth" | "elevation";
const WHATS: [What, string, string][] = [["range", "range", "m"], ["error", "range error", "m"], ["azimuth", "bearing, from forward to starboard", "°"], ["elevation", "elevation, down from the horizontal", "°"]];

/** The true two-way or one-way range of a reception, null where it is not known. */
function truth(e: Reception, distances: Map<string, number>): number | null {
  if (e.measured === null) return e.distance;
  const asked = distances.get(`${e.query}:${e.source}`);
  return asked === undefined || e.distance === null ? null : 0.5 * (asked + e.distance);
}

/** What a body measured since a time. */
export function measured(events: Reception[], row: number, what: What, since: number, distances: Map<string, number>): Measured[] {
  const found: Measured[] = [];
  for (const e of events) {
    if (e.receiver !== row || e.outcome !== 0 || e.time < since) continue;
    const angle = what === "azimuth" ? e.azimuth : what === "elevation" ? e.elevation : null;
    if (angle !== null) { found.push({ time: e.time, from: e.source, value: angle * DEG, truth: null, one: false }); continue; }
    if (what === "azimuth" || what === "elevation") continue;
    const one = e.measured === null, range = e.measured ?? e.one_way, known = one && e.kind === 0 ? null : truth(e, distances); // who hears a pulse may not know when it was sent
    if (range === null || (what === "error" && known === null)) continue;
    found.push({ time: e.time, from: e.source, value: what === "error" ? range - known! : range, truth: what === "range" ? known : 0, one });
  }
  return found;
}

export class Ranges {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "ranges", class: "drawn" });
  private readonly told = h("span", { class: "soft num", id: "ranges-told" });
  private what: What = "range";
  private span = 60;
  private points: Measured[] = []; // that are drawn, for the table

  constructor(private readonly store: Store) {
    const what = h("select", { "aria-label": "What was measured", onchange: () => { this.what = what.value as What; this.update(); } }, ...WHATS.map(([key, text]) => h("option", { value: key }, text)));
    const span = h("select", { "aria-label": "How long", onchange: () => { this.span = Number(span.value); this.update(); } }, ...SPANS.map((s) => h("option", { value: s, selected: s === this.span }, s < 120 ? `${s} s` : `${s / 60} min`)));
    this.element = h("div", { class: "pane" }, h("div", { class: "events-head" }, what, span, this.told, h("span", { class: "grow" }), h("button", { title: "What is shown as a table", onclick: () => this.save() }, "CSV")), h("div", { class: "sound-place" }, this.canvas));
  }

  update(): void {
    const w = this.canvas.clientWidth, hh = this.canvas.clientHeight, ratio = Math.min(window.devicePixelRatio, 2), row = this.store.chosen, until = this.store.time, since = Math.max(0, until - this.span);
    if (!w || !hh) return;
    if (this.canvas.width !== Math.round(w * ratio) || this.canvas.height !== Math.round(hh * ratio)) { this.canvas.width = Math.round(w * ratio); this.canvas.height = Math.round(hh * ratio); }
    const c = pen(this.canvas);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, hh);
    const points = (this.points = row === null ? [] : measured(this.store.events.filter((e): e is Reception => "receiver" in e), row, this.what, since, this.store.distances)), unit = WHATS.find(([k]) => k === this.what)![2];
    const errors = points.filter((p) => p.truth !== null).map((p) => p.value - p.truth!), rms = Math.sqrt(errors.reduce((s, e) => s + e * e, 0) / Math.max(errors.length, 1));
    put(this.told, row === null ? "choose a body" : points.length ? `${points.length} of ${this.store.name(row)}: ${points.filter((p) => p.one).length} one-way (rings)${errors.length && unit === "m" ? `; error rms ${number(rms, 3)} m, line: true` : ""}` : "nothing measured in this time");
    if (!points.length) return;
    const all = points.flatMap((p) => (p.truth === null ? [p.value] : [p.value, p.truth])), a = Math.min(...all), b = Math.max(...all), room = Math.max(0.06 * (b - a), 1e-3), [low, high] = [a - room, b + room];
    const x = (t: number): number => LEFT + ((t - since) / Math.max(until - since, 1e-6)) * (w - LEFT - 8), y = (v: number): number => hh - BOTTOM - ((v - low) / (high - low)) * (hh - TOP - BOTTOM);
    this.axes(c, w, hh, [since, until], [low, high], x, y, unit);
    for (const from of new Set(points.map((p) => p.from))) {
      const mine = points.filter((p) => p.from === from);
      c.strokeStyle = c.fillStyle = colour(from);
      c.lineWidth = 1;
      c.globalAlpha = 0.6;
      c.beginPath();
      mine.filter((p) => p.truth !== null).forEach((p, k) => (k ? c.lineTo(x(p.time), y(p.truth!)) : c.moveTo(x(p.time), y(p.truth!))));
      c.stroke();
      c.globalAlpha = 1;
      for (const p of mine) { c.beginPath(); c.arc(x(p.time), y(p.value), 2.8, 0, 7); if (p.one) c.stroke(); else c.fill(); }
      const last = mine.at(-1)!;
      c.textAlign = "right";
      c.fillText(this.store.name(from), Math.min(x(last.time), w - 8), Math.max(y(last.value) - 9, 8));
      c.textAlign = "left";
    }
  }

  private axes(c: CanvasRenderingContext2D, w: number, hh: number, time: [number, number], value: [number, number], x: (t: number) => number, y: (v: number) => number, unit: string): void {
    const step = (span: number, count: number): number => { const raw = span / Math.max(count, 1), ten = 10 ** Math.floor(Math.log10(Math.max(raw, 1e-9))); return [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= raw) ?? ten; };
    c.strokeStyle = css("--line");
    c.fillStyle = css("--soft");
    c.lineWidth = 1;
    c.font = "10px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.beginPath();
    const rise = step(value[1] - value[0], (hh - TOP - BOTTOM) / 24), run = step(time[1] - time[0], (w - LEFT) / 90);
    for (let v = Math.ceil(value[0] / rise) * rise; v <= value[1]; v += rise) { c.moveTo(LEFT, y(v)); c.lineTo(w - 8, y(v)); c.fillText(`${+v.toPrecision(6)} ${unit}`, 4, y(v)); }
    for (let t = Math.ceil(time[0] / run) * run; t <= time[1]; t += run) { c.moveTo(x(t), TOP); c.lineTo(x(t), hh - BOTTOM); c.fillText(`${+t.toFixed(2)} s`, x(t) + 3, hh - 8); }
    c.stroke();
  }

  private save(): void {
    const lines = ["time s,from,value,truth,one-way", ...this.points.map((p) => [p.time, this.store.name(p.from), p.value, p.truth ?? "", Number(p.one)].join())];
    keep(new Blob([lines.join("\n")], { type: "text/csv" }), `${this.what}.csv`);
  }
}
