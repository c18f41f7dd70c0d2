// The 3D view and the chart, of which one is shown or both side by side, and the buttons that select what they show.

import { Chart } from "./chart";
import { h } from "./dom";
import type { ErrorBanner } from "./error_banner";
import type { OnboardCanvases } from "./view3d";
import type { Object3D } from "three";
import type { Layout } from "./layout";
import { Menu } from "./menu";
import { RESOLUTIONS, type ResolutionSetting } from "./resolution";
import type { SceneStore } from "./scene_store";
import { splitter } from "./splitter";
import type { ViewState } from "./url_state";
import type { CameraMode, View3D } from "./view3d";

export type StageMode = CameraMode | "chart";
type Layer =
  | "labels"
  | "trails"
  | "spheres"
  | "beacons"
  | "surface"
  | "waves"
  | "sky"
  | "arrows"
  | "beams"
  | "traffic"
  | "mosaic"
  | "magnify";
/** Elements that are shown. */
export type Layers = Record<Layer, boolean>;
const EXAGGERATION_FACTORS = [1, 2, 5, 10, 20];
const MODES: [mode: StageMode, text: string, key: string][] = [
  ["free", "free", "1"],
  ["follow", "follow", "2"],
  ["top", "top view", "3"],
  ["chart", "chart", "4"],
];
export const LAYERS: [name: Layer, text: string, key: string][] = [
  ["labels", "names", "L"],
  ["trails", "tracks", "T"],
  ["spheres", "sound", "R"],
  ["beacons", "beacon to beacon", "P"],
  ["surface", "surface", "U"],
  ["waves", "waves", "V"],
  ["sky", "sky", "K"],
  ["arrows", "arrows", "G"],
  ["beams", "beams", "I"],
  ["traffic", "traffic", "C"],
  ["mosaic", "mosaic", ""],
  ["magnify", "enlarge", "Z"],
];
const STORED_LAYERS = "wavesim-show",
  STORED_SPLIT = "wavesim-split",
  STORED_RESOLUTION = "wavesim-resolution";
const COMPASS_PX = 104; // its width and distance from the edge
const EVEN = 0.5; // share of the 3D view when the stage is split

