// Charts of numbers against time (uPlot).

import type uPlot from "uplot";
import { markPlugin } from "./chart_marks";
import type { TimeMark } from "./page_protocol";
import { pageZoom } from "./canvas";
import { cssVariable, formatTime, h } from "./dom";
import { axisRange, axisWidth, tickTexts } from "./units";

export interface PlotOptions {
  title: string;
  unit: string;
  colours: string[];
  labels: string[];
  width: number;
  height?: number | undefined;
  down?: boolean | undefined; // the largest value is at the bottom, as for depths
  remove?: (() => void) | undefined;
  pick?: ((time: number) => void) | undefined; // called when a time is clicked
  zoomed?: ((since: number, until: number) => void) | undefined; // called when an interval is selected
  sync?: string | undefined; // charts with the same group name share a cursor
  legend?: boolean | undefined; // with the values at the pointer
  marks?: (() => TimeMark[]) | undefined; // events, drawn as vertical lines
}

function ticks(_u: uPlot, splits: (number | null)[]): string[] {
  return tickTexts(splits);
}

const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 360, 720, 1440];
const TIME_STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30].concat(MINUTES.map((m) => 60 * m)); // s

function timeTicks(_u: uPlot, splits: (number | null)[]): string[] {
  const step = (splits[1] ?? 1) - (splits[0] ?? 0),
    digits = step < 0.095 ? 2 : step < 0.95 ? 1 : 0;
  return splits.map((t) => (t === null ? "" : formatTime(t, digits)));
}

/** Width of the vertical axis: as wide as its longest label needs. */
function labelWidth(u: uPlot, values: string[] | null, axis: number, cycle: number): number {
  const known = (u.axes[axis] as unknown as { _size?: number })._size;
  if (cycle > 1 && known !== undefined) return known; // or the layout might never settle
  return axisWidth(values ?? []);
}

export class Plot {
  readonly element: HTMLElement;
  private plot: uPlot | null = null; // uPlot is loaded with the first chart
  private data: uPlot.AlignedData;
  private gone = false;
  private readonly box = h("div");
  private readonly now = h("div", { class: "now hidden" });
  private time: number | null = null; // current time
  private readonly legend: boolean;

  constructor(private readonly look: PlotOptions) {
    this.legend = look.legend === true;
    const { labels, unit } = look,
      close = look.remove ? h("button", { title: "Remove this chart", onclick: look.remove }, "×") : null;
    this.element = h(
      "div",
      { class: "plot" },
      h(
        "div",
        { class: "title" },
        h(
          "span",
          {},
          `${look.title}${unit ? ` (${unit})` : ""}${labels.length > 1 && !look.legend ? ` — ${labels.join(", ")}` : ""}`,
        ),
        close,
      ),
      this.box,
    );
    this.data = [[], ...labels.map(() => [])];
    this.box.style.height = `${look.height ?? 96}px`; // until it is drawn
    void import("uplot").then((m) => this.build(m.default));
  }

  private build(Drawn: typeof uPlot): void {
    if (this.gone) return;
    const { look } = this,
      { labels, unit } = look;
    this.box.style.height = "";
    const axis = {
      stroke: cssVariable("--soft"),
      grid: { stroke: cssVariable("--line"), width: 1 },
      ticks: { stroke: cssVariable("--line") },
      font: "10px system-ui",
      values: ticks,
    };
    const plot = new Drawn(
      {
        width: look.width,
        height: look.height ?? 96,
        legend: { show: look.legend === true, live: true },
        cursor: {
          y: false,
          move: (_u, x, y) => [x / pageZoom(), y / pageZoom()], // uPlot does not know the zoom
          points: { size: 5 },
          drag: { x: look.zoomed !== undefined, y: false, setScale: false },
          ...(look.sync ? { sync: { key: look.sync } } : {}),
        },
        scales: {
          x: { time: false },
          y: {
            dir: look.down ? -1 : 1,
            range: (_u, a, b) => axisRange(a, b, unit),
          },
        },
        axes: [
          { ...axis, size: 24, space: 56, values: timeTicks, incrs: TIME_STEPS },
          { ...axis, size: labelWidth, space: 14 },
        ],
        series: [
          { label: "time", value: (_u, v) => (v === null || v === undefined ? "–" : formatTime(v, 2)) },
          ...labels.map((label, k) => ({
            label,
            stroke: look.colours[k % look.colours.length] as string,
            width: 1.5,
            spanGaps: false,
            points: { show: false },
            value: (_u: uPlot, v: number | null) => (v === null || v === undefined ? "–" : String(+v.toPrecision(5))),
          })),
        ],
        plugins: look.marks ? [markPlugin(look.marks)] : [],
        hooks: {
          draw: [(u) => this.place(u)],
          setSelect: [
            (u) => {
              if (u.select.width > 4)
                look.zoomed?.(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
              u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      this.data,
      this.box,
    );
    this.plot = plot;
    plot.over.append(this.now);
    if (this.time !== null) this.mark(this.time);
    const pick = look.pick;
    if (pick)
      plot.over.addEventListener("click", (e) => {
        if (plot.data[0].length)
          pick(plot.posToVal((e.clientX - plot.over.getBoundingClientRect().left) / pageZoom(), "x"));
      });
  }

  set(x: number[], ...y: (number | null)[][]): void {
    this.data = [x, ...y] as uPlot.AlignedData;
    this.plot?.setData(this.data);
  }
  /** Draw a line at the current time. */
  mark(time: number): void {
    this.time = time;
    const { plot } = this;
    if (!plot) return;
    this.place(plot);
    if (this.legend && (plot.cursor.left ?? -1) < 0 && plot.data[0].length)
      plot.setLegend({ idx: plot.valToIdx(time) }, false); // unless the pointer marks another time
  }
  private place(u: uPlot): void {
    const { min, max } = u.scales["x"]!,
      t = this.time,
      there = t !== null && typeof min === "number" && typeof max === "number" && t >= min && t <= max;
    this.now.classList.toggle("hidden", !there);
    if (there) this.now.style.transform = `translateX(${u.valToPos(t, "x")}px)`;
  }
  redraw(): void {
    this.plot?.redraw(false);
  }
  width(w: number): void {
    this.look.width = w;
    if (this.plot && Math.abs(this.plot.width - w) > 2) this.plot.setSize({ width: w, height: this.plot.height });
  }
  destroy(): void {
    this.gone = true;
    this.plot?.destroy();
    this.element.remove();
  }
}
