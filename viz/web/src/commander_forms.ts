// Commander forms: apply a force to a body, move it, change the weather (`weather_form.ts`). An empty field leaves its value unchanged.

import { h, toggleClass, setText } from "./dom";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";
import { WeatherForm } from "./weather_form";

const RAD = Math.PI / 180;
type Values = Record<string, number | number[]>;
export type SendCommand = (verb: string, row: number | null, values: Values) => void;

interface Input {
  label: string;
  unit: string;
  factor?: number;
}
const PUSH: Input[] = ["X", "Y", "Z"].map((label) => ({ label, unit: "N" })),
  TURN: Input[] = ["K", "M", "N"].map((label) => ({ label, unit: "N m" }));
const PLACE: Input[] = ["north", "east", "depth"].map((label) => ({ label, unit: "m" })),
  ATTITUDE: Input[] = ["roll", "pitch", "heading"].map((label) => ({ label, unit: "°", factor: RAD }));
/** A row of fields; ``read`` gives SI numbers, null for empty fields. */
class Fields {
  private readonly inputs: [HTMLInputElement, number][];
  readonly elements: HTMLElement[];
  constructor(name: string, inputs: Input[]) {
    this.inputs = inputs.map((w) => [
      h("input", { type: "number", step: "any", "aria-label": `${name} ${w.label}`, placeholder: w.unit }),
      w.factor ?? 1,
    ]);
    this.elements = inputs.map((w, k) => h("label", { class: "row" }, w.label, this.inputs[k]![0]));
  }
  read(): (number | null)[] {
    return this.inputs.map(([i, f]) =>
      i.value === "" || !Number.isFinite(i.valueAsNumber) ? null : i.valueAsNumber * f,
    );
  }
  /** All values, or null if one is missing. */
  whole(): number[] | null {
    const v = this.read();
    return v.every((x) => x !== null) ? v : null;
  }
}

export class CommanderForms {
  readonly element: HTMLElement;
  private readonly who = h("b", {}, "");
  private readonly title = h("h3", {}, "Body ", this.who);
  private readonly body: HTMLElement;
  private readonly world: HTMLElement;
  private readonly weather: WeatherForm;
  private readonly none = h("div", { class: "empty" });

  constructor(
    private readonly store: SceneStore,
    private readonly order: SendCommand,
  ) {
    const push = new Fields("Push", PUSH),
      turn = new Fields("Push", TURN),
      place = new Fields("Pose", PLACE),
      attitude = new Fields("Pose", ATTITUDE);
    const send = (verb: string, values: Values | null): void => {
      if (values && Object.keys(values).length && this.store.chosen !== null)
        this.order(verb, this.store.chosen, values);
    };
    const shove = (): void => {
      const f = push.read().map((v) => v ?? 0),
        t = turn.read().map((v) => v ?? 0);
      send("push", { force: f, torque: t });
    };
    const pose = (): void => {
      const p = place.whole(),
        a = attitude.whole();
      send("pose", { ...(p ? { position: p } : {}), ...(a ? { attitude: a } : {}) });
    };
    const line = (...children: HTMLElement[]): HTMLElement => h("div", { class: "row order" }, ...children);
    this.body = h(
      "div",
      {},
      line(
        h("span", { class: "soft" }, "External force (body axes)"),
        ...push.elements,
        ...turn.elements,
        h("button", { id: "push", onclick: shove }, "push"),
        h("button", { id: "push-end", onclick: () => send("push", { force: [0, 0, 0], torque: [0, 0, 0] }) }, "clear"),
      ),
      line(
        h("span", { class: "soft" }, "Move to"),
        ...place.elements,
        ...attitude.elements,
        h(
          "button",
          {
            id: "pose",
            title: "Enter all three numbers of a position and all three numbers of an attitude",
            onclick: pose,
          },
          "apply",
        ),
      ),
    );
    this.weather = new WeatherForm(store, order);
    this.world = this.weather.element;
    this.element = h(
      "div",
      { class: "pane" },
      h("div", { class: "list orders", id: "orders" }, this.none, this.title, this.body, this.world),
    );
  }

  update(): void {
    const may = this.store.hello !== null && !whyNoCommands(this.store.hello);
    setText(this.none, this.store.hello ? whyNoCommands(this.store.hello) : "");
    for (const e of this.element.querySelectorAll("button")) if (e.disabled === may) e.disabled = !may;
    setText(this.who, this.store.chosen === null ? "(select one)" : this.store.name(this.store.chosen));
    toggleClass(this.body, "hidden", this.store.chosen === null || !may);
    for (const e of [this.title, this.world]) toggleClass(e, "hidden", !may);
    toggleClass(this.none, "hidden", may);
    this.weather.update();
  }
}
