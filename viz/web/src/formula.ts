// Formulas of charts: a parser and an evaluator over series, with units. Nothing of a formula is run as a script.

import { derivative, integral, movingMean, resample, unwrap, wrap } from "./series_math";
import { common, DEGREE, ONE, parseUnit, RAD, times, type Unit, unitText } from "./unit_algebra";

/** A mistake in a formula, in words for the user. */
export class FormulaError extends Error {}

export type Formula =
  | { kind: "number"; value: number }
  | { kind: "field"; name: string }
  | { kind: "negative"; of: Formula }
  | { kind: "operation"; sign: string; a: Formula; b: Formula }
  | { kind: "call"; name: string; of: Formula[] };

/** Values at common times, or one number for all of them. */
export interface Quantity {
  value: number | number[];
  unit: Unit;
}

const LONGEST = 400,
  DEEPEST = 40;
const TOKEN = /\s*(?:(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)|\[([^\]]+)\]|([A-Za-z_][\w.:]*)|([-+*/^(),]))/y;

type Token = { text: string; number?: number; field?: string; name?: string };

function tokens(text: string): Token[] {
  if (text.length > LONGEST) throw new FormulaError(`the formula is longer than ${LONGEST} characters`);
  const found: Token[] = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; text.slice(at).trim(); at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const m = TOKEN.exec(text);
    if (!m) {
      const rest = text.slice(at).trim();
      throw new FormulaError(rest.startsWith("[") ? "']' is missing after '['" : `unexpected '${rest[0]}'`);
    }
    const [, number, field, name, sign] = m;
    if (number !== undefined) found.push({ text: number, number: Number(number) });
    else if (field !== undefined) found.push({ text: `[${field}]`, field: field.trim() });
    else if (name !== undefined) found.push({ text: name, name });
    else found.push({ text: sign! });
  }
  return found;
}

class Parser {
  private at = 0;
  private depth = 0;

  constructor(private readonly tokens: Token[]) {}

  whole(): Formula {
    if (!this.tokens.length) throw new FormulaError("the formula is empty");
    const found = this.sum();
    if (this.at < this.tokens.length) throw new FormulaError(`unexpected '${this.tokens[this.at]!.text}'`);
    return found;
  }

  private next(...signs: string[]): string {
    const token = this.tokens[this.at];
    if (!token || token.number !== undefined || token.name || token.field || !signs.includes(token.text)) return "";
    this.at++;
    return token.text;
  }

  private sum(): Formula {
    if (++this.depth > DEEPEST) throw new FormulaError(`more than ${DEEPEST} nested parentheses`);
    let a = this.product();
    for (let sign = this.next("+", "-"); sign; sign = this.next("+", "-"))
      a = { kind: "operation", sign, a, b: this.product() };
    this.depth--;
    return a;
  }

  private product(): Formula {
    let a = this.signed();
    for (let sign = this.next("*", "/"); sign; sign = this.next("*", "/"))
      a = { kind: "operation", sign, a, b: this.signed() };
    return a;
  }

  private signed(): Formula {
    let negative = false;
    for (let sign = this.next("-", "+"); sign; sign = this.next("-", "+")) if (sign === "-") negative = !negative;
    const of = this.power();
    return negative ? { kind: "negative", of } : of;
  }

  private power(): Formula {
    const a = this.single();
    if (!this.next("^")) return a;
    if (++this.depth > DEEPEST) throw new FormulaError(`more than ${DEEPEST} nested powers`);
    const b = this.signed();
    this.depth--;
    return { kind: "operation", sign: "^", a, b };
  }

  private single(): Formula {
    const token = this.tokens[this.at++];
    if (!token) throw new FormulaError("a value is missing at the end");
    if (token.number !== undefined) return { kind: "number", value: token.number };
    if (token.field !== undefined) return { kind: "field", name: token.field };
    if (token.name !== undefined) return this.next("(") ? this.call(token.name) : named(token.name);
    if (token.text !== "(") throw new FormulaError(`a value is missing before '${token.text}'`);
    const found = this.sum();
    if (!this.next(")")) throw new FormulaError("')' is missing");
    return found;
  }

