// The propagation panel: rays between two bodies or points at the time that is shown, transmission loss from the first
// one, and the sound speed in between; in a section, in a table, on the chart and in the 3D view. The viewer's server
// has them computed while the panel is open.

import { haloText, prepareCanvas } from "./canvas";
import type { Triple } from "./coordinate_frames";
import { bodyColour, cssVariable, formatTime, h, setText, toast, toggleClass } from "./dom";
import { requestJson } from "./http";
import type { AcousticsRequest, ErrorAnswer, FieldAnswer, RaysAnswer, SoundRay } from "./page_protocol";
import type { Propagation3D } from "./propagation3d";
import { EndSelect, PointPicker, pointName } from "./propagation_ends";
import { NewestRequests } from "./propagation_requests";
import { drawPlane, drawSection, fieldPicture, firstRay, type Frame, type Mark, valueAt } from "./propagation_section";
import { PropagationTable } from "./propagation_table";
import {
  type End,
  type Field,
  FIRST_VIEW,
  firstEnds,
  isPropagationView,
  positionOf,
  type PropagationView,
} from "./propagation_view";
import type { SceneStore } from "./scene_store";
import type { Stage } from "./stage";

const STORED = "wavesim-propagation",
  FIELD_NAMES: Record<Field, string> = {
    speed: "sound speed",
    loss: "transmission loss",
    plane: "transmission loss at a depth",
  },
  /** Simulation time after which water and weather may have changed, s. */
  OLD_S = 10,
  NO_RAYS: SoundRay[] = [];

/** Where and when an answer applies. */
interface Situation {
  from: Triple;
  to: Triple;
  names: [string, string];
  colours: [string, string];
  time: number;
}
interface Asked extends Situation {
  request: AcousticsRequest;
}
type Answer = (RaysAnswer | FieldAnswer | ErrorAnswer) & { of: Asked };

async function ask(asked: Asked): Promise<Answer> {
  const answer = await requestJson<RaysAnswer | FieldAnswer>("/acoustics", asked.request);
  return { ...answer, of: asked };
}

