// The hull file of the configurator: its parts, axes and unit, its mass properties, and what they become in the model.

import { formatNumber, h, setChildren, toast } from "./dom";
import { getJson, postJson, uploadFile } from "./http";
import type { ModelEditor3D } from "./model_editor3d";
import { addUses, newSensors, partElement, type PartUse } from "./hull_parts";
import { hullProperties } from "./hull_properties";
import { SurfacePlacement } from "./surface_placement";
import { MeshComputation } from "./from_mesh";
import { findChild, nameOf, parseMetres, parseQuantities, type Schema } from "./xml_tree";
import type { HullFile, HullProperties, XmlTree } from "./page_protocol";

export interface ModelHost {
  model(): XmlTree | null;
  schema(): Schema;
  sensors(): XmlTree;
  open(model: XmlTree): void;
  openSaved(name: string): Promise<void>;
  changed(chosen?: XmlTree): void;
  shiftOrigin(d: [number, number, number]): void;
}

type Role = "hull" | "drawn" | "hidden";
const ROLES: Record<Role, string> = { hull: "hull", drawn: "drawn only", hidden: "hidden" };
const UNITS = { m: "metres", cm: "centimetres", mm: "millimetres", inch: "inches" };
const AXES = { x: "+x", "-x": "−x", y: "+y", "-y": "−y", z: "+z", "-z": "−z" };
const ORIGINS = { middle: "middle of the box", buoyancy: "centre of buoyancy", file: "origin of the file" };
const BUOYANCY = { mesh: "the surface", convex: "its convex hull", centre: "volume and centre only" };

export class HullPanel {
  readonly box = h("details", { class: "section", id: "hull-panel" });
  private readonly body = h("div", {});
  private file: HullFile | null = null;
  private fit: HullProperties | null = null;
  private roles: Role[] = [];
  private uses: (PartUse | null)[] = [];
  private chosen: number | null = null;
  private choices = { unit: "m", up: "z", forward: "x", origin: "middle" };
  private buoyancy: keyof typeof BUOYANCY = "mesh";
  private offset: [number, number, number] = [0, 0, 0];
  private opacity = 0.8;
  private used = false; // the open model names the files of this hull
  private requests = 0;
  private trouble = "";
  private readonly placement: SurfacePlacement;
  private readonly computation: MeshComputation;
  private source: Record<string, string> = {}; // upload or file of the open hull

  constructor(
    private readonly bench: ModelEditor3D,
    private readonly host: ModelHost,
  ) {
    const input = h("input", {
      type: "file",
      accept: ".glb,.gltf,.stl,.obj,.ply,.off,.fbx",
      class: "hidden",
      id: "hull-file",
      onchange: () => {
        const file = input.files?.[0];
        input.value = "";
        if (file) void this.upload(file);
      },
    });
    const folder = h("select", {
      id: "hull-folder",
      "aria-label": "Hull file in the working folder",
      class: "hidden",
      onchange: () => {
        const name = folder.value;
        folder.selectedIndex = 0;
        if (name) void this.read({ file: name });
      },
    });
    this.placement = new SurfacePlacement(bench, host);
    this.computation = new MeshComputation({
      meshRequest: () => this.meshRequest(),
      mass: () => this.fit && 1025 * this.fit.volume,
      openSaved: (name) => host.openSaved(name),
    });
    this.box.append(
      h("summary", {}, "Hull file"),
      h(
        "div",
        { class: "row" },
        h("button", { id: "hull-open", onclick: () => input.click() }, "open glTF, FBX, STL, OBJ…"),
        input,
        folder,
      ),
      this.body,
      this.placement.element,
      this.computation.element,
    );
    this.box.addEventListener("toggle", () => {
      if (this.box.open) void this.list(folder);
    });
    this.draw();
  }

  private async list(folder: HTMLSelectElement): Promise<void> {
    const names = (await getJson<string[]>("/api/hull-files")) ?? [];
    folder.classList.toggle("hidden", !names.length);
    setChildren(
      folder,
      h("option", { value: "" }, "in the working folder…"),
      ...names.map((n) => h("option", { value: n }, n)),
    );
  }

  /** Another model is edited: it does not name the files of this hull. */
  release(): void {
    if (this.used) this.uses = this.uses.map(() => null);
    this.used = false;
    this.offset = [0, 0, 0];
    if (this.file) void this.place();
  }