  private call(name: string): Formula {
    const wanted = COUNTS.get(name);
    if (wanted === undefined)
      throw new FormulaError(`there is no function '${name}'; available: ${[...COUNTS.keys()].sort().join(", ")}`);
    const of = [this.sum()];
    while (this.next(",")) of.push(this.sum());
    if (!this.next(")")) throw new FormulaError(`')' is missing after the values of '${name}'`);
    if (of.length !== wanted)
      throw new FormulaError(`'${name}' takes ${wanted === 1 ? "one value" : `${wanted} values`}, not ${of.length}`);
    return { kind: "call", name, of };
  }
}

function named(name: string): Formula {
  if (name === "pi") return { kind: "number", value: Math.PI };
  return name === "t" ? { kind: "call", name: "t", of: [] } : { kind: "field", name };
}

/** Parse a formula; throws FormulaError. */
export function parseFormula(text: string): Formula {
  return new Parser(tokens(text)).whole();
}

/** Names of the fields in a formula, in their order. */
export function fieldsOf(f: Formula): string[] {
  if (f.kind === "field") return [f.name];
  const parts = f.kind === "negative" ? [f.of] : f.kind === "operation" ? [f.a, f.b] : f.kind === "call" ? f.of : [];
  return [...new Set(parts.flatMap(fieldsOf))];
}

/** Time in s before and after a value that it depends on. */
export function reach(f: Formula): number {
  const parts = f.kind === "negative" ? [f.of] : f.kind === "operation" ? [f.a, f.b] : f.kind === "call" ? f.of : [],
    inner = Math.max(0, ...parts.map(reach)),
    own = f.kind === "call" && (f.name === "mean" || f.name === "shift") ? f.of[1] : undefined;
  return inner + (own ? Math.abs(constant(own) ?? 0) : 0);
}

function constant(f: Formula): number | null {
  if (f.kind === "number") return f.value;
  const of = f.kind === "negative" ? constant(f.of) : null;
  return of === null ? null : -of;
}

// -- evaluation ----------------------------------------------------------------------------------------------------

type Apply = (args: Quantity[], time: number[]) => Quantity;

function map(f: (...v: number[]) => number, ...args: Quantity[]): number | number[] {
  const long = args.find((a) => Array.isArray(a.value));
  const at = (a: Quantity, k: number): number => (Array.isArray(a.value) ? a.value[k]! : a.value);
  if (!long) return f(...args.map((a) => at(a, 0)));
  return (long.value as number[]).map((_, k) => f(...args.map((a) => at(a, k))));
}

function list(a: Quantity, time: number[]): number[] {
  const { value } = a;
  return Array.isArray(value) ? value : time.map(() => value);
}

function same(what: string, a: Quantity, b: Quantity): Unit {
  const unit = common(a.unit, b.unit);
  if (unit === undefined) throw new FormulaError(`cannot ${what} ${unitName(a.unit)} and ${unitName(b.unit)}`);
  return unit;
}

const unitName = (unit: Unit): string => unitText(unit) || "a number";
const isDegree = (unit: Unit): boolean => unit !== null && common(unit, DEGREE) !== undefined;

/** Factor from an angle to rad. */
function toRad(name: string, { unit }: Quantity): number {
  if (isDegree(unit)) return Math.PI / 180;
  if (common(unit, ONE) === undefined && common(unit, RAD) === undefined)
    throw new FormulaError(`'${name}' needs an angle, not ${unitName(unit)}`);
  return 1;
}

function plain(name: string, a: Quantity): void {
  if (common(a.unit, ONE) === undefined)
    throw new FormulaError(`'${name}' needs a plain number, not ${unitName(a.unit)}`);
}

function seconds(name: string, a: Quantity): number {
  if (typeof a.value !== "number") throw new FormulaError(`the second value of '${name}' must be a number of seconds`);
  return a.value;
}

