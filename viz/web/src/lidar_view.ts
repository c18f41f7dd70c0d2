// Lidar: the points of the newest scan in the 3D view, and from above in the window. Colours are heights.

import { MultibeamView, tint } from "./multibeam_view";
import { drawLabel, rangeMarkStep, type ImageStyle, type SonarImage } from "./sonar_image";

export class LidarView extends MultibeamView {
  override take(p: SonarImage): void {
    this.clear(); // a scan replaces the last one
    super.take(p);
  }

  /** Draw the scan from above, with the x axis of the lidar up. */
  override paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    if (!this.ping) return;
    const { ratio } = style,
      p = this.ping.points,
      away: number[] = [];
    for (let k = 0; k < p.length; k += 5) away.push(Math.hypot(p[k + 3]!, p[k + 4]!));
    away.sort((a, b) => a - b);
    const far = Math.max(away[Math.ceil(0.98 * away.length) - 1] ?? 1, 1),
      per = (0.46 * Math.min(w, h)) / far,
      [x0, y0] = [w / 2, h / 2];
    this.scale = [x0, y0, per, per];
    c.fillStyle = "#04101a";
    c.fillRect(0, 0, w, h);
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.lineWidth = ratio;
    c.strokeStyle = "#9fdcff30";
    const step = rangeMarkStep(far);
    for (let d = step; d <= far; d += step) {
      c.beginPath();
      c.arc(x0, y0, d * per, 0, 2 * Math.PI);
      c.stroke();
      drawLabel(c, `${+d.toPrecision(4)} m`, x0 + 4 * ratio, y0 - d * per - 3 * ratio, "#8fb7c9");
    }
    for (let k = 0; k < p.length; k += 5) {
      // without a pose there are no heights
      const f = (p[k + 2]! - this.low) / Math.max(this.high - this.low, 0.1),
        [r, g, b] = tint(Number.isFinite(f) ? Math.min(Math.max(f, 0), 1) : 0.5);
      c.fillStyle = `rgb(${r}, ${g}, ${b})`;
      c.fillRect(x0 + p[k + 3]! * per - ratio, y0 - p[k + 4]! * per - ratio, 2 * ratio, 2 * ratio);
    }
    c.fillStyle = "#d7f3ff";
    c.beginPath();
    c.moveTo(x0, y0 - 8 * ratio);
    c.lineTo(x0 - 5 * ratio, y0 + 5 * ratio);
    c.lineTo(x0 + 5 * ratio, y0 + 5 * ratio);
    c.fill();
  }

  override describeSample(x: number, y: number): string {
    const [x0, y0, per] = this.scale;
    return this.ping ? `${((y0 - y) / per).toFixed(1)} m ahead, ${((x - x0) / per).toFixed(1)} m starboard` : "";
  }
}
