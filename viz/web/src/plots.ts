// Charts of numbers against time (uPlot).

import uPlot from "uplot";
import { css, h } from "./dom";

export class Plot {
  readonly element: HTMLElement;
  private plot: uPlot;
  private readonly box = h("div");

  constructor(title: string, unit: string, colours: string[], labels: string[], width: number, height = 96, remove?: () => void, xTime = true) {
    const close = remove ? h("button", { title: "Remove this chart", onclick: remove }, "×") : null;
    this.element = h("div", { class: "plot" }, h("div", { class: "title" }, h("span", {}, `${title}${unit ? ` (${unit})` : ""}${labels.length > 1 ? ` — ${labels.join(", ")}` : ""}`), close), this.box);
    const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") }, font: "10px system-ui" };
    this.plot = new uPlot(
      {
        width, height,
        legend: { show: false },
        cursor: { y: false, points: { size: 5 } },
        scales: { x: { time: false }, y: { range: (_u, a, b) => (Number.isFinite(a) && Number.isFinite(b) ? (b - a < 1e-6 ? [a - 0.5, b + 0.5] : [a - 0.08 * (b - a), b + 0.08 * (b - a)]) : [0, 1]) } },
        axes: [{ ...axis, size: 24, ...(xTime ? {} : { label: "", size: 26 }) }, { ...axis, size: 48, space: 22 }],
        series: [{}, ...labels.map((label, k) => ({ label, stroke: colours[k % colours.length] as string, width: 1.5, spanGaps: false, points: { show: false } }))],
      },
      [[], ...labels.map(() => [])],
      this.box,
    );
  }

  set(x: number[], ...y: (number | null)[][]): void { this.plot.setData([x, ...y] as uPlot.AlignedData); }
  width(w: number): void { if (Math.abs(this.plot.width - w) > 2) this.plot.setSize({ width: w, height: this.plot.height }); }
  destroy(): void { this.plot.destroy(); this.element.remove(); }
}
