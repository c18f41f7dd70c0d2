// Values are SI everywhere; this file defines the displayed units.

const DEG = 180 / Math.PI;

export interface DisplayUnit {
  unit: string;
  factor: number;
  digits: number;
}
const SHOWN: Record<string, DisplayUnit> = {
  rad: { unit: "°", factor: DEG, digits: 2 },
  "rad/s": { unit: "°/s", factor: DEG, digits: 2 },
  "1/s": { unit: "rev/s", factor: 1, digits: 2 },
  N: { unit: "N", factor: 1, digits: 2 },
  kg: { unit: "kg", factor: 1, digits: 3 },
  C: { unit: "°C", factor: 1, digits: 3 },
  m: { unit: "m", factor: 1, digits: 2 },
  "m/s": { unit: "m/s", factor: 1, digits: 3 },
  "m/s2": { unit: "m/s²", factor: 1, digits: 3 },
  dbar: { unit: "dbar", factor: 1, digits: 3 },
  V: { unit: "V", factor: 1, digits: 2 },
  A: { unit: "A", factor: 1, digits: 2 },
  "1/min": { unit: "rev/min", factor: 1, digits: 1 },
};

/** Displayed unit and factor of a unit. */
export function displayUnit(unit: string): DisplayUnit {
  return SHOWN[unit] ?? { unit, factor: 1, digits: 4 };
}

/** Displayed unit of an actuator: shares are shown in percent. */
export function actuatorDisplayUnit(unit: string): DisplayUnit {
  return unit ? displayUnit(unit) : { unit: "%", factor: 100, digits: 0 };
}

/**
 * Format a value in its displayed unit; a missing value gives a dash. Latitudes and longitudes need more digits than
 * other angles.
 */
export function formatValue(value: number | null | undefined, s: DisplayUnit, field = ""): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const v = value * s.factor,
    fine = field === "latitude" || field === "longitude";
  if (Math.abs(v) >= 1e7) return v.toExponential(1);
  return v.toFixed(fine ? 7 : Math.abs(v) >= 1000 ? 1 : s.unit === "" && Number.isInteger(v) ? 0 : s.digits);
}

const NOTHING = 1e-9; // smaller values are shown as 0

/** Format axis ticks with the digits that their step needs: 2.5 must not become 3. */
export function tickTexts(splits: (number | null)[]): string[] {
  const there = splits.filter((v): v is number => v !== null),
    step = Math.abs((there[1] ?? 1) - (there[0] ?? 0));
  let digits = 0;
  while (
    digits < 8 &&
    step > 0 &&
    Math.abs(step * 10 ** digits - Math.round(step * 10 ** digits)) > 1e-6 * step * 10 ** digits
  )
    digits++;
  return splits.map((v) =>
    v === null
      ? ""
      : Math.abs(v) < Math.max(NOTHING, step * 1e-6)
        ? "0"
        : Math.abs(v) >= 1e5
          ? v.toExponential(1)
          : v.toFixed(digits),
  );
}
