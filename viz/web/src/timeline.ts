// Timeline of a log: a slider with marks of events above it.

import { formatTime, cssVariable, h, setText } from "./dom";
import type { SceneStore } from "./scene_store";
import { context2d } from "./canvas";
import { type EventMarks, markColour } from "./event_marks";
import type { ReplayClock, TimeMark } from "./page_protocol";

const NEAR = 5; // px

export class Timeline {
  readonly element = h("div", { id: "replay", class: "hidden" });
  private readonly at = h("span", { id: "replay-at", class: "num" });
  private readonly end = h("span", { class: "soft num" });
  private readonly shared = h("span", {
    class: "soft",
    id: "replay-shared",
    title: "All pages of this viewer show the same time: play, pause and the slider act on all of them",
  });
  private readonly strip = h("canvas", { class: "marks", id: "marks" });
  private readonly slider: HTMLInputElement;
  private sliding = false;
  private drawn = "";

  constructor(
    private readonly store: SceneStore,
    private readonly events: EventMarks,
    seek: (time: number) => void,
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
    this.strip.addEventListener("click", (e) => {
      const m = this.near(e.offsetX);
      seek(m ? m.time : this.timeAt(e.offsetX));
    });
    this.strip.addEventListener("pointermove", (e) => {
      const m = this.near(e.offsetX);
      this.strip.title = m ? `${formatTime(m.time)}  ${m.kind}: ${m.text}` : "";
    });
    this.element.append(
      h("b", {}, "Replay"),
      this.shared,
      this.at,
      h("div", { class: "grow time-line" }, this.strip, slider),
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

  update(): void {
    if (!this.sliding) this.slider.value = String(this.store.time);
    setText(this.at, formatTime(this.store.time));
    const w = this.strip.clientWidth,
      key = `${w} ${this.marks.length} ${cssVariable("--bad")}`;
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
