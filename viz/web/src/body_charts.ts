// Charts of the selected body. Live: the values received by this page, preceded by the viewer's history. Replay: the
// whole log, with a mark at the
// current time.

import { cssVariable, h } from "./dom";
import { Plot } from "./plots";
import { fetchSeries } from "./chart_series";
import { upperBound } from "./series_math";

const KEPT = 3000;
const MOST_LINES = 8; // per chart
interface Series {
  time: number[];
  value: (number | null)[];
}

function cut(s: Series, time: number): void {
  const kept = upperBound(s.time, time);
  s.time.length = s.value.length = kept;
}

/** Title of a chart, the series it draws, and the factors from SI to the displayed units. */
export interface SeriesLabel {
  title: string;
  unit: string;
  series: string[];
  names: string[];
  factors: number[];
  down?: boolean;
}
/** Body whose charts are shown; ``whole``: a log supplies the complete series. */
export interface ChartContext {
  row: number | null;
  whole: boolean;
  seek: (time: number) => void;
  changed: () => void;
}

export class BodyCharts {
  readonly element = h("div", { class: "section", id: "charts" });
  private readonly values = new Map<string, Series>();
  private readonly requested = new Set<string>(); // charts whose history was requested
  private readonly plots = new Map<string, { plot: Plot; series: string[]; drawn: boolean }>();
  private shown = ["motion.depth", "motion.speed", "motion.pitch", "nav.error"];
  private due = 0;

  constructor(
    private readonly label: (key: string) => SeriesLabel | null,
    private readonly width: () => number,
    private readonly whose: () => ChartContext,
  ) {
    this.clear();
  }

  /** Switch to another body: clear the data, keep the selection of charts. */
  clear(): void {
    this.values.clear();
    this.requested.clear();
    this.recolour();
    this.element.replaceChildren(h("h3", {}, "Charts"));
  }

  /** Redraw all charts: the light and dark themes use different colours. */
  recolour(): void {
    for (const { plot } of this.plots.values()) plot.destroy();
    this.plots.clear();
    this.due = 0;
  }

  /** Append the value shown at a time. */
  remember(time: number, key: string, value: number | null): void {
    if (this.whose().whole) return; // the log is complete; frames arrive rarely and in any order
    let s = this.values.get(key);
    if (!s) this.values.set(key, (s = { time: [], value: [] }));
    const last = s.time[s.time.length - 1];
    if (last !== undefined && time < last - 1e-6) cut(s, time - 1e-6);
    else if (last !== undefined && time < last + 1e-6) return;
    s.time.push(time);
    s.value.push(value !== null && Math.abs(value) < 1e12 ? value : null);
    if (s.time.length > KEPT) {
      s.time.splice(0, KEPT / 4);
      s.value.splice(0, KEPT / 4);
    }
  }

  /** Discard the values that are later than a time, because the simulation has returned to it. */
  discardAfter(time: number): void {
    for (const s of this.values.values()) cut(s, time);
    this.due = 0;
  }

  /** Show or hide a chart. */
  toggle(key: string): void {
    this.shown = this.shown.includes(key) ? this.shown.filter((k) => k !== key) : [...this.shown, key];
    this.due = 0;
  }

  /** Values of a series, for tests. */
  series(key: string): Series | undefined {
    return this.values.get(key);
  }

  /** Fetch the values from before this page was opened; for a log, all values. */
  private async ask(key: string, label: SeriesLabel): Promise<void> {
    const { row, whole } = this.whose();
    if (row === null || this.requested.has(key) || (!whole && !/^(motion|nav)\./.test(key))) return;
    this.requested.add(key);
    const series = label.series.slice(0, MOST_LINES),
      found = await fetchSeries(series.map((k) => [row, k]));
    if (!found?.time.length || this.whose().row !== row) return;
    series.forEach((k, i) => {
      const since = this.values.get(k),
        from = since?.time[0] ?? Infinity,
        n = found.time.filter((t) => t < from - 1e-6).length;
      const value = found.values[i]!.map((v) => (v === null ? null : v * (label.factors[i] ?? 1)));
      this.values.set(k, {
        time: [...found.time.slice(0, n), ...(since?.time ?? [])],
        value: [...value.slice(0, n), ...(since?.value ?? [])],
      });
    });
    for (const p of this.plots.values()) p.drawn = false;
    this.due = 0;
    this.whose().changed();
  }

  draw(time: number): void {
    const now = performance.now(),
      { whole, seek } = this.whose();
    if (now < this.due) {
      if (whole) for (const { plot } of this.plots.values()) plot.mark(time);
      return;
    }
    this.due = now + 250;
    const width = this.width();
    for (const [key, { plot }] of this.plots)
      if (!this.shown.includes(key)) {
        plot.destroy();
        this.plots.delete(key);
      }
    for (const key of this.shown) {
      const label = this.label(key);
      if (label) void this.ask(key, label);
      let found = this.plots.get(key);
      if (!found) {
        const series = label?.series.slice(0, MOST_LINES).filter((k) => this.values.has(k)) ?? [];
        if (!label || !series.length) continue; // this body does not have this value
        const plot = new Plot({
          title: label.title,
          unit: label.unit,
          colours: [
            cssVariable("--accent"),
            cssVariable("--warm"),
            cssVariable("--bad"),
            cssVariable("--good"),
            cssVariable("--soft"),
          ],
          labels: label.names.slice(0, series.length),
          width,
          height: 92,
          down: label.down,
          remove: () => this.toggle(key),
          pick: whole ? seek : undefined,
        });
        this.plots.set(key, (found = { plot, series, drawn: false }));
        this.element.append(plot.element);
      }
      found.plot.width(width);
      if (whole && found.drawn) {
        found.plot.mark(time);
        continue;
      }
      found.drawn = true;
      const [first, ...others] = found.series.map((k) => this.values.get(k)!);
      found.plot.set(first!.time, first!.value, ...others.map((s) => first!.time.map((_, k) => s.value[k] ?? null)));
      if (whole) found.plot.mark(time);
    }
  }
}
