// Mission editor on the chart: waypoints, beacons and fences by clicks, saved as a new configuration.

import type { Chart, MissionDraft } from "./chart";
import { setChildren, h, formatNumber, toast } from "./dom";
import { FenceEditor } from "./fence_editor";
import { fenceProblem } from "./fence_rules";
import { formatOffset } from "./geodesy";
import { postJson } from "./http";
import { PlanningPanel } from "./planning_panel";
import type { SceneStore } from "./scene_store";
import type { ViewerSocket } from "./websocket";
import type { HelloMessage, ImportedMission, SavedMission } from "./page_protocol";
import { circlePoints, distancesAndTimes, parallelLegs, type Point, type Waypoint } from "./survey_patterns";
import { lasting, round, WaypointTable } from "./waypoint_table";

type Tool = "waypoint" | "survey" | "beacon" | "fence" | "plan";

const MOST_SENT = 1000; // waypoints

export class MissionEditor {
  open = false;
  readonly button = h("button", { id: "do-mission", onclick: () => this.toggle() }, "mission");
  private readonly box = h("div", { class: "mission hidden", id: "mission" });
  private readonly inputs = h("div", { class: "inputs" }); // scrolls between the choice of tools and the buttons
  private tool: Tool = "waypoint";
  private vehicle = ""; // follows the selection
  private followed: number | null = null; // selected body that was followed last
  private depth = 5;
  private height = 100;
  private speed = 1;
  private spacing = 20; // spacing of survey legs; radius of a circle
  private heading = 0;
  private draft: MissionDraft | null = null;
  private saved = true;
  private waypoints: WaypointTable | null = null;
  private readonly fences: FenceEditor;
  private readonly plan: PlanningPanel;
  private readonly where = h("span", { class: "soft num" });
  private readonly info = h("div", { class: "soft" });
  private readonly warning = h("div", { class: "bad", id: "mission-warning" });
  private file = "mission.xml";
  private replace = false;

  constructor(
    private readonly store: SceneStore,
    private readonly chart: Chart,
    stage: HTMLElement,
    private readonly toChart: () => void,
    private readonly requests: Pick<ViewerSocket, "order" | "fences">,
    private readonly choose: (row: number | null) => void,
  ) {
    stage.append(this.box);
    this.fences = new FenceEditor(store, () => this.draft!, {
      changed: () => this.changed(),
      rebuild: () => this.build(),
      apply: (changes) => requests.fences(changes),
    });
    this.plan = new PlanningPanel(store, chart, () => this.draft, {
      send: (vehicle) => this.send(vehicle),
      save: () => void this.save(),
      changed: () => this.changed(),
    });
    window.addEventListener("beforeunload", (e) => {
      if (!this.saved) e.preventDefault();
    });
    chart.onMove = (n, e) => {
      this.where.textContent = this.open ? `${formatOffset(n, "NS", 1)}  ${formatOffset(e, "EW", 1)}` : "";
    };
  }

  private changed(): void {
    this.saved = false;
    this.build();
  }

  /** Take what this page may do. */
  permit(hello: HelloMessage): void {
    this.button.disabled = !hello.write || hello.kind !== "live";
    this.button.title = this.button.disabled
      ? "To save missions to a file, you need a running server on this machine and `wavesim viz --control`"
      : "Draw waypoints, beacons and fences (M)";
  }

  /** Open or close the editor, or say why that is impossible. */
  request(): void {
    if (this.button.disabled) toast(this.button.title, true);
    else this.toggle();
  }

  toggle(): void {
    this.open = !this.open;
    this.box.classList.toggle("hidden", !this.open);
    this.button.classList.toggle("on", this.open);
    if (!this.open) {
      this.chart.draft = this.chart.onClick = this.chart.grab = null;
      return;
    } // the draft is kept for the next visit
    this.toChart();
    this.draft ??= this.fresh();
    this.fences.follow();
    this.chart.draft = this.draft;
    this.follow();
    this.chart.onClick = (n, e) => this.clicked(n, e);
    this.chart.grab = (n, e, near) => this.grab(n, e, near);
    this.build();
  }

  /** Work on the selected vehicle; without a selection, on the previous one, or on the only one. */
  private follow(): void {
    const chosen = this.store.chosen,
      name = chosen === null ? "" : this.store.name(chosen),
      vehicles = this.vehicles();
    this.followed = chosen;
    if (vehicles.includes(name)) this.vehicle = name;
    else if (!vehicles.includes(this.vehicle)) this.vehicle = vehicles.length === 1 ? vehicles[0]! : "";
  }

