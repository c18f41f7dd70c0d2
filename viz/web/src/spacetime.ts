// Sound in space and time: time runs to the right; each body has a lane, or is placed by its range from the selected
// one. A signal is a line from its
// emission to its reception or loss, with a slope given by the sound speed. Signals that overlap in a lane can collide.

import { bodyColour, cssVariable, formatTime, h, toggleClass, setText } from "./dom";
import { SIGNAL_KINDS, OUTCOMES, RANGE_KINDS, type SceneStore } from "./scene_store";
import { prepareCanvas } from "./canvas";
import type { SentSignal, SignalReception } from "./page_protocol";

const SPANS = [1, 2, 5, 10, 30, 60]; // s
const LEFT = 92,
  BOTTOM = 18,
  NEAR = 7; // px
const QUIET = new Set([2, 3, 11]); // faded, out of band, echo: shown on request
type Point = [x: number, y: number];
interface Line {
  from: Point;
  to: Point;
  event: SignalReception;
  tint: string;
}

export class SpaceTime {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "spacetime", class: "drawn" });
  private readonly tip = h("div", { class: "tip hidden" });
  private readonly reasons = h("div", { class: "reasons" });
  private readonly chips = new Map<number, { button: HTMLButtonElement; text: HTMLElement }>();
  private readonly hidden = new Set(QUIET);
  private readonly freeze: HTMLButtonElement;
  private span = 10;
  private slot = 0;
  private frozen: number | null = null; // time at the right edge; null: now
  private ranges = false; // range requests and replies only
  private own = false; // signals of the selected body only
  private far = false; // vertical axis: range from the selected body
  private lines: Line[] = [];
  private pointer: Point | null = null;

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
  ) {
    const span = h(
      "select",
      {
        "aria-label": "Time span",
        onchange: () => {
          this.span = Number(span.value);
          this.update();
        },
      },
      ...SPANS.map((s) => h("option", { value: s, selected: s === this.span }, `${s} s`)),
    );
    const slot = h("input", {
      type: "number",
      min: 0,
      step: 0.1,
      placeholder: "slot s",
      "aria-label": "Length of a slot, s",
      onchange: () => {
        this.slot = Math.max(0, Number(slot.value));
        this.update();
      },
    });
    slot.style.width = "74px";
    const toggle = (id: string, text: string, title: string, act: () => boolean): HTMLButtonElement => {
      const button = h(
        "button",
        {
          id,
          title,
          onclick: () => {
            toggleClass(button, "on", act());
            this.update();
          },
        },
        text,
      );
      return button;
    };
    this.freeze = toggle("freeze", "freeze", "Freeze the display; drag it to go back in time", () => {
      this.frozen = this.frozen === null ? this.store.time : null;
      return this.frozen !== null;
    });
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        span,
        this.freeze,
        toggle("sound-own", "selected only", "Signals to and from the selected body", () => (this.own = !this.own)),
        toggle("sound-ranges", "ranges only", "Range requests and replies", () => (this.ranges = !this.ranges)),
        toggle(
          "sound-far",
          "by range",
          "Show the range from the selected body on the vertical axis, instead of one lane per body",
          () => (this.far = !this.far),
        ),
        slot,
        this.reasons,
      ),
      h("div", { class: "sound-place" }, this.canvas, this.tip),
    );
    new ResizeObserver(() => this.update()).observe(this.canvas); // the heading may have wrapped to another line
    let held: number | null = null;
    this.canvas.addEventListener("pointerdown", (e) => {
      held = this.frozen === null ? null : e.offsetX;
    });
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointer = [e.offsetX, e.offsetY];
      if (held !== null && this.frozen !== null && e.buttons) {
        this.frozen -= ((e.offsetX - held) / this.width()) * this.span;
        held = e.offsetX;
        this.update();
      } else this.hover();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.hover();
    });
    this.canvas.addEventListener("click", () => {
      const line = this.nearest();
      if (line) this.choose(line.event.receiver);
    });
  }

  private width(): number {
    return Math.max(this.canvas.clientWidth - LEFT, 1);
  }

  /** Bodies that send or receive, and the selected one. */
  private lanes(events: (SentSignal | SignalReception)[]): number[] {
    const rows = new Set<number>();
    for (const e of events) {
      rows.add(e.source);
      if ("receiver" in e) rows.add(e.receiver);
    }
    if (this.store.chosen !== null) rows.add(this.store.chosen);
    return [...rows].sort(
      (a, b) =>
        Number(this.store.bodies.get(a)?.type === "buoy") - Number(this.store.bodies.get(b)?.type === "buoy") || a - b,
    );
  }

  private shown(): (SentSignal | SignalReception)[] {
    const until = this.frozen ?? this.store.time,
      since = until - this.span,
      row = this.store.chosen;
    return this.store.events.filter(
      (e) =>
        e.time >= since &&
        ("receiver" in e ? (e.emission ?? e.time) : e.time) <= until &&
        (!this.ranges || RANGE_KINDS.has(e.kind)) &&
        (!(this.own || this.far) || row === null || e.source === row || ("receiver" in e && e.receiver === row)),
    );
  }

  update(): void {
    const page = prepareCanvas(this.canvas);
    if (!page) return;
    const { c, w, hh } = page,
      events = this.shown(),
      until = this.frozen ?? this.store.time,
      far = this.far && this.store.chosen !== null;
    c.clearRect(0, 0, w, hh);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    const x = (t: number): number => w - ((until - t) / this.span) * this.width(),
      bottom = hh - BOTTOM;
    this.axis(c, x, until, bottom);
    const lanes = this.lanes(events),
      most = Math.max(50, ...events.map((e) => ("receiver" in e ? (e.range ?? 0) : 0)).filter((r) => r < 1e7));
    const lane = (row: number): number => ((lanes.indexOf(row) + 0.5) / Math.max(lanes.length, 1)) * bottom;
    if (far) this.rangeAxis(c, most, bottom, w);
    else this.laneAxis(c, lanes, lane, w);
    const range = (r: number | null): number => 8 + ((r ?? 0) / most) * (bottom - 16);
    this.lines = [];
    const counts = new Map<number, number>();
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, w - LEFT, bottom);
    c.clip();
    for (const e of events) {
      if ("receiver" in e) {
        counts.set(e.outcome, (counts.get(e.outcome) ?? 0) + 1);
        if (this.hidden.has(e.outcome) || e.emission === null) continue;
        const sender = e.source === this.store.chosen,
          from: Point = [x(e.emission), far ? (sender ? range(0) : range(e.range)) : lane(e.source)],
          to: Point = [x(e.time), far ? (sender ? range(e.range) : range(0)) : lane(e.receiver)];
        this.lines.push({
          from,
          to,
          event: e,
          tint:
            e.outcome === 0
              ? RANGE_KINDS.has(e.kind) && e.measured !== null
                ? cssVariable("--range")
                : cssVariable("--good")
              : e.outcome === 8
                ? cssVariable("--warm")
                : cssVariable("--bad"),
        });
      } else if (!far || e.source === this.store.chosen)
        this.block(
          c,
          x(e.time),
          far ? range(0) : lane(e.source),
          (e.duration / this.span) * this.width(),
          bodyColour(e.source),
          7,
        );
    }
    for (const l of this.lines) {
      c.strokeStyle = c.fillStyle = l.tint;
      c.globalAlpha = l.event.outcome === 0 ? 0.55 : 0.8;
      c.setLineDash(l.event.outcome === 0 ? [] : [4, 3]);
      c.beginPath();
      c.moveTo(...l.from);
      c.lineTo(...l.to);
      c.stroke();
      c.setLineDash([]);
      this.block(c, l.to[0], l.to[1], (l.event.duration / this.span) * this.width(), l.tint, 3);
    }
    c.restore();
    c.globalAlpha = 1;
    this.showOutcomes(counts);
    this.hover();
  }

  /** Time for which a signal occupies a lane. */
  private block(c: CanvasRenderingContext2D, x: number, y: number, width: number, tint: string, half: number): void {
    c.fillStyle = tint;
    c.fillRect(x - 1, y - half, Math.max(width, 2), 2 * half);
  }

  private axis(c: CanvasRenderingContext2D, x: (t: number) => number, until: number, bottom: number): void {
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20].find((s) => (s / this.span) * this.width() > 60) ?? 60,
      since = until - this.span;
    c.strokeStyle = cssVariable("--line");
    c.fillStyle = cssVariable("--soft");
    c.lineWidth = 1;
    c.beginPath();
    for (let t = Math.ceil(since / step) * step; t <= until; t += step) {
      c.moveTo(x(t), 0);
      c.lineTo(x(t), bottom);
      c.fillText(formatTime(t, step < 1 ? 1 : 0), x(t) + 3, bottom + 9);
    }
    c.stroke();
    if (this.slot <= 0 || this.span / this.slot > 400) return;
    c.strokeStyle = cssVariable("--warm");
    c.globalAlpha = 0.35;
    c.beginPath();
    for (let t = Math.ceil(since / this.slot) * this.slot; t <= until; t += this.slot) {
      c.moveTo(x(t), 0);
      c.lineTo(x(t), bottom);
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  private laneAxis(c: CanvasRenderingContext2D, lanes: number[], y: (row: number) => number, w: number): void {
    let free = -Infinity; // a name that would cover the one before is left out
    for (const row of lanes) {
      c.strokeStyle = cssVariable("--line");
      c.beginPath();
      c.moveTo(LEFT, y(row));
      c.lineTo(w, y(row));
      c.stroke();
      c.fillStyle = bodyColour(row);
      c.fillRect(4, y(row) - 4, 8, 8);
      if (y(row) < free) continue;
      free = y(row) + 11;
      c.fillStyle = row === this.store.chosen ? cssVariable("--accent") : cssVariable("--ink");
      c.fillText(this.store.name(row), 17, y(row), LEFT - 20);
    }
  }

  private rangeAxis(c: CanvasRenderingContext2D, most: number, bottom: number, w: number): void {
    for (let k = 0; k <= 4; k++) {
      const y = 8 + (k / 4) * (bottom - 16);
      c.strokeStyle = cssVariable("--line");
      c.beginPath();
      c.moveTo(LEFT, y);
      c.lineTo(w, y);
      c.stroke();
      c.fillStyle = cssVariable("--soft");
      c.fillText(k ? `${((most * k) / 4).toFixed(0)} m` : this.store.name(this.store.chosen!), 6, y, LEFT - 10);
    }
  }

  /** Outcomes of signals in this time span; a click hides an outcome. */
  private showOutcomes(counts: Map<number, number>): void {
    for (const outcome of counts.keys())
      if (!this.chips.has(outcome)) {
        const text = h("span", {}),
          button = h(
            "button",
            {
              class: "small",
              title: "Show or hide this outcome",
              onclick: () => {
                if (this.hidden.has(outcome)) this.hidden.delete(outcome);
                else this.hidden.add(outcome);
                this.update();
              },
            },
            text,
          );
        button.dataset["outcome"] = String(outcome);
        this.chips.set(outcome, { button, text });
        this.reasons.append(button);
      }
    for (const [outcome, { button, text }] of this.chips) {
      setText(text, `${OUTCOMES[outcome] ?? outcome} ${counts.get(outcome) ?? 0}`);
      toggleClass(button, "off", this.hidden.has(outcome));
      toggleClass(button, outcome ? "bad" : "good", true);
    }
  }

  private nearest(): Line | null {
    if (!this.pointer) return null;
    const [px, py] = this.pointer;
    let best: Line | null = null,
      near = NEAR;
    for (const l of this.lines) {
      const [dx, dy] = [l.to[0] - l.from[0], l.to[1] - l.from[1]],
        f = Math.max(0, Math.min(1, ((px - l.from[0]) * dx + (py - l.from[1]) * dy) / (dx * dx + dy * dy || 1)));
      const d = Math.hypot(px - l.from[0] - f * dx, py - l.from[1] - f * dy);
      if (d < near) {
        near = d;
        best = l;
      }
    }
    return best;
  }

  private hover(): void {
    const line = this.nearest();
    toggleClass(this.tip, "hidden", !line);
    if (!line || !this.pointer) return;
    const e = line.event;
    setText(
      this.tip,
      [
        `${this.store.name(e.source)} → ${this.store.name(e.receiver)}`,
        SIGNAL_KINDS[e.kind] ?? "",
        `${((e.time - e.emission!) * 1000).toFixed(1)} ms`,
        e.range === null ? "" : `${e.range.toFixed(2)} m`,
        e.measured === null ? "" : `measured ${e.measured.toFixed(3)} m`,
        OUTCOMES[e.outcome] ?? "",
      ]
        .filter(Boolean)
        .join(", "),
    );
    Object.assign(this.tip.style, {
      left: `${Math.min(this.pointer[0] + 12, this.canvas.clientWidth - 240)}px`,
      top: `${Math.max(this.pointer[1] - 28, 0)}px`,
    });
  }
}
