// Toolbar: state and speed of the simulation, and the buttons that control it.

import { Menu } from "./menu";
import { formatNumber, formatTime, h, setText, toggleClass } from "./dom";
import { nextSpeed, showKeyHelp, SPEEDS } from "./keyboard";
import { type HelloMessage, SIGNAL_WIDTH } from "./page_protocol";
import { whyNoCommands } from "./permissions";
import { RUN_STATES, type SceneStore } from "./scene_store";

type Stat = "utc" | "time" | "factor" | "log" | "link" | "late" | "vehicles" | "buoys" | "signals" | "clients" | "fps";
const STATS: [key: Stat, name: string][] = [
  ["utc", "UTC"],
  ["time", "simulation time"],
  ["factor", "real-time factor"],
  ["log", "log"],
  ["link", "link"],
];
const DIAGNOSTICS: [key: Stat, name: string][] = [
  ["late", "delay, maximum delay (late ticks)"],
  ["vehicles", "vehicles"],
  ["buoys", "buoys"],
  ["signals", "signals in transit"],
  ["clients", "clients (round trip)"],
  ["fps", "frames/s"],
];
const OLD_S = 2; // age of the newest frame at which the link is called slow
const TONES: Record<string, string> = { running: "good", paused: "warm", lost: "bad" };

export class Toolbar {
  readonly element = h("div", { id: "bar" });
  private readonly name = h("small", {});
  private readonly help = h(
    "button",
    { id: "do-help", title: "Keyboard shortcuts and legend (?)", onclick: () => showKeyHelp() },
    "?",
  );
  private readonly state = h("span", { class: "pill soft", id: "stat-state" }, "…");
  private readonly speed: HTMLSelectElement;
  private readonly stats = new Map<Stat, HTMLElement>();
  private readonly buttons: HTMLButtonElement[];

  constructor(
    private readonly store: SceneStore,
    private readonly control: (verb: string, value?: number) => void,
    preferences: HTMLElement,
  ) {
    const button = (verb: string, text: string, title: string, act: () => void): HTMLButtonElement =>
      h("button", { id: `do-${verb}`, title, onclick: act }, text);
    this.buttons = [
      button("start", "▶", "Start or resume (space)", () => control("start")),
      button("pause", "❚❚", "Pause (space)", () => control("pause")),
      button("step", "▸|", "Single step (N)", () => this.step()),
      button("stop", "■", "Stop (X)", () => this.stop()),
      button("reset", "↺", "Reset to the beginning", () => this.reset()),
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
      new Menu("diagnostics", "diagnostics", ...DIAGNOSTICS.map((s) => this.stat(...s))).element,
      h(
        "div",
        { class: "group" },
        h("button", { title: "Configure vehicle models", onclick: models }, "models"),
        this.help,
      ),
    );
    this.prefer(preferences);
    window.setInterval(() => this.tick(), 1000);
    this.tick();
  }

  /** Take the buttons that each view of the page has while it is shown. */
  prefer(preferences: HTMLElement): void {
    this.help.before(preferences);
  }

  private stat(key: Stat, name: string): HTMLElement {
    const value = h("b", { id: `stat-${key}` }, "–");
    this.stats.set(key, value);
    return h("div", { class: "stat" }, value, h("span", {}, name));
  }

  /** Set a value with its tone: good, warm, bad or none. */
  private rate(key: Stat, text: string, tone: string, title = ""): void {
    const value = this.stats.get(key)!;
    setText(value, text);
    if (value.className !== tone) value.className = tone;
    if (value.title !== title) value.title = title;
  }

  /** Update what changes without a frame: the clock on the wall, and the age of the newest frame. */
  private tick(): void {
    this.set("utc", new Date().toISOString().slice(11, 19));
    const { lost, last, hello } = this.store,
      age = this.store.age();
    if (!hello) return;
    if (lost) this.rate("link", "lost", "bad", lost);
    else if (last?.state === 1 && age > OLD_S)
      this.rate("link", `${age.toFixed(0)} s old`, "warm", "age of the newest frame of the running simulation");
    else this.rate("link", "ok", "good", "frames are arriving from the viewer's server");
  }

  /** Show the state of the log. */
  private logged(): void {
    const log = this.store.weather?.log ?? "",
      replay = this.store.hello?.kind === "replay";
    if (!log || this.store.lost) this.rate("log", "–", "");
    else if (log === "ok") this.rate("log", replay ? "complete" : "recording", "good");
    else if (log === "off") this.rate("log", "off", "warm", "the server is not writing a log");
    else this.rate("log", replay ? "incomplete" : "failed", replay ? "warm" : "bad", log);
  }

  private set(key: Stat, text: string): void {
    setText(this.stats.get(key)!, text);
  }

  /** Take the name of the source, and what this page may do. */
  permit(hello: HelloMessage): void {
    setText(this.name, hello.name);
    const why = hello.kind === "replay" && hello.control ? "" : whyNoCommands(hello);
    for (const button of this.buttons) {
      button.disabled = why !== "";
      if (why) button.title = why;
    }
    this.speed.disabled = why !== "";
    toggleClass(this.buttons.at(-1)!, "hidden", hello.kind === "replay"); // its stop returns to the start
    // a replay always has a speed, also while paused
    if (hello.kind === "replay") this.speed.querySelector("option[value='0']")?.remove();
  }

  step(): void {
    this.control("step", this.store.hello?.kind === "replay" ? 25 : 1);
  }

  startOrPause(): void {
    this.control(this.store.last?.state === 1 ? "pause" : "start");
  }

  /** Stop the simulation, after a confirmation: everyone's run ends. A replay only returns to its start. */
  stop(): void {
    const { hello } = this.store;
    const text = `Stop the simulation '${hello?.name}'? It ends for all connected programs and pages.`;
    if (hello?.kind !== "live" || !hello.control || window.confirm(text)) this.control("stop");
  }

  /** Reset the simulation, after a confirmation: everyone's run begins again. */
  reset(): void {
    const text = `Reset the simulation '${this.store.hello?.name}' to its beginning, and stop it?`;
    if (window.confirm(`${text} All connected programs and pages return to this time.`)) this.control("reset");
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
    this.tick();
    this.logged();
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
    this.logged();
    this.tick();
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
