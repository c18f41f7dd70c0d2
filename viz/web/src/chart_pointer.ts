// The chart's pointer: position, depth, and distance along the measuring line; and the depth legend.

import { haloText } from "./canvas";
import { type CoordinateFormat, formatPosition, type Place } from "./coordinate_formats";
import { formatHeading } from "./coordinate_frames";
import { cssVariable, h, toast, toggleClass, setText } from "./dom";
import { depthAt, distanceAndBearing } from "./geodesy";
import type { SceneStore } from "./scene_store";
import { depthColour } from "./colour_scales";
import { depthRange } from "./bed_contours";

export class ChartPointer {
  readonly element = h("div", { class: "pointer hidden", id: "pointer" });
  private readonly text = h("span", { class: "num" });
  private readonly button = h(
    "button",
    {
      id: "measure",
      class: "small",
      title: "Measure distances: click points on the chart, end with Esc (F)",
      onclick: () => this.measure(!this.measuring),
    },
    "measure",
  );
  private readonly copying = h(
    "button",
    { id: "copy-position", class: "small", title: "Copy the position of the pointer (Y)", onclick: () => this.copy() },
    "copy",
  );
  cross = false; // the keys move the pointer: it is drawn
  measuring = false;
  points: Place[] = []; // of the measuring line
  at: Place | null = null; // where the pointer was last
  private coordinates: CoordinateFormat = "minutes";

  constructor(
    private readonly store: SceneStore,
    private readonly changed: () => void,
  ) {
    this.element.append(this.button, this.copying, this.text);
  }

  show(on: boolean): void {
    toggleClass(this.element, "hidden", !on);
  }

  get format(): CoordinateFormat {
    return this.coordinates;
  }
  set format(format: CoordinateFormat) {
    this.coordinates = format;
    if (this.at) this.move(this.at);
  }

  /** Copy a position, or that of the pointer, in the chosen format. */
  copy(place = this.at): void {
    if (!place) {
      toast("point at a position on the chart first", true);
      return;
    }
    const text = formatPosition(this.store.scene?.origin, place, this.format),
      failed = `this browser does not allow copying; copy the text by hand: ${text}`;
    const done =
      navigator.clipboard?.writeText(text).then(
        () => `copied ${text}`,
        () => failed,
      ) ?? Promise.resolve(failed);
    void done.then((said) => toast(said, said === failed));
  }

  /** End the measurement of a distance; false if none is in progress. */
  endMeasurement(): boolean {
    if (!this.measuring) return false;
    this.measure(false);
    return true;
  }

  measure(on: boolean): void {
    this.measuring = on;
    this.points = [];
    toggleClass(this.button, "on", on);
    if (this.at) this.move(this.at); // without the measured part
    this.changed();
  }

  add(place: Place): void {
    this.points.push(place);
    this.move(place);
  }

  move(place: Place): void {
    const s = this.store.scene,
      depth = depthAt(s?.bed, ...place);
    this.at = place;
    const parts = [formatPosition(null, place, "metres")];
    if (s?.origin && this.format !== "metres") parts.push(formatPosition(s.origin, place, this.format));
    if (depth !== null) parts.push(`bed ${depth.toFixed(1)} m`);
    if (this.points.length) {
      const [leg, bearing] = distanceAndBearing(this.points[this.points.length - 1]!, place);
      const all = this.points.reduce((sum, p, k) => sum + (k ? distanceAndBearing(this.points[k - 1]!, p)[0] : 0), leg);
      parts.push(
        `${leg.toFixed(1)} m  ${formatHeading(bearing, 1)}°${this.points.length > 1 ? `  (total ${all.toFixed(1)} m)` : ""}`,
      );
    }
    setText(this.text, parts.join("   "));
  }

  /** Draw the measuring line and the depth legend on the chart. */
  draw(
    c: CanvasRenderingContext2D,
    px: (n: number, e: number) => [number, number],
    w: number,
    hh: number,
    beneath: number,
  ): void {
    if (this.measuring && this.points.length) {
      const last = this.points.at(-1)!,
        points = this.at && distanceAndBearing(last, this.at)[0] > 0 ? [...this.points, this.at] : this.points;
      c.strokeStyle = c.fillStyle = cssVariable("--warm");
      c.lineWidth = 1.5;
      c.beginPath();
      points.forEach((p, k) => (k ? c.lineTo(...px(...p)) : c.moveTo(...px(...p))));
      c.stroke();
      points.forEach((p, k) => {
        const [x, y] = px(...p);
        c.beginPath();
        c.arc(x, y, 3, 0, 7);
        c.fill();
        if (k) haloText(c, `${distanceAndBearing(points[k - 1]!, p)[0].toFixed(1)} m`, x + 6, y + 12);
      });
    }
    if (this.cross && this.at) {
      const [x, y] = px(...this.at);
      c.strokeStyle = cssVariable("--ink");
      c.lineWidth = 1.2;
      c.beginPath();
      c.moveTo(x - 14, y);
      c.lineTo(x + 14, y);
      c.moveTo(x, y - 14);
      c.lineTo(x, y + 14);
      c.stroke();
    }
    const bed = this.store.scene?.bed;
    if (!bed) return;
    const [low, high] = depthRange(bed),
      height = Math.min(140, hh - 190 - beneath),
      x = w - 24,
      y = 96 + beneath;
    if (height < 40) return;
    for (let k = 0; k < height; k++) {
      const [r, g, b] = depthColour(k / height).map((v) => Math.round(255 * v));
      c.fillStyle = `rgb(${r}, ${g}, ${b})`;
      c.fillRect(x, y + k, 10, 1.5);
    }
    c.strokeStyle = cssVariable("--line");
    c.lineWidth = 1;
    c.strokeRect(x, y, 10, height);
    c.fillStyle = cssVariable("--ink");
    c.font = "10px system-ui, sans-serif";
    c.textAlign = "right";
    for (let k = 0; k <= 4; k++)
      haloText(
        c,
        `${(low + ((high - low) * k) / 4).toFixed(high - low < 20 ? 1 : 0)} m`,
        x - 4,
        y + (height * k) / 4 + 3,
      );
    c.textAlign = "left";
  }
}
