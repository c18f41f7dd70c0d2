// Drawing of the propagation panel: a section with the field, the bed, the surface and the rays, or a horizontal plane.

import { type Axis, type CanvasSheet, context2d, drawGrid, haloText, type Margins, roundStep } from "./canvas";
import { ARRIVALS, type Colour, PALE_ARRIVALS, scaleColour, scaleStyle, SOUND_SPEED, VIRIDIS } from "./colour_scales";
import type { Triple } from "./coordinate_frames";
import { cssVariable } from "./dom";
import type { FieldAnswer, SoundRay } from "./page_protocol";
import { distancesAlong } from "./propagation_view";

export const ARRIVAL_DB = 40; // range of the colours of arrivals, from the strongest
const LEAST_DB = 12, // so that equal levels have equal colours
  MARGINS: Margins = { left: 50, right: 74, top: 20, bottom: 18 },
  BAR = 12, // px
  LOSS_DB = 60, // greatest range of the colours of losses
  RIM = "#03101a"; // around rays and marks, on any field

/** Fraction of the colour scale for each ray: 1 for the strongest. */
export function arrivalShares(rays: SoundRay[]): number[] {
  const least = Math.min(...rays.map((r) => r.loss)),
    room = Math.min(Math.max(Math.max(...rays.map((r) => r.loss)) - least, LEAST_DB), ARRIVAL_DB);
  return rays.map((r) => Math.max(0, 1 - (r.loss - least) / room));
}

/** Ray that arrives first; blocked ones do not count. */
export function firstRay(rays: SoundRay[]): number {
  return Math.max(
    rays.findIndex((r) => !r.blocked),
    0,
  );
}

/** Colours of arrivals, from weak to strong, in front of a field. */
export function arrivalScale(field: FieldAnswer | null | undefined): Colour[] {
  return field?.unit === "dB" ? PALE_ARRIVALS : ARRIVALS;
}

export function fieldScale(unit: string): Colour[] {
  return unit === "dB" ? [...VIRIDIS] : SOUND_SPEED;
}

/** Values at the ends of the colour scale: of losses, the loudest comes first. */
export function fieldRange({ values, unit }: FieldAnswer): [low: number, high: number] {
  const all = values
    .flat()
    .filter((v): v is number => v !== null)
    .sort((a, b) => a - b);
  if (!all.length) return [0, 1];
  if (unit !== "dB") {
    const [low, high] = [all[0]!, all[all.length - 1]!];
    return high - low < 0.1 ? [low - 0.05, low + 0.05] : [low, high];
  }
  // next to the source, the loss is close to zero: nearly all colours belong to the rest
  const low = Math.floor(all[Math.floor(0.01 * all.length)]! / 5) * 5,
    high = Math.ceil(all[Math.ceil(0.99 * all.length) - 1]! / 5) * 5;
  return [low, Math.max(Math.min(high, low + LOSS_DB), low + 5)];
}

/** Picture of a field, one pixel per value, first row at the top. */
export function fieldPicture(field: FieldAnswer): HTMLCanvasElement {
  const picture = document.createElement("canvas"),
    [low, high] = fieldRange(field),
    scale = fieldScale(field.unit);
  picture.width = Math.max(field.columns.length, 1);
  picture.height = Math.max(field.rows.length, 1);
  const c = context2d(picture),
    image = c.createImageData(picture.width, picture.height);
  field.values.forEach((row, i) =>
    row.forEach((value, k) => {
      if (value === null) return;
      const o = 4 * (i * picture.width + k);
      scaleColour(scale, (value - low) / (high - low)).forEach((v, j) => {
        image.data[o + j] = 255 * v;
      });
      image.data[o + 3] = 255;
    }),
  );
  c.putImageData(image, 0, 0);
  return picture;
}

/** An end, drawn as a mark with its name. */
export interface Mark {
  at: Triple;
  name: string;
  colour: string;
}

