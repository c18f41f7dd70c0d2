// Instruments of the selected body: name, values, units and age of each.

import { cssVariable, setChildren, h, toggleClass, setText } from "./dom";
import type { BodyCharts, SeriesLabel } from "./body_charts";
import { displayUnit, actuatorDisplayUnit, formatValue, type DisplayUnit } from "./units";
import { context2d, deviceRatio } from "./canvas";
import type { BodyEquipment, BodyPanel, FieldInfo, FieldValue, InstrumentInfo, SensorValue } from "./page_protocol";

const LATE = 3,
  GRACE_S = 0.5; // periods, plus seconds, after which a value counts as stale
const IN_ROW = 4; // maximum number of values of a field shown side by side
const MANY = 16; // number of values from which a field is drawn as a profile

/** Series key of one number of an instrument. */
export function sensorSeriesKey(instrument: string, field: string, k: number): string {
  return `sensor.${instrument}.${field}.${k}`;
}

/** Describe the chart of a field. */
export function instrumentLabel(kit: BodyEquipment | null, key: string): SeriesLabel | null {
  for (const s of kit?.sensors ?? [])
    for (const f of s.fields)
      if (key === `sensor.${s.name}.${f.name}`) {
        const numbers = [...Array(f.count).keys()];
        return {
          title: `${s.name} ${f.name}`,
          unit: unitOf(f, 0),
          series: numbers.map((k) => sensorSeriesKey(s.name, f.name, k)),
          names: numbers.map((k) => f.labels?.[k] ?? String(k)),
          factors: numbers.map((k) => scaleOf(f, k).factor),
          down: f.name === "depth",
        };
      }
  return null;
}

function scaleOf(f: FieldInfo, k: number): DisplayUnit {
  return f.units?.[k] !== undefined ? actuatorDisplayUnit(f.units[k]!) : displayUnit(f.unit);
}
function unitOf(f: FieldInfo, k: number): string {
  return scaleOf(f, k).unit;
}
function list(value: FieldValue | undefined): (number | null)[] {
  return Array.isArray(value) ? value : [value ?? null];
}

interface Part {
  look: InstrumentInfo;
  state: HTMLElement;
  fault: HTMLElement;
  cells: Map<string, HTMLElement[]>;
  profiles: Map<string, HTMLCanvasElement>;
  box: HTMLDetailsElement;
  place: HTMLElement;
}

export class Instruments {
  readonly element = h("div", { class: "section", id: "instruments" });
  private readonly open = new Set<string>();
  private parts: Part[] = [];
  private lost = false;

  constructor(
    private readonly charts: BodyCharts,
    private readonly fault: (part: string, kinds: string[], fields: FieldInfo[], at: HTMLElement) => HTMLElement | null,
    private readonly picture: (name: string) => void,
  ) {}

  /** Switch to another body with other instruments. */
  fit(kit: BodyEquipment | null): void {
    this.element.classList.toggle("hidden", !kit);
    this.parts = (kit?.sensors ?? []).map((s) => this.part(s));
    const none = kit && !kit.sensors.length ? h("div", { class: "soft" }, "no instruments on board") : null;
    setChildren(this.element, h("h3", {}, "Instruments"), ...this.parts.flatMap((p) => [p.box, p.place]), none);
  }

  private part(s: InstrumentInfo): Part {
    const state = h("span", {
        class: "num",
        title: s.period ? `one value every ${+s.period.toFixed(4)} s` : undefined,
      }),
      fault = h("span", { class: "warm" }),
      part: Partial<Part> = { look: s, state, fault, cells: new Map(), profiles: new Map() };
    const rows = s.fields.flatMap((f) => this.rows(s, f, part as Part));
    const numbers = s.fields.reduce((n, f) => n + f.count, 0),
      body = h("table", {}, h("tbody", {}, ...rows)),
      place = h("div", {});
    const picture = ["sonar", "camera", "lidar", "hydrophone"].includes(s.type)
      ? h(
          "button",
          {
            class: "picture",
            title: "Show the image in a window",
            onclick: (e: MouseEvent) => {
              e.preventDefault();
              this.picture(s.name);
            },
          },
          "picture",
        )
      : null;
    const button = this.fault(s.name, s.faults, s.fields, place);
    const box = h(
      "details",
      {
        class: "sensor",
        open: this.open.has(s.name) || numbers <= 4,
        ontoggle: () => (box.open ? this.open.add(s.name) : this.open.delete(s.name)),
      },
      h(
        "summary",
        { title: s.doc },
        h("b", {}, s.name),
        h("span", { class: "soft grow" }, s.type === s.name ? "" : s.type),
        fault,
        state,
        picture,
        button,
      ),
      body,
    );
    box.dataset["name"] = s.name;
    return { ...(part as Part), box, place };
  }

