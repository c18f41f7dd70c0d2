// What was shown of the chosen body, kept for charts; and the charts.

import { css, h } from "./dom";
import { Plot } from "./plots";

const KEPT = 3000;
const MOST_LINES = 8; // of one chart
interface Series { time: number[]; value: (number | null)[] }
/** What a chart says over itself, and the series that it draws. */
export interface Label { title: string; unit: string; series: string[]; names: string[] }

export class Charts {
  readonly element = h("div", { class: "section", id: "charts" });
  private readonly kept = new Map<string, Series>();
  private readonly plots = new Map<string, { plot: Plot; series: string[] }>();
  private wanted = ["motion.depth", "motion.speed", "motion.pitch"];
  private due = 0;

  constructor(private readonly label: (key: string) => Label | null, private readonly width: () => number) { this.clear(); }

  /** Another body: its charts start anew, the same ones are wanted. */
  clear(): void {
    this.kept.clear();
    this.recolour();
    this.element.replaceChildren(h("h3", {}, "Charts"));
  }

  /** Draw all anew: light and dark have charts of their own colours. */
  recolour(): void {
    for (const { plot } of this.plots.values()) plot.destroy();
    this.plots.clear();
    this.due = 0;
  }

  remember(time: number, key: string, value: number | null): void {
    let s = this.kept.get(key);
    if (!s) this.kept.set(key, (s = { time: [], value: [] }));
    const last = s.time[s.time.length - 1];
    if (last !== undefined && time < last - 1e-6) { s.time.length = 0; s.value.length = 0; } // the time was turned back
    else if (last !== undefined && time < last + 1e-6) return;
    s.time.push(time);
    s.value.push(value);
    if (s.time.length > KEPT) { s.time.splice(0, KEPT / 4); s.value.splice(0, KEPT / 4); }
  }

  /** Show or hide a chart. */
  toggle(key: string): void {
    this.wanted = this.wanted.includes(key) ? this.wanted.filter((k) => k !== key) : [...this.wanted, key];
    this.due = 0;
  }

  /** The values of a series, for tests. */
  series(key: string): Series | undefined { return this.kept.get(key); }

  draw(): void {
    const now = performance.now();
    if (now < this.due) return;
    this.due = now + 250;
    const width = this.width();
    for (const [key, { plot }] of this.plots) if (!this.wanted.includes(key)) { plot.destroy(); this.plots.delete(key); }
    for (const key of this.wanted) {
      let found = this.plots.get(key);
      if (!found) {
        const label = this.label(key), series = label?.series.slice(0, MOST_LINES).filter((k) => this.kept.has(k)) ?? [];
        if (!label || !series.length) continue; // this body has no such thing
        const plot = new Plot(label.title, label.unit, [css("--accent"), css("--warm"), css("--bad"), css("--good"), css("--soft")], label.names.slice(0, series.length), width, 92, () => this.toggle(key));
        this.plots.set(key, (found = { plot, series }));
        this.element.append(plot.element);
      }
      const [first, ...others] = found.series.map((k) => this.kept.get(k)!);
      found.plot.width(width);
      found.plot.set(first!.time, first!.value, ...others.map((s) => first!.time.map((_, k) => s.value[k] ?? null)));
    }
  }
}
