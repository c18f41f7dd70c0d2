// Missions of several vehicles planned together: their predicted positions under a time slider, and conflicts on the
// chart and in a list.

import { haloText } from "./canvas";
import type { Chart, MissionDraft } from "./chart";
import { bodyColour, cssVariable, formatTime, h, setChildren, setText, toast } from "./dom";
import { type Conflict, durationOf, findConflicts, type Plan, planOf, positionAt } from "./planning";
import type { SceneStore } from "./scene_store";

const RECOMPUTE_MS = 1000, // a second: vehicles move while their missions are planned
  MOST_LISTED = 100,
  STEPS = 1000, // of the slider
  LEAST_FREE = 120; // px: a narrower part of the chart beside this panel is not used

export interface PlanningActions {
  send(vehicle: string): boolean;
  save(): void;
  changed(): void;
}

export class PlanningPanel {
  private separation = 10; // m
  private share = 0; // of the slider
  private plans: Plan[] = [];
  private conflicts: Conflict[] = [];
  private computedAt = -Infinity;
  private listed = "";
  private readonly slider: HTMLInputElement;
  private readonly clock = h("span", { class: "num", id: "plan-time" });
  private readonly summary = h("div", { class: "soft", id: "plan-summary", role: "status" });
  private readonly list = h("tbody", { id: "conflicts" });
  private readonly element: HTMLElement;

  constructor(
    private readonly store: SceneStore,
    private readonly chart: Chart,
    private readonly draft: () => MissionDraft | null,
    private readonly actions: PlanningActions,
  ) {
    this.slider = h("input", {
      type: "range",
      id: "plan-slider",
      class: "grow",
      min: 0,
      max: STEPS,
      value: "0",
      "aria-label": "Time in the plan",
      oninput: () => this.moveTo(Number(this.slider.value) / STEPS),
    });
    const separation = h("input", {
      type: "number",
      id: "plan-separation",
      value: this.separation,
      min: 0,
      onchange: () => {
        if (separation.valueAsNumber > 0) this.separation = separation.valueAsNumber;
        else toast("the separation must be a positive number of metres", true);
        separation.value = String(this.separation);
        this.compute();
      },
    });
    const title = "Add the existing missions of all vehicles without new waypoints to the plan";
    this.element = h(
      "div",
      { id: "planning" },
      h(
        "div",
        { class: "row" },
        h("label", { class: "row" }, "separation m", separation),
        h("button", { id: "plan-existing", title, onclick: () => this.takeExisting() }, "add existing missions"),
      ),
      h("div", { class: "row" }, this.slider, this.clock),
      this.summary,
      h("div", { class: "list conflicts" }, h("table", {}, this.list)),
      h(
        "div",
        { class: "row" },
        h(
          "button",
          { id: "send-all", title: "Send each vehicle its waypoints", onclick: () => this.sendAll() },
          "send all",
        ),
        h(
          "button",
          { id: "save-all", title: "Save the missions of all vehicles in one file", onclick: () => actions.save() },
          "save all",
        ),
      ),
    );
    chart.overlays.push((c) => this.draw(c));
  }

  controls(): HTMLElement {
    this.compute();
    return this.element;
  }

  private takeExisting(): void {
    const draft = this.draft()!;
    for (const b of this.store.scene?.bodies ?? [])
      if (b.waypoints.length && !draft.waypoints.get(b.name)?.length)
        draft.waypoints.set(b.name, structuredClone(b.waypoints));
    this.actions.changed();
  }

  /** Show the predicted positions at a fraction of the longest plan. */
  private moveTo(share: number): void {
    this.share = share;
    this.showTime();
  }

  private get duration(): number {
    return Math.max(0, ...this.plans.map(durationOf));
  }

  private showTime(): void {
    setText(this.clock, `+${formatTime(this.share * this.duration, 0)}`);
  }

  /** Predict again, at most once per second unless the draft has changed. */
  update(): void {
    if (performance.now() - this.computedAt > RECOMPUTE_MS) this.compute();
  }

