// Tools of the chart: range rings and a bearing line from the selected vehicle, the format of coordinates, and a jump to
// a coordinate.

import { haloText, roundStep } from "./canvas";
import type { Chart } from "./chart";
import {
  COORDINATE_FORMATS,
  type CoordinateFormat,
  formatPosition,
  parsePosition,
  type Place,
} from "./coordinate_formats";
import { euler, formatHeading } from "./coordinate_frames";
import { cssVariable, h, toast } from "./dom";
import { distanceAndBearing } from "./geodesy";
import { Menu } from "./menu";
import type { SceneStore } from "./scene_store";

const STORED = "wavesim-chart-tools",
  MOST_RINGS = 20,
  RING_PX = 90; // least distance of two rings whose spacing follows the scale

interface Settings {
  format: CoordinateFormat;
  rings: boolean;
  spacing: number; // m; 0: a round distance that suits the scale
  number: number; // of rings
  bearing: boolean;
}

export class ChartTools {
  readonly menu: Menu;
  private readonly settings: Settings = { format: "minutes", rings: false, spacing: 0, number: 4, bearing: false };
  private readonly goal = h("input", { id: "go-to-position", placeholder: "41.18, -8.7", size: 22 });
  private mark: Place | null = null; // where the last jump went

  constructor(
    private readonly store: SceneStore,
    private readonly chart: Chart,
    private readonly toChart: () => void,
    private readonly changed: () => void,
  ) {
    this.restore();
    const s = this.settings;
    const check = (id: string, text: string, key: "rings" | "bearing"): HTMLElement => {
      const box = h("input", { type: "checkbox", id, checked: s[key], onchange: () => this.set(key, box.checked) });
      return h("label", { class: "row" }, box, text);
    };
    const number = (id: string, text: string, key: "spacing" | "number", most: number): HTMLElement => {
      const input = h("input", {
        type: "number",
        id,
        value: s[key],
        min: 0,
        max: most,
        onchange: () => {
          const wanted = input.valueAsNumber;
          if (wanted >= 0 && wanted <= most) this.set(key, key === "number" ? Math.round(wanted) : wanted);
          else toast(`${text}: expected a number from 0 to ${most}`, true);
          input.value = String(s[key]);
        },
      });
      return h("label", { class: "row" }, text, input);
    };
    const format = h(
      "select",
      { id: "coordinate-format", onchange: () => this.set("format", format.value as CoordinateFormat) },
      ...COORDINATE_FORMATS.map(([f, title]) => h("option", { value: f, selected: f === s.format }, title)),
    );
    const form = h(
      "form",
      {
        class: "row",
        onsubmit: (e: Event) => {
          e.preventDefault();
          this.goTo(this.goal.value);
        },
      },
      h("label", { class: "row" }, "go to", this.goal),
      h("button", { id: "do-go-to-position" }, "go"),
    );
    this.menu = new Menu(
      "chart-tools",
      "chart tools",
      h("label", { class: "row" }, "coordinates", format),
      check("do-rings", "range rings around the selected body", "rings"),
      number("ring-spacing", "spacing in m (0: automatic)", "spacing", 1e6),
      number("ring-number", "number of rings", "number", MOST_RINGS),
      check("do-bearing", "bearing line from the selected body", "bearing"),
      form,
    );
    chart.overlays.push((c) => this.draw(c));
  }

  private set<K extends keyof Settings>(key: K, value: Settings[K]): void {
    this.settings[key] = value;
    localStorage.setItem(STORED, JSON.stringify(this.settings));
    this.apply();
  }

  private apply(): void {
    this.chart.pointer.format = this.settings.format;
    this.goal.placeholder = formatPosition(this.store.scene?.origin ?? [41.18, -8.7], [0, 0], this.settings.format);
    this.changed();
  }

