// Traffic: encounters of a selected surface vessel with distance and time. The viewer's server computes them
// (viz/wavesim_viz/traffic.py); this file
// draws the table, and lines and domains on the chart. traffic3d.ts draws them in 3D.

import { formatTime, bodyColour, bodyDot, cssVariable, h, toggleClass, formatNumber, setText } from "./dom";
import { formatHeading } from "./coordinate_frames";
import type { SceneStore } from "./scene_store";
import type { Encounter, Traffic } from "./page_protocol";

const DEG = 180 / Math.PI;
const MOST_LINES = 8,
  LATEST_S = 3600; // maximum number of lines; maximum time ahead of an encounter
export const MOST_DOMAINS = 24;

/** Class of an encounter: 0 inside the domain that must stay clear, 1 inside the preferred domain, 2 clear. */
export function dangerLevel(m: Encounter, t: Traffic): 0 | 1 | 2 {
  return m.dcpa < t.least ? 0 : m.dcpa < t.preferred ? 1 : 2;
}
export const DANGER_COLOURS = ["--bad", "--warm", "--soft"] as const;

/** Encounters whose lines are drawn: still ahead, earliest closest point of approach first. */
export function upcomingMeetings(t: Traffic | null): Encounter[] {
  return t?.others.filter((m) => m.tcpa !== null && m.tcpa > 0 && m.tcpa < LATEST_S).slice(0, MOST_LINES) ?? [];
}

/** Label of a line. */
export function meetingLabel(m: Encounter, store: SceneStore): string {
  const left = formatTime(Math.max(timeLeft(m, store), 0)).replace(/\.\d$/, "");
  return `${store.name(m.row)}: ${formatNumber(m.dcpa, m.dcpa < 100 ? 1 : 0)} m in ${left}`;
}

/** Seconds until the closest point of approach, from the time that is drawn. */
export function timeLeft(m: Encounter, store: SceneStore): number {
  return m.tcpa - (store.time - (store.traffic?.time ?? store.time));
}

const COLUMNS: [title: string, about: string][] = [
  ["vessel", ""],
  ["range m", ""],
  ["bearing", "True bearing from own ship"],
  ["course", "Course over ground"],
  ["speed m/s", "Speed over ground"],
  ["DCPA m", "Distance at the closest point of approach (DCPA) if both vessels keep course and speed"],
  ["TCPA", "Time to the closest point of approach (TCPA), min:s; 'past' if this point has been passed"],
  ["own ship's role", "Determined by COLREG rules 13 to 15 and 17 from the current positions, courses and speeds"],
];

export class TrafficList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly about = h("span", { class: "soft", id: "traffic-own" });
  private readonly rows = new Map<number, { tr: HTMLElement; cells: HTMLElement[] }>();
  private order = "";

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
  ) {
    this.element = h(
      "div",
      { class: "pane" },
      h("div", { class: "events-head" }, this.about),
      h(
        "div",
        { class: "list", id: "traffic", tabindex: 0 },
        h(
          "table",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ...COLUMNS.map(([t, about], k) => h("th", { class: k > 0 && k < 7 ? "n" : "", title: about }, t)),
            ),
          ),
          this.body,
        ),
      ),
    );
  }

  /** Number of vessels that pass too close. */
  count(): number {
    const t = this.store.traffic;
    return t ? t.others.filter((m) => m.tcpa > 0 && dangerLevel(m, t) === 0).length : 0;
  }

  update(): void {
    const t = this.store.traffic,
      others = t?.others ?? [],
      order = others.map((m) => m.row).join();
    setText(
      this.about,
      !t
        ? "select a surface vessel to make it own ship"
        : `own ship: ${this.store.name(t.row)}; ` +
            `domain radii: ${formatNumber(t.least, 1)} and ${formatNumber(t.preferred, 1)} m, ` +
            `${formatNumber(t.least / t.length, 0)} and ${formatNumber(t.preferred / t.length, 0)} ship lengths` +
            (others.length ? "" : "; no other surface vessels"),
    );
    for (const m of others) {
      let row = this.rows.get(m.row);
      if (!row) {
        const dot = bodyDot(m.row),
          name = h("span"),
          more = COLUMNS.slice(1).map((_c, k) => h("td", { class: k < 6 ? "n" : "" })),
          cells = [name, ...more];
        const tr = h("tr", { onclick: () => this.choose(m.row) }, h("td", {}, dot, name), ...more);
        tr.dataset["row"] = String(m.row);
        this.rows.set(m.row, (row = { tr, cells }));
      }
      const ahead = timeLeft(m, this.store),
        level = dangerLevel(m, t!);
      [
        this.store.name(m.row),
        formatNumber(m.range, 0),
        `${formatHeading(m.bearing * DEG)}°`,
        `${formatHeading(m.course * DEG)}°`,
        formatNumber(m.speed, 1),
        formatNumber(m.dcpa, 1),
        ahead > 0 ? formatTime(ahead, 0) : "past",
        ahead > 0 ? m.role : "",
      ].forEach((text, k) => setText(row.cells[k]!, text));
      for (const [k, name] of ["bad", "warm"].entries())
        for (const i of [5, 6]) toggleClass(row.cells[i]!, name, ahead > 0 && level === k);
    }
    if (order === this.order) return;
    this.order = order;
    for (const row of this.rows.keys()) if (!others.some((m) => m.row === row)) this.rows.delete(row);
    this.body.replaceChildren(...others.map((m) => this.rows.get(m.row)!.tr));
  }
}

