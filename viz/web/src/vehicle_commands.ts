// Commands to the selected vehicle, and the answer of its program: buttons in the details, and a menu on the chart.

import { haloText } from "./canvas";
import { bodyColour, h, setText, toast, toggleClass } from "./dom";
import { depthAt, formatOffset } from "./geodesy";
import { whyNoCommands } from "./permissions";
import type { Chart } from "./chart";
import type { CommandAnswerMessage, Notice, VehicleCommandRequest } from "./page_protocol";
import type { SceneStore } from "./scene_store";

type Action = "goto" | "loiter" | "return" | "pause" | "resume" | "abort";
type Point = [north: number, east: number];
export type SendVehicleCommand = (command: Omit<VehicleCommandRequest, "do">) => void;

interface Sent {
  number: number;
  label: string;
  at: number; // performance.now()
  answer: { ok: boolean; text: string } | null;
}
const LABELS: Record<Action, string> = {
  goto: "go to",
  loiter: "loiter",
  return: "return",
  pause: "pause",
  resume: "resume",
  abort: "abort",
};
const TITLES: Record<Action, string> = {
  goto: "Go to a point on the chart, then loiter there: press, then click the chart; or right-click the chart",
  loiter: "Loiter here: hold the position, or circle",
  return: "Return to where the vehicle started, and loiter there",
  pause: "Pause the mission: loiter here until it is resumed",
  resume: "Continue the mission",
  abort: "Abort: end the mission and stop; an underwater vehicle surfaces",
};
const CONFIRM_MS = 4000,
  LONG_PRESS_MS = 600,
  NEAR_PX = 8;
/** Notices about answers to commands: the page that sent the command shows the answer itself. */
const ANSWER = /^(goto|loiter|return|pause|resume|abort): (accepted|refused|not supported)/;

export class VehicleCommands {
  readonly element = h("div", { class: "section", id: "vehicle-commands" });
  private readonly buttons = new Map<Action, HTMLButtonElement>();
  private readonly readout = h("div", { class: "answer num", id: "command-answer", role: "status" });
  private readonly sent = new Map<number, Sent>(); // by row
  private readonly menu = h("div", { class: "window context hidden", id: "chart-menu", role: "menu" });
  private number = 0;
  private armed = 0; // until when a second press aborts
  private picking = false;

  constructor(
    private readonly store: SceneStore,
    private readonly chart: Chart,
    private readonly showChart: () => void,
    private readonly send: SendVehicleCommand,
  ) {
    for (const action of Object.keys(LABELS) as Action[]) {
      const button = h("button", { id: `command-${action}`, onclick: () => this.press(action) }, LABELS[action]);
      this.buttons.set(action, button);
    }
    this.element.append(
      h("h3", {}, "Commands"),
      h("div", { class: "row wrap" }, ...this.buttons.values()),
      this.readout,
    );
    this.listen();
    chart.overlays.push((c) => this.draw(c));
  }

  /** The menu of the chart, to be placed over it. */
  get overlay(): HTMLElement {
    return this.menu;
  }

  private press(action: Action): void {
    if (action === "goto") {
      this.pick(!this.picking);
      if (this.picking) toast(`click where ${this.name} is to go, or press Esc to cancel`);
    } else if (action === "abort" && performance.now() > this.armed) this.armed = performance.now() + CONFIRM_MS;
    else this.command(action, null);
    this.update();
  }

  private get name(): string {
    return this.store.chosen === null ? "" : this.store.name(this.store.chosen);
  }

  /** Take the next click on the chart as the point to go to. */
  private pick(on: boolean): void {
    this.picking = on;
    if (on) this.showChart();
    this.chart.canvas.classList.toggle("picking", on);
  }

