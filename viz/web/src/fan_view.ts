// Fan images: beams over angle and range. A forward-looking sonar sends a complete fan per ping, a scanning sonar one
// beam of a circle.

import {
  drawLabel,
  levelInDecibels,
  rangeMarkStep,
  type ImagePainter,
  type SonarImage,
  type ImageStyle,
  automaticLimits,
} from "./sonar_image";
import { context2d } from "./canvas";
import type { ImageHeader } from "./page_protocol";

const SLOTS = 400; // directions of a circle
const MOST_GAP = 20; // directions that one step may skip
const RIM = 24,
  ABOVE = 14; // pixels around a fan for its marks, and above it for a line of text

export class FanView implements ImagePainter {
  private head: ImageHeader | null = null;
  private samples: Uint8Array = new Uint8Array(0);
  private beams = 0;
  private slot = -1; // newest direction of a circle
  private key = "";
  private at = new Int32Array(0); // sample of each pixel, -1 = none
  private part = new Float32Array(0); // weight of the next beam in each pixel
  private per = 1; // samples of a beam per pixel
  private image: ImageData | null = null;
  private readonly layer = document.createElement("canvas");
  private middle: [number, number] = [0, 0];
  private radius = 1;

  take(p: SonarImage): void {
    const circle = p.head.kind === "scanning";
    if (
      this.head &&
      (this.head.bins !== p.head.bins || this.head.range !== p.head.range || this.head.sector !== p.head.sector)
    )
      this.clear();
    this.head = p.head;
    this.beams = circle ? SLOTS : p.head.beams;
    if (!circle) {
      this.samples = p.samples;
      return;
    }
    if (this.samples.length !== SLOTS * p.head.bins) this.samples = new Uint8Array(SLOTS * p.head.bins);
    const slot = ((Math.round((p.head.azimuth / (2 * Math.PI)) * SLOTS) % SLOTS) + SLOTS) % SLOTS,
      gone = (slot - this.slot + SLOTS) % SLOTS;
    const first = this.slot >= 0 && gone <= MOST_GAP ? this.slot + 1 : slot,
      n = first > slot ? slot + SLOTS - first : slot - first;
    for (let k = 0; k <= n; k++) this.samples.set(p.samples, ((first + k) % SLOTS) * p.head.bins);
    this.slot = slot;
  }

  clear(): void {
    this.slot = -1;
    this.samples = new Uint8Array(0);
  }

  limits(): [number, number] | null {
    return this.samples.length ? automaticLimits(this.samples) : null;
  }

  /** Half the opening angle of the fan; for a circle, pi. */
  private half(): number {
    return this.head!.kind === "scanning" ? Math.PI : this.head!.sector / 2;
  }