  /** Forget the file. */
  close(): void {
    this.file = this.fit = null;
    this.used = false;
    this.requests++;
    this.bench.hull.take(null);
    this.draw();
    this.host.changed();
  }

  /** Choose a part in the view or in the list. */
  choose(part: number | null): void {
    this.chosen = part;
    this.box.open = true;
    this.bench.hull.highlight(part);
    this.bench.redraw();
    this.draw();
    this.body.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest" });
  }

  /** Move the hull with the origin; false if there is no file here whose mesh could move. */
  shift(d: [number, number, number]): boolean {
    if (!this.file || !this.used) return false;
    this.offset = this.offset.map((v, k) => v + d[k]!) as [number, number, number];
    void this.place();
    return true;
  }

  private async upload(file: File): Promise<void> {
    this.report(`reading ${file.name}…`, false);
    const found = await uploadFile(file);
    if (found) await this.read({ upload: found.upload });
    else this.report("", false);
  }

  private async read(request: Record<string, string>): Promise<void> {
    this.report("reading the file…", false);
    const found = await postJson<HullFile>("/api/hull", request);
    if (!found) {
      this.report("", false);
      return;
    }
    this.file = found;
    this.source = request;
    this.fit = null;
    this.used = false;
    this.roles = found.parts.map(() => "hull");
    this.uses = found.parts.map(() => null);
    this.chosen = null;
    this.offset = [0, 0, 0];
    this.choices = { unit: found.unit, up: found.up, forward: found.forward, origin: "middle" };
    this.bench.hull.take(found);
    await this.place(true);
    this.bench.frame(this.fit);
  }

  private report(text: string, bad: boolean): void {
    this.trouble = text;
    const line = this.body.querySelector("#hull-state");
    if (line) line.textContent = text;
    else if (text)
      setChildren(this.body, h("div", { class: bad ? "bad" : "soft", id: "hull-state", role: "status" }, text));
    else this.draw();
  }

  private request(): Record<string, unknown> {
    const mass = this.host.model() && findChild(this.host.model()!, "mass");
    return {
      ...this.choices,
      hull: this.file!.hull,
      shape: this.buoyancy === "convex" ? "convex" : "surface",
      shift: this.offset,
      solid: this.roles.flatMap((r, k) => (r === "hull" ? [k] : [])),
      drawn: this.roles.flatMap((r, k) => (r === "hidden" ? [] : [k])),
      mass: mass ? (parseQuantities(mass.attributes["value"]).numbers[0] ?? null) : null,
      mass_centre: mass?.attributes["centre"] ? parseMetres(mass.attributes["centre"]) : null,
    };
  }

  /** The values of `wavesim vehicles from-mesh` that this file and the roles of its parts define. */
  private meshRequest(): Record<string, unknown> | null {
    const { file, choices, roles, uses } = this;
    if (!file) return null;
    const named = (take: (k: number) => boolean): string[] => file.parts.flatMap((p, k) => (take(k) ? [p.name] : []));
    return {
      ...this.source,
      ...choices,
      hull_parts: roles.every((r) => r === "hull") ? [] : named((k) => roles[k] === "hull"),
      thruster_parts: named((k) => uses[k]?.element.tag === "thruster"),
      fin_parts: named((k) => uses[k]?.element.tag === "fin"),
    };
  }

  /** Ask for the hull in body axes; `moved` states that its axes, unit or origin have changed. */
  private async place(moved = false): Promise<void> {
    if (!this.file) return;
    const number = ++this.requests;
    const fit = await postJson<HullProperties>("/api/hull-fit", this.request());
    if (number !== this.requests || !this.file) return;
    if (!fit) {
      this.draw();
      return;
    }
    this.fit = fit;
    this.trouble = "";
    this.show();
    if (moved)
      this.uses.forEach((use, k) => {
        if (use) use.follow(fit.parts[k]!, this.host.model());
      });
    if (this.used) {
      this.apply();
      this.host.changed();
    } else this.bench.showParts();
    this.draw();
  }

  private show(): void {
    if (!this.fit) return;
    this.bench.hull.place(
      this.fit,
      this.roles.map((r) => r !== "hidden"),
      this.opacity,
    );
    this.bench.hull.highlight(this.chosen);
    this.bench.redraw();
  }

  // -- model -------------------------------------------------------------------------------------------

