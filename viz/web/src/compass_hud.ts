// Compass cards, and the instruments drawn over the onboard view.

import { formatHeading } from "./coordinate_frames";
import { cssVariable, formatNumber } from "./dom";
import { context2d, prepareCanvas } from "./canvas";

const cards = new WeakMap<HTMLCanvasElement, string>(); // what each card shows

/** Draw a compass card under a fixed mark, if it turned; ``heading`` in degrees is at the top. */
export function drawCompassCard(canvas: HTMLCanvasElement, heading: number, opacity: number): void {
  const shows = `${heading.toFixed(1)} ${document.documentElement.dataset["theme"]}`;
  if (cards.get(canvas) === shows) return;
  cards.set(canvas, shows);
  const c = context2d(canvas),
    size = canvas.width,
    r = size / 2;
  c.setTransform(1, 0, 0, 1, 0, 0);
  c.clearRect(0, 0, size, size);
  c.translate(r, r);
  c.globalAlpha = opacity;
  c.beginPath();
  c.arc(0, 0, r - 3, 0, 7);
  c.fillStyle = cssVariable("--panel");
  c.fill();
  c.strokeStyle = cssVariable("--line");
  c.lineWidth = 2;
  c.stroke();
  c.textAlign = "center";
  c.textBaseline = "middle";
  for (let a = 0; a < 360; a += 15) {
    c.save();
    c.rotate(((a - heading) * Math.PI) / 180);
    c.strokeStyle = a % 90 ? cssVariable("--soft") : cssVariable("--ink");
    c.lineWidth = a % 90 ? 1.5 : 3;
    c.beginPath();
    c.moveTo(0, -r + 8);
    c.lineTo(0, -r + (a % 45 ? 15 : 20));
    c.stroke();
    if (a % 90 === 0) {
      c.fillStyle = a === 0 ? cssVariable("--bad") : cssVariable("--ink");
      c.font = `600 ${size * 0.13}px system-ui, sans-serif`;
      c.fillText("NESW"[a / 90]!, 0, -r + 20 + size * 0.075);
    }
    c.restore();
  }
  c.fillStyle = cssVariable("--warm");
  c.beginPath();
  c.moveTo(0, -r + 14);
  c.lineTo(-size * 0.045, -r + 2);
  c.lineTo(size * 0.045, -r + 2);
  c.fill();
  c.fillStyle = cssVariable("--ink");
  c.font = `600 ${size * 0.15}px system-ui, sans-serif`;
  c.fillText(`${formatHeading(heading)}°`, 0, 2);
  c.globalAlpha = 1;
}

export interface HudValues {
  roll: number;
  pitch: number;
  heading: number;
  depth: number;
  flies: boolean;
  speed: number;
  altitude: number | null;
}

/** Draw horizon, pitch ladder and numbers. */
export function drawHud(canvas: HTMLCanvasElement, v: HudValues): void {
  const page = prepareCanvas(canvas);
  if (!page) return;
  const { c, w, hh } = page;
  c.clearRect(0, 0, w, hh);
  const perDegree = hh / 75; // the camera's vertical field of view is 75 degrees
  // light with a dark outline, because the picture behind is light or dark in both themes
  const light = "#d6fff2",
    outline = "rgba(0, 18, 28, 0.85)";
  c.fillStyle = light;
  c.lineJoin = "round";
  const lines = (...ends: [x0: number, y0: number, x1: number, y1: number][]): void => {
    c.beginPath();
    for (const [x0, y0, x1, y1] of ends) {
      c.moveTo(x0, y0);
      c.lineTo(x1, y1);
    }
    for (const [style, width] of [
      [outline, 3.4],
      [light, 1.4],
    ] as const) {
      c.strokeStyle = style;
      c.lineWidth = width;
      c.stroke();
    }
  };
  const text = (value: string, x: number, y: number): void => {
    c.strokeStyle = outline;
    c.lineWidth = 3;
    c.strokeText(value, x, y);
    c.fillText(value, x, y);
  };
  c.save();
  c.translate(w / 2, hh / 2);
  c.rotate((-v.roll * Math.PI) / 180);
  c.font = "10px system-ui, sans-serif";
  c.textBaseline = "middle";
  for (let a = -30; a <= 30; a += 10) {
    const y = (v.pitch - a) * perDegree,
      half = a === 0 ? w * 0.2 : w * 0.075;
    if (Math.abs(y) > hh * 0.42) continue;
    c.globalAlpha = a === 0 ? 0.9 : 0.7;
    lines([-half, y, -half * 0.3, y], [half * 0.3, y, half, y]);
    if (a) text(`${a}`, half + 4, y);
  }
  c.restore();
  c.globalAlpha = 1;
  const [x, y] = [w / 2, hh / 2];
  lines([x - 12, y, x - 4, y], [x + 4, y, x + 12, y], [x, y - 4, x, y + 4]);
  c.font = "600 12px system-ui, sans-serif";
  c.textBaseline = "alphabetic";
  const left = [
    `HDG ${formatHeading(v.heading, 1)}°`,
    v.flies ? `HEIGHT ${formatNumber(-v.depth, 1)} m` : `DEPTH ${formatNumber(v.depth, 2)} m`,
    `SPEED ${formatNumber(v.speed, 2)} m/s`,
  ];
  left.forEach((t, i) => text(t, 10, hh - 44 + 17 * i));
  c.textAlign = "right";
  const right = [
    `ROLL ${formatNumber(v.roll, 1)}°`,
    `PITCH ${formatNumber(v.pitch, 1)}°`,
    v.altitude === null ? "" : `ALT ${formatNumber(v.altitude, 1)} m`,
  ];
  if (w > 250) right.forEach((t, i) => text(t, w - 10, hh - 44 + 17 * i));
  c.textAlign = "left";
}
