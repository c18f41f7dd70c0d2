// Chart of one quantity against another, such as north against east, with a mark at the current time.

import { type Axis, drawGrid, prepareCanvas, roundStep } from "./canvas";
import { cssVariable, formatTime, h, setText, toggleClass } from "./dom";
import { upperBound } from "./series_math";
import { axisRange, axisWidth, tickTexts } from "./units";

export interface XYLine {
  label: string;
  colour: string;
  time: number[];
  x: number[];
  y: number[];
}
export interface XYOptions {
  title: string;
  /** Units of x and y. */
  units: [string, string];
  equal: boolean;
  height: number;
  remove: () => void;
  pick: ((time: number) => void) | undefined;
  /** Draw with the same scale on both axes, or not. */
  setEqual: (equal: boolean) => void;
}

const NEAR = 20; // px
const TICK = 60,
  ROW = 26; // px between ticks

interface Range {
  from: number;
  to: number;
}

export class XYPlot {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { class: "xy" });
  private readonly tip = h("div", { class: "tip hidden" });
  private lines: XYLine[] = [];
  private time = NaN;
  private at: { x: (v: number) => number; y: (v: number) => number } = { x: Number, y: Number };

  constructor(private readonly look: XYOptions) {
    const box = h("input", {
      type: "checkbox",
      checked: look.equal,
      onchange: () => look.setEqual(box.checked),
    });
    this.canvas.style.height = `${look.height}px`;
    this.element = h(
      "div",
      { class: "plot xy-plot" },
      h(
        "div",
        { class: "title" },
        h("span", {}, look.title),
        h("span", { class: "row" }, h("label", { class: "row" }, box, "equal axes"), this.close()),
      ),
      h("div", { class: "xy-place" }, this.canvas, this.tip),
    );
    this.canvas.addEventListener("pointermove", (e) => this.point(e));
    this.canvas.addEventListener("pointerleave", () => toggleClass(this.tip, "hidden", true));
    this.canvas.addEventListener("click", (e) => {
      const found = this.nearest(e);
      if (found) look.pick?.(found.line.time[found.k]!);
    });
  }

  private close(): HTMLElement {
    return h("button", { title: "Remove this chart", onclick: this.look.remove }, "×");
  }

  set(lines: XYLine[]): void {
    this.lines = lines;
    this.draw();
  }

  /** Mark the current time. */
  mark(time: number): void {
    if (time === this.time) return;
    this.time = time;
    this.draw();
  }

  width(w: number): void {
    const text = `${Math.round(w)}px`;
    if (this.element.style.width === text) return;
    this.element.style.width = text;
    this.draw();
  }

  destroy(): void {
    this.element.remove();
  }

  private extent(axis: "x" | "y"): [number, number] {
    let [low, high] = [Infinity, -Infinity];
    for (const line of this.lines)
      for (const v of line[axis]) {
        if (v < low) low = v;
        if (v > high) high = v;
      }
    return axisRange(low, high, this.look.units[axis === "x" ? 0 : 1]);
  }

  private axis({ from, to }: Range, px: (v: number) => number, least: number): Axis {
    const step = roundStep((least * (to - from)) / Math.max(Math.abs(px(to) - px(from)), 1));
    return { from, to, step, at: px, text: (v) => tickTexts([v, v + step])[0]! };
  }

  private draw(): void {
    const sheet = prepareCanvas(this.canvas);
    if (!sheet) return;
    const { c, w, hh } = sheet,
      [[x0, x1], [y0, y1]] = [this.extent("x"), this.extent("y")],
      left = axisWidth([...tickTexts([y0, y1]), `${y0.toFixed(0)}.0`]),
      margins = { left, right: 8, top: 6, bottom: 20 },
      [wide, high] = [w - margins.left - margins.right, hh - margins.top - margins.bottom];
    let [px, py] = [wide / (x1 - x0), high / (y1 - y0)];
    if (this.look.equal) px = py = Math.min(px, py);
    const centre = [(x0 + x1) / 2, (y0 + y1) / 2] as const,
      x = (v: number): number => margins.left + wide / 2 + (v - centre[0]) * px,
      y = (v: number): number => margins.top + high / 2 - (v - centre[1]) * py;
    this.at = { x, y };
    c.clearRect(0, 0, w, hh);
    const range = (i: 0 | 1, size: number, scale: number): Range => ({
      from: centre[i] - size / 2 / scale,
      to: centre[i] + size / 2 / scale,
    });
    drawGrid(sheet, margins, this.axis(range(0, wide, px), x, TICK), this.axis(range(1, high, py), y, ROW));
    for (const line of this.lines) this.curve(c, line);
  }

  private curve(c: CanvasRenderingContext2D, { time, x, y, colour }: XYLine): void {
    c.strokeStyle = colour;
    c.lineWidth = 1.5;
    c.beginPath();
    let gap = true;
    for (let k = 0; k < x.length; k++) {
      const there = Number.isFinite(x[k]) && Number.isFinite(y[k]);
      if (there && gap) c.moveTo(this.at.x(x[k]!), this.at.y(y[k]!));
      else if (there) c.lineTo(this.at.x(x[k]!), this.at.y(y[k]!));
      gap = !there;
    }
    c.stroke();
    const k = upperBound(time, this.time) - 1;
    if (k < 0 || !Number.isFinite(x[k]) || !Number.isFinite(y[k])) return;
    c.beginPath();
    c.arc(this.at.x(x[k]!), this.at.y(y[k]!), 5, 0, 7);
    c.fillStyle = colour;
    c.fill();
    c.lineWidth = 1.5;
    c.strokeStyle = cssVariable("--ink");
    c.stroke();
  }

  private nearest(e: MouseEvent): { line: XYLine; k: number } | null {
    let best: { line: XYLine; k: number } | null = null,
      near = NEAR;
    for (const line of this.lines)
      for (let k = 0; k < line.x.length; k++) {
        const far = Math.hypot(this.at.x(line.x[k]!) - e.offsetX, this.at.y(line.y[k]!) - e.offsetY);
        if (far < near) {
          near = far;
          best = { line, k };
        }
      }
    return best;
  }

  private point(e: MouseEvent): void {
    const found = this.nearest(e);
    toggleClass(this.tip, "hidden", !found);
    if (!found) return;
    const { line, k } = found,
      number = (v: number, unit: string): string => `${+v.toPrecision(5)}${unit ? ` ${unit}` : ""}`,
      [ux, uy] = this.look.units;
    setText(
      this.tip,
      `${line.label}  ${formatTime(line.time[k]!)}  x ${number(line.x[k]!, ux)}, y ${number(line.y[k]!, uy)}`,
    );
    const right = e.offsetX > this.canvas.clientWidth / 2;
    Object.assign(this.tip.style, {
      left: right ? "auto" : `${e.offsetX + 12}px`,
      right: right ? `${this.canvas.clientWidth - e.offsetX + 12}px` : "auto",
      top: `${Math.max(e.offsetY - 12, 0)}px`,
    });
  }
}
