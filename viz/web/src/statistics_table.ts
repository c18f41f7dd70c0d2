// Table below a chart: statistics of each line over the visible stretch.

import { h } from "./dom";
import type { DerivedSeries } from "./chart_data";
import { statistics, type Statistics } from "./series_math";

const COLUMNS: (keyof Statistics)[] = ["n", "min", "max", "mean", "std", "rms"];

export function statisticsTable(
  labels: string[],
  series: DerivedSeries[],
  since?: number,
  until?: number,
): HTMLElement {
  const row = (label: string, s: DerivedSeries): HTMLElement => {
    const found = statistics(s, since, until);
    return h(
      "tr",
      {},
      h("td", {}, label),
      ...COLUMNS.map((c) => h("td", { class: "n" }, found ? String(+found[c].toPrecision(6)) : "–")),
      h("td", {}, s.unit),
    );
  };
  return h(
    "div",
    { class: "statistics" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, ...["", ...COLUMNS, "unit"].map((c, k) => h("th", { class: k ? "n" : "" }, c)))),
      h("tbody", {}, ...series.map((s, k) => row(labels[k] ?? "", s))),
    ),
    series.some((s) => s.reduced)
      ? h("span", { class: "warm" }, "computed from reduced data: zoom in for exact values")
      : null,
  );
}
