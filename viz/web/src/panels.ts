// Fleet, one body's data and charts, events.

import { clock, colour, css, fill, h, number } from "./dom";
import { bearing, euler } from "./frames";
import type { Panel, Reception, Sent, SensorValue } from "./link";
import { Plot } from "./plots";
import { KINDS, OUTCOMES, type Store } from "./store";

// ---------------------------------------------------------------------------------- fleet

export class Fleet {
  readonly element = h("div", { class: "scroll", id: "fleet" });
  private readonly rows = new Map<number, { tr: HTMLTableRowElement; cells: HTMLTableCellElement[] }>();
  private readonly body = h("tbody");
  private readonly search: HTMLInputElement;
  private key = "";

  constructor(private readonly store: Store, private readonly choose: (row: number) => void) {
    this.search = h("input", { placeholder: "find a body", class: "grow", "aria-label": "Find a body", oninput: () => { this.key = ""; } });
    this.element.append(
      h("div", { class: "side-head" }, this.search),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "name"), h("th", { class: "n" }, "depth"), h("th", { class: "n" }, "speed"), h("th", { class: "n" }, "hdg"))), this.body),
    );
  }

  update(): void {
    const wanted = this.search.value.trim().toLowerCase();
    const found = [...this.store.bodies.values()].filter((b) => !wanted || b.name.toLowerCase().includes(wanted) || b.model.toLowerCase().includes(wanted));
    found.sort((a, b) => Number(a.type === "buoy") - Number(b.type === "buoy") || a.row - b.row);
    const list = found.slice(0, 300), key = list.map((b) => `${b.row}${b.name}`).join() + found.length;
    if (key !== this.key) {
      this.key = key;
      this.rows.clear();
      this.body.replaceChildren();
      for (const b of list) {
        const dot = h("span", { class: "dot" });
        dot.style.background = colour(b.row);
        const cells = [h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n" })];
        const tr = h("tr", { tabIndex: 0, title: `${b.name}: ${b.model}, ${b.type}`, onclick: () => this.choose(b.row), onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter") this.choose(b.row); } }, h("td", { class: "name" }, dot, b.name), ...cells);
        tr.dataset["row"] = String(b.row);
        this.rows.set(b.row, { tr, cells });
        this.body.append(tr);
      }
      if (found.length > list.length) this.body.append(h("tr", {}, h("td", { class: "soft", colSpan: 4 }, `and ${found.length - list.length} more: find them by name`)));
      if (!found.length) this.body.append(h("tr", {}, h("td", { class: "soft", colSpan: 4 }, this.store.bodies.size ? "no name like that" : "nobody is here yet")));
    }
    for (const [row, { tr, cells }] of this.rows) {
      const k = this.store.index.get(row);
      tr.classList.toggle("chosen", row === this.store.chosen);
      if (k === undefined) continue;
      const q = this.store.quaternion;
      const [, , heading] = euler(q[4 * k]!, q[4 * k + 1]!, q[4 * k + 2]!, q[4 * k + 3]!);
      cells[0]!.textContent = number(this.store.ned[3 * k + 2], 1);
      cells[1]!.textContent = number(this.store.speed[k], 2);
      cells[2]!.textContent = `${bearing(heading).toFixed(0)}°`;
    }
  }
}

// ---------------------------------------------------------------------------------- one body

const HISTORY = 3000;
interface Series { time: number[]; value: (number | null)[] }

export class Details {
  readonly element = h("div", { class: "scroll", id: "details" });
  private row: number | null = null;
  private readonly history = new Map<string, Series>();
  private readonly charts = new Map<string, Plot>();
  private wanted = ["motion.depth", "motion.speed", "motion.pitch"];
  private readonly openSensors = new Set<string>();
  private readonly head = h("div", { class: "section" });
  private readonly motion = h("div", { class: "section" });
  private readonly actuators = h("div", { class: "section" });
  private readonly sensors = h("div", { class: "section" });
  private readonly identity = h("div", { class: "section" });
  private readonly chartBox = h("div", { class: "section" });
  private chartsAt = 0;
  private sensorKey = "";
  private sensorCells = new Map<string, HTMLTableCellElement>();
  private sensorDots = new Map<string, HTMLElement>();

  constructor(private readonly store: Store, private readonly actions: { onboard: (row: number) => void; follow: () => void; goTo: (row: number) => void }) {
    this.clear();
  }

  clear(): void {
    this.row = null;
    this.history.clear();
    for (const p of this.charts.values()) p.destroy();
    this.charts.clear();
    this.sensorKey = "";
    this.element.replaceChildren(h("div", { class: "empty" }, "Click a body, in the picture or in the list, to see its data, its charts and the view from on board."));
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
    this.head.querySelectorAll(".row")[1]!.setAttribute("class", "row");
    this.chartBox.replaceChildren(h("h3", {}, "Charts"));
    this.element.replaceChildren(this.head, this.motion, this.chartBox, this.actuators, this.sensors, this.identity);
  }

  update(panel: Panel): void {
    if (panel.row !== this.row) this.begin(panel);
    const m = panel.motion, [roll, pitch, heading] = m.euler as [number, number, number];
    const speed = Math.hypot(...m.velocity);
    this.remember(panel.time, { "motion.depth": m.position[2]!, "motion.speed": speed, "motion.pitch": pitch, "motion.roll": roll, "motion.heading": bearing(heading) });
    const cell = (name: string, value: string, unit: string, key?: string): HTMLElement => h("div", { class: "cell", title: key ? "Click for a chart" : "", onclick: key ? () => this.chart(key) : undefined }, h("span", {}, name), h("b", {}, value), " ", h("i", {}, unit));
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
          vector("believed", this.store.beliefs.get(panel.row)?.slice(0, 3) ?? null, "m", 2))),
    );
    this.actuation(panel);
    this.sensorList(panel);
    this.who(panel);
    this.drawCharts();
  }

  private actuation(panel: Panel): void {
    const body = this.store.bodies.get(panel.row), model = this.store.scene?.models[body?.model ?? ""];
    if (!panel.actuation || !model?.actuators.length) { this.actuators.classList.add("hidden"); return; }
    this.actuators.classList.remove("hidden");
    const rows = model.actuators.map((name, i) => {
      const slot = model.slots[i]!, angle = slot >= 8 && slot < 20, f = angle ? 180 / Math.PI : 1;
      const actual = (panel.actuation!.actual[slot] ?? 0) * f, command = (panel.actuation!.command[slot] ?? 0) * f;
      const limit = slot < 8 ? Math.max(Math.abs(model.thrusters[slot]?.maximum ?? 0), Math.abs(model.thrusters[slot]?.minimum ?? 0)) : angle ? ((model.fins[slot - 8]?.limit ?? 1) * 180) / Math.PI : 1;
      const share = Math.max(-1, Math.min(1, actual / Math.max(limit || Math.abs(actual), 1e-9)));
      const key = `actuation.${slot}`;
      this.remember(panel.time, { [key]: actual });
      const bar = h("div", {});
      bar.style.left = `${50 + Math.min(share, 0) * 50}%`;
      bar.style.width = `${Math.abs(share) * 50}%`;
      return h("tr", { title: "Click for a chart", onclick: () => this.chart(key) }, h("td", { class: "soft" }, name), h("td", {}, h("div", { class: "bar" }, bar)), h("td", { class: "n" }, number(actual, 2)), h("td", { class: "n soft" }, number(command, 2)));
    });
    fill(this.actuators, h("h3", {}, "Actuators"), h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, ""), h("th", {}, ""), h("th", { class: "n" }, "actual"), h("th", { class: "n" }, "command"))), h("tbody", {}, ...rows)));
  }

  private sensorList(panel: Panel): void {
    const sensors = panel.sensors ?? {}, names = Object.keys(sensors);
    const key = `${panel.row}:${names.join()}`;
    if (key !== this.sensorKey) {
      this.sensorKey = key;
      this.sensorCells.clear();
      this.sensorDots.clear();
      const parts = names.map((name) => this.sensorPart(name, sensors[name]!));
      fill(this.sensors, h("h3", {}, "Sensors"), ...parts, names.length ? null : h("div", { class: "soft" }, "no emulator has written for this body"));
    }
    for (const name of names) {
      const v = sensors[name]!;
      const dot = this.sensorDots.get(name);
      if (dot) {
        dot.className = v.valid && v.age < 5 ? "good" : "bad";
        dot.textContent = v.valid ? (v.age < 5 ? "●" : "● old") : "● invalid";
        dot.title = `age ${v.age.toFixed(2)} s`;
      }
      for (const [path, value] of flat(name, v)) {
        const cell = this.sensorCells.get(path);
        if (cell) cell.textContent = number(value, Math.abs(value ?? 0) >= 1000 ? 1 : 4);
        if (value === null || typeof value === "number") this.remember(panel.time, { [path]: v.valid ? value : null });
      }
    }
  }

  private sensorPart(name: string, v: SensorValue): HTMLElement {
    const dot = h("span", {});
    this.sensorDots.set(name, dot);
    const rows = flat(name, v).slice(0, 40).map(([path]) => {
      const cell = h("td", { class: "n" });
      this.sensorCells.set(path, cell);
      return h("tr", { title: "Click for a chart", onclick: () => this.chart(path) }, h("td", {}, path.slice(name.length + 1)), cell);
    });
    const part = h("details", { class: "sensor", open: this.openSensors.has(name) || rows.length <= 4, ontoggle: () => (part.open ? this.openSensors.add(name) : this.openSensors.delete(name)) }, h("summary", {}, h("b", { class: "grow" }, name), dot), h("table", {}, h("tbody", {}, ...rows)));
    return part;
  }

  private who(panel: Panel): void {
    const model = this.store.scene?.models[this.store.bodies.get(panel.row)?.model ?? ""], c = panel.client;
    const line = (k: string, v: string | null): HTMLElement | null => (v ? h("tr", {}, h("td", { class: "soft" }, k), h("td", {}, v)) : null);
    const rtt = c ? `${number(1e3 * Number(c["rtt_mean"]), 2)} ms (${number(1e3 * Number(c["rtt_min"]), 2)} to ${number(1e3 * Number(c["rtt_max"]), 2)})` : null;
    const status = c ? ["", "connected", "removed: silent", "left"][Number(c["status"])] ?? "" : null;
    const table = h("table", {}, h("tbody", {},
      line("row", String(panel.row)), line("model", String(panel.identity["model"] ?? "")), line("size", model ? `${model.shape.kind} ${model.shape.size.map((s) => +s.toFixed(3)).join(" × ")} m` : null),
      line("mass", model?.mass ? `${model.mass} kg` : null), line("client", status), line("address", c ? `${String(c["address"])}:${String(c["port"])}` : null), line("round trip", rtt),
      line("lockstep", c && Number(c["lockstep_ns"]) ? `${Number(c["lockstep_ns"]) * 1e-6} ms` : null)));
    fill(this.identity, h("h3", {}, "Identity"), table, model?.validated ? h("div", { class: "soft" }, `Validated: ${model.validated}`) : null);
  }

  /** Light and dark have charts of their own colours. */
  recolour(): void {
    for (const p of this.charts.values()) p.destroy();
    this.charts.clear();
    this.chartsAt = 0;
    this.drawCharts();
  }

  // -- charts ------------------------------------------------------------------------------------

  private remember(time: number, values: Record<string, number | null>): void {
    for (const [key, value] of Object.entries(values)) {
      let s = this.history.get(key);
      if (!s) this.history.set(key, (s = { time: [], value: [] }));
      const last = s.time[s.time.length - 1];
      if (last !== undefined && time < last) { s.time.length = 0; s.value.length = 0; } // the time was turned back
      if (last !== undefined && time === last) continue;
      s.time.push(time);
      s.value.push(value);
      if (s.time.length > HISTORY) { s.time.splice(0, HISTORY / 4); s.value.splice(0, HISTORY / 4); }
    }
  }

  /** Show or hide the chart of a value. */
  chart(key: string): void {
    if (this.wanted.includes(key)) this.wanted = this.wanted.filter((k) => k !== key);
    else this.wanted.push(key);
    this.chartsAt = 0;
  }

  private drawCharts(): void {
    const now = performance.now();
    if (now - this.chartsAt < 250) return;
    this.chartsAt = now;
    const width = Math.max(this.element.clientWidth - 26, 120);
    for (const [key, plot] of this.charts) if (!this.wanted.includes(key)) { plot.destroy(); this.charts.delete(key); }
    for (const key of this.wanted) {
      const s = this.history.get(key);
      if (!s) continue;
      let plot = this.charts.get(key);
      if (!plot) {
        const unit = ({ depth: "m", speed: "m/s", pitch: "deg", roll: "deg", heading: "deg" } as Record<string, string>)[key.split(".")[1]!] ?? "";
        const model = this.store.scene?.models[this.store.bodies.get(this.row ?? -1)?.model ?? ""];
        const title = key.startsWith("actuation.") ? model?.actuators[model.slots.indexOf(Number(key.slice(10)))] ?? key : key.replace("motion.", "").replaceAll(".", " ");
        plot = new Plot(title, key.startsWith("motion.") ? unit : "", [css("--accent")], [title], width, 92, () => this.chart(key));
        this.charts.set(key, plot);
        this.chartBox.append(plot.element);
      }
      plot.width(width);
      plot.set(s.time, s.value);
    }
  }
}

