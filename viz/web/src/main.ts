// Mission control page: assembles the views and panels and handles the keyboard.

import { AlarmList, NoticeList } from "./alarms";
import { Drawer } from "./drawer";
import { Chart } from "./chart";
import { Configurator } from "./configurator";
import { formatTime, setChildren, h, toggleClass, formatNumber, setText, toast } from "./dom";
import { ViewRecorder, viewLink, parseViewLink, type ViewState } from "./url_state";
import { ManualControl } from "./manual_control";
import { normalisedKey, nextSpeed, showKeyHelp, SPEEDS, isTypedIntoField } from "./keyboard";
import { ViewerSocket, type Frame } from "./websocket";
import { LogCharts } from "./log_charts";
import { MissionEditor } from "./mission_editor";
import { BodyDetails } from "./body_details";
import { ErrorBanner } from "./error_banner";
import { OnboardWindow } from "./onboard_window";
import { EXAGGERATION_FACTORS } from "./vertical_exaggeration";
import { CommanderForms } from "./commander_forms";
import { SignalList, FleetList } from "./fleet_list";
import { DepthProfile } from "./depth_profile";
import { AcousticRanges } from "./acoustic_ranges";
import { Timeline } from "./timeline";
import { SonarWindows } from "./sonar_windows";
import { SeaState } from "./sea_state";
import { SpaceTime } from "./spacetime";
import { RUN_STATES, SceneStore } from "./scene_store";
import { TrafficList } from "./traffic_list";
import { View3D, type CameraMode } from "./view3d";
import type { ServerMessage } from "./page_protocol";

type Shown = keyof View3D["show"];
const SWITCHES: [name: Shown, text: string, key: string][] = [
  ["labels", "names", "L"],
  ["trails", "tracks", "T"],
  ["spheres", "sound", "R"],
  ["surface", "surface", "U"],
  ["waves", "waves", "V"],
  ["sky", "sky", "K"],
  ["arrows", "arrows", "G"],
  ["beams", "beams", "I"],
  ["traffic", "traffic", "C"],
  ["magnify", "enlarge", "Z"],
];
const AWAKE_MS = 700; // keep drawing for this long after anything that may change the picture

class App {
  private readonly store = new SceneStore();
  private readonly link: ViewerSocket;
  private readonly view: View3D;
  private readonly chart: Chart;
  private readonly fleet: FleetList;
  private readonly details: BodyDetails;
  private readonly events: SignalList;
  private readonly alarms: AlarmList;
  private readonly bottom: Drawer;
  private readonly mission: MissionEditor;
  private readonly window: OnboardWindow;
  private readonly camera: ViewRecorder;
  private readonly helm: ManualControl;
  private heights!: HTMLSelectElement;
  private wanted: ViewState | null = parseViewLink(location.hash); // view from a link, kept until the scene is loaded
  private readonly sonars: SonarWindows;
  private readonly root = h("div", { id: "app" });
  private readonly stage = h("div", { id: "stage" });
  private readonly bar = h("div", { id: "bar" });
  private readonly replay: Timeline;
  private readonly logCharts: LogCharts;
  private readonly banner = h("div", { class: "banner hidden", role: "alert" });
  private readonly note = h("div", { class: "banner note hidden" });
  private readonly mishaps = new ErrorBanner();
  private readonly stats: Record<string, HTMLElement> = {};
  private readonly buttons: Record<string, HTMLButtonElement> = {};
  private charting = false;
  private dark = localStorage.getItem("wavesim-theme") !== "light";
  private tableAt = 0;
  private homed = false;
  private gone = ""; // name of the selected body after it left; selected again when it returns
  private panelAt: unknown = null; // data shown last in the details panel
  private readonly times: number[] = [];
  private awakeUntil = 0;
  private turning = false;
  private stale = false;
  private trouble = ""; // reason why the viewer's server has no data to show
  private connected = false;

