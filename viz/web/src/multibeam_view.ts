// Multibeam echosounder: soundings as coloured points that stay on the bed, and the profile of the newest ping.

import * as THREE from "three";
import { scaleColour, VIRIDIS } from "./colour_scales";
import { toThree } from "./coordinate_frames";
import { drawLabel, rangeMarkStep, type ImagePainter, type SonarImage, type ImageStyle } from "./sonar_image";

const ROOM = 1 << 18; // points per sonar
const LABEL_PX = 34; // least distance between two labels
export function tint(f: number): number[] {
  return scaleColour(VIRIDIS, f).map((v) => Math.round(255 * v));
}

const glsl = VIRIDIS.map((c) => `vec3(${c.map((v) => v.toFixed(4)).join(", ")})`);

export class MultibeamView implements ImagePainter {
  readonly cloud: THREE.Points<THREE.BufferGeometry, THREE.ShaderMaterial>;
  count = 0; // soundings so far
  low = Infinity; // depth range of the colours
  high = -Infinity;
  protected ping: SonarImage | null = null;
  protected scale: [number, number, number, number] = [0, 0, 1, 1]; // pixel of (0, 0), pixels per metre across and down

  constructor() {
    const g = new THREE.BufferGeometry().setAttribute(
      "position",
      new THREE.BufferAttribute(new Float32Array(3 * ROOM), 3).setUsage(THREE.DynamicDrawUsage),
    );
    g.setDrawRange(0, 0);
    // depth is -y: a deeper sounding rescales the colours of all points
    this.cloud = new THREE.Points(
      g,
      new THREE.ShaderMaterial({
        uniforms: { low: { value: 0 }, high: { value: 1 } },
        vertexShader: `varying float depth;
          void main() {
            depth = -position.y;
            vec4 at = modelViewMatrix * vec4(position, 1.0);
            gl_Position = projectionMatrix * at;
            gl_Position.z -= 0.002 * gl_Position.w;
            gl_PointSize = clamp(260.0 / -at.z, 2.0, 9.0);
          }`,
        fragmentShader: `uniform float low, high; varying float depth;
          void main() {
            vec3 c[${VIRIDIS.length}] = vec3[](${glsl.join(", ")});
            float x = clamp((depth - low) / (high - low), 0.0, 1.0) * ${(VIRIDIS.length - 1).toFixed(1)};
            int k = min(int(x), ${VIRIDIS.length - 2});
            gl_FragColor = vec4(mix(c[k], c[k + 1], x - float(k)), 1.0);
            #include <colorspace_fragment>
          }`,
      }),
    );
    this.cloud.frustumCulled = false;
  }

  take(p: SonarImage): void {
    this.ping = p;
    const position = this.cloud.geometry.getAttribute("position") as THREE.BufferAttribute,
      depths: number[] = [];
    for (let k = 0; k < p.points.length; k += 5) {
      const [n, e, d] = [p.points[k]!, p.points[k + 1]!, p.points[k + 2]!];
      if (!Number.isFinite(n + e + d)) continue;
      position.setXYZ(this.count % ROOM, ...toThree(n, e, d));
      position.addUpdateRange(3 * (this.count % ROOM), 3);
      this.count++;
      depths.push(d);
    }
    if (!depths.length) return;
    position.needsUpdate = true;
    this.cloud.geometry.setDrawRange(0, Math.min(this.count, ROOM));
    depths.sort((a, b) => a - b);
    this.low = Math.min(this.low, depths[Math.floor(0.02 * depths.length)]!);
    this.high = Math.max(this.high, depths[Math.ceil(0.98 * depths.length) - 1]!);
    this.cloud.material.uniforms["low"]!.value = this.low;
    this.cloud.material.uniforms["high"]!.value = Math.max(this.high, this.low + 0.1);
  }

  clear(): void {
    this.count = 0;
    this.low = Infinity;
    this.high = -Infinity;
    this.ping = null;
    this.cloud.geometry.setDrawRange(0, 0);
  }

  limits(): null {
    return null;
  }

  /** Draw the newest ping, seen from astern, and the colour scale. */
  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    if (!this.ping) return;
    const { ratio } = style,
      p = this.ping.points,
      down = this.ping.head.at[2] ?? 0,
      rim = 34 * ratio;
    let far = 1,
      deep = 1;
    for (let k = 0; k < p.length; k += 5) {
      far = Math.max(far, Math.abs(p[k + 3]!));
      deep = Math.max(deep, p[k + 2]! - down);
    }
    const per = Math.min((w - 2 * rim - 40 * ratio) / (2 * far), (h - 2 * rim) / (1.15 * deep)),
      x0 = (w - 40 * ratio) / 2,
      y0 = (h - per * deep) / 2;
    this.scale = [x0, y0, per, per];
    c.fillStyle = "#04101a";
    c.fillRect(0, 0, w, h);
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    c.lineWidth = ratio;
    c.strokeStyle = "#9fdcff30";
    const step = rangeMarkStep(Math.max(far, deep));
    for (let d = Math.ceil(down / step) * step; d < down + 1.1 * deep; d += step) {
      const y = y0 + (d - down) * per;
      c.beginPath();
      c.moveTo(x0 - far * per, y);
      c.lineTo(x0 + far * per, y);
      c.stroke();
      drawLabel(c, `${+d.toPrecision(4)} m`, 4 * ratio, y + 4 * ratio);
    }
    const across = step * 2 ** Math.max(0, Math.ceil(Math.log2((LABEL_PX * ratio) / (step * per))));
    for (let x = -Math.floor(far / across) * across; x <= far; x += across) {
      const text = `${+x.toPrecision(4)}`;
      drawLabel(c, text, x0 + x * per - c.measureText(text).width / 2, h - 6 * ratio, "#8fb7c9");
    }
    for (let k = 0; k < p.length; k += 5) {
      const [r, g, b] = tint((p[k + 2]! - this.low) / Math.max(this.high - this.low, 0.1));
      c.fillStyle = `rgb(${r}, ${g}, ${b})`;
      c.fillRect(x0 + p[k + 3]! * per - ratio, y0 + (p[k + 2]! - down) * per - ratio, 2.5 * ratio, 2.5 * ratio);
    }
    c.fillStyle = "#d7f3ff";
    c.beginPath();
    c.moveTo(x0, y0);
    c.lineTo(x0 - 6 * ratio, y0 - 10 * ratio);
    c.lineTo(x0 + 6 * ratio, y0 - 10 * ratio);
    c.fill();
    for (let k = 0; k < 100; k++) {
      c.fillStyle = `rgb(${tint(k / 99).join(", ")})`;
      c.fillRect(w - 20 * ratio, rim + ((h - 2 * rim) * k) / 100, 12 * ratio, (h - 2 * rim) / 100 + 1);
    }
    for (const [f, d] of [
      [0, this.low],
      [1, this.high],
    ] as const) {
      const text = `${d.toFixed(2)} m`;
      drawLabel(c, text, w - c.measureText(text).width - 6 * ratio, f ? h - rim + 14 * ratio : rim - 6 * ratio);
    }
  }

  describeSample(x: number, y: number): string {
    const [x0, y0, sx, sy] = this.scale,
      down = this.ping?.head.at[2] ?? 0;
    return this.ping ? `${((x - x0) / sx).toFixed(1)} m starboard, depth ${((y - y0) / sy + down).toFixed(2)} m` : "";
  }

  dispose(): void {
    this.cloud.geometry.dispose();
    this.cloud.material.dispose();
  }
}
