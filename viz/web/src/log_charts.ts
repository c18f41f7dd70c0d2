// Charts over the whole time of any fields of any bodies, and of formulas of fields, under one cursor: a click seeks
// to the time, a dragged interval zooms in, a double click shows the full range.

import { chartsToCsv, type ChartTable } from "./chart_csv";
import { ChartDataReader, type DerivedSeries, formulaLine, isDerived, together } from "./chart_data";
import type { ChartField } from "./chart_fields";
import { fetchSeries, type TimeSpan } from "./chart_series";
import { checkCharts, type ChartSpec, isXY, type Line } from "./chart_spec";
import { bodyColour, bodyColours, h, setChildren, setText, toast, toggleClass } from "./dom";
import type { EventMarks } from "./event_marks";
import { FieldPicker } from "./field_picker";
import { FormulaError } from "./formula";
import { FormulaForm } from "./formula_form";
import { Plot } from "./plots";
import type { SceneStore } from "./scene_store";
import { statisticsTable } from "./statistics_table";
import { downloadBlob } from "./url_state";
import { XYPlot } from "./xy_plot";

const STORED = "wavesim-charts",
  STORED_STATISTICS = "wavesim-statistics";
const REFRESH_MS = 2000; // for a running server
const HEIGHT = 120,
  XY_HEIGHT = 240,
  WIDE = 900; // px: minimum width for two columns
const CSV_POINTS = 4000;

interface Chart extends ChartSpec {
  plot: Plot | XYPlot | null;
  box: HTMLElement;
  width: number;
  /** Events that the chart marks. */
  marked: number;
}

export class LogCharts {
  readonly element: HTMLElement;
  private charts: Chart[] = [];
  private readonly place = h("div", { class: "list", id: "log-charts" });
  private readonly picker: FieldPicker;
  private readonly form: FormulaForm;
  private readonly data: ChartDataReader;
  private readonly onto = h("select", { "aria-label": "Target chart" });
  private readonly other = h("input", { type: "checkbox", "aria-label": "Also draw the line from the comparison log" });
  private readonly otherName = h("span", { id: "other-log" });
  private readonly otherBox = h("label", { class: "row hidden" }, this.other, this.otherName);
  private readonly statistics = h("input", {
    type: "checkbox",
    id: "statistics",
    checked: localStorage.getItem(STORED_STATISTICS) === "1",
    onchange: () => {
      localStorage.setItem(STORED_STATISTICS, this.statistics.checked ? "1" : "");
      this.due = 0;
      this.update();
    },
  });
  private span: { since?: number; until?: number } = {};
  private loadedAt: number | undefined; // simulation time of the last update of the charts
  private reminder = 0;
  private due = 0;
  private wide = 0; // px

