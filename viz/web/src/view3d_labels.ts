// Names and numbers over the 3D view, on a separate canvas.

import * as THREE from "three";
import { CONDITION_TEXTS } from "./alarms";
import { bodyColour, cssVariable, formatNumber, drawScaleBar } from "./dom";
import { context2d } from "./canvas";
import { LabelPictures } from "./label_pictures";
import { drawCorners } from "./chart_symbols";
import { upcomingMeetings, dangerLevel, DANGER_COLOURS, meetingLabel, timeLeft, placeLabel } from "./traffic_list";
import type { View3D } from "./view3d";
import type { Encounter } from "./page_protocol";

const MOST = 60;
type Text = (text: string, x: number, y: number, fill: string) => void;
type Free = (x: number, y: number, w: number, h: number) => boolean;

export class Labels3D {
  depths: number[] = []; // depths labelled by the depth scale
  private readonly projected = new THREE.Vector3();
  private readonly pictures = new LabelPictures();

  constructor(private readonly view: View3D) {}

  draw(): void {
    const { view } = this,
      { store, canvas, camera, bodies, heights, terrain } = view,
      c = context2d(view.over),
      ratio = view.over.width / Math.max(canvas.clientWidth, 1);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    this.depths = [];
    const meetings = view.show.traffic ? upcomingMeetings(store.traffic) : [];
    if (!view.show.labels && heights.factor === 1 && !meetings.length) return;
    c.font = "600 12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    const halo = view.dark ? "#04101acc" : "#ffffffdd",
      ink = cssVariable("--ink");
    this.pictures.begin();
    const text: Text = (t, x, y, fill) => this.pictures.draw(c, t, x, y, fill, halo, ratio);
    if (heights.factor !== 1)
      this.depths = heights.scale(
        c,
        text,
        camera,
        canvas.clientWidth,
        canvas.clientHeight,
        terrain.middle,
        terrain.extent,
        terrain.deepest,
      );
    if (!view.show.labels) {
      this.passings(text, meetings, []);
      return;
    }
    const many = store.rows.length > MOST;
    const perPixel = (2 * Math.tan(THREE.MathUtils.degToRad(camera.fov / 2))) / canvas.clientHeight;
    let drawn = 0;
    const taken: [number, number, number, number][] = [];
    const free: Free = (x, y, w, hgt) => {
      if (taken.some((b) => x < b[0] + b[2] && b[0] < x + w && y < b[1] + b[3] && b[1] < y + hgt)) return false;
      taken.push([x, y, w, hgt]);
      return true;
    };
    for (let k = 0; k < store.rows.length && drawn < MOST; k++) {
      const row = store.rows[k]!,
        chosen = row === store.chosen;
      const body = store.bodies.get(row);
      if (!body) continue;
      const far = camera.position.distanceTo(view.at(k));
      if (many && !chosen && far > 120) continue;
      const p = view.project(k);
      if (!p) continue;
      drawn++;
      // it is large enough to recognise
      const near = far * perPixel * 60 < bodies.model(store, body.model).shape.size[0];
      if (!near) {
        c.fillStyle = bodyColour(row);
        c.beginPath();
        c.arc(p[0], p[1], chosen ? 4.5 : 3, 0, 7);
        c.fill();
      }
      if (chosen && !near) drawCorners(c, p[0], p[1], 13);
      if (!free(p[0] + 9, p[1] - 17, 12 + 7 * body.name.length, 16) && !chosen) continue;
      const condition = CONDITION_TEXTS[store.condition[k]!];
      text(condition ? `⚠ ${body.name}` : body.name, p[0] + 9, p[1] - 9, condition ? cssVariable("--bad") : ink);
      if (body.type !== "buoy" && !many && free(p[0] + 9, p[1] - 1, 105, 13)) {
        c.font = "11px system-ui, sans-serif";
        text(
          `${formatNumber(store.ned[3 * k + 2], 1)} m  ${formatNumber(store.speed[k], 2)} m/s`,
          p[0] + 9,
          p[1] + 5,
          ink,
        );
        c.font = "600 12px system-ui, sans-serif";
      }
    }
    c.font = "11px system-ui, sans-serif";
    this.instruments(text, free, perPixel);
    for (const r of view.sounds.rays.slice(-14)) {
      if (!r.text) continue;
      const p = this.projected.copy(heights.place(...r.to)).project(camera);
      if (p.z > 1) continue;
      text(
        r.text,
        ((p.x + 1) / 2) * canvas.clientWidth - 20,
        ((1 - p.y) / 2) * canvas.clientHeight + 22,
        r.heard ? cssVariable("--good") : cssVariable("--bad"),
      );
    }
    c.font = "600 12px system-ui, sans-serif";
    this.passings(
      text,
      meetings,
      taken.map(([x, y, w, hgt]) => [x, y + hgt / 2, w]),
    );
    c.font = "11px system-ui, sans-serif";
    this.scale(c, text, ink);
  }