export interface Picture {
  ends: [Mark, Mark];
  field: FieldAnswer | null;
  /** Picture of the field; null: none. */
  image: HTMLCanvasElement | null;
  rays: SoundRay[];
  /** Ray that is emphasised; null: the first. */
  chosen: number | null;
  /** Depth of the horizontal plane. */
  depth: number;
}

/** Where a picture was drawn, to read values at the pointer. */
export interface Frame {
  x: (across: number) => number;
  y: (down: number) => number;
  across: (x: number) => number;
  down: (y: number) => number;
  /** Vertical exaggeration; null: a horizontal plane. */
  factor: number | null;
}

/** Value of a field next to a place; null: none. */
export function valueAt(field: FieldAnswer, across: number, down: number): number | null {
  const nearest = (axis: number[], v: number): number => {
      const step = axis.length > 1 ? (axis[axis.length - 1]! - axis[0]!) / (axis.length - 1) : 1;
      return Math.round((v - axis[0]!) / step);
    },
    [i, k] = [nearest(field.rows, down), nearest(field.columns, across)];
  return field.values[i]?.[k] ?? null;
}

const metres = (v: number): string => `${+v.toFixed(2)} m`;
const distance = (v: number): string => (Math.abs(v) >= 10_000 ? `${+(v / 1000).toFixed(2)} km` : metres(v));

/** Draw the section through the ends: distance to the right, depth downwards. */
export function drawSection(sheet: CanvasSheet, p: Picture): Frame {
  const { w, hh } = sheet,
    [from, to] = [p.ends[0].at, p.ends[1].at],
    paths = p.rays.map((r) => distancesAlong(r.points, from, to)),
    far = Math.max(Math.hypot(to[0] - from[0], to[1] - from[1]), ...(p.field?.columns ?? []), 1),
    depths = [from[2], to[2], ...(p.field?.rows ?? []), ...known(p.field?.bed)],
    low = Math.max(0, ...depths, ...p.rays.flatMap((r) => r.points.filter((_, k) => k % 3 === 2))),
    deep = Math.max(1.04 * low, 1),
    sx = (w - MARGINS.left - MARGINS.right) / far,
    sy = (hh - MARGINS.top - MARGINS.bottom) / deep,
    x = (v: number): number => MARGINS.left + v * sx,
    y = (v: number): number => MARGINS.top + v * sy;
  const frame: Frame = {
    x,
    y,
    across: (px) => (px - MARGINS.left) / sx,
    down: (py) => (py - MARGINS.top) / sy,
    factor: sy / sx,
  };
  drawField(sheet, p, frame);
  drawBed(sheet, p.field, frame);
  drawAxes(
    sheet,
    { from: 0, to: far, step: roundStep(90 / sx), at: x, text: distance },
    { from: 0, to: deep, step: roundStep(24 / sy), at: y, text: metres },
  );
  const { c } = sheet;
  c.strokeStyle = cssVariable("--accent"); // the surface
  c.lineWidth = 1.5;
  line(c, [
    [x(0), y(0)],
    [x(far), y(0)],
  ]);
  const lines = p.rays.map((r, k) => paths[k]!.map((d, i): [number, number] => [x(d), y(r.points[3 * i + 2]!)]));
  c.save();
  c.beginPath();
  c.rect(MARGINS.left, 0, w - MARGINS.left - MARGINS.right + 1, hh - MARGINS.bottom);
  c.clip();
  drawRays(c, p, lines);
  c.restore();
  const along = distancesAlong([...from, ...to], from, to);
  p.ends.forEach((end, k) => drawEnd(c, end, x(along[k]!), y(end.at[2]), k === 1));
  drawBar(sheet, p.field);
  return frame;
}

