// Charts over the whole time of any fields of any bodies, under one cursor: a click seeks to the time, a dragged
// interval zooms in, a double click
// shows the full range.

import { bodyColour, COLOURS, setChildren, h, setText, toggleClass } from "./dom";
import { chartFields, type ChartField } from "./chart_fields";
import { getJson } from "./http";
import { downloadBlob } from "./url_state";
import { Plot } from "./plots";
import { fetchSeries } from "./chart_series";
import type { SceneStore } from "./scene_store";
import type { BodyEquipment } from "./page_protocol";

const REFRESH_MS = 2000; // for a running server
const HEIGHT = 120,
  WIDE = 900; // px: minimum width for two columns
interface Line extends ChartField {
  body: string;
  other: boolean;
}
interface Chart {
  lines: Line[];
  plot: Plot | null;
  box: HTMLElement;
  width: number;
}

export class LogCharts {
  readonly element: HTMLElement;
  private charts: Chart[] = [];
  private readonly place = h("div", { class: "list", id: "log-charts" });
  private readonly body = h("select", { "aria-label": "Body of the line", onchange: () => void this.offer() });
  private readonly field = h("select", { "aria-label": "Field of the line" });
  private readonly onto = h("select", { "aria-label": "Target chart" });
  private readonly other = h("input", { type: "checkbox", "aria-label": "Also draw the line of the comparison log" });
  private readonly otherName = h("span", { id: "other-log" });
  private readonly otherBox = h("label", { class: "row hidden" }, this.other, this.otherName);
  private fields: ChartField[] = [];
  private bodies = "";
  private span: { since?: number; until?: number } = {};
  private due = 0;

