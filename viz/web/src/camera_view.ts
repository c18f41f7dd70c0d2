// Camera images in colour, as large as the window allows.

import type { ImagePainter, SonarImage } from "./sonar_image";
import { context2d } from "./canvas";
import type { ImageHeader } from "./page_protocol";

export class CameraView implements ImagePainter {
  private head: ImageHeader | null = null;
  private samples: Uint8Array = new Uint8Array(0);
  private readonly layer = document.createElement("canvas");
  // corner of the image in the window, and window pixels per image pixel
  private place: [number, number, number] = [0, 0, 1];

  take(p: SonarImage): void {
    this.head = p.head;
    this.samples = p.samples;
    const width = p.head.bins / 3,
      height = p.head.beams;
    if (this.layer.width !== width || this.layer.height !== height) {
      this.layer.width = width;
      this.layer.height = height;
    }
    const image = new ImageData(width, height);
    for (let k = 0, i = 0; k < p.samples.length; k += 3, i += 4) {
      for (let c = 0; c < 3; c++) image.data[i + c] = p.samples[k + c]!;
      image.data[i + 3] = 255;
    }
    context2d(this.layer).putImageData(image, 0, 0);
  }

  clear(): void {
    this.head = null;
  }

  paint(c: CanvasRenderingContext2D, w: number, h: number): void {
    if (!this.head) return;
    const scale = Math.min(w / this.layer.width, h / this.layer.height);
    this.place = [(w - scale * this.layer.width) / 2, (h - scale * this.layer.height) / 2, scale];
    c.drawImage(this.layer, this.place[0], this.place[1], scale * this.layer.width, scale * this.layer.height);
  }

  describeSample(x: number, y: number): string {
    if (!this.head) return "";
    const column = Math.floor((x - this.place[0]) / this.place[2]),
      row = Math.floor((y - this.place[1]) / this.place[2]),
      at = row * this.head.bins + 3 * column;
    if (column < 0 || row < 0 || column >= this.layer.width || row >= this.layer.height) return "";
    return `column ${column}  row ${row}  ${this.samples[at]} ${this.samples[at + 1]} ${this.samples[at + 2]}`;
  }

  limits(): null {
    return null;
  }
}
