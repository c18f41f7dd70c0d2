// Actuators of the selected body: name, unit, value and range of each.

import { setChildren, h, setText } from "./dom";
import type { BodyCharts, SeriesLabel } from "./body_charts";
import { actuatorDisplayUnit, formatValue } from "./units";
import type { ActuatorInfo, BodyEquipment, BodyPanel, FieldInfo } from "./page_protocol";

/** Describe the chart of an actuator: its state and its command. */
export function actuatorLabel(kit: BodyEquipment | null, key: string): SeriesLabel | null {
  const a = kit?.actuators.find((x) => key === `actuator.${x.name}`);
  return a
    ? {
        title: a.name,
        unit: actuatorDisplayUnit(a.unit).unit,
        series: [key, `${key}:command`],
        names: ["actual", "command"],
        factors: [actuatorDisplayUnit(a.unit).factor, actuatorDisplayUnit(a.unit).factor],
      }
    : null;
}

interface Row {
  look: ActuatorInfo;
  bar: HTMLElement;
  mark: HTMLElement;
  actual: HTMLElement;
  command: HTMLElement;
  fault: HTMLElement;
}

export class Actuators {
  readonly element = h("div", { class: "section", id: "actuators" });
  private rows: Row[] = [];

  constructor(
    private readonly charts: BodyCharts,
    private readonly fault: (part: string, kinds: string[], fields: FieldInfo[], at: HTMLElement) => HTMLElement | null,
  ) {}

  /** Switch to another body with other actuators. */
  fit(kit: BodyEquipment | null): void {
    this.element.classList.toggle("hidden", !kit?.actuators.length);
    const place = h("div", {}),
      trs: HTMLElement[] = [];
    this.rows = (kit?.actuators ?? []).map((look) => {
      const bar = h("div", {}),
        mark = h("i", {}),
        actual = h("td", { class: "n" }),
        command = h("td", { class: "n soft" }),
        fault = h("span", { class: "warm" }),
        s = actuatorDisplayUnit(look.unit);
      const limits = `${formatValue(look.minimum, s)} to ${formatValue(look.maximum, s)} ${s.unit}`;
      const tr = h(
        "tr",
        {
          title: `${look.kind}: ${limits}\nClick to show or hide the chart`,
          onclick: () => this.charts.toggle(`actuator.${look.name}`),
        },
        h("td", { class: "name" }, look.name, fault),
        h("td", {}, h("div", { class: "bar" }, bar, mark)),
        actual,
        command,
        h("td", { class: "soft" }, s.unit),
        h("td", {}, this.fault(look.name, look.faults, [], place)),
      );
      tr.dataset["name"] = look.name;
      trs.push(tr);
      return { look, bar, mark, actual, command, fault };
    });
    const head = h(
      "tr",
      {},
      h("th", {}, ""),
      h("th", {}, ""),
      h("th", { class: "n" }, "actual"),
      h("th", { class: "n" }, "command"),
      h("th", {}, ""),
      h("th", {}, ""),
    );
    setChildren(
      this.element,
      h("h3", {}, "Actuators"),
      place,
      h("table", {}, h("thead", {}, head), h("tbody", {}, ...trs)),
    );
  }

  update(panel: BodyPanel): void {
    this.rows.forEach(({ look, bar, mark, actual, command, fault }, k) => {
      const kind = panel.actuation?.faults?.[look.name];
      setText(fault, kind ? ` ${kind}` : "");
      const actualValue = panel.actuation?.actual[k] ?? null,
        commandValue = panel.actuation?.command[k] ?? null,
        s = actuatorDisplayUnit(look.unit);
      setText(actual, formatValue(actualValue, s));
      setText(command, formatValue(commandValue, s));
      // the bar extends from the neutral value (or from the range end nearest to it) to the current value
      const span = Math.max(look.maximum - look.minimum, 1e-9),
        share = (v: number): number => Math.max(0, Math.min(1, (v - look.minimum) / span));
      const zero = share(0),
        at = share(actualValue ?? 0);
      bar.style.left = `${100 * Math.min(zero, at)}%`;
      bar.style.width = `${100 * Math.abs(at - zero)}%`;
      mark.style.left = `${100 * share(commandValue ?? look.rest)}%`;
      this.charts.remember(panel.time, `actuator.${look.name}`, actualValue === null ? null : actualValue * s.factor);
      this.charts.remember(
        panel.time,
        `actuator.${look.name}:command`,
        commandValue === null ? null : commandValue * s.factor,
      );
    });
  }
}
