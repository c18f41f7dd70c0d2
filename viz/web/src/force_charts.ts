// Effort and moments on the selected body by component; the server computes them only on request.

import { setChildren, h, setText } from "./dom";
import type { BodyCharts, SeriesLabel } from "./body_charts";
import type { BodyPanel, Effort } from "./page_protocol";

const PARTS: [keyof Effort, string][] = [
  ["total", "Sum of all components, which equals mass (with added mass) times acceleration"],
  ["restoring", "Weight, buoyancy, ballast"],
  ["drag", "Hull: drag, lift, Coriolis"],
  ["actuators", "Thrusters and fins"],
  ["environment", "Wind and waves"],
  ["external", "External force set by a command"],
  ["contact", "Mooring, and contact with bodies, obstacles and sea bed"],
];
const AXES = ["X", "Y", "Z", "K", "M", "N"];

/** Describe the chart of a component: three forces, three moments. */
export function forceLabel(key: string): SeriesLabel | null {
  const part = PARTS.find(([name]) => key === `force.${name}`);
  return part
    ? { title: part[0], unit: "N, N m", series: AXES.map((a) => `${key}.${a}`), names: AXES, factors: [] }
    : null;
}

export class ForcePanel {
  readonly element = h("div", { class: "section hidden", id: "forces" });
  private readonly cells = new Map<string, HTMLElement[]>();

  constructor(private readonly charts: BodyCharts) {
    const rows = PARTS.map(([part, doc]) => {
      const numbers = AXES.map(() => h("td", { class: "n" }));
      this.cells.set(part, numbers);
      const tr = h(
        "tr",
        { title: `${doc}\nClick to show or hide the chart`, onclick: () => this.charts.toggle(`force.${part}`) },
        h("td", { class: "name" }, part),
        ...numbers,
      );
      tr.dataset["name"] = part;
      return tr;
    });
    const head = h("tr", {}, h("th", {}, ""), ...AXES.map((a) => h("th", { class: "n" }, a)));
    setChildren(
      this.element,
      h("h3", {}, "Forces, N and N m"),
      h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)),
    );
  }

  update(panel: BodyPanel): void {
    const effort = panel.effort ?? null;
    this.element.classList.toggle("hidden", !effort);
    if (!effort) return;
    for (const [part] of PARTS)
      AXES.forEach((axis, k) => {
        const value = effort[part][k] ?? null;
        setText(this.cells.get(part)![k]!, value === null ? "–" : short(value));
        this.charts.remember(panel.time, `force.${part}.${axis}`, value);
      });
  }
}

/** Format with at most three significant digits: six numbers share a narrow row. */
function short(value: number): string {
  const size = Math.abs(value);
  return size >= 1e5 ? value.toExponential(1) : size >= 100 ? value.toFixed(0) : size >= 0.05 ? value.toFixed(1) : "0";
}
