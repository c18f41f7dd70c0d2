// Details of one body: pose and motion, charts, actuators, instruments and connected clients.

import { Actuators } from "./actuators";
import { formatTime, bodyDot, setChildren, h, toggleClass, formatNumber, setText } from "./dom";
import { CrewList } from "./crew_list";
import { faultButton, type InjectFault } from "./fault_form";
import { labelOf } from "./chart_fields";
import { ForcePanel } from "./force_charts";
import { formatHeading, wrapDegrees } from "./coordinate_frames";
import { formatDegrees, geodetic } from "./geodesy";
import { BodyCharts, type SeriesLabel, type ChartContext } from "./body_charts";
import { Instruments } from "./instruments";
import type { SceneStore } from "./scene_store";
import type { BodyEquipment, BodyPanel, FieldInfo } from "./page_protocol";

const VECTORS: [name: string, unit: string, digits: number][] = [
  ["position", "m", 3],
  ["over ground", "m/s", 3],
  ["through water", "m/s", 3],
  ["rates", "°/s", 2],
  ["current at vehicle", "m/s", 3],
  ["wind at vehicle", "m/s", 3],
  ["estimated", "m", 2],
  ["std. dev.", "m", 2],
];

export interface BodyActions {
  onboard: (row: number) => void;
  follow: () => void;
  goTo: (row: number) => void;
  fail: (row: number) => InjectFault | null;
  seek: (time: number) => void;
  sonar: (row: number, name: string) => void;
  changed: () => void;
  commands: HTMLElement;
}
type Vector3 = [number | null, number | null, number | null];
type Vector = (number | null)[] | null | undefined;

export class BodyDetails {
  readonly element = h("div", { class: "scroll", id: "details" });
  readonly charts: BodyCharts;
  private readonly actuators: Actuators;
  private readonly instruments: Instruments;
  private readonly forces: ForcePanel;
  private row: number | null = null;
  private kit: BodyEquipment | null = null;
  private readonly head = h("div", { class: "section" });
  private readonly note = h("div", { class: "section warm hidden", id: "note" });
  private readonly motion = h("div", { class: "section" });
  private readonly navigation = h("div", { class: "section hidden", id: "navigation" });
  private readonly numbers = new Map<string, HTMLElement>(); // cells by name
  private readonly verticalLabel = h("span", {}, "depth"); // height for an aircraft
  private readonly vectors = new Map<string, { tr: HTMLElement; cells: HTMLElement[] }>();
  private readonly crew: CrewList;
  private readonly identity = h("div", { class: "section", id: "identity" });

  constructor(
    private readonly store: SceneStore,
    private readonly actions: BodyActions,
  ) {
    this.charts = new BodyCharts(
      (key) => this.label(key),
      () => Math.max(this.element.clientWidth - 26, 120),
      () => this.whose(),
    );
    const fault = (part: string, kinds: string[], fields: FieldInfo[], at: HTMLElement): HTMLElement | null =>
      faultButton(part, kinds, fields, at, this.kit ? this.actions.fail(this.kit.row) : null);
    this.actuators = new Actuators(this.charts, fault);
    this.instruments = new Instruments(this.charts, fault, (name) => {
      if (this.row !== null) this.actions.sonar(this.row, name);
    });
    this.crew = new CrewList(fault);
    this.forces = new ForcePanel(this.charts);
    this.build();
    this.clear();
  }

  private whose(): ChartContext {
    return {
      row: this.row,
      whole: this.store.hello?.kind === "replay",
      seek: this.actions.seek,
      changed: this.actions.changed,
    };
  }

