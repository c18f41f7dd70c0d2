// The chart: north up, metres, grid and scale; shaded sea bed with contours, tracks, beacons and signals; and the pen
// for drawing missions.

import { bodyColour, cssVariable, drawScaleBar } from "./dom";
import { drawCables } from "./cables";
import { S57Chart } from "./s57_chart";
import { ChartPointer } from "./chart_pointer";
import { INAUDIBLE_OUTCOMES, type SceneStore, type Track } from "./scene_store";
import { drawBodies, drawTriangle, FENCE_DASH, LOST_DASH } from "./chart_symbols";
import { depthColour } from "./colour_scales";
import { formatOffset } from "./geodesy";
import { contours, depthRange } from "./bed_contours";
import { context2d, haloText, pageZoom, roundStep, prepareCanvas } from "./canvas";
import { Tiles } from "./tiles";
import { drawTraffic, labelTraffic } from "./traffic_list";
import { type FenceInfo, SIGNAL_WIDTH } from "./page_protocol";

export interface MissionDraft {
  waypoints: Map<string, [number, number, number, number][]>;
  beacons: { name: string; position: [number, number, number] }[];
  fences: FenceInfo[];
  area: [number, number][]; // area to be surveyed
}

const MOST_WAYS = 120;
const TOOLS = 46; // px, height of a row of buttons over the chart

