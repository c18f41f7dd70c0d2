// Symbols of bodies on the chart: to scale, but never smaller than a visible size. Corners mark the selected body. A
// cross in a dashed ellipse marks
// an estimated position. The legend explains all symbols.

import { CONDITION_TEXTS } from "./alarms";
import { bodyColour, cssVariable, h } from "./dom";
import type { SceneStore } from "./scene_store";
import { placeLabel } from "./traffic_list";

const LONG = 19,
  WIDE = 9,
  TRIANGLE = 15; // px, minimum
/** Dashes of the line of a lost signal, px. */
export const LOST_DASH = [5, 4];
/** Dashes of a fence, px: unlike those of tracks (whole) and missions (equal dashes). */
export const FENCE_DASH = [12, 3, 3, 3];
type Px = (north: number, east: number) => [number, number];

/** Length and width of a symbol in pixels for the size of a body in m. */
export function symbolSize(size: readonly number[] | undefined, scale: number): [long: number, wide: number] {
  return [Math.max(LONG, (size?.[0] ?? 0) * scale), Math.max(WIDE, (size?.[1] ?? 0) * scale)];
}

function hull(c: CanvasRenderingContext2D, long: number, wide: number): void {
  const a = long / 2,
    b = wide / 2;
  c.beginPath();
  c.moveTo(0, -a);
  c.quadraticCurveTo(b * 1.1, -0.3 * a, b, a);
  c.lineTo(-b, a);
  c.quadraticCurveTo(-b * 1.1, -0.3 * a, 0, -a);
}

/** An aircraft from above: fuselage, wing and tail. */
function planform(c: CanvasRenderingContext2D, long: number, wide: number): void {
  const a = Math.max(long, wide) / 2,
    t = a * 0.14;
  c.beginPath();
  c.moveTo(0, -a);
  for (const [x, y] of [
    [t, -a * 0.35],
    [a, -a * 0.05],
    [a, a * 0.2],
    [t, a * 0.15],
    [t * 0.7, a * 0.65],
    [a * 0.4, a * 0.8],
    [a * 0.4, a],
  ] as const)
    c.lineTo(x, y);
  for (const [x, y] of [
    [-a * 0.4, a],
    [-a * 0.4, a * 0.8],
    [-t * 0.7, a * 0.65],
    [-t, a * 0.15],
    [-a, a * 0.2],
    [-a, -a * 0.05],
    [-t, -a * 0.35],
  ] as const)
    c.lineTo(x, y);
  c.closePath();
}

export function drawTriangle(c: CanvasRenderingContext2D, x: number, y: number, fill: string, size = TRIANGLE): void {
  const f = size / TRIANGLE;
  c.fillStyle = fill;
  c.beginPath();
  c.moveTo(x, y - 8 * f);
  c.lineTo(x + 7 * f, y + 5 * f);
  c.lineTo(x - 7 * f, y + 5 * f);
  c.fill();
}

/** Draw corners around the selected body. */
export function drawCorners(c: CanvasRenderingContext2D, x: number, y: number, r: number): void {
  c.strokeStyle = cssVariable("--ink");
  c.lineWidth = 1.8;
  c.setLineDash([]);
  c.beginPath();
  for (const [i, j] of [
    [-1, -1],
    [1, -1],
    [1, 1],
    [-1, 1],
  ] as const) {
    c.moveTo(x + i * r, y + j * (r - 6));
    c.lineTo(x + i * r, y + j * r);
    c.lineTo(x + i * (r - 6), y + j * r);
  }
  c.stroke();
}

/** Draw an estimated position: a cross, an ellipse of two standard deviations, and a line to the true position. */
function belief(
  c: CanvasRenderingContext2D,
  at: [number, number],
  truth: [number, number] | null,
  across: number,
  along: number,
  tint: string,
): void {
  c.strokeStyle = tint;
  c.lineWidth = 1.4;
  c.setLineDash([4, 3]);
  c.beginPath();
  c.ellipse(...at, Math.max(across, 5), Math.max(along, 5), 0, 0, 7);
  c.stroke();
  c.setLineDash([]);
  c.beginPath();
  for (const s of [-1, 1]) {
    c.moveTo(at[0] - 4, at[1] - 4 * s);
    c.lineTo(at[0] + 4, at[1] + 4 * s);
  }
  if (truth) {
    c.moveTo(...at);
    c.lineTo(...truth);
  }
  c.stroke();
}

