// A window with the images of one sonar, camera or lidar, or the sound of one hydrophone.

import { formatTime, h, setChildren, setText, toggleClass } from "./dom";
import type { Dock } from "./dock";
import { makeDraggable } from "./draggable";
import { PALETTE_NAMES, colourTable, type ImagePainter, type SonarImage } from "./sonar_image";
import { CameraView } from "./camera_view";
import { HydrophoneView } from "./hydrophone_view";
import { LidarView } from "./lidar_view";
import { FanView } from "./fan_view";
import { MultibeamView } from "./multibeam_view";
import { RangeImageView } from "./range_image_view";
import { SidescanView } from "./sidescan_view";
import { context2d, deviceRatio } from "./canvas";
import type { ImageHeader } from "./page_protocol";
import type { Stage } from "./stage";

const UNITS: Partial<Record<ImageHeader["kind"], string>> = { camera: "image", lidar: "scan", hydrophone: "block" };

export class SonarWindow {
  readonly box: HTMLElement;
  painter: ImagePainter | null = null;
  taken = 0; // images
  skipped = 0; // frames that did not reach this page
  trouble = "";
  channel = 0; // of a hydrophone
  private epoch = 0;
  private last = 0; // number of the newest frame of this epoch
  private head: ImageHeader | null = null;
  private stale = true;
  private low = 0;
  private high = 255;
  private readonly canvas = h("canvas", { class: "sonar" });
  private readonly status = h("div", { class: "status" });
  private readonly under = h("div", { class: "under" });
  private readonly colouring = h(
    "select",
    {
      title: "Colours",
      onchange: () => {
        this.stale = true;
        this.changed();
      },
    },
    ...PALETTE_NAMES.map((c) => h("option", { value: c }, c)),
  );
  private readonly contrast: HTMLButtonElement = h(
    "button",
    {
      title: "Fit the contrast to the data, or use the full scale",
      onclick: () => {
        toggleClass(this.contrast, "on", !this.contrast.classList.contains("on"));
        this.stale = true;
        this.changed();
      },
    },
    "auto",
  );
  private readonly ground: HTMLButtonElement = h(
    "button",
    {
      class: "ground hidden",
      title: "Show range along the beam, or over the ground",
      onclick: () => {
        toggleClass(this.ground, "on", !this.ground.classList.contains("on"));
        setText(this.ground, this.ground.classList.contains("on") ? "ground" : "slant");
        this.stale = true;
        this.changed();
      },
    },
    "slant",
  );

  private readonly listen: HTMLButtonElement = h(
    "button",
    {
      class: "listen hidden",
      title: "Play the sound in this window, as it is; press Shift for one eighth of the speed",
      onclick: (e: MouseEvent) => {
        if (this.painter instanceof HydrophoneView) this.painter.play(e.shiftKey ? 8 : 1);
      },
    },
    "play",
  );
  /** Settings of the spectrogram. */
  private readonly settings = h("div", { class: "spectrum hidden" });
  private readonly axes: HTMLButtonElement = h(
    "button",
    {
      class: "axes hidden",
      title: "Channel, time span, resolution and frequency axis",
      onclick: () => {
        const open = this.settings.classList.contains("hidden");
        toggleClass(this.settings, "hidden", !open);
        toggleClass(this.axes, "on", open);
      },
    },
    "axes",
  );
  private readonly channels = h("select", {
    class: "channel",
    title: "Channel of the hydrophone",
    onchange: () => {
      this.channel = Number(this.channels.value);
      this.epoch = -1; // the blocks of the other channel are another stream
      this.begin(0);
      this.asked();
    },
  });
  private readonly floating: HTMLButtonElement = h(
    "button",
    {
      class: "float",
      title: "Float over the main view, or dock beside it",
      "aria-label": "Float over the main view, or dock beside it",
      onclick: () => {
        this.dock.place(this.box, !this.box.classList.contains("docked"));
        this.changed();
      },
    },
    "◰",
  );

  constructor(
    readonly row: number,
    readonly name: string,
    title: string,
    place: number,
    private readonly stage: Pick<Stage, "element" | "points">,
    private readonly dock: Dock,
    close: () => void,
    private readonly changed: () => void,
    private readonly asked: () => void,
  ) {
    const button = h("button", { class: "close", title: "Close", onclick: close }, "×"),
      head = h(
        "div",
        { class: "head" },
        h("b", { class: "grow" }, title),
        h("span", { class: "adjust" }, this.axes, this.listen, this.ground, this.contrast, this.colouring),
        this.floating,
        button,
      );
    this.box = h("div", { class: "window sonars" }, head, this.canvas, this.status, this.under, this.settings);
    this.box.dataset["sonar"] = name;
    toggleClass(this.contrast, "on", true);
    const width = Math.min(460, 0.48 * stage.element.clientWidth),
      height = Math.min(0.8 * width, 0.46 * stage.element.clientHeight);
    Object.assign(this.box.style, {
      left: `${10 + (place % 2) * (width + 8)}px`,
      top: `${40 + (Math.floor(place / 2) % 2) * (height + 8)}px`,
      width: `${width}px`,
      height: `${height}px`,
    });
    makeDraggable(head, this.box, stage.element);
    dock.place(this.box, true);
    new ResizeObserver(() => {
      this.stale = true;
      changed();
    }).observe(this.box);
    this.canvas.addEventListener("pointermove", (e) => {
      const ratio = this.ratio();
      setText(this.under, this.painter?.describeSample(e.offsetX * ratio, e.offsetY * ratio) ?? "");
    });
    this.canvas.addEventListener("pointerleave", () => setText(this.under, ""));
  }