  /** Select the vehicle in the whole page, if it is in the simulation. */
  private select(name: string): void {
    this.vehicle = name;
    this.choose(this.store.rowOf(name) ?? null);
    this.followed = this.store.chosen;
    this.build();
  }

  /** Find the draft's point at a position; returns the function that moves it. */
  private grab(n: number, e: number, near: number): ((n: number, e: number) => void) | null {
    const d = this.chart.draft!,
      points: number[][] =
        this.tool === "survey"
          ? d.area
          : this.tool === "waypoint"
            ? (d.waypoints.get(this.vehicle) ?? [])
            : this.tool === "beacon"
              ? d.beacons.map((b) => b.position)
              : this.tool === "fence"
                ? d.fences.flatMap((f) => f.corners)
                : [...d.waypoints.values()].flat();
    const found = points.find((p) => Math.hypot(p[0]! - n, p[1]! - e) < near);
    return found
      ? (north, east) => {
          [found[0], found[1]] = [round(north), round(east)];
          this.changed();
        }
      : null;
  }

  /** True if the vehicle stays on the surface. */
  private get afloat(): boolean {
    return this.kind === "surface";
  }
  /** Type of the vehicle's model. */
  private get kind(): string | undefined {
    const s = this.store.scene,
      body = s?.bodies.find((b) => b.name === this.vehicle);
    return s?.models[body?.model ?? ""]?.type;
  }
  /** Depth of its next waypoint; negative for an aircraft. */
  private get under(): number {
    if (this.kind === "aircraft") return -this.height;
    return this.afloat ? 0 : this.depth;
  }

  /** Waypoints of the vehicle as numbers that can be edited, inserted and removed. */
  private table(): HTMLElement | null {
    const d = this.chart.draft!,
      points = d.waypoints.get(this.vehicle) ?? [],
      present = this.store.scene?.bodies.find((b) => b.name === this.vehicle)?.waypoints ?? [];
    this.waypoints = points.length ? new WaypointTable(points, () => this.changed()) : null;
    if (this.waypoints || !present.length) return this.waypoints?.element ?? null;
    const edit = (): void => {
      d.waypoints.set(this.vehicle, structuredClone(present));
      this.changed();
    };
    return h("button", { id: "edit-present", onclick: edit }, `edit the ${present.length} existing waypoints`);
  }

  private fresh(): MissionDraft {
    this.saved = true;
    return { waypoints: new Map(), beacons: [], fences: this.fences.begin(), area: [] };
  }

  private startOver(): void {
    if (!this.saved && !window.confirm("Discard the unsaved draft?")) return;
    this.draft = this.chart.draft = this.fresh();
    this.build();
  }

  private vehicles(): string[] {
    const configured = (this.store.scene?.bodies ?? []).filter((b) => !b.buoy).map((b) => b.name),
      present = [...this.store.bodies.values()].filter((b) => b.type !== "buoy").map((b) => b.name);
    return [...new Set([...configured, ...present])];
  }

