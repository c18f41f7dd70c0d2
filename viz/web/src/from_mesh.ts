// A model computed from the mesh of the open hull file by `wavesim vehicles from-mesh`, with its progress.

import { h, setChildren, toast } from "./dom";
import { getJson, postJson } from "./http";
import type { MeshJobState } from "./page_protocol";

const POLL_MS = 400;

export interface MeshHost {
  /** Values of the request that come from the hull file; null if none is open. */
  meshRequest(): Record<string, unknown> | null;
  /** Mass in kg to suggest; null if unknown. */
  mass(): number | null;
  /** Open a model that was written to the working folder. */
  openSaved(name: string): Promise<void>;
}

export class MeshComputation {
  readonly element = h("div", { id: "from-mesh", class: "hidden" });
  private readonly mass = h("input", { id: "from-mesh-mass", type: "number", min: "0", step: "any" });
  private readonly speed = h("input", {
    id: "from-mesh-speed",
    type: "number",
    min: "0.05",
    step: "any",
    value: "1.5",
  });
  private readonly kind = h(
    "select",
    { id: "from-mesh-type" },
    ...["underwater", "surface"].map((t) => h("option", { value: t }, t)),
  );
  private readonly bar = h("progress", { id: "from-mesh-progress", max: "1", value: "0", "aria-label": "Progress" });
  private readonly step = h("div", { class: "soft", id: "from-mesh-step", role: "status" });
  private readonly run = h(
    "button",
    { id: "from-mesh-start", class: "on", onclick: () => void this.start() },
    "compute from the mesh",
  );
  private readonly stop = h("button", { id: "from-mesh-cancel", onclick: () => void this.cancel() }, "cancel");
  private running = false;

  constructor(private readonly host: MeshHost) {
    const key = (text: string, input: HTMLElement): HTMLElement =>
      h("div", { class: "key" }, h("label", { for: input.id }, text), input);
    setChildren(
      this.element,
      h(
        "details",
        {},
        h("summary", {}, "Compute a model from the mesh"),
        h(
          "div",
          { class: "soft" },
          "Computes added mass, drag, balance and, for a floating hull, wave forces. This takes minutes.",
        ),
        key("mass, kg", this.mass),
        key("type", this.kind),
        key("design speed, m/s", this.speed),
        h("div", { class: "row" }, this.run, this.stop),
        this.bar,
        this.step,
      ),
    );
    this.show("", 0);
  }

  /** Show the form while a file is open, with a suggested mass. */
  draw(): void {
    const open = this.host.meshRequest() !== null;
    this.element.classList.toggle("hidden", !open && !this.running);
    const mass = this.host.mass();
    if (!this.mass.value && mass) this.mass.value = String(+mass.toPrecision(4));
  }

  private show(text: string, share: number): void {
    this.step.textContent = text;
    this.bar.value = share;
    this.bar.classList.toggle("hidden", !this.running);
    this.stop.classList.toggle("hidden", !this.running);
    this.run.disabled = this.running;
  }

  private async start(): Promise<void> {
    const request = this.host.meshRequest();
    if (!request || this.running) return;
    const state = await postJson<MeshJobState>("/api/from-mesh", {
      ...request,
      mass: Number(this.mass.value),
      speed: Number(this.speed.value),
      type: this.kind.value,
    });
    if (!state) return;
    this.running = true;
    this.show(state.step, 0);
    await this.follow();
  }

  private async follow(): Promise<void> {
    for (;;) {
      await new Promise((done) => window.setTimeout(done, POLL_MS));
      const state = await getJson<MeshJobState>("/api/from-mesh");
      if (state?.state === "running") {
        this.show(`${state.step}${state.text ? `: ${state.text}` : ""}`, state.share);
        continue;
      }
      this.running = false;
      if (state) await this.finish(state);
      else this.show("the viewer's server does not answer", 0);
      return;
    }
  }

  private async finish(state: MeshJobState): Promise<void> {
    if (state.state === "done") {
      this.show(`wrote ${state.files.join(", ")} to the working folder`, 1);
      setChildren(this.step, this.step.textContent, ...state.notes.map((n) => h("div", {}, `note: ${n}`)));
      await this.host.openSaved(state.name);
      toast(`opened ${state.name}, computed from the mesh`);
    } else if (state.state === "failed") {
      this.show(state.error, 0);
      toast(state.error, true);
    } else this.show("cancelled", 0);
  }

  private async cancel(): Promise<void> {
    await postJson<MeshJobState>("/api/from-mesh-cancel", {});
  }
}
