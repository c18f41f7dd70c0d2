// One body: where it is and how it moves, its charts, its actuators, its instruments, who drives it.

import { Actuators, labelOf as actuatorLabel } from "./actuators";
import { clock, colour, fill, h, number } from "./dom";
import { faultButton, type Fail } from "./faults";
import { ForcesOn, labelOf as forceLabel } from "./forces";
import { bearing } from "./frames";
import { Charts, type Label } from "./history";
import { Instruments, labelOf as sensorLabel } from "./instruments";
import type { FieldLook, Kit, Panel } from "./link";
import type { Store } from "./store";

const MOTION: Record<string, string> = { depth: "m", speed: "m/s", pitch: "°", roll: "°", heading: "°" };

export interface Actions { onboard: (row: number) => void; follow: () => void; goTo: (row: number) => void; fail: (row: number) => Fail | null }

export class Details {
  readonly element = h("div", { class: "scroll", id: "details" });
  readonly charts: Charts;
  private readonly actuators: Actuators;
  private readonly instruments: Instruments;
  private readonly forces: ForcesOn;
  private row: number | null = null;
  private kit: Kit | null = null;
  private readonly head = h("div", { class: "section" });
  private readonly note = h("div", { class: "section warm hidden", id: "note" });
  private readonly motion = h("div", { class: "section" });
  private readonly crew = h("div", { class: "section", id: "crew" });
  private readonly identity = h("div", { class: "section", id: "identity" });

  constructor(private readonly store: Store, private readonly actions: Actions) {
    this.charts = new Charts((key) => this.label(key), () => Math.max(this.element.clientWidth - 26, 120));
    const fault = (part: string, kinds: string[], fields: FieldLook[], at: HTMLElement): HTMLElement | null => faultButton(part, kinds, fields, at, this.kit ? this.actions.fail(this.kit.row) : null);
    this.actuators = new Actuators(this.charts, fault);
    this.instruments = new Instruments(this.charts, fault);
    this.forces = new ForcesOn(this.charts);
    this.clear();
  }

  private label(key: string): Label | null {
    const unit = key.startsWith("motion.") ? MOTION[key.slice(7)] : undefined;
    return unit !== undefined ? { title: key.slice(7), unit, series: [key], names: [key.slice(7)] } : actuatorLabel(this.kit, key) ?? forceLabel(key) ?? sensorLabel(this.kit, key);
  }

  clear(): void {
    this.row = null;
    this.charts.clear();
    this.element.replaceChildren(h("div", { class: "empty" }, "Click a body, in the picture or in the list, to see its data, its charts and the view from on board."));
  }

  /** What the chosen body has. */
  fit(kit: Kit | null): void {
    this.kit = kit;
    this.actuators.fit(kit);
    this.instruments.fit(kit);
    this.charts.recolour();
  }

  private begin(panel: Panel): void {
    this.clear();
    this.row = panel.row;
    const body = this.store.bodies.get(panel.row), model = this.store.scene?.models[body?.model ?? ""];
    const dot = h("span", { class: "dot" });
    dot.style.background = colour(panel.row);
    fill(
      this.head,
      h("div", { class: "row" }, dot, h("b", { class: "grow" }, this.store.name(panel.row)), h("span", { class: "soft" }, `${body?.model ?? ""}, ${body?.type ?? ""}`)),
      h("div", { class: "row" }, h("button", { id: "go-onboard", onclick: () => this.actions.onboard(panel.row) }, "on board"), h("button", { onclick: () => this.actions.follow() }, "follow"), h("button", { onclick: () => this.actions.goTo(panel.row) }, "go there")),
      model?.title ? h("div", { class: "soft" }, model.title) : null,
    );
    this.element.replaceChildren(this.head, this.note, this.motion, this.charts.element, this.actuators.element, this.forces.element, this.instruments.element, this.crew, this.identity);
  }

