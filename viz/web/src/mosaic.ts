// Mosaics of side-scan sonars and multibeam echosounders: tiles that grow while a vehicle surveys
// (viz/wavesim_viz/live_mosaic.py), drawn on the chart here and on the sea bed in mosaic3d.ts.

import { context2d } from "./canvas";
import { type Colour, scaleColour, VIRIDIS } from "./colour_scales";
import type { MosaicLayer, MosaicTileHeader } from "./page_protocol";

const MAGIC = 0x314d5657,
  /** Levels of a side-scan sonar: `copper` of Matplotlib. */
  COPPER: Colour[] = [
    [0, 0, 0],
    [0.4, 0.25, 0.16],
    [0.81, 0.5, 0.32],
    [1, 0.63, 0.4],
    [1, 0.78, 0.5],
  ];

export interface MosaicTile {
  head: MosaicTileHeader;
  values: Float32Array; // rows from south to north; NaN: no data
  canvas: HTMLCanvasElement; // north up
  version: number; // grows with each change of the canvas
}

interface Layer {
  info: MosaicLayer | null; // null: not yet known
  epoch: number;
  tiles: Map<string, MosaicTile>;
}

/** Tile of a binary message; null if the message is something else. */
export function decodeMosaicTile(data: ArrayBuffer): { head: MosaicTileHeader; values: Float32Array } | null {
  const view = new DataView(data);
  if (data.byteLength < 8 || view.getUint32(0, true) !== MAGIC) return null;
  const length = view.getUint32(4, true),
    head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 8, length))) as MosaicTileHeader;
  if (data.byteLength !== 8 + length + 4 * head.cells ** 2) return null;
  return { head, values: new Float32Array(data, 8 + length) };
}

export class Mosaic {
  readonly layers = new Map<string, Layer>();
  shown = false;
  version = 0; // grows with each change of the picture

  /** Take the list of mosaics; tiles of other epochs are dropped. */
  list(layers: MosaicLayer[]): void {
    const there = new Set(layers.map((l) => `${l.row}/${l.name}`));
    for (const key of this.layers.keys()) if (!there.has(key)) this.layers.delete(key);
    for (const info of layers) {
      const layer = this.layer(info.row, info.name, info.epoch),
        old = layer.info;
      layer.info = info;
      if (old?.low !== info.low || old.high !== info.high) for (const t of layer.tiles.values()) this.paint(t, info);
    }
    this.version++;
  }

  /** Take a tile. */
  take({ head, values }: { head: MosaicTileHeader; values: Float32Array }): void {
    const layer = this.layer(head.row, head.name, head.epoch),
      key = `${head.south},${head.west}`,
      old = layer.tiles.get(key);
    const tile = { head, values, canvas: old?.canvas ?? document.createElement("canvas"), version: old?.version ?? 0 };
    layer.tiles.set(key, tile);
    if (layer.info) this.paint(tile, layer.info);
    this.version++;
  }

  private layer(row: number, name: string, epoch: number): Layer {
    const key = `${row}/${name}`;
    let layer = this.layers.get(key);
    if (!layer || layer.epoch !== epoch)
      this.layers.set(key, (layer = { info: layer?.info ?? null, epoch, tiles: new Map() }));
    return layer;
  }

  private paint(tile: MosaicTile, info: MosaicLayer): void {
    const { canvas, values } = tile,
      size = tile.head.cells,
      c = context2d(canvas);
    if (canvas.width !== size) canvas.width = canvas.height = size;
    const image = c.createImageData(size, size),
      scale = info.kind === "sidescan" ? COPPER : VIRIDIS;
    for (let k = 0; k < values.length; k++) {
      const v = values[k]!;
      if (Number.isNaN(v)) continue;
      const north = Math.floor(k / size),
        o = 4 * ((size - 1 - north) * size + (k % size)),
        [r, g, b] = scaleColour(scale, (v - info.low) / (info.high - info.low));
      image.data.set([255 * r, 255 * g, 255 * b, 255], o);
    }
    c.putImageData(image, 0, 0);
    tile.version++;
  }

  /** All tiles that are shown. */
  *tiles(): Generator<MosaicTile> {
    if (!this.shown) return;
    for (const { tiles } of this.layers.values()) yield* tiles.values();
  }

  /** Draw on the chart. */
  draw(c: CanvasRenderingContext2D, px: (north: number, east: number) => [number, number], w: number, h: number): void {
    c.imageSmoothingEnabled = false;
    for (const { head, canvas } of this.tiles()) {
      const side = head.cell * head.cells,
        [x0, y1] = px(head.south, head.west),
        [x1, y0] = px(head.south + side, head.west + side);
      if (x1 > 0 && y1 > 0 && x0 < w && y0 < h && canvas.width) c.drawImage(canvas, x0, y0, x1 - x0, y1 - y0);
    }
    c.imageSmoothingEnabled = true;
  }
}
