// Images of sonars: byte format (see wavesim_viz/image_streams.py), colours, and the interface of a painter.

import type { ImageHeader } from "./page_protocol";

/**
 * ``samples``: levels (beams, bins); ``points``: five numbers per sounding: north, east, down, starboard, sigma; of a
 * lidar: north, east, down, starboard, ahead. ``sound``: samples of a hydrophone, 32768 = full scale.
 */
export interface SonarImage {
  head: ImageHeader;
  samples: Uint8Array;
  points: Float32Array;
  sound: Int16Array;
}
const MAGIC = 0x31535657;

export function decodeSonarImage(data: ArrayBuffer): SonarImage | null {
  if (data.byteLength < 8) return null;
  const v = new DataView(data),
    length = v.getUint32(4, true),
    start = 8 + length;
  if (v.getUint32(0, true) !== MAGIC || start > data.byteLength || start % 4) return null;
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 8, length))) as ImageHeader,
    soundings = head.kind === "bathymetry" || head.kind === "lidar",
    sound = head.kind === "hydrophone";
  if (!soundings && data.byteLength - start !== head.beams * head.bins * (sound ? 2 : 1)) return null;
  return {
    head,
    sound: sound ? new Int16Array(data, start) : new Int16Array(0),
    samples: soundings || sound ? new Uint8Array(0) : new Uint8Array(data, start),
    points: soundings ? new Float32Array(data, start, Math.floor((data.byteLength - start) / 4)) : new Float32Array(0),
  };
}

/** Echo level in dB re 1 uPa of a sample, with the receiver gain removed. */
export function levelInDecibels(h: ImageHeader, sample: number, range: number): number {
  const r = Math.min(Math.max(range, h.range / h.bins), h.hold ?? Infinity);
  return (sample * h.span) / 255 + h.floor - (h.tvg * Math.log10(r) + 2 * h.absorption * r + h.gain);
}

const PALETTES: Record<string, [number, number, number][]> = {
  amber: [
    [0, 0, 0],
    [74, 34, 6],
    [168, 88, 14],
    [236, 165, 44],
    [255, 226, 130],
    [255, 255, 236],
  ],
  blue: [
    [2, 6, 16],
    [8, 40, 92],
    [18, 110, 150],
    [90, 190, 160],
    [245, 222, 110],
    [255, 250, 230],
  ],
  grey: [
    [0, 0, 0],
    [255, 255, 255],
  ],
};
export const PALETTE_NAMES = Object.keys(PALETTES);

/** Colour (in canvas byte order) of each level: dark up to ``low``, bright from ``high``. */
export function colourTable(name: string, low: number, high: number): Uint32Array {
  const ramp = PALETTES[name] ?? PALETTES["amber"]!,
    table = new Uint32Array(256);
  for (let k = 0; k < 256; k++) {
    const x = Math.min(Math.max((k - low) / Math.max(high - low, 1), 0), 1) * (ramp.length - 1),
      i = Math.min(Math.floor(x), ramp.length - 2),
      f = x - i;
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(ramp[i]![c]! + f * (ramp[i + 1]![c]! - ramp[i]![c]!))) as [
      number,
      number,
      number,
    ];
    table[k] = 0xff000000 | (b << 16) | (g << 8) | r;
  }
  return table;
}

/**
 * Levels for the darkest and brightest colour from the data: the bed gets a medium brightness, stronger echoes are
 * bright.
 */
export function automaticLimits(samples: Uint8Array): [number, number] {
  const counts = new Uint32Array(256),
    step = Math.max(1, Math.floor(samples.length / 40000)) | 1;
  let n = 0;
  for (let k = 0; k < samples.length; k += step)
    if (samples[k]!) {
      counts[samples[k]!]!++;
      n++;
    }
  const [low, middle, high] = [0.1, 0.5, 0.9].map((share) => {
    let sum = 0,
      k = 0;
    while (k < 255 && (sum += counts[k]!) < share * n) k++;
    return k;
  }) as [number, number, number];
  return [low - 0.25 * (middle - low), Math.min(high + 0.9 * (high - low), 255)];
}

/** Distance between marks that gives three to six of them along a length. */
export function rangeMarkStep(length: number): number {
  const raw = length / 4,
    ten = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((f) => f * ten).find((s) => s >= raw * 0.8) ?? raw;
}

export interface ImageStyle {
  colours: Uint32Array;
  ground: boolean;
  ratio: number;
}
/** Painter of one sonar. Lengths in canvas pixels. */
export interface ImagePainter {
  take(p: SonarImage): void;
  /** Clear the image. */
  clear(): void;
  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void;
  /** Describe the sample under a point. */
  describeSample(x: number, y: number): string;
  /** Levels for the darkest and brightest colour. */
  limits(): [number, number] | null;
}

/** Draw a line of text with a dark edge, legible on any image. */
export function drawLabel(c: CanvasRenderingContext2D, text: string, x: number, y: number, fill = "#d7f3ff"): void {
  c.save();
  c.lineWidth = 3;
  c.strokeStyle = "#000000c0";
  c.strokeText(text, x, y);
  c.fillStyle = fill;
  c.fillText(text, x, y);
  c.restore();
}
