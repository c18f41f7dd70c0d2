// Mappings of the sticks of manual control: thruster allocation, a force on the hull, or a stick for each actuator.

import { h, setChildren } from "./dom";
import type { DriveRequest, ModelInfo } from "./page_protocol";

export type Mapping = DriveRequest["mapping"];
export type ControlAxes = [ahead: number, starboard: number, down: number, turn: number]; // -1 to 1

/** What one control of an actuator reads: its name, its axis, and its sign for a stick that moves up or to the right. */
const STICKS: [label: string, axis: number, sign: number][] = [
  ["none", -1, 0],
  ["left stick ↕", 0, 1],
  ["left stick ↔", 3, 1],
  ["right stick ↕", 2, -1],
  ["right stick ↔", 1, 1],
  ["left stick ↕ (reversed)", 0, -1],
  ["left stick ↔ (reversed)", 3, -1],
  ["right stick ↕ (reversed)", 2, 1],
  ["right stick ↔ (reversed)", 1, -1],
];
const LEFT_VERTICAL = 1,
  RIGHT_VERTICAL = 3;
const FORCES = [
  ["surge", "N"],
  ["sway", "N"],
  ["heave", "N"],
  ["yaw", "N m"],
] as const;
const HEAVE = 2;
const ACCELERATION = 0.2; // m/s2 of the body's mass, under the default force

/** Give up the focus: the arrow keys drive the body, not the list. */
const blur = (e: Event): void => (e.target as HTMLElement).blur();

/** Settings of the mapping, and the demands that they make of the sticks. */
export class ControlMapping {
  private readonly select = h(
    "select",
    {
      id: "helm-mapping",
      "aria-label": "Mapping of the controls",
      onchange: (e: Event) => {
        blur(e);
        this.changed();
      },
    },
    h("option", { value: "allocation" }, "thruster allocation"),
    h("option", { value: "force" }, "force on the hull"),
    h("option", { value: "actuators" }, "one stick per actuator"),
  );
  private readonly zone = h("input", {
    type: "number",
    min: 0,
    max: 0.9,
    step: 0.02,
    value: 0.08,
    "aria-label": "Dead zone of the sticks",
  });
  private readonly details = h("div", {});
  readonly element = h(
    "div",
    {},
    h("label", { class: "row" }, "mapping", this.select),
    h("label", { class: "row" }, "dead zone", this.zone),
    this.details,
  );
  private scales: HTMLInputElement[] = []; // of the force mapping, by demand
  private sticks: HTMLSelectElement[] = []; // of the actuator mapping, by actuator
  private shown = ""; // what the details show

  constructor(private readonly changed: () => void) {}

  get kind(): Mapping {
    return this.select.value as Mapping;
  }

  /** Position of a stick; 0 inside the dead zone. */
  filtered(value: number): number {
    return Math.abs(value) > Number(this.zone.value) ? value : 0;
  }

  /** Show the settings for a body; its actuators are known once it is selected. */
  show(body: string, model: ModelInfo | undefined, actuators: string[]): void {
    const shown = `${this.kind} ${body} ${model?.name} ${this.kind === "actuators" ? actuators.join() : ""}`;
    if (this.shown === shown) return;
    this.shown = shown;
    this.scales = [];
    this.sticks = [];
    if (this.kind === "force") this.showForces(model);
    else if (this.kind === "actuators") this.showActuators(actuators);
    else setChildren(this.details);
  }

  private showForces(model: ModelInfo | undefined): void {
    const force = ACCELERATION * (model?.mass ?? 100),
      moment = 0.25 * force * (model?.shape.size[0] ?? 1),
      floats = model?.type === "surface";
    this.scales = FORCES.map(([name, unit], k) =>
      h("input", {
        type: "number",
        min: 0,
        value: floats && k === HEAVE ? 0 : Number((name === "yaw" ? moment : force).toPrecision(2)),
        "aria-label": `Full deflection in ${name}, ${unit}`,
      }),
    );
    const rows = FORCES.map(([name, unit], k) => h("label", { class: "row" }, name, this.scales[k], unit));
    setChildren(this.details, ...rows.filter((_, k) => !floats || k !== HEAVE));
  }

  private showActuators(actuators: string[]): void {
    this.sticks = actuators.map((name, k) => {
      const first = k === 0 ? LEFT_VERTICAL : k === 1 ? RIGHT_VERTICAL : 0,
        options = STICKS.map(([label], n) => h("option", { value: n, selected: n === first }, label));
      return h("select", { "aria-label": `Stick for ${name}`, onchange: blur }, ...options);
    });
    setChildren(this.details, ...actuators.map((name, k) => h("label", { class: "row" }, name, this.sticks[k])));
  }

  /** Demands of these axes for the server, reduced by the fraction of the maximum power. */
  demands(axes: ControlAxes, gain: number): number[] {
    if (this.kind === "force") return axes.map((v, k) => v * gain * (Number(this.scales[k]?.value) || 0));
    if (this.kind === "allocation") return axes.map((v) => v * gain);
    const found = this.sticks.map((stick) => {
      const [, axis, sign] = STICKS[Number(stick.value)]!;
      return axis < 0 ? 0 : sign * axes[axis]! * gain;
    });
    return found.length ? found : [0];
  }
}