  constructor(
    private readonly store: SceneStore,
    private readonly seek: (time: number) => void,
    private readonly changed: () => void,
  ) {
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        this.body,
        this.field,
        this.onto,
        this.otherBox,
        h("button", { id: "add-line", class: "on", onclick: () => this.add() }, "add"),
        h("button", { title: "Show the full range (or double-click)", onclick: () => this.zoom({}) }, "full range"),
        h("span", { class: "grow" }),
        h("button", { id: "csv", title: "Show the lines as a table", onclick: () => void this.save() }, "CSV"),
      ),
      this.place,
    );
    this.place.addEventListener("dblclick", () => this.zoom({}));
    for (const lines of this.savedLines()) this.chart(lines);
  }

  /** Name of the log drawn for comparison; "": none. */
  private get compared(): string {
    return this.store.weather?.replay?.other ?? "";
  }

  private get whole(): boolean {
    return this.store.hello?.kind === "replay";
  }

  private savedLines(): Line[][] {
    try {
      return JSON.parse(localStorage.getItem("wavesim-charts") ?? "[]") as Line[][];
    } catch {
      return [];
    }
  }
  private keep(): void {
    localStorage.setItem("wavesim-charts", JSON.stringify(this.charts.map((c) => c.lines)));
  }

  private chart(lines: Line[]): Chart {
    const chart: Chart = { lines, plot: null, box: h("div", { class: "log-chart" }), width: 0 };
    this.charts.push(chart);
    this.place.append(chart.box);
    this.due = 0;
    return chart;
  }

  /** List the fields of the selected body. */
  private async offer(): Promise<void> {
    const row = Number(this.body.value),
      kit = this.body.value ? await getJson<BodyEquipment | null>(`/kit?row=${row}`) : null;
    const before = this.fields[Number(this.field.value)]?.key;
    if (String(row) !== this.body.value) return; // another body was selected meanwhile
    this.fields = chartFields(kit, this.whole);
    const groups = [...new Set(this.fields.map((f) => f.group))];
    setChildren(
      this.field,
      ...groups.map((g) =>
        h(
          "optgroup",
          { label: g },
          ...this.fields.flatMap((f, k) =>
            f.group === g ? [h("option", { value: k }, `${f.title}${f.unit ? `, ${f.unit}` : ""}`)] : [],
          ),
        ),
      ),
    );
    const same = this.fields.findIndex((f) => f.key === before);
    if (same >= 0) this.field.value = String(same);
  }

  private add(): void {
    const f = this.fields[Number(this.field.value)],
      body = this.store.name(Number(this.body.value));
    if (!f) return;
    const lines: Line[] = [{ ...f, body, other: false }, ...(this.other.checked ? [{ ...f, body, other: true }] : [])];
    const into = this.onto.value === "" ? undefined : this.charts[Number(this.onto.value)];
    if (into) {
      into.lines.push(...lines);
      into.plot?.destroy();
      into.plot = null;
    } else this.chart(lines);
    this.keep();
    this.due = 0;
    this.update();
  }

  private remove(chart: Chart): void {
    chart.plot?.destroy();
    chart.box.remove();
    this.charts = this.charts.filter((c) => c !== chart);
    this.keep();
    this.due = 0;
  }

  private zoom(span: { since?: number; until?: number }): void {
    this.span = span;
    this.due = 0;
    this.update();
  }

  /** Redraw the charts in the colours of the theme (light or dark). */
  recolour(): void {
    for (const c of this.charts) {
      c.plot?.destroy();
      c.plot = null;
    }
    this.due = 0;
  }

  private rowOf(name: string): number {
    return [...this.store.bodies.values()].find((b) => b.name === name)?.row ?? -1;
  }
  private queries(chart: Chart): [number, string][] {
    return chart.lines.map((l) => [Math.max(this.rowOf(l.body), 0), l.other ? `other:${l.key}` : l.key]);
  }

  update(): void {
    const bodies = [...this.store.bodies.values()].map((b) => `${b.row} ${b.name}`).join();
    if (bodies !== this.bodies) {
      const chosen = this.body.value;
      this.bodies = bodies;
      setChildren(this.body, ...[...this.store.bodies.values()].map((b) => h("option", { value: b.row }, b.name)));
      if (chosen && this.store.bodies.has(Number(chosen))) this.body.value = chosen;
      else void this.offer();
    }
    toggleClass(this.otherBox, "hidden", !this.compared);
    setText(this.otherName, `also from ${this.compared}`);
    for (const { plot } of this.charts) plot?.mark(this.store.time);
    const now = performance.now();
    if (now < this.due || !this.store.hello) return;
    this.due = this.whole ? Infinity : now + REFRESH_MS;
    const chosen = this.onto.value;
    setChildren(
      this.onto,
      h("option", { value: "" }, "new chart"),
      ...this.charts.map((c, k) => h("option", { value: k }, `into ${k + 1}: ${c.lines[0]?.title ?? ""}`)),
    );
    this.onto.value = chosen;
    for (const chart of this.charts) void this.load(chart);
  }

  private async load(chart: Chart): Promise<void> {
    const two = this.place.clientWidth > WIDE && this.charts.length > 1,
      width = Math.max((this.place.clientWidth - 24) / (two ? 2 : 1) - 8, 200);
    // first, minimum and maximum per pixel
    const found = await fetchSeries(this.queries(chart), {
      ...this.span,
      points: Math.min(1500, Math.ceil(3 * width)),
    });
    if (!found || !this.charts.includes(chart)) return;
    if (!chart.plot) {
      const rows = chart.lines.map((l) => this.rowOf(l.body)),
        same = new Set(rows).size < rows.length,
        units = [...new Set(chart.lines.map((l) => l.unit))];
      chart.plot = new Plot({
        title: [...new Set(chart.lines.map((l) => l.title))].join(", "),
        unit: units.join(", "),
        colours: same ? COLOURS : rows.map(bodyColour),
        labels: chart.lines.map(
          (l) =>
            `${l.body}${l.other ? ` (${this.compared})` : ""}${new Set(chart.lines.map((x) => x.key)).size > 1 ? ` ${l.title}` : ""}`,
        ),
        width,
        height: HEIGHT,
        down: chart.lines.every((l) => l.down),
        legend: true,
        sync: "log",
        remove: () => this.remove(chart),
        pick: this.whole ? this.seek : undefined,
        zoomed: (since, until) => this.zoom({ since, until }),
      });
      chart.box.replaceChildren(chart.plot.element);
    }
    chart.plot.width(width);
    chart.plot.set(
      found.time,
      ...found.values.map((v, k) => v.map((x) => (x === null ? null : x * chart.lines[k]!.factor))),
    );
    chart.plot.mark(this.store.time);
    this.changed();
  }

  /** All lines as tables, one per chart, at the times of its first line. */
  private async save(): Promise<void> {
    const parts: string[] = [];
    for (const chart of this.charts) {
      const found = await fetchSeries(this.queries(chart), { ...this.span, points: 4000 });
      if (!found) return;
      parts.push(
        [
          "time s",
          ...chart.lines.map(
            (l) => `${l.body}${l.other ? ` (${this.compared})` : ""} ${l.title}${l.unit ? ` ${l.unit}` : ""}`,
          ),
        ]
          .map((t) => `"${t.replaceAll('"', "'")}"`)
          .join(),
      );
      found.time.forEach((t, i) =>
        parts.push(
          [
            t,
            ...found.values.map((v, k) =>
              v[i] === null || v[i] === undefined ? "" : +(v[i]! * chart.lines[k]!.factor).toPrecision(7),
            ),
          ].join(),
        ),
      );
      parts.push("");
    }
    downloadBlob(new Blob([parts.join("\n")], { type: "text/csv" }), "charts.csv");
  }
}