  private ratio(): number {
    return deviceRatio();
  }

  /** Clear everything when a new epoch starts. */
  begin(epoch: number): void {
    if (epoch === this.epoch) return;
    this.epoch = epoch;
    this.painter?.clear();
    this.skipped = this.last = 0;
    this.stale = true;
  }

  /** Offer the channels and the settings of a hydrophone. */
  private offer(view: HydrophoneView): void {
    const redraw = (): void => {
      this.stale = true;
      this.taken = 0; // the contrast adapts at once
      this.changed();
    };
    setChildren(this.settings, this.channels, ...view.controls(redraw));
  }

  private listChannels(count: number): void {
    toggleClass(this.channels, "hidden", count < 2);
    if (this.channels.options.length === count) return;
    const names = Array.from({ length: count }, (_, k) => h("option", { value: k }, `channel ${k + 1}`));
    setChildren(this.channels, ...names);
    this.channels.value = String(this.channel);
  }

  take(p: SonarImage): void {
    if (p.head.channel !== this.channel && p.head.channels > this.channel) return; // of the previous choice
    this.begin(p.head.epoch);
    if (this.last) this.skipped += Math.max(p.head.number - this.last - 1, 0);
    this.last = p.head.number;
    if (!this.painter || this.head?.kind !== p.head.kind) {
      this.end();
      this.painter =
        p.head.kind === "sidescan"
          ? new SidescanView()
          : p.head.kind === "bathymetry"
            ? new MultibeamView()
            : p.head.kind === "camera"
              ? new CameraView()
              : p.head.kind === "3d"
                ? new RangeImageView()
                : p.head.kind === "lidar"
                  ? new LidarView()
                  : p.head.kind === "hydrophone"
                    ? new HydrophoneView()
                    : new FanView();
      if (this.painter instanceof MultibeamView) this.stage.points(this.painter.cloud, true);
      toggleClass(this.ground, "hidden", p.head.kind !== "sidescan");
      if (this.painter instanceof HydrophoneView) this.offer(this.painter);
      for (const e of [this.listen, this.axes]) toggleClass(e, "hidden", p.head.kind !== "hydrophone");
      for (const e of [this.contrast, this.colouring])
        toggleClass(e, "hidden", ["bathymetry", "camera", "3d", "lidar"].includes(p.head.kind));
    }
    if (p.head.kind === "hydrophone") this.listChannels(p.head.channels);
    this.head = p.head;
    this.trouble = "";
    this.painter.take(p);
    this.taken++;
    this.stale = true;
  }

  draw(): void {
    const ratio = this.ratio(),
      w = Math.round(this.canvas.clientWidth * ratio),
      hh = Math.round(this.canvas.clientHeight * ratio),
      head = this.head;
    if (!w || !hh) return;
    if (!head || this.trouble) {
      setText(this.status, this.trouble || "no image yet");
      if (!head) return;
    }
    if (!this.stale) return;
    this.stale = false;
    if (this.canvas.width !== w || this.canvas.height !== hh) {
      this.canvas.width = w;
      this.canvas.height = hh;
    }
    const limits = this.contrast.classList.contains("on") ? this.painter!.limits() : [0, 255];
    if (limits) {
      // slowly, so that the brightness does not pump
      const f = this.taken < 10 ? 1 : 0.1;
      this.low += f * (limits[0]! - this.low);
      this.high += f * (Math.max(limits[1]!, limits[0]! + 60) - this.high);
    }
    const c = context2d(this.canvas);
    c.clearRect(0, 0, w, hh);
    this.painter!.paint(c, w, hh, {
      colours: colourTable(this.colouring.value, this.low, this.high),
      ground: this.ground.classList.contains("on"),
      ratio,
    });
    if (this.trouble) return;
    const altitude =
        head.altitude === null || head.kind === "forward" ? "" : `  altitude ${head.altitude.toFixed(1)} m`,
      cut = head.saturated ? `  ${head.saturated} saturated` : "",
      skipped = this.skipped ? `  ${this.skipped} skipped` : "";
    const what =
      head.kind === "camera"
        ? `${head.bins / 3} x ${head.beams}  exposure ${head.gain.toPrecision(3)}`
        : head.kind === "lidar"
          ? `${head.beams} points  ${head.range.toFixed(0)} m`
          : head.kind === "hydrophone"
            ? `${+(head.frequency / 1e3).toFixed(3)} kS/s`
            : `${(head.frequency / 1e3).toFixed(0)} kHz  ${head.range.toFixed(0)} m`;
    setText(
      this.status,
      `${what}  ${UNITS[head.kind] ?? "ping"} ${head.number}  ${formatTime(head.time)}` + `${altitude}${cut}${skipped}`,
    );
  }

  /** Remove its points from the 3D view. */
  private end(): void {
    if (this.painter instanceof HydrophoneView) this.painter.dispose();
    if (!(this.painter instanceof MultibeamView)) return;
    this.stage.points(this.painter.cloud, false);
    this.painter.dispose();
  }

  close(): void {
    this.end();
    this.dock.remove(this.box);
  }
}
