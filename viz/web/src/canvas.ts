// Helpers shared by all drawn views: canvas size, round values, grid, and drawing without a graphics processor.

import { cssVariable } from "./dom";

/** True if there is no graphics processor: antialiasing then costs too much, and canvases draw faster in software. */
export const SOFTWARE_RENDERING = typeof document !== "undefined" && drawnBySoftware();

function drawnBySoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = gl && info ? String(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

/**
 * Create a 2D context; without a graphics processor it is software-rendered, because an emulated one is many times
 * slower.
 */
export function context2d(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  return canvas.getContext("2d", { willReadFrequently: SOFTWARE_RENDERING })!;
}

/** Zoom of the page that the user's text size sets (`text_size.ts`). */
export function pageZoom(): number {
  return Number(document.body.style.zoom) || 1;
}

/** Device pixels per pixel of the page's layout, for canvases; at most 2 per pixel of the browser's. */
export function deviceRatio(): number {
  return Math.min(window.devicePixelRatio, 2) * pageZoom();
}

export interface CanvasSheet {
  c: CanvasRenderingContext2D;
  w: number;
  hh: number;
  ratio: number;
}

/**
 * Fit a canvas to its size on the page, in device pixels; null if it has no size. The content stays if the size did not
 * change.
 */
export function prepareCanvas(canvas: HTMLCanvasElement): CanvasSheet | null {
  const ratio = deviceRatio(),
    w = canvas.clientWidth,
    hh = canvas.clientHeight;
  if (!w || !hh) return null;
  const wide = Math.round(w * ratio),
    high = Math.round(hh * ratio);
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
  }
  const c = context2d(canvas);
  c.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { c, w, hh, ratio };
}

/** Smallest of 1, 2 or 5 times a power of ten that is not below a number. */
export function roundStep(least: number): number {
  const ten = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  return [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= least) ?? 10 * ten;
}

/** Draw a text with an edge in the colour of the background, legible on any chart. */
export function haloText(c: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  const { strokeStyle, lineWidth, lineJoin } = c;
  c.strokeStyle = cssVariable("--bg");
  c.lineWidth = 3;
  c.lineJoin = "round";
  c.strokeText(text, x, y);
  Object.assign(c, { strokeStyle, lineWidth, lineJoin });
  c.fillText(text, x, y);
}

export interface Axis {
  from: number;
  to: number;
  step: number;
  at: (value: number) => number;
  text: (value: number) => string;
}
export interface Margins {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** Draw grid lines at round values with labels: ``across`` to the right, ``along`` up or down. */
export function drawGrid({ c, w, hh }: CanvasSheet, m: Margins, across: Axis, along: Axis): void {
  c.strokeStyle = cssVariable("--line");
  c.fillStyle = cssVariable("--soft");
  c.lineWidth = 1;
  c.font = "10px system-ui, sans-serif";
  c.textBaseline = "middle";
  c.beginPath();
  for (let v = Math.ceil(along.from / along.step) * along.step; v <= along.to; v += along.step) {
    c.moveTo(m.left, along.at(v));
    c.lineTo(w - m.right, along.at(v));
    c.fillText(along.text(v), 4, along.at(v));
  }
  for (let v = Math.ceil(across.from / across.step) * across.step; v <= across.to; v += across.step) {
    c.moveTo(across.at(v), m.top);
    c.lineTo(across.at(v), hh - m.bottom);
    const t = across.text(v);
    if (across.at(v) + 3 + c.measureText(t).width < w) c.fillText(t, across.at(v) + 3, hh - 8);
  }
  c.stroke();
}
