// The 3D view and the chart, of which one is shown or both side by side, and the buttons that select what they show.

import { Chart } from "./chart";
import { h } from "./dom";
import type { ErrorBanner } from "./error_banner";
import type { OnboardCanvases } from "./view3d";
import { Menu } from "./menu";
import type { Layout } from "./layout";
import type { SceneStore } from "./scene_store";
import { splitter } from "./splitter";
import type { ViewState } from "./url_state";
import { EXAGGERATION_FACTORS } from "./vertical_exaggeration";
import { View3D, type CameraMode } from "./view3d";

export type StageMode = CameraMode | "chart";
type Layer = keyof View3D["show"];
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
  ["magnify", "enlarge", "Z"],
];
const STORED_LAYERS = "wavesim-show",
  STORED_SPLIT = "wavesim-split";
const EVEN = 0.5; // share of the 3D view when the stage is split

export class Stage {
  readonly element = h("div", { id: "stage" });
  readonly view: View3D;
  readonly chart: Chart;
  private charting = false; // the chart is shown alone
  private split: number | null = null; // share of the width that the 3D view takes beside the chart
  private homed = false; // the chart shows the scene
  private built = false; // there was a scene
  private readonly heights: HTMLSelectElement;
  private readonly modes = new Map<StageMode, HTMLButtonElement>();
  private readonly layers = new Map<Layer, HTMLButtonElement>();
  /** Layers that are shown on a first visit. */
  readonly defaultLayers: Layer[];
  private readonly splitButton: HTMLButtonElement;
  /** Menu of the elements that are shown. */
  readonly menu: Menu;

  constructor(
    store: SceneStore,
    choose: (row: number | null) => void,
    openOnboard: (row: number) => void,
    private readonly changed: () => void,
  ) {
    this.view = new View3D(store, choose, openOnboard, changed);
    this.chart = new Chart(store, choose, this.view.show, changed);
    this.chart.canvas.classList.add("hidden");
    this.heights = h(
      "select",
      {
        id: "heights",
        title: "Vertical exaggeration of the scene",
        onchange: () => {
          this.view.stretch(Number(this.heights.value));
          changed();
        },
      },
      ...EXAGGERATION_FACTORS.map((f) => h("option", { value: f }, `heights ${f} ×`)),
    );
    for (const [mode, text, key] of MODES)
      this.modes.set(
        mode,
        h("button", { id: `do-view-${mode}`, title: `${text} (${key})`, onclick: () => this.setMode(mode) }, text),
      );
    for (const [layer, text, key] of LAYERS) {
      const title = `${text} on or off (${key})`;
      this.layers.set(layer, h("button", { id: `do-show-${layer}`, title, onclick: () => this.toggle(layer) }, text));
    }
    this.splitButton = h(
      "button",
      { id: "do-split", title: "3D view beside the chart (5)", onclick: () => this.toggleSplit() },
      "◫ split",
    );
    this.defaultLayers = this.shownLayers;
    this.menu = new Menu("shown", "show", ...this.layers.values(), this.heights);
    this.restoreLayers();
  }

  /** Add the canvases, the buttons (the stage's own and others), and what lies above them. */
  assemble(buttons: HTMLElement[], above: HTMLElement): void {
    const home = h("button", { title: "Whole scene (H)", onclick: () => this.home() }, "⌂");
    this.element.append(
      this.view.canvas,
      this.view.over,
      this.chart.canvas,
      this.view.compass,
      this.chart.pointer.element,
      splitter(
        this.element,
        () => this.split ?? EVEN,
        (share) => this.setSplit(share),
      ),
      h("div", { class: "tools" }, ...this.modes.values(), this.splitButton, home, this.menu.element, ...buttons),
      above,
    );
    this.setSplit(Number(localStorage.getItem(STORED_SPLIT)) || null);
  }

  get mode(): StageMode {
    return this.charting ? "chart" : this.view.mode;
  }

  /** Choose a view. The chart is then shown alone; the camera may move beside the chart. */
  setMode(mode: StageMode): void {
    this.charting = mode === "chart";
    if (mode === "chart") this.split = null;
    else this.view.setMode(mode);
    this.arrange();
  }

  /** Show the 3D view beside the chart, with a share of the width; null: alone. */
  setSplit(share: number | null): void {
    this.split = share;
    if (share !== null) this.charting = false;
    this.arrange();
  }

  toggleSplit(): void {
    this.setSplit(this.split === null ? EVEN : null);
  }

  /** Show the chart, if it is not shown. */
  showChart(): void {
    if (!this.chartShown) this.setMode("chart");
  }

  private get chartShown(): boolean {
    return this.charting || this.split !== null;
  }

