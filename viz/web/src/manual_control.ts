// Manual control: keyboard and gamepad drive a body through the viewer's server, which acts as its pilot or applies a force
// to its hull. The body moves only while an input is held.
// On release or loss of connection, the server's watchdog returns the actuators to neutral and ends the force.

import { ControlMapping, type ControlAxes, type Mapping } from "./control_mapping";
import { setChildren, h, toggleClass, setText, toast } from "./dom";
import { makeDraggable } from "./draggable";
import { isTypedIntoField } from "./keyboard";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";
import { driver } from "./vehicle_status";
import type { HelloMessage } from "./page_protocol";

const PERIOD_MS = 100;
const KEYS: Record<string, [axis: number, sign: number]> = {
  ArrowUp: [0, 1],
  ArrowDown: [0, -1],
  ArrowRight: [3, 1],
  ArrowLeft: [3, -1],
  PageDown: [2, 1],
  PageUp: [2, -1],
  Period: [1, 1],
  Comma: [1, -1],
};
const HELD = [4, 5, 6, 7]; // shoulder buttons of a gamepad

export class ManualControl {
  readonly button = h("button", { id: "do-helm", onclick: () => this.toggle() }, "drive");
  private box: HTMLElement | null = null;
  private readonly who = h("select", {
    "aria-label": "Body to drive",
    onchange: () => {
      this.leave();
      this.showMapping(); // at once: a value entered now belongs to this body
    },
  });
  private readonly gain = h("input", {
    type: "range",
    min: 0.1,
    max: 1,
    step: 0.05,
    value: 0.5,
    "aria-label": "Fraction of the maximum power",
    onpointerup: (e: Event) => (e.target as HTMLElement).blur(), // the arrow keys drive the body, not the slider
  });
  private readonly status = h("div", { class: "soft num", id: "helm-status" });
  private readonly keys = new Set<string>();
  private readonly take = h(
    "button",
    { id: "take-helm", class: "on", onclick: () => this.takeOrLeave() },
    "take control",
  );
  private readonly pilot = h("div", { id: "helm-pilot" });
  private readonly mapping = new ControlMapping(() => {
    this.leave();
    this.fill();
  });
  private any = false; // some body can be driven
  private took = false; // the body was driven by a program
  private driving = ""; // body that the server drives for this page
  private shown = false; // control applies to the selected body; selecting another one suspends it
  private moved = false;
  private timer = 0;

  constructor(
    private readonly store: SceneStore,
    private readonly stage: HTMLElement,
    private readonly send: (body: string, axes: number[] | null, mapping: Mapping) => void,
    private readonly choose: (row: number) => void,
  ) {
    window.addEventListener(
      "keydown",
      (e) => {
        if (this.box && e.code in KEYS && !isTypedIntoField(e)) {
          e.preventDefault();
          e.stopImmediatePropagation();
          this.keys.add(e.code);
        }
      },
      true,
    );
    window.addEventListener("keyup", (e) => this.keys.delete(e.code), true);
    for (const what of ["blur", "pagehide"]) window.addEventListener(what, () => this.keys.clear());
  }

  /** Take what this page may do. */
  permit(hello: HelloMessage): void {
    const why = whyNoCommands(hello);
    this.button.disabled = why !== "";
    this.button.title = why || "Drive a vehicle with the keyboard or a gamepad (J)";
    if (why && this.box) this.toggle();
  }

  /** Open or close the panel, or say why that is impossible. */
  request(): void {
    if (this.button.disabled) toast(this.button.title, true);
    else this.toggle();
  }

  toggle(): void {
    if (this.box) {
      this.leave();
      window.clearInterval(this.timer);
      this.box.remove();
      this.box = null;
      return;
    }
    this.fill();
    const head = h(
      "div",
      { class: "head" },
      h("b", { class: "grow" }, "Helm"),
      h("button", { id: "close-helm", title: "Stop manual control", onclick: () => this.toggle() }, "×"),
    );
    this.box = h(
      "div",
      { class: "window helm", id: "helm" },
      head,
      h(
        "div",
        { class: "section" },
        h("div", { class: "row" }, this.who, this.take),
        this.pilot,
        h("label", { class: "row" }, "max. power", this.gain),
        this.mapping.element,
        h(
          "div",
          { class: "soft" },
          this.any
            ? "Hold ↑ ↓ for ahead and astern, ← → for turns, Page ↑ ↓ for up and down, and comma or period for sideways. " +
                "With a gamepad, hold a shoulder button: the left stick moves the vehicle ahead and turns it, and " +
                "the right stick moves it down and sideways. When you release the keys, the actuators return to neutral " +
                "and a force ends."
            : 'no body in the simulation accepts a pilot (client="optional" or "required")',
        ),
        this.status,
      ),
    );
    Object.assign(this.box.style, { left: "14px", top: "128px", width: "300px", height: "auto" });
    makeDraggable(head, this.box, this.stage);
    this.stage.append(this.box);
    this.showPilot();
    this.timer = window.setInterval(() => this.turn(), PERIOD_MS);
  }

