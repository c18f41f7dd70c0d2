// Layout: the arrangement of the page, without the moment and the place that it shows.

import { checkCharts, type ChartSpec } from "./chart_spec";

export const LAYOUT_VERSION = 1;

export interface Layout {
  version: number;
  /** View of the stage. */
  mode: string;
  /** Share of the width that the 3D view takes beside the chart; null: only one of them is shown. */
  split: number | null;
  /** Elements that are shown. */
  show: string[];
  panels: [left: boolean, right: boolean];
  /** Open tabs of the bottom panel, from left to right. */
  panes: string[];
  /** Where one tab ends and the next begins, as shares of the width. */
  bounds: number[];
  /** Height of the bottom panel as a share of the window. */
  height: number;
  charts: ChartSpec[];
}

const share = (v: unknown): boolean => typeof v === "number" && v > 0 && v < 1;
const listOf = (v: unknown, type: string): boolean => Array.isArray(v) && v.every((x) => typeof x === type);

const RULES: Record<Exclude<keyof Layout, "version">, (v: unknown) => boolean> = {
  mode: (v) => typeof v === "string",
  split: (v) => v === null || share(v),
  show: (v) => listOf(v, "string"),
  panels: (v) => listOf(v, "boolean") && (v as unknown[]).length === 2,
  panes: (v) => listOf(v, "string"),
  bounds: (v) => Array.isArray(v) && v.every(share),
  height: share,
  charts: (v) => checkCharts(v) === "",
};

/** Return what is wrong with a layout; "": nothing. */
export function checkLayout(value: unknown): string {
  if (typeof value !== "object" || value === null) return "it does not contain a layout";
  const layout = value as Record<string, unknown>;
  if (layout["version"] !== LAYOUT_VERSION)
    return `the layout has version ${String(layout["version"] ?? "0")}, but this page reads version ${LAYOUT_VERSION}`;
  const wrong = Object.entries(RULES).find(([key, good]) => !good(layout[key]));
  return wrong ? `the '${wrong[0]}' part is missing or invalid` : "";
}
