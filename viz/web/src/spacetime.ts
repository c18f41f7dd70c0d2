// Sound in space and time: time runs to the right; each body has a lane, or is placed by its range from the selected
// one. A signal is a line from its emission to its reception or loss, with a slope given by the sound speed, and a bar
// as long as it lasts. Signals whose bars overlap in a lane can collide.

import { prepareCanvas } from "./canvas";
import { cssVariable, h, setChildren, setText, toggleClass } from "./dom";
import { getJson } from "./http";
import type { SignalEvents } from "./page_protocol";
import { OUTCOMES, RANGE_KINDS, SIGNAL_KINDS, type SceneStore } from "./scene_store";
import { isForReceiver, isReception, modemAddresses, outcomeVariable, type SignalEvent } from "./signal_outcomes";
import { SignalDetails, summary } from "./spacetime_details";
import {
  BOTTOM,
  type DrawnScene,
  drawSpaceTime,
  laneHeight,
  LEFT,
  markAt,
  type Mark,
  type SpaceTimeScene,
} from "./spacetime_picture";
import { CanvasSurface, type Point, SvgSurface } from "./surfaces";
import { downloadBlob } from "./url_state";

const SPANS = [0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800]; // s
const NEAR = 7, // px
  DRAG = 4, // px: a shorter movement is a click
  NUDGE = 0.1; // of the time span, for the arrow keys
const QUIET = new Set([2, 3, 11]); // faded, out of band, echo: shown on request
const PNG_SCALE = 2;

