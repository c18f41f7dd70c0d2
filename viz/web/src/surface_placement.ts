// Thrusters, fins and instruments that are placed by a click on the surface of the hull.

import { h, setChildren, toast } from "./dom";
import type { SurfacePoint } from "./hull_drawing";
import type { ModelHost } from "./hull_panel";
import { partElement } from "./hull_parts";
import type { ModelEditor3D } from "./model_editor3d";
import type { HullPartFrame } from "./page_protocol";
import { nameOf } from "./xml_tree";

const KINDS = ["thruster", "fin", "rudder"];
const SNAP = Math.cos((12 * Math.PI) / 180); // a normal within 12 degrees of a body axis is along this axis
const SPAN = 0.12; // of a new fin, as a share of the length of the model

/** The body axis that a direction almost follows, or the direction itself. */
function snapped(direction: number[]): number[] {
  const k = direction.findIndex((v) => Math.abs(v) > SNAP);
  return direction.map((v, i) => (k < 0 ? v : i === k ? Math.sign(v) : 0) + 0);
}

/**
 * Describe a point of the surface as a part of which an element is made, for a model of a given length. The thrust
 * points into the surface. A fin stands on the surface with its chord ahead: its position is half its span outside.
 */
export function partAt(what: string, { position, normal }: SurfacePoint, length: number): HullPartFrame {
  const out = snapped(normal),
    fin = what === "fin" || what === "rudder",
    span = fin ? SPAN * length : 0,
    centre = position.map((v, k) => v + 0.5 * span * out[k]!);
  // the force of a fin is across its span and its chord, and its positive direction is starboard or down
  const across = Math.hypot(out[1]!, out[2]!),
    side = across > 1e-6 ? [0, -out[2]! / across, out[1]! / across] : [0, 1, 0],
    sign = side[1]! + side[2]! < 0 ? -1 : 1;
  return {
    name: what,
    centre,
    size: [span, span, span],
    axis: out.map((v) => -v + 0),
    normal: side.map((v) => sign * v + 0),
    area: 2 * span * span,
  };
}

export class SurfacePlacement {
  readonly element = h("div", { class: "row", id: "surface-placement" });
  private what = "";

  constructor(
    private readonly bench: ModelEditor3D,
    private readonly host: ModelHost,
  ) {
    window.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.choose("");
    });
  }

  /** Draw the buttons for the present model. */
  draw(): void {
    const surface = this.bench.hull.surface,
      sensors = this.host.schema()["Sensors"]?.children.map((c) => c.name) ?? [];
    if (!surface) this.choose("", false);
    this.element.classList.toggle("hidden", !surface);
    const sensor = h(
      "select",
      { id: "place-sensor", "aria-label": "Sensor to place", onchange: () => this.choose(sensor.value) },
      h("option", { value: "" }, "sensor…"),
      ...["transducer", ...sensors].map((s) => h("option", { value: s, selected: s === this.what }, s)),
    );
    const button = (what: string): HTMLElement =>
      h(
        "button",
        {
          id: `place-${what}`,
          class: what === this.what ? "on" : "",
          "aria-pressed": String(what === this.what),
          onclick: () => this.choose(what === this.what ? "" : what),
        },
        what,
      );
    setChildren(
      this.element,
      h("span", { class: "soft" }, this.what ? "click a point of the surface (Esc ends)" : "place on the surface"),
      ...KINDS.map(button),
      sensor,
    );
  }

  private choose(what: string, anew = true): void {
    if (what === this.what) return;
    this.what = what;
    this.bench.onSurface = what ? (point): void => this.place(point) : null;
    if (anew) this.draw();
  }

  private place(point: SurfacePoint): void {
    const model = this.host.model();
    if (!model) {
      toast("open a model first, or press 'new model'", true);
      return;
    }
    const part = partAt(this.what, point, this.bench.length),
      { element } = partElement(this.what, part, model, this.host.sensors(), this.host.schema());
    this.host.changed(element);
    toast(`${element.tag} ${nameOf(element)} was added where you clicked`);
  }
}
