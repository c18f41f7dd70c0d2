// Chart series from the viewer's server: complete for a log; for a live server, since the viewer was started.

import { getJson } from "./http";

export interface SeriesData {
  time: number[];
  values: (number | null)[][];
}
export interface TimeSpan {
  since?: number;
  until?: number;
  points?: number;
}

/** Values of series (row and key of each) at the times of the first one. */
export async function fetchSeries(
  wanted: [row: number, key: string][],
  span: TimeSpan = {},
): Promise<SeriesData | null> {
  const query = new URLSearchParams(wanted.map(([row, key]) => ["line", `${row}/${key}`]));
  for (const [name, value] of Object.entries(span)) query.set(name, String(value));
  return getJson<SeriesData>(`/series?${query.toString()}`);
}