  constructor() {
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
    const choose = (row: number | null): void => this.choose(row);
    this.view = new View3D(
      this.store,
      choose,
      (row) => this.openOnboard(row),
      () => this.wake(),
    );
    this.window = new OnboardWindow(this.stage, (view) => {
      this.view.onboard = view;
      this.wake();
    });
    this.sonars = new SonarWindows(this.stage, this.view.heights.sea, () => this.wake());
    this.chart = new Chart(this.store, choose, this.view.show, () => this.wake());
    this.fleet = new FleetList(this.store, (row) => {
      this.choose(row);
    });
    this.details = new BodyDetails(this.store, {
      onboard: (row) => this.openOnboard(row),
      follow: () => this.setMode("follow"),
      goTo: (row) => {
        this.setMode("free");
        this.view.goTo(row);
      },
      sonar: (row, name) => this.sonars.toggle(row, this.store.name(row), name),
      seek: (time) => this.control("seek", time),
      changed: () => this.wake(),
      fail: (row) =>
        this.store.hello?.control && this.store.hello.kind === "live"
          ? (part, kind, amount, field) => this.link.fault(row, part, kind, amount, field)
          : null,
    });
    this.events = new SignalList(this.store, choose);
    this.alarms = new AlarmList(this.store, choose, (id) => this.link.acknowledge(id));
    const profile = new DepthProfile(this.store),
      ranges = new AcousticRanges(this.store),
      traffic = new TrafficList(this.store, choose);
    const notices = new NoticeList(this.store),
      sound = new SpaceTime(this.store, choose),
      orders = new CommanderForms(this.store, (verb, row, values) => this.link.order(verb, row, values));
    const seek = (time: number): void => this.control("seek", time),
      wake = (): void => this.wake();
    this.replay = new Timeline(this.store, seek);
    this.logCharts = new LogCharts(this.store, seek, wake);
    this.bottom = new Drawer(
      [
        { key: "signals", title: "Signals", element: this.events.element, update: () => this.events.update() },
        { key: "sound", title: "Sound", element: sound.element, update: () => sound.update() },
        { key: "ranges", title: "Ranges", element: ranges.element, update: () => ranges.update() },
        { key: "profile", title: "Depth", element: profile.element, update: () => profile.update() },
        {
          key: "traffic",
          title: "Traffic",
          element: traffic.element,
          update: () => traffic.update(),
          count: () => traffic.count(),
        },
        { key: "charts", title: "Charts", element: this.logCharts.element, update: () => this.logCharts.update() },
        {
          key: "alarms",
          title: "Alarms",
          element: this.alarms.element,
          update: () => this.alarms.update(),
          count: () => this.alarms.unseen().length,
        },
        { key: "orders", title: "Commands", element: orders.element, update: () => orders.update() },
        { key: "notices", title: "Notices", element: notices.element, update: () => notices.update() },
      ],
      () => this.wake(),
    );
    this.mission = new MissionEditor(
      this.store,
      this.chart,
      this.stage,
      () => this.setMode("chart"),
      (verb, row, values) => this.link.order(verb, row, values),
    );
    this.camera = new ViewRecorder(
      this.stage,
      () => (this.charting ? [this.chart.canvas] : [this.view.canvas, this.view.over, this.view.compass]),
      () => (this.charting ? this.chart.render() : this.view.still(true)),
      () => this.store.hello?.name || "wavesim",
    );
    this.helm = new ManualControl(
      this.store,
      this.stage,
      (body, shares) => this.link.drive(body, shares),
      (row) => this.choose(row),
    );
    this.stage.append(
      this.view.canvas,
      this.view.over,
      this.chart.canvas,
      this.view.compass,
      this.chart.pointer.element,
      this.tools(),
      h("div", { class: "banners" }, this.banner, this.note, this.mishaps.element),
    );
    this.chart.canvas.classList.add("hidden");
    this.root.append(
      this.bar,
      h("div", { id: "left" }, this.fleet.element),
      this.stage,
      h("div", { id: "bottom" }, this.replay.element, this.bottom.element),
      h("div", { id: "right" }, this.details.element),
    );
    document.body.append(this.root);
    this.buildBar();
    this.asBefore();
    this.view.theme(this.dark);
    this.link = new ViewerSocket(
      (f) => this.frame(f),
      (m) => this.message(m),
      (on) => this.connection(on),
      (p) => {
        this.sonars.take(p);
        this.wake();
      },
      (part, error) => this.mishaps.fail(part, error),
    );
    window.addEventListener("keydown", (e) => this.key(e));
    for (const what of [
      "resize",
      "keydown",
      "keyup",
      "pointerdown",
      "pointermove",
      "pointerup",
      "wheel",
      "hashchange",
      "focus",
      "input",
      "change",
    ])
      window.addEventListener(what, () => this.wake(), { passive: true });
    window.addEventListener("hashchange", () => {
      this.wanted = parseViewLink(location.hash);
      this.return();
    });
    document.addEventListener("visibilitychange", () => this.wake());
    new ResizeObserver(() => this.wake()).observe(this.stage);
    this.wake();
    (window as unknown as Record<string, unknown>)["wavesim"] = {
      store: this.store,
      view: this.view,
      chart: this.chart,
      link: this.link,
      sonars: this.sonars,
      app: this,
    };
  }

