// Names of fields in formulas: `lead.depth`, `[auv-2.ctd.temperature]`, `[other:lead.depth]`.

import type { ChartField } from "./chart_fields";
import { FormulaError } from "./formula";

const OTHER = "other:"; // prefix of a field of the comparison log

/** Unit of one line of a chart: a chart of forces has forces and moments. */
export function lineUnit({ key, unit }: Pick<ChartField, "key" | "unit">): string {
  if (!key.startsWith("force.")) return unit;
  return "XYZ".includes(key[key.length - 1]!) ? "N" : "N m";
}

/** Name of a field without its body. */
export function fieldName(key: string, fields: ChartField[]): string {
  const short = key.replace(/^(motion|sensor)\./, "");
  return short.endsWith(".0") && !fields.some((f) => f.key === key.replace(/0$/, "1")) ? short.slice(0, -2) : short;
}

/** A field as it is written in a formula. */
export function fieldReference(body: string, key: string, fields: ChartField[], other: boolean): string {
  const name = `${other ? OTHER : ""}${body}.${fieldName(key, fields)}`;
  return /^[A-Za-z_][\w.]*$/.test(name) ? name : `[${name}]`;
}

/** Split a name into its body, its field and whether the comparison log is meant. */
export function splitName(
  name: string,
  bodies: string[],
  body: string,
): { body: string; field: string; other: boolean } {
  const other = name.startsWith(OTHER),
    rest = other ? name.slice(OTHER.length) : name,
    found = bodies.filter((b) => rest.startsWith(`${b}.`)).sort((a, b) => b.length - a.length)[0];
  return found === undefined
    ? { body, field: rest, other }
    : { body: found, field: rest.slice(found.length + 1), other };
}

/** Find a field by its name; throws FormulaError. */
export function findField(body: string, name: string, fields: ChartField[]): ChartField {
  const found = fields.find((f) => f.key === name || fieldName(f.key, fields) === name);
  if (found) return found;
  const names = fields.map((f) => fieldName(f.key, fields)),
    near = names.map((n) => [distance(n, name), n] as const).sort(([a], [b]) => a - b)[0];
  const help = near && near[0] <= Math.max(2, name.length / 3) ? `; did you mean '${near[1]}'?` : "";
  throw new FormulaError(body ? `'${body}' has no field '${name}'${help}` : `there is no body for the field '${name}'`);
}

/** Number of letters to change, add or remove to get from one name to another. */
function distance(a: string, b: string): number {
  let row = [...b, ""].map((_, k) => k);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [k, other] of [...b].entries())
      next.push(Math.min(row[k]! + Number(letter !== other), row[k + 1]! + 1, next[k]! + 1));
    row = next;
  }
  return row[b.length]!;
}
