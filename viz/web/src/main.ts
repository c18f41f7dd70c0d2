// Mission control: puts the parts together, and knows the keys.

import { Chart } from "./chart";
import { Configure } from "./configure";
import { add, clock, fill, h, number, toast } from "./dom";
import { Link, type Message } from "./link";
import { Mission } from "./mission";
import { Details } from "./details";
import { Events, Fleet } from "./panels";
import { STATES, Store } from "./store";
import { View3D, type CameraMode } from "./view3d";

const KEYS: [string, string][] = [
  ["Space", "start, pause or go on"], ["N", "one step (hold it: step after step)"], ["X", "stop"], ["+  −", "faster, slower"],
  ["1  2  3  4", "free camera, follow the chosen body, from above, chart"], ["W A S D  E Q", "move the camera (also arrow keys and page up, down); mouse: turn, shift, zoom"],
  ["H", "whole scene"], ["O", "view from on board the chosen body"], ["B  Shift+B", "next, previous body"], ["Esc", "choose nothing"],
  ["L  T  R  U  G  I", "labels, trails, sound spheres, sea surface, arrows, beams of instruments on and off"], ["Z", "bodies drawn larger than they are, on and off"], ["M", "draw a mission"],
  ["[  ]", "side panels on and off"], ["Shift+L", "light or dark"], ["?", "this page"],
];

class App {
  private readonly store = new Store();
  private readonly link: Link;
  private readonly view: View3D;
  private readonly chart: Chart;
  private readonly fleet: Fleet;
  private readonly details: Details;
  private readonly events: Events;
  private readonly mission: Mission;
  private readonly root = h("div", { id: "app" });
  private readonly stage = h("div", { id: "stage" });
  private readonly bar = h("div", { id: "bar" });
  private readonly replay = h("div", { id: "replay", class: "hidden" });
  private readonly banner = h("div", { class: "banner hidden", role: "alert" });
  private readonly note = h("div", { class: "banner note hidden" });
  private readonly mishap = h("div", { class: "banner hidden", id: "mishap", role: "alert" });
  private readonly stats: Record<string, HTMLElement> = {};
  private readonly buttons: Record<string, HTMLButtonElement> = {};
  private charting = false;
  private dark = localStorage.getItem("wavesim-theme") !== "light";
  private slider: HTMLInputElement | null = null;
  private sliding = false;
  private tableAt = 0;
  private homed = false;
  private panelAt = -1;
  private missing: Record<string, string> = {}; // what the viewer's server fails at
  private mishaps = 0; // how often it failed so far
  private readonly failed = new Map<string, { text: string; count: number; until: number }>(); // what this page failed at
  private readonly times: number[] = [];

  constructor() {
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
    const choose = (row: number | null): void => this.choose(row);
    this.view = new View3D(this.store, choose, (row) => this.openOnboard(row));
    this.chart = new Chart(this.store, choose);
    this.fleet = new Fleet(this.store, (row) => { this.choose(row); });
    this.details = new Details(this.store, { onboard: (row) => this.openOnboard(row), follow: () => this.setMode("follow"), goTo: (row) => { this.setMode("free"); this.view.goTo(row); },
      fail: (row) => (this.store.hello?.control && this.store.hello.kind === "live" ? (part, kind, amount, field) => this.link.fault(row, part, kind, amount, field) : null) });
    this.events = new Events(this.store, choose);
    this.mission = new Mission(this.store, this.chart, this.stage, () => this.setMode("chart"));
    this.stage.append(this.view.canvas, this.view.over, this.chart.canvas, this.view.compass, this.tools(), h("div", { class: "banners" }, this.banner, this.note, this.mishap));
    this.chart.canvas.classList.add("hidden");
    this.root.append(this.bar, h("div", { id: "left" }, this.fleet.element), this.stage, h("div", { id: "bottom" }, this.replay, this.events.element), h("div", { id: "right" }, this.details.element));
    document.body.append(this.root);
    this.buildBar();
    this.view.theme(this.dark);
    this.link = new Link((f) => this.store.frame(f), (m) => this.message(m), (on) => this.connection(on), (part, error) => this.fail(part, error));
    window.addEventListener("keydown", (e) => this.key(e));
    window.addEventListener("resize", () => undefined);
    const turn = (): void => {
      requestAnimationFrame(turn); // first: a picture that fails is not the last one
      this.part("the page", () => this.draw());
    };
    requestAnimationFrame(turn);
    (window as unknown as Record<string, unknown>)["wavesim"] = { store: this.store, view: this.view, chart: this.chart, link: this.link, app: this };
  }

