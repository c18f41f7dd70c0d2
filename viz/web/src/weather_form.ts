// Weather form in an operator's terms: significant wave height and peak period, and directions from which wind and waves
// come; the current sets to a direction, and its vertical component is positive down. It shows the present values; an
// unchanged field leaves its value unchanged.

import type { SendCommand } from "./commander_forms";
import { formatHeading } from "./coordinate_frames";
import { formatNumber, h, setText } from "./dom";
import type { Weather } from "./page_protocol";
import type { SceneStore } from "./scene_store";

const DEG = 180 / Math.PI;

/** Operator's values; directions in degrees. */
interface Values {
  currentSpeed: number;
  currentTo: number;
  currentDown: number;
  windSpeed: number;
  windFrom: number;
  height: number;
  period: number;
  wavesFrom: number;
}
interface Field {
  key: keyof Values;
  name: string; // for screen readers
  group: string;
  label: string;
  unit: string;
  title: string;
}
const FIELDS: Field[] = (
  [
    ["currentSpeed", "Current speed", "Current", "speed", "m/s", "Speed of the mean current"],
    ["currentTo", "Current to", "", "TO", "°", "Direction towards which the current flows"],
    ["currentDown", "Current down", "", "down", "m/s", "Vertical component of the mean current; negative = upwards"],
    ["windSpeed", "Wind speed", "Wind", "speed", "m/s", "Mean wind speed 10 m above the water"],
    ["windFrom", "Wind from", "", "FROM", "°", "Direction from which the wind blows"],
    ["height", "Wave height Hs", "Waves", "Hs", "m", "Significant wave height"],
    ["period", "Peak period Tp", "", "Tp", "s", "Peak period of the waves"],
    ["wavesFrom", "Waves from", "", "FROM", "°", "Direction from which the waves come"],
  ] as const
).map(([key, name, group, label, unit, title]) => ({ key, name, group, label, unit, title }));

const degrees = (rad: number): number => (((rad * DEG) % 360) + 360) % 360;

/** The present weather in an operator's terms. */
export function operatorWeather(w: Weather): Values {
  const [north, east] = [w.current_W[0] ?? NaN, w.current_W[1] ?? NaN],
    at = (v: number | null): number => v ?? NaN;
  return {
    currentSpeed: Math.hypot(north, east),
    currentTo: degrees(Math.atan2(east, north)),
    currentDown: at(w.current_W[2] ?? null),
    windSpeed: at(w.wind_speed),
    windFrom: degrees(at(w.wind_direction)),
    height: at(w.wave_height),
    period: at(w.wave_peak) > 0 ? (2 * Math.PI) / at(w.wave_peak) : NaN,
    wavesFrom: degrees(at(w.wave_direction) + Math.PI),
  };
}

/** Values of the command `weather` for those fields that were filled in; a current needs its other part as well. */
export function weatherCommand(given: Partial<Values>, now: Values | null): Record<string, number> {
  const command: Record<string, number> = {};
  const set = (key: string, value: number | undefined, convert: (v: number) => number = (v) => v): void => {
    if (value !== undefined) command[key] = convert(value);
  };
  if (given.currentSpeed !== undefined || given.currentTo !== undefined) {
    const speed = given.currentSpeed ?? now?.currentSpeed ?? 0,
      to = (given.currentTo ?? now?.currentTo ?? 0) / DEG;
    command["current_north"] = speed * Math.cos(to);
    command["current_east"] = speed * Math.sin(to);
  }
  set("current_down", given.currentDown);
  set("wind_speed", given.windSpeed);
  set("wind_direction", given.windFrom, (v) => v / DEG);
  set("wave_height", given.height);
  set("wave_peak", given.period, (v) => (2 * Math.PI) / v);
  set("wave_direction", given.wavesFrom, (v) => ((v + 180) % 360) / DEG);
  return command;
}

export class WeatherForm {
  readonly element: HTMLElement;
  private readonly inputs = new Map<keyof Values, HTMLInputElement>();
  private readonly present = h("div", { class: "soft num", id: "weather-now" });

  constructor(
    private readonly store: SceneStore,
    private readonly send: SendCommand,
  ) {
    const fields = FIELDS.map((f) => {
      const input = h("input", {
        type: "number",
        step: "any",
        title: f.title,
        "aria-label": f.name,
      });
      if (f.key === "height" || f.key === "period" || f.key.endsWith("Speed")) input.min = "0";
      this.inputs.set(f.key, input);
      return h("label", { class: "row" }, f.group ? h("b", {}, f.group) : null, `${f.label}, ${f.unit}`, input);
    });
    const change = h("button", { id: "weather", onclick: () => this.change() }, "change");
    this.element = h(
      "div",
      {},
      h("h3", {}, "Weather"),
      this.present,
      h("div", { class: "row order" }, ...fields, change),
    );
  }

  private now(): Values | null {
    const w = this.store.weather?.weather;
    return w ? operatorWeather(w) : null;
  }

  private change(): void {
    const given: Partial<Values> = {};
    for (const [key, input] of this.inputs)
      if (input.value !== "" && input.validity.valid && Number.isFinite(input.valueAsNumber))
        given[key] = input.valueAsNumber;
    const command = weatherCommand(given, this.now());
    if (!Object.keys(command).length || given.period === 0) return;
    this.send("weather", null, command);
    for (const input of this.inputs.values()) input.value = ""; // the present values follow
  }

  update(): void {
    const now = this.now(),
      text = (key: keyof Values, digits: number): string => formatNumber(now?.[key], digits),
      direction = (key: keyof Values): string => formatHeading(now?.[key] ?? null);
    const wind = now !== null && now.windSpeed > 0,
      current = now !== null && now.currentSpeed > 0.005,
      vertical = now !== null && Math.abs(now.currentDown) > 0.005,
      waves = now !== null && now.height > 0;
    setText(
      this.present,
      !now
        ? "The values in effect are unknown"
        : [
            `Now: current ${text("currentSpeed", 2)} m/s${current ? ` to ${direction("currentTo")}°` : ""}${
              vertical
                ? `, ${formatNumber(Math.abs(now.currentDown), 2)} m/s ${now.currentDown > 0 ? "down" : "up"}`
                : ""
            }`,
            `wind ${text("windSpeed", 1)} m/s${wind ? ` from ${direction("windFrom")}°` : ""}`,
            `waves Hs ${text("height", 2)} m${waves ? `, Tp ${text("period", 1)} s from ${direction("wavesFrom")}°` : ""}`,
          ].join(" · "),
    );
    for (const { key } of FIELDS) {
      const input = this.inputs.get(key)!,
        value =
          key.endsWith("From") || key.endsWith("To") ? direction(key) : text(key, key.startsWith("current") ? 2 : 1);
      if (input.placeholder !== value) input.placeholder = value;
    }
  }
}
