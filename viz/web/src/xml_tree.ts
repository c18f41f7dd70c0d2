// A model as a tree of XML elements, and the declaration of permitted content.

import type { ElementRule, XmlTree } from "./page_protocol";

export type Schema = Record<string, ElementRule>;

const METRES: Record<string, number> = { m: 1, km: 1e3, cm: 1e-2, mm: 1e-3 };

/** Numbers and unit of a written value. */
export function parseQuantities(text: string | undefined): { numbers: number[]; unit: string } {
  const parts = (text ?? "")
      .trim()
      .split(/[\s,]+/)
      .filter(Boolean),
    numbers: number[] = [];
  while (parts.length && Number.isFinite(Number(parts[0]))) numbers.push(Number(parts.shift()));
  return { numbers, unit: parts.join(" ") };
}

/** Position in metres, from an attribute with a unit of length. */
export function parseMetres(text: string | undefined): [number, number, number] {
  const { numbers, unit } = parseQuantities(text),
    f = METRES[unit] ?? 1;
  return [0, 1, 2].map((k) => (numbers[k] ?? 0) * f) as [number, number, number];
}

function tidy(value: number): string {
  return String(+value.toFixed(4));
}

/** The same attribute with other numbers, in its present unit. */
export function formatMetres(text: string | undefined, place: number[]): string {
  const unit = parseQuantities(text).unit || "m",
    f = METRES[unit] ?? 1;
  return `${place.map((v) => tidy(v / f)).join(" ")} ${unit}`;
}

export function parseVector(text: string | undefined, otherwise: [number, number, number]): [number, number, number] {
  const { numbers } = parseQuantities(text);
  return numbers.length === 3 ? (numbers as [number, number, number]) : otherwise;
}

export function formatNumbers(numbers: number[], unit = ""): string {
  return `${numbers.map(tidy).join(" ")}${unit ? ` ${unit}` : ""}`;
}

/** A new element with its required content. */
export function newElement(tag: string, of: string, schema: Schema): XmlTree {
  const rule = schema[of]!,
    attributes: Record<string, string> = {};
  for (const k of rule.keys) {
    if (!k.required || k.kind === "numbers") continue;
    attributes[k.name] =
      k.kind === "text"
        ? `${tag}1`
        : (k.choices[0] ??
          `${Array(k.count)
            .fill(k.name === "direction" ? "1" : k.low && Number.parseFloat(k.low) > 0 ? "0.1" : "0")
            .join(" ")} ${k.units[0] ?? ""}`.trim());
    if (k.name === "direction") attributes[k.name] = "1 0 0";
    if (k.name === "maximum") attributes[k.name] = `10${k.units[0] ? ` ${k.units[0]}` : ""}`;
    if (k.name === "limit" && k.units[0] === "deg") attributes[k.name] = "20 deg";
  }
  return {
    tag,
    attributes,
    text: "",
    children: rule.children.filter((c) => c.required).map((c) => newElement(c.name, c.of, schema)),
  };
}

export function findChild(tree: XmlTree, tag: string): XmlTree | undefined {
  return tree.children.find((c) => c.tag === tag);
}

/** Name of an instrument: its own, or that of its type. */
export function nameOf(t: XmlTree): string {
  return t.attributes["name"] || t.attributes["type"] || t.tag;
}
