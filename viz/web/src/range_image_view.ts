// Image of a 3D sonar: the range of each direction as a colour, near yellow and far violet, and the colour scale.

import { scaleColour, VIRIDIS } from "./colour_scales";
import { drawLabel, type ImagePainter, type ImageStyle, type SonarImage } from "./sonar_image";
import { context2d } from "./canvas";
import type { ImageHeader } from "./page_protocol";

const RIM = 56; // pixels beside the image for the colour scale

export class RangeImageView implements ImagePainter {
  private head: ImageHeader | null = null;
  private samples: Uint8Array = new Uint8Array(0);
  private readonly layer = document.createElement("canvas");
  private low = 1; // samples of the nearest and the farthest colour
  private high = 255;
  // corner of the image in the window, and its size
  private place: [number, number, number, number] = [0, 0, 1, 1];

  take(p: SonarImage): void {
    this.head = p.head;
    this.samples = p.samples;
    const { bins: columns, beams: rows } = p.head,
      sorted = p.samples.filter((s) => s > 0).sort();
    if (sorted.length) {
      this.low = sorted[Math.floor(0.02 * sorted.length)]!;
      this.high = Math.max(sorted[Math.ceil(0.98 * sorted.length) - 1]!, this.low + 1);
    }
    if (this.layer.width !== columns || this.layer.height !== rows) {
      this.layer.width = columns;
      this.layer.height = rows;
    }
    const image = new ImageData(columns, rows);
    p.samples.forEach((s, k) => {
      if (s) image.data.set([...this.colour(s), 255], 4 * k);
    });
    context2d(this.layer).putImageData(image, 0, 0);
  }

  private colour(sample: number): number[] {
    return scaleColour(VIRIDIS, (sample - this.low) / (this.high - this.low)).map((v) => Math.round(255 * v));
  }

  private range(sample: number): number {
    return (sample / 255) * this.head!.range;
  }

  clear(): void {
    this.head = null;
  }

  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    if (!this.head) return;
    const rim = RIM * style.ratio,
      // the pixels are equal angles: as wide as the field of view is to its height
      scale = Math.min((w - rim) / this.head.sector, h / this.head.height),
      wide = scale * this.head.sector,
      high = scale * this.head.height;
    this.place = [(w - rim - wide) / 2, (h - high) / 2, wide, high];
    c.fillStyle = "#04101a";
    c.fillRect(0, 0, w, h);
    c.imageSmoothingEnabled = false;
    c.drawImage(this.layer, ...this.place);
    const x = w - rim + 8 * style.ratio,
      top = 34 * style.ratio,
      length = h - 2 * top;
    for (let k = 0; k < 100; k++) {
      c.fillStyle = `rgb(${this.colour(this.low + ((this.high - this.low) * k) / 99).join(", ")})`;
      c.fillRect(x, top + (length * k) / 100, 12 * style.ratio, length / 100 + 1);
    }
    c.font = `${11 * style.ratio}px system-ui, sans-serif`;
    drawLabel(c, `${this.range(this.low).toFixed(1)} m`, x, top - 6 * style.ratio);
    drawLabel(c, `${this.range(this.high).toFixed(1)} m`, x, h - 4 * style.ratio);
  }

  describeSample(x: number, y: number): string {
    if (!this.head) return "";
    const { bins: columns, beams: rows, sector, height } = this.head,
      across = (x - this.place[0]) / this.place[2],
      down = (y - this.place[1]) / this.place[3];
    if (across < 0 || across >= 1 || down < 0 || down >= 1) return "";
    const sample = this.samples[Math.floor(down * rows) * columns + Math.floor(across * columns)]!,
      degrees = (f: number, angle: number): string => ((f - 0.5) * angle * (180 / Math.PI)).toFixed(0);
    return (
      `${degrees(across, sector)} deg starboard, ${degrees(down, height)} deg down` +
      `  ${sample ? `${this.range(sample).toFixed(1)} m` : "no echo"}`
    );
  }

  limits(): null {
    return null;
  }
}
