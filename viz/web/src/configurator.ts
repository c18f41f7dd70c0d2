// The configurator: open or import a model, edit it with gizmos or numbers, test it, save it.

import { setChildren, h, toast } from "./dom";
import { getJson, postJson } from "./http";
import { HullPanel } from "./hull_panel";
import { ModelTest } from "./model_test";
import { findChild, newElement, nameOf, parseMetres, type Schema } from "./xml_tree";
import { ModelEditor3D } from "./model_editor3d";
import { moveOrigin } from "./origin";
import { VesselPanel } from "./vessel_panel";
import type {
  AttributeRule,
  ModelCheck,
  ChildRule,
  ElementRule,
  ModelEntry,
  SavedFile,
  SavedModel,
  VehicleInstruments,
  VehicleEntry,
  XmlTree,
} from "./page_protocol";

/** A text whose words between backticks are code. */
function marked(text: string): (string | HTMLElement)[] {
  return text.split("`").map((part, k) => (k % 2 ? h("code", {}, part) : part));
}

function none(): XmlTree {
  return { tag: "sensors", attributes: {}, text: "", children: [] };
}

export class Configurator {
  private readonly root = h("div", { id: "configure" });
  private readonly bar = h("div", { id: "bar" });
  private readonly bench: ModelEditor3D;
  private readonly form = h("div", { class: "form" });
  private readonly side = h("div", { class: "side" });
  private readonly verdict = h("div", { class: "verdict", id: "verdict", role: "status" });
  private readonly chosenBox = h("div", { class: "section" });
  private readonly tries = new ModelTest(() => this.sent());
  private readonly hull: HullPanel;
  private readonly vessel: VesselPanel;
  private readonly back = h(
    "button",
    {
      id: "to-the-sea",
      onclick: () => {
        location.hash = "";
      },
    },
    "back to the simulation",
  );
  private readonly list = h("select", { id: "models", "aria-label": "Model" });
  private schema: Schema = {};
  private model: XmlTree | null = null;
  private vehicle: VehicleEntry | null = null; // vehicle whose own instruments are edited; null: a model is edited
  private sensors: XmlTree = none(); // of the model, or the vehicle's own instruments
  private given: string[] = []; // instruments that a vehicle gets from its model and the fleet
  private vehicles: VehicleEntry[] = [];
  private chosen: XmlTree | null = null;
  private readonly opened = new WeakSet<XmlTree>();
  private timer = 0;
  private checks = 0;
  // fields on the page: one value may appear twice
  private shown: { t: XmlTree; key: string; input: { value: string } }[] = [];
  private readonly past: string[] = []; // states for undo, newest last
  private visible = false;
  private write = true;
  private turning = false;