/** Numbers of a sensor by their paths. */
function flat(name: string, v: SensorValue): [string, number | null][] {
  const found: [string, number | null][] = [];
  for (const [key, value] of Object.entries(v)) {
    if (key === "valid" || key === "age") continue;
    if (Array.isArray(value)) value.forEach((x, i) => found.push([`${name}.${key}.${i}`, x]));
    else if (typeof value !== "boolean") found.push([`${name}.${key}`, value]);
  }
  return found;
}

// ---------------------------------------------------------------------------------- events

export class Events {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly list: HTMLElement;
  private readonly counts = h("span", { class: "soft" });
  private filter = "told";
  private missed = 0;
  private pending: (Sent | Reception | { notice: string; time: number; name: string })[] = [];

  constructor(private readonly store: Store, private readonly choose: (row: number) => void) {
    const pick = h("select", { "aria-label": "Which events", onchange: () => { this.filter = pick.value; this.body.replaceChildren(); this.add(this.store.events); } },
      h("option", { value: "told" }, "heard and lost"), h("option", { value: "heard" }, "heard"), h("option", { value: "lost" }, "lost"), h("option", { value: "sent" }, "sent"), h("option", { value: "all" }, "everything"));
    const toggle = h("button", { title: "Show or hide the list", onclick: () => this.list.classList.toggle("short") }, "▾");
    this.list = h("div", { id: "events" }, h("table", {}, h("thead", {}, h("tr", {}, ...["time", "what", "from", "to", "kHz", "level dB", "path m", "measured m", "true m", "error m", "outcome"].map((t, i) => h("th", { class: i > 3 && i < 10 || i === 0 ? "n" : "" }, t)))), this.body));
    this.element = h("div", {}, h("div", { class: "events-head" }, h("h3", {}, "Signals"), pick, this.counts, h("span", { class: "grow" }), toggle), this.list);
  }

