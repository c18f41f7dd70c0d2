// User's raster chart below the viewer's own: Web Mercator tiles from the viewer's server, each placed by its corners.

import { cssVariable } from "./dom";
import { geodetic, toLocal } from "./geodesy";
import type { TilesetInfo } from "./page_protocol";

const EQUATOR = 2 * Math.PI * 6378137,
  SIZE = 256,
  MOST_SEEN = 80,
  MOST_KEPT = 400; // m, px, tiles
const RAD = Math.PI / 180;

/** Fractional column and row of a position at a zoom level; rows count from the north. */
export function tileAt(lat: number, lon: number, z: number): [number, number] {
  const s = Math.sin(lat * RAD);
  return [((lon + 180) / 360) * 2 ** z, (0.5 - Math.log((1 + s) / (1 - s)) / (4 * Math.PI)) * 2 ** z];
}

/** Latitude and longitude of the north-western corner of a tile. */
export function tileCorner(x: number, y: number, z: number): [number, number] {
  return [Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / 2 ** z))) / RAD, (x / 2 ** z) * 360 - 180];
}

export class Tiles {
  info: TilesetInfo | null = null;
  version = 0; // incremented with each loaded image
  private readonly images = new Map<string, HTMLImageElement>();

  constructor(private readonly changed: () => void) {}

  /** Draw the tiles that cover the view between two corners (north, east); ``px`` maps to canvas positions. */
  draw(
    c: CanvasRenderingContext2D,
    origin: [number, number],
    low: [number, number],
    high: [number, number],
    scale: number,
    px: (n: number, e: number) => [number, number],
    dark: boolean,
  ): void {
    const t = this.info;
    if (!t) return;
    const corners = [
      [low[0], low[1]],
      [low[0], high[1]],
      [high[0], low[1]],
      [high[0], high[1]],
    ].map(([n, e]) => geodetic(origin, n!, e!, 0));
    if (!corners.flat().every(Number.isFinite)) return;
    const range = (z: number): [number, number, number, number] => {
      const at = corners.map(([lat, lon]) => tileAt(Math.max(-85, Math.min(85, lat)), lon, z)),
        x = at.map((a) => a[0]),
        y = at.map((a) => a[1]);
      return [
        Math.floor(Math.min(...x)),
        Math.floor(Math.max(...x)),
        Math.floor(Math.min(...y)),
        Math.floor(Math.max(...y)),
      ];
    };
    let z = Math.max(
      t.least,
      Math.min(t.most, Math.round(Math.log2((EQUATOR * Math.cos(origin[0] * RAD) * scale) / SIZE))),
    );
    const many = ([x0, x1, y0, y1]: [number, number, number, number]): number => (x1 - x0 + 1) * (y1 - y0 + 1);
    while (z > t.least && many(range(z)) > MOST_SEEN) z--;
    const [x0, x1, y0, y1] = range(z);
    if (many([x0, x1, y0, y1]) > MOST_SEEN) return; // zoomed out beyond the lowest level of the file
    c.save();
    c.globalAlpha = dark ? 0.8 : 1;
    const matrix = c.getTransform();
    for (let x = x0; x <= x1; x++)
      for (let y = y0; y <= y1; y++) {
        const image = this.image(z, x, y);
        if (!image.complete || !image.naturalWidth) continue;
        const [a, b, d] = [
            [x, y],
            [x + 1, y],
            [x, y + 1],
          ].map(([i, k]) => px(...toLocal(origin, ...tileCorner(i!, k!, z)))) as [
            [number, number],
            [number, number],
            [number, number],
          ],
          w = image.naturalWidth;
        c.setTransform(
          matrix.multiply(
            new DOMMatrix([(b[0] - a[0]) / w, (b[1] - a[1]) / w, (d[0] - a[0]) / w, (d[1] - a[1]) / w, a[0], a[1]]),
          ),
        );
        c.drawImage(image, 0, 0);
      }
    c.restore();
  }

  /** Draw the source of the chart. */
  sign(c: CanvasRenderingContext2D, hh: number): void {
    if (!this.info) return;
    const text = [this.info.name, this.info.attribution.replace(/<[^>]*>/g, "")].filter(Boolean).join(" · ");
    c.font = "10px system-ui, sans-serif";
    c.strokeStyle = cssVariable("--bg");
    c.fillStyle = cssVariable("--ink");
    c.lineWidth = 3;
    c.strokeText(text, 98, hh - 18); // beside the measuring button
    c.fillText(text, 98, hh - 18);
  }

  private image(z: number, x: number, y: number): HTMLImageElement {
    const key = `${z}/${x}/${y}`,
      known = this.images.get(key);
    if (known) return known;
    const image = new Image();
    image.onload = () => {
      this.version++;
      this.changed();
    };
    image.src = `/tiles/${key}`;
    this.images.set(key, image);
    if (this.images.size > MOST_KEPT) this.images.delete(this.images.keys().next().value!);
    return image;
  }
}