  private async newModel(kind: string): Promise<void> {
    const model = await postJson<XmlTree>("/api/hull-model", { ...this.request(), type: kind });
    if (!model) return;
    if (this.uses.some((use) => use && !use.sensor))
      model.children = model.children.filter((c) => c.tag !== "thruster" && c.tag !== "fin");
    addUses(this.uses, model);
    this.used = true;
    this.host.open(model);
    this.apply();
    this.host.changed();
    toast("all coefficients of this model are estimates; correct them on the left");
    this.draw();
  }

  /** Let the open model name the hull. */
  private apply(): void {
    const model = this.host.model(),
      fit = this.fit;
    if (!model || !fit) return;
    if (fit.appearance) model.attributes["appearance"] = fit.appearance;
    else delete model.attributes["appearance"];
    const centre = `${fit.centre.map((v) => +v.toFixed(5)).join(" ")} m`,
      tag = this.buoyancy === "centre" ? "buoyancy" : "hull",
      attributes: Record<string, string> =
        tag === "hull" ? { file: fit.file } : { volume: `${+fit.volume.toPrecision(7)} m3`, centre };
    const at = model.children.findIndex((c) => ["hull", "buoyancy", "restoring"].includes(c.tag)),
      replaced = model.children.filter((c) => c.tag === "restoring").length;
    model.children = model.children.filter((c) => !["hull", "buoyancy", "restoring"].includes(c.tag));
    model.children.splice(at < 0 ? 1 : at, 0, { tag, attributes, text: "", children: [] });
    if (replaced) toast("the hull replaces <restoring>; added mass and damping are unchanged");
  }

  private use(what: string): void {
    const model = this.host.model(),
      part = this.chosen;
    if (part === null || !this.fit || !model) return;
    // before the hull belongs to a model, the elements wait for one
    const target: XmlTree = this.used ? model : { tag: "model", attributes: {}, text: "", children: [] };
    if (!this.used) addUses(this.uses, target);
    const sensors = this.used ? this.host.sensors() : (findChild(target, "sensors") ?? newSensors()),
      use = partElement(what, this.fit.parts[part]!, target, sensors, this.host.schema());
    this.uses[part] = use;
    if (this.roles[part] === "hull") this.roles[part] = "drawn";
    if (!this.roles.includes("hull")) this.roles[part] = "hull"; // a hull needs one part
    if (this.used) {
      this.host.changed(use.element);
      toast(`${use.element.tag} ${nameOf(use.element)} was added at the selected part`);
    } else toast(`${use.element.tag} ${nameOf(use.element)} will be added to the model that uses this hull`);
    void this.place();
  }

  private setInertia(): void {
    const model = this.host.model(),
      mass = model && parseQuantities(findChild(model, "mass")?.attributes["value"]).numbers[0];
    if (!model || !mass || !this.fit) return;
    model.children = model.children.filter((c) => c.tag !== "inertia" && c.tag !== "rigid-body");
    const [xx, yy, zz] = this.fit.gyration.map((k) => String(+(mass * k * k).toPrecision(4)));
    model.children.push({ tag: "inertia", attributes: { xx: xx!, yy: yy!, zz: zz! }, text: "", children: [] });
    this.host.changed();
  }

  // -- form --------------------------------------------------------------------------------------------

  private select<T extends string>(
    label: string,
    id: string,
    options: Record<T, string>,
    value: string,
    set: (v: T) => void,
  ): HTMLElement {
    const s = h(
      "select",
      { id, onchange: () => set(s.value as T) },
      ...Object.entries<string>(options).map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
    );
    return h("div", { class: "key" }, h("label", { for: id }, label), s);
  }

  /** The surface that is drawn, or the model, has changed. */
  drawn(): void {
    this.placement.draw();
  }

