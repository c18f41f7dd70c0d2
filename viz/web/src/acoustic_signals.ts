// Sound: each live signal is a translucent sphere that fades with its level; flashes and range lines mark receptions
// and losses.

import * as THREE from "three";
import { bodyColour } from "./dom";
import { toThree } from "./coordinate_frames";
import { INAUDIBLE_OUTCOMES, OUTCOMES, type SceneStore } from "./scene_store";
import { SIGNAL_WIDTH, type SignalReception } from "./page_protocol";

const MOST_SPHERES = 48,
  LINE_S = 1.6,
  MOST_LINES = 60;
const RECEIVED = new THREE.Color("#4df0d0"),
  LOST = new THREE.Color("#ff6b6b"),
  DASHES = 12; // of the line of a lost signal

interface Ray {
  from: [number, number, number];
  to: [number, number, number];
  heard: boolean;
  text: string;
  weight: number;
  born: number;
}

export class AcousticSignals {
  readonly group = new THREE.Group();
  private readonly spheres: {
    mesh: THREE.Mesh<THREE.SphereGeometry, THREE.ShaderMaterial>;
    ring: THREE.LineLoop<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  }[] = [];
  private readonly lines: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly flashes: THREE.Points<THREE.BufferGeometry, THREE.ShaderMaterial>;
  rays: Ray[] = [];
  shown = 0;
  dark = true;

  constructor() {
    const geometry = new THREE.SphereGeometry(1, 40, 24),
      circle = new THREE.BufferGeometry();
    circle.setAttribute(
      "position",
      new THREE.Float32BufferAttribute(
        Array.from({ length: 128 }, (_, k) => [Math.cos((k / 64) * Math.PI), 0, Math.sin((k / 64) * Math.PI)]).flat(),
        3,
      ),
    );
    for (let k = 0; k < MOST_SPHERES; k++) {
      const mesh = new THREE.Mesh(geometry, sphereMaterial());
      const ring = new THREE.LineLoop(circle, new THREE.LineBasicMaterial({ transparent: true, depthWrite: false }));
      mesh.visible = ring.visible = false;
      mesh.renderOrder = 6;
      mesh.frustumCulled = ring.frustumCulled = false;
      this.group.add(mesh, ring);
      this.spheres.push({ mesh, ring });
    }
    const lines = new THREE.BufferGeometry();
    lines.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * MOST_LINES * DASHES), 3));
    lines.setAttribute("color", new THREE.BufferAttribute(new Float32Array(8 * MOST_LINES * DASHES), 4));
    this.lines = new THREE.LineSegments(
      lines,
      new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false, depthTest: false }),
    );
    const points = new THREE.BufferGeometry();
    points.setAttribute("position", new THREE.BufferAttribute(new Float32Array(3 * MOST_LINES), 3));
    points.setAttribute("color", new THREE.BufferAttribute(new Float32Array(4 * MOST_LINES), 4));
    this.flashes = new THREE.Points(points, flashMaterial());
    this.lines.frustumCulled = this.flashes.frustumCulled = false;
    this.lines.renderOrder = this.flashes.renderOrder = 9;
    this.group.add(this.lines, this.flashes);
  }

  /** Show receptions; those from buoy to buoy only if `beacons`. */
  hear(store: SceneStore, receptions: SignalReception[], beacons: boolean): void {
    const now = performance.now() * 1e-3;
    for (const r of receptions) {
      if (INAUDIBLE_OUTCOMES.has(r.outcome) || (!beacons && store.betweenBuoys(r))) continue;
      const from = store.sent.get(r.id)?.at ?? place(store, r.source),
        to = r.at ?? place(store, r.receiver);
      if (!from || !to) continue;
      const text = r.outcome
        ? (OUTCOMES[r.outcome] ?? "lost")
        : r.measured !== null
          ? `${r.measured.toFixed(2)} m`
          : "";
      this.rays.push({ from, to, heard: r.outcome === 0, text, weight: text ? 1 : 0.3, born: now });
    }
    if (this.rays.length > MOST_LINES) this.rays.splice(0, this.rays.length - MOST_LINES);
  }

  update(store: SceneStore, spheres: boolean): void {
    const n = spheres ? Math.min(store.spheres.length / SIGNAL_WIDTH, MOST_SPHERES) : 0,
      noise = store.scene?.sound.noise ?? 60;
    this.shown = n;
    for (let k = 0; k < MOST_SPHERES; k++) {
      const { mesh, ring } = this.spheres[k]!;
      mesh.visible = ring.visible = k < n;
      if (k >= n) continue;
      const s = store.spheres.subarray(k * SIGNAL_WIDTH, (k + 1) * SIGNAL_WIDTH),
        radius = Math.max(s[5]!, 0.01);
      const strength = Math.min(Math.max((s[6]! - noise) / Math.max(s[7]! - noise, 1), 0.06), 1);
      for (const o of [mesh, ring]) {
        o.position.set(...toThree(s[2]!, s[3]!, s[4]!));
        o.scale.setScalar(radius);
      }
      const c = bodyColour(s[1]!);
      mesh.material.uniforms["tint"]!.value.set(c);
      mesh.material.uniforms["strength"]!.value = strength;
      mesh.material.blending = this.dark ? THREE.AdditiveBlending : THREE.NormalBlending;
      ring.material.color.set(c);
      ring.material.opacity = Math.min(0.15 + strength, 0.85);
    }
    this.draw();
  }

  /** Device pixels per CSS pixel. */
  scale(pixels: number): void {
    this.flashes.material.uniforms["scale"]!.value = pixels;
  }

  private draw(): void {
    const now = performance.now() * 1e-3;
    this.rays = this.rays.filter((r) => now - r.born < LINE_S);
    const [lp, lc] = ["position", "color"].map((a) => this.lines.geometry.getAttribute(a) as THREE.BufferAttribute) as [
      THREE.BufferAttribute,
      THREE.BufferAttribute,
    ];
    const [fp, fc] = ["position", "color"].map(
      (a) => this.flashes.geometry.getAttribute(a) as THREE.BufferAttribute,
    ) as [THREE.BufferAttribute, THREE.BufferAttribute];
    let points = 0;
    this.rays.forEach((r, k) => {
      const left = 1 - (now - r.born) / LINE_S,
        c = r.heard ? RECEIVED : LOST;
      const [from, to] = [toThree(...r.from), toThree(...r.to)],
        dashes = r.heard ? 1 : DASHES;
      for (let i = 0; i < 2 * dashes; i++) {
        const f = r.heard ? i : i / (2 * dashes - 1);
        lp.setXYZ(points, ...(from.map((a, j) => a + f * (to[j]! - a)) as [number, number, number]));
        lc.setXYZW(points++, c.r, c.g, c.b, left * (0.35 + 0.65 * f) * r.weight);
      }
      fp.setXYZ(k, ...toThree(...r.to));
      fc.setXYZW(k, c.r, c.g, c.b, left * Math.max(r.weight, 0.6));
    });
    for (const a of [lp, lc, fp, fc]) a.needsUpdate = true;
    this.lines.geometry.setDrawRange(0, points);
    this.flashes.geometry.setDrawRange(0, this.rays.length);
  }
}