  /** List the bodies that the mapping can drive: a force also acts on a body without a pilot. */
  private fill(): void {
    const chosen = this.store.chosen === null ? "" : this.store.name(this.store.chosen),
      force = this.mapping.kind === "force",
      bodies = (this.store.scene?.bodies ?? []).filter((b) => force || b.client !== "none"),
      kept = bodies.some((b) => b.name === this.who.value) ? this.who.value : chosen;
    setChildren(this.who, ...bodies.map((b) => h("option", { value: b.name, selected: b.name === kept }, b.name)));
    this.any = bodies.length > 0;
  }

  /** Join as the pilot of the body, or leave it. */
  private takeOrLeave(): void {
    if (this.driving) {
      this.leave();
      return;
    }
    this.took = this.program() !== "";
    this.driving = this.who.value;
    this.shown = false;
    this.send(this.driving, this.mapping.demands([0, 0, 0, 0], 0), this.mapping.kind);
  }

  /** Address of the program that drives the body of the list; "": none, or this page drives it. */
  private program(): string {
    const row = this.store.rowOf(this.who.value);
    return row === undefined || this.driving ? "" : driver(this.store, row);
  }

  /** Say who drives, and what taking over does. */
  private showPilot(): void {
    const force = this.mapping.kind === "force",
      address = force ? "" : this.program(),
      mode = this.store.scene?.takeover ?? "no",
      refused = address !== "" && mode === "no";
    if (this.take.disabled !== (refused || !this.any)) this.take.disabled = refused || !this.any;
    setText(this.take, this.driving ? (this.took ? "hand back" : "release") : address ? "take over" : "take control");
    toggleClass(this.pilot, "warm", address !== "");
    setText(
      this.pilot,
      force
        ? "The force acts in addition to the actuators; the pilot continues to drive."
        : !address
          ? this.driving && this.took && mode === "return"
            ? "The program is waiting. It resumes driving when you hand back control or close this window."
            : ""
          : `The program at ${address} is driving ${this.who.value}. ` +
            (mode === "return"
              ? "If you take over, the program waits until you hand back control."
              : mode === "yes"
                ? "If you take over, the server disconnects the program permanently."
                : 'The server refuses a second pilot; to allow one, set <network takeover="return"> in its configuration.'),
    );
  }

  private leave(): void {
    if (this.driving) this.send(this.driving, null, this.mapping.kind);
    this.driving = "";
    this.keys.clear();
  }

  /** Axes demanded by keys and gamepad; null: no input is held. */
  private axes(): ControlAxes | null {
    const axes: ControlAxes = [0, 0, 0, 0];
    for (const code of this.keys) {
      const [axis, sign] = KEYS[code]!;
      axes[axis]! += sign;
    }
    const pad = [...(navigator.getGamepads?.() ?? [])].find((p) => p && HELD.some((k) => p.buttons[k]?.pressed));
    if (pad)
      [-(pad.axes[1] ?? 0), pad.axes[2] ?? 0, pad.axes[3] ?? 0, pad.axes[0] ?? 0].forEach((v, k) => {
        axes[k]! += this.mapping.filtered(v);
      });
    return pad || this.keys.size ? (axes.map((v) => Math.max(-1, Math.min(1, v))) as ControlAxes) : null;
  }

  /** Show the settings of the mapping for the body of the list. */
  private showMapping(): void {
    const { scene, kit } = this.store,
      name = this.who.value,
      model = scene?.models[scene.bodies.find((b) => b.name === name)?.model ?? ""],
      known = kit !== null && kit.row === this.store.rowOf(name) ? kit.actuators.map((a) => a.name) : [];
    this.mapping.show(name, model, known);
  }

  private turn(): void {
    this.showPilot();
    const body = [...this.store.bodies.values()].find((b) => b.name === this.driving);
    if (body && !this.shown) {
      this.shown = true;
      this.choose(body.row);
    }
    this.showMapping();
    const lost = this.store.lost !== "",
      axes = body && !lost ? this.axes() : null;
    if (lost && this.driving) this.leave(); // the user can take it again
    const selected = body !== undefined && this.store.chosen === body.row;
    setText(
      this.status,
      lost
        ? "No data: manual control suspended"
        : !this.driving
          ? ""
          : !body
            ? `waiting for ${this.driving}…`
            : !selected
              ? "select this body to drive it"
              : axes
                ? axes.map((v, k) => `${["ahead", "starboard", "down", "turn"][k]} ${v.toFixed(1)}`).join("  ")
                : "Idle: no key held",
    );
    if (this.box) toggleClass(this.box, "alive", axes !== null);
    if (!selected || (!axes && !this.moved)) return;
    this.moved = axes !== null; // send the release once
    const gain = Number(this.gain.value);
    this.send(this.driving, this.mapping.demands(axes ?? [0, 0, 0, 0], gain), this.mapping.kind);
  }
}