  // -- what comes from the server --------------------------------------------------------------------

  private message(m: Message): void {
    const s = this.store;
    switch (m.type) {
      case "hello":
        s.hello = m;
        this.permit();
        this.view.clearTrails();
        if (m.kind === "replay") void this.loadTracks();
        if (m.kind === "none") location.hash = "#configure";
        if (s.chosen !== null) this.link.watch(s.chosen);
        break;
      case "scene":
        s.scene = m.scene;
        this.view.rebuild();
        this.chart.build(this.dark);
        this.homed = false;
        this.note.classList.toggle("hidden", !m.scene.warning);
        this.note.textContent = m.scene.warning ?? "";
        this.stats["name"]!.textContent = s.hello?.name ?? "";
        break;
      case "roster": {
        const first = s.bodies.size === 0, { joined, left } = s.roster(m.bodies);
        if (!first && s.hello?.kind !== "replay") {
          if (joined.length) toast(joined.length > 3 ? `${joined.length} bodies joined` : `${joined.join(", ")} joined`);
          else if (left.length) toast(left.length > 3 ? `${left.length} bodies left` : `${left.join(", ")} left`);
        }
        if (s.chosen !== null && !s.bodies.has(s.chosen)) this.choose(null);
        break;
      }
      case "sounds":
        s.sounds(m.sent, m.receptions);
        this.view.sounds.hear(s, m.receptions);
        this.events.add([...m.sent, ...m.receptions].sort((a, b) => a.time - b.time));
        for (const n of m.notices) { this.events.note(n.time, n.name, n.text); toast(`${n.name}: ${n.text}`); }
        if (m.missed) this.events.lose(m.missed);
        break;
      case "beliefs": s.believe(m.bodies); break;
      case "weather": s.weather = m; this.weather(); break;
      case "kit": if (m.row === s.chosen) { s.kit = m.kit; this.details.fit(m.kit); } break;
      case "panel": if (m.row === s.chosen) { s.panel = m.panel; if (!m.panel) this.details.clear(); } break;
      case "trouble":
        this.banner.textContent = m.text;
        this.banner.classList.toggle("hidden", !m.text);
        break;
      case "mishaps": this.missing = m.parts; this.mishaps = m.total; this.tellMishaps(); break;
      case "reply": toast(m.text || (m.ok ? "done" : "refused"), !m.ok); break;
    }
  }

  private connection(on: boolean): void {
    this.banner.textContent = on ? "" : "the viewer's server does not answer (was `wavesim viz` ended?); trying again";
    this.banner.classList.toggle("hidden", on);
  }

  /** Do a part of a picture; if it fails, the others are drawn. */
  private part(name: string, act: () => void): void {
    try { act(); } catch (error) { this.fail(name, error); }
  }