  private rows(s: InstrumentInfo, f: FieldInfo, part: Part): HTMLElement[] {
    const cells: HTMLElement[] = [],
      toggle = (): void => this.charts.toggle(`sensor.${s.name}.${f.name}`),
      attributes = { title: `${f.doc}\nClick to show or hide the chart`, onclick: toggle };
    part.cells.set(f.name, cells);
    const cell = (): HTMLElement => {
      const td = h("td", { class: "n" });
      cells.push(td);
      return td;
    };
    if (f.count > MANY) {
      const canvas = h("canvas", { class: "profile" });
      part.profiles.set(f.name, canvas);
      const summary = cell();
      (summary as HTMLTableCellElement).colSpan = IN_ROW;
      return [
        h("tr", { title: f.doc }, h("td", {}, f.name), summary, h("td", { class: "soft" }, unitOf(f, 0))),
        h("tr", {}, h("td", { colSpan: IN_ROW + 2 }, canvas)),
      ];
    }
    if (f.labels)
      return Array.from({ length: f.count }, (_, k) =>
        h(
          "tr",
          attributes,
          h("td", {}, f.labels![k] ?? `${f.name} ${k}`),
          h("td", { colSpan: IN_ROW - 1 }),
          cell(),
          h("td", { class: "soft" }, unitOf(f, k)),
        ),
      );
    const rows: HTMLElement[] = [];
    for (let k = 0; k < f.count; k += IN_ROW) {
      const n = Math.min(IN_ROW, f.count - k);
      rows.push(
        h(
          "tr",
          attributes,
          h("td", {}, k ? "" : f.name),
          n < IN_ROW ? h("td", { colSpan: IN_ROW - n }) : null,
          ...Array.from({ length: n }, cell),
          h("td", { class: "soft" }, k ? "" : unitOf(f, 0)),
        ),
      );
    }
    return rows;
  }

  update(panel: BodyPanel): void {
    for (const p of this.parts) {
      const v = panel.sensors?.[p.look.name];
      this.freshness(p, v);
      if (!v) continue;
      for (const f of p.look.fields) {
        const values = list(v.fields[f.name]),
          cells = p.cells.get(f.name)!,
          profile = p.profiles.get(f.name);
        if (v.age !== null)
          for (let k = 0; k < Math.min(values.length, MANY); k++)
            this.charts.remember(
              panel.time - v.age,
              sensorSeriesKey(p.look.name, f.name, k),
              v.valid && values[k] !== null && values[k] !== undefined ? values[k]! * scaleOf(f, k).factor : null,
            );
        if (profile) {
          const found = values.filter((x): x is number => x !== null),
            unit = displayUnit(f.unit);
          setText(
            cells[0]!,
            found.length
              ? `${formatValue(Math.min(...found), unit)} to ${formatValue(Math.max(...found), unit)}, ` +
                  `${found.length} of ${values.length}`
              : `none of ${values.length}`,
          );
          if (p.box.open) drawProfile(profile, values);
        } else
          cells.forEach((cell, k) => {
            setText(cell, v.age === null ? "–" : formatValue(values[k], scaleOf(f, k), f.name));
          });
      }
    }
  }

  /** Set whether data arrive: if not, every value counts as stale. */
  lose(on: boolean): void {
    this.lost = on;
    for (const p of this.parts) this.freshness(p, undefined);
  }

  private freshness(p: Part, v: SensorValue | undefined): void {
    const period = p.look.period ?? 1,
      old = v && v.age !== null && v.age > LATE * period + GRACE_S;
    const [text, kind] = this.lost
      ? ["○ no data", "soft"]
      : !v || v.age === null
        ? ["no value yet", "soft"]
        : old
          ? [`● ${v.age!.toFixed(1)} s old`, "bad"]
          : v.valid
            ? [`● ${v.age!.toFixed(1)} s`, "good"]
            : ["● invalid", "warm"];
    setText(p.state, text);
    p.state.className = `num ${kind}`;
    setText(p.fault, v?.fault ? v.fault : "");
    toggleClass(p.box, "stale", kind !== "good");
  }
}

/** Draw many values side by side, the largest at the bottom: a sea bed profile as seen by a fan of beams. */
function drawProfile(canvas: HTMLCanvasElement, values: (number | null)[]): void {
  const w = canvas.clientWidth,
    hh = canvas.clientHeight,
    ratio = deviceRatio();
  if (!w || !hh) return;
  canvas.width = w * ratio;
  canvas.height = hh * ratio;
  const c = context2d(canvas),
    found = values.filter((v): v is number => v !== null),
    most = Math.max(...found, 1e-9);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  c.fillStyle = cssVariable("--accent");
  values.forEach((v, k) => {
    if (v !== null) c.fillRect((k / values.length) * w, (v / most) * (hh - 3), Math.max(w / values.length, 1), 2);
  });
}
