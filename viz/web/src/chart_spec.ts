// What the charts of the whole time show, as it is kept in the browser, in layouts and in links.

import type { ChartField } from "./chart_fields";

/** One line of a chart: a field of a body, or a formula of fields. */
export interface Line extends ChartField {
  body: string;
  /** Draw the line of the comparison log. */
  other: boolean;
  formula?: string;
  /** Formula of the horizontal axis of an X-Y chart; without it, the line is drawn over time. */
  x?: string;
}

export interface ChartSpec {
  lines: Line[];
  /** The axes of an X-Y chart have the same scale. */
  equal?: boolean;
}

const TYPES: Record<Exclude<keyof Line, "formula" | "x">, string> = {
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
  if (wrong) return `the '${wrong[0]}' key is missing or invalid`;
  const { formula, x } = line;
  if (![formula, x].every((f) => f === undefined || (typeof f === "string" && f !== "")))
    return "the formula is invalid";
  return x !== undefined && formula === undefined ? "the formula is missing" : "";
}

/** Return what is wrong with the charts; "": nothing. */
export function checkCharts(value: unknown): string {
  if (!Array.isArray(value)) return "the charts are not a list";
  for (const [k, chart] of (value as { lines?: unknown }[]).entries()) {
    const lines = chart?.lines;
    if (!Array.isArray(lines) || !lines.length) return `chart ${k + 1} has no lines`;
    if (new Set((lines as Line[]).map((line) => line?.x === undefined)).size > 1)
      return `chart ${k + 1} has both lines over time and X-Y lines`;
    for (const line of lines as unknown[]) {
      const wrong =
        typeof line === "object" && line !== null ? checkLine(line as Record<string, unknown>) : "not a line";
      if (wrong) return `a line of chart ${k + 1} is wrong: ${wrong}`;
    }
  }
  return "";
}

/** True for a chart of lines in a plane rather than over time. */
export const isXY = ({ lines }: ChartSpec): boolean => lines[0]?.x !== undefined;