  private build(): void {
    const choice = (t: Tool, text: string): HTMLElement =>
      h(
        "button",
        {
          class: this.tool === t ? "on" : "",
          onclick: () => {
            this.tool = t;
            this.fences.close();
            this.build();
          },
        },
        text,
      );
    const field = (label: string, value: number, set: (v: number) => void): HTMLElement => {
      const input = h("input", { type: "number", value, step: 0.5, onchange: () => set(Number(input.value)) });
      input.style.width = "64px";
      return h("label", { class: "row" }, label, input);
    };
    const name = h("input", {
      value: this.file,
      id: "mission-file",
      "aria-label": "File for the mission",
      class: "grow",
      onchange: () => {
        this.file = name.value;
      },
    });
    const replace = h("input", {
      type: "checkbox",
      checked: this.replace,
      onchange: () => {
        this.replace = replace.checked;
      },
    });
    setChildren(
      this.inputs,
      this.tool === "survey"
        ? h(
            "div",
            { class: "row" },
            field("spacing m", this.spacing, (v) => {
              this.spacing = v;
            }),
            field("heading °", this.heading, (v) => {
              this.heading = v;
            }),
          )
        : null,
      this.tool === "survey"
        ? h(
            "div",
            { class: "row" },
            h(
              "button",
              {
                id: "lay-legs",
                disabled: this.draft!.area.length < 3,
                title: "Add waypoints for parallel legs that cover the area",
                onclick: () => this.lay(parallelLegs(this.draft!.area, this.spacing, this.heading)),
              },
              "add legs",
            ),
            h(
              "button",
              {
                id: "lay-circle",
                disabled: this.draft!.area.length !== 1,
                title: "Add a circle around the point, with the spacing as radius",
                onclick: () => this.lay(circlePoints(this.draft!.area[0]!, this.spacing)),
              },
              "circle",
            ),
          )
        : null,
      this.tool === "waypoint" || this.tool === "survey"
        ? h(
            "div",
            { class: "row" },
            this.vehicleChoice(),
            this.kind === "aircraft"
              ? field("height m", this.height, (v) => {
                  this.height = v;
                })
              : this.afloat
                ? null
                : field("depth m", this.depth, (v) => {
                    this.depth = v;
                  }),
            field("m/s", this.speed, (v) => {
              this.speed = v;
            }),
          )
        : null,
      this.tool === "beacon"
        ? h(
            "div",
            { class: "row" },
            field("depth m", this.depth, (v) => {
              this.depth = v;
            }),
          )
        : null,
      this.tool === "fence" ? this.fences.controls() : null,
      this.tool === "plan" ? this.plan.controls() : null,
      this.tool === "waypoint" || this.tool === "survey" ? this.table() : null,
    );
    setChildren(
      this.box,
      h("div", { class: "row" }, h("h3", { class: "grow" }, "Mission"), this.where),
      h(
        "div",
        { class: "row" },
        choice("waypoint", "waypoints"),
        choice("survey", "survey"),
        choice("beacon", "beacons"),
        choice("fence", "fences"),
        choice("plan", "plan"),
      ),
      this.inputs,
      this.info,
      this.tool === "fence" ? this.fences.applying() : null,
      h(
        "div",
        { class: "row" },
        this.tool === "waypoint" || this.tool === "survey"
          ? h(
              "button",
              {
                id: "mission-send",
                disabled: !this.draft!.waypoints.get(this.vehicle)?.length,
                title:
                  "Send the waypoints to the program that drives the vehicle, if that program accepts missions; " +
                  "the result appears under Notices",
                onclick: () => this.send(this.vehicle),
              },
              `send to ${this.vehicle || "…"}`,
            )
          : null,
        this.tool === "waypoint" ? this.opener() : null,
        this.tool === "plan" ? null : h("button", { onclick: () => this.back() }, "undo"),
        h("button", { id: "start-over", onclick: () => this.startOver() }, "start over"),
      ),
      h(
        "div",
        { class: "row" },
        name,
        h("label", { class: "row" }, replace, "replace"),
        h("button", { class: "on", id: "mission-save", onclick: () => void this.save() }, "save"),
      ),
      this.warning,
    );
    this.update();
  }

  /** List of vehicles; the choice selects the vehicle in the whole page. */
  private vehicleChoice(): HTMLElement {
    const list = h(
      "select",
      { id: "mission-vehicle", "aria-label": "Vehicle of the mission", onchange: () => this.select(list.value) },
      this.vehicle ? null : h("option", { value: "", selected: true }, "select a vehicle"),
      ...this.vehicles().map((v) => h("option", { value: v, selected: v === this.vehicle }, v)),
    );
    return list;
  }

  update(): void {
    const d = this.chart.draft;
    if (!this.open || !d) return;
    if (this.fences.follow()) this.build();
    if (this.store.chosen !== this.followed) {
      const before = this.vehicle;
      this.follow();
      if (this.vehicle !== before) {
        this.build(); // updates the page too
        return;
      }
    }
    const points = d.waypoints.get(this.vehicle) ?? [],
      trip = this.trip(points),
      end = trip.at(-1);
    this.waypoints?.update(trip, this.vehicle);
    const ways = this.vehicle
      ? `${points.length} new waypoints for ${this.vehicle}` +
        (end ? `: ${formatNumber(end.distance, 0)} m, ${lasting(end.time)} from its current position` : "")
      : "select a vehicle";
    this.info.textContent =
      this.tool === "waypoint"
        ? ways
        : this.tool === "survey"
          ? `${d.area.length} corners of the area; ${ways}`
          : this.tool === "beacon"
            ? `${d.beacons.length} new beacons`
            : this.tool === "fence"
              ? `${d.fences.length} ${d.fences.length === 1 ? "fence" : "fences"}; click the corners of the next fence`
              : "";
    if (this.tool === "plan") this.plan.update();
  }

