// Chart series from the viewer's server: complete for a log; for a live server, since the viewer was started.

import { getJson } from "./http";
import type { ChartData } from "./page_protocol";

export interface TimeSpan {
  since?: number;
  until?: number;
  points?: number;
}

/** Values of series (row and key of each) at the times of the first one. */
export async function fetchSeries(
  requested: [row: number, key: string][],
  span: TimeSpan = {},
): Promise<ChartData | null> {
  const query = new URLSearchParams(requested.map(([row, key]) => ["line", `${row}/${key}`]));
  for (const [name, value] of Object.entries(span)) query.set(name, String(value));
  return getJson<ChartData>(`/series?${query.toString()}`);
}