  constructor(
    private readonly store: SceneStore,
    private readonly events: EventMarks,
    private readonly seek: (time: number) => void,
    private readonly changed: () => void,
  ) {
    this.data = new ChartDataReader(store);
    this.picker = new FieldPicker(store, this.data, "line");
    this.form = new FormulaForm(
      store,
      this.data,
      this.picker,
      () => this.other.checked,
      () => void this.add(),
    );
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        this.picker.body,
        this.picker.list,
        this.form.kind,
        this.onto,
        this.otherBox,
        h("button", { id: "add-line", class: "on", onclick: () => void this.add() }, "add"),
        h("button", { title: "Show the full range (or double-click)", onclick: () => this.zoom({}) }, "full range"),
        h(
          "label",
          { class: "row", title: "Minimum, maximum, mean, standard deviation and RMS of the visible section" },
          this.statistics,
          "statistics",
        ),
        h("span", { class: "grow" }),
        h("button", { id: "csv", title: "Save the lines as a table", onclick: () => void this.save() }, "CSV"),
      ),
      this.form.more,
      this.place,
    );
    this.place.addEventListener("dblclick", () => this.zoom({}));
    for (const wanted of this.kept()) this.chart(wanted);
  }

  get empty(): boolean {
    return this.charts.length === 0;
  }

  /** Fields of the selected body. */
  get fields(): ChartField[] {
    return this.picker.fields;
  }

  /** Name of the log drawn for comparison; "": none. */
  private get compared(): string {
    return this.store.weather?.replay?.other ?? "";
  }

  private kept(): ChartSpec[] {
    try {
      const found = JSON.parse(localStorage.getItem(STORED) ?? "[]") as ChartSpec[];
      if (!checkCharts(found)) return found;
    } catch {
      /* told below */
    }
    toast("the charts saved on your last visit were damaged and have been removed", true);
    return [];
  }
  private keep(): void {
    localStorage.setItem(STORED, JSON.stringify(this.specs));
  }

  /** What the charts show. */
  get specs(): ChartSpec[] {
    return this.charts.map(({ lines, equal }) => ({ lines: [...lines], ...(equal === undefined ? {} : { equal }) }));
  }
  set specs(specs: ChartSpec[]) {
    for (const chart of this.charts) {
      chart.plot?.destroy();
      chart.box.remove();
    }
    this.charts = [];
    for (const spec of specs) this.chart(spec);
    this.keep();
    this.changed();
  }

  private chart(spec: ChartSpec): void {
    const box = h("div", { class: "log-chart" });
    this.charts.push({ ...spec, lines: [...spec.lines], plot: null, box, width: 0, marked: 0 });
    this.place.append(box);
    this.due = 0;
  }

  /** Lines for what the form asks for; null after a message about a mistake in the formula. */
  private async wanted(): Promise<Line[] | null> {
    const body = this.picker.bodyName,
      both = this.other.checked,
      { wanted } = this.form,
      f = this.picker.field;
    if (!wanted) return f ? [{ ...f, body, other: false }, ...(both ? [{ ...f, body, other: true }] : [])] : null;
    try {
      const { unit } = await this.data.formula(wanted.formula, body, { points: 2 });
      if (wanted.x !== undefined) await this.data.formula(wanted.x, body, {});
      return [formulaLine(body, wanted.formula, unit, wanted.x)];
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error;
      toast(`mistake in the formula: ${error.message}`, true);
      return null;
    }
  }

  private async add(): Promise<void> {
    const lines = await this.wanted();
    if (!lines) return;
    const into = this.onto.value === "" ? undefined : this.charts[Number(this.onto.value)];
    if (into && isXY(into) !== isXY({ lines })) {
      toast("an X-Y line and a line over time cannot share a chart; choose 'new chart'", true);
      return;
    }
    if (into) {
      into.lines.push(...lines);
      this.rebuild(into);
    } else this.chart({ lines, ...(isXY({ lines }) ? { equal: this.form.equal } : {}) });
    this.keep();
    this.update();
  }

  private remove(chart: Chart): void {
    chart.plot?.destroy();
    chart.box.remove();
    this.charts = this.charts.filter((c) => c !== chart);
    this.keep();
    this.due = 0;
    this.changed();
  }

  private rebuild(chart: Chart): void {
    chart.plot?.destroy();
    chart.plot = null;
    this.due = 0;
  }

  /** Show an interval; {}: the full range. */
  zoom(span: { since?: number; until?: number }): void {
    this.span = span;
    this.due = 0;
    this.update();
  }

  /** Request the values again. */
  refresh(): void {
    this.due = 0;
  }

  /** Redraw the charts in the colours of the theme (light or dark). */
  recolour(): void {
    for (const c of this.charts) this.rebuild(c);
  }

  private rowOf(name: string): number {
    return this.store.rowOf(name) ?? -1;
  }

  update(): void {
    this.picker.update();
    this.form.update();
    toggleClass(this.otherBox, "hidden", !this.compared);
    setText(this.otherName, `also from ${this.compared}`);
    const marks = this.events.notable.length;
    for (const chart of this.charts) {
      chart.plot?.mark(this.store.time);
      if (chart.marked !== marks && chart.plot instanceof Plot) chart.plot.redraw();
      chart.marked = marks;
    }
    if (this.place.clientWidth !== this.wide) this.due = 0; // the panes have other widths
    this.wide = this.place.clientWidth;
    const now = performance.now();
    if (!this.store.hello) return;
    if (now < this.due) {
      this.remind(this.due - now);
      return;
    }
    this.due = this.data.whole ? Infinity : now + REFRESH_MS;
    this.loadedAt = this.store.last?.time;
    const chosen = this.onto.value;
    setChildren(
      this.onto,
      h("option", { value: "" }, "new chart"),
      ...this.charts.map((c, k) => h("option", { value: k }, `into ${k + 1}: ${c.lines[0]?.title ?? ""}`)),
    );
    this.onto.value = chosen;
    for (const chart of this.charts) void this.load(chart);
  }

  /** Update again after an interval if the charts lack the newest values: the drawing loop rests while a run is paused. */
  private remind(after: number): void {
    const complete = this.data.whole || this.empty || this.loadedAt === this.store.last?.time;
    if (complete || this.reminder) return;
    this.reminder = setTimeout(() => {
      this.reminder = 0;
      this.changed();
    }, after);
  }

  /** Load and draw a chart; if a formula cannot be computed, its place tells why. */
  private async load(chart: Chart): Promise<void> {
    const two = this.place.clientWidth > WIDE && this.charts.length > 1,
      width = Math.max((this.place.clientWidth - 24) / (two ? 2 : 1) - 8, 200);
    try {
      await (isXY(chart) ? this.loadPlane(chart, width) : this.loadTime(chart, width));
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error;
      this.rebuild(chart);
      this.due = this.data.whole ? Infinity : performance.now() + REFRESH_MS;
      const close = h("button", { title: "Remove this chart", onclick: () => this.remove(chart) }, "×");
      const text = `${chart.lines.map((l) => l.title).join(", ")}: ${error.message}`;
      chart.box.replaceChildren(h("div", { class: "warm row formula-mistake" }, h("span", {}, text), close));
    }
    this.changed();
  }

  private label(chart: ChartSpec, line: Line): string {
    const other = line.other ? ` (${this.compared})` : "";
    if (line.formula) return `${line.formula}${other}`;
    return `${line.body}${other}${new Set(chart.lines.map((x) => x.key)).size > 1 ? ` ${line.title}` : ""}`;
  }

  private colours({ lines }: ChartSpec): string[] {
    const rows = lines.map((l) => this.rowOf(l.body));
    return new Set(rows).size < rows.length ? bodyColours() : rows.map((row) => bodyColour(Math.max(row, 0)));
  }

  /** Values of the lines, and each line at its own times if they are computed here. */
  private async values(
    chart: Chart,
    span: TimeSpan,
  ): Promise<{ time: number[]; values: (number | null)[][]; own: DerivedSeries[] } | null> {
    if (isDerived(chart) || this.statistics.checked) {
      const own = await this.data.lines(chart.lines, { ...this.span });
      return { ...together(own), own };
    }
    const keys = chart.lines.map((l): [number, string] => [
      Math.max(this.rowOf(l.body), 0),
      l.other ? `other:${l.key}` : l.key,
    ]);
    const found = await fetchSeries(keys, span);
    if (!found) return null;
    const values = found.values.map((v, k) => v.map((x) => (x === null ? null : x * chart.lines[k]!.factor)));
    return { time: found.time, values, own: [] };
  }

  private async loadTime(chart: Chart, width: number): Promise<void> {
    // first, minimum and maximum per pixel
    const found = await this.values(chart, { ...this.span, points: Math.min(1500, Math.ceil(3 * width)) });
    if (!found || !this.charts.includes(chart)) return;
    const labels = chart.lines.map((line) => this.label(chart, line)),
      units = found.own.length ? found.own.map((s) => s.unit) : chart.lines.map((l) => l.unit);
    if (!(chart.plot instanceof Plot)) {
      chart.plot = new Plot({
        title: [...new Set(chart.lines.map((l) => l.title))].join(", "),
        unit: [...new Set(units.filter(Boolean))].join(", "),
        colours: this.colours(chart),
        labels,
        width,
        height: HEIGHT,
        down: chart.lines.every((l) => l.down),
        legend: true,
        sync: "log",
        remove: () => this.remove(chart),
        pick: this.data.whole ? this.seek : undefined,
        zoomed: (since, until) => this.zoom({ since, until }),
        marks: () => this.events.notable,
      });
      chart.box.replaceChildren(chart.plot.element);
    }
    chart.plot.width(width);
    chart.plot.set(found.time, ...found.values);
    chart.plot.mark(this.store.time);
    chart.box.querySelector(".statistics")?.remove();
    if (this.statistics.checked) chart.box.append(statisticsTable(labels, found.own, this.span.since, this.span.until));
  }

  private async loadPlane(chart: Chart, width: number): Promise<void> {
    const found = await Promise.all(chart.lines.map((line) => this.data.points(line, this.span)));
    if (!this.charts.includes(chart)) return;
    const colours = this.colours(chart),
      lines = found.map(({ time, x, y }, k) => {
        const label = chart.lines[k]!.other ? `${chart.lines[k]!.title} (${this.compared})` : chart.lines[k]!.title;
        return { label, colour: colours[k % colours.length]!, time, x, y };
      }),
      units = found[0]!.units;
    if (!(chart.plot instanceof XYPlot)) {
      const [x, y] = units.map((u) => (u ? ` (${u})` : ""));
      chart.plot = new XYPlot({
        title: chart.lines.map((l) => `${l.formula}${y} against ${l.x}${x}`).join("; "),
        units,
        equal: chart.equal ?? false,
        height: XY_HEIGHT,
        remove: () => this.remove(chart),
        pick: this.data.whole ? this.seek : undefined,
        setEqual: (equal) => {
          chart.equal = equal;
          this.rebuild(chart);
          this.keep();
          this.update();
        },
      });
      chart.box.replaceChildren(chart.plot.element);
    }
    chart.plot.width(width);
    chart.plot.set(lines);
    chart.plot.mark(this.store.time);
  }

  private async table(chart: Chart): Promise<ChartTable[]> {
    if (isXY(chart)) {
      const found = await Promise.all(chart.lines.map((line) => this.data.points(line, this.span)));
      return found.map(({ time, x, y, units }, k) => {
        const title = (text: string, unit: string): string => `${text}${unit ? ` ${unit}` : ""}`,
          line = chart.lines[k]!;
        return { titles: ["time s", title(line.x!, units[0]), title(line.formula!, units[1])], columns: [time, x, y] };
      });
    }
    const found = await this.values(chart, { ...this.span, points: CSV_POINTS });
    if (!found) return [];
    const titles = chart.lines.map((l, k) => {
      const other = l.other ? ` (${this.compared})` : "",
        unit = found.own[k]?.unit ?? l.unit;
      return `${l.formula ? `${l.formula}${other}` : `${l.body}${other} ${l.title}`}${unit ? ` ${unit}` : ""}`;
    });
    return [{ titles: ["time s", ...titles], columns: [found.time, ...found.values] }];
  }

  /** All lines as tables, one per chart, at the times of its first line. */
  private async save(): Promise<void> {
    try {
      const tables = await Promise.all(this.charts.map((chart) => this.table(chart)));
      downloadBlob(new Blob([chartsToCsv(tables.flat())], { type: "text/csv" }), "charts.csv");
    } catch (error) {
      if (!(error instanceof FormulaError)) throw error;
      toast(`cannot save the charts: ${error.message}`, true);
    }
  }
}
