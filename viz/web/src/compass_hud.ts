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
  const dark = document.documentElement.dataset["theme"] !== "light",
    ink = dark ? "#9ff5d8" : "#04384a";
  c.strokeStyle = c.fillStyle = ink;
  c.lineWidth = 1.4;
  c.shadowColor = dark ? "#000" : "#fff";
  c.shadowBlur = 3;
  c.save();
  c.translate(w / 2, hh / 2);
  c.rotate((-v.roll * Math.PI) / 180);
  c.font = "10px system-ui, sans-serif";
  c.textBaseline = "middle";
  for (let a = -30; a <= 30; a += 10) {
    const y = (v.pitch - a) * perDegree,
      half = a === 0 ? w * 0.2 : w * 0.075;
    if (Math.abs(y) > hh * 0.42) continue;
    c.globalAlpha = a === 0 ? 0.9 : 0.55;
    c.beginPath();
    c.moveTo(-half, y);
    c.lineTo(-half * 0.3, y);
    c.moveTo(half * 0.3, y);
    c.lineTo(half, y);
    c.stroke();
    if (a) c.fillText(`${a}`, half + 4, y);
  }
  c.restore();
  c.globalAlpha = 1;
  c.beginPath();
  c.moveTo(w / 2 - 12, hh / 2);
  c.lineTo(w / 2 - 4, hh / 2);
  c.moveTo(w / 2 + 4, hh / 2);
  c.lineTo(w / 2 + 12, hh / 2);
  c.moveTo(w / 2, hh / 2 - 4);
  c.lineTo(w / 2, hh / 2 + 4);
  c.stroke();
  c.font = "600 12px system-ui, sans-serif";
  c.textBaseline = "alphabetic";
  const left = [
    `HDG ${formatHeading(v.heading, 1)}°`,
    `DEPTH ${formatNumber(v.depth, 2)} m`,
    `SPEED ${formatNumber(v.speed, 2)} m/s`,
  ];
  left.forEach((t, i) => c.fillText(t, 10, hh - 44 + 17 * i));
  c.textAlign = "right";
  const right = [
    `ROLL ${formatNumber(v.roll, 1)}°`,
    `PITCH ${formatNumber(v.pitch, 1)}°`,
    v.altitude === null ? "" : `ALT ${formatNumber(v.altitude, 1)} m`,
  ];
  if (w > 250) right.forEach((t, i) => c.fillText(t, w - 10, hh - 44 + 17 * i));
  c.textAlign = "left";
}
