// What the charts of the whole time show, as it is kept in the browser, in layouts and in links.

import type { ChartField } from "./chart_fields";

/** One line of a chart: a field of a body. */
export interface Line extends ChartField {
  body: string;
  /** Draw the line of the comparison log. */
  other: boolean;
}

export interface ChartSpec {
  lines: Line[];
}

const TYPES: Record<keyof Line, string> = {
  group: "string",
  title: "string",
  key: "string",
  unit: "string",
  factor: "number",
  down: "boolean",
  body: "string",
  other: "boolean",
};

function checkLine(line: Record<string, unknown>): string {
  const wrong = Object.entries(TYPES).find(([key, type]) => typeof line[key] !== type);
  return wrong ? `its '${wrong[0]}' is missing or invalid` : "";
}

/** Return what is wrong with the charts; "": nothing. */
export function checkCharts(value: unknown): string {
  if (!Array.isArray(value)) return "they are not a list";
  for (const [k, chart] of (value as { lines?: unknown }[]).entries()) {
    const lines = chart?.lines;
    if (!Array.isArray(lines) || !lines.length) return `chart ${k + 1} has no lines`;
    for (const line of lines as unknown[]) {
      const wrong =
        typeof line === "object" && line !== null ? checkLine(line as Record<string, unknown>) : "not a line";
      if (wrong) return `a line of chart ${k + 1} is wrong: ${wrong}`;
    }
  }
  return "";
}
