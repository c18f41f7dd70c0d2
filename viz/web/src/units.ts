// Values are SI everywhere; these are the units in which people read them.

const DEG = 180 / Math.PI;

export interface Shown { unit: string; factor: number; digits: number }
const SHOWN: Record<string, Shown> = {
  rad: { unit: "°", factor: DEG, digits: 2 }, "rad/s": { unit: "°/s", factor: DEG, digits: 2 }, "1/s": { unit: "rev/s", factor: 1, digits: 2 },
  N: { unit: "N", factor: 1, digits: 2 }, kg: { unit: "kg", factor: 1, digits: 3 }, C: { unit: "°C", factor: 1, digits: 3 }, m: { unit: "m", factor: 1, digits: 2 }, "m/s": { unit: "m/s", factor: 1, digits: 3 },
  "m/s2": { unit: "m/s²", factor: 1, digits: 3 }, dbar: { unit: "dbar", factor: 1, digits: 3 }, V: { unit: "V", factor: 1, digits: 2 }, A: { unit: "A", factor: 1, digits: 2 }, "1/min": { unit: "rev/min", factor: 1, digits: 1 },
};

/** How a value of a unit is shown. */
export function shown(unit: string): Shown { return SHOWN[unit] ?? { unit, factor: 1, digits: 4 }; }

/** How an actuator's values are shown: a share is told in percent. */
export function shownActuator(unit: string): Shown { return unit ? shown(unit) : { unit: "%", factor: 100, digits: 0 }; }

/** A value in its shown unit; a dash for nothing. Latitudes and longitudes need more digits than other angles. */
export function written(value: number | null | undefined, s: Shown, field = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const v = value * s.factor, fine = field === "latitude" || field === "longitude";
  if (Math.abs(v) >= 1e7) return v.toExponential(1);
  return v.toFixed(fine ? 7 : Math.abs(v) >= 1000 ? 1 : s.unit === "" && Number.isInteger(v) ? 0 : s.digits);
}
