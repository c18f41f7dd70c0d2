// Water surface: one mesh of lines, dense where the camera looks and sparse elsewhere, out to the horizon. It has the
// heights of the simulation's sea
// if known, otherwise it is level. Lines every `cell` metres show the scale.

import * as THREE from "three";
import { SOFTWARE_RENDERING } from "./canvas";
import { smallestCell, gridLines, type SeaState } from "./sea_state";
import { setLinearColour, skyColours, SUN } from "./sky";

const HALF = SOFTWARE_RENDERING ? 20 : 64; // lines on each side of the middle
const MOST = 2.5e6; // components times crossings, per picture

export class WaterSurface {
  readonly mesh: THREE.Mesh<THREE.BufferGeometry, THREE.ShaderMaterial>;
  private half = 0;
  private up = new Float32Array(0);
  private laid = ""; // line positions
  private of: unknown[] = []; // state for which the heights were computed

  constructor() {
    this.mesh = new THREE.Mesh(new THREE.BufferGeometry(), material());
    this.mesh.renderOrder = 5;
    this.mesh.frustumCulled = false;
    this.mesh.name = "surface";
  }

  theme(dark: boolean, extent: number): void {
    const u = this.mesh.material.uniforms,
      h = skyColours(dark);
    for (const [name, style] of [
      ["tint", dark ? "#2f7fa8" : "#6fb6d8"],
      ["deep", dark ? "#0d3550" : "#3f8fb8"],
      ["zenith", h.zenith],
      ["horizon", h.horizon],
    ] as const)
      setLinearColour(u[name]!.value, style);
    u["cell"]!.value = 10 ** Math.floor(Math.log10(extent / 4));
  }

  /** Draw the surface at a time, fine around a position (north, east) seen from a distance; ``sea`` null: level. */
  fit(
    sea: SeaState | null,
    time: number,
    level: number,
    middle: [number, number],
    far: number,
    extent: number,
    heights: number,
  ): void {
    const waves = sea !== null && sea.count > 0 ? sea : null,
      cell = waves ? smallestCell(waves, far) : far / 20;
    const half = waves ? Math.max(12, Math.min(HALF, Math.floor((Math.sqrt(MOST / waves.count) - 1) / 2))) : 12;
    const [n, e] = middle.map((v) => Math.round(v / cell) * cell) as [number, number],
      reach = Math.max(extent * 6, 2000);
    const laid = [half, cell, n, e, reach].join();
    const u = this.mesh.material.uniforms;
    u["heights"]!.value = heights;
    u["rough"]!.value = waves ? 1 : 0;
    this.mesh.position.set(e, level, -n);
    const of = [laid, waves, waves ? time : 0];
    if (of.every((v, k) => v === this.of[k])) return;
    this.of = of;
    if (half !== this.half) this.room(half);
    const north = gridLines(n, cell, half, reach),
      east = gridLines(e, cell, half, reach);
    if (waves) waves.fill(time, north, east, this.up);
    else this.up.fill(0);
    this.write(north, east, n, e, laid !== this.laid);
    this.laid = laid;
  }

  private room(half: number): void {
    const side = 2 * half + 1,
      index: number[] = [],
      g = new THREE.BufferGeometry();
    this.half = half;
    this.up = new Float32Array(side * side);
    for (let r = 0; r + 1 < side; r++)
      for (let c = 0; c + 1 < side; c++) {
        const a = r * side + c,
          b = a + side;
        index.push(a, a + 1, b, b, a + 1, b + 1);
      }
    g.setIndex(index);
    for (const [name, size] of [
      ["position", 3],
      ["slope", 2],
    ] as const) {
      const a = new THREE.BufferAttribute(new Float32Array(size * side * side), size);
      a.setUsage(THREE.DynamicDrawUsage);
      g.setAttribute(name, a);
    }
    g.boundingSphere = new THREE.Sphere(new THREE.Vector3(), 1e6);
    this.mesh.geometry.dispose();
    this.mesh.geometry = g;
    this.laid = "";
  }

