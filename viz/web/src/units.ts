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
  return v.toFixed(fine ? 7 : s.unit === "" && Number.isInteger(v) ? 0 : Math.abs(v) >= 1000 ? 1 : s.digits);
}

const LEAST_SPANS: Record<string, number> = {
  m: 0.5,
  "m/s": 0.1,
  "m/s²": 0.1,
  "°": 1,
  "°/s": 1,
  "rev/s": 0.2,
  "rev/min": 5,
  "%": 2,
  N: 1,
  "N, N m": 1,
  kg: 0.1,
  "°C": 0.1,
  dbar: 0.5,
  V: 0.1,
  A: 0.1,
};

/** Range of an axis around values in a displayed unit: never so small that noise fills the chart. */
export function axisRange(low: number | null, high: number | null, unit: string): [number, number] {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  const span = Math.max(high - low, LEAST_SPANS[unit] ?? 1e-6),
    room = 0.5 * (span - (high - low)) + 0.08 * span;
  return [low - room, high + room];
}

/** Width in px of a vertical axis whose labels are 10 px high: ticks, gap, and the longest label. */
export function axisWidth(labels: (string | null)[]): number {
  return 18 + 6.5 * Math.max(2, ...labels.map((text) => text?.length ?? 0));
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