  /** Create cells that persist: a pressed cell must still exist when the pointer is released. */
  private build(): void {
    const cell = (name: string, unit: string, key?: string): HTMLElement => {
      const b = h("b", {}, "–");
      this.numbers.set(name, b);
      return h(
        "div",
        {
          class: "cell",
          title: key ? "Click to show or hide the chart" : "",
          onclick: key ? () => this.charts.toggle(key) : undefined,
        },
        name === "depth" ? this.verticalLabel : h("span", {}, name),
        b,
        " ",
        h("i", {}, unit),
      );
    };
    const vectors = VECTORS.map(([name, unit]) => {
      const cells = [0, 1, 2].map(() => h("td", { class: "n" })),
        tr = h("tr", {}, h("td", { class: "soft" }, `${name}, ${unit}`), ...cells);
      this.vectors.set(name, { tr, cells });
      return tr;
    });
    const place = h("div", { class: "soft num", id: "place" });
    this.numbers.set("place", place);
    setChildren(
      this.motion,
      h(
        "div",
        { class: "cells" },
        cell("heading", "°", "motion.heading"),
        cell("depth", "m", "motion.depth"),
        cell("speed", "m/s", "motion.speed"),
        cell("roll", "°", "motion.roll"),
        cell("pitch", "°", "motion.pitch"),
        cell("time", ""),
      ),
      place,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", {}, ""),
            h("th", { class: "n" }, "N / x"),
            h("th", { class: "n" }, "E / y"),
            h("th", { class: "n" }, "D / z"),
          ),
        ),
        h("tbody", {}, ...vectors),
      ),
    );
    setChildren(
      this.navigation,
      h("h3", {}, "Navigation"),
      h(
        "div",
        { class: "cells" },
        cell("error", "m", "nav.error"),
        cell("stated 1σ", "m", "nav.error"),
        cell("error in σ", ""),
        cell("depth error", "m", "nav.vertical"),
      ),
    );
  }

  private label(key: string): SeriesLabel | null {
    return labelOf(this.kit, key);
  }

  clear(): void {
    this.row = null;
    if (this.kit) this.fit(null); // the next body does not have these parts
    this.charts.clear();
    this.element.replaceChildren(
      h(
        "div",
        { class: "empty" },
        "Select a body in the view or in the list to see its data, charts and onboard view.",
      ),
    );
  }

  /** Show the equipment of the selected body. */
  fit(kit: BodyEquipment | null): void {
    this.kit = kit;
    this.actuators.fit(kit);
    this.instruments.fit(kit);
    this.crew.clear();
    this.charts.recolour();
  }

  private begin(panel: BodyPanel): void {
    const kit = this.kit?.row === panel.row ? this.kit : null;
    this.clear();
    this.row = panel.row;
    this.fit(kit);
    const body = this.store.bodies.get(panel.row),
      model = this.store.scene?.models[body?.model ?? ""];
    const dot = bodyDot(panel.row);
    setChildren(
      this.head,
      h(
        "div",
        { class: "row" },
        dot,
        h("b", { class: "grow" }, this.store.name(panel.row)),
        h("span", { class: "soft" }, `${body?.model ?? ""}, ${body?.type ?? ""}`),
      ),
      h(
        "div",
        { class: "row" },
        h("button", { id: "go-onboard", onclick: () => this.actions.onboard(panel.row) }, "onboard view"),
        h("button", { onclick: () => this.actions.follow() }, "follow"),
        h("button", { onclick: () => this.actions.goTo(panel.row) }, "zoom to"),
      ),
      model?.title ? h("div", { class: "soft" }, model.title) : null,
    );
    this.element.replaceChildren(
      this.head,
      this.note,
      this.actions.commands,
      this.motion,
      this.navigation,
      this.charts.element,
      this.actuators.element,
      this.forces.element,
      this.instruments.element,
      this.crew.element,
      this.identity,
    );
    this.who(panel);
  }

  update(panel: BodyPanel): void {
    if (panel.row !== this.row) this.begin(panel);
    const m = panel.motion,
      [roll, pitch, heading] = m.euler as Vector3,
      depth = m.position[2] ?? null;
    const speed = m.velocity.every((v) => v !== null) ? Math.hypot(...(m.velocity as number[])) : null,
      course = heading === null ? null : wrapDegrees(heading);
    for (const [name, value] of Object.entries({ depth, speed, pitch, roll, heading: course }))
      this.charts.remember(panel.time, `motion.${name}`, value);
    const cell = (name: string, value: string): void => setText(this.numbers.get(name)!, value);
    cell("heading", formatHeading(course, 1));
    const flies = this.store.bodies.get(panel.row)?.type === "aircraft";
    setText(this.verticalLabel, flies ? "height" : "depth");
    cell("depth", formatNumber(flies && depth !== null ? -depth : depth, 2));
    cell("speed", formatNumber(speed, 2));
    cell("roll", formatNumber(roll, 1));
    cell("pitch", formatNumber(pitch, 1));
    cell("time", formatTime(panel.time));
    const origin = this.store.scene?.origin,
      [n, e, d] = m.position as Vector3,
      [lat, lon] =
        origin && n !== null && e !== null && d !== null && Math.abs(n) < 1e7 ? geodetic(origin, n, e, d) : [NaN, NaN];
    cell("place", Number.isFinite(lat) ? `${formatDegrees(lat, "NS")}  ${formatDegrees(lon, "EW")}` : "");
    const belief = this.store.beliefs.get(panel.row);
    const values: Record<string, Vector> = {
      position: m.position,
      "over ground": m.velocity,
      "through water": m.water,
      rates: m.rates,
      "current at vehicle": panel.surroundings?.current_W,
      "wind at vehicle": panel.surroundings?.wind_W,
      estimated: belief?.slice(0, 3),
      "std. dev.": belief?.slice(3, 6),
    };
    for (const [name, , digits] of VECTORS) {
      const { tr, cells } = this.vectors.get(name)!,
        v = values[name];
      toggleClass(tr, "hidden", !v);
      if (v) cells.forEach((c, k) => setText(c, formatNumber(v[k], digits)));
    }
    this.navigate(panel, belief);
    if (this.kit?.row === panel.row) {
      this.actuators.update(panel);
      this.instruments.update(panel);
    }
    this.forces.update(panel);
    this.note.textContent = panel.note ?? "";
    this.note.classList.toggle("hidden", !panel.note);
    this.crew.show(panel.crew);
    this.draw();
  }

  /** Draw the charts with the data received so far. */
  draw(): void {
    if (this.row !== null) this.charts.draw(this.store.time);
  }

  /** Show the error of the navigator's estimate next to the standard deviation that it states. */
  private navigate(panel: BodyPanel, belief: (number | null)[] | undefined): void {
    const [n, e, d, sn, se] = belief ?? [],
      [pn, pe, pd] = panel.motion.position,
      known = typeof n === "number" && typeof e === "number" && typeof pn === "number" && typeof pe === "number";
    toggleClass(this.navigation, "hidden", !known);
    if (!known) return;
    const error = Math.hypot(n - pn, e - pe),
      sigma = Math.hypot(sn ?? 0, se ?? 0),
      deeper = typeof d === "number" && typeof pd === "number" ? d - pd : null,
      cell = (name: string, value: string): void => setText(this.numbers.get(name)!, value);
    cell("error", formatNumber(error, 2));
    cell("stated 1σ", formatNumber(sigma, 2));
    cell("error in σ", sigma > 0 ? formatNumber(error / sigma, 1) : "–");
    toggleClass(this.numbers.get("error in σ")!, "bad", sigma > 0 && error > 3 * sigma);
    cell("depth error", formatNumber(deeper, 2));
    this.charts.remember(panel.time, "nav.error", error);
    this.charts.remember(panel.time, "nav.sigma", sigma);
    this.charts.remember(panel.time, "nav.vertical", deeper);
  }

  /** No data arrive: mark the shown values as stale. */
  lose(on: boolean): void {
    toggleClass(this.element, "lost", on);
    this.instruments.lose(on);
  }

  private who(panel: BodyPanel): void {
    const model = this.store.scene?.models[this.store.bodies.get(panel.row)?.model ?? ""];
    const line = (k: string, v: string | null): HTMLElement | null =>
      v ? h("tr", {}, h("td", { class: "soft" }, k), h("td", {}, v)) : null;
    const table = h(
      "table",
      {},
      h(
        "tbody",
        {},
        line("row", String(panel.row)),
        line("model", String(panel.identity["model"] ?? "")),
        line("size", model ? `${model.shape.kind} ${model.shape.size.map((s) => +s.toFixed(3)).join(" × ")} m` : null),
        line("mass", model?.mass ? `${model.mass} kg` : null),
      ),
    );
    setChildren(
      this.identity,
      h("h3", {}, "Identity"),
      table,
      model?.validated ? h("div", { class: "soft" }, `Validated: ${model.validated}`) : null,
    );
  }

  /** Redraw the charts in the colours of the theme (light or dark). */
  recolour(): void {
    this.charts.recolour();
    this.charts.draw(this.store.time);
  }
}
