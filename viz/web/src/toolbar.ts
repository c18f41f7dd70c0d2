// Toolbar: state and speed of the simulation, and the buttons that control it.

import { formatNumber, formatTime, h, setText } from "./dom";
import { nextSpeed, showKeyHelp, SPEEDS } from "./keyboard";
import { type HelloMessage, SIGNAL_WIDTH } from "./page_protocol";
import { RUN_STATES, type SceneStore } from "./scene_store";

type Stat = "time" | "factor" | "late" | "vehicles" | "buoys" | "signals" | "clients" | "fps";
const STATS: [key: Stat, name: string, wide: boolean][] = [
  ["time", "elapsed", false],
  ["factor", "real-time factor", false],
  ["late", "delay, maximum delay (late ticks)", true],
  ["vehicles", "vehicles", false],
  ["buoys", "buoys", false],
  ["signals", "signals", false],
  ["clients", "clients (round trip)", true],
  ["fps", "frames/s", true],
];
const TONES: Record<string, string> = { running: "good", paused: "warm", lost: "bad" };
const READ_ONLY = "This viewer is read-only; to send commands, start it with: wavesim viz --control";

export class Toolbar {
  readonly element = h("div", { id: "bar" });
  private readonly name = h("small", {});
  private readonly state = h("span", { class: "pill soft", id: "stat-state" }, "…");
  private readonly speed: HTMLSelectElement;
  private readonly stats = new Map<Stat, HTMLElement>();
  private readonly buttons: HTMLButtonElement[];

  constructor(
    private readonly store: SceneStore,
    private readonly control: (verb: string, value?: number) => void,
    toggleTheme: () => void,
  ) {
    const button = (verb: string, text: string, title: string, act: () => void): HTMLButtonElement =>
      h("button", { id: `do-${verb}`, title, onclick: act }, text);
    this.buttons = [
      button("start", "▶", "Start or resume (space)", () => control("start")),
      button("pause", "❚❚", "Pause (space)", () => control("pause")),
      button("step", "▸|", "Single step (N)", () => this.step()),
      button("stop", "■", "Stop (X)", () => control("stop")),
    ];
    this.speed = h(
      "select",
      {
        id: "speed",
        title: "Simulation speed: simulated seconds per second (+ and −)",
        onchange: () => control("speed", Number(this.speed.value)),
      },
      ...SPEEDS.map((v) => h("option", { value: v, selected: v === 1 }, v ? `${v} ×` : "fast")),
    );
    const models = (): void => {
      location.hash = "#configure";
    };
    this.element.append(
      h("div", { class: "brand" }, h("img", { src: "/static/icon.svg", alt: "" }), "WaVeSim", this.name),
      this.state,
      h("div", { class: "group" }, ...this.buttons, this.speed),
      ...STATS.map((s) => this.stat(...s)),
      h("span", { class: "grow" }),
      h(
        "div",
        { class: "group" },
        h("button", { title: "Configure vehicle models", onclick: models }, "models"),
        h("button", { title: "Switch between light and dark (Shift+L)", onclick: toggleTheme }, "◐"),
        h("button", { id: "do-help", title: "Keyboard shortcuts and legend (?)", onclick: () => showKeyHelp() }, "?"),
      ),
    );
  }

  private stat(key: Stat, name: string, wide: boolean): HTMLElement {
    const value = h("b", { id: `stat-${key}` }, "–");
    this.stats.set(key, value);
    return h("div", { class: `stat${wide ? " wide" : ""}` }, value, h("span", {}, name));
  }

  private set(key: Stat, text: string): void {
    setText(this.stats.get(key)!, text);
  }

  /** Take the name of the source, and what this page may do. */
  permit(hello: HelloMessage): void {
    setText(this.name, hello.name);
    for (const button of this.buttons) {
      button.disabled = !hello.control;
      if (!hello.control) button.title = READ_ONLY;
    }
    this.speed.disabled = !hello.control;
    // a replay always has a speed, also while paused
    if (hello.kind === "replay") this.speed.querySelector("option[value='0']")?.remove();
  }

  step(): void {
    this.control("step", this.store.hello?.kind === "replay" ? 25 : 1);
  }

  startOrPause(): void {
    this.control(this.store.last?.state === 1 ? "pause" : "start");
  }

  stop(): void {
    this.control("stop");
  }

  /** Choose the next faster or slower speed. */
  faster(by: number): void {
    const speeds = [...this.speed.options].map((o) => Number(o.value)),
      speed = nextSpeed(this.store.last?.speed ?? 1, by, speeds);
    this.speed.value = String(speed);
    this.control("speed", speed);
  }

  /** Update the clients with their mean round-trip time. */
  clients(): void {
    const w = this.store.weather;
    if (!w) return;
    const rtt = w.clients.map((c) => c.rtt_ms).filter((v): v is number => v !== null),
      mean = rtt.reduce((a, b) => a + b, 0) / rtt.length;
    if (this.store.lost || w.connected === null) this.set("clients", "–");
    else this.set("clients", `${w.connected}${rtt.length ? ` (${formatNumber(mean, 1)} ms)` : ""}`);
  }

  /** Update all numbers; `rate` is the number of pictures per second. */
  update(rate: number): void {
    const { last: f, lost, hello } = this.store;
    if (!f) return;
    const state = lost ? "lost" : (RUN_STATES[f.state] ?? "?"),
      replay = hello?.kind === "replay";
    setText(this.state, lost ? "no data" : replay ? (f.state === 1 ? "playing" : "paused") : state);
    this.state.className = `pill ${TONES[state] ?? "soft"}`;
    this.set("time", formatTime(this.store.time));
    this.set("factor", lost ? "–" : `${formatNumber(f.factor, f.factor >= 10 ? 0 : 2)} ×`);
    const late = `${formatNumber(f.lateness, 2)}, ${formatNumber(f.latenessMax, 1)} ms (${f.late})`;
    this.set("late", hello?.kind === "live" && !lost ? late : "–");
    this.showSpeed(String(+f.speed.toFixed(3)));
    const buoys = [...this.store.bodies.values()].filter((b) => b.type === "buoy").length;
    this.set("vehicles", String(this.store.bodies.size - buoys));
    this.set("buoys", String(buoys));
    this.set("signals", String(f.signals.length / SIGNAL_WIDTH));
    this.set("fps", String(rate));
  }

  /** Show that nothing is drawn. */
  rest(): void {
    this.set("fps", "still");
  }

  private showSpeed(speed: string): void {
    if (document.activeElement === this.speed || this.speed.value === speed) return;
    if (![...this.speed.options].some((o) => o.value === speed))
      this.speed.append(h("option", { value: speed }, `${speed} ×`));
    this.speed.value = speed;
  }
}