  private draw(): void {
    this.placement.draw();
    this.computation.draw();
    const focused = document.activeElement?.id;
    if (!this.file) {
      setChildren(
        this.body,
        h(
          "div",
          { class: "soft" },
          this.trouble ||
            "Load the hull of a vessel. Click its parts to make them thrusters, fins or sensors. Its volume defines the buoyancy.",
        ),
      );
      return;
    }
    const { file, fit } = this,
      again = (key: keyof typeof this.choices) => (v: string) => {
        this.choices[key] = v;
        void this.place(true);
      };
    const size = file.size.map((v) => formatNumber(v, v < 10 ? 3 : 1)).join(" × ");
    setChildren(
      this.body,
      h(
        "div",
        { class: "soft", id: "hull-state", role: "status" },
        `${file.file}: ${file.parts.length} part${file.parts.length > 1 ? "s" : ""}, x y z ${size}. ` +
          (file.known
            ? "The format defines the unit and that +y is up; check which axis is forward."
            : "The unit and axes are guesses; check them."),
      ),
      this.select("unit", "hull-unit", UNITS, this.choices.unit, again("unit")),
      this.select("up", "hull-up", AXES, this.choices.up, again("up")),
      this.select("forward", "hull-forward", AXES, this.choices.forward, again("forward")),
      this.select("origin", "hull-origin", ORIGINS, this.choices.origin, again("origin")),
      this.parts(file),
      this.select("opacity", "hull-opacity", { "0.8": "solid", "0.25": "transparent" }, String(this.opacity), (v) => {
        this.opacity = Number(v);
        this.show();
      }),
      this.select("buoyancy from", "hull-buoyancy", BUOYANCY, this.buoyancy, (v) => {
        this.buoyancy = v;
        void this.place();
      }),
      fit && hullProperties(fit),
      fit && this.actions(),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  private parts(file: HullFile): HTMLElement {
    const rows = file.parts.map((p, k) => {
      const dot = h("span", { class: "dot" }),
        role = h(
          "select",
          {
            id: `hull-role-${k}`,
            "aria-label": `Role of ${p.name}`,
            onchange: () => {
              this.roles[k] = role.value as Role;
              void this.place();
            },
          },
          ...Object.entries(ROLES).map(([v, text]) => h("option", { value: v, selected: v === this.roles[k] }, text)),
        );
      dot.style.background = p.colour;
      return h(
        "li",
        {},
        h(
          "button",
          {
            id: `hull-part-${k}`,
            class: k === this.chosen ? "on" : "",
            "aria-pressed": String(k === this.chosen),
            title: `${p.triangles} triangles`,
            onclick: () => this.choose(k === this.chosen ? null : k),
          },
          dot,
          p.name,
          this.uses[k] ? h("span", { class: "soft" }, ` → ${nameOf(this.uses[k].element)}`) : null,
        ),
        role,
      );
    });
    const sensors = this.host.schema()["Sensors"]?.children.map((c) => c.name) ?? [],
      none = this.chosen === null,
      make = (text: string, what: string): HTMLElement =>
        h("button", { id: `hull-make-${what}`, disabled: none, onclick: () => this.use(what) }, text);
    const sensor = h(
      "select",
      {
        id: "hull-make-sensor",
        "aria-label": "Make the part a sensor",
        disabled: none,
        onchange: () => this.use(sensor.value),
      },
      h("option", { value: "" }, "sensor…"),
      ...["transducer", ...sensors].map((s) => h("option", { value: s }, s)),
    );
    return h(
      "div",
      {},
      h("ul", { class: "hull-parts", "aria-label": "Parts of the hull file" }, ...rows),
      h(
        "div",
        { class: "row" },
        h("span", { class: "soft" }, none ? "choose a part to make it a" : `make ${file.parts[this.chosen!]!.name} a`),
        make("thruster", "thruster"),
        make("fin", "fin"),
        make("rudder", "rudder"),
        sensor,
      ),
    );
  }

  private actions(): HTMLElement {
    const kind = h(
      "select",
      { id: "hull-type", "aria-label": "Type of the new model" },
      ...["surface", "underwater", "buoy"].map((t) => h("option", { value: t }, t)),
    );
    return h(
      "div",
      { class: "row" },
      h("button", { id: "hull-new", class: "on", onclick: () => void this.newModel(kind.value) }, "new model"),
      kind,
      h(
        "button",
        {
          id: "hull-use",
          title: "Use this hull for the buoyancy and the drawing of the open model",
          onclick: () => {
            const model = this.host.model();
            if (!model) return;
            if (!this.used) addUses(this.uses, model);
            this.used = true;
            this.apply();
            this.host.changed();
          },
        },
        "use in the open model",
      ),
      h(
        "button",
        { id: "hull-inertia", title: "Inertia for evenly distributed mass", onclick: () => this.setInertia() },
        "set inertia",
      ),
      h("button", { id: "hull-close", onclick: () => this.close() }, "close the file"),
    );
  }
}