/** Draw a horizontal plane from above, north up. */
export function drawPlane(sheet: CanvasSheet, p: Picture): Frame {
  const { c, w, hh } = sheet,
    norths = [...p.ends.map((e) => e.at[0]), ...(p.field?.rows ?? [])],
    easts = [...p.ends.map((e) => e.at[1]), ...(p.field?.columns ?? [])],
    [south, north, west, east] = [Math.min(...norths), Math.max(...norths), Math.min(...easts), Math.max(...easts)],
    [wide, high] = [w - MARGINS.left - MARGINS.right, hh - MARGINS.top - MARGINS.bottom],
    s = Math.min(wide / Math.max(east - west, 1), high / Math.max(north - south, 1)),
    x = (e: number): number => MARGINS.left + wide / 2 + (e - (west + east) / 2) * s,
    y = (n: number): number => MARGINS.top + high / 2 - (n - (south + north) / 2) * s;
  const frame: Frame = {
    x,
    y,
    across: (px) => (px - MARGINS.left - wide / 2) / s + (west + east) / 2,
    down: (py) => (south + north) / 2 - (py - MARGINS.top - high / 2) / s,
    factor: null,
  };
  drawField(sheet, p, frame);
  drawAxes(
    sheet,
    {
      from: frame.across(MARGINS.left),
      to: frame.across(w - MARGINS.right),
      step: roundStep(90 / s),
      at: x,
      text: distance,
    },
    {
      from: frame.down(hh - MARGINS.bottom),
      to: frame.down(MARGINS.top),
      step: roundStep(40 / s),
      at: y,
      text: distance,
    },
  );
  const lines = p.rays.map((r) => {
    const found: [number, number][] = [];
    for (let k = 0; k < r.points.length; k += 3) found.push([x(r.points[k + 1]!), y(r.points[k]!)]);
    return found;
  });
  drawRays(c, p, lines);
  p.ends.forEach((end, k) => drawEnd(c, end, x(end.at[1]), y(end.at[0]), k === 1));
  drawBar(sheet, p.field);
  return frame;
}

function known(values: (number | null)[] | undefined): number[] {
  return (values ?? []).filter((v): v is number => v !== null);
}

function line(c: CanvasRenderingContext2D, points: [number, number][]): void {
  c.beginPath();
  points.forEach(([x, y], k) => (k ? c.lineTo(x, y) : c.moveTo(x, y)));
  c.stroke();
}

/** Draw the picture of the field: each value has its place in the middle of its pixel. */
function drawField({ c }: CanvasSheet, { field, image }: Picture, { x, y }: Frame): void {
  if (!field || !image || field.columns.length < 2 || field.rows.length < 2) return;
  const [a, b] = [x(field.columns[0]!), x(field.columns[field.columns.length - 1]!)],
    [t, l] = [y(field.rows[0]!), y(field.rows[field.rows.length - 1]!)],
    [halfX, halfY] = [(b - a) / (field.columns.length - 1) / 2, (l - t) / (field.rows.length - 1) / 2];
  c.save();
  c.beginPath();
  c.rect(a, Math.min(t, l), b - a, Math.abs(l - t));
  c.clip();
  c.imageSmoothingEnabled = true;
  if (l > t) c.drawImage(image, a - halfX, t - halfY, b - a + 2 * halfX, l - t + 2 * halfY);
  else {
    // rows from south to north
    c.scale(1, -1);
    c.drawImage(image, a - halfX, -(t - halfY), b - a + 2 * halfX, t - l - 2 * halfY);
  }
  c.restore();
}