export function drawBodies(
  c: CanvasRenderingContext2D,
  store: SceneStore,
  px: Px,
  scale: number,
  dark: boolean,
  labels: boolean,
): void {
  c.font = "600 11px system-ui, sans-serif";
  const many = store.rows.length > 80,
    [w, hh] = [c.canvas.clientWidth, c.canvas.clientHeight];
  const names: [text: string, x: number, y: number, fill: string][] = [],
    taken: [number, number, number][] = [];
  const at = (k: number): [number, number] => px(store.ned[3 * k]!, store.ned[3 * k + 1]!);
  for (let k = 0; k < store.rows.length; k++) {
    const row = store.rows[k]!,
      body = store.bodies.get(row);
    if (!body) continue;
    const [x, y] = at(k),
      size = store.scene?.models[body.model]?.shape.size,
      [long, wide] = symbolSize(size, scale);
    if (x < -long - 11 || y < -long - 11 || x > w + long + 11 || y > hh + long + 11) continue;
    const buoy = body.type === "buoy",
      named = labels && (!many || row === store.chosen);
    if (buoy) drawTriangle(c, x, y, "#ff9a4d", Math.max(TRIANGLE, (size?.[0] ?? 0) * scale));
    else {
      const [q, i, j, l] = store.quaternion.subarray(4 * k, 4 * k + 4) as unknown as [number, number, number, number];
      c.save();
      c.translate(x, y);
      c.rotate(Math.atan2(2 * (q * l + i * j), 1 - 2 * (j * j + l * l)));
      c.fillStyle = bodyColour(row);
      c.strokeStyle = dark ? "#04101a" : "#fff";
      c.lineWidth = 1.2;
      if (body.type === "aircraft") planform(c, long, wide);
      else hull(c, long, wide);
      c.fill();
      c.stroke();
      c.restore();
    }
    const chosen = row === store.chosen,
      frame = Math.max(17, 0.5 * long + 6);
    if (chosen) drawCorners(c, x, y, frame);
    const condition = CONDITION_TEXTS[store.condition[k]!],
      text = condition ? `⚠ ${body.name}: ${condition}` : named ? body.name : "";
    if (text) names.push([text, x + (chosen ? frame + 4 : 12), y - 6, cssVariable(condition ? "--bad" : "--ink")]);
  }
  for (const [row, e] of store.beliefs) {
    if (!Number.isFinite(e[0])) continue;
    const k = store.index.get(row);
    belief(
      c,
      px(e[0]!, e[1]!),
      k === undefined ? null : at(k),
      2 * (e[4] ?? 0) * scale,
      2 * (e[3] ?? 0) * scale,
      bodyColour(row),
    );
  }
  for (const [text, x, y, fill] of names) {
    c.fillStyle = fill;
    c.fillText(text, ...placeLabel(taken, x, y, 7 * text.length));
  }
}

type Sample = (c: CanvasRenderingContext2D) => void;
const ROOM: [w: number, h: number] = [44, 24];

function stroke(c: CanvasRenderingContext2D, tint: string, dash: number[] = [], width = 1.8): void {
  c.strokeStyle = tint;
  c.lineWidth = width;
  c.setLineDash(dash);
  c.beginPath();
  c.moveTo(3, 12);
  c.lineTo(41, 12);
  c.stroke();
  c.setLineDash([]);
}

/** Legend entries: sample and text. */
export function symbolLegend(): HTMLElement {
  const lines: [Sample, string][] = [
    [
      (c) => {
        c.translate(22, 12);
        c.rotate(Math.PI / 2);
        c.fillStyle = bodyColour(1);
        hull(c, LONG, WIDE);
        c.fill();
      },
      "a vehicle, pointing ahead; drawn to scale if it is larger than this symbol",
    ],
    [(c) => drawTriangle(c, 22, 13, "#ff9a4d"), "a buoy or beacon"],
    [(c) => drawCorners(c, 22, 12, 11), "the selected body"],
    [
      (c) => belief(c, [16, 12], [40, 12], 9, 9, bodyColour(1)),
      "position estimated by the navigator, with a 2σ ellipse and a line to the true position (1σ cloud in 3D)",
    ],
    [(c) => stroke(c, bodyColour(1)), "track of a body, in its colour"],
    [(c) => stroke(c, cssVariable("--ink"), [], 1), "track as estimated by the navigator"],
    [(c) => stroke(c, bodyColour(1), [6, 4], 1.2), "mission of a vehicle, in its colour"],
    [(c) => stroke(c, cssVariable("--fence"), FENCE_DASH), "fence"],
    [
      (c) => {
        c.strokeStyle = bodyColour(1);
        c.lineWidth = 1.6;
        c.beginPath();
        c.arc(22, 12, 9, 0, 7);
        c.stroke();
      },
      "current wavefront of a signal, in the sender's colour",
    ],
    [(c) => stroke(c, cssVariable("--good"), [], 1.2), "received"],
    [(c) => stroke(c, cssVariable("--bad"), LOST_DASH, 1.2), "lost"],
  ];
  return h(
    "table",
    { id: "legend" },
    h(
      "tbody",
      {},
      ...lines.map(([draw, text]) => {
        const canvas = h("canvas", { width: 2 * ROOM[0], height: 2 * ROOM[1] }),
          c = canvas.getContext("2d")!;
        canvas.style.cssText = `width: ${ROOM[0]}px; height: ${ROOM[1]}px; display: block`;
        c.scale(2, 2);
        draw(c);
        return h("tr", {}, h("td", {}, canvas), h("td", { class: "wide-text" }, text));
      }),
    ),
  );
}