export class Chart {
  readonly canvas = document.createElement("canvas");
  private middle: [number, number] = [0, 0]; // north, east
  private scale = 1; // pixels per metre
  private shade: HTMLCanvasElement | null = null;
  private lines: number[][] = [];
  // bed, contours, grid and tracks, redrawn only when the view changes
  private readonly ground = document.createElement("canvas");
  private readonly laid = new Map<number, { track: Track; n: number; m: number }>(); // track points already drawn on it
  private groundOf: unknown[] = [];
  private dark = true;
  /** Height that the buttons over the chart take from its upper right corner, px. */
  beneath = 0;
  draft: MissionDraft | null = null;
  onClick: ((north: number, east: number) => void) | null = null;
  onMove: ((north: number, east: number) => void) | null = null;
  /** Find a movable item within a distance of a position; returns the function that moves it. */
  grab: ((north: number, east: number, near: number) => ((north: number, east: number) => void) | null) | null = null;
  readonly pointer: ChartPointer;
  /** Drawings of other parts of the page, above the bodies. */
  readonly overlays: ((c: CanvasRenderingContext2D) => void)[] = [];
  readonly tiles: Tiles;
  readonly enc = new S57Chart();

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number | null) => void,
    private readonly show: { labels: boolean; trails: boolean; spheres: boolean; traffic: boolean; beacons: boolean },
    changed: () => void,
  ) {
    this.tiles = new Tiles(changed);
    this.pointer = new ChartPointer(store, () => undefined);
    this.canvas.tabIndex = 0;
    this.canvas.className = "chart";
    let held: [number, number] | null = null,
      moved = 0,
      mover: ((n: number, e: number) => void) | null = null;
    this.canvas.addEventListener("pointerdown", (e) => {
      held = [e.clientX, e.clientY];
      moved = 0;
      this.point(...this.at(e)); // a finger presses without moving first
      mover = this.pointer.measuring ? null : (this.grab?.(...this.at(e), 9 / this.scale) ?? null);
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener("pointermove", (e) => {
      const place = this.at(e);
      this.point(...place);
      if (!held) return;
      const dx = e.clientX - held[0],
        dy = e.clientY - held[1];
      moved += Math.hypot(dx, dy);
      held = [e.clientX, e.clientY];
      if (mover) {
        if (moved >= 4) mover(...place);
        return;
      }
      const scale = this.scale * pageZoom();
      this.middle = [this.middle[0] + dy / scale, this.middle[1] - dx / scale];
    });
    this.canvas.addEventListener("pointerup", (e) => {
      held = null;
      if (moved < 4 && !mover) this.click(...this.at(e));
      mover = null;
    });
    this.canvas.addEventListener(
      "wheel",
      (e) => {
        e.preventDefault();
        this.zoom(Math.exp(-e.deltaY * 0.0012), this.at(e));
      },
      { passive: false },
    );
  }

  build(dark: boolean): void {
    this.dark = dark;
    const s = this.store.scene;
    if (!s) return;
    this.shade = null;
    if (s.bed) {
      this.shade = document.createElement("canvas");
      const rows = s.bed.north.length,
        columns = s.bed.east.length,
        [low, high] = depthRange(s.bed);
      this.shade.width = columns;
      this.shade.height = rows;
      const c = context2d(this.shade),
        image = c.createImageData(columns, rows);
      for (let i = 0; i < rows; i++)
        for (let k = 0; k < columns; k++) {
          const d = s.bed.depth[i]![k] ?? null,
            o = 4 * ((rows - 1 - i) * columns + k);
          if (d === null) continue;
          depthColour((d - low) / (high - low)).forEach((v, j) => {
            image.data[o + j] = 255 * v;
          });
          image.data[o + 3] = dark ? 135 : 150;
        }
      c.putImageData(image, 0, 0);
      this.lines = contours(s.bed);
    }
  }

  /** Fit the scene into the chart. */
  home(): void {
    const s = this.store.scene,
      n: number[] = [],
      e: number[] = [];
    for (const b of s?.bodies ?? [])
      for (const p of [b.position, ...b.waypoints]) {
        n.push(p[0]!);
        e.push(p[1]!);
      }
    for (let k = 0; k < this.store.rows.length; k++) {
      n.push(this.store.ned[3 * k]!);
      e.push(this.store.ned[3 * k + 1]!);
    }
    if (!n.length) {
      n.push(-100, 100);
      e.push(-100, 100);
    }
    const [n0, n1, e0, e1] = [Math.min(...n), Math.max(...n), Math.min(...e), Math.max(...e)];
    this.scale =
      0.8 *
      Math.min(
        (this.canvas.clientHeight - TOOLS) / Math.max(n1 - n0, 40),
        this.canvas.clientWidth / Math.max(e1 - e0, 40),
      );
    this.middle = [(n0 + n1) / 2 + TOOLS / 2 / this.scale, (e0 + e1) / 2];
  }

  /** The view: middle (north, east) and pixels per metre. */
  get looks(): { middle: [number, number]; scale: number } {
    return { middle: this.middle, scale: this.scale };
  }
  look(middle: [number, number], scale: number): void {
    [this.middle, this.scale] = [middle, scale];
  }

  /** Position (north, east) under the pointer. */
  at(e: MouseEvent): [number, number] {
    const box = this.canvas.getBoundingClientRect(),
      scale = this.scale * pageZoom();
    return [
      this.middle[0] - (e.clientY - box.top - box.height / 2) / scale,
      this.middle[1] + (e.clientX - box.left - box.width / 2) / scale,
    ];
  }
  /** Canvas position of a point. */
  px(north: number, east: number): [number, number] {
    return [
      this.canvas.clientWidth / 2 + (east - this.middle[1]) * this.scale,
      this.canvas.clientHeight / 2 - (north - this.middle[0]) * this.scale,
    ];
  }

  /** Move the pointer to a position. */
  point(n: number, east: number): void {
    this.pointer.move([n, east]);
    this.onMove?.(n, east);
  }

  /** Zoom by a factor; a position keeps its place. */
  zoom(f: number, [n, east]: [number, number] = this.middle): void {
    const scale = Math.min(Math.max(this.scale * f, 0.002), 200),
      g = this.scale / scale;
    this.middle = [n + (this.middle[0] - n) * g, east + (this.middle[1] - east) * g];
    this.scale = scale;
  }

  /** Do what a click at a position does: measure, draw, or select a body. */
  click(n: number, east: number): void {
    if (this.pointer.measuring) {
      this.pointer.add([n, east]);
      return;
    }
    if (this.onClick) {
      this.onClick(n, east);
      return;
    }
    let best: number | null = null,
      near = 16 / this.scale;
    for (let k = 0; k < this.store.rows.length; k++) {
      const far = Math.hypot(this.store.ned[3 * k]! - n, this.store.ned[3 * k + 1]! - east);
      if (far < near) {
        near = far;
        best = this.store.rows[k]!;
      }
    }
    this.choose(best);
  }

  render(): void {
    const page = prepareCanvas(this.canvas);
    if (!page) return;
    const { c, w, hh, ratio } = page;
    c.drawImage(this.drawnGround(ratio, w, hh), 0, 0, w, hh);
    this.missions(c);
    if (this.show.spheres) this.signals(c);
    if (this.store.cables.length) drawCables(c, this.store.cables, (n, e) => this.px(n, e), this.dark);
    if (this.show.traffic) drawTraffic(c, this.store, (n, e) => this.px(n, e), this.scale);
    drawBodies(c, this.store, (n, e) => this.px(n, e), this.scale, this.dark, this.show.labels);
    if (this.show.traffic) labelTraffic(c, this.store, (n, e) => this.px(n, e), this.dark, this.show.labels);
    for (const draw of this.overlays) draw(c);
    this.pointer.draw(c, (n, e) => this.px(n, e), w, hh, this.beneath);
    this.rose(c, w, this.beneath);
  }

  /** Draw the static layer; of the tracks, only points that were added since the last picture. */
  private drawnGround(ratio: number, w: number, hh: number): HTMLCanvasElement {
    const of = [
        ratio,
        w,
        hh,
        ...this.middle,
        this.scale,
        this.dark,
        this.shade,
        this.lines,
        this.show.trails,
        cssVariable("--bg"),
        this.tiles.version,
        this.enc.version,
        this.store.mosaic.version,
        this.store.mosaic.shown,
      ],
      c = context2d(this.ground);
    if (of.some((v, k) => v !== this.groundOf[k]) || this.shorter()) {
      this.groundOf = of;
      this.laid.clear();
      [this.ground.width, this.ground.height] = [this.canvas.width, this.canvas.height];
      c.setTransform(ratio, 0, 0, ratio, 0, 0);
      c.fillStyle = cssVariable("--bg");
      c.fillRect(0, 0, w, hh);
      const origin = this.store.scene?.origin,
        [n, e] = this.middle,
        [high, wide] = [hh / 2 / this.scale, w / 2 / this.scale];
      const corners = [
          [n - high, e - wide],
          [n + high, e + wide],
        ] as [[number, number], [number, number]],
        px = (a: number, b: number): [number, number] => this.px(a, b);
      if (origin) this.tiles.draw(c, origin, ...corners, this.scale, px, this.dark);
      if (origin) this.enc.draw(c, origin, ...corners, px, this.dark);
      this.bed(c);
      this.store.mosaic.draw(c, px, w, hh);
      if (origin) {
        this.tiles.sign(c, hh);
        this.enc.sign(c, hh);
      }
      this.grid(c, w, hh);
    }
    if (this.show.trails) this.ways(c);
    return this.ground;
  }

  private bed(c: CanvasRenderingContext2D): void {
    const bed = this.store.scene?.bed;
    if (!bed || !this.shade) return;
    const [x0, y0] = this.px(bed.north[bed.north.length - 1]!, bed.east[0]!),
      [x1, y1] = this.px(bed.north[0]!, bed.east[bed.east.length - 1]!);
    c.imageSmoothingEnabled = true;
    if (!this.tiles.info && !this.enc.isLoaded) c.drawImage(this.shade, x0, y0, x1 - x0, y1 - y0);
    c.strokeStyle = this.dark ? "#ffffff30" : "#12283a40";
    c.lineWidth = 0.8;
    c.beginPath();
    for (const l of this.lines) {
      c.moveTo(...this.px(l[0]!, l[1]!));
      c.lineTo(...this.px(l[2]!, l[3]!));
    }
    c.stroke();
    c.fillStyle = cssVariable("--ink");
    c.font = "10px system-ui, sans-serif";
    const labelled = new Set<number>();
    for (const l of this.lines) {
      const [x, y] = this.px(l[0]!, l[1]!);
      if (
        labelled.has(l[4]!) ||
        x < 40 ||
        y < 40 ||
        x > this.canvas.clientWidth - 60 ||
        y > this.canvas.clientHeight - 40
      )
        continue;
      labelled.add(l[4]!);
      haloText(c, `${+l[4]!.toFixed(2)} m`, x + 2, y - 2);
    }
  }

  private grid(c: CanvasRenderingContext2D, w: number, hh: number): void {
    const cell = roundStep(110 / this.scale);
    c.strokeStyle = this.dark ? "#8fb7d11f" : "#12283a1c";
    c.fillStyle = cssVariable("--ink");
    c.font = "10px system-ui, sans-serif";
    c.lineWidth = 1;
    c.beginPath();
    const [n1, n0] = [this.middle[0] + hh / 2 / this.scale, this.middle[0] - hh / 2 / this.scale];
    const [e0, e1] = [this.middle[1] - w / 2 / this.scale, this.middle[1] + w / 2 / this.scale];
    const labels: [text: string, x: number, y: number][] = [];
    for (let n = Math.ceil(n0 / cell) * cell; n < n1; n += cell) {
      const y = this.px(n, 0)[1];
      c.moveTo(0, y);
      c.lineTo(w, y);
      if (y > 60) labels.push([formatOffset(+n.toPrecision(6), "NS"), 4, y - 3]);
    }
    for (let e = Math.ceil(e0 / cell) * cell; e < e1; e += cell) {
      const x = this.px(0, e)[0],
        text = formatOffset(+e.toPrecision(6), "EW");
      c.moveTo(x, 0);
      c.lineTo(x, hh);
      if (x + 3 + c.measureText(text).width < w) labels.push([text, x + 3, hh - 5]);
    }
    c.stroke();
    for (const label of labels) haloText(c, ...label);
    const length = roundStep(60 / this.scale), // m; short enough to stay clear of the pointer's position
      bar = length * this.scale,
      x = w - bar - 18,
      y = hh - 24;
    c.strokeStyle = cssVariable("--ink");
    c.lineWidth = 1.6;
    haloText(c, drawScaleBar(c, x, y, bar, length), x + 4, y - 6);
  }

  private missions(c: CanvasRenderingContext2D): void {
    const s = this.store.scene;
    if (!s) return;
    const joined = [...(this.draft?.waypoints.keys() ?? [])].filter((n) => !s.bodies.some((b) => b.name === n));
    const bodies = [...s.bodies, ...joined.map((name) => ({ name, position: [], waypoints: [] }))];
    for (const [place, b] of bodies.entries()) {
      const drawn = this.draft?.waypoints.get(b.name) ?? b.waypoints;
      if (!drawn.length) continue;
      const drafted = this.draft?.waypoints.has(b.name);
      c.strokeStyle = bodyColour(this.store.rowOf(b.name) ?? place);
      c.lineWidth = drafted ? 2.4 : 1.2;
      c.globalAlpha = drafted ? 1 : 0.75;
      c.setLineDash([6, 4]);
      c.beginPath();
      const from = (drafted ? this.store.placeOf(b.name) : null) ?? b.position; // a draft starts where the vehicle is
      if (from.length) c.moveTo(...this.px(from[0]!, from[1]!));
      for (const p of drawn) c.lineTo(...this.px(p[0], p[1]));
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = c.strokeStyle;
      drawn.forEach((p, k) => {
        const [x, y] = this.px(p[0], p[1]);
        c.beginPath();
        c.arc(x, y, 3.2, 0, 7);
        c.fill();
        if (this.draft) haloText(c, `${k + 1}`, x + 5, y - 5);
      });
      c.globalAlpha = 1;
    }
    for (const f of this.draft?.fences ?? this.store.fences) {
      c.strokeStyle = c.fillStyle = cssVariable("--fence");
      c.setLineDash(FENCE_DASH);
      c.lineWidth = 1.6;
      c.beginPath();
      f.corners.forEach((p, k) => (k ? c.lineTo(...this.px(p[0], p[1])) : c.moveTo(...this.px(p[0], p[1]))));
      c.closePath();
      c.stroke();
      c.setLineDash([]);
      const first = f.corners[0];
      if (first) haloText(c, `${f.name} (keep ${f.keep})`, this.px(...first)[0] + 6, this.px(...first)[1] + 12);
      for (const p of f.corners) {
        c.beginPath();
        c.arc(...this.px(p[0], p[1]), 2.5, 0, 7);
        c.fill();
      }
    }
    c.strokeStyle = c.fillStyle = cssVariable("--warm");
    c.setLineDash([2, 3]);
    c.beginPath();
    for (const p of this.draft?.area ?? []) c.lineTo(...this.px(p[0], p[1]));
    c.closePath();
    c.stroke();
    c.setLineDash([]);
    for (const p of this.draft?.area ?? []) {
      c.beginPath();
      c.arc(...this.px(p[0], p[1]), 2.5, 0, 7);
      c.fill();
    }
    for (const b of this.draft?.beacons ?? []) {
      const [x, y] = this.px(b.position[0], b.position[1]);
      drawTriangle(c, x, y, cssVariable("--warm"));
      haloText(c, b.name, x + 9, y - 4);
    }
    c.strokeStyle = c.fillStyle = cssVariable("--soft");
    const solid = (): void => {
      c.globalAlpha = 0.45;
      c.fill();
      c.globalAlpha = 1;
      c.stroke();
    }; // vessels cannot sail through it
    for (const b of s.boxes) {
      const [x, y] = this.px(b[0]!, b[1]!);
      c.save();
      c.translate(x, y);
      c.rotate(b[6]! - Math.PI / 2);
      c.beginPath();
      c.rect(-b[3]! * this.scale, -b[4]! * this.scale, 2 * b[3]! * this.scale, 2 * b[4]! * this.scale);
      solid();
      c.restore();
    }
    for (const p of s.piers) {
      c.beginPath();
      c.arc(...this.px(p[0]!, p[1]!), Math.max(p[3]! * this.scale, 2), 0, 7);
      solid();
    }
  }

  /** Points of a track and of the estimated track up to the current time. */
  private until(track: Track): [number, number] {
    return track.whole
      ? [track.until(this.store.time), track.until(this.store.time, track.believedTime)]
      : [track.time.length, track.believedTime.length];
  }

  /** True if a drawn track was removed, thinned or went back in time. */
  private shorter(): boolean {
    for (const [row, { track, n, m }] of this.laid) {
      const [now, believed] = this.store.tracks.get(row) === track ? this.until(track) : [-1, -1];
      if (now < n || believed < m) return true;
    }
    return false;
  }

  private ways(c: CanvasRenderingContext2D): void {
    let drawn = 0;
    for (const [row, track] of this.store.tracks) {
      if (drawn++ > MOST_WAYS && row !== this.store.chosen) continue;
      const [n, m] = this.until(track),
        old = this.laid.get(row) ?? { n: 0, m: 0 };
      if (n === old.n && m === old.m) continue;
      this.line(c, track.ned, old.n, n, bodyColour(row), 1.8);
      this.line(c, track.believed, old.m, m, this.dark ? "#ffffffb0" : "#12283ab0", 1);
      this.laid.set(row, { track, n, m });
    }
  }

  private line(
    c: CanvasRenderingContext2D,
    ned: number[],
    from: number,
    to: number,
    style: string,
    width: number,
  ): void {
    if (to < 2 || to <= from) return;
    c.strokeStyle = style;
    c.lineWidth = width;
    c.beginPath();
    // the first item starts the legend
    for (let k = Math.max(0, from - 1); k < to; k++) c.lineTo(...this.px(ned[3 * k]!, ned[3 * k + 1]!));
    c.stroke();
  }

  private signals(c: CanvasRenderingContext2D): void {
    const noise = this.store.scene?.sound.noise ?? 60;
    for (let k = 0; k < this.store.spheres.length / SIGNAL_WIDTH; k++) {
      const s = this.store.spheres.subarray(k * SIGNAL_WIDTH, (k + 1) * SIGNAL_WIDTH);
      const [x, y] = this.px(s[2]!, s[3]!);
      c.globalAlpha = Math.min(Math.max((s[6]! - noise) / Math.max(s[7]! - noise, 1), 0.12), 0.9);
      c.strokeStyle = bodyColour(s[1]!);
      c.lineWidth = 1.6;
      c.beginPath();
      c.arc(x, y, s[5]! * this.scale, 0, 7);
      c.stroke();
    }
    c.globalAlpha = 1;
    const recent = this.store.events.slice(-30);
    for (const e of recent) {
      if (!("receiver" in e) || INAUDIBLE_OUTCOMES.has(e.outcome) || Math.abs(this.store.time - e.time) > 1.5) continue;
      const from = this.store.sent.get(e.id)?.at;
      if (!from || !e.at || (!this.show.beacons && this.store.betweenBuoys(e))) continue;
      c.strokeStyle = cssVariable(e.outcome === 0 ? "--good" : "--bad");
      c.setLineDash(e.outcome === 0 ? [] : LOST_DASH);
      c.globalAlpha = 1 - Math.abs(this.store.time - e.time) / 1.6;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(...this.px(from[0], from[1]));
      c.lineTo(...this.px(e.at[0], e.at[1]));
      c.stroke();
    }
    c.setLineDash([]);
    c.globalAlpha = 1;
  }

  private rose(c: CanvasRenderingContext2D, w: number, beneath: number): void {
    c.save();
    c.translate(w - 36, 44 + beneath);
    c.fillStyle = cssVariable("--bad");
    c.beginPath();
    c.moveTo(0, -24);
    c.lineTo(7, 4);
    c.lineTo(-7, 4);
    c.fill();
    c.fillStyle = cssVariable("--ink");
    c.font = "700 14px system-ui, sans-serif";
    c.textAlign = "center";
    c.fillText("N", 0, 20);
    c.restore();
  }
}