  private command(action: Action, point: Point | null, depth = NaN, speed = 0): void {
    const row = this.store.chosen;
    if (row === null) return;
    this.armed = 0;
    const k = this.store.index.get(row),
      down = Number.isFinite(depth) ? depth : k === undefined ? 0 : Math.max(0, this.store.ned[3 * k + 2]!),
      number = ++this.number;
    this.sent.set(row, { number, label: LABELS[action], at: performance.now(), answer: null });
    this.send({ row, number, action, point: point ? [...point, down, speed] : null });
    this.close();
    this.update();
  }

  /** Take the answer of a vehicle's program. */
  answer(m: CommandAnswerMessage): void {
    const sent = this.sent.get(m.row);
    if (sent?.number === m.number) sent.answer = { ok: m.ok, text: m.text };
    toast(`${this.store.name(m.row)}: ${m.text}`, !m.ok);
    this.update();
  }

  /** True if this page shows the content of a notice in another way. */
  shows(notice: Notice): boolean {
    if (notice.text.startsWith("mission: ")) return true; // in the list of vehicles
    const row = this.store.rowOf(notice.name);
    return ANSWER.test(notice.text) && row !== undefined && this.sent.has(row);
  }

  update(): void {
    const { hello, chosen } = this.store,
      why = hello ? whyNoCommands(hello) : "no connection",
      buoy = chosen !== null && this.store.bodies.get(chosen)?.type === "buoy";
    toggleClass(this.element, "hidden", chosen === null || buoy);
    if (chosen === null || why) this.pick(false);
    const sure = performance.now() < this.armed;
    for (const [action, button] of this.buttons) {
      if (button.disabled !== (why !== "")) button.disabled = why !== "";
      const title = why || TITLES[action];
      if (button.title !== title) button.title = title;
    }
    setText(this.buttons.get("abort")!, sure ? "really abort?" : LABELS.abort);
    toggleClass(this.buttons.get("abort")!, "bad", sure);
    toggleClass(this.buttons.get("goto")!, "on", this.picking);
    const sent = chosen === null ? undefined : this.sent.get(chosen);
    setText(
      this.readout,
      !sent
        ? ""
        : sent.answer
          ? `${sent.label}: ${sent.answer.text}`
          : `${sent.label}: waiting for the answer, ${Math.floor((performance.now() - sent.at) / 1000)} s`,
    );
    toggleClass(this.readout, "bad", sent?.answer?.ok === false);
    toggleClass(this.readout, "good", sent?.answer?.ok === true);
  }

  // -- the chart ---------------------------------------------------------------------------------------------------

  private listen(): void {
    const canvas = this.chart.canvas;
    let timer = 0,
      swallow = false, // the release that follows does nothing on the chart
      from: [number, number] = [0, 0];
    canvas.addEventListener("contextmenu", (e) => {
      e.preventDefault();
      this.open(e);
    });
    // before the chart, which would select or place something
    canvas.addEventListener(
      "pointerdown",
      (e) => {
        this.close();
        swallow = e.button !== 0 || this.picking;
        if (swallow) e.stopImmediatePropagation();
        if (this.picking && e.button === 0) {
          this.pick(false);
          this.command("goto", this.chart.at(e));
          return;
        }
        from = [e.clientX, e.clientY];
        if (e.pointerType === "touch" && !swallow)
          timer = window.setTimeout(() => {
            swallow = true;
            this.open(e);
          }, LONG_PRESS_MS);
      },
      true,
    );
    canvas.addEventListener(
      "pointerup",
      (e) => {
        clearTimeout(timer);
        if (swallow) e.stopImmediatePropagation();
      },
      true,
    );
    canvas.addEventListener("pointermove", (e) => {
      if (Math.hypot(e.clientX - from[0], e.clientY - from[1]) > NEAR_PX) clearTimeout(timer);
    });
    canvas.addEventListener("pointercancel", () => clearTimeout(timer));
    window.addEventListener(
      "keydown",
      (e) => {
        if (e.key !== "Escape" || (!this.picking && this.menu.classList.contains("hidden"))) return;
        e.stopImmediatePropagation(); // Esc ends only this
        this.pick(false);
        this.close();
        this.update();
      },
      true,
    );
    window.addEventListener("pointerdown", (e) => {
      if (e.target !== canvas && !this.menu.contains(e.target as Node)) this.close();
    });
  }