  /** Start drawing, and stop after a quiet period: a scene at rest costs no processor time. */
  wake(): void {
    this.awakeUntil = performance.now() + AWAKE_MS;
    this.stale = true;
    if (this.turning) return;
    this.turning = true;
    const turn = (): void => {
      if (
        !this.stale &&
        performance.now() > this.awakeUntil &&
        !this.view.busy() &&
        !this.camera.rolling &&
        this.store.settled()
      ) {
        this.turning = false;
        this.times.length = 0;
        this.mishaps.part("the 3D view", () => {
          if (!this.charting) this.view.still();
        });
        this.tables();
        setText(this.stats["fps"]!, "still");
        return;
      }
      this.stale = false; // draw at least once, even on a slow machine
      requestAnimationFrame(turn); // request the next picture first, so that an error in this one does not end the loop
      this.mishaps.part("the page", () => this.draw());
    };
    requestAnimationFrame(turn);
  }

  // -- messages from the server ---------------------------------------------------------------------

  private message(m: ServerMessage): void {
    const s = this.store;
    // new numbers alone need no new picture
    if (m.type !== "weather" && !(m.type === "panel" && m.panel && m.panel.time === s.panel?.time)) this.wake();
    switch (m.type) {
      case "hello":
        s.hello = m;
        this.chart.tiles.told = m.tiles;
        if (m.chart && !this.chart.enc.there)
          void this.chart.enc.load().then(
            () => this.wake(),
            (error: unknown) => this.mishaps.fail("the electronic chart", error),
          );
        this.permit();
        this.permitModels(configure);
        setText(this.stats["name"]!, m.name);
        document.title = m.name ? `${m.name} – WaVeSim` : "WaVeSim";
        if (m.kind === "none") location.hash = "#configure";
        if (s.chosen !== null) this.link.watch(s.chosen);
        this.sonars.connect(this.link);
        break;
      case "scene":
        s.scene = m.scene;
        this.view.rebuild();
        this.chart.build(this.dark);
        this.homed = false;
        this.return();
        this.note.classList.toggle("hidden", !m.scene.warning);
        this.note.textContent = m.scene.warning ?? "";
        break;
      case "roster": {
        const first = s.bodies.size === 0,
          { joined, left } = s.roster(m.bodies);
        if (!first && s.hello?.kind !== "replay") {
          if (joined.length)
            toast(joined.length > 3 ? `${joined.length} bodies joined` : `${joined.join(", ")} joined`);
          else if (left.length) toast(left.length > 3 ? `${left.length} bodies left` : `${left.join(", ")} left`);
        }
        if (s.chosen !== null && !s.bodies.has(s.chosen)) {
          const name = s.name(s.chosen);
          this.choose(null);
          this.gone = name;
        } else if (this.gone) this.choose(m.bodies.find(([, name]) => name === this.gone)?.[0] ?? s.chosen);
        this.return();
        break;
      }
      case "sounds":
        s.sounds(m.sent, m.receptions, m.notices, m.anew === true);
        if (m.anew) {
          this.view.sounds.rays = [];
          this.events.anew([...m.sent, ...m.receptions].sort((a, b) => a.time - b.time));
          break;
        }
        this.view.sounds.hear(s, m.receptions);
        this.events.add([...m.sent, ...m.receptions].sort((a, b) => a.time - b.time));
        for (const n of m.notices) toast(`${n.name}: ${n.text}`);
        if (m.missed) this.events.lose(m.missed);
        break;
      case "tracks":
        s.history(m.bodies, m.whole);
        this.view.history();
        break;
      case "marks":
        this.replay.mark(m.marks);
        break;
      case "alarms":
        s.alarms = m.alarms;
        break;
      case "beliefs":
        s.believe(m.bodies);
        break;
      case "weather":
        s.weather = m;
        this.weather();
        break;
      case "sea":
        s.sea = m.components ? new SeaState(m.components) : null;
        break;
      case "cables":
        s.cables = m.cables;
        break;
      case "traffic":
        if (m.row === s.chosen) s.traffic = m.traffic;
        break;
      case "kit":
        if (m.row === s.chosen) {
          s.kit = m.kit;
          this.details.fit(m.kit);
        }
        break;
      case "panel":
        if (m.row !== s.chosen) break;
        s.panel = m.panel;
        if (!m.panel) this.details.clear();
        else if (!this.turning) this.showPanel();
        break;
      case "picture":
        this.sonars.told(m.row, m.name, m.trouble, m.epoch);
        break;
      case "trouble":
        this.trouble = m.text;
        this.tellLoss();
        break;
      case "mishaps":
        this.mishaps.there(m.parts, m.total);
        break;
      case "reply":
        toast(m.text || (m.ok ? "done" : "refused"), !m.ok);
        break;
    }
  }