  private restore(): void {
    try {
      const stored = JSON.parse(localStorage.getItem(STORED) ?? "{}") as Record<string, unknown>;
      for (const key of Object.keys(this.settings))
        if (typeof stored[key] === typeof this.settings[key as keyof Settings])
          Object.assign(this.settings, { [key]: stored[key] });
      if (!COORDINATE_FORMATS.some(([f]) => f === this.settings.format)) this.settings.format = "minutes";
      this.settings.number = Math.min(this.settings.number, MOST_RINGS);
    } catch {
      /* the stored value does not come from this page */
    }
    this.apply();
  }

  /** Show the chart around a position given as text, and mark it; an empty text removes the mark. */
  goTo(text: string): void {
    const found = text.trim() ? parsePosition(text, this.store.scene?.origin) : null;
    if (typeof found === "string") {
      toast(found, true);
      return;
    }
    this.mark = found;
    if (found) {
      this.toChart();
      this.chart.look(found, this.chart.looks.scale);
      this.chart.pointer.move(found);
    }
    this.menu.close();
    this.changed();
  }

  private draw(c: CanvasRenderingContext2D): void {
    c.font = "11px system-ui, sans-serif";
    if (this.mark) this.drawMark(c, this.mark);
    const k = this.store.index.get(this.store.chosen ?? -1);
    if (k === undefined) return;
    const from: Place = [this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!];
    if (this.settings.rings) this.drawRings(c, from);
    const { at } = this.chart.pointer;
    if (this.settings.bearing && at) this.drawBearing(c, from, at, this.headingOf(k));
  }

  private headingOf(k: number): number {
    const q = this.store.quaternion;
    return euler(q[4 * k]!, q[4 * k + 1]!, q[4 * k + 2]!, q[4 * k + 3]!)[2];
  }

  /** Spacing of the rings in m. */
  get spacing(): number {
    return this.settings.spacing || roundStep(RING_PX / this.chart.looks.scale);
  }

  private drawRings(c: CanvasRenderingContext2D, from: Place): void {
    const [x, y] = this.chart.px(...from),
      { scale } = this.chart.looks;
    c.strokeStyle = c.fillStyle = cssVariable("--ink");
    c.lineWidth = 1;
    for (let k = 1; k <= this.settings.number; k++) {
      const r = k * this.spacing;
      c.globalAlpha = 0.55;
      c.beginPath();
      c.arc(x, y, r * scale, 0, 7);
      c.stroke();
      c.globalAlpha = 1;
      haloText(c, r >= 1000 ? `${+(r / 1000).toPrecision(4)} km` : `${+r.toPrecision(4)} m`, x + 4, y - r * scale - 3);
    }
  }

  /** Draw the bearing line to the pointer, with true and relative bearing and the distance. */
  private drawBearing(c: CanvasRenderingContext2D, from: Place, to: Place, heading: number): void {
    const [distance, bearing] = distanceAndBearing(from, to),
      [x, y] = this.chart.px(...to);
    c.strokeStyle = c.fillStyle = cssVariable("--warm");
    c.lineWidth = 1.4;
    c.setLineDash([8, 4]);
    c.beginPath();
    c.moveTo(...this.chart.px(...from));
    c.lineTo(x, y);
    c.stroke();
    c.setLineDash([]);
    const text = `${formatHeading(bearing, 1)}°  rel ${formatHeading(bearing - heading)}°  ${distance.toFixed(1)} m`,
      room = this.chart.canvas.clientWidth - c.measureText(text).width - 8;
    haloText(c, text, Math.min(x + 10, room), y - 10);
  }

  private drawMark(c: CanvasRenderingContext2D, at: Place): void {
    const [x, y] = this.chart.px(...at);
    c.strokeStyle = c.fillStyle = cssVariable("--warm");
    c.lineWidth = 2;
    c.beginPath();
    for (const [dx, dy] of [
      [1, 0],
      [0, 1],
    ] as const) {
      c.moveTo(x - 12 * dx, y - 12 * dy);
      c.lineTo(x - 4 * dx, y - 4 * dy);
      c.moveTo(x + 4 * dx, y + 4 * dy);
      c.lineTo(x + 12 * dx, y + 12 * dy);
    }
    c.stroke();
    haloText(c, formatPosition(this.store.scene?.origin, at, this.settings.format), x + 12, y - 8);
  }
}