  update(panel: Panel): void {
    if (panel.row !== this.row) this.begin(panel);
    const m = panel.motion, [roll, pitch, heading] = m.euler as [number, number, number];
    const speed = Math.hypot(...m.velocity), told: Record<string, number> = { depth: m.position[2]!, speed, pitch, roll, heading: bearing(heading) };
    for (const [name, value] of Object.entries(told)) this.charts.remember(panel.time, `motion.${name}`, value);
    const cell = (name: string, value: string, unit: string, key?: string): HTMLElement => h("div", { class: "cell", title: key ? "Click for a chart" : "", onclick: key ? () => this.charts.toggle(key) : undefined }, h("span", {}, name), h("b", {}, value), " ", h("i", {}, unit));
    const vector = (name: string, v: (number | null)[] | null, unit: string, digits: number): HTMLElement | null =>
      v && h("tr", {}, h("td", { class: "soft" }, `${name}, ${unit}`), ...v.map((x) => h("td", { class: "n" }, number(x, digits))));
    fill(
      this.motion,
      h("div", { class: "cells" },
        cell("heading", bearing(heading).toFixed(1), "°", "motion.heading"), cell("depth", number(m.position[2], 2), "m", "motion.depth"), cell("speed", number(speed, 2), "m/s", "motion.speed"),
        cell("roll", roll.toFixed(1), "°", "motion.roll"), cell("pitch", pitch.toFixed(1), "°", "motion.pitch"), cell("time", clock(panel.time), "")),
      h("table", {},
        h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", { class: "n" }, "N / x"), h("th", { class: "n" }, "E / y"), h("th", { class: "n" }, "D / z"))),
        h("tbody", {},
          vector("position", m.position, "m", 3), vector("over ground", m.velocity, "m/s", 3), vector("through water", m.water, "m/s", 3), vector("rates", m.rates, "°/s", 2),
          vector("current there", panel.surroundings?.current_W ?? null, "m/s", 3), vector("wind there", panel.surroundings?.wind_W ?? null, "m/s", 3),
          vector("believed", this.store.beliefs.get(panel.row)?.slice(0, 3) ?? null, "m", 2))),
    );
    if (this.kit?.row === panel.row) {
      this.actuators.update(panel);
      this.instruments.update(panel);
    }
    this.forces.update(panel);
    this.note.textContent = panel.note ?? "";
    this.note.classList.toggle("hidden", !panel.note);
    this.aboard(panel);
    this.who(panel);
    this.charts.draw();
  }

  private who(panel: Panel): void {
    const model = this.store.scene?.models[this.store.bodies.get(panel.row)?.model ?? ""];
    const line = (k: string, v: string | null): HTMLElement | null => (v ? h("tr", {}, h("td", { class: "soft" }, k), h("td", {}, v)) : null);
    const table = h("table", {}, h("tbody", {},
      line("row", String(panel.row)), line("model", String(panel.identity["model"] ?? "")), line("size", model ? `${model.shape.kind} ${model.shape.size.map((s) => +s.toFixed(3)).join(" × ")} m` : null),
      line("mass", model?.mass ? `${model.mass} kg` : null)));
    fill(this.identity, h("h3", {}, "Identity"), table, model?.validated ? h("div", { class: "soft" }, `Validated: ${model.validated}`) : null);
  }

  /** Who is connected to the body, by role. */
  private aboard(panel: Panel): void {
    this.crew.classList.toggle("hidden", !panel.crew);
    const rows = (panel.crew ?? []).map((c) => {
      const gone = c.status !== "connected", late = c.silent !== null && c.silent > 2;
      return h("tr", { title: `${c.datagrams[0]} datagrams from it, ${c.datagrams[1]} to it` }, h("td", { class: gone ? "bad" : "good" }, c.role), h("td", {}, c.address),
        h("td", { class: `n ${gone || late ? "bad" : ""}` }, gone ? c.status : late ? `silent ${c.silent!.toFixed(0)} s` : `${number(c.rtt_ms, 2)} ms`), h("td", { class: "n soft" }, c.lockstep_ms ? `each ${+c.lockstep_ms.toFixed(3)} ms` : ""));
    });
    const head = h("tr", {}, h("th", {}, "role"), h("th", {}, "address"), h("th", { class: "n" }, "round trip"), h("th", { class: "n" }, "lockstep"));
    fill(this.crew, h("h3", {}, "Crew"), rows.length ? h("table", {}, h("thead", {}, head), h("tbody", {}, ...rows)) : h("div", { class: "soft" }, "nobody is connected to it"));
  }

  /** Light and dark have charts of their own colours. */
  recolour(): void {
    this.charts.recolour();
    this.charts.draw();
  }
}