  note(time: number, name: string, text: string): void { this.pending.push({ notice: text, time, name }); }
  lose(count: number): void { this.missed += count; }
  add(events: (Sent | Reception)[]): void { this.pending.push(...events); }
  clear(): void { this.body.replaceChildren(); this.pending = []; }

  update(): void {
    if (this.pending.length) {
      const rows = this.pending.slice(-200).map((e) => ("notice" in e ? this.noticeRow(e) : this.wants(e) ? this.row(e) : null));
      this.pending = [];
      for (const r of rows) if (r) this.body.prepend(r);
      while (this.body.children.length > 250) this.body.lastChild?.remove();
    }
    this.counts.textContent = this.missed ? `${this.missed} not shown: too many at once` : "";
  }

  private wants(e: Sent | Reception): boolean {
    if (!("receiver" in e)) return this.filter === "sent" || this.filter === "all" || e.outcome !== 0;
    if (this.filter === "all") return true;
    if (this.filter === "sent") return false;
    if (this.filter === "heard") return e.outcome === 0;
    if (this.filter === "lost") return e.outcome !== 0;
    return ![2, 3, 11].includes(e.outcome);
  }

  private noticeRow(e: { notice: string; time: number; name: string }): HTMLElement {
    return h("tr", { class: "warm" }, h("td", { class: "n" }, clock(e.time)), h("td", {}, "notice"), h("td", {}, e.name), h("td", { colSpan: 8 }, e.notice));
  }

