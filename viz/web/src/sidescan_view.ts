// Side-scan sonar lines, newest at the top: over slant range, or over ground range assuming a level bed.

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

const MOST_LINES = 800;
interface Line {
  head: ImageHeader;
  samples: Uint8Array;
}

export class SidescanView implements ImagePainter {
  private lines: Line[] = []; // newest last
  private image: ImageData | null = null;
  private readonly layer = document.createElement("canvas");
  private ground = false;
  private across = 1; // m from the middle to an edge
  private tall = 1; // pixels of a line

  take(p: SonarImage): void {
    const last = this.lines.at(-1)?.head;
    if (last && last.bins !== p.head.bins) this.clear();
    this.lines.push({ head: p.head, samples: p.samples });
    if (this.lines.length > MOST_LINES) this.lines.shift();
  }

  clear(): void {
    this.lines = [];
  }

  limits(): [number, number] | null {
    const some = this.lines.slice(-40);
    if (!some.length) return null;
    const joined = new Uint8Array(some.reduce((n, l) => n + l.samples.length, 0));
    some.reduce((at, l) => {
      joined.set(l.samples, at);
      return at + l.samples.length;
    }, 0);
    return automaticLimits(joined);
  }

  /** First sample of each pixel of a half line, and the sample after the last; -1 = no data. */
  private samplesOf(line: Line, half: number): Int32Array {
    const { bins, range, altitude } = line.head,
      edges = new Int32Array(half + 1),
      h = altitude ?? 0;
    for (let k = 0; k <= half; k++) {
      const x = (k / half) * this.across,
        r = this.ground ? Math.hypot(x, h) : x;
      edges[k] = r <= range ? Math.min(Math.floor((r / range) * bins), bins) : bins;
    }
    return edges;
  }

  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    const newest = this.lines.at(-1);
    if (!newest) return;
    this.ground = style.ground && newest.head.altitude !== null;
    this.across = this.ground
      ? Math.sqrt(Math.max(newest.head.range ** 2 - (newest.head.altitude ?? 0) ** 2, 0.01))
      : newest.head.range;
    if (!this.image || this.image.width !== w || this.image.height !== h) {
      this.image = new ImageData(w, h);
      this.layer.width = w;
      this.layer.height = h;
    }
    const out = new Uint32Array(this.image.data.buffer).fill(0xff000000),
      half = w >> 1;
    this.tall = Math.max(1, Math.round(style.ratio));
    for (let n = 0; n < this.lines.length && n * this.tall < h; n++) {
      const line = this.lines[this.lines.length - 1 - n]!,
        { bins } = line.head,
        edges = this.samplesOf(line, half),
        y = n * this.tall;
      for (const side of [0, 1]) {
        const start = side * bins;
        for (let k = 0; k < half; k++) {
          const a = edges[k]!;
          if (a >= bins) break;
          let v = 0;
          for (let j = a; j < Math.max(edges[k + 1]!, a + 1); j++)
            if (line.samples[start + j]! > v) v = line.samples[start + j]!;
          out[y * w + (side ? half + k : half - 1 - k)] = style.colours[v]!;
        }
      }
      for (let i = 1; i < this.tall && y + i < h; i++) out.copyWithin((y + i) * w, y * w, (y + 1) * w);
    }
    context2d(this.layer).putImageData(this.image, 0, 0);
    c.drawImage(this.layer, 0, 0);
    this.marks(c, w, h, style.ratio, newest.head);
  }

  private marks(c: CanvasRenderingContext2D, w: number, h: number, ratio: number, head: ImageHeader): void {
    const half = w / 2,
      step = rangeMarkStep(this.across);
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.lineWidth = ratio;
    const room = (step * half) / this.across, // between two lines
      every = Math.ceil((1.2 * c.measureText(`${+this.across.toPrecision(4)} m`).width) / room); // labels must not overlap
    for (let k = 1; k * step < this.across; k++)
      for (const side of [-1, 1]) {
        const x = k * step,
          at = half + (side * x * half) / this.across,
          text = `${+x.toPrecision(4)} m`;
        c.strokeStyle = "#9fdcff30";
        c.beginPath();
        c.moveTo(at, 0);
        c.lineTo(at, h);
        c.stroke();
        if (k % every === 0) drawLabel(c, text, at - c.measureText(text).width / 2, h - 6 * ratio);
      }
    drawLabel(c, "port", 8 * ratio, 32 * ratio);
    drawLabel(c, "starboard", w - c.measureText("starboard").width - 8 * ratio, 32 * ratio);
    for (let n = 100; n < this.lines.length && n * this.tall < h - 30 * ratio; n += 100) {
      const text = `−${(head.time - this.lines[this.lines.length - 1 - n]!.head.time).toFixed(0)} s`;
      drawLabel(c, text, 8 * ratio, n * this.tall + 4 * ratio, "#8fb7c9");
    }
  }

  describeSample(x: number, y: number): string {
    const line = this.lines[this.lines.length - 1 - Math.floor(y / this.tall)];
    if (!line || !this.image) return "";
    const half = this.image.width / 2,
      across = (Math.abs(x - half) / half) * this.across,
      r = this.ground ? Math.hypot(across, line.head.altitude ?? 0) : across;
    const k = Math.floor((r / line.head.range) * line.head.bins),
      sample = line.samples[(x < half ? 0 : line.head.bins) + k];
    if (sample === undefined || k >= line.head.bins) return "";
    const level = levelInDecibels(line.head, sample, r);
    return `${across.toFixed(2)} m ${x < half ? "port" : "starboard"}  ${level.toFixed(0)} dB  ping ${line.head.number}`;
  }
}