  private connection(on: boolean): void {
    this.connected = on;
    if (on) this.trouble = "";
    this.tellLoss();
  }

  /** Show why no data arrive, and mark everything on the page as stale. */
  private tellLoss(): void {
    const text = this.connected
      ? this.trouble
      : "no answer from the viewer's server (has `wavesim viz` stopped?); retrying";
    this.store.lost = text;
    this.weather();
    setText(this.banner, text);
    toggleClass(this.banner, "hidden", !text);
    toggleClass(this.root, "lost", text !== "");
    this.details.lose(text !== "");
    this.panelAt = null; // the same data may have become current or stale
    this.wake();
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
    const speed = h(
      "select",
      {
        id: "speed",
        title: "Simulation speed: simulated seconds per second (+ and −)",
        onchange: () => this.control("speed", Number(speed.value)),
      },
      ...SPEEDS.map((v) => h("option", { value: v, selected: v === 1 }, v ? `${v} ×` : "fast")),
    );
    this.stats["speed"] = speed;
    setChildren(
      this.bar,
      h("div", { class: "brand" }, h("img", { src: "/static/icon.svg", alt: "" }), "WaVeSim", this.stats["name"]),
      this.stats["state"],
      h(
        "div",
        { class: "group" },
        this.button("start", "▶", "Start or resume (space)", () => this.control("start")),
        this.button("pause", "❚❚", "Pause (space)", () => this.control("pause")),
        this.button("step", "▸|", "Single step (N)", () => this.control("step", this.stepTicks())),
        this.button("stop", "■", "Stop (X)", () => this.control("stop")),
        speed,
      ),
      this.stat("time", "elapsed"),
      this.stat("factor", "real-time factor"),
      this.stat("late", "delay, maximum delay (late ticks)", true),
      this.stat("vehicles", "vehicles"),
      this.stat("buoys", "buoys"),
      this.stat("signals", "signals"),
      this.stat("clients", "clients (round trip)", true),
      this.stat("fps", "frames/s", true),
      h("span", { class: "grow" }),
      h(
        "div",
        { class: "group" },
        h(
          "button",
          {
            title: "Configure vehicle models",
            onclick: () => {
              location.hash = "#configure";
            },
          },
          "models",
        ),
        h("button", { title: "Switch between light and dark (Shift+L)", onclick: () => this.theme() }, "◐"),
        h("button", { id: "do-help", title: "Keyboard shortcuts and legend (?)", onclick: () => showKeyHelp() }, "?"),
      ),
    );
  }

