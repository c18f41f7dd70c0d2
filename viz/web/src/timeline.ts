// Timeline of a log: a slider with marks of events above it; their texts are shown under the pointer, and with the
// focus.

import { formatTime, cssVariable, h, setText, toggleClass } from "./dom";
import type { SceneStore } from "./scene_store";
import { context2d } from "./canvas";
import { type EventMarks, markColour, stepMark } from "./event_marks";
import type { ReplayClock, TimeMark } from "./page_protocol";

const NEAR = 5; // px

export class Timeline {
  readonly element = h("div", { id: "replay", class: "hidden time-bar" });
  private readonly at = h("span", { id: "replay-at", class: "num" });
  private readonly end = h("span", { class: "soft num" });
  private readonly shared = h("span", {
    class: "soft",
    id: "replay-shared",
    title: "All pages of this viewer show the same time: play, pause and the slider act on all of them",
  });
  private readonly strip = h("canvas", { class: "marks", id: "marks" });
  private readonly text = h("div", { class: "tip event-text hidden", id: "event-text", role: "status" });
  private hovered: TimeMark | null = null;
  private target: number | null = null; // where the last step went, until the time changes
  private left = 0; // time at that step
  private readonly slider: HTMLInputElement;
  private sliding = false;
  private drawn = "";

  constructor(
    private readonly store: SceneStore,
    private readonly events: EventMarks,
    private readonly seek: (time: number) => void,
  ) {
    const slider = (this.slider = h("input", {
      type: "range",
      id: "slider",
      step: 0.01,
      "aria-label": "Time",
      oninput: () => {
        this.sliding = true;
        seek(Number(slider.value));
      },
      onchange: () => {
        this.sliding = false;
      },
    }));
    const button = (id: string, text: string, title: string, by: number): HTMLElement =>
      h("button", { id, class: "small", title, onclick: () => this.step(by) }, text);
    this.strip.addEventListener("click", (e) => {
      const m = this.near(e.offsetX);
      seek(m ? m.time : this.timeAt(e.offsetX));
    });
    this.strip.addEventListener("pointermove", (e) => {
      this.hovered = this.near(e.offsetX);
      this.tell();
    });
    this.strip.addEventListener("pointerleave", () => {
      this.hovered = null;
      this.tell();
    });
    this.strip.addEventListener("keydown", (e) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
      if (by === undefined) return;
      e.preventDefault();
      e.stopPropagation(); // the arrow keys move the camera elsewhere
      this.step(by);
    });
    for (const change of ["focus", "blur"]) this.strip.addEventListener(change, () => this.tell());
    Object.entries({
      tabindex: "0",
      role: "slider",
      "aria-label": "Events: the left and right arrow keys go to the previous and next event",
    }).forEach(([name, value]) => this.strip.setAttribute(name, value));
    this.element.append(
      h("b", {}, "Replay"),
      this.shared,
      this.at,
      button("previous-event", "‹", "Previous event (,)", -1),
      h("div", { class: "grow time-line" }, this.text, this.strip, slider),
      button("next-event", "›", "Next event (.)", 1),
      this.end,
    );
  }

  /** Take the time span of the log, and with whom its time is shared. */
  set({ start, end, pages, other }: ReplayClock): void {
    const shared = (pages ?? 1) > 1 ? `time shared by ${pages} pages` : "shared time";
    setText(this.shared, `${shared}${other ? `; compared with ${other}` : ""}`);
    if (this.slider.min === String(start) && this.slider.max === String(end)) return;
    this.slider.min = String(start);
    this.slider.max = String(end);
    setText(this.end, formatTime(end));
    this.element.classList.remove("hidden");
  }

  private get marks(): TimeMark[] {
    return this.events.all;
  }

  private get range(): [number, number] {
    return [Number(this.slider.min), Math.max(Number(this.slider.max), Number(this.slider.min) + 1e-3)];
  }
  private x(time: number): number {
    const [a, b] = this.range;
    return 8 + ((time - a) / (b - a)) * (this.strip.clientWidth - 16);
  }
  private timeAt(x: number): number {
    const [a, b] = this.range;
    return a + ((x - 8) / Math.max(this.strip.clientWidth - 16, 1)) * (b - a);
  }
  private near(x: number): TimeMark | null {
    let best: TimeMark | null = null,
      near = NEAR;
    for (const m of this.marks) {
      const d = Math.abs(this.x(m.time) - x) + (m.kind === "loss" ? 2 : 0);
      if (d < near) {
        near = d;
        best = m;
      }
    }
    return best;
  }

  /** Go to the next event (1) or to the previous one (-1); not to losses, which are many. */
  step(by: number): void {
    if (this.store.hello?.kind !== "replay") return;
    const found = stepMark(this.events.notable, this.target ?? this.store.time, by);
    if (!found) return;
    this.target = found.time;
    this.left = this.store.time;
    this.seek(found.time);
  }

  /** Show the text of the event under the pointer, at the present time, or, with the focus, of the one before it. */
  private tell(): void {
    const { notable } = this.events,
      now = this.target ?? this.store.time,
      focused = document.activeElement === this.strip;
    const m = this.hovered ?? stepMark(notable, now, 0) ?? (focused ? stepMark(notable, now, -1) : null);
    toggleClass(this.text, "hidden", !m);
    const text = m ? `${formatTime(m.time)}  ${m.kind}: ${m.text}` : "no event here";
    if (this.strip.getAttribute("aria-valuetext") !== text) {
      this.strip.setAttribute("aria-valuetext", text);
      this.strip.setAttribute("aria-valuemin", this.slider.min);
      this.strip.setAttribute("aria-valuemax", this.slider.max);
      this.strip.setAttribute("aria-valuenow", String(m?.time ?? now));
    }
    if (!m) return;
    setText(this.text, text);
    const x = this.x(m.time),
      right = x > this.strip.clientWidth / 2;
    this.text.style.left = right ? "auto" : `${x}px`;
    this.text.style.right = right ? `${this.strip.clientWidth - x}px` : "auto";
  }

  update(): void {
    if (this.store.time !== this.left) this.target = null;
    this.tell();
    if (!this.sliding) this.slider.value = String(this.store.time);
    setText(this.at, formatTime(this.store.time));
    const w = this.strip.clientWidth,
      key = `${w} ${this.marks.length} ${this.events.bookmarks.version} ${cssVariable("--bad")}`;
    if (!w || key === this.drawn) return;
    this.drawn = key;
    this.strip.width = 2 * w;
    this.strip.height = 20;
    const c = context2d(this.strip);
    c.scale(2, 2);
    for (const m of [...this.marks].sort((a, b) => Number(a.kind !== "loss") - Number(b.kind !== "loss"))) {
      c.fillStyle = markColour(m.kind);
      if (m.kind === "loss") c.fillRect(this.x(m.time) - 0.5, 6, 1, 4);
      else c.fillRect(this.x(m.time) - 1, 0, 2.5, 10);
    }
  }
}
