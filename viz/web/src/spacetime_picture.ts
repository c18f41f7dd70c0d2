// Picture of sound in space and time: lanes or ranges, packets as bars, and lines from the emission to the reception.

import { bodyColour, cssVariable, formatTime } from "./dom";
import { isReception, receptionColour, type SignalEvent } from "./signal_outcomes";
import type { SceneStore } from "./scene_store";
import type { SignalReception } from "./page_protocol";
import type { Point, Surface } from "./surfaces";

export const LEFT = 92, // px, for the names
  BOTTOM = 18;
const LEAST_LANE = 12,
  LONGEST_NAME = 13,
  WIDE_BAR = 8; // px: from this width on, a packet on its way is an area
const TIME_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800];

export interface SpaceTimeScene {
  since: number; // s
  until: number;
  events: SignalEvent[];
  hidden: Set<number>; // outcomes
  lanes: number[]; // rows
  scroll: number; // px
  /** Body from which ranges are drawn; null: lanes. */
  far: number | null;
  slot: number; // s
  /** Number of the emphasised signal. */
  chosen: number | null;
}

/** A drawn path of a signal (with a reception), or the bar of a signal in its sender's lane. */
export interface Mark {
  from: Point;
  to: Point;
  event: SignalEvent;
}

export interface DrawnScene {
  marks: Mark[];
  counts: Map<number, number>; // outcomes of all receptions in the time span
  laneHeight: number; // px
}

/** Shorten a name in its middle, because names often differ at their ends. */
export const shortName = (name: string): string =>
  name.length <= LONGEST_NAME ? name : `${name.slice(0, 6)}…${name.slice(-(LONGEST_NAME - 7))}`;

export const laneHeight = (lanes: number, bottom: number): number => Math.max(bottom / Math.max(lanes, 1), LEAST_LANE);

export function drawSpaceTime(page: Surface, scene: SpaceTimeScene, store: SceneStore): DrawnScene {
  const { since, until, events, lanes } = scene,
    { w, h } = page,
    bottom = h - BOTTOM,
    scale = (w - LEFT) / (until - since),
    x = (t: number): number => LEFT + (t - since) * scale,
    height = laneHeight(lanes.length, bottom),
    places = new Map(lanes.map((row, k) => [row, (k + 0.5) * height - scene.scroll])),
    far = scene.far,
    ranges = far === null ? [] : events.map((e) => (isReception(e) ? (e.range ?? 0) : 0)).filter((r) => r < 1e7),
    most = ranges.reduce((m, r) => Math.max(m, r), 50),
    lane = (row: number): number => places.get(row) ?? -1e4,
    range = (r: number | null): number => 8 + ((r ?? 0) / most) * (bottom - 16),
    half = Math.min(7, 0.36 * height);
  drawTimes(page, scene, x, bottom);
  if (far === null) drawLanes(page, lanes, lane, store, bottom);
  else drawRanges(page, most, store.name(far), bottom);
  const marks: Mark[] = [],
    paths: Mark[] = [],
    counts = new Map<number, number>();
  page.clip(LEFT, 0, w - LEFT, bottom);
  for (const e of events) {
    if (isReception(e)) {
      counts.set(e.outcome, (counts.get(e.outcome) ?? 0) + 1);
      if (scene.hidden.has(e.outcome) || e.emission === null) continue;
      const sender = e.source === far;
      paths.push({
        from: [x(e.emission), far === null ? lane(e.source) : range(sender ? 0 : e.range)],
        to: [x(e.time), far === null ? lane(e.receiver) : range(sender ? e.range : 0)],
        event: e,
      });
    } else if (far === null || e.source === far) {
      const y = far === null ? lane(e.source) : range(0),
        from: Point = [x(e.time), y],
        to: Point = [x(e.time) + Math.max(e.duration * scale, 2), y];
      marks.push({ from, to, event: e });
    }
  }
  const faint = (e: SignalEvent): number => (scene.chosen === null || e.id === scene.chosen ? 1 : 0.22);
  for (const p of paths) drawPath(page, p, scale, faint(p.event), p.event.id === scene.chosen);
  for (const { from, to, event } of marks) {
    const [[left, y], right] = [from, to[0]];
    if (event.outcome === 0)
      page.box(left - 1, y - half, right - left, 2 * half, bodyColour(event.source), faint(event));
    else {
      // not sent: a frame
      const frame: Point[] = [
        [left, y - half],
        [right, y - half],
        [right, y + half],
        [left, y + half],
        [left, y - half],
      ];
      page.line(frame, cssVariable("--bad"), { alpha: faint(event) });
    }
  }
  page.unclip();
  const over = lanes.length * height - bottom;
  if (far === null && over > 1) {
    const thumb = (bottom * bottom) / (lanes.length * height);
    page.box(w - 4, (scene.scroll / over) * (bottom - thumb), 3, thumb, cssVariable("--soft"), 0.6);
  }
  return { marks: [...paths, ...marks], counts, laneHeight: height };
}

