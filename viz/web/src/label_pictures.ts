// Texts with a halo, drawn once each and then copied: drawing letters is many times slower than copying their picture.

import { context2d } from "./canvas";

const MOST = 400; // pictures that are kept
const BELOW = 8; // px around a text

interface Picture {
  canvas: HTMLCanvasElement;
  used: number; // number of the last frame that used it
}

export class LabelPictures {
  private readonly pictures = new Map<string, Picture>();
  private frame = 0;

  /** Begin a frame: forget pictures that the last frames did not use. */
  begin(): void {
    this.frame++;
    if (this.pictures.size <= MOST) return;
    for (const [key, p] of this.pictures) if (p.used < this.frame - 1) this.pictures.delete(key);
  }

  /** Draw a text from x to the right, with its middle at y, in the font of the context. */
  draw(
    c: CanvasRenderingContext2D,
    text: string,
    x: number,
    y: number,
    fill: string,
    halo: string,
    ratio: number,
  ): void {
    const key = `${text}\n${c.font}\n${fill}\n${halo}\n${ratio}`;
    let picture = this.pictures.get(key);
    if (!picture) this.pictures.set(key, (picture = { canvas: this.paint(c, text, fill, halo, ratio), used: 0 }));
    picture.used = this.frame;
    // on whole device pixels, so that the letters stay sharp
    const left = Math.round((x - BELOW) * ratio) / ratio,
      top = Math.round(y * ratio - picture.canvas.height / 2) / ratio;
    c.drawImage(picture.canvas, left, top, picture.canvas.width / ratio, picture.canvas.height / ratio);
  }

  private paint(
    like: CanvasRenderingContext2D,
    text: string,
    fill: string,
    halo: string,
    ratio: number,
  ): HTMLCanvasElement {
    const canvas = document.createElement("canvas"),
      wide = like.measureText(text).width,
      high = 2 * BELOW + 4;
    canvas.width = Math.ceil((wide + 2 * BELOW) * ratio);
    canvas.height = Math.ceil(high * ratio);
    const c = context2d(canvas);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = like.font;
    c.textBaseline = "middle";
    c.lineJoin = "round";
    c.lineWidth = 3.5;
    c.strokeStyle = halo;
    c.strokeText(text, BELOW, high / 2);
    c.fillStyle = fill;
    c.fillText(text, BELOW, high / 2);
    return canvas;
  }
}