const trigonometry = (name: string, f: (v: number) => number): [string, number, Apply] => [
  name,
  1,
  ([a]) => {
    const factor = toRad(name, a!);
    return { value: map((v) => f(v * factor), a!), unit: ONE };
  },
];
const number = (name: string, f: (v: number) => number, unit: Unit): [string, number, Apply] => [
  name,
  1,
  ([a]) => {
    plain(name, a!);
    return { value: map(f, a!), unit };
  },
];
const keeps = (name: string, f: (v: number) => number): [string, number, Apply] => [
  name,
  1,
  ([a]) => ({ value: map(f, a!), unit: a!.unit }),
];
const pair = (name: string, f: (a: number, b: number) => number, result?: Unit): [string, number, Apply] => [
  name,
  2,
  ([a, b]) => {
    const unit = same(`use '${name}' with`, a!, b!);
    return { value: map(f, a!, b!), unit: result ?? unit };
  },
];
const angle = (name: string, from: Unit, to: Unit, factor: number): [string, number, Apply] => [
  name,
  1,
  ([a]) => {
    if (common(a!.unit, from) === undefined && common(a!.unit, ONE) === undefined)
      throw new FormulaError(`'${name}' converts ${unitText(from)}, not ${unitName(a!.unit)}`);
    return { value: map((v) => v * factor, a!), unit: to };
  },
];

const FUNCTIONS: [name: string, values: number, apply: Apply][] = [
  trigonometry("sin", Math.sin),
  trigonometry("cos", Math.cos),
  trigonometry("tan", Math.tan),
  number("asin", Math.asin, RAD),
  number("acos", Math.acos, RAD),
  number("atan", Math.atan, RAD),
  number("exp", Math.exp, ONE),
  number("log", Math.log, ONE),
  number("log10", Math.log10, ONE),
  pair("atan2", Math.atan2, RAD),
  pair("hypot", Math.hypot),
  pair("min", Math.min),
  pair("max", Math.max),
  angle("deg", RAD, DEGREE, 180 / Math.PI),
  angle("rad", DEGREE, RAD, Math.PI / 180),
  keeps("abs", Math.abs),
  keeps("wrap", wrap),
  ["sqrt", 1, ([a]) => ({ value: map(Math.sqrt, a!), unit: a!.unit === null ? null : times(ONE, a!.unit, 0.5) })],
  ["unwrap", 1, ([a], time) => ({ value: unwrap(list(a!, time)), unit: a!.unit })],
  [
    "derivative",
    1,
    ([a], time) => ({
      value: derivative(time, list(a!, time), isDegree(a!.unit)),
      unit: times(a!.unit, parseUnit("s"), -1),
    }),
  ],
  ["integral", 1, ([a], time) => ({ value: integral(time, list(a!, time)), unit: times(a!.unit, parseUnit("s")) })],
  [
    "mean",
    2,
    ([a, window], time) => ({ value: movingMean(time, list(a!, time), seconds("mean", window!)), unit: a!.unit }),
  ],
  [
    "shift",
    2,
    ([a, by], time) => {
      const later = time.map((t) => t - seconds("shift", by!));
      return { value: resample({ time, value: list(a!, time) }, later, isDegree(a!.unit)), unit: a!.unit };
    },
  ],
];
const COUNTS = new Map(FUNCTIONS.map(([name, values]) => [name, values]));
const APPLY = new Map(FUNCTIONS.map(([name, , apply]) => [name, apply]));

const SIGNS: Record<string, (a: number, b: number) => number> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "^": (a, b) => a ** b,
};

function operate(sign: string, a: Quantity, b: Quantity): Quantity {
  const value = map(SIGNS[sign]!, a, b);
  if (sign === "+" || sign === "-") return { value, unit: same(sign === "+" ? "add" : "subtract", a, b) };
  if (sign === "*") return { value, unit: times(a.unit, b.unit) };
  if (sign === "/") return { value, unit: times(a.unit, b.unit, -1) };
  plain("^", b);
  if (typeof b.value === "number") return { value, unit: a.unit === null ? null : times(ONE, a.unit, b.value) };
  plain("^ with a varying exponent", a);
  return { value, unit: ONE };
}

/** Evaluate a formula at times, with the values of its fields at these times; throws FormulaError. */
export function evaluate(f: Formula, time: number[], field: (name: string) => Quantity): Quantity {
  switch (f.kind) {
    case "number":
      return { value: f.value, unit: null };
    case "field":
      return field(f.name);
    case "negative": {
      const of = evaluate(f.of, time, field);
      return { value: map((v) => -v, of), unit: of.unit };
    }
    case "operation":
      return operate(f.sign, evaluate(f.a, time, field), evaluate(f.b, time, field));
    case "call":
      if (f.name === "t") return { value: time, unit: parseUnit("s") };
      return APPLY.get(f.name)!(
        f.of.map((part) => evaluate(part, time, field)),
        time,
      );
  }
}
