// Depth profile along the track of the selected body with the sea bed below: distance run to the right, depth
// downwards.

import { bodyColour, cssVariable, h, setText } from "./dom";
import { depthAt } from "./geodesy";
import type { SceneStore } from "./scene_store";
import { drawGrid, roundStep, prepareCanvas } from "./canvas";

const LEFT = 46,
  BOTTOM = 18,
  TOP = 6; // px
const MARGINS = { left: LEFT, right: 8, top: TOP, bottom: BOTTOM };
const FACTORS = [0, 1, 2, 5, 10, 20, 50]; // vertical exaggeration; 0: fit the height
type Point = [distance: number, depth: number];

/** A track as distance run and depth; ``n`` points of it. */
export function distanceAndDepth(ned: number[], n: number): Point[] {
  const found: Point[] = [];
  let run = 0;
  for (let k = 0; k < n; k++) {
    if (k) {
      const step = Math.hypot(ned[3 * k]! - ned[3 * k - 3]!, ned[3 * k + 1]! - ned[3 * k - 2]!);
      if (Number.isFinite(step)) run += step;
    }
    found.push([run, ned[3 * k + 2]!]);
  }
  return found;
}

export class DepthProfile {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "depth-profile", class: "drawn" });
  private readonly readout = h("span", { class: "soft num", id: "profile-readout" });
  private readonly surface = h("input", {
    type: "checkbox",
    checked: true,
    "aria-label": "Include the surface",
    onchange: () => this.update(),
  });
  private factor = 0;
  private pointer: number | null = null;

  constructor(private readonly store: SceneStore) {
    const factor = h(
      "select",
      {
        "aria-label": "Vertical exaggeration",
        onchange: () => {
          this.factor = Number(factor.value);
          this.update();
        },
      },
      ...FACTORS.map((f) => h("option", { value: f }, f ? `${f} × higher` : "fit height")),
    );
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        factor,
        h("label", { class: "row" }, this.surface, "include surface"),
        this.readout,
      ),
      h("div", { class: "sound-place" }, this.canvas),
    );
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointer = e.offsetX;
      this.update();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.update();
    });
    new ResizeObserver(() => this.update()).observe(this.canvas); // the heading may have wrapped to another line
  }

  update(): void {
    const page = prepareCanvas(this.canvas),
      row = this.store.chosen;
    if (!page) return;
    const { c, w, hh } = page,
      track = row === null ? undefined : this.store.tracks.get(row),
      n = track ? (track.whole ? track.until(this.store.time) : track.time.length) : 0;
    c.clearRect(0, 0, w, hh);
    if (!track || n < 2) {
      setText(this.readout, row === null ? "select a body" : "the body has not moved yet");
      return;
    }
    const way = distanceAndDepth(track.ned, n),
      bed = way.map((_, k) => depthAt(this.store.scene?.bed, track.ned[3 * k]!, track.ned[3 * k + 1]!)),
      far = Math.max(way[n - 1]![0], 1);
    const depths = [...way.map((p) => p[1]), ...bed.filter((d) => d !== null)].filter(Number.isFinite),
      top = this.surface.checked ? Math.min(0, ...depths) : Math.min(...depths),
      low = Math.max(top + 1, ...depths);
    const wide = w - LEFT - 8,
      high = hh - TOP - BOTTOM,
      fits = high / (1.08 * (low - top)) / (wide / far),
      factor = this.factor || fits;
    const sx = Math.min(wide / far, high / (1.08 * (low - top) * factor)),
      sy = sx * factor,
      x = (d: number): number => LEFT + d * sx,
      y = (d: number): number => TOP + (d - top) * sy;
    const metres = (v: number): string => `${+v.toFixed(2)} m`;
    drawGrid(
      page,
      MARGINS,
      { from: 0, to: far, step: roundStep(80 / sx), at: x, text: metres },
      { from: top, to: low, step: roundStep(22 / sy), at: y, text: metres },
    );
    c.beginPath();
    let open = false;
    way.forEach(([d], k) => {
      // the bed, filled below
      const b = bed[k] ?? null;
      if (b === null) {
        if (open) c.lineTo(x(way[k - 1]![0]), hh - BOTTOM);
        open = false;
        return;
      }
      if (!open) c.moveTo(x(d), hh - BOTTOM);
      open = true;
      c.lineTo(x(d), y(b));
    });
    if (open) c.lineTo(x(far), hh - BOTTOM);
    c.fillStyle = cssVariable("--warm");
    c.globalAlpha = 0.35;
    c.fill();
    c.globalAlpha = 1;
    c.strokeStyle = bodyColour(row!);
    c.lineWidth = 1.8;
    c.beginPath();
    way.forEach(([d, z], k) => (k ? c.lineTo(x(d), y(z)) : c.moveTo(x(d), y(z))));
    c.stroke();
    c.fillStyle = bodyColour(row!);
    c.beginPath();
    c.arc(x(way[n - 1]![0]), y(way[n - 1]![1]), 4, 0, 7);
    c.fill();
    const at =
        this.pointer === null
          ? n - 1
          : Math.max(
              0,
              way.findIndex((p) => x(p[0]) >= this.pointer!),
            ),
      [along, depth] = way[at]!,
      under = bed[at] ?? null,
      below = under === null ? "" : `, bed at ${under.toFixed(1)} m, ${(under - depth).toFixed(1)} m below`;
    setText(
      this.readout,
      `${along.toFixed(0)} m along the track, depth ${depth.toFixed(1)} m${below}; ` +
        `vertical exaggeration ${factor < 10 ? factor.toFixed(1) : factor.toFixed(0)} ×`,
    );
  }
}
