// Ranges and bearings measured by the selected body, as points over time: two-way range, one-way range, bearing,
// elevation and range errors. A line
// shows the true range.

import { placeLabel } from "./traffic_list";
import { bodyColour, h, formatNumber, formatTime, setText } from "./dom";
import { downloadBlob } from "./url_state";
import type { SceneStore } from "./scene_store";
import { drawGrid, roundStep, prepareCanvas } from "./canvas";
import type { SignalReception } from "./page_protocol";

const LEFT = 58,
  BOTTOM = 18,
  TOP = 6,
  DEG = 180 / Math.PI;
const SPANS = [30, 60, 120, 300, 600, 1800]; // s
export interface RangeMeasurement {
  time: number;
  from: number;
  value: number;
  truth: number | null;
  one: boolean;
}
type What = "range" | "error" | "azimuth" | "elevation";
const QUANTITIES: [What, string, string][] = [
  ["range", "range", "m"],
  ["error", "range error", "m"],
  ["azimuth", "relative bearing, positive to starboard", "°"],
  ["elevation", "elevation, positive downwards", "°"],
];

/** True two-way or one-way range of a reception; null if unknown. */
function truth(e: SignalReception, distances: Map<string, number>): number | null {
  if (e.measured === null) return e.distance;
  const queryDistance = distances.get(`${e.query}:${e.source}`);
  return queryDistance === undefined || e.distance === null ? null : 0.5 * (queryDistance + e.distance);
}

/** Measurements of a body since a given time. */
export function rangeMeasurements(
  events: SignalReception[],
  row: number,
  what: What,
  since: number,
  distances: Map<string, number>,
): RangeMeasurement[] {
  const found: RangeMeasurement[] = [];
  for (const e of events) {
    if (e.receiver !== row || e.outcome !== 0 || e.time < since) continue;
    const angle = what === "azimuth" ? e.azimuth : what === "elevation" ? e.elevation : null;
    if (angle !== null) {
      found.push({ time: e.time, from: e.source, value: angle * DEG, truth: null, one: false });
      continue;
    }
    if (what === "azimuth" || what === "elevation") continue;
    const one = e.measured === null,
      range = e.measured ?? e.one_way,
      known = one && e.kind === 0 ? null : truth(e, distances); // a receiver may not know when a pulse was sent
    if (range === null || (what === "error" && known === null)) continue;
    found.push({
      time: e.time,
      from: e.source,
      value: what === "error" ? range - known! : range,
      truth: what === "range" ? known : 0,
      one,
    });
  }
  return found;
}

export class AcousticRanges {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "ranges", class: "drawn" });
  private readonly summary = h("span", { class: "soft num", id: "ranges-summary" });
  private what: What = "range";
  private span = 60;
  private points: RangeMeasurement[] = []; // points drawn, for the table

  constructor(private readonly store: SceneStore) {
    const what = h(
      "select",
      {
        "aria-label": "Measured quantity",
        onchange: () => {
          this.what = what.value as What;
          this.update();
        },
      },
      ...QUANTITIES.map(([key, text]) => h("option", { value: key }, text)),
    );
    const span = h(
      "select",
      {
        "aria-label": "Time span",
        onchange: () => {
          this.span = Number(span.value);
          this.update();
        },
      },
      ...SPANS.map((s) => h("option", { value: s, selected: s === this.span }, s < 120 ? `${s} s` : `${s / 60} min`)),
    );
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        what,
        span,
        this.summary,
        h("span", { class: "grow" }),
        h("button", { title: "Show the values as a table", onclick: () => this.save() }, "CSV"),
      ),
      h("div", { class: "sound-place" }, this.canvas),
    );
    new ResizeObserver(() => this.update()).observe(this.canvas); // the heading may have wrapped to another line
  }

  update(): void {
    const page = prepareCanvas(this.canvas),
      row = this.store.chosen,
      until = this.store.time,
      since = Math.max(0, until - this.span);
    if (!page) return;
    const { c, w, hh } = page;
    c.clearRect(0, 0, w, hh);
    const points = (this.points =
        row === null
          ? []
          : rangeMeasurements(
              this.store.events.filter((e): e is SignalReception => "receiver" in e),
              row,
              this.what,
              since,
              this.store.distances,
            )),
      unit = QUANTITIES.find(([k]) => k === this.what)![2];
    const errors = points.filter((p) => p.truth !== null).map((p) => p.value - p.truth!),
      rms = Math.sqrt(errors.reduce((s, e) => s + e * e, 0) / Math.max(errors.length, 1));
    const rings = `${points.filter((p) => p.one).length} one-way (rings)`,
      rest = errors.length && unit === "m" ? `; error rms ${formatNumber(rms, 3)} m, line: true` : "";
    setText(
      this.summary,
      row === null
        ? "select a body"
        : points.length
          ? `${points.length} of ${this.store.name(row)}: ${rings}${rest}`
          : "no measurements in this time span",
    );
    if (!points.length) return;
    const all = points.flatMap((p) => (p.truth === null ? [p.value] : [p.value, p.truth])),
      a = Math.min(...all),
      b = Math.max(...all),
      room = Math.max(0.06 * (b - a), 1e-3),
      [low, high] = [a - room, b + room];
    const x = (t: number): number => LEFT + ((t - since) / Math.max(until - since, 1e-6)) * (w - LEFT - 8),
      y = (v: number): number => hh - BOTTOM - ((v - low) / (high - low)) * (hh - TOP - BOTTOM);
    const [second, upward] = [(w - LEFT - 8) / Math.max(until - since, 1e-6), (hh - TOP - BOTTOM) / (high - low)]; // px
    drawGrid(
      page,
      { left: LEFT, right: 8, top: TOP, bottom: BOTTOM },
      {
        from: since,
        to: until,
        step: roundStep(90 / second),
        at: x,
        text: (t) => formatTime(t, roundStep(90 / second) < 1 ? 1 : 0),
      },
      { from: low, to: high, step: roundStep(24 / upward), at: y, text: (v) => `${+v.toPrecision(6)} ${unit}` },
    );
    const taken: [number, number, number][] = []; // places of names
    for (const from of new Set(points.map((p) => p.from))) {
      const mine = points.filter((p) => p.from === from);
      c.strokeStyle = c.fillStyle = bodyColour(from);
      c.lineWidth = 1;
      c.globalAlpha = 0.6;
      c.beginPath();
      mine
        .filter((p) => p.truth !== null)
        .forEach((p, k) => (k ? c.lineTo(x(p.time), y(p.truth!)) : c.moveTo(x(p.time), y(p.truth!))));
      c.stroke();
      c.globalAlpha = 1;
      for (const p of mine) {
        c.beginPath();
        c.arc(x(p.time), y(p.value), 2.8, 0, 7);
        if (p.one) c.stroke();
        else c.fill();
      }
      const last = mine.at(-1)!;
      const name = this.store.name(from),
        wide = c.measureText(name).width;
      c.fillText(name, ...placeLabel(taken, x(last.time) - wide, Math.max(y(last.value) - 9, 8), wide, w - 4));
    }
  }

  private save(): void {
    const lines = [
      "time s,from,value,truth,one-way",
      ...this.points.map((p) =>
        [+p.time.toFixed(9), this.store.name(p.from), p.value, p.truth ?? "", Number(p.one)].join(),
      ),
    ];
    downloadBlob(new Blob([lines.join("\n")], { type: "text/csv" }), `${this.what}.csv`);
  }
}