  constructor() {
    this.bench = new ModelEditor3D(
      (t) => this.choose(t),
      () => {
        const d = this.chosen === this.bench.origin ? parseMetres(this.bench.origin.attributes["position"]) : null;
        if (d) this.shiftOrigin(d);
        this.build();
        this.changed();
      },
      (part) => this.hull.choose(part),
    );
    const file = h("input", { id: "save-file", placeholder: "file.xml" }),
      replace = h("input", { type: "checkbox", id: "save-replace" });
    const host = {
      model: (): XmlTree | null => this.model,
      schema: (): Schema => this.schema,
      sensors: (): XmlTree => this.sensors,
      open: (model: XmlTree): void => {
        this.take1(model, true);
        this.list.querySelector("#unsaved")?.remove();
        this.list.prepend(
          h("option", { id: "unsaved", value: "" }, `${model.attributes["name"] ?? "model"} — not saved`),
        );
        this.list.selectedIndex = 0;
        file.value = `${model.attributes["name"] ?? "model"}.xml`;
      },
      openSaved: async (name: string): Promise<void> => {
        const found = await getJson<XmlTree>(`/api/model?name=${encodeURIComponent(name)}`);
        if (!found) return;
        this.take1(found);
        this.list.querySelector("#unsaved")?.remove();
        this.list.prepend(h("option", { value: name }, `${name} — ${found.attributes["type"] ?? ""}`));
        this.list.value = name;
        file.value = `${name}.xml`;
      },
      changed: (chosen?: XmlTree): void => {
        this.ownSensors();
        if (chosen) {
          this.chosen = chosen;
          this.opened.add(chosen);
        }
        this.build();
        this.refresh();
      },
      shiftOrigin: (d: [number, number, number]): void => this.shiftOrigin(d),
    };
    this.hull = new HullPanel(this.bench, host);
    this.vessel = new VesselPanel(host);
    const open = h("input", {
      type: "file",
      accept: ".xml,.ini,.yaml,.yml",
      class: "hidden",
      id: "import",
      onchange: () => void this.take(open),
    });
    const view = (side: string, text: string): HTMLElement =>
      h("button", { onclick: () => this.bench.from(side) }, text);
    const turn = h(
      "button",
      {
        id: "turn",
        title: "Move or rotate with the gizmo",
        onclick: () => {
          this.turning = !this.turning;
          this.bench.turn(this.turning);
          turn.classList.toggle("on", this.turning);
        },
      },
      "turn",
    );
    this.bar.append(
      h("div", { class: "brand" }, h("img", { src: "/static/icon.svg", alt: "" }), "WaVeSim", h("small", {}, "models")),
      this.list,
      h("button", { onclick: () => open.click() }, "import…"),
      open,
      h("button", { id: "undo", title: "Undo the last change (Ctrl+Z)", onclick: () => this.undo() }, "undo"),
      h("span", { class: "grow" }),
      h("label", { class: "row" }, "save as", file),
      h("label", { class: "row" }, replace, "replace"),
      h("button", { class: "on", id: "save", onclick: () => void this.save(file.value, replace.checked) }, "save"),
      this.back,
    );
    this.root.append(
      this.bar,
      h("div", { class: "form-holder" }, this.verdict, this.form),
      h(
        "div",
        { class: "view" },
        this.bench.canvas,
        this.bench.over,
        h(
          "div",
          { class: "views" },
          view("side", "side"),
          view("above", "above"),
          view("ahead", "ahead"),
          view("stern", "stern"),
          turn,
        ),
      ),
      this.side,
    );
    this.side.append(this.chosenBox, this.hull.box, this.vessel.box, this.tries.box);
    document.body.append(this.root);
    this.list.addEventListener("change", () => void this.load(this.list.value, file));
    window.addEventListener("keydown", (e) => {
      const writing = ["INPUT", "TEXTAREA"].includes((e.target as HTMLElement).tagName);
      if (this.visible && e.ctrlKey && e.key === "z" && !writing) {
        e.preventDefault();
        this.undo();
      }
    });
    void this.start(file);
    const frame = (): void => {
      if (this.visible) this.bench.render();
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    (window as unknown as Record<string, unknown>)["configure"] = this;
  }

  /** Set whether there is a simulation to return to, and whether files may be written and models tested. */
  permit(sea: boolean, write: boolean): void {
    this.back.classList.toggle("hidden", !sea);
    this.write = write;
    for (const id of [
      "save",
      "import",
      "try-turn",
      "try-step",
      "hull-open",
      "from-mesh-start",
      "vessel-files",
      "vessel-folder",
    ])
      this.root.querySelector<HTMLButtonElement>(`#${id}`)?.toggleAttribute("disabled", !write);
    if (!write)
      this.verdict.textContent = "this viewer is read-only; to check, test and save models, start it with --control";
  }

  show(on: boolean): void {
    this.visible = on;
    this.root.classList.toggle("hidden", !on);
  }

  /** Take the buttons that each view of the page has while it is shown. */
  prefer(preferences: HTMLElement): void {
    this.bar.append(preferences);
  }

  /** Redraw in the colours of the theme. */
  recolour(): void {
    this.bench.redraw();
    this.tries.recolour();
  }

  private async start(file: HTMLInputElement): Promise<void> {
    const [schema, models, vehicles] = await Promise.all([
      getJson<Schema>("/api/schema"),
      getJson<ModelEntry[]>("/api/models"),
      getJson<VehicleEntry[]>("/api/vehicles"),
    ]);
    if (!schema || !models) return;
    this.schema = schema;
    this.vehicles = vehicles ?? [];
    const group = (label: string, options: HTMLElement[]): HTMLElement | null =>
      options.length ? h("optgroup", { label }, ...options) : null;
    setChildren(
      this.list,
      group(
        "models",
        models.map((m) => h("option", { value: m.name, title: m.title }, `${m.name} — ${m.type}`)),
      ),
      group(
        "instruments of individual vehicles",
        this.vehicles.map((v, k) => h("option", { value: `vehicle ${k}` }, `${v.name} — ${v.model}, ${v.file}`)),
      ),
    );
    this.list.value = models.some((m) => m.name === "lauv") ? "lauv" : (models[0]?.name ?? "");
    await this.load(this.list.value, file);
  }

  private async load(name: string, file: HTMLInputElement): Promise<void> {
    if (!name) return;
    const vehicle = name.startsWith("vehicle ") ? this.vehicles[Number(name.slice(8))] : undefined;
    if (vehicle) {
      const found = await getJson<VehicleInstruments>(
        `/api/vehicle?file=${encodeURIComponent(vehicle.file)}&name=${encodeURIComponent(vehicle.name)}`,
      );
      if (found) {
        this.takeVehicle(vehicle, found.sensors ?? none());
        file.value = `my-${vehicle.file}`;
      }
      return;
    }
    const found = await getJson<XmlTree>(`/api/model?name=${encodeURIComponent(name)}`);
    if (found) {
      this.take1(found);
      file.value = `my-${name}.xml`;
    }
  }

  private take1(model: XmlTree, keepHull = false): void {
    if (!keepHull) this.hull.release();
    this.vehicle = null;
    this.model = model;
    this.given = [];
    this.ownSensors();
    this.anew();
  }

  /** The model's <sensors> element, so that instruments can be added at once; dropped if it stays empty. */
  private ownSensors(): void {
    const found = this.model ? findChild(this.model, "sensors") : undefined;
    if (!found && this.model) this.model.children.push((this.sensors = none()));
    else if (found) this.sensors = found;
    this.opened.add(this.sensors);
  }

  private takeVehicle(vehicle: VehicleEntry, sensors: XmlTree): void {
    this.hull.close();
    this.vehicle = vehicle;
    this.model = null;
    this.sensors = sensors;
    this.anew();
  }

  private anew(): void {
    this.chosen = null;
    this.past.length = 0;
    this.bench.forget();
    this.tries.reset(this.vehicle !== null);
    this.hull.box.classList.toggle("hidden", this.vehicle !== null);
    this.vessel.box.classList.toggle("hidden", this.vehicle !== null);
    this.remember();
    this.build();
    this.bench.set(this.model, this.sensors);
    void this.check();
  }

  private async take(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0];
    input.value = "";
    if (!file) return;
    const section = file.name.endsWith(".ini") ? (window.prompt("Section of the file (model name)") ?? "") : "";
    const found = await postJson<XmlTree[]>("/api/import", { file: file.name, text: await file.text(), section });
    if (found?.length) {
      this.take1(found[0]!);
      toast(
        `opened ${found[0]!.attributes["name"] ?? file.name}${found.length > 1 ? `, the first of ${found.length} models` : ""}`,
      );
    } else if (found) toast("the file contains no <model>", true);
  }