  private permit(): void {
    const may = this.store.hello?.control ?? false;
    for (const key of ["start", "pause", "step", "stop"]) {
      this.buttons[key]!.disabled = !may;
      if (!may)
        this.buttons[key]!.title = "This viewer is read-only; to send commands, start it with: wavesim viz --control";
    }
    const speed = this.stats["speed"] as HTMLSelectElement;
    speed.disabled = !may;
    // a replay always has a speed, also while paused
    if (this.store.hello?.kind === "replay") speed.querySelector("option[value='0']")?.remove();
    const write = this.store.hello?.write ?? false,
      mission = this.buttons["mission"]!;
    mission.disabled = !write || this.store.hello?.kind !== "live";
    mission.title = mission.disabled
      ? "To save missions to a file, you need a running server on this machine and `wavesim viz --control`"
      : "Draw waypoints, beacons and fences (M)";
  }

  private stepTicks(): number {
    return this.store.hello?.kind === "replay" ? 25 : 1;
  }
  private control(verb: string, value?: number): void {
    this.link.control(verb, value);
  }

  private weather(): void {
    const w = this.store.weather;
    if (!w) return;
    const rtt = w.clients.map((c) => c.rtt_ms).filter((v): v is number => v !== null);
    this.stats["clients"]!.textContent =
      this.store.lost || w.connected === null
        ? "–"
        : `${w.connected}${rtt.length ? ` (${formatNumber(rtt.reduce((a, b) => a + b, 0) / rtt.length, 1)} ms)` : ""}`;
    if (w.replay) this.replay.set(w.replay.start, w.replay.end);
  }

  private numbers(): void {
    const f = this.store.last;
    if (!f) return;
    const pill = this.stats["state"]!,
      state = this.store.lost ? "lost" : (RUN_STATES[f.state] ?? "?");
    setText(
      pill,
      state === "lost"
        ? "no data"
        : this.store.hello?.kind === "replay"
          ? f.state === 1
            ? "playing"
            : "paused"
          : state,
    );
    pill.className = `pill ${state === "running" ? "good" : state === "paused" ? "warm" : state === "lost" ? "bad" : "soft"}`;
    setText(this.stats["time"]!, formatTime(this.store.time));
    setText(this.stats["factor"]!, this.store.lost ? "–" : `${formatNumber(f.factor, f.factor >= 10 ? 0 : 2)} ×`);
    setText(
      this.stats["late"]!,
      this.store.hello?.kind === "live" && !this.store.lost
        ? `${formatNumber(f.lateness, 2)}, ${formatNumber(f.latenessMax, 1)} ms (${f.late})`
        : "–",
    );
    const speed = this.stats["speed"] as HTMLSelectElement,
      wanted = String(+f.speed.toFixed(3));
    if (document.activeElement !== speed && speed.value !== wanted) {
      if (![...speed.options].some((o) => o.value === wanted))
        speed.append(h("option", { value: wanted }, `${wanted} ×`));
      speed.value = wanted;
    }
    let buoys = 0;
    for (const b of this.store.bodies.values()) if (b.type === "buoy") buoys++;
    setText(this.stats["vehicles"]!, String(this.store.bodies.size - buoys));
    setText(this.stats["buoys"]!, String(buoys));
    setText(this.stats["signals"]!, String(f.signals.length / 9));
    setText(this.stats["fps"]!, String(this.times.length));
    if (this.store.hello?.kind === "replay") this.replay.update();
  }

