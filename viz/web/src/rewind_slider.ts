// Rewind of a running simulation: a slider over the snapshots that the server holds, with a mark for each. Releasing it
// returns the simulation to the last snapshot before that time, after a confirmation.

import { context2d } from "./canvas";
import { cssVariable, formatTime, h, setText, toggleClass } from "./dom";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";

const EDGE = 8; // px from an end of the slider to the centre of its thumb there
const HELP = "Drag back to rewind the simulation to a snapshot (arrow keys choose a snapshot, Enter rewinds)";

/** The last of ascending times that is not later than a time; the first one if all are later. */
export function snapshotBefore(times: readonly number[], time: number): number | null {
  return [...times].reverse().find((t) => t <= time + 1e-6) ?? times[0] ?? null;
}

export class RewindSlider {
  readonly element = h("div", { id: "rewind", class: "hidden time-bar" });
  private readonly first = h("span", { class: "soft num", title: "Oldest snapshot" });
  private readonly now = h("span", { class: "num", title: "Simulation time" });
  private readonly strip = h("canvas", { class: "marks" });
  private readonly text = h("div", { class: "tip event-text hidden", id: "rewind-text", role: "status" });
  private readonly slider = h("input", { type: "range", id: "rewind-slider", step: "any", "aria-label": "Rewind" });
  private times: number[] = [];
  private target: number | null = null; // snapshot that is chosen but not confirmed
  private pressed = false;
  private drawn = "";

  constructor(
    private readonly store: SceneStore,
    private readonly rewind: (time: number) => void,
    private readonly changed: () => void,
  ) {
    const { slider } = this;
    slider.addEventListener("pointerdown", () => (this.pressed = true));
    slider.addEventListener("input", () => this.choose(snapshotBefore(this.times, Number(slider.value))));
    // not its change event, which does not come if the value is that of the last change event
    for (const end of ["pointerup", "pointercancel"])
      window.addEventListener(end, () => window.setTimeout(() => this.release(end === "pointerup"))); // after the click
    slider.addEventListener("blur", () => this.choose(null));
    slider.addEventListener("keydown", (e) => this.key(e));
    this.element.append(
      h("b", {}, "Rewind"),
      this.first,
      h("div", { class: "grow time-line" }, this.text, this.strip, slider),
      this.now,
    );
  }

  /** Take the times of the snapshots that the server holds. */
  set(times: number[]): void {
    this.times = times;
    if (this.target !== null && !this.pressed && !times.includes(this.target)) this.target = null;
    if (times.length) this.element.classList.remove("hidden"); // it stays in its place after a reset
  }

  private release(isComplete: boolean): void {
    if (!this.pressed) return;
    this.pressed = false;
    if (isComplete) this.ask();
    else this.choose(null);
  }

  private key(e: KeyboardEvent): void {
    const { times } = this,
      at = times.indexOf(this.target ?? NaN),
      k = at < 0 ? times.length : at;
    const to: Record<string, number> = {
      ArrowLeft: k - 1,
      ArrowDown: k - 1,
      PageDown: k - 10,
      Home: 0,
      ArrowRight: k + 1,
      ArrowUp: k + 1,
      PageUp: k + 10,
      End: times.length,
    };
    const chosen = to[e.key];
    if (chosen !== undefined) this.choose(times[Math.max(chosen, 0)] ?? null);
    else if (e.key === "Enter") this.ask();
    else if (e.key === "Escape" && this.target !== null) this.choose(null);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  private choose(time: number | null): void {
    this.target = time;
    this.update();
    this.changed();
  }

  /** Rewind to the chosen snapshot after a confirmation, because all connected clients are affected. */
  private ask(): void {
    const time = this.target;
    if (time === null) return;
    const question = `Rewind the simulation '${this.store.hello?.name}' to ${formatTime(time)}?`;
    const yes = window.confirm(`${question} All connected programs and pages return to this time.`);
    this.choose(null);
    if (yes) this.rewind(time);
  }

  update(): void {
    const { hello, time } = this.store;
    if (!hello || this.element.classList.contains("hidden")) return;
    const { slider, target, times } = this,
      why = whyNoCommands(hello) || (times.length ? "" : "the server holds no snapshot");
    slider.disabled = why !== "";
    slider.title = why || HELP;
    if (!this.pressed) {
      // the scale stands still under a pressed thumb
      slider.min = String(times[0] ?? 0);
      slider.max = String(Math.max(time, (times[0] ?? 0) + 1e-3));
      slider.value = String(target ?? time);
    }
    const text = target === null ? formatTime(time) : `Rewind to ${formatTime(target)}`;
    if (slider.getAttribute("aria-valuetext") !== text) slider.setAttribute("aria-valuetext", text);
    setText(this.now, formatTime(time));
    setText(this.first, times.length ? formatTime(times[0]!) : "–");
    toggleClass(this.text, "hidden", target === null);
    this.draw();
    if (target === null) return;
    setText(this.text, text);
    const x = this.x(target),
      right = x > this.strip.clientWidth / 2;
    this.text.style.left = right ? "auto" : `${x}px`;
    this.text.style.right = right ? `${this.strip.clientWidth - x}px` : "auto";
  }

  private x(time: number): number {
    const [a, b] = [Number(this.slider.min), Number(this.slider.max)];
    return EDGE + ((time - a) / Math.max(b - a, 1e-3)) * (this.strip.clientWidth - 2 * EDGE);
  }

  private draw(): void {
    const w = this.strip.clientWidth,
      { min, max } = this.slider,
      // a mark moves by a pixel at least
      scale = ((Number(max) - Number(min)) / Math.max(w, 1)).toPrecision(3),
      key = [w, min, scale, this.times.length, this.times.at(-1), this.target, cssVariable("--soft")].join();
    if (!w || key === this.drawn) return;
    this.drawn = key;
    this.strip.width = 2 * w;
    this.strip.height = 20;
    const c = context2d(this.strip);
    c.scale(2, 2);
    for (const t of this.times) {
      const isTarget = t === this.target;
      c.fillStyle = cssVariable(isTarget ? "--accent" : "--soft");
      c.fillRect(this.x(t) - (isTarget ? 1.5 : 0.5), isTarget ? 0 : 4, isTarget ? 3 : 1, isTarget ? 10 : 6);
    }
  }
}
