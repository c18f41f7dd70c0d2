// Data of a chart: fields as the server sends them, and what formulas compute from fields.

import { chartFields, type ChartField } from "./chart_fields";
import { fetchSeries, type TimeSpan } from "./chart_series";
import type { ChartSpec, Line } from "./chart_spec";
import { findField, lineUnit, splitName } from "./field_names";
import { evaluate, fieldsOf, FormulaError, parseFormula, type Quantity, reach } from "./formula";
import { getJson } from "./http";
import type { BodyEquipment } from "./page_protocol";
import type { SceneStore } from "./scene_store";
import { resample, type Series, upperBound } from "./series_math";
import { parseUnit, unitText } from "./unit_algebra";

/** Most values of a field for a formula or for statistics; a longer stretch is reduced to its extremes. */
export const FULL = 20_000;

export interface DerivedSeries extends Series {
  unit: string;
  /** The stretch had more values than the server sends. */
  reduced: boolean;
}

interface Found {
  row: number;
  field: ChartField;
  other: boolean;
}

export class ChartDataReader {
  private readonly fields = new Map<number, ChartField[]>();

  constructor(private readonly store: SceneStore) {}

  get whole(): boolean {
    return this.store.hello?.kind === "replay";
  }

  /** Fields of a body. */
  async fieldsOf(row: number): Promise<ChartField[]> {
    const known = this.fields.get(row);
    if (known) return known;
    const kit = await getJson<BodyEquipment | null>(`/kit?row=${row}`),
      found = chartFields(kit, this.whole);
    if (this.whole) this.fields.set(row, found); // equipment of a running server may change
    return found;
  }

  /** Values of a formula; fields without a body are those of `body`. Throws FormulaError. */
  async formula(text: string, body: string, span: TimeSpan, compared = false): Promise<DerivedSeries> {
    const parsed = parseFormula(text),
      names = fieldsOf(parsed),
      margin = reach(parsed);
    if (!names.length) throw new FormulaError("the formula contains no field (such as depth)");
    const { since, until } = span,
      wider = {
        ...(since === undefined ? {} : { since: since - margin }),
        ...(until === undefined ? {} : { until: until + margin }),
      };
    const found = await Promise.all(names.map((name) => this.find(name, body, compared)));
    const series = await Promise.all(found.map((f) => this.field(f, wider)));
    const time = series[0]!.time;
    const quantities = new Map<string, Quantity>(
      names.map((name, k) => {
        const { unit } = series[k]!,
          value = k ? resample(series[k]!, time, unit === "°") : series[0]!.value;
        return [name, { value, unit: parseUnit(unit) }];
      }),
    );
    const { value, unit } = evaluate(parsed, time, (name) => quantities.get(name)!);
    const [a, b] = [upperBound(time, since ?? -Infinity) - 1, upperBound(time, until ?? Infinity) + 1];
    const cut = <T>(list: T[]): T[] => (margin ? list.slice(Math.max(a, 0), b) : list);
    return {
      time: cut(time),
      value: cut(Array.isArray(value) ? value : time.map(() => value)),
      unit: unitText(unit),
      reduced: series.some((s) => s.reduced),
    };
  }

  private async find(name: string, own: string, compared: boolean): Promise<Found> {
    const bodies = [...this.store.bodies.values()],
      found = splitName(
        name,
        bodies.map((b) => b.name),
        own,
      ),
      row = bodies.find((b) => b.name === found.body)?.row;
    if (row === undefined) throw new FormulaError(`there is no body '${found.body}' for the field '${name}'`);
    const field = findField(found.body, found.field, await this.fieldsOf(row));
    return { row, field, other: found.other || compared };
  }

  private async field({ row, field, other }: Found, span: TimeSpan): Promise<DerivedSeries> {
    const found = await fetchSeries([[row, other ? `other:${field.key}` : field.key]], { ...span, points: FULL }),
      time = found?.time ?? [];
    return {
      time,
      value: (found?.values[0] ?? []).map((v) => (v === null ? NaN : v * field.factor)),
      unit: lineUnit(field),
      reduced: found?.reduced === true,
    };
  }

  /** All lines of a chart, each at its own times. Throws FormulaError. */
  async lines(lines: Line[], span: TimeSpan): Promise<DerivedSeries[]> {
    return Promise.all(lines.map((line) => this.line(line, span)));
  }

  private async line(line: Line, span: TimeSpan): Promise<DerivedSeries> {
    if (line.formula) return this.formula(line.formula, line.body, span, line.other);
    const row = [...this.store.bodies.values()].find((b) => b.name === line.body)?.row;
    if (row === undefined) return { time: [], value: [], unit: line.unit, reduced: false };
    return this.field({ row, field: line, other: line.other }, span);
  }

  /** Points of X-Y lines. Throws FormulaError. */
  async points(
    line: Line,
    span: TimeSpan,
  ): Promise<{ time: number[]; x: number[]; y: number[]; units: [string, string] }> {
    const x = await this.formula(line.x!, line.body, span, line.other),
      y = await this.formula(line.formula!, line.body, span, line.other);
    return { time: x.time, x: x.value, y: resample(y, x.time, y.unit === "°"), units: [x.unit, y.unit] };
  }
}

/** Bring series to common times: those of the first one, and of the others before and after it. */
export function together(series: DerivedSeries[]): { time: number[]; values: (number | null)[][] } {
  let time: number[] = [];
  for (const s of series) {
    const [first, last] = [time[0] ?? Infinity, time[time.length - 1] ?? -Infinity];
    if (!time.length) time = s.time;
    else time = [...s.time.filter((t) => t < first), ...time, ...s.time.filter((t) => t > last)];
  }
  const gap = (v: number): number | null => (Number.isFinite(v) ? v : null);
  return {
    time,
    values: series.map((s) => (s.time === time ? s.value : resample(s, time, s.unit === "°")).map(gap)),
  };
}

/** True if the values of a chart are computed on this page. */
export const isDerived = ({ lines }: ChartSpec): boolean => lines.some((line) => line.formula !== undefined);

/** Line of a formula. */
export function formulaLine(body: string, formula: string, unit: string, x?: string): Line {
  const title = x === undefined ? formula : `${formula} against ${x}`;
  const line: Line = { group: "formula", title, key: "", unit, factor: 1, down: false, body, other: false, formula };
  return x === undefined ? line : { ...line, x };
}