  // -- views ------------------------------------------------------------------------------------------------

  private tools(): HTMLElement {
    const mode = (m: CameraMode | "chart", text: string, key: string): HTMLElement =>
      this.button(`view-${m}`, text, `${text} (${key})`, () => this.setMode(m));
    const toggle = (name: Shown, text: string, key: string): HTMLElement =>
      this.button(`show-${name}`, text, `${text} on or off (${key})`, () => this.toggle(name));
    this.heights = h(
      "select",
      {
        id: "heights",
        title: "Vertical exaggeration of the scene",
        onchange: () => {
          this.view.stretch(Number(this.heights.value));
          this.wake();
        },
      },
      ...EXAGGERATION_FACTORS.map((f) => h("option", { value: f }, `heights ${f} ×`)),
    );
    const shown = h(
      "details",
      { class: "shown", id: "shown" },
      h("summary", {}, "show"),
      h("div", {}, ...SWITCHES.map((s) => toggle(...s)), this.heights),
    );
    return h(
      "div",
      { class: "tools" },
      mode("free", "free", "1"),
      mode("follow", "follow", "2"),
      mode("top", "top view", "3"),
      mode("chart", "chart", "4"),
      h("button", { title: "Whole scene (H)", onclick: () => this.home() }, "⌂"),
      shown,
      this.button("mission", "mission", "", () => this.mission.toggle()),
      h(
        "button",
        {
          id: "do-helm",
          title: "Drive a vehicle with the keyboard or a gamepad (J)",
          onclick: () => this.helm.toggle(),
        },
        "drive",
      ),
      ...this.camera.buttons,
      h(
        "button",
        {
          id: "link",
          title: "Put a link to the current view into the address bar and copy it",
          onclick: () => this.share(),
        },
        "link",
      ),
    );
  }

  private toggle(name: Shown): void {
    this.view.show[name] = !this.view.show[name];
    localStorage.setItem("wavesim-show", JSON.stringify(this.view.show));
    this.wake();
  }

  /** Show or hide a side panel, and remember the choice for the next visit. */
  private panel(name: "no-left" | "no-right"): void {
    localStorage.setItem(`wavesim-${name}`, this.root.classList.toggle(name) ? "1" : "");
  }

  private asBefore(): void {
    for (const name of ["no-left", "no-right"])
      this.root.classList.toggle(name, localStorage.getItem(`wavesim-${name}`) === "1");
    let show: Record<string, unknown> = {};
    try {
      show = JSON.parse(localStorage.getItem("wavesim-show") ?? "{}") as Record<string, unknown>;
    } catch {
      /* the stored value does not come from this page */
    }
    for (const name of Object.keys(this.view.show) as Shown[])
      if (typeof show?.[name] === "boolean") this.view.show[name] = show[name];
  }

  setMode(mode: CameraMode | "chart"): void {
    this.wake();
    this.charting = mode === "chart";
    this.chart.canvas.classList.toggle("hidden", !this.charting);
    this.stage.classList.toggle("charting", this.charting);
    this.view.compass.classList.toggle("hidden", this.charting);
    this.chart.pointer.show(this.charting);
    if (mode === "chart") {
      if (!this.homed) {
        this.chart.home();
        this.homed = true;
      }
    } else this.view.setMode(mode);
  }

  private home(): void {
    if (this.charting) this.chart.home();
    else this.view.home();
  }

  choose(row: number | null): void {
    if (row === this.store.chosen) return;
    this.gone = "";
    this.store.chosen = row;
    this.store.panel = this.store.kit = this.store.traffic = null;
    this.panelAt = null;
    this.link.watch(row);
    this.details.clear();
    this.wake();
  }

  openOnboard(row: number): void {
    this.choose(row);
    this.window.show(row, this.store.name(row));
  }