type Px = (north: number, east: number) => [number, number];

/** Draw domains around other vessels and lines to the closest points of approach. */
export function drawTraffic(c: CanvasRenderingContext2D, store: SceneStore, px: Px, scale: number): void {
  const t = store.traffic,
    own = t ? store.index.get(t.row) : undefined;
  if (!t || own === undefined) return;
  const at = (k: number): [number, number] => px(store.ned[3 * k]!, store.ned[3 * k + 1]!);
  const tones = DANGER_COLOURS.map(cssVariable) as [string, string, string],
    rings = [
      [t.least, tones[0], []],
      [t.preferred, tones[1], [5, 4]],
    ] as const;
  c.lineWidth = 1.2;
  for (const m of t.others.slice(0, MOST_DOMAINS)) {
    const k = store.index.get(m.row);
    if (k === undefined) continue;
    for (const [radius, tone, dash] of rings) {
      if (radius * scale < 5) continue;
      c.globalAlpha = 0.7;
      c.strokeStyle = tone;
      c.setLineDash([...dash]);
      c.beginPath();
      c.arc(...at(k), radius * scale, 0, 7);
      c.stroke();
    }
  }
  for (const m of upcomingMeetings(t)) {
    const k = store.index.get(m.row);
    if (k === undefined || timeLeft(m, store) <= 0) continue;
    const mine = px(...m.own_at),
      hers = px(...m.other_at),
      tone = tones[dangerLevel(m, t)];
    for (const [from, to, style] of [
      [at(own), mine, bodyColour(t.row)],
      [at(k), hers, bodyColour(m.row)],
    ] as const) {
      c.globalAlpha = 0.75;
      c.strokeStyle = style;
      c.lineWidth = 1.2;
      c.setLineDash([3, 4]);
      c.beginPath();
      c.moveTo(...from);
      c.lineTo(...to);
      c.stroke();
    }
    c.globalAlpha = 1;
    c.setLineDash([]);
    c.strokeStyle = c.fillStyle = tone;
    c.lineWidth = 2.4;
    c.beginPath();
    c.moveTo(...mine);
    c.lineTo(...hers);
    c.stroke();
    for (const [x, y] of [mine, hers]) {
      c.beginPath();
      c.arc(x, y, 3, 0, 7);
      c.fill();
    }
  }
  c.globalAlpha = 1;
  c.setLineDash([]);
}

/** Draw the labels of the lines, next to the names of the vessels. */
export function labelTraffic(
  c: CanvasRenderingContext2D,
  store: SceneStore,
  px: Px,
  dark: boolean,
  names: boolean,
): void {
  const t = store.traffic,
    taken: [number, number, number][] = [],
    tones = DANGER_COLOURS.map(cssVariable) as [string, string, string];
  if (!t) return;
  if (names)
    store.rows.forEach((row, k) => {
      const [x, y] = px(store.ned[3 * k]!, store.ned[3 * k + 1]!);
      taken.push([x - 8, y - 6, 26 + 7 * store.name(row).length]);
    });
  c.font = "600 11px system-ui, sans-serif";
  c.lineWidth = 3.5;
  c.lineJoin = "round";
  c.strokeStyle = dark ? "#04101acc" : "#ffffffdd";
  for (const m of upcomingMeetings(t)) {
    if (timeLeft(m, store) <= 0) continue;
    const [x0, y0] = px((m.own_at[0] + m.other_at[0]) / 2, (m.own_at[1] + m.other_at[1]) / 2),
      text = meetingLabel(m, store),
      [x, y] = placeLabel(taken, x0 + 8, y0 - 6, 6.4 * text.length, c.canvas.clientWidth - 90);
    c.strokeText(text, x, y);
    c.fillStyle = tones[dangerLevel(m, t)];
    c.fillText(text, x, y);
  }
}

/** Position of a text that fits into a picture of a width: the given one, or below the text already there. */
export function placeLabel(
  taken: [number, number, number][],
  x: number,
  y: number,
  width: number,
  room = Infinity,
): [number, number] {
  x = Math.max(Math.min(x, room - width - 4), 4);
  for (let k = 0; k < 12 && taken.some((b) => Math.abs(b[1] - y) < 13 && x < b[0] + b[2] && b[0] < x + width); k++)
    y += 14;
  taken.push([x, y, width]);
  return [x, y];
}