export class Propagation {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "section", class: "drawn", role: "img" });
  private readonly state = h("span", { class: "soft num", id: "propagation-state", role: "status" });
  private readonly readout = h("div", { class: "tip hidden" });
  private readonly table: PropagationTable;
  private readonly source: EndSelect;
  private readonly receiver: EndSelect;
  private readonly field: HTMLSelectElement;
  private readonly depth: HTMLInputElement;
  private readonly depthBox: HTMLElement;
  private readonly rays = this.box("Show the rays", (on) => (this.shown.rays = on));
  private readonly inSpace = this.box("Show the field in the 3D view", (on) => (this.shown.inSpace = on));
  private readonly requests = new NewestRequests<"rays" | "field", Asked, Answer>(ask, (kind, { answer }) =>
    this.take(kind, answer),
  );
  private shown: PropagationView = { ...FIRST_VIEW };
  private space: Promise<Propagation3D> | null = null;
  private answers: { rays?: RaysAnswer & { of: Asked }; field?: FieldAnswer & { of: Asked } } = {};
  private errors: { rays?: string; field?: string } = {};
  private image: HTMLCanvasElement | null = null; // of the field
  private chosen: number | null = null; // ray at the pointer
  private frame: Frame | null = null;
  private open = false;

  constructor(
    private readonly store: SceneStore,
    private readonly stage: Pick<Stage, "chart" | "points" | "showChart">,
    private readonly changed: () => void,
  ) {
    const picker = new PointPicker(stage.chart, () => stage.showChart()),
      end = (label: string, id: string, set: (end: End | null) => void): EndSelect => {
        const select = new EndSelect(store, picker, label, id, () => {
          set(select.value);
          this.edited();
        });
        return select;
      };
    this.source = end("from the source", "propagation-from", (e) => (this.shown.source = e));
    this.receiver = end("to the receiver", "propagation-to", (e) => (this.shown.receiver = e));
    this.field = h(
      "select",
      {
        id: "propagation-field",
        "aria-label": "Field behind the rays",
        onchange: () => {
          this.shown.field = this.field.value as Field;
          this.edited();
        },
      },
      ...Object.entries(FIELD_NAMES).map(([value, text]) => h("option", { value }, text)),
    );
    this.depth = h("input", {
      type: "number",
      min: 0,
      step: "any",
      class: "depth",
      id: "propagation-depth",
      "aria-label": "Depth of the horizontal plane, m",
      onchange: () => {
        if (this.depth.valueAsNumber >= 0) this.shown.depth = this.depth.valueAsNumber;
        this.edited();
      },
    });
    this.depthBox = h("label", { class: "row" }, this.depth, "m");
    this.table = new PropagationTable((ray) => {
      this.chosen = ray;
      this.draw();
      this.drawSpace();
    });
    const swap = h("button", { title: "Exchange the ends", id: "propagation-swap", onclick: () => this.swap() }, "⇄");
    this.element = h(
      "div",
      { class: "pane", id: "propagation" },
      h(
        "div",
        { class: "events-head" },
        this.source.element,
        swap,
        this.receiver.element,
        h("label", { class: "row" }, this.rays, "rays"),
        this.field,
        this.depthBox,
        h("label", { class: "row" }, this.inSpace, "in 3D"),
        this.state,
      ),
      h("div", { class: "beside" }, h("div", { class: "sound-place" }, this.canvas, this.readout), this.table.element),
    );
    this.canvas.addEventListener("pointermove", (e) => this.read(e.offsetX, e.offsetY));
    this.canvas.addEventListener("pointerleave", () => toggleClass(this.readout, "hidden", true));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    stage.chart.overlays.push((c) => this.drawOnChart(c));
    this.restore();
  }

  private box(title: string, set: (on: boolean) => void): HTMLInputElement {
    const box = h("input", {
      type: "checkbox",
      title,
      onchange: () => {
        set(box.checked);
        this.edited();
      },
    });
    return box;
  }

  /** What the panel shows. */
  get view(): PropagationView {
    return { ...this.shown };
  }
  set view(view: PropagationView) {
    this.shown = { ...view };
    this.edited();
  }

  private restore(): void {
    let stored: unknown = null;
    try {
      stored = JSON.parse(localStorage.getItem(STORED) ?? "null");
    } catch {
      /* the stored value does not come from this page */
    }
    if (isPropagationView(stored)) this.shown = stored;
    this.fill();
  }

  private swap(): void {
    [this.shown.source, this.shown.receiver] = [this.shown.receiver, this.shown.source];
    this.edited();
  }

  /** Show and remember a change by the user. */
  private edited(): void {
    this.fill();
    localStorage.setItem(STORED, JSON.stringify(this.shown));
    if (this.open) this.update();
    this.changed();
  }

  /** Fill the fields of the form. */
  private fill(): void {
    const { source, receiver, field, depth, rays, inSpace } = this.shown;
    this.source.value = source;
    this.receiver.value = receiver;
    this.field.value = field;
    this.rays.checked = rays;
    this.inSpace.checked = inSpace;
    if (document.activeElement !== this.depth) this.depth.value = String(depth);
    toggleClass(this.depthBox, "hidden", field !== "plane");
  }

  /** The panel is closed: compute and draw nothing. */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.drawSpace();
    this.changed();
  }

  update(): void {
    this.open = true;
    if ((this.shown.source === null || this.shown.receiver === null) && this.store.bodies.size) {
      const [source, receiver] = firstEnds(this.store);
      this.shown.source ??= source;
      this.shown.receiver ??= receiver;
      this.fill();
    }
    this.source.update();
    this.receiver.update();
    const now = this.situation();
    this.want(now);
    this.requests.step();
    this.showState(now);
    this.draw();
  }

  private situation(): Situation | string {
    const { source, receiver } = this.shown;
    if (!this.store.scene || !this.store.last) return "waiting for the first data";
    if (source === null || receiver === null) return "select two ends";
    if (source === receiver) return "both ends are the same; select two different ends";
    const ends = [source, receiver].map((end) => positionOf(this.store, end)),
      wrong = ends.find((p) => typeof p === "string");
    if (typeof wrong === "string") return wrong;
    const name = (end: End): string => (typeof end === "string" ? end : pointName(end)),
      colour = (end: End): string =>
        typeof end === "string" ? bodyColour(this.store.rowOf(end) ?? 0) : cssVariable("--warm");
    return {
      from: ends[0] as Triple,
      to: ends[1] as Triple,
      names: [name(source), name(receiver)],
      colours: [colour(source), colour(receiver)],
      time: this.store.time,
    };
  }

  /** Tell the requests what the panel shows now. */
  private want(now: Situation | string): void {
    const { field, depth, rays } = this.shown;
    if (typeof now === "string") {
      this.requests.want("rays", "", null);
      this.requests.want("field", "", null);
      this.answers = {};
      this.image = null;
      this.drawSpace();
      return;
    }
    const place = [...now.from, ...now.to].map((v) => v.toFixed(2)).join(),
      moment = Math.floor(now.time / OLD_S),
      request = (kind: AcousticsRequest["kind"], at: number | null): Asked => ({
        ...now,
        request: { kind, source: now.from, receiver: now.to, time: now.time, frequency: null, depth: at },
      });
    this.requests.want("rays", `${place} ${moment}`, rays ? request("rays", null) : null);
    const kind = field === "speed" ? "section" : "loss",
      at = field === "plane" ? depth : null;
    this.requests.want("field", `${place} ${moment} ${kind} ${at}`, request(kind, at));
    if (!rays) delete this.answers.rays;
  }

  private take(kind: "rays" | "field", answer: Answer): void {
    if (!this.open) return;
    delete this.errors[kind];
    if ("error" in answer) {
      this.errors[kind] = answer.error;
      delete this.answers[kind];
      if (kind === "field") this.image = null;
    } else if (kind === "rays" && "rays" in answer) this.answers.rays = answer;
    else if (kind === "field" && "values" in answer) {
      this.answers.field = answer;
      this.image = fieldPicture(answer);
    }
    this.chosen = null;
    this.table.show(this.answers.rays?.rays ?? NO_RAYS);
    this.drawSpace();
    this.changed();
  }

  /** One sentence about what is shown, computed or wrong. */
  private showState(now: Situation | string): void {
    const { rays, field } = this.answers,
      wrong = typeof now === "string" ? now : (this.errors.rays ?? this.errors.field ?? ""),
      busy = this.requests.busy !== null ? "computing…" : "",
      parts: string[] = [];
    if (!wrong && rays) {
      const first = rays.rays[firstRay(rays.rays)],
        count = `${rays.rays.length} ${rays.rays.length === 1 ? "ray" : "rays"}`;
      parts.push(
        first
          ? `${count} at ${formatTime(rays.of.time)}, the first after ${(1e3 * first.time).toFixed(3)} ms`
          : `no ray at ${formatTime(rays.of.time)}: no sound arrives`,
      );
      parts.push(`distance ${rays.distance.toFixed(2)} m`);
    } else if (!wrong && field) parts.push(`computed for ${formatTime(field.of.time)}`);
    parts.push(...new Set([...(rays?.notes ?? []), ...(field?.notes ?? [])]));
    setText(this.state, [wrong, ...(wrong ? [] : parts), busy].filter(Boolean).join("; "));
    toggleClass(this.state, "bad", wrong !== "" && typeof now !== "string");
    toggleClass(this.state, "warm", typeof now === "string");
    toggleClass(this.state, "soft", wrong === "");
    this.table.show(rays?.rays ?? NO_RAYS);
    toggleClass(this.table.element, "hidden", !rays?.rays.length);
  }

  private marks(of: Situation): [Mark, Mark] {
    return [
      { at: of.from, name: of.names[0], colour: of.colours[0] },
      { at: of.to, name: of.names[1], colour: of.colours[1] },
    ];
  }

  private draw(): void {
    const sheet = prepareCanvas(this.canvas),
      { rays, field } = this.answers,
      of = field?.of ?? rays?.of;
    if (!sheet) return;
    sheet.c.clearRect(0, 0, sheet.w, sheet.hh);
    this.frame = null;
    this.canvas.setAttribute("aria-label", of ? `Section from ${of.names[0]} to ${of.names[1]}` : "Nothing to show");
    if (!of) return;
    const picture = {
      ends: this.marks(of),
      field: field ?? null,
      image: this.image,
      rays: rays?.rays ?? NO_RAYS,
      chosen: this.chosen,
      depth: this.shown.depth,
    };
    this.frame = field?.plane === "horizontal" ? drawPlane(sheet, picture) : drawSection(sheet, picture);
  }

  /** Show the value at the pointer. */
  private read(x: number, y: number): void {
    const { frame } = this,
      { field } = this.answers;
    toggleClass(this.readout, "hidden", !frame || !field);
    if (!frame || !field) return;
    const [across, down] = [frame.across(x), frame.down(y)],
      value = valueAt(field, across, down),
      text = value === null ? "" : `, ${value.toFixed(field.unit === "dB" ? 1 : 2)} ${field.unit}`,
      place =
        frame.factor === null
          ? pointName([down, across, 0])
          : `${across.toFixed(0)} m away, depth ${down.toFixed(1)} m`,
      scale = frame.factor === null ? "" : `; vertical × ${frame.factor.toPrecision(2)}`;
    setText(this.readout, `${place}${text}${scale}`);
    Object.assign(this.readout.style, {
      left: `${Math.min(x + 12, Math.max(this.canvas.clientWidth - this.readout.offsetWidth - 4, 0))}px`,
      top: `${Math.max(y - 30, 0)}px`,
    });
  }

  // -- chart and 3D view -------------------------------------------------------------------------------------------

  /** Draw the ends that are points, and the line between both ends. */
  private drawOnChart(c: CanvasRenderingContext2D): void {
    const now = this.open ? this.situation() : "";
    if (typeof now === "string") return;
    const { chart } = this.stage,
      [from, to] = [chart.px(now.from[0], now.from[1]), chart.px(now.to[0], now.to[1])];
    c.save();
    c.strokeStyle = c.fillStyle = cssVariable("--warm");
    c.lineWidth = 1.5;
    c.setLineDash([2, 4]);
    c.beginPath();
    c.moveTo(...from);
    c.lineTo(...to);
    c.stroke();
    c.setLineDash([]);
    [this.shown.source, this.shown.receiver].forEach((end, k) => {
      if (typeof end === "string" || !end) return;
      const [x, y] = k ? to : from;
      c.beginPath();
      c.arc(x, y, 5, 0, 7);
      c.stroke();
      haloText(c, `${k ? "to" : "from"} ${end[2].toFixed(1)} m`, x + 8, y - 6);
    });
    c.restore();
  }

  /** Draw the answers in the 3D view, which is loaded with the first of them. */
  private drawSpace(): void {
    const { rays, field } = this.answers;
    if (!this.space && !(this.open && (rays || field))) return;
    const fresh = this.space === null;
    this.space ??= import("./propagation3d").then((m) => new m.Propagation3D());
    void this.space.then(
      (space) => {
        if (fresh) this.stage.points(space.group, true);
        space.show(this.open ? this.answers : {}, this.chosen, this.shown.inSpace ? this.image : null);
        this.changed();
      },
      () => {
        this.space = null;
        toast("the drawing of rays in the 3D view could not be loaded", true);
      },
    );
  }
}