function drawBed({ c, hh }: CanvasSheet, field: FieldAnswer | null, { x, y }: Frame): void {
  if (!field?.bed.length) return;
  for (const tint of [cssVariable("--panel-solid"), cssVariable("--warm")]) {
    c.fillStyle = tint;
    c.globalAlpha = tint === cssVariable("--warm") ? 0.35 : 1;
    c.beginPath();
    let open = -1;
    field.bed.forEach((depth, k) => {
      if (depth === null) {
        if (open >= 0) c.lineTo(x(field.columns[open]!), hh - MARGINS.bottom);
        open = -1;
        return;
      }
      if (open < 0) c.moveTo(x(field.columns[k]!), hh - MARGINS.bottom);
      open = k;
      c.lineTo(x(field.columns[k]!), y(depth));
    });
    if (open >= 0) c.lineTo(x(field.columns[open]!), hh - MARGINS.bottom);
    c.fill();
  }
  c.globalAlpha = 1;
}

/** Labels around the picture, and faint lines over it. */
function drawAxes(sheet: CanvasSheet, across: Axis, along: Axis): void {
  sheet.c.globalAlpha = 0.75;
  drawGrid(sheet, MARGINS, across, along);
  sheet.c.globalAlpha = 1;
}

/** Rays from the weakest to the strongest; the first arrival, or the chosen one, is emphasised. */
function drawRays(c: CanvasRenderingContext2D, p: Picture, lines: [number, number][][]): void {
  const shares = arrivalShares(p.rays),
    strong = p.chosen ?? firstRay(p.rays),
    order = p.rays.map((_, k) => k).sort((a, b) => shares[a]! - shares[b]!);
  c.lineJoin = "round";
  for (const k of [...order.filter((i) => i !== strong), strong]) {
    if (!lines[k]) continue;
    const wide = k === strong ? 3.2 : 1.4;
    c.globalAlpha = p.chosen === null || k === strong ? 1 : 0.35;
    c.setLineDash(p.rays[k]!.blocked ? [6, 5] : []);
    c.strokeStyle = RIM;
    c.lineWidth = wide + 1.6;
    line(c, lines[k]);
    c.strokeStyle = scaleStyle(arrivalScale(p.field), shares[k]!);
    c.lineWidth = wide;
    line(c, lines[k]);
  }
  c.setLineDash([]);
  c.globalAlpha = 1;
}

function drawEnd(c: CanvasRenderingContext2D, { name, colour }: Mark, x: number, y: number, right: boolean): void {
  c.fillStyle = colour;
  c.strokeStyle = RIM;
  c.lineWidth = 1.5;
  c.beginPath();
  c.arc(x, y, 5, 0, 7);
  c.fill();
  c.stroke();
  c.font = "600 11px system-ui, sans-serif";
  c.fillStyle = cssVariable("--ink");
  c.textBaseline = "middle";
  haloText(c, name, right ? x - 10 - c.measureText(name).width : x + 10, y < 24 ? y + 12 : y - 11);
}

/** Colour scale at the right edge, with its unit. */
function drawBar({ c, w, hh }: CanvasSheet, field: FieldAnswer | null): void {
  if (!field) return;
  const [low, high] = fieldRange(field),
    scale = fieldScale(field.unit),
    x = w - MARGINS.right + 12,
    top = MARGINS.top,
    bottom = hh - MARGINS.bottom,
    room = bottom - top;
  if (room < 20) return;
  // losses grow downwards, speeds upwards
  const at = (v: number): number => {
    const f = (v - low) / (high - low);
    return field.unit === "dB" ? top + f * room : bottom - f * room;
  };
  for (let k = 0; k < room; k++) {
    const f = (k + 0.5) / room;
    c.fillStyle = scaleStyle(scale, field.unit === "dB" ? f : 1 - f);
    c.fillRect(x, top + k, BAR, 1.5);
  }
  c.strokeStyle = cssVariable("--line");
  c.lineWidth = 1;
  c.strokeRect(x, top, BAR, room);
  c.fillStyle = cssVariable("--ink");
  c.font = "10px system-ui, sans-serif";
  c.textBaseline = "middle";
  const step = roundStep((26 * (high - low)) / room);
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9; v += step)
    c.fillText(String(+v.toFixed(3)), x + BAR + 4, at(v));
  c.fillText(field.unit, x, top - 10);
}