  private row(e: Sent | Reception): HTMLElement {
    const heard = "receiver" in e ? e : null, sent = heard ? this.store.sent.get(e.id) : (e as Sent);
    // a two-way range is that of both ways: the question's and the answer's
    const asked = heard?.measured !== null && heard ? this.store.distances.get(`${heard.query}:${heard.source}`) : undefined;
    const truth = asked !== undefined && heard && heard.distance !== null ? 0.5 * (asked + heard.distance) : null;
    const error = truth !== null && heard ? heard.measured! - truth : null;
    const cells = [
      clock(e.time), heard ? KINDS[e.kind] ?? "" : `sent: ${KINDS[e.kind] ?? ""}`, this.store.name(e.source), heard ? this.store.name(heard.receiver) : "",
      sent ? (sent.frequency / 1000).toFixed(1) : "", number(heard ? heard.level : (e as Sent).source_level, 1), heard ? number(heard.range, 2) : "",
      heard?.measured !== null && heard ? number(heard.measured, 3) : "", heard ? number(truth ?? heard.distance, 3) : "", error === null ? "" : number(error, 3),
    ];
    const outcome = e.outcome === 0 ? (heard ? (heard.bounces ? `heard (${heard.bounces} bounces)` : "heard") : "sent") : OUTCOMES[e.outcome] ?? String(e.outcome);
    return h("tr", { onclick: () => this.choose(heard ? heard.receiver : e.source) }, ...cells.map((t, i) => h("td", { class: i > 3 || i === 0 ? "n" : "" }, t)), h("td", { class: e.outcome ? "bad" : "good" }, outcome));
  }
}
