// Choice of one end of the propagation panel: a body, or a point of the chart at a depth.

import type { Chart } from "./chart";
import type { Triple } from "./coordinate_frames";
import { h, setChildren, toast, toggleClass } from "./dom";
import { depthAt, formatOffset } from "./geodesy";
import type { End } from "./propagation_view";
import type { SceneStore } from "./scene_store";

const POINT = "\u0000point",
  PICK = "\u0000pick"; // no names of bodies

/** Takes the next click on the chart as a point. */
export class PointPicker {
  private take: ((north: number, east: number) => void) | null = null;
  private before: Chart["onClick"] = null;

  constructor(
    private readonly chart: Chart,
    private readonly showChart: () => void,
  ) {
    window.addEventListener(
      "keydown",
      (e) => {
        if (e.key !== "Escape" || !this.take) return;
        e.stopImmediatePropagation(); // Esc ends only this
        this.end();
      },
      true,
    );
  }

  pick(what: string, done: (north: number, east: number) => void): void {
    this.end();
    this.showChart();
    this.chart.pointer.endMeasurement();
    this.before = this.chart.onClick;
    this.take = (north, east) => {
      this.end();
      done(north, east);
    };
    this.chart.onClick = this.take;
    this.chart.canvas.classList.add("picking");
    this.chart.canvas.focus();
    toast(`click the position of ${what} on the chart, or press Esc to cancel`);
  }

  private end(): void {
    if (!this.take) return;
    if (this.chart.onClick === this.take) this.chart.onClick = this.before; // the mission editor may have taken it
    this.take = this.before = null;
    this.chart.canvas.classList.remove("picking");
  }
}

export class EndSelect {
  readonly element: HTMLElement;
  private readonly select: HTMLSelectElement;
  private readonly depth: HTMLInputElement;
  private readonly depthBox: HTMLElement;
  private listed = "";
  private end: End | null = null;

  constructor(
    private readonly store: SceneStore,
    private readonly picker: PointPicker,
    private readonly role: "source" | "receiver",
    private readonly changed: () => void,
  ) {
    this.select = h("select", {
      id: `propagation-${role}`,
      "aria-label": role,
      onchange: () => this.choose(this.select.value),
    });
    this.depth = h("input", {
      type: "number",
      min: 0,
      step: "any",
      class: "short",
      "aria-label": `Depth of the ${role}, m`,
      onchange: () => this.dive(),
    });
    this.depthBox = h("label", { class: "row hidden" }, "at", this.depth, "m");
    this.element = h("span", { class: "row" }, role === "source" ? "from" : "to", this.select, this.depthBox);
  }

  get value(): End | null {
    return this.end;
  }
  set value(end: End | null) {
    this.end = end;
    this.listed = "";
    this.update();
  }

  private choose(value: string): void {
    if (value === POINT) return;
    if (value === PICK) {
      this.listed = ""; // the list shows the old end until a point has been clicked
      this.update();
      this.picker.pick(`the ${this.role}`, (n, e) => {
        const bed = depthAt(this.store.scene?.bed, n, e),
          old = typeof this.end === "string" || !this.end ? 10 : this.end[2];
        this.value = [n, e, bed === null ? old : Math.max(0, Math.min(old, bed - 0.5))];
        this.changed();
      });
      return;
    }
    this.value = value;
    this.changed();
  }

  private dive(): void {
    if (typeof this.end === "string" || !this.end || !(this.depth.valueAsNumber >= 0)) return;
    this.value = [this.end[0], this.end[1], this.depth.valueAsNumber];
    this.changed();
  }

  /** Follow the bodies that join and leave. */
  update(): void {
    const { end } = this,
      point = end !== null && typeof end !== "string",
      names = [...this.store.bodies.values()].map((b) => b.name),
      listed = JSON.stringify([names, end]);
    if (listed === this.listed) return;
    this.listed = listed;
    const option = (value: string, text: string): HTMLElement => h("option", { value }, text);
    setChildren(
      this.select,
      ...(end === null ? [option("", "select")] : []),
      ...names.map((name) => option(name, name)),
      ...(typeof end === "string" && !names.includes(end) ? [option(end, `${end} (absent)`)] : []),
      ...(point ? [option(POINT, pointName(end))] : []),
      option(PICK, point ? "another point on the chart…" : "a point on the chart…"),
    );
    this.select.value = point ? POINT : (end ?? "");
    toggleClass(this.depthBox, "hidden", !point);
    if (point && document.activeElement !== this.depth) this.depth.value = String(+end[2].toFixed(2));
  }
}

/** Name of a point on the chart. */
export function pointName([n, e]: Triple): string {
  return `${formatOffset(n, "NS", 0)}, ${formatOffset(e, "EW", 0)}`;
}
