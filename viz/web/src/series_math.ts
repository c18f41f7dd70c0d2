// Computations on series: resampling, derivative, moving mean, statistics. A missing value is NaN.

export interface Series {
  time: number[];
  value: number[];
}

/** Index of the first element that is greater than x, in an ascending list. */
export function upperBound(list: readonly number[], x: number): number {
  let a = 0,
    b = list.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (list[m]! <= x) a = m + 1;
    else b = m;
  }
  return a;
}

const halfTurn = (angle: number): number => angle - 360 * Math.round(angle / 360);

/** Linear interpolation at other times; NaN outside and in gaps. Angles in degrees go the shorter way round. */
export function resample({ time, value }: Series, times: readonly number[], degrees = false): number[] {
  return times.map((t) => {
    const k = upperBound(time, t) - 1;
    if (k < 0) return NaN;
    const before = value[k]!;
    if (time[k] === t) return before;
    if (k + 1 >= time.length) return NaN;
    const step = value[k + 1]! - before;
    return before + ((t - time[k]!) / (time[k + 1]! - time[k]!)) * (degrees ? halfTurn(step) : step);
  });
}

/** Central difference per second; at the ends and beside gaps, to the one neighbour. */
export function derivative(time: readonly number[], value: readonly number[], degrees = false): number[] {
  const values = degrees ? unwrap(value) : value;
  return values.map((v, k) => {
    if (!Number.isFinite(v)) return NaN;
    const a = Number.isFinite(values[k - 1]) ? k - 1 : k,
      b = Number.isFinite(values[k + 1]) ? k + 1 : k;
    return a === b ? NaN : (values[b]! - values[a]!) / (time[b]! - time[a]!);
  });
}

/** Integral over time from the first value (trapezoids); a gap adds nothing. */
export function integral(time: readonly number[], value: readonly number[]): number[] {
  let sum = 0;
  return value.map((v, k) => {
    const piece = k ? 0.5 * (v + value[k - 1]!) * (time[k]! - time[k - 1]!) : 0;
    if (Number.isFinite(piece)) sum += piece;
    return Number.isFinite(v) ? sum : NaN;
  });
}

/** Mean of the values within half a window before and after each time. */
export function movingMean(time: readonly number[], value: readonly number[], window: number): number[] {
  let a = 0,
    b = 0,
    sum = 0,
    n = 0;
  return time.map((t, k) => {
    for (; b < time.length && time[b]! <= t + 0.5 * window + 1e-9; b++)
      if (Number.isFinite(value[b])) {
        sum += value[b]!;
        n++;
      }
    for (; time[a]! < t - 0.5 * window - 1e-9; a++)
      if (Number.isFinite(value[a])) {
        sum -= value[a]!;
        n--;
      }
    return n && Number.isFinite(value[k]) ? sum / n : NaN;
  });
}

/** Angles in degrees without jumps by a turn. */
export function unwrap(value: readonly number[]): number[] {
  let last = NaN;
  return value.map((v) => {
    if (Number.isFinite(v)) last = Number.isFinite(last) ? last + halfTurn(v - last) : v;
    return Number.isFinite(v) ? last : NaN;
  });
}

/** Angle in degrees from -180 to 180. */
export const wrap = halfTurn;

export interface Statistics {
  n: number;
  min: number;
  max: number;
  mean: number;
  std: number;
  rms: number;
}

/** Statistics of the values at times from `since` to `until`; null if there is none. */
export function statistics({ time, value }: Series, since = -Infinity, until = Infinity): Statistics | null {
  const found = value.filter((v, k) => Number.isFinite(v) && time[k]! >= since && time[k]! <= until),
    n = found.length;
  if (!n) return null;
  const mean = found.reduce((sum, v) => sum + v, 0) / n,
    variance = found.reduce((sum, v) => sum + (v - mean) ** 2, 0) / n;
  return {
    n,
    min: found.reduce((a, b) => Math.min(a, b)),
    max: found.reduce((a, b) => Math.max(a, b)),
    mean,
    std: Math.sqrt(variance),
    rms: Math.sqrt(found.reduce((sum, v) => sum + v * v, 0) / n),
  };
}