  private write(north: Float64Array, east: Float64Array, n: number, e: number, moved: boolean): void {
    const [p, s] = ["position", "slope"].map(
      (name) => this.mesh.geometry.getAttribute(name) as THREE.BufferAttribute,
    ) as [THREE.BufferAttribute, THREE.BufferAttribute];
    const at = p.array as Float32Array,
      slope = s.array as Float32Array,
      side = east.length,
      up = this.up;
    for (let r = 0, k = 0; r < side; r++) {
      const r0 = Math.max(r - 1, 0),
        r1 = Math.min(r + 1, side - 1),
        along = 1 / (north[r1]! - north[r0]!);
      for (let c = 0; c < side; c++, k++) {
        if (moved) {
          at[3 * k] = east[c]! - e;
          at[3 * k + 2] = n - north[r]!;
        }
        at[3 * k + 1] = up[k]!;
        const c0 = Math.max(c - 1, 0),
          c1 = Math.min(c + 1, side - 1);
        slope[2 * k] = (up[r * side + c1]! - up[r * side + c0]!) / (east[c1]! - east[c0]!);
        slope[2 * k + 1] = -(up[r1 * side + c]! - up[r0 * side + c]!) * along; // the z axis of three.js points south
      }
    }
    p.needsUpdate = s.needsUpdate = true;
  }
}

/** Colour and opacity of the surface at a point with a normal, without lines and haze. */
const SHADING = `uniform float cell, rough; uniform vec3 tint, deep, zenith, horizon, to;
      vec4 shading(vec3 at, vec3 n) {
        vec3 up = normalize(n), look = normalize(cameraPosition - at);
        float side = look.y < 0.0 ? -1.0 : 1.0; // from below
        float f = 1.0 - clamp(dot(look, up) * side, 0.0, 1.0);
        f = f * f * f;
        float lit = dot(up, to) - to.y; // 0 where it is level
        vec3 c = mix(tint, deep, 0.5 * rough) * (1.0 + 4.0 * lit);
        #ifdef PLAIN
        c = mix(c, horizon, rough * f);
        #else
        vec3 mirror = reflect(-look, up);
        c = mix(c, mix(horizon, zenith, clamp(mirror.y * side, 0.0, 1.0)), rough * f);
        c += rough * side * pow(max(dot(mirror, to), 0.0), 90.0) * 0.8;
        #endif
        return vec4(c, 0.13 + 0.4 * f + rough * (0.4 + 1.5 * abs(lit)));
      }`;
/** Lines at multiples of a length. */
const LINES = `float grid(float c, vec3 at) {
        vec2 g = abs(fract(at.xz / c - 0.5) - 0.5) / fwidth(at.xz / c);
        return 1.0 - min(min(g.x, g.y), 1.0);
      }`;

function material(): THREE.ShaderMaterial {
  const colour = (): { value: THREE.Color } => ({ value: new THREE.Color() });
  return new THREE.ShaderMaterial({
    transparent: true,
    depthWrite: false,
    side: THREE.DoubleSide,
    defines: SOFTWARE_RENDERING ? { PLAIN: 1 } : {}, // without glints, and shaded at the crossings only
    uniforms: {
      tint: colour(),
      deep: colour(),
      zenith: colour(),
      horizon: colour(),
      cell: { value: 100 },
      heights: { value: 1 },
      rough: { value: 0 },
      to: { value: SUN },
    },
    vertexShader: SOFTWARE_RENDERING
      ? `${SHADING} attribute vec2 slope; uniform float heights; varying vec3 at; varying vec4 shade; varying vec2 fades;
      void main() {
        vec4 w = modelMatrix * vec4(position, 1.0);
        at = w.xyz;
        shade = shading(at, vec3(-slope.x * heights, 1.0, -slope.y * heights));
        float far = distance(cameraPosition, at);
        fades = exp(-far / (cell * vec2(30.0, 90.0)));
        gl_Position = projectionMatrix * viewMatrix * w;
      }`
      : `attribute vec2 slope; uniform float heights; varying vec3 at, n;
      void main() {
        vec4 w = modelMatrix * vec4(position, 1.0);
        at = w.xyz;
        n = vec3(-slope.x * heights, 1.0, -slope.y * heights);
        gl_Position = projectionMatrix * viewMatrix * w;
      }`,
    fragmentShader: SOFTWARE_RENDERING
      ? `uniform float cell; varying vec3 at; varying vec4 shade; varying vec2 fades; ${LINES}
      void main() {
        float lines = grid(cell, at) * 0.22 * fades.x;
        gl_FragColor = vec4(mix(shade.rgb, vec3(1.0), lines * 0.7), (shade.a + lines) * fades.y);
      }`
      : `${SHADING} varying vec3 at, n; ${LINES}
      void main() {
        vec4 s = shading(at, n);
        float far = distance(cameraPosition, at), lines = grid(cell, at) * 0.22 * exp(-far / (cell * 30.0));
        gl_FragColor = vec4(mix(s.rgb, vec3(1.0), lines * 0.7), (s.a + lines) * exp(-far / (cell * 90.0)));
      }`,
  });
}