  /** Something in this page failed: it is said for a while, and everything else goes on. */
  private fail(part: string, error: unknown): void {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error), old = this.failed.get(part);
    if (old?.text !== text) console.error(part, error);
    this.failed.set(part, { text, count: (old?.count ?? 0) + 1, until: performance.now() + 8000 });
    this.tellMishaps();
  }

  private tellMishaps(): void {
    const now = performance.now();
    for (const [part, f] of this.failed) if (f.until < now) this.failed.delete(part);
    const here = [...this.failed].map(([part, f]) => `${part} (${f.text}, ${f.count} times)`), there = Object.entries(this.missing).map(([part, text]) => `${part} (${text})`);
    const text = [there.length ? `The viewer's server fails at ${there.join(", ")}; its console says more (${this.mishaps} errors so far).` : "", here.length ? `This page fails at ${here.join(", ")}.` : ""].filter(Boolean).join(" ");
    if (this.mishap.textContent !== text) this.mishap.textContent = text;
    this.mishap.classList.toggle("hidden", !text);
  }

  private async loadTracks(): Promise<void> {
    const found = (await (await fetch("/tracks")).json()) as Record<string, { time: number[]; position: number[]; believed_time: number[]; believed: number[] }>;
    for (const [row, t] of Object.entries(found)) {
      const track = this.store.track(Number(row));
      Object.assign(track, { time: t.time, ned: t.position, believedTime: t.believed_time, believed: t.believed, whole: true });
      track.append = () => false;
    }
    this.view.wholeTracks();
  }

  // -- the bar ------------------------------------------------------------------------------------------

  private stat(key: string, name: string, wide = false): HTMLElement {
    this.stats[key] = h("b", { id: `stat-${key}` }, "–");
    return h("div", { class: `stat${wide ? " wide" : ""}` }, this.stats[key]!, h("span", {}, name));
  }

  private button(key: string, text: string, title: string, act: () => void): HTMLButtonElement {
    return (this.buttons[key] = h("button", { id: `do-${key}`, title, onclick: act }, text));
  }

  private buildBar(): void {
    this.stats["name"] = h("small", {});
    this.stats["state"] = h("span", { class: "pill soft", id: "stat-state" }, "…");
    const speed = h("select", { id: "speed", title: "Simulated seconds per second (+ and −)", onchange: () => this.control("speed", Number(speed.value)) }, ...[0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 0].map((v) => h("option", { value: v, selected: v === 1 }, v ? `${v} ×` : "fast")));
    this.stats["speed"] = speed;
    fill(
      this.bar,
      h("div", { class: "brand" }, h("img", { src: "/static/icon.svg", alt: "" }), "WaVeSim", this.stats["name"]),
      this.stats["state"],
      h("div", { class: "group" }, this.button("start", "▶", "Start or go on (space)", () => this.control("start")), this.button("pause", "❚❚", "Pause (space)", () => this.control("pause")), this.button("step", "▸|", "One step (N)", () => this.control("step", this.stepTicks())), this.button("stop", "■", "Stop (X)", () => this.control("stop")), speed),
      this.stat("time", "elapsed"), this.stat("factor", "real-time factor"), this.stat("late", "lateness, worst (late ticks)", true), this.stat("vehicles", "vehicles"), this.stat("buoys", "buoys"), this.stat("signals", "signals"), this.stat("clients", "clients (round trip)", true), this.stat("fps", "frames/s", true),
      h("span", { class: "grow" }),
      h("div", { class: "group" }, h("button", { title: "Make vehicle models", onclick: () => { location.hash = "#configure"; } }, "models"), h("button", { title: "Light or dark (Shift+L)", onclick: () => this.theme() }, "◐"), h("button", { id: "do-help", title: "Keys (?)", onclick: () => this.help() }, "?")),
    );
  }

  private permit(): void {
    const may = this.store.hello?.control ?? false;
    for (const key of ["start", "pause", "step", "stop"]) {
      this.buttons[key]!.disabled = !may;
      if (!may) this.buttons[key]!.title = "This viewer only looks; start it with: wavesim viz --control";
    }
    (this.stats["speed"] as HTMLSelectElement).disabled = !may;
  }

  private stepTicks(): number { return this.store.hello?.kind === "replay" ? 25 : 1; }
  private control(verb: string, value?: number): void { this.link.control(verb, value); }

  private weather(): void {
    const w = this.store.weather;
    if (!w) return;
    const rtt = w.clients.map((c) => c.rtt_ms).filter((v): v is number => v !== null);
    this.stats["clients"]!.textContent = w.connected === null ? "–" : `${w.connected}${rtt.length ? ` (${number(rtt.reduce((a, b) => a + b, 0) / rtt.length, 1)} ms)` : ""}`;
    if (w.replay) this.replayBar(w.replay);
  }

  private replayBar(r: { start: number; end: number; playing: boolean; speed: number }): void {
    if (!this.slider) {
      const slider = h("input", { type: "range", id: "slider", min: r.start, max: r.end, step: 0.01, "aria-label": "Time",
        oninput: () => { this.sliding = true; this.control("seek", Number(slider.value)); }, onchange: () => { this.sliding = false; } });
      this.slider = slider;
      fill(this.replay, h("b", {}, "Replay"), h("span", { id: "replay-at", class: "num" }), slider, h("span", { class: "soft num" }, clock(r.end)));
      this.replay.classList.remove("hidden");
    }
  }

  private numbers(): void {
    const f = this.store.last;
    if (!f) return;
    const pill = this.stats["state"]!, state = STATES[f.state] ?? "?";
    pill.textContent = this.store.hello?.kind === "replay" ? (f.state === 1 ? "playing" : "paused") : state;
    pill.className = `pill ${state === "running" ? "good" : state === "paused" ? "warm" : "soft"}`;
    this.stats["time"]!.textContent = clock(this.store.time);
    this.stats["factor"]!.textContent = `${number(f.factor, f.factor >= 10 ? 0 : 2)} ×`;
    this.stats["late"]!.textContent = this.store.hello?.kind === "live" ? `${number(f.lateness, 2)}, ${number(f.latenessMax, 1)} ms (${f.late})` : "–";
    const speed = this.stats["speed"] as HTMLSelectElement, wanted = String(+f.speed.toFixed(3));
    if (document.activeElement !== speed && speed.value !== wanted) {
      if (![...speed.options].some((o) => o.value === wanted)) speed.append(h("option", { value: wanted }, `${wanted} ×`));
      speed.value = wanted;
    }
    let buoys = 0;
    for (const b of this.store.bodies.values()) if (b.type === "buoy") buoys++;
    this.stats["vehicles"]!.textContent = String(this.store.bodies.size - buoys);
    this.stats["buoys"]!.textContent = String(buoys);
    this.stats["signals"]!.textContent = String(f.signals.length / 9);
    this.stats["fps"]!.textContent = String(this.times.length);
    if (this.slider) {
      if (!this.sliding) this.slider.value = String(this.store.time);
      this.replay.querySelector("#replay-at")!.textContent = clock(this.store.time);
    }
  }

  // -- views ------------------------------------------------------------------------------------------------

  private tools(): HTMLElement {
    const mode = (m: CameraMode | "chart", text: string, key: string): HTMLElement => this.button(`view-${m}`, text, `${text} (${key})`, () => this.setMode(m));
    const toggle = (name: keyof View3D["show"], text: string, key: string): HTMLElement => this.button(`show-${name}`, text, `${text} on or off (${key})`, () => this.toggle(name));
    return h("div", { class: "tools" }, mode("free", "free", "1"), mode("follow", "follow", "2"), mode("top", "from above", "3"), mode("chart", "chart", "4"), h("button", { title: "Whole scene (H)", onclick: () => this.home() }, "⌂"),
      toggle("labels", "names", "L"), toggle("trails", "trails", "T"), toggle("spheres", "sound", "R"), toggle("surface", "surface", "U"), toggle("arrows", "arrows", "G"), toggle("beams", "beams", "I"), toggle("magnify", "enlarge", "Z"), this.button("mission", "mission", "Draw waypoints, beacons and fences (M)", () => this.mission.toggle()));
  }

  private toggle(name: keyof View3D["show"]): void { this.view.show[name] = !this.view.show[name]; }

  setMode(mode: CameraMode | "chart"): void {
    this.charting = mode === "chart";
    this.chart.canvas.classList.toggle("hidden", !this.charting);
    this.view.compass.classList.toggle("hidden", this.charting);
    if (mode === "chart") { if (!this.homed) { this.chart.home(); this.homed = true; } }
    else this.view.setMode(mode);
  }

  private home(): void { if (this.charting) this.chart.home(); else this.view.home(); }

  choose(row: number | null): void {
    if (row === this.store.chosen) return;
    this.store.chosen = row;
    this.store.panel = this.store.kit = null;
    this.panelAt = -1;
    this.link.watch(row);
    if (row === null) this.details.clear();
  }

  private openOnboard(row: number): void {
    this.choose(row);
    const old = this.view.onboard;
    if (old) { old.row = row; document.querySelector(".window .head b")!.textContent = `on board ${this.store.name(row)}`; return; }
    const picture = h("canvas", { class: "picture" }), overlay = h("canvas", { class: "hud" }), compass = h("canvas", { class: "small-compass", width: 124, height: 124 });
    const close = (): void => { box.remove(); this.view.onboard = null; };
    const head = h("div", { class: "head" }, h("b", { class: "grow" }, `on board ${this.store.name(row)}`), h("button", { title: "Close (O)", onclick: close }, "×"));
    const box = h("div", { class: "window", id: "onboard" }, head, picture, overlay, compass);
    const width = Math.min(380, 0.42 * this.stage.clientWidth);
    Object.assign(box.style, { left: "14px", bottom: "34px", width: `${width}px`, height: `${0.7 * width}px` });
    let held: [number, number] | null = null;
    head.addEventListener("pointerdown", (e) => { held = [e.clientX - box.offsetLeft, e.clientY - box.offsetTop]; head.setPointerCapture(e.pointerId); });
    head.addEventListener("pointermove", (e) => {
      if (!held) return;
      const clamp = (v: number, most: number): number => Math.max(0, Math.min(v, most));
      Object.assign(box.style, { left: `${clamp(e.clientX - held[0], this.stage.clientWidth - box.offsetWidth)}px`, top: `${clamp(e.clientY - held[1], this.stage.clientHeight - box.offsetHeight)}px`, bottom: "auto" });
    });
    head.addEventListener("pointerup", () => { held = null; });
    this.stage.append(box);
    this.view.onboard = { row, picture, overlay, compass };
  }

  private closeOnboard(): void { document.querySelector("#onboard")?.remove(); this.view.onboard = null; }

  private theme(): void {
    this.dark = !this.dark;
    localStorage.setItem("wavesim-theme", this.dark ? "dark" : "light");
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
    this.view.theme(this.dark);
    this.chart.build(this.dark);
    this.details.recolour();
  }

  private help(): void {
    const old = document.querySelector(".help");
    if (old) { old.remove(); return; }
    const box = h("div", { class: "box" }, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, ...KEYS.map(([k, t]) => { const td = h("td", {}); for (const part of k.split("  ")) add(td, h("kbd", {}, part), " "); return h("tr", {}, td, h("td", {}, t)); }))),
      h("p", { class: "soft" }, "North, east, down are mapped to the right, up and towards you: see the viewer's guide (docs/viewer.md)."));
    document.body.append(h("div", { class: "help", onclick: (e: MouseEvent) => { if ((e.target as HTMLElement).classList.contains("help")) this.help(); } }, box));
  }

  // -- keys ---------------------------------------------------------------------------------------------------

  private key(e: KeyboardEvent): void {
    const target = e.target as HTMLElement;
    if (location.hash === "#configure" || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || e.ctrlKey || e.metaKey || e.altKey) return;
    const s = this.store, speeds = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30];
    const faster = (by: number): void => {
      const at = s.last?.speed ?? 1, k = speeds.findIndex((v) => v >= at - 1e-9);
      const next = speeds[Math.max(0, Math.min(speeds.length - 1, (k < 0 ? speeds.length - 1 : k) + by))]!;
      (this.stats["speed"] as HTMLSelectElement).value = String(next);
      this.control("speed", next);
    };
    const next = (by: number): void => {
      const rows = [...s.bodies.values()].filter((b) => b.type !== "buoy").map((b) => b.row);
      if (!rows.length) return;
      const k = s.chosen === null ? -1 : rows.indexOf(s.chosen);
      this.choose(rows[(k + by + rows.length) % rows.length]!);
    };
    const acts: Record<string, () => void> = {
      " ": () => this.control(s.last?.state === 1 ? "pause" : "start"), n: () => this.control("step", this.stepTicks()), x: () => this.control("stop"),
      "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1),
      "1": () => this.setMode("free"), "2": () => this.setMode("follow"), "3": () => this.setMode("top"), "4": () => this.setMode("chart"),
      h: () => this.home(), b: () => next(1), B: () => next(-1), Escape: () => { document.querySelector(".help")?.remove(); this.choose(null); },
      o: () => { if (this.view.onboard) this.closeOnboard(); else if (s.chosen !== null) this.openOnboard(s.chosen); },
      l: () => this.toggle("labels"), t: () => this.toggle("trails"), r: () => this.toggle("spheres"), u: () => this.toggle("surface"), g: () => this.toggle("arrows"), i: () => this.toggle("beams"), z: () => this.toggle("magnify"),
      m: () => this.mission.toggle(), "[": () => this.root.classList.toggle("no-left"), "]": () => this.root.classList.toggle("no-right"), L: () => this.theme(), "?": () => this.help(),
    };
    const act = acts[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  }

  // -- each picture ---------------------------------------------------------------------------------------------

  private draw(): void {
    if (location.hash === "#configure") return;
    const now = performance.now();
    this.times.push(now);
    while (this.times.length && this.times[0]! < now - 1000) this.times.shift();
    this.part("the moment", () => this.store.now());
    if (this.charting) this.part("the chart", () => this.chart.render());
    if (!this.charting || this.view.onboard) this.part("the picture", () => this.view.render(!this.charting));
    const panel = this.store.panel;
    if (panel && panel.time !== this.panelAt) { this.panelAt = panel.time; this.part("the data of the chosen body", () => this.details.update(panel)); }
    if (now < this.tableAt) return;
    this.tableAt = now + 200;
    if (this.failed.size) this.tellMishaps();
    this.part("the bar", () => this.numbers());
    this.part("the list of bodies", () => this.fleet.update());
    this.part("the list of signals", () => this.events.update());
    this.part("the mission", () => this.mission.update());
    const mode = this.charting ? "chart" : this.view.mode;
    for (const m of ["free", "follow", "top", "chart"]) this.buttons[`view-${m}`]!.classList.toggle("on", m === mode);
    for (const [name, on] of Object.entries(this.view.show)) this.buttons[`show-${name}`]!.classList.toggle("on", on);
    this.buttons["mission"]!.classList.toggle("on", this.mission.open);
  }

  show(visible: boolean): void { this.root.classList.toggle("hidden", !visible); }
}

const app = new App();
let configure: Configure | null = null;
function route(): void {
  const wanted = location.hash === "#configure";
  app.show(!wanted);
  if (wanted && !configure) configure = new Configure();
  configure?.show(wanted);
}
window.addEventListener("hashchange", route);
route();