  private compute(): void {
    this.computedAt = performance.now();
    this.plans = [...(this.draft()?.waypoints ?? [])]
      .filter(([, points]) => points.length)
      .map(([name, points]) =>
        planOf(name, this.store.placeOf(name) ?? [points[0]![0], points[0]![1], points[0]![2]], points),
      );
    this.conflicts = findConflicts(this.plans, this.separation);
    this.showTime();
    const count = this.conflicts.length;
    setText(
      this.summary,
      this.plans.length
        ? `${this.plans.length} vehicles, ${formatTime(this.duration, 0)}; ${count || "no"} conflict${count === 1 ? "" : "s"}`
        : "no plans: draw waypoints for several vehicles",
    );
    const texts = this.conflicts.slice(0, MOST_LISTED).map((c) => textOf(c));
    if (texts.join("\n") === this.listed) return; // a pressed row must still exist when the pointer is released
    this.listed = texts.join("\n");
    setChildren(
      this.list,
      ...texts.map((text, k) =>
        h(
          "tr",
          {},
          h(
            "td",
            {},
            h(
              "button",
              { class: "small", title: "Show this conflict on the chart", onclick: () => this.show(k) },
              text,
            ),
          ),
        ),
      ),
    );
  }

  private show(k: number): void {
    const c = this.conflicts[k];
    if (!c) return;
    const share = this.duration ? Math.min(c.time / this.duration, 1) : 0;
    this.slider.value = String(share * STEPS);
    this.moveTo(share);
    const [p, q] = c.positions,
      { scale } = this.chart.looks,
      stage = this.chart.canvas.getBoundingClientRect(),
      free = this.element.getBoundingClientRect().left - stage.left, // left of this panel
      aside = free > LEAST_FREE ? (stage.width - free) / 2 / scale : 0;
    this.chart.look([(p[0] + q[0]) / 2, (p[1] + q[1]) / 2 + aside], scale);
  }

  private sendAll(): void {
    const count = this.conflicts.length;
    if (!this.plans.length) toast("no plans to send: draw waypoints for a vehicle", true);
    else if (
      !count ||
      window.confirm(`${count === 1 ? "1 conflict remains" : `${count} conflicts remain`}. Send the missions anyway?`)
    ) {
      const sent = this.plans.filter((p) => this.actions.send(p.name));
      if (sent.length === this.plans.length) toast(`sent ${sent.length} missions; the answers appear under Notices`);
    }
  }

  private draw(c: CanvasRenderingContext2D): void {
    if (!this.element.isConnected) return;
    c.font = "600 11px system-ui, sans-serif";
    const time = this.share * this.duration;
    for (const plan of this.plans) {
      const at = positionAt(plan, time),
        [x, y] = this.chart.px(at[0], at[1]);
      c.strokeStyle = c.fillStyle = bodyColour(this.store.rowOf(plan.name) ?? 0);
      c.lineWidth = 2;
      c.beginPath();
      c.arc(x, y, 7, 0, 7);
      c.stroke();
      if (time > 0) haloText(c, plan.name, x + 10, y + 4);
    }
    c.strokeStyle = c.fillStyle = cssVariable("--bad");
    for (const conflict of this.conflicts.slice(0, MOST_LISTED)) {
      const [p, q] = conflict.positions.map((at) => this.chart.px(at[0], at[1])) as [
          [number, number],
          [number, number],
        ],
        [x, y] = [(p[0] + q[0]) / 2, (p[1] + q[1]) / 2];
      c.lineWidth = 2.4;
      c.beginPath();
      c.arc(x, y, Math.max(10, Math.hypot(p[0] - q[0], p[1] - q[1]) / 2 + 6), 0, 7);
      c.moveTo(...p);
      c.lineTo(...q);
      c.stroke();
      haloText(c, textOf(conflict), x + 14, y - 10);
    }
  }
}

/** Time, least distance, and names. */
function textOf(c: Conflict): string {
  return `+${formatTime(c.time, 0)}  ${c.distance.toFixed(1)} m  ${c.names.join(" – ")}`;
}
