// Lines of a chart as the viewer's server knows them: of a log all of it, of a server since its viewer began.

import { getJson } from "./http";

export interface SeriesData { time: number[]; values: (number | null)[][] }
export interface TimeSpan { since?: number; until?: number; points?: number }

/** Values of lines (row and key of each) at the times of the first. */
export async function fetchSeries(wanted: [row: number, key: string][], span: TimeSpan = {}): Promise<SeriesData | null> {
  const query = new URLSearchParams(wanted.map(([row, key]) => ["line", `${row}/${key}`]));
  for (const [name, value] of Object.entries(span)) query.set(name, String(value));
  return getJson<SeriesData>(`/series?${query.toString()}`);
}