function drawPath(page: Surface, { from, to, event }: Mark, scale: number, alpha: number, chosen: boolean): void {
  const colour = receptionColour(event as SignalReception),
    heard = event.outcome === 0,
    wide = Math.max(event.duration * scale, 2);
  if (wide > WIDE_BAR) {
    const right = ([px, py]: Point): Point => [px + wide, py];
    page.area([from, to, right(to), right(from)], colour, alpha * (chosen ? 0.22 : 0.07));
    page.line([right(from), right(to)], colour, { alpha: 0.25 * alpha });
  }
  page.line([from, to], colour, {
    alpha: alpha * (heard ? 0.6 : 0.8),
    dash: heard ? [] : [4, 3],
    width: chosen ? 2 : 1,
  });
  page.box(to[0] - 1, to[1] - 3, wide, 6, colour, alpha * (heard ? 0.75 : 0.85));
}

function drawTimes(
  page: Surface,
  { since, until, slot }: SpaceTimeScene,
  x: (t: number) => number,
  bottom: number,
): void {
  const scale = (page.w - LEFT) / (until - since),
    step = TIME_STEPS.find((s) => s * scale > 64) ?? 3600,
    digits = Math.max(0, -Math.floor(Math.log10(step)));
  for (let k = Math.ceil(since / step - 1e-9); k * step <= until; k++) {
    page.line(
      [
        [x(k * step), 0],
        [x(k * step), bottom],
      ],
      cssVariable("--line"),
    );
    if (x(k * step) < page.w - 40)
      page.text(formatTime(k * step, digits), x(k * step) + 3, bottom + 9, cssVariable("--soft"));
  }
  if (slot <= 0 || (until - since) / slot > 400) return;
  for (let k = Math.ceil(since / slot); k * slot <= until; k++)
    page.line(
      [
        [x(k * slot), 0],
        [x(k * slot), bottom],
      ],
      cssVariable("--warm"),
      { alpha: 0.35 },
    );
}

function drawLanes(
  page: Surface,
  lanes: number[],
  y: (row: number) => number,
  store: SceneStore,
  bottom: number,
): void {
  page.clip(0, 0, page.w, bottom);
  for (const row of lanes) {
    if (y(row) < -8 || y(row) > bottom + 8) continue;
    page.line(
      [
        [LEFT, y(row)],
        [page.w, y(row)],
      ],
      cssVariable("--line"),
    );
    page.box(4, y(row) - 4, 8, 8, bodyColour(row));
    page.text(shortName(store.name(row)), 17, y(row), cssVariable(row === store.chosen ? "--accent" : "--ink"));
  }
  page.unclip();
}

function drawRanges(page: Surface, most: number, name: string, bottom: number): void {
  for (let k = 0; k <= 4; k++) {
    const y = 8 + (k / 4) * (bottom - 16);
    page.line(
      [
        [LEFT, y],
        [page.w, y],
      ],
      cssVariable("--line"),
    );
    page.text(k ? `${((most * k) / 4).toFixed(0)} m` : shortName(name), 6, y, cssVariable("--soft"));
  }
}

/** The mark at a point of the picture, within a few pixels. */
export function markAt(marks: Mark[], [px, py]: Point, barHalf: number, near: number): Mark | null {
  let best: Mark | null = null,
    least = near;
  for (const m of marks) {
    const [dx, dy] = [m.to[0] - m.from[0], m.to[1] - m.from[1]],
      f = Math.max(0, Math.min(1, ((px - m.from[0]) * dx + (py - m.from[1]) * dy) / (dx * dx + dy * dy || 1))),
      off = Math.hypot(px - m.from[0] - f * dx, py - m.from[1] - f * dy),
      d = isReception(m.event) ? off : off - barHalf; // a bar is thicker than a line
    if (d < least) {
      least = d;
      best = m;
    }
  }
  return best;
}