  /** Move the body's origin: every position is relative to it. */
  private shiftOrigin(d: [number, number, number]): void {
    this.bench.origin.attributes["position"] = "0 0 0 m";
    if (!this.model || !d.some(Boolean)) return;
    moveOrigin(this.model, d, this.hull.shift(d));
    this.bench.set(this.model, this.sensors);
    toast("the origin was moved: positions were adjusted, but matrices keep their values");
  }

  // -- form ------------------------------------------------------------------------------------------

  private rule(name: string): ElementRule {
    return this.schema[name] ?? { doc: "", keys: [], children: [] };
  }

  private build(): void {
    const top = this.form.scrollTop;
    this.shown = [];
    if (this.model) setChildren(this.form, this.element(this.model, "Model", null, true));
    else if (this.vehicle) {
      const own = new Set(this.sensors.children.map(nameOf)),
        others = this.given.filter((n) => !own.has(n)),
        inherited = others.length
          ? `Instruments from the model and the fleet: ${others.join(", ")}. ` +
            "An instrument added here replaces one with the same name."
          : "The model and the fleet define no instruments.";
      setChildren(
        this.form,
        h(
          "div",
          { class: "element" },
          h("b", {}, this.vehicle.name),
          h("div", { class: "soft" }, `${this.vehicle.model} of ${this.vehicle.file}. ${inherited}`),
        ),
        this.element(this.sensors, "Sensors", null, true),
      );
    }
    this.form.scrollTop = top;
    this.chosenForm();
  }

