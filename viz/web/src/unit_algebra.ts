// Units of formulas: m/s² is {m: 1, s: -2}. A plain number has the unit of whatever it meets.

/** Powers of base units; null: a plain number. */
export type Unit = Readonly<Record<string, number>> | null;

export const RAD: Unit = { rad: 1 },
  DEGREE: Unit = { "°": 1 },
  ONE: Unit = {};

const POWERS: Record<string, number> = { "²": 2, "³": 3 };

export function parseUnit(text: string): Unit {
  if (!text) return null;
  const unit: Record<string, number> = {};
  text.split("/").forEach((part, k) => {
    for (const factor of part.replace(/[()·]/g, " ").split(" ")) {
      const [, name, power] = /^(.*?)([²³\d])?$/.exec(factor)!;
      if (name) unit[name] = (unit[name] ?? 0) + (k ? -1 : 1) * (POWERS[power ?? ""] ?? Number(power ?? 1));
    }
  });
  return unit;
}

export function unitText(unit: Unit): string {
  if (unit === null) return "";
  const factors = (sign: number): string[] =>
    Object.entries(unit)
      .filter(([, p]) => p * sign > 0)
      .map(([name, p]) => {
        const size = Math.abs(p);
        return name + (size === 1 ? "" : size === 2 ? "²" : size === 3 ? "³" : `^${+size.toPrecision(3)}`);
      });
  const [above, below] = [factors(1), factors(-1)];
  if (!below.length) return above.join(" ");
  return `${above.join(" ") || "1"}/${below.length > 1 ? `(${below.join(" ")})` : below[0]!}`;
}

/** Product of one unit and a power of another. */
export function times(a: Unit, b: Unit, power = 1): Unit {
  if (a === null && b === null) return null;
  const unit: Record<string, number> = { ...a };
  for (const [name, p] of Object.entries(b ?? {})) {
    unit[name] = (unit[name] ?? 0) + power * p;
    if (Math.abs(unit[name]) < 1e-9) delete unit[name];
  }
  return unit;
}

/** Unit of a sum; undefined if the two cannot be added. */
export function common(a: Unit, b: Unit): Unit | undefined {
  if (a === null) return b;
  if (b === null) return a;
  const names = (u: Unit): string => JSON.stringify(Object.entries(u!).sort(([x], [y]) => (x < y ? -1 : 1)));
  return names(a) === names(b) ? a : undefined;
}