  /** Create the link to the current view. */
  private share(): void {
    const { camera, controls } = this.view,
      replay = this.store.hello?.kind === "replay";
    const view: ViewState = {
      mode: this.charting ? "chart" : this.view.mode,
      body: this.store.chosen === null ? "" : this.store.name(this.store.chosen),
      time: replay ? this.store.time : null,
      pane: this.bottom.open,
      show: Object.entries(this.view.show)
        .filter(([, on]) => on)
        .map(([name]) => name),
      panels: [!this.root.classList.contains("no-left"), !this.root.classList.contains("no-right")],
      eye: camera.position.toArray(),
      target: controls.target.toArray(),
      heights: this.view.heights.factor,
      ...this.chart.looks,
    };
    history.replaceState(null, "", viewLink(view));
    const done =
      navigator.clipboard?.writeText(location.href).then(
        () => "link copied",
        () => "the link is in the address bar",
      ) ?? Promise.resolve("the link is in the address bar");
    void done.then((text) => toast(text));
  }

  /** Restore the view of the link that opened the page, as soon as its scene and bodies are loaded. */
  private return(): void {
    const v = this.wanted,
      row = v?.body ? [...this.store.bodies.values()].find((b) => b.name === v.body)?.row : null;
    if (!v || !this.store.scene || !this.store.bodies.size) return;
    this.wanted = null;
    for (const name of Object.keys(this.view.show) as Shown[]) this.view.show[name] = v.show.includes(name);
    this.root.classList.toggle("no-left", !v.panels[0]);
    this.root.classList.toggle("no-right", !v.panels[1]);
    this.bottom.show(v.pane);
    this.choose(row ?? null);
    this.homed = true;
    this.chart.look([v.middle[0]!, v.middle[1]!], v.scale);
    this.setMode(["follow", "top", "chart"].includes(v.mode) ? (v.mode as CameraMode | "chart") : "free");
    this.heights.value = String((this.view.heights.factor = EXAGGERATION_FACTORS.find((f) => f === v.heights) ?? 1));
    this.view.look(v.eye, v.target);
    if (v.time !== null && this.store.hello?.kind === "replay") {
      this.control("pause");
      this.control("seek", v.time);
    }
  }

  private theme(): void {
    this.dark = !this.dark;
    this.wake();
    localStorage.setItem("wavesim-theme", this.dark ? "dark" : "light");
    document.documentElement.dataset["theme"] = this.dark ? "dark" : "light";
    this.view.theme(this.dark);
    this.chart.build(this.dark);
    this.details.recolour();
    this.logCharts.recolour();
  }

  // -- keys ---------------------------------------------------------------------------------------------------

  private key(e: KeyboardEvent): void {
    if (location.hash === "#configure" || isTypedIntoField(e)) return;
    const s = this.store;
    const faster = (by: number): void => {
      const select = this.stats["speed"] as HTMLSelectElement,
        speed = nextSpeed(
          s.last?.speed ?? 1,
          by,
          [...select.options].map((o) => Number(o.value)),
        );
      select.value = String(speed);
      this.control("speed", speed);
    };
    const next = (by: number): void => {
      const rows = [...s.bodies.values()].filter((b) => b.type !== "buoy").map((b) => b.row);
      if (!rows.length) return;
      const k = s.chosen === null ? -1 : rows.indexOf(s.chosen);
      this.choose(rows[(k + by + rows.length) % rows.length]!);
    };
    const acts: Record<string, () => void> = {
      " ": () => this.control(s.last?.state === 1 ? "pause" : "start"),
      n: () => this.control("step", this.stepTicks()),
      x: () => this.control("stop"),
      "+": () => faster(1),
      "=": () => faster(1),
      "-": () => faster(-1),
      "1": () => this.setMode("free"),
      "2": () => this.setMode("follow"),
      "3": () => this.setMode("top"),
      "4": () => this.setMode("chart"),
      h: () => this.home(),
      b: () => next(1),
      B: () => next(-1),
      Escape: () => {
        if (this.chart.pointer.measuring) {
          this.chart.pointer.measure(false);
          return;
        }
        document.querySelector(".help")?.remove();
        this.choose(null);
      },
      o: () => {
        if (this.window.open) this.window.close();
        else if (s.chosen !== null) this.openOnboard(s.chosen);
      },
      ...Object.fromEntries(SWITCHES.map(([name, , key]) => [key.toLowerCase(), () => this.toggle(name)])),
      m: () => {
        if (!this.buttons["mission"]!.disabled) this.mission.toggle();
        else toast(this.buttons["mission"]!.title, true);
      },
      j: () => this.helm.toggle(),
      "[": () => this.panel("no-left"),
      "]": () => this.panel("no-right"),
      L: () => this.theme(),
      "?": () => showKeyHelp(),
    };
    const act = acts[normalisedKey(e)];
    if (!act) return;
    e.preventDefault();
    act();
  }