  private element(t: XmlTree, of: string, parent: XmlTree | null, open = false): HTMLElement {
    const rule = this.rule(of),
      shown = open || this.opened.has(t) || t === this.chosen;
    const toggle = (): void => {
      if (this.opened.has(t)) this.opened.delete(t);
      else this.opened.add(t);
      this.choose(t);
      this.build();
    };
    const remove =
      parent &&
      h(
        "button",
        {
          title: `Remove this <${t.tag}>`,
          onclick: (e: Event) => {
            e.stopPropagation();
            parent.children.splice(parent.children.indexOf(t), 1);
            if (this.chosen === t) this.chosen = null;
            this.build();
            this.refresh();
          },
        },
        "×",
      );
    const title = h(
      "div",
      { class: "title", title: rule.doc, onclick: parent ? toggle : undefined },
      h("b", {}, t.tag),
      h(
        "span",
        { class: "soft grow" },
        t.attributes["name"] ?? (t === this.sensors ? `${t.children.length || "no"} instruments` : ""),
      ),
      t === this.sensors ? null : remove,
    );
    const box = h("div", { class: `element${t === this.chosen ? " chosen" : ""}` }, title);
    if (!shown) return box;
    for (const key of rule.keys) box.append(this.field(t, key));
    for (const child of t.children) {
      const c = rule.children.find((r) => r.name === child.tag);
      if (c) box.append(this.element(child, c.of, t));
    }
    const more = rule.children.filter((c) => c.many || !t.children.some((x) => x.tag === c.name));
    if (more.length) {
      const pick = h(
        "select",
        { "aria-label": `Add to ${t.tag}`, onchange: () => this.grow(t, more[pick.selectedIndex - 1]!) },
        h("option", {}, "+ add…"),
        ...more.map((c) => h("option", { title: c.doc }, c.name)),
      );
      box.append(h("div", { class: "key" }, h("label", {}), pick));
    }
    return box;
  }

  private grow(t: XmlTree, c: ChildRule): void {
    const child = newElement(c.name, c.of, this.schema);
    const same = t.children.filter((x) => x.tag === c.name).length;
    if (child.attributes["name"] || (t === this.sensors && same)) child.attributes["name"] = `${c.name}${same + 1}`;
    for (let k = same + 2; t === this.sensors && t.children.some((x) => nameOf(x) === nameOf(child)); k++)
      child.attributes["name"] = `${c.name}${k}`;
    t.children.push(child);
    this.chosen = child;
    this.opened.add(child);
    this.build();
    this.refresh();
  }