export class SpaceTime {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { id: "spacetime", class: "drawn", tabindex: 0 });
  private readonly tip = h("div", { class: "tip lines hidden" });
  private readonly note = h("div", { class: "note hidden" });
  private readonly reasons = h("div", { class: "reasons" });
  private readonly chips = new Map<number, { button: HTMLButtonElement; text: HTMLElement }>();
  private readonly hidden = new Set(QUIET);
  private readonly freeze: HTMLButtonElement;
  private readonly spanList: HTMLSelectElement;
  private readonly nodeList: HTMLSelectElement;
  private readonly details: SignalDetails;
  private span = 10;
  private slot = 0;
  private frozen: number | null = null; // time at the right edge; null: now
  private kind = ""; // of the signals shown; "": all
  private node = ""; // row of the node whose signals are shown, or "selected"; "": all
  private addressed = false; // only at the nodes to which signals are addressed
  private far = false; // vertical axis: range from the selected body
  private scroll = 0;
  drawn: DrawnScene = { marks: [], counts: new Map(), laneHeight: 20 };
  private pointer: Point | null = null;
  private listed: { since: number; until: number; events: SignalEvent[]; missed: number } | null = null; // of a log
  private asked = false;

  constructor(
    private readonly store: SceneStore,
    choose: (row: number) => void,
    seek: (time: number) => void,
  ) {
    const list = (
      id: string,
      label: string,
      options: [string, string][],
      act: (v: string) => void,
    ): HTMLSelectElement => {
      const e = h(
        "select",
        {
          id,
          "aria-label": label,
          title: label,
          onchange: () => {
            act(e.value);
            this.update();
          },
        },
        ...options.map(([value, text]) => h("option", { value }, text)),
      );
      return e;
    };
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
    this.spanList = list(
      "sound-span",
      "Time span",
      SPANS.map((s) => [String(s), s < 60 ? `${s} s` : `${s / 60} min`]),
      (v) => (this.span = Number(v)),
    );
    this.spanList.value = String(this.span);
    this.nodeList = list("sound-node", "Signals to and from", [], (v) => (this.node = v));
    const kinds = list(
      "sound-kind",
      "Kind of signals",
      [["", "all kinds"], ["ranges", "ranges"], ...SIGNAL_KINDS.map((k, n): [string, string] => [`${n}`, k])],
      (v) => (this.kind = v),
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
    this.freeze = toggle("freeze", "freeze", "Freeze the display, to look at earlier signals", () => {
      this.frozen = this.frozen === null ? this.store.time : null;
      return this.frozen !== null;
    });
    this.details = new SignalDetails(store, choose, seek, () => this.update());
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        this.spanList,
        this.freeze,
        this.nodeList,
        kinds,
        toggle(
          "sound-addressed",
          "addressed only",
          "Hide receptions at nodes to which the signal is not addressed",
          () => (this.addressed = !this.addressed),
        ),
        toggle(
          "sound-far",
          "by range",
          "Show the range from the selected body on the vertical axis, instead of one lane per body",
          () => (this.far = !this.far),
        ),
        slot,
        this.reasons,
        h("span", { class: "grow" }),
        h(
          "button",
          { id: "sound-svg", title: "Save the diagram as a vector graphic", onclick: () => this.saveSvg() },
          "SVG",
        ),
        h("button", { id: "sound-png", title: "Save the diagram as an image", onclick: () => this.savePng() }, "PNG"),
      ),
      h(
        "div",
        { class: "sound-beside" },
        h("div", { class: "sound-place" }, this.canvas, this.tip, this.note),
        this.details.element,
      ),
    );
    this.canvas.setAttribute(
      "aria-label",
      "Signals in space and time: arrow keys move, + and - zoom, Home follows the simulation",
    );
    new ResizeObserver(() => this.update()).observe(this.canvas); // the heading may have wrapped to another line
    this.listen();
  }

  private listen(): void {
    let held: { at: Point; dragged: boolean } | null = null;
    this.canvas.addEventListener("pointerdown", (e) => {
      held = { at: [e.offsetX, e.offsetY], dragged: false };
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      this.pointer = [e.offsetX, e.offsetY];
      if (!held || !e.buttons) return this.hover();
      const [dx, dy] = [e.offsetX - held.at[0], e.offsetY - held.at[1]];
      if (!held.dragged && Math.hypot(dx, dy) < DRAG) return;
      held = { at: [e.offsetX, e.offsetY], dragged: true };
      this.move((-dx / this.width()) * this.span, -dy);
    });
    this.canvas.addEventListener("pointerup", () => {
      const clicked = held && !held.dragged;
      held = null;
      if (clicked) this.details.show(this.under()?.event ?? null);
    });
    this.canvas.addEventListener("pointercancel", () => (held = null));
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.hover();
    });
    this.canvas.addEventListener("dblclick", () => this.follow());
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        if (e.shiftKey) this.move(0, e.deltaY || e.deltaX);
        else this.zoom(e.deltaY > 0 ? 1 : -1, (e.offsetX - LEFT) / this.width());
      },
      { passive: false },
    );
    const keys: Record<string, () => void> = {
      ArrowLeft: () => this.move(-NUDGE * this.span, 0),
      ArrowRight: () => this.move(NUDGE * this.span, 0),
      ArrowUp: () => this.move(0, -this.drawn.laneHeight),
      ArrowDown: () => this.move(0, this.drawn.laneHeight),
      "+": () => this.zoom(-1, 0.5),
      "-": () => this.zoom(1, 0.5),
      Home: () => this.follow(),
    };
    this.canvas.addEventListener("keydown", (e) => {
      const act = keys[e.key];
      if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      e.stopPropagation(); // the keys of the page would move the camera
      act();
    });
  }

  private width(): number {
    return Math.max(this.canvas.clientWidth - LEFT, 1);
  }

  private freezeAt(until: number): void {
    this.frozen = until;
    toggleClass(this.freeze, "on", true);
  }

  /** Move the picture in time (s) and along its lanes (px). */
  private move(seconds: number, lanes: number): void {
    if (seconds) this.freezeAt((this.frozen ?? this.store.time) + seconds);
    this.scroll += lanes;
    this.update();
  }

  /** Zoom out by a step, or in (-1), about a place: 0 at the left edge, 1 at the right one. */
  private zoom(step: number, place: number): void {
    const k = SPANS.indexOf(this.span) + step;
    if (k < 0 || k >= SPANS.length) return;
    const f = Math.min(Math.max(place, 0), 1),
      until = this.frozen ?? this.store.time,
      at = until - (1 - f) * this.span;
    this.span = SPANS[k]!;
    this.spanList.value = String(this.span);
    if (this.frozen !== null || f < 0.95) this.freezeAt(at + (1 - f) * this.span);
    this.update();
  }

  /** Follow the simulation again. */
  private follow(): void {
    this.frozen = null;
    toggleClass(this.freeze, "on", false);
    this.update();
  }

  /** Events of the time span; of a log whose picture is frozen, also those that the replay has not reached. */
  private known(since: number, until: number): SignalEvent[] {
    if (this.frozen === null || this.store.hello?.kind !== "replay") {
      this.listed = null;
      return this.store.events;
    }
    if (
      !this.listed ||
      since < this.listed.since ||
      until > this.listed.until ||
      (this.listed.missed && until - since < 0.3 * (this.listed.until - this.listed.since))
    )
      void this.ask(since, until);
    return this.listed?.events ?? this.store.events;
  }

  private async ask(since: number, until: number): Promise<void> {
    if (this.asked) return;
    this.asked = true;
    const margin = 0.5 * (until - since),
      span = { since: since - margin, until: until + margin },
      answer = await getJson<SignalEvents>(`/signals?since=${span.since}&until=${span.until}`);
    this.asked = false;
    this.listed = {
      ...span,
      events: [...(answer?.sent ?? []), ...(answer?.receptions ?? [])],
      missed: answer?.missed ?? 0,
    };
    this.update();
  }

  /** True for the signals that the filters admit. */
  private admits(): (e: SignalEvent) => boolean {
    const row = this.row(),
      addresses = this.addressed ? modemAddresses(this.store) : null,
      kind = this.kind === "" || this.kind === "ranges" ? null : Number(this.kind);
    return (e) =>
      (kind === null ? this.kind === "" || RANGE_KINDS.has(e.kind) : e.kind === kind) &&
      (row === null || e.source === row || (isReception(e) && e.receiver === row)) &&
      (!addresses || !isReception(e) || isForReceiver(e, addresses));
  }

  /** Body whose signals alone are shown; null: all. */
  private row(): number | null {
    if (this.far || this.node === "selected") return this.store.chosen;
    return this.node === "" ? null : Number(this.node);
  }

  /** Rows of bodies that send or receive, and the selected one: vehicles first, then buoys. */
  private lanes(events: SignalEvent[]): number[] {
    const rows = new Set<number>();
    for (const e of events) {
      if (!isReception(e)) rows.add(e.source);
      else if (!this.hidden.has(e.outcome)) rows.add(e.source).add(e.receiver);
    }
    if (this.store.chosen !== null) rows.add(this.store.chosen);
    const buoy = (row: number): number => Number(this.store.bodies.get(row)?.type === "buoy");
    return [...rows].sort((a, b) => buoy(a) - buoy(b) || a - b);
  }

  private scene(): SpaceTimeScene {
    const until = this.frozen ?? this.store.time,
      since = until - this.span,
      known = this.known(since, until).filter(this.admits()),
      // of all times, so that the lanes stay where they are
      lanes = this.lanes(this.listed ? [...known, ...this.store.events.filter(this.admits())] : known);
    return {
      since,
      until,
      events: known.filter(
        (e) => e.time + e.duration >= since && (isReception(e) ? (e.emission ?? e.time) : e.time) <= until,
      ),
      hidden: this.hidden,
      lanes,
      scroll: this.scroll,
      far: this.far ? this.store.chosen : null,
      slot: this.slot,
      chosen: this.details.shown?.id ?? null,
    };
  }

  update(): void {
    this.listNodes();
    const page = prepareCanvas(this.canvas);
    if (!page) return;
    const scene = this.scene(),
      bottom = page.hh - BOTTOM;
    scene.scroll = this.scroll = Math.min(
      Math.max(this.scroll, 0),
      scene.lanes.length * laneHeight(scene.lanes.length, bottom) - bottom,
    );
    this.drawn = drawSpaceTime(new CanvasSurface(page.c, page.w, page.hh), scene, this.store);
    const missed = this.listed?.missed ?? 0;
    setText(this.note, missed ? `${missed} signals are not drawn, because there are too many: zoom in` : "");
    toggleClass(this.note, "hidden", !missed);
    this.showOutcomes();
    this.details.update(scene.events);
    this.hover();
  }

  private listNodes(): void {
    const options: [string, string][] = [
        ["", "all nodes"],
        ["selected", "selected body"],
        ...[...this.store.bodies.values()].map((b): [string, string] => [String(b.row), b.name]),
      ],
      key = options.map((o) => o.join()).join();
    if (this.nodeList.dataset["options"] === key) return;
    this.nodeList.dataset["options"] = key;
    setChildren(this.nodeList, ...options.map(([value, text]) => h("option", { value }, text)));
    this.nodeList.value = this.node;
    if (this.nodeList.value !== this.node) this.nodeList.value = this.node = ""; // the body has left
  }

  /** Outcomes of signals in this time span; a click hides an outcome. The buttons are the legend of the colours too. */
  private showOutcomes(): void {
    const { counts } = this.drawn;
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
        button.style.setProperty("--outcome", `var(${outcomeVariable(outcome)})`);
        this.chips.set(outcome, { button, text });
        this.reasons.append(button);
      }
    for (const [outcome, { button, text }] of this.chips) {
      setText(text, `${OUTCOMES[outcome] ?? outcome} ${counts.get(outcome) ?? 0}`);
      toggleClass(button, "off", this.hidden.has(outcome));
    }
  }

  private under(): Mark | null {
    if (!this.pointer || this.pointer[0] < LEFT) return null;
    return markAt(this.drawn.marks, this.pointer, Math.min(7, 0.36 * this.drawn.laneHeight), NEAR);
  }

  private hover(): void {
    const mark = this.under();
    toggleClass(this.tip, "hidden", !mark);
    this.canvas.style.cursor = mark ? "pointer" : "";
    if (!mark || !this.pointer) return;
    setText(this.tip, summary(mark.event, this.listed?.events ?? this.store.events, this.store));
    const { clientWidth, clientHeight } = this.canvas;
    Object.assign(this.tip.style, {
      left: `${Math.max(Math.min(this.pointer[0] + 12, clientWidth - this.tip.offsetWidth - 4), 0)}px`,
      top: `${Math.max(Math.min(this.pointer[1] + 14, clientHeight - this.tip.offsetHeight - 4), 0)}px`,
    });
  }

  /** Name of a file of the shown time. */
  private fileName(ending: string): string {
    return `signals-${(this.frozen ?? this.store.time).toFixed(1)}s.${ending}`;
  }

  /** The diagram as the text of an SVG file. */
  svg(): string {
    const surface = new SvgSurface(this.canvas.clientWidth, this.canvas.clientHeight, cssVariable("--panel-solid"));
    drawSpaceTime(surface, this.scene(), this.store);
    return surface.toString();
  }

  private saveSvg(): void {
    downloadBlob(new Blob([this.svg()], { type: "image/svg+xml" }), this.fileName("svg"));
  }

  private savePng(): void {
    const canvas = document.createElement("canvas"),
      [w, hh] = [this.canvas.clientWidth, this.canvas.clientHeight];
    canvas.width = PNG_SCALE * w;
    canvas.height = PNG_SCALE * hh;
    const c = canvas.getContext("2d")!;
    c.scale(PNG_SCALE, PNG_SCALE);
    const surface = new CanvasSurface(c, w, hh);
    surface.box(0, 0, w, hh, cssVariable("--panel-solid"));
    drawSpaceTime(surface, this.scene(), this.store);
    canvas.toBlob((blob) => blob && downloadBlob(blob, this.fileName("png")));
  }
}