  private showPanel(): void {
    const panel = this.store.panel;
    if (panel && panel !== this.panelAt) {
      this.panelAt = panel;
      this.mishaps.part("the details of the selected body", () => this.details.update(panel));
    }
  }

  /** Take a frame from the server; do not draw if only the server statistics changed. */
  private frame(f: Frame): void {
    const last = this.store.last,
      same =
        last !== null &&
        last.jumps === f.jumps &&
        last.time === f.time &&
        last.state === f.state &&
        last.roster === f.roster &&
        last.bodies.length === f.bodies.length &&
        last.bodies.every((v, k) => v === f.bodies[k]);
    this.store.frame(f);
    if (same && !this.turning) this.mishaps.part("the toolbar", () => this.numbers());
    else if (!same) this.wake();
  }

  // -- each picture ---------------------------------------------------------------------------------------------

  private draw(): void {
    if (location.hash === "#configure") return;
    const now = performance.now();
    this.times.push(now);
    while (this.times.length && this.times[0]! < now - 1000) this.times.shift();
    this.mishaps.part("the frame", () => this.store.now());
    if (this.charting) this.mishaps.part("the chart", () => this.chart.render());
    if (!this.charting || this.view.onboard) this.mishaps.part("the 3D view", () => this.view.render(!this.charting));
    this.camera.drawn();
    this.mishaps.part("the sonar windows", () => this.sonars.draw());
    this.showPanel();
    if (now < this.tableAt) return;
    this.tableAt = now + 200;
    this.tables();
  }

  /** Update numbers, lists and buttons. */
  private tables(): void {
    this.mishaps.update();
    this.mishaps.part("the toolbar", () => this.numbers());
    this.mishaps.part("the fleet list", () => this.fleet.update());
    this.mishaps.part("the charts", () => this.details.draw());
    this.mishaps.part("the bottom panel", () => this.bottom.update());
    this.mishaps.part("the mission editor", () => this.mission.update());
    const mode = this.charting ? "chart" : this.view.mode;
    for (const m of ["free", "follow", "top", "chart"]) this.buttons[`view-${m}`]!.classList.toggle("on", m === mode);
    for (const [name, on] of Object.entries(this.view.show)) this.buttons[`show-${name}`]!.classList.toggle("on", on);
    this.buttons["mission"]!.classList.toggle("on", this.mission.open);
  }

  /** Update the configurator's permissions. */
  permitModels(configure: Configurator | null): void {
    const hello = this.store.hello;
    if (hello) configure?.permit(hello.kind !== "none", hello.write);
  }

  show(visible: boolean): void {
    this.wake();
    this.root.classList.toggle("hidden", !visible);
  }
}

let configure: Configurator | null = null;
const app = new App();
function route(): void {
  const wanted = location.hash === "#configure";
  app.show(!wanted);
  if (wanted && !configure) configure = new Configurator();
  app.permitModels(configure);
  configure?.show(wanted);
}
window.addEventListener("hashchange", route);
route();