  /** Draw distance and time of encounters next to their positions. */
  private passings(text: Text, meetings: Encounter[], used: [number, number, number][]): void {
    const { store, heights, canvas, camera } = this.view,
      t = store.traffic;
    for (const m of meetings) {
      const p = this.projected
        .copy(
          heights.place(
            (m.own_at[0] + m.other_at[0]) / 2,
            (m.own_at[1] + m.other_at[1]) / 2,
            -(store.last?.level ?? 0),
          ),
        )
        .project(camera);
      if (!t || p.z > 1 || timeLeft(m, store) <= 0) continue;
      const label = meetingLabel(m, store);
      text(
        label,
        ...placeLabel(
          used,
          ((p.x + 1) / 2) * canvas.clientWidth + 8,
          ((1 - p.y) / 2) * canvas.clientHeight,
          7 * label.length,
          canvas.clientWidth,
        ),
        cssVariable(DANGER_COLOURS[dangerLevel(m, t)]),
      );
    }
  }

  /** Draw the names of the selected body's instruments if it is drawn large enough to tell them apart. */
  private instruments(text: Text, free: Free, perPixel: number): void {
    const { store, bodies, canvas, camera } = this.view;
    const moving = bodies.moving,
      size = store.kit ? bodies.model(store, store.bodies.get(store.kit.row)?.model ?? "").shape.size[0] : 0;
    if (
      !moving.group.visible ||
      camera.position.distanceTo(moving.group.position) * perPixel * 220 > size * moving.group.scale.x
    )
      return;
    for (const mark of moving.marks.children) {
      const p = mark.getWorldPosition(this.projected).project(camera),
        x = ((p.x + 1) / 2) * canvas.clientWidth + 7,
        y = ((1 - p.y) / 2) * canvas.clientHeight;
      if (p.z < 1 && free(x, y - 6, 6.5 * mark.name.length, 12)) text(mark.name, x, y, cssVariable("--good"));
    }
  }

  /** Draw a scale bar for lengths at the middle of the view. */
  private scale(c: CanvasRenderingContext2D, text: Text, ink: string): void {
    const { view } = this,
      { canvas, camera } = view;
    const far = camera.position.distanceTo(view.controls.target);
    const perPixel = (2 * far * Math.tan(THREE.MathUtils.degToRad(camera.fov / 2))) / canvas.clientHeight;
    const raw = 110 * perPixel,
      ten = 10 ** Math.floor(Math.log10(raw)),
      length = [5, 2, 1].map((f) => f * ten).find((s) => s <= raw) ?? ten;
    const w = length / perPixel,
      x = canvas.clientWidth - w - 16,
      y = canvas.clientHeight - 18;
    c.strokeStyle = ink;
    c.lineWidth = 1.5;
    text(drawScaleBar(c, x, y, w, length), x + 4, y - 11, ink);
  }
}