  private clicked(n: number, e: number): void {
    if (this.tool === "plan") return;
    this.saved &&= !this.vehicle && ["waypoint", "survey"].includes(this.tool);
    const d = this.chart.draft!,
      p: [number, number] = [round(n), round(e)];
    if ((this.tool === "waypoint" || this.tool === "survey") && !this.vehicle) toast("select a vehicle first", true);
    else if (this.tool === "waypoint")
      d.waypoints.set(this.vehicle, [...(d.waypoints.get(this.vehicle) ?? []), [...p, this.under, this.speed]]);
    else if (this.tool === "survey") d.area.push(p);
    if (this.tool === "beacon") {
      const taken = new Set([...(this.store.scene?.bodies ?? []).map((b) => b.name), ...d.beacons.map((b) => b.name)]);
      let k = 1;
      while (taken.has(`beacon${k}`)) k++;
      d.beacons.push({ name: `beacon${k}`, position: [...p, this.depth] });
    }
    if (this.tool === "fence") this.fences.click(p);
    this.build();
  }

  /** Button that opens a mission file for the vehicle. */
  private opener(): HTMLElement {
    const input = h("input", {
      type: "file",
      accept: ".plan,.json,.waypoints,.yml,.yaml,.csv",
      class: "hidden",
      id: "mission-import",
      "aria-label": "Mission file",
      onchange: () => void this.import(input),
    });
    const button = h(
      "button",
      {
        disabled: !this.vehicle,
        title: "Replace the waypoints with those of a mission file: .plan, .waypoints, .yml or .csv",
        onclick: () => input.click(),
      },
      "open file…",
    );
    return h("span", {}, button, input);
  }

  private async import(input: HTMLInputElement): Promise<void> {
    const file = input.files?.[0],
      vehicle = this.vehicle;
    if (!file) return;
    const text = await file.text(),
      origin = this.store.scene?.origin ?? null;
    input.value = "";
    const found = await postJson<ImportedMission>("/api/mission-file", { file: file.name, text, origin });
    if (!found || !this.draft) return;
    this.draft.waypoints.set(
      vehicle,
      found.points.map(([n, e, depth, speed]): Waypoint => [round(n), round(e), depth, speed]),
    );
    for (const notice of found.notices) toast(`${file.name}: ${notice}`);
    this.changed();
  }

  /** Add points as waypoints of the vehicle and clear the area. */
  private lay(points: Point[]): void {
    if (!points.length) {
      toast("no legs: the spacing may be too large for this area", true);
      return;
    }
    const d = this.draft!;
    d.waypoints.set(this.vehicle, [
      ...(d.waypoints.get(this.vehicle) ?? []),
      ...points.map(([n, e]): Waypoint => [round(n), round(e), this.under, this.speed]),
    ]);
    d.area = [];
    this.saved = false;
    this.build();
  }

  private trip(points: Waypoint[]): ReturnType<typeof distancesAndTimes> {
    return distancesAndTimes(this.store.placeOf(this.vehicle) ?? [0, 0, 0], points);
  }

  private back(): void {
    this.saved = false;
    const d = this.chart.draft!;
    if (this.tool === "waypoint" || (this.tool === "survey" && !d.area.length)) d.waypoints.get(this.vehicle)?.pop();
    else if (this.tool === "survey") d.area.pop();
    if (this.tool === "beacon") d.beacons.pop();
    if (this.tool === "fence") this.fences.undo();
    this.build();
  }

  /** Send the waypoints of a vehicle to the program that drives it; false if that is impossible. */
  private send(vehicle: string): boolean {
    const row = this.store.rowOf(vehicle),
      points = this.draft!.waypoints.get(vehicle) ?? [];
    if (row === undefined) toast(`${vehicle} is not in the simulation`, true);
    else if (points.length > MOST_SENT)
      toast(`missions of more than ${MOST_SENT} waypoints must be loaded from a file`, true);
    else {
      this.requests.order("mission", row, { points: points.flat() });
      return true;
    }
    return false;
  }

  private async save(): Promise<void> {
    const d = this.chart.draft!;
    const waypoints = Object.fromEntries([...d.waypoints].filter(([, w]) => w.length));
    const problem = fenceProblem(d.fences);
    if (problem) {
      toast(problem, true);
      return;
    }
    const found = await postJson<SavedMission>("/api/mission", {
      file: this.file,
      replace: this.replace,
      waypoints,
      beacons: d.beacons,
      fences: d.fences,
    });
    if (!found) return;
    this.saved = true;
    const name = found.file.split("/").pop();
    this.warning.replaceChildren(...found.warnings.map((w) => h("div", {}, `⚠ ${w}`)));
    if (found.warnings.length) toast(`saved ${found.file}, but ${found.warnings[0]}`, true);
    else toast(`saved ${found.file}; run it with: wavesim trial ${name}`);
  }
}