  private field(t: XmlTree, key: AttributeRule): HTMLElement {
    const numbers = key.kind === "numbers",
      value = numbers ? t.text : t.attributes[key.name];
    const about = [
      key.doc,
      key.units.length ? `Unit: ${key.units.join(", ")}.` : "",
      key.low || key.high ? `Range: ${key.low ?? "…"} to ${key.high ?? "…"}.` : "",
      key.required ? "Required." : `Default: ${key.default || "none"}.`,
    ]
      .filter(Boolean)
      .join("\n")
      .replaceAll("`", "");
    const set = (v: string): void => {
      if (numbers) t.text = v;
      else if (v === "") delete t.attributes[key.name];
      else t.attributes[key.name] = v;
      for (const s of this.shown) if (s.t === t && s.key === key.name) s.input.value = v;
      this.refresh();
    };
    let input: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
    if (key.choices.length) {
      const s = h(
        "select",
        { title: about, onchange: () => set(s.value) },
        ...(key.required ? [] : [h("option", { value: "" }, `(${key.default || "none"})`)]),
        ...key.choices.map((c) => h("option", { value: c, selected: c === value }, c)),
      );
      input = s;
    } else if (numbers) {
      const area = h("textarea", { title: about, rows: 3, onchange: () => set(area.value) });
      area.value = value ?? "";
      input = area;
    } else {
      const i = h("input", {
        title: about,
        value: value ?? "",
        placeholder: key.default ?? "",
        onchange: () => set(i.value.trim()),
      });
      input = i;
    }
    input.setAttribute("aria-label", `${t.tag} ${key.name}`);
    this.shown.push({ t, key: key.name, input });
    input.dataset["key"] = `${t.tag}.${key.name}`;
    return h(
      "div",
      { class: `key${key.required ? " required" : ""}` },
      h("label", { title: about }, numbers ? "numbers" : key.name),
      input,
      h("span", { class: "info", title: about }, "?"),
    );
  }

  private ruleOf(t: XmlTree): string {
    const search = (at: XmlTree, of: string): string | null => {
      if (at === t) return of;
      for (const child of at.children) {
        const c = this.rule(of).children.find((r) => r.name === child.tag),
          found = c ? search(child, c.of) : null;
        if (found) return found;
      }
      return null;
    };
    return (this.model && search(this.model, "Model")) ?? search(this.sensors, "Sensors") ?? "";
  }

  private chosenForm(): void {
    const t = this.chosen;
    if (!t) {
      setChildren(
        this.chosenBox,
        h("h3", {}, "Element"),
        h(
          "div",
          { class: "soft" },
          "Click a thruster, a fin, a sensor, a centre or the origin in the view, or an element on the left; " +
            "then drag its arrows or enter numbers.",
        ),
      );
      return;
    }
    if (t === this.bench.origin) {
      setChildren(this.chosenBox, h("h3", {}, "origin of the body"), ...this.originForm());
      return;
    }
    const of = this.ruleOf(t),
      rule = this.rule(of);
    setChildren(
      this.chosenBox,
      h("h3", {}, `${t.tag} ${t.attributes["name"] ?? ""}`),
      h("div", { class: "soft" }, ...marked(rule.doc)),
      ...rule.keys.filter((k) => k.kind !== "numbers").map((k) => this.field(t, k)),
    );
  }

  private originForm(): HTMLElement[] {
    const inputs = ["forward", "starboard", "down"].map((side) =>
      h("input", { type: "number", step: "any", value: 0, "aria-label": `Move the origin ${side}, m` }),
    );
    const move = (): void => {
      this.shiftOrigin(inputs.map((i) => Number(i.value) || 0) as [number, number, number]);
      this.build();
      this.refresh();
    };
    return [
      h(
        "div",
        { class: "soft" },
        "Every position is relative to the origin, and so are the matrices. Drag the arrows of the origin, or move it by x, y, z in m:",
      ),
      h("div", { class: "row thirds" }, ...inputs),
      h("div", { class: "row" }, h("button", { id: "move-origin", onclick: move }, "move the origin")),
    ];
  }