export class Stage {
  readonly element = h("div", { id: "stage" });
  /** The 3D view. It is loaded after the first picture; until then the chart is shown. */
  view: View3D | null = null;
  readonly chart: Chart;
  readonly show: Layers = {
    labels: true,
    trails: true,
    spheres: true,
    beacons: false, // receptions from buoy to buoy
    surface: true,
    waves: true,
    sky: true,
    arrows: true,
    beams: true,
    traffic: true,
    mosaic: false,
    magnify: true,
  };
  private wanted: StageMode = "free";
  private share: number | null = null; // share of the width that the 3D view takes beside the chart
  private homed = false; // the chart shows the scene
  private dark = true;
  private eye: OnboardCanvases | null = null;
  private linked: ViewState | null = null; // view of a link that the 3D view has not taken yet
  private readonly clouds = new Set<Object3D>(); // soundings in the 3D view
  private loading = false;
  private readonly tools = h("div", { class: "tools" });
  private readonly room = new ResizeObserver(() => this.makeRoom());
  private readonly waiting = h("div", { class: "loading", role: "status" }, "the 3D view is loading…");
  private readonly heights: HTMLSelectElement;
  private readonly resolution: HTMLSelectElement;
  private readonly modes = new Map<StageMode, HTMLButtonElement>();
  private readonly layers = new Map<Layer, HTMLButtonElement>();
  /** Layers that are shown on a first visit. */
  readonly defaultLayers: Layer[];
  private readonly splitButton: HTMLButtonElement;
  /** Menu of the elements that are shown. */
  readonly menu: Menu;

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number | null) => void,
    private readonly openOnboard: (row: number) => void,
    private readonly changed: () => void,
  ) {
    this.chart = new Chart(store, choose, this.show, changed);
    this.heights = h(
      "select",
      {
        id: "heights",
        title: "Vertical exaggeration of the scene",
        onchange: () => {
          this.view?.stretch(Number(this.heights.value));
          changed();
        },
      },
      ...EXAGGERATION_FACTORS.map((f) => h("option", { value: f }, `heights ${f} ×`)),
    );
    const stored = localStorage.getItem(STORED_RESOLUTION);
    this.resolution = h(
      "select",
      {
        id: "resolution",
        title: "Resolution of the 3D view; auto: reduced while this computer draws too slowly",
        onchange: () => {
          localStorage.setItem(STORED_RESOLUTION, this.resolution.value);
          this.view?.setResolution(this.chosenResolution);
        },
      },
      ...RESOLUTIONS.map((r) => h("option", { value: r, selected: r === stored }, `resolution: ${r}`)),
    );
    for (const [mode, text, key] of MODES)
      this.modes.set(
        mode,
        h("button", { id: `do-view-${mode}`, title: `${text} (${key})`, onclick: () => this.setMode(mode) }, text),
      );
    for (const [layer, text, key] of LAYERS) {
      const title = `${text} on or off${key ? ` (${key})` : ""}`;
      this.layers.set(layer, h("button", { id: `do-show-${layer}`, title, onclick: () => this.toggle(layer) }, text));
    }
    this.splitButton = h(
      "button",
      { id: "do-split", title: "3D view beside the chart (5)", onclick: () => this.toggleSplit() },
      "◫ split",
    );
    this.defaultLayers = this.shownLayers;
    this.menu = new Menu("shown", "show", ...this.layers.values(), this.heights, this.resolution);
    this.restoreLayers();
  }

  /** Add the canvases, the buttons of the stage, and the banners above them. */
  assemble(above: HTMLElement): void {
    const home = h("button", { title: "Whole scene (H)", onclick: () => this.home() }, "⌂");
    this.room.observe(this.tools);
    this.addTools(...this.modes.values(), this.splitButton, home, this.menu.element);
    this.element.append(
      this.chart.canvas,
      this.chart.pointer.element,
      this.waiting,
      splitter(
        this.element,
        () => this.share ?? EVEN,
        (share) => this.split(share),
      ),
      this.tools,
      above,
    );
    this.split(Number(localStorage.getItem(STORED_SPLIT)) || null);
  }

  /** Let the compass and the mission editor begin beneath the buttons; the compass stays beside them if there is room. */
  private makeRoom(): void {
    const buttons = [...this.tools.children] as HTMLElement[],
      right = Math.max(...buttons.map((b) => b.offsetLeft + b.offsetWidth)),
      bottom = this.tools.offsetTop + this.tools.offsetHeight;
    this.chart.beneath = right + COMPASS_PX > this.tools.offsetWidth ? bottom : 0;
    this.element.style.setProperty("--beneath", `${this.chart.beneath}px`);
    this.element.style.setProperty("--tools", `${bottom}px`);
    this.changed();
  }

  /** Add buttons to the row over the picture. */
  addTools(...buttons: HTMLElement[]): void {
    this.tools.append(...buttons);
    for (const button of buttons) this.room.observe(button);
  }

  /** Load the 3D view, once. Without it, or if this browser cannot draw it, the chart stays. */
  async load(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      const { View3D } = await import("./view3d");
      const view = new View3D(this.store, this.choose, this.openOnboard, this.changed, this.show);
      view.theme(this.dark);
      view.setResolution(this.chosenResolution);
      view.rebuild();
      view.history();
      for (const cloud of this.clouds) view.heights.sea.add(cloud);
      view.onboard = this.eye;
      this.chart.canvas.before(view.canvas, view.over, view.compass);
      this.view = view;
      if (this.linked) this.look(this.linked);
      else {
        this.setMode(this.wanted);
        view.stretch(Number(this.heights.value));
      }
    } finally {
      this.waiting.remove();
    }
  }

  private get chosenResolution(): ResolutionSetting {
    return this.resolution.value as ResolutionSetting;
  }

  get mode(): StageMode {
    return this.view && this.wanted !== "chart" ? this.view.mode : this.wanted;
  }

  private get charting(): boolean {
    return this.wanted === "chart" || !this.view;
  }

  private get chartShown(): boolean {
    return this.charting || this.share !== null;
  }

  /** Choose a view. The chart is then shown alone; the camera may move beside the chart. */
  setMode(mode: StageMode): void {
    this.wanted = mode;
    if (mode === "chart") this.share = null;
    else this.view?.setMode(mode);
    this.arrange();
  }

  /** Show the 3D view beside the chart, with a share of the width; null: alone. */
  split(share: number | null): void {
    this.share = share;
    if (share !== null && this.wanted === "chart") this.wanted = this.view?.mode ?? "free";
    this.arrange();
  }

  toggleSplit(): void {
    this.split(this.share === null ? EVEN : null);
  }

  /** Show the chart, if it is not shown. */
  showChart(): void {
    if (!this.chartShown) this.setMode("chart");
  }

  /** Put the views in their places, and remember the split for the next visit. */
  private arrange(): void {
    this.changed();
    localStorage.setItem(STORED_SPLIT, String(this.share ?? ""));
    this.element.style.setProperty("--split", `${100 * (this.share ?? EVEN)}%`);
    this.element.classList.toggle("split", this.share !== null && this.view !== null);
    this.element.classList.toggle("charting", this.charting);
    this.chart.canvas.classList.toggle("hidden", !this.chartShown);
    this.waiting.classList.toggle("hidden", this.wanted === "chart");
    this.view?.compass.classList.toggle("hidden", this.charting);
    this.chart.pointer.show(this.chartShown);
    this.showAll();
  }

  /** Show the whole scene on the chart when the chart is first drawn. */
  private showAll(): void {
    if (this.homed || !this.chartShown || !this.store.scene) return;
    this.chart.home();
    this.homed = true;
  }

  /** Show the whole scene. */
  home(): void {
    if (this.chartShown) this.chart.home();
    if (!this.charting) this.view!.home();
  }

  goTo(row: number): void {
    this.setMode("free");
    this.view?.goTo(row);
  }

  toggle(layer: Layer): void {
    this.show[layer] = !this.show[layer];
    this.storeLayers();
    this.changed();
  }

  /** Remember the shown layers for the next visit. */
  private storeLayers(): void {
    localStorage.setItem(STORED_LAYERS, JSON.stringify(this.show));
  }

  private restoreLayers(): void {
    let stored: Record<string, unknown> = {};
    try {
      stored = JSON.parse(localStorage.getItem(STORED_LAYERS) ?? "{}") as Record<string, unknown>;
    } catch {
      /* the stored value does not come from this page */
    }
    for (const [layer] of LAYERS) if (typeof stored?.[layer] === "boolean") this.show[layer] = stored[layer];
  }

  /** Build a new scene. */
  rebuild(dark: boolean): void {
    this.view?.rebuild();
    this.chart.build(dark);
    this.homed = false;
  }

  /** Show the details of the scene, which arrive after the bodies. */
  showDetails(): void {
    this.view?.build();
    this.view?.bodies.reset();
    this.chart.build(this.dark);
  }

  theme(dark: boolean): void {
    this.dark = dark;
    this.view?.theme(dark);
    this.chart.build(dark);
  }

  set onboard(canvases: OnboardCanvases | null) {
    this.eye = canvases;
    if (this.view) this.view.onboard = canvases;
    this.changed();
  }

  /** Show or remove a cloud of soundings in the 3D view. */
  points(cloud: Object3D, shown: boolean): void {
    if (shown) this.clouds.add(cloud);
    else this.clouds.delete(cloud);
    if (shown) this.view?.heights.sea.add(cloud);
    else this.view?.heights.sea.remove(cloud);
  }

  /** True if the picture changes without new data. */
  busy(): boolean {
    return this.view?.busy() ?? this.store.moving();
  }

  /** Draw a picture. */
  draw(errors: ErrorBanner): void {
    const { view } = this;
    this.showAll();
    if (this.chartShown) errors.part("the chart", () => this.chart.render());
    if (view && (!this.charting || view.onboard)) errors.part("the 3D view", () => view.render(!this.charting));
  }

  /** Draw the last picture before the drawing loop rests. */
  rest(): void {
    if (!this.charting) this.view!.still();
  }

  /** Draw a picture for a file, at full quality. */
  drawStill(): void {
    if (this.chartShown) this.chart.render();
    if (!this.charting) this.view!.still(true);
  }

  /** Canvases that are shown, lowest first. */
  get canvases(): HTMLCanvasElement[] {
    const space = this.charting ? [] : [this.view!.canvas, this.view!.over, this.view!.compass];
    return [...space, ...(this.chartShown ? [this.chart.canvas] : [])];
  }

  updateButtons(): void {
    for (const [mode, button] of this.modes) button.classList.toggle("on", mode === this.mode);
    this.splitButton.classList.toggle("on", this.share !== null);
    for (const [layer, button] of this.layers) button.classList.toggle("on", this.show[layer]);
  }

  private get shownLayers(): Layer[] {
    return LAYERS.map(([layer]) => layer).filter((layer) => this.show[layer]);
  }

  /** Parts of a layout. */
  get layout(): Pick<Layout, "mode" | "split" | "show"> {
    return { mode: this.mode, split: this.share, show: this.shownLayers };
  }

  /** Parts of a link to the current view. */
  state(): Pick<ViewState, "eye" | "target" | "heights" | "middle" | "scale"> {
    return {
      eye: this.view?.camera.position.toArray() ?? this.linked?.eye ?? [0, 100, 100],
      target: this.view?.controls.target.toArray() ?? this.linked?.target ?? [0, 0, 0],
      heights: Number(this.heights.value),
      ...this.chart.looks,
    };
  }

  /** Arrange the views as in a layout. */
  setLayout({ mode, split }: Pick<Layout, "mode" | "split">): void {
    this.setMode(MODES.find(([known]) => known === mode)?.[0] ?? "free");
    this.split(split);
  }

  showLayers(layers: string[]): void {
    for (const [layer] of LAYERS) this.show[layer] = layers.includes(layer);
    this.storeLayers();
  }

  /** Restore the view of a link. */
  look(v: ViewState): void {
    this.homed = true;
    this.linked = v;
    this.chart.look([v.middle[0]!, v.middle[1]!], v.scale);
    this.setLayout(v);
    const factor = EXAGGERATION_FACTORS.find((f) => f === v.heights) ?? 1;
    this.heights.value = String(factor);
    if (!this.view) return;
    this.view.heights.factor = factor;
    this.view.look(v.eye, v.target);
    this.linked = null;
  }
}