  private fit(w: number, h: number, rim: number, above: number): void {
    const head = this.head!,
      half = this.half(),
      key = [w, h, head.bins, this.beams, head.sector, head.kind].join();
    if (key === this.key) return;
    this.key = key;
    const wide = 2 * Math.sin(Math.min(half, Math.PI / 2)),
      low = Math.min(0, Math.cos(half)); // of a fan of radius 1
    this.radius = Math.max(Math.min((w - 2 * rim) / wide, (h - 2 * rim - above) / (1 - low)), 8);
    this.middle = [w / 2, (h + above + this.radius * (1 + low)) / 2];
    this.per = Math.max(1, Math.ceil(head.bins / this.radius));
    this.at = new Int32Array(w * h).fill(-1);
    this.part = new Float32Array(w * h);
    const circle = head.kind === "scanning";
    for (let y = 0; y < h; y++)
      for (let x = 0; x < w; x++) {
        const dx = x + 0.5 - this.middle[0],
          dy = this.middle[1] - y - 0.5,
          r = Math.hypot(dx, dy) / this.radius,
          a = Math.atan2(dx, dy);
        if (r >= 1 || Math.abs(a) > half) continue;
        const bin = Math.min(Math.floor(r * head.bins), head.bins - this.per),
          beam = circle
            ? Math.round((a / (2 * Math.PI)) * SLOTS + SLOTS) % SLOTS
            : ((a + half) / (2 * half)) * (this.beams - 1),
          b = Math.min(Math.floor(beam), Math.max(this.beams - 2, 0));
        this.at[y * w + x] = (circle ? beam : b) * head.bins + Math.max(bin, 0);
        this.part[y * w + x] = circle ? 0 : beam - b;
      }
    this.image = new ImageData(w, h);
    this.layer.width = w;
    this.layer.height = h;
  }

  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    if (!this.head || !this.samples.length) return;
    this.fit(w, h, RIM * style.ratio, ABOVE * style.ratio);
    const out = new Uint32Array(this.image!.data.buffer),
      { bins } = this.head,
      s = this.samples,
      last = this.beams === 1 ? 0 : bins;
    for (let k = 0; k < out.length; k++) {
      const i = this.at[k]!;
      if (i < 0) {
        out[k] = 0;
        continue;
      }
      const f = this.part[k]!;
      let v = 0;
      for (let j = i; j < i + this.per; j++) {
        // take the maximum, so that small bright echoes stay visible
        const one = f > 0 ? s[j]! + f * (s[j + last]! - s[j]!) : s[j]!;
        if (one > v) v = one;
      }
      out[k] = style.colours[v | 0]!;
    }
    context2d(this.layer).putImageData(this.image!, 0, 0);
    c.drawImage(this.layer, 0, 0);
    this.marks(c, style.ratio);
  }

  private marks(c: CanvasRenderingContext2D, ratio: number): void {
    const head = this.head!,
      half = this.half(),
      [x0, y0] = this.middle,
      step = rangeMarkStep(head.range),
      circle = head.kind === "scanning";
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.lineWidth = ratio;
    for (let r = step; r < head.range * 1.001; r += step) {
      const radius = (r / head.range) * this.radius;
      c.strokeStyle = "#9fdcff38";
      c.beginPath();
      c.arc(x0, y0, radius, -Math.PI / 2 - half, -Math.PI / 2 + half);
      c.stroke();
      const a = circle ? 0.3 * Math.PI : half;
      drawLabel(
        c,
        `${+r.toPrecision(4)} m`,
        x0 + radius * Math.sin(a) + 4 * ratio,
        y0 - radius * Math.cos(a) + 10 * ratio,
      );
    }
    const turn = circle ? 45 : 2 * half > 1 ? 30 : 10,
      most = circle ? 135 : Math.floor((half * 180) / Math.PI / turn + 1e-6) * turn;
    for (let deg = circle ? -180 : -most; deg <= most; deg += turn) {
      const a = (deg * Math.PI) / 180,
        text = `${deg}°`;
      c.strokeStyle = "#9fdcff24";
      c.beginPath();
      c.moveTo(x0, y0);
      c.lineTo(x0 + this.radius * Math.sin(a), y0 - this.radius * Math.cos(a));
      c.stroke();
      drawLabel(
        c,
        text,
        x0 + (this.radius + 10 * ratio) * Math.sin(a) - c.measureText(text).width / 2,
        y0 - (this.radius + 10 * ratio) * Math.cos(a) + 4 * ratio,
        "#8fb7c9",
      );
    }
    c.strokeStyle = "#9fdcff70";
    c.beginPath();
    if (!circle) {
      c.moveTo(x0, y0);
      c.arc(x0, y0, this.radius, -Math.PI / 2 - half, -Math.PI / 2 + half);
      c.closePath();
    } else {
      c.moveTo(x0, y0);
      c.lineTo(x0 + this.radius * Math.sin(head.azimuth), y0 - this.radius * Math.cos(head.azimuth));
    }
    c.stroke();
  }

  describeSample(x: number, y: number): string {
    const head = this.head;
    if (!head || !this.samples.length || !this.at.length) return "";
    const w = this.image!.width,
      i = this.at[Math.floor(y) * w + Math.floor(x)] ?? -1;
    if (i < 0) return "";
    const dx = x - this.middle[0],
      dy = this.middle[1] - y,
      r = (Math.hypot(dx, dy) / this.radius) * head.range;
    const bearing = (Math.atan2(dx, dy) * 180) / Math.PI,
      level = levelInDecibels(head, this.samples[i]!, r);
    return `${r.toFixed(2)} m  ${bearing.toFixed(1)}°  ${level.toFixed(0)} dB`;
  }
}