  private choose(t: XmlTree | null): void {
    const other = t !== this.chosen;
    this.chosen = t;
    this.bench.choose(t);
    this.bench.turn(this.turning);
    if (other) this.build();
    else this.chosenForm();
  }

  private refresh(): void {
    this.bench.set(this.model, this.sensors);
    this.bench.choose(this.chosen);
    this.changed();
  }

  private remember(): void {
    const now = JSON.stringify([this.model, this.sensors]);
    if (now !== this.past.at(-1)) this.past.push(now);
    if (this.past.length > 200) this.past.shift();
  }

  private undo(): void {
    if (this.past.length < 2) {
      toast("nothing to undo");
      return;
    }
    this.past.pop();
    [this.model, this.sensors] = JSON.parse(this.past.at(-1)!) as [XmlTree | null, XmlTree];
    if (this.model) this.ownSensors();
    this.chosen = null;
    this.build();
    this.bench.set(this.model, this.sensors);
    void this.check();
  }

  /**
   * Discard the verdict on an earlier state: the present one is not checked yet. Returns the number of the next check.
   */
  private wonder(): number {
    if (this.write) {
      this.verdict.className = "verdict";
      this.verdict.textContent = "…";
    }
    return ++this.checks;
  }

  private changed(): void {
    this.wonder();
    this.remember();
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.check(), 300);
  }

  /** The model as it is checked and saved. */
  private sent(): XmlTree | null {
    return (
      this.model && {
        ...this.model,
        children: this.model.children.filter(
          (c) => c.tag !== "sensors" || c.children.length || Object.keys(c.attributes).length,
        ),
      }
    );
  }

  private fitting(): Record<string, unknown> {
    const empty = !this.sensors.children.length && !Object.keys(this.sensors.attributes).length;
    return { file: this.vehicle!.file, vehicle: this.vehicle!.name, sensors: empty ? null : this.sensors };
  }

  private async check(): Promise<void> {
    if (!this.write) return;
    const number = this.wonder();
    const found = await (this.vehicle
      ? postJson<ModelCheck>("/api/fit", this.fitting())
      : postJson<ModelCheck>("/api/check", { model: this.sent() }));
    // keep a handle while it is dragged, and check after its release
    if (!found || number !== this.checks || this.bench.held) return;
    this.verdict.className = `verdict ${found.ok ? "good" : "bad"}`;
    this.verdict.textContent = found.ok
      ? `✓ ${this.vehicle ? "Vehicle" : "Model"} is valid`
      : (found.error ?? "refused");
    if (found.look) {
      this.bench.look(found.look, found.instruments ?? [], found.hull);
      this.bench.showParts();
      this.hull.drawn();
      this.bench.set(this.model, this.sensors);
      this.bench.choose(this.chosen);
    }
    if (found.given && found.given.join() !== this.given.join()) {
      this.given = found.given;
      this.build();
    }
    this.tries.show();
  }

  private async save(file: string, replace: boolean): Promise<void> {
    if (this.vehicle) {
      const found = await postJson<SavedFile>("/api/mount", { ...this.fitting(), file_out: file, replace });
      if (found) toast(`saved ${found.file}; run it with: wavesim serve ${found.file.split("/").pop()}`);
      return;
    }
    const found = await postJson<SavedModel>("/api/save", { file, replace, model: this.sent() });
    if (found) toast(`saved ${found.file}; run it with: wavesim serve ${found.trial}`);
  }

  /** For tests: the document that would be saved. */
  tree(): { model: XmlTree | null; sensors: XmlTree } {
    return { model: this.sent(), sensors: this.sensors };
  }
  mass(): string | undefined {
    return this.model ? findChild(this.model, "mass")?.attributes["value"] : undefined;
  }
}
