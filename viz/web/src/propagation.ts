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
import {
  arrivalScale,
  drawPlane,
  drawSection,
  fieldPicture,
  firstRay,
  type Frame,
  type Mark,
  valueAt,
} from "./propagation_section";
import { PropagationTable } from "./propagation_table";
import {
  type End,
  type Field,
  FIRST_VIEW,
  firstEnds,
  isCarrier,
  isPropagationView,
  bodyPosition,
  type PropagationView,
} from "./propagation_view";
import type { SceneStore } from "./scene_store";
import type { Stage } from "./stage";

const STORED = "wavesim-propagation",
  FIELD_NAMES: Record<Field, string> = {
    speed: "sound speed",
    loss: "transmission loss",
    plane: "loss at a depth of",
  },
  /** Simulation time after which water and weather may have changed, s. */
  OLD_S = 10,
  /** A computation that takes longer is announced, ms. */
  SLOW_MS = 300,
  FIRST_MS = 5000,
  /** Movements of the ends after which rays, or a field, are computed anew, m; losses: as a share of the distance. */
  RAYS_M = 0.01,
  FIELD_M = 0.5,
  LOSS_SHARE = 0.01,
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

/** The power of two below a number. */
function coarse(v: number): number {
  return 2 ** Math.floor(Math.log2(Math.max(v, 1e-3)));
}

async function ask(asked: Asked, signal: AbortSignal): Promise<Answer> {
  const answer = await requestJson<RaysAnswer | FieldAnswer>("/acoustics", asked.request, signal);
  return { ...answer, of: asked };
}