function place(store: SceneStore, row: number): [number, number, number] | null {
  const k = store.index.get(row);
  return k === undefined ? null : [store.ned[3 * k]!, store.ned[3 * k + 1]!, store.ned[3 * k + 2]!];
}

function sphereMaterial(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    transparent: true,
    depthWrite: false,
    side: THREE.DoubleSide,
    uniforms: { tint: { value: new THREE.Color() }, strength: { value: 1 } },
    vertexShader: `varying vec3 n, at;
      void main() {
        vec4 w = modelMatrix * vec4(position, 1.0);
        at = w.xyz;
        n = normalize(mat3(modelMatrix) * normal);
        gl_Position = projectionMatrix * viewMatrix * w;
      }`,
    fragmentShader: `uniform vec3 tint; uniform float strength; varying vec3 n, at;
      void main() {
        float rim = pow(1.0 - abs(dot(normalize(cameraPosition - at), normalize(n))), 3.0);
        gl_FragColor = vec4(tint, strength * (0.035 + 0.55 * rim));
      }`,
  });
}

function flashMaterial(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    transparent: true,
    depthWrite: false,
    depthTest: false,
    uniforms: { scale: { value: 1 } },
    vertexShader: `attribute vec4 color; uniform float scale; varying vec4 c;
      void main() {
        c = color;
        vec4 v = modelViewMatrix * vec4(position, 1.0);
        gl_Position = projectionMatrix * v;
        gl_PointSize = scale * (9.0 + 30.0 * (1.0 - color.a));
      }`,
    fragmentShader: `varying vec4 c;
      void main() {
        float r = length(gl_PointCoord - 0.5) * 2.0;
        float ring = smoothstep(0.14, 0.0, abs(r - 0.82)) + 0.8 * smoothstep(0.22, 0.0, r) * c.a;
        gl_FragColor = vec4(c.rgb, ring * c.a);
        if (r > 1.0) discard;
      }`,
  });
}