  /** Put the views in their places, and remember the split for the next visit. */
  private arrange(): void {
    this.changed();
    localStorage.setItem(STORED_SPLIT, String(this.split ?? ""));
    this.element.style.setProperty("--split", `${100 * (this.split ?? EVEN)}%`);
    this.element.classList.toggle("split", this.split !== null);
    this.element.classList.toggle("charting", this.charting);
    this.chart.canvas.classList.toggle("hidden", !this.chartShown);
    this.view.compass.classList.toggle("hidden", this.charting);
    this.chart.pointer.show(this.chartShown);
    if (!this.chartShown || this.homed || !this.chart.canvas.clientWidth) return;
    this.chart.home();
    this.homed = true;
  }

  /** Show the whole scene. */
  home(): void {
    if (this.chartShown) this.chart.home();
    if (!this.charting) this.view.home();
  }

  goTo(row: number): void {
    this.setMode("free");
    this.view.goTo(row);
  }

  /** Show or hide a layer, and remember the choice for the next visit. */
  toggle(layer: Layer): void {
    this.view.show[layer] = !this.view.show[layer];
    localStorage.setItem(STORED_LAYERS, JSON.stringify(this.view.show));
    this.changed();
  }

  private restoreLayers(): void {
    let stored: Record<string, unknown> = {};
    try {
      stored = JSON.parse(localStorage.getItem(STORED_LAYERS) ?? "{}") as Record<string, unknown>;
    } catch {
      /* the stored value does not come from this page */
    }
    for (const [layer] of LAYERS) if (typeof stored?.[layer] === "boolean") this.view.show[layer] = stored[layer];
  }

  /** Build a new scene. */
  rebuild(dark: boolean): void {
    this.view.rebuild();
    this.chart.build(dark);
    this.homed = false;
    if (!this.built) this.arrange(); // the chart may be shown from the last visit
    this.built = true;
  }

  theme(dark: boolean): void {
    this.view.theme(dark);
    this.chart.build(dark);
  }

  set onboard(canvases: OnboardCanvases | null) {
    this.view.onboard = canvases;
    this.changed();
  }

  /** Draw a picture. */
  draw(errors: ErrorBanner): void {
    if (this.chartShown) errors.part("the chart", () => this.chart.render());
    if (!this.charting || this.view.onboard) errors.part("the 3D view", () => this.view.render(!this.charting));
  }

  /** Draw the last picture before the drawing loop rests. */
  rest(): void {
    if (!this.charting) this.view.still();
  }

  /** Draw a picture for a file, at full quality. */
  drawStill(): void {
    if (this.chartShown) this.chart.render();
    if (!this.charting) this.view.still(true);
  }

  /** Canvases that are shown, lowest first. */
  get canvases(): HTMLCanvasElement[] {
    const space = [this.view.canvas, this.view.over, this.view.compass];
    return [...(this.charting ? [] : space), ...(this.chartShown ? [this.chart.canvas] : [])];
  }

  updateButtons(): void {
    for (const [mode, button] of this.modes) button.classList.toggle("on", mode === this.mode);
    this.splitButton.classList.toggle("on", this.split !== null);
    for (const [layer, button] of this.layers) button.classList.toggle("on", this.view.show[layer]);
  }

  private get shownLayers(): Layer[] {
    return LAYERS.map(([layer]) => layer).filter((layer) => this.view.show[layer]);
  }

  /** Parts of a layout. */
  get layout(): Pick<Layout, "mode" | "split" | "show"> {
    return { mode: this.mode, split: this.split, show: this.shownLayers };
  }

  /** Parts of a link to the current view. */
  state(): Pick<ViewState, "eye" | "target" | "heights" | "middle" | "scale"> {
    const { camera, controls } = this.view;
    return {
      eye: camera.position.toArray(),
      target: controls.target.toArray(),
      heights: this.view.heights.factor,
      ...this.chart.looks,
    };
  }

  /** Arrange the views as in a layout. */
  setLayout({ mode, split }: Pick<Layout, "mode" | "split">): void {
    this.setMode(MODES.find(([known]) => known === mode)?.[0] ?? "free");
    this.setSplit(split);
  }

  showLayers(layers: string[]): void {
    for (const [layer] of LAYERS) this.view.show[layer] = layers.includes(layer);
  }

  /** Restore the view of a link. */
  look(v: ViewState): void {
    this.homed = true;
    this.chart.look([v.middle[0]!, v.middle[1]!], v.scale);
    this.view.heights.factor = EXAGGERATION_FACTORS.find((f) => f === v.heights) ?? 1;
    this.heights.value = String(this.view.heights.factor);
    this.view.look(v.eye, v.target);
  }
}