  private close(): void {
    this.menu.classList.add("hidden");
  }

  /** Open the menu at a point of the chart. */
  private open(e: MouseEvent): void {
    const point = this.chart.at(e),
      row = this.store.chosen,
      why = this.store.hello ? whyNoCommands(this.store.hello) : "no connection",
      body = row === null ? undefined : this.store.bodies.get(row);
    const place = `${formatOffset(point[0], "NS", 1)}  ${formatOffset(point[1], "EW", 1)}`;
    if (!body || body.type === "buoy" || why)
      this.menu.replaceChildren(
        h("div", { class: "section soft" }, why || "Select the vehicle that is to receive the commands"),
      );
    else {
      const number = (label: string, value: string): HTMLInputElement =>
          h("input", { type: "number", step: "any", min: 0, value, "aria-label": label, placeholder: "its own" }),
        k = this.store.index.get(body.row),
        down = k === undefined ? 0 : this.store.ned[3 * k + 2]!,
        flies = body.type === "aircraft",
        depth = number(flies ? "Height in m" : "Depth in m", Math.max(0, flies ? -down : down).toFixed(1)),
        speed = number("Speed in m/s", ""),
        bed = depthAt(this.store.scene?.bed, ...point),
        // the field of a surface vessel's depth is not shown
        below = (): number => (flies ? -depth.valueAsNumber : body.type === "underwater" ? depth.valueAsNumber : 0),
        item = (action: Action, text: string, at: Point | null): HTMLElement =>
          h(
            "button",
            {
              role: "menuitem",
              title: TITLES[action],
              onclick: () => this.command(action, at, below(), speed.valueAsNumber || 0),
            },
            text,
          );
      this.menu.replaceChildren(
        h("div", { class: "head" }, h("b", {}, body.name), h("span", { class: "soft num" }, place)),
        h(
          "div",
          { class: "section" },
          flies
            ? h("label", { class: "row" }, "height, m", depth)
            : body.type === "underwater"
              ? h("label", { class: "row" }, `depth, m${bed === null ? "" : ` (bed ${bed.toFixed(0)})`}`, depth)
              : null,
          h("label", { class: "row" }, "speed, m/s", speed),
          item("goto", "go to here", point),
          item("loiter", "loiter here", point),
          item("return", "return to its start", null),
          item("pause", "pause the mission", null),
          item("resume", "resume the mission", null),
        ),
      );
    }
    const box = this.chart.canvas.getBoundingClientRect();
    this.menu.classList.remove("hidden");
    const left = Math.min(e.clientX - box.left, box.width - this.menu.offsetWidth - 6),
      top = Math.min(e.clientY - box.top, box.height - this.menu.offsetHeight - 6);
    Object.assign(this.menu.style, { left: `${Math.max(left, 6)}px`, top: `${Math.max(top, 6)}px` });
  }

  /** Draw where the vehicles go, other than to waypoints of their missions. */
  private draw(c: CanvasRenderingContext2D): void {
    for (const [row, m] of Object.entries(this.store.fleet.missions)) {
      const k = this.store.index.get(Number(row));
      if (!m.target || m.mode === "mission" || k === undefined) continue;
      const [x, y] = this.chart.px(m.target[0]!, m.target[1]!),
        [x0, y0] = this.chart.px(this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!);
      c.save();
      c.strokeStyle = c.fillStyle = bodyColour(Number(row));
      c.lineWidth = 1.5;
      c.setLineDash([5, 4]);
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x, y);
      c.stroke();
      c.setLineDash([]);
      c.beginPath();
      c.arc(x, y, 6, 0, 7);
      c.moveTo(x - 9, y);
      c.lineTo(x + 9, y);
      c.moveTo(x, y - 9);
      c.lineTo(x, y + 9);
      c.stroke();
      haloText(c, m.mode, x + 10, y - 4);
      c.restore();
    }
  }
}
