// All values of a body that a chart can show: key, name and unit.

import { actuatorLabel } from "./actuators";
import { forceLabel } from "./force_charts";
import type { SeriesLabel } from "./body_charts";
import { instrumentLabel as sensorLabel } from "./instruments";
import type { BodyEquipment } from "./page_protocol";

const MOTION: Record<string, string> = {
  depth: "m",
  speed: "m/s",
  heading: "°",
  pitch: "°",
  roll: "°",
  north: "m",
  east: "m",
};
const MOST_NUMBERS = 16; // per field

/** Describe the chart of a key; null if this body does not have the value. */
export function labelOf(kit: BodyEquipment | null, key: string): SeriesLabel | null {
  const motion = key.startsWith("motion.") ? MOTION[key.slice(7)] : undefined;
  if (motion !== undefined)
    return {
      title: key.slice(7),
      unit: motion,
      series: [key],
      names: [key.slice(7)],
      factors: [],
      down: key === "motion.depth",
    };
  if (key === "nav.error")
    return {
      title: "navigation error",
      unit: "m",
      series: ["nav.error", "nav.sigma"],
      names: ["error", "stated 1σ"],
      factors: [],
    };
  if (key === "nav.vertical")
    return { title: "estimated minus true depth", unit: "m", series: [key], names: ["depth error"], factors: [] };
  return actuatorLabel(kit, key) ?? forceLabel(key) ?? sensorLabel(kit, key);
}

/** One line of a chart. */
export interface ChartField {
  group: string;
  title: string;
  key: string;
  unit: string;
  factor: number;
  down: boolean;
}

/** All chart lines of a body. ``whole``: a log has all of them; the viewer of a running server keeps only some. */
export function chartFields(kit: BodyEquipment | null, whole: boolean): ChartField[] {
  const keys: [group: string, key: string][] = [
    ...Object.keys(MOTION).map((k) => ["motion", `motion.${k}`] as [string, string]),
    ["navigation", "nav.error"],
    ["navigation", "nav.vertical"],
  ];
  if (whole) {
    for (const a of kit?.actuators ?? []) keys.push(["actuators", `actuator.${a.name}`]);
    for (const s of kit?.sensors ?? [])
      for (const f of s.fields) if (f.count <= MOST_NUMBERS) keys.push([s.name, `sensor.${s.name}.${f.name}`]);
    for (const part of ["total", "drag", "actuators", "environment", "contact"]) keys.push(["forces", `force.${part}`]);
  }
  return keys.flatMap(([group, key]) => {
    const label = labelOf(kit, key);
    return (label?.series ?? []).map((series, k) => ({
      group,
      title: label!.series.length > 1 ? `${label!.title} ${label!.names[k] ?? ""}` : label!.title,
      key: series,
      unit: label!.unit,
      factor: label!.factors[k] ?? 1,
      down: label!.down === true,
    }));
  });
}
