// Lines of charts as a table of comma-separated values.

/** A table of one chart: a title for each column, and the columns. */
export interface ChartTable {
  titles: string[];
  columns: (number | null)[][];
}

const cell = (v: number | null | undefined, digits: number): string =>
  v === null || v === undefined || !Number.isFinite(v) ? "" : String(+v.toPrecision(digits));

/** The first column is the time. Tables are separated by an empty line. */
export function chartsToCsv(tables: ChartTable[]): string {
  return tables
    .flatMap(({ titles, columns }) => [
      titles.map((t) => `"${t.replaceAll('"', "'")}"`).join(),
      ...(columns[0] ?? []).map((_, i) => columns.map((column, k) => cell(column[i], k ? 7 : 12)).join()),
      "",
    ])
    .join("\n");
}