export class Propagation {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", {
    id: "section",
    class: "drawn",
    role: "img",
    "aria-label": "Nothing to show",
  });
  private readonly state = h("span", { class: "soft num", id: "propagation-state" });
  private readonly trouble = h("span", { id: "propagation-trouble", role: "status" });
  private readonly working = h("span", { id: "propagation-working", class: "warm hidden" }, "computing…");
  private readonly readout = h("div", { class: "tip hidden" });
  private readonly table: PropagationTable;
  private readonly source: EndSelect;
  private readonly receiver: EndSelect;
  private readonly field: HTMLSelectElement;
  private readonly depth: HTMLInputElement;
  private readonly carrier: HTMLInputElement;
  private readonly depthBox: HTMLElement;
  private readonly rays = this.box("Show the rays", (on) => (this.shown.rays = on));
  private readonly inSpace = this.box("Show the field in the 3D view", (on) => (this.shown.inSpace = on));
  private readonly requests = { rays: this.line("rays"), field: this.line("field") };
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
      end = (role: "source" | "receiver"): EndSelect => {
        const select = new EndSelect(store, picker, role, () => {
          this.shown[role] = select.value;
          this.edited();
        });
        return select;
      };
    this.source = end("source");
    this.receiver = end("receiver");
    this.field = h(
      "select",
      {
        id: "propagation-field",
        "aria-label": "Quantity drawn behind the rays",
        onchange: () => {
          this.shown.field = this.field.value as Field;
          this.edited();
        },
      },
      ...Object.entries(FIELD_NAMES).map(([value, text]) => h("option", { value }, text)),
    );
    this.depth = this.number("propagation-depth", "Depth of the horizontal plane, m", (metres) => {
      if (metres >= 0) this.shown.depth = metres;
    });
    this.carrier = this.number("propagation-carrier", "Carrier, kHz; the losses depend on it", (kHz) => {
      if (isCarrier(1e3 * kHz)) this.shown.frequency = 1e3 * kHz;
    });
    this.depthBox = h("label", { class: "row" }, this.depth, "m");
    this.table = new PropagationTable((ray) => {
      this.chosen = ray;
      this.draw();
      this.drawSpace();
    });
    const swap = h("button", { title: "Swap the two ends", id: "propagation-swap", onclick: () => this.swap() }, "⇄");
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
        h("label", { class: "row" }, this.carrier, "kHz"),
        this.working,
        this.trouble,
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

  private line(kind: "rays" | "field"): NewestRequests<Asked, Answer> {
    return new NewestRequests<Asked, Answer>(
      ask,
      (answer) => this.take(kind, answer),
      () => this.changed(),
    );
  }

  private number(id: string, title: string, set: (value: number) => void): HTMLInputElement {
    const field = h("input", {
      id,
      title,
      type: "number",
      min: 0,
      step: "any",
      class: "short",
      onchange: () => {
        set(field.valueAsNumber);
        this.edited();
      },
    });
    return field;
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
    const { source, receiver, field, depth, frequency, rays, inSpace } = this.shown;
    this.source.value = source;
    this.receiver.value = receiver;
    this.field.value = field;
    this.rays.checked = rays;
    this.inSpace.checked = inSpace;
    this.depth.value = String(depth);
    this.carrier.value = String(+(frequency / 1e3).toFixed(3));
    toggleClass(this.depthBox, "hidden", field !== "plane");
  }

  /** The panel is closed: compute and draw nothing. */
  close(): void {
    if (!this.open) return;
    this.open = false;
    this.forget();
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
    this.requests.rays.step();
    this.requests.field.step();
    this.showState(now);
    this.draw();
  }

  private situation(): Situation | string {
    const { source, receiver } = this.shown;
    if (!this.store.scene || !this.store.last) return "waiting for the first data";
    if (source === null || receiver === null) return "select two ends";
    if (source === receiver) return "both ends are the same; select two different ends";
    const ends = [source, receiver].map((end) => bodyPosition(this.store, end)),
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
    const { field, depth, frequency, rays, source, receiver } = this.shown;
    if (typeof now === "string") {
      this.forget();
      return;
    }
    const want = (line: "rays" | "field", kind: AcousticsRequest["kind"], at: number | null, cell: number): void => {
      const subject = JSON.stringify([kind, at, frequency, source, receiver]),
        place = [...now.from, ...now.to].map((v) => Math.round(v / cell)).join(),
        request = { kind, source: now.from, receiver: now.to, time: now.time, frequency, depth: at };
      this.requests[line].want(`${place} ${Math.floor(now.time / OLD_S)} ${subject}`, subject, { ...now, request });
    };
    if (rays) want("rays", "rays", null, RAYS_M);
    else {
      this.requests.rays.cancel();
      delete this.answers.rays;
      delete this.errors.rays;
    }
    const distance = Math.hypot(now.to[0] - now.from[0], now.to[1] - now.from[1]);
    if (field === "speed") want("field", "section", null, FIELD_M);
    else want("field", "loss", field === "plane" ? depth : null, Math.max(FIELD_M, coarse(LOSS_SHARE * distance)));
  }

  /** Forget all answers; want nothing. */
  private forget(): void {
    const drawn = this.answers.rays ?? this.answers.field;
    this.requests.rays.cancel();
    this.requests.field.cancel();
    this.answers = {};
    this.errors = {};
    this.image = null;
    if (drawn) this.drawSpace();
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
    if (this.chosen !== null && this.chosen >= (this.answers.rays?.rays.length ?? 0)) this.chosen = null;
    this.drawSpace();
    this.changed();
  }

  /** Sentences about what is shown and what is wrong. */
  private showState(now: Situation | string): void {
    const { rays, field } = this.answers,
      wrong = typeof now === "string" ? now : (this.errors.rays ?? this.errors.field ?? ""),
      first = rays?.rays[firstRay(rays.rays)],
      of = (rays ?? field)?.of,
      parts: string[] = [];
    if (of)
      parts.push(
        `${formatTime(of.time)}: distance ${Math.hypot(...of.to.map((v, k) => v - of.from[k]!)).toFixed(2)} m`,
      );
    if (rays && first)
      parts.push(
        `${rays.rays.length} ${rays.rays.length === 1 ? "ray" : "rays"}, first ${(1e3 * first.time).toFixed(3)} ms`,
      );
    else if (rays) parts.push("no ray: no sound arrives");
    if (rays && field && Math.abs(rays.of.time - field.of.time) > 1)
      parts.push(`${field.unit === "dB" ? "loss" : "sound speed"} of ${formatTime(field.of.time)}`);
    parts.push(...new Set([...(rays?.notes ?? []), ...(field?.notes ?? [])]));
    setText(this.state, parts.join("; "));
    setText(this.trouble, wrong);
    toggleClass(this.trouble, "bad", typeof now !== "string");
    toggleClass(this.trouble, "warm", typeof now === "string");
    const busy = Math.max(this.requests.rays.busy, this.requests.field.busy);
    setText(this.working, busy < FIRST_MS ? "computing…" : "computing… (the first time, this may take a minute)");
    toggleClass(this.working, "hidden", busy < SLOW_MS);
    this.table.show(rays?.rays ?? NO_RAYS, arrivalScale(field));
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
      of = (rays ?? field)?.of;
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
        toast("cannot load the module that draws rays in the 3D view", true);
      },
    );
  }
}
