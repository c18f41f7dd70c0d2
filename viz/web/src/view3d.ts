// The 3D view: one renderer, a main camera, and a second look from on board a vehicle in a window of its own.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { CONDITIONS } from "./alarms";
import { Beliefs } from "./beliefs";
import { Bodies } from "./bodies";
import { compassCard, hud } from "./compass";
import { colour, css, number, scaleBar } from "./dom";
import { bearing, euler, quaternionToThree, toThree } from "./frames";
import { Heights } from "./heights";
import { pen, SOFTWARE } from "./pen";
import { Sounds } from "./sounds";
import { taken } from "./keys";
import { WILD } from "./link";
import type { Store } from "./store";
import { Terrain } from "./terrain";
import { Working } from "./working";

export type CameraMode = "free" | "follow" | "top";
const TRAIL = 60000; // pieces of ways, of all bodies together
const LABELS = 60;
const COARSEST = 0.4; // share of the screen's resolution

export interface Onboard { row: number; picture: HTMLCanvasElement; overlay: HTMLCanvasElement; compass: HTMLCanvasElement }

export class View3D {
  readonly canvas = document.createElement("canvas");
  readonly over = document.createElement("canvas");
  readonly compass = document.createElement("canvas");
  readonly scene = new THREE.Scene();
  readonly camera = new THREE.PerspectiveCamera(50, 1, 0.05, 60000);
  readonly eye = new THREE.PerspectiveCamera(75, 1, 0.05, 20000);
  readonly renderer: THREE.WebGLRenderer;
  readonly controls: OrbitControls;
  readonly terrain = new Terrain();
  readonly bodies = new Bodies();
  readonly sounds = new Sounds();
  readonly heights = new Heights();
  depths: number[] = []; // that the scale tells
  mode: CameraMode = "free";
  show = { spheres: true, trails: true, labels: true, surface: true, arrows: true, beams: true, magnify: true };
  onboard: Onboard | null = null;
  frames = 0;
  quality = 1; // share of the screen's resolution that this machine can draw in time
  private steady = false; // keep it, however slow
  private refit = false; // sizes are set anew with the next picture
  private drawn = 0;
  private judgedAt = performance.now();
  private readonly trail: THREE.LineSegments<THREE.BufferGeometry, THREE.LineBasicMaterial>;
  private readonly ends = new Map<number, [number, number, number]>();
  private pieces = 0;
  private uploaded = 0; // pieces that the graphics processor has
  private readonly beliefs: Beliefs;
  readonly working: Working;
  private dark = true;
  private followed: THREE.Vector3 | null = null;
  private readonly keys = new Set<string>();
  private before = performance.now();
  private ripples = 0;
  private tracks: THREE.Line[] = [];

  constructor(private readonly store: Store, private readonly choose: (row: number | null) => void, private readonly open: (row: number) => void, private readonly changed: () => void) {
    this.renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: !SOFTWARE, powerPreference: "high-performance" });
    this.renderer.setScissorTest(true);
    this.canvas.tabIndex = 0;
    this.canvas.className = "space";
    this.over.className = "over space";
    this.compass.className = "compass";
    this.compass.width = this.compass.height = 184;
    this.controls = new OrbitControls(this.camera, this.canvas);
    this.controls.enableDamping = true;
    this.controls.dampingFactor = 0.12;
    this.controls.maxDistance = 20000;
    this.controls.minDistance = 0.6;
    this.controls.zoomToCursor = true;
    this.controls.addEventListener("change", () => this.changed());
    const trail = new THREE.BufferGeometry();
    trail.setAttribute("position", new THREE.BufferAttribute(new Float32Array(6 * TRAIL), 3));
    trail.setAttribute("color", new THREE.BufferAttribute(new Float32Array(6 * TRAIL), 3));
    trail.setDrawRange(0, 0);
    this.trail = new THREE.LineSegments(trail, new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, opacity: 0.85 }));
    this.trail.frustumCulled = false;
    this.beliefs = new Beliefs(store);
    this.working = new Working(store, this.bodies);
    const sky = new THREE.HemisphereLight("#dff3ff", "#30506a", 1.9), sun = new THREE.DirectionalLight("#fff6e0", 1.8);
    sun.position.set(0.4, 1, 0.3);
    this.heights.sea.add(this.terrain.group, this.sounds.group, this.trail, this.beliefs.group, this.working.group);
    this.scene.add(sky, sun, this.heights.sea, this.working.pointers, this.bodies.group, this.bodies.moving.group);
    this.theme(true);
    let down: [number, number] = [0, 0];
    this.canvas.addEventListener("pointerdown", (e) => { down = [e.clientX, e.clientY]; this.canvas.focus(); });
    this.canvas.addEventListener("pointerup", (e) => { if (Math.hypot(e.clientX - down[0], e.clientY - down[1]) < 4) this.clicked(e); });
    window.addEventListener("keydown", (e) => { if (!taken(e)) this.keys.add(e.code); });
    window.addEventListener("keyup", (e) => this.keys.delete(e.code));
    window.addEventListener("blur", () => this.keys.clear());
  }

  theme(dark: boolean): void {
    this.dark = this.sounds.dark = dark;
    this.scene.fog = new THREE.FogExp2("#000000", 0.0004); // colour and density with each view
    if (this.store.scene) this.terrain.build(this.store.scene, dark);
  }

  /** Full sharpness, however long a picture takes. */
  sharp(): void {
    this.steady = true;
    this.quality = 1;
    this.refit = true;
  }

  /** The last picture for a while: as sharp as the screen, however long it takes. ``anew``: even if the last one was. */
  still(anew = false): void {
    const quality = this.quality;
    if (quality === 1 && !anew) return;
    this.quality = 1;
    this.refit = true;
    this.render();
    this.quality = quality;
    this.refit = true;
    this.judgedAt = performance.now();
    this.drawn = this.frames;
  }

  rebuild(): void {
    if (!this.store.scene) return;
    this.terrain.build(this.store.scene, this.dark);
    this.bodies.reset();
    this.home();
  }

  /** The whole scene, seen from the south-east and above. */
  home(): void {
    const [n, e, d] = this.terrain.middle, r = this.terrain.extent;
    this.mode = "free";
    this.controls.enableRotate = true;
    this.controls.target.copy(this.heights.place(n, e, d));
    this.camera.up.set(0, 1, 0);
    this.camera.position.set(...toThree(n - 1.0 * r, e + 0.58 * r, -0.66 * r)).setY(0.66 * r + this.controls.target.y + d);
    this.controls.update();
  }

  /** Look from a place to another, both in three's axes. */
  look(eye: number[], target: number[]): void {
    this.camera.position.fromArray(eye);
    this.controls.target.fromArray(target);
    this.controls.update();
  }

  setMode(mode: CameraMode): void {
    this.mode = mode;
    this.followed = null;
    this.controls.enableRotate = mode !== "top";
    if (mode === "top") {
      const t = this.controls.target, far = Math.max(this.camera.position.distanceTo(t), this.terrain.extent * 1.15);
      this.camera.position.set(t.x, t.y + far, t.z + 0.001 * far); // a little south: north is up
      this.controls.update();
    } else if (mode === "follow" && this.chosenAt() === null) this.mode = "free";
  }

  private chosenAt(): THREE.Vector3 | null {
    const k = this.store.chosen === null ? undefined : this.store.index.get(this.store.chosen);
    return k === undefined ? null : this.at(k);
  }

  /** Where body k is drawn. */
  private at(k: number): THREE.Vector3 { return this.heights.place(this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!); }

  /** Draw heights so many times larger, and look at the same place. */
  stretch(factor: number): void {
    const ratio = factor / this.heights.factor;
    this.heights.factor = factor;
    const lift = this.controls.target.y * (ratio - 1);
    this.camera.position.y += lift;
    this.controls.target.y += lift;
    this.followed = null;
    this.controls.update();
  }

  /** Bring a body close. */
  goTo(row: number): void {
    const k = this.store.index.get(row);
    if (k === undefined) return;
    const p = this.at(k);
    const size = this.bodies.model(this.store, this.store.bodies.get(row)?.model ?? "").shape.size[0];
    const away = this.camera.position.clone().sub(this.controls.target).setLength(Math.max(4.5 * size, 3));
    this.controls.target.copy(p);
    this.camera.position.copy(p).add(away);
    this.controls.update();
  }

  private ray(e: MouseEvent): THREE.Raycaster {
    const box = this.canvas.getBoundingClientRect();
    const ray = new THREE.Raycaster();
    ray.setFromCamera(new THREE.Vector2(((e.clientX - box.left) / box.width) * 2 - 1, 1 - ((e.clientY - box.top) / box.height) * 2), this.camera);
    return ray;
  }

  private clicked(e: MouseEvent): void {
    const box = this.canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    let row = this.bodies.pick(this.ray(e), this.store.kit?.row ?? null);
    if (row === null) { // near enough to a label's point
      let near = 18;
      for (let k = 0; k < this.store.rows.length; k++) {
        const p = this.project(k);
        if (p && Math.hypot(p[0] - x, p[1] - y) < near) { near = Math.hypot(p[0] - x, p[1] - y); row = this.store.rows[k]!; }
      }
    }
    this.choose(row);
    if (row !== null) this.open(row);
  }

  private readonly projected = new THREE.Vector3();
  /** Place of body k on the canvas, null behind the camera. */
  project(k: number): [number, number] | null {
    const p = this.projected.copy(this.at(k)).project(this.camera);
    if (p.z > 1 || p.z < -1) return null;
    return [((p.x + 1) / 2) * this.canvas.clientWidth, ((1 - p.y) / 2) * this.canvas.clientHeight];
  }

  private resize(): boolean {
    const w = this.canvas.clientWidth, hh = this.canvas.clientHeight, ratio = Math.min(window.devicePixelRatio, 2);
    if (!w || !hh) return false;
    if (this.over.width !== Math.round(w * ratio) || this.over.height !== Math.round(hh * ratio) || this.refit || this.judge()) {
      this.refit = false;
      this.renderer.setPixelRatio(ratio * this.quality);
      this.sounds.scale(ratio * this.quality);
      this.renderer.setSize(w, hh, false);
      this.over.width = Math.round(w * ratio);
      this.over.height = Math.round(hh * ratio);
      this.camera.aspect = w / hh;
      this.camera.updateProjectionMatrix();
    }
    return true;
  }

  /** Coarser pictures where the machine is too slow for smooth motion, finer ones where it has time. True = changed. */
  private judge(): boolean {
    const now = performance.now(), seconds = (now - this.judgedAt) / 1000;
    if (seconds < 1.5 || this.steady) return false;
    const rate = (this.frames - this.drawn) / seconds, before = this.quality;
    this.drawn = this.frames;
    this.judgedAt = now;
    if (rate < 20) this.quality = Math.max(COARSEST, this.quality * 0.75);
    else if (rate > 50) this.quality = Math.min(1, this.quality * 1.15);
    return this.quality !== before;
  }

  private move(dt: number): void {
    const speed = this.camera.position.distanceTo(this.controls.target) * dt * 0.9;
    const ahead = this.controls.target.clone().sub(this.camera.position).setY(0);
    if (ahead.lengthSq() < 1e-9) ahead.set(0, 0, -1);
    ahead.normalize();
    const side = new THREE.Vector3(-ahead.z, 0, ahead.x), step = new THREE.Vector3();
    const key = (a: string, b: string): number => (this.keys.has(a) || this.keys.has(b) ? 1 : 0);
    step.addScaledVector(ahead, key("KeyW", "ArrowUp") - key("KeyS", "ArrowDown"));
    step.addScaledVector(side, key("KeyD", "ArrowRight") - key("KeyA", "ArrowLeft"));
    step.y += key("KeyE", "PageUp") - key("KeyQ", "PageDown");
    if (step.lengthSq()) {
      step.multiplyScalar(speed);
      this.camera.position.add(step);
      this.controls.target.add(step);
      if (this.mode === "follow") this.mode = "free";
    }
  }

  /** One picture; ``main`` false: only the view from on board (the chart is shown). */
  render(main = true): void {
    if (!this.resize()) return;
    const now = performance.now(), dt = Math.min((now - this.before) / 1000, 0.1), s = this.store;
    this.before = now;
    this.move(dt);
    if (this.mode === "follow") {
      const p = this.chosenAt();
      if (p) {
        if (this.followed) this.camera.position.add(p.clone().sub(this.followed));
        this.controls.target.copy(p);
        this.followed = p;
      }
    }
    this.controls.update();
    if (s.last?.state === 1 && !s.lost) this.ripples += dt; // the sea stands still with the time
    this.terrain.surface.material.uniforms["time"]!.value = this.ripples;
    this.terrain.surface.visible = this.show.surface;
    this.terrain.surface.position.y = s.last?.level ?? 0;
    this.sounds.update(s, this.show.spheres);
    this.trails();
    this.working.update(dt, this.show);
    if (this.onboard) this.renderOnboard(this.onboard);
    this.frames++;
    if (!main) return;
    this.beliefs.update(this.dark);
    this.working.point(this.show.arrows, this.heights.factor, this.controls.target, Math.min(this.camera.position.distanceTo(this.controls.target), this.terrain.extent * 1.5), (size, at) => this.larger(size, at.distanceTo(this.camera.position)));
    this.view(this.camera, 0, 0, this.canvas.clientWidth, this.canvas.clientHeight, -1);
    this.overlay();
    const heading = Math.atan2(this.controls.target.x - this.camera.position.x, -(this.controls.target.z - this.camera.position.z)) * (180 / Math.PI);
    compassCard(this.compass, this.mode === "top" ? 0 : bearing(heading), 1);
  }

  /** How much larger than it is a body of a size is drawn from so far away. */
  private larger(size: number, far: number): number {
    const limit = Math.tan(THREE.MathUtils.degToRad(this.camera.fov / 2)) / Math.max(this.canvas.clientHeight, 1);
    return this.show.magnify ? Math.max(1, (46 * limit * far) / size) : 1;
  }

  private view(camera: THREE.PerspectiveCamera, x: number, y: number, w: number, hh: number, hide: number): void {
    this.bodies.heights = this.heights.factor;
    this.bodies.place(this.store, camera, camera === this.camera ? (size, far) => this.larger(size, far) : () => 1, hide);
    const under = camera.position.y < (this.store.last?.level ?? 0) * this.heights.factor, back = new THREE.Color(under ? (this.dark ? "#06304a" : "#8cc4dd") : css("--bg"));
    this.scene.background = back;
    const fog = this.scene.fog as THREE.FogExp2;
    fog.color = back;
    fog.density = under ? Math.max(0.9 / this.terrain.extent, 0.0012) : 0.22 / this.terrain.extent;
    this.renderer.setViewport(x, y, w, hh);
    this.renderer.setScissor(x, y, w, hh);
    this.renderer.render(this.scene, camera);
  }

  private renderOnboard(o: Onboard): void {
    const k = this.store.index.get(o.row);
    if (k === undefined) return;
    const q = this.store.quaternion.subarray(4 * k, 4 * k + 4), p = this.store.ned.subarray(3 * k, 3 * k + 3);
    const model = this.bodies.model(this.store, this.store.bodies.get(o.row)?.model ?? "");
    this.eye.quaternion.set(...quaternionToThree(q[0]!, q[1]!, q[2]!, q[3]!));
    // at the front, a hand's breadth ahead of it
    this.eye.position.set(...toThree(p[0]!, p[1]!, p[2]!)).add(new THREE.Vector3(0, 0, -(model.shape.size[0] / 2 + 0.1)).applyQuaternion(this.eye.quaternion));
    const w = Math.min(o.picture.clientWidth, this.canvas.clientWidth), hh = Math.min(o.picture.clientHeight, this.canvas.clientHeight);
    if (w < 8 || hh < 8) return;
    this.eye.aspect = w / hh;
    this.eye.updateProjectionMatrix();
    this.working.arrows(false);
    const factor = this.heights.factor;
    this.heights.factor = 1; // who is on board sees it as it is
    this.view(this.eye, 0, 0, w, hh, o.row);
    this.heights.factor = factor;
    this.working.arrows(true);
    // drawn into a corner of the one canvas, taken from there before the main view covers it
    const ratio = this.renderer.getPixelRatio(), pw = Math.round(w * ratio), ph = Math.round(hh * ratio);
    if (o.picture.width !== pw || o.picture.height !== ph) { o.picture.width = pw; o.picture.height = ph; }
    o.picture.getContext("2d")!.drawImage(this.canvas, 0, this.canvas.height - ph, pw, ph, 0, 0, pw, ph);
    const [roll, pitch, heading] = euler(q[0]!, q[1]!, q[2]!, q[3]!);
    hud(o.overlay, { roll, pitch, heading: bearing(heading), depth: p[2]!, speed: this.store.speed[k]!, altitude: this.altitude() });
    compassCard(o.compass, bearing(heading), 0.8);
  }

  private altitude(): number | null {
    const values = this.store.panel?.row === this.onboard?.row ? this.store.panel?.sensors : undefined, kit = this.store.kit;
    for (const [type, field] of [["echosounder", "range"], ["dvl", "altitude"]] as const)
      for (const s of kit?.row === this.onboard?.row ? kit?.sensors ?? [] : []) {
        const v = s.type === type ? values?.[s.name] : undefined, told = v?.valid ? v.fields[field] : null;
        if (typeof told === "number") return told;
      }
    return null;
  }

  // -- ways -------------------------------------------------------------------------------------------

  /** Ways of a log, known from its first moment to its last. */
  wholeTracks(): void {
    for (const line of this.tracks) { this.heights.sea.remove(line); line.geometry.dispose(); }
    this.tracks = [];
    for (const [row, track] of this.store.tracks) {
      if (!track.whole) continue;
      for (const [points, times, c, opacity] of [[track.ned, track.time, colour(row), 0.9], [track.believed, track.believedTime, this.dark ? "#ffffff" : "#12283a", 0.75]] as const) {
        const position = new Float32Array(points.length);
        for (let k = 0; k < points.length; k += 3) position.set(toThree(points[k]!, points[k + 1]!, points[k + 2]!), k);
        const g = new THREE.BufferGeometry();
        g.setAttribute("position", new THREE.BufferAttribute(position, 3));
        const line = new THREE.Line(g, new THREE.LineBasicMaterial({ color: c, transparent: true, opacity }));
        line.frustumCulled = false;
        line.userData = { times };
        this.tracks.push(line);
        this.heights.sea.add(line);
      }
    }
  }

  /** Whether what is drawn changes by itself. */
  busy(): boolean { return this.keys.size > 0 || this.sounds.rays.length > 0 || this.store.moving(); }

  /** Ways that were there before this page. */
  history(): void {
    this.clearTrails();
    this.wholeTracks();
    for (const [row, track] of this.store.tracks) {
      if (track.whole) continue;
      for (let k = 0; k < track.time.length; k++) this.extend(row, [track.ned[3 * k]!, track.ned[3 * k + 1]!, track.ned[3 * k + 2]!], 0.6);
    }
    this.uploaded = -TRAIL; // all of it
  }

  clearTrails(): void {
    this.ends.clear();
    this.pieces = this.uploaded = 0;
    this.trail.geometry.setDrawRange(0, 0);
  }

  private trails(): void {
    this.trail.visible = this.show.trails;
    for (const line of this.tracks) {
      line.visible = this.show.trails;
      const times = line.userData["times"] as number[];
      let a = 0, b = times.length;
      while (a < b) { const m = (a + b) >> 1; if (times[m]! <= this.store.time) a = m + 1; else b = m; }
      line.geometry.setDrawRange(0, a);
    }
    if (this.store.hello?.kind === "replay") return;
    const least = this.store.rows.length > 200 ? 3 : 0.6;
    for (let k = 0; k < this.store.rows.length; k++)
      if (this.store.condition[k] !== WILD) this.extend(this.store.rows[k]!, [this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!], least);
    const n = this.pieces - this.uploaded;
    if (n <= 0) return;
    const from = this.uploaded < 0 ? 0 : this.uploaded % TRAIL;
    for (const a of this.trailParts()) {
      if (this.uploaded >= 0 && from + n <= TRAIL) a.addUpdateRange(6 * from, 6 * n);
      a.needsUpdate = true;
    }
    this.uploaded = this.pieces;
    this.trail.geometry.setDrawRange(0, 2 * Math.min(this.pieces, TRAIL));
  }

  private trailParts(): THREE.BufferAttribute[] { return ["position", "color"].map((n) => this.trail.geometry.getAttribute(n) as THREE.BufferAttribute); }

  /** A piece of a body's way, when it is long enough. */
  private extend(row: number, to: [number, number, number], least: number): void {
    const from = this.ends.get(row);
    if (!from) { this.ends.set(row, to); return; }
    const far = Math.hypot(to[0] - from[0], to[1] - from[1], to[2] - from[2]);
    if (!(far >= least)) return;
    this.ends.set(row, to);
    if (far > 200 || this.store.bodies.get(row)?.type === "buoy") return; // it was put there, or it only swings
    const at = this.pieces++ % TRAIL, tint = new THREE.Color(colour(row)), [p, c] = this.trailParts() as [THREE.BufferAttribute, THREE.BufferAttribute];
    p.setXYZ(2 * at, ...toThree(...from));
    p.setXYZ(2 * at + 1, ...toThree(...to));
    for (const i of [0, 1]) c.setXYZ(2 * at + i, tint.r, tint.g, tint.b);
  }

  // -- names and numbers over the picture ------------------------------------------------------------------

  private overlay(): void {
    const c = pen(this.over), ratio = this.over.width / Math.max(this.canvas.clientWidth, 1);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, this.canvas.clientWidth, this.canvas.clientHeight);
    this.depths = [];
    if (!this.show.labels && this.heights.factor === 1) return;
    c.font = "600 12px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.lineJoin = "round";
    const halo = this.dark ? "#04101acc" : "#ffffffdd", ink = css("--ink");
    const text = (t: string, x: number, y: number, fill: string): void => {
      c.lineWidth = 3.5;
      c.strokeStyle = halo;
      c.strokeText(t, x, y);
      c.fillStyle = fill;
      c.fillText(t, x, y);
    };
    if (this.heights.factor !== 1) this.depths = this.heights.scale(c, text, this.camera, this.canvas.clientWidth, this.canvas.clientHeight, this.terrain.middle, this.terrain.extent, this.terrain.deepest);
    if (!this.show.labels) return;
    const many = this.store.rows.length > LABELS;
    const perPixel = (2 * Math.tan(THREE.MathUtils.degToRad(this.camera.fov / 2))) / this.canvas.clientHeight;
    let drawn = 0;
    const taken: [number, number, number, number][] = [];
    const free = (x: number, y: number, w: number, hgt: number): boolean => {
      if (taken.some((b) => x < b[0] + b[2] && b[0] < x + w && y < b[1] + b[3] && b[1] < y + hgt)) return false;
      taken.push([x, y, w, hgt]);
      return true;
    };
    for (let k = 0; k < this.store.rows.length && drawn < LABELS; k++) {
      const row = this.store.rows[k]!, chosen = row === this.store.chosen;
      const body = this.store.bodies.get(row);
      if (!body) continue;
      const far = this.camera.position.distanceTo(this.at(k));
      if (many && !chosen && far > 120) continue;
      const p = this.project(k);
      if (!p) continue;
      drawn++;
      const near = far * perPixel * 60 < this.bodies.model(this.store, body.model).shape.size[0]; // it is seen well enough
      if (!near) {
        c.fillStyle = colour(row);
        c.beginPath();
        c.arc(p[0], p[1], chosen ? 4.5 : 3, 0, 7);
        c.fill();
      }
      if (chosen && !near) {
        c.strokeStyle = colour(row);
        c.lineWidth = 1.5;
        c.beginPath();
        c.arc(p[0], p[1], 13, 0, 7);
        c.stroke();
      }
      if (!free(p[0] + 9, p[1] - 17, 12 + 7 * body.name.length, 16) && !chosen) continue;
      const condition = CONDITIONS[this.store.condition[k]!];
      text(condition ? `⚠ ${body.name}` : body.name, p[0] + 9, p[1] - 9, condition ? css("--bad") : ink);
      if (body.type !== "buoy" && !many && free(p[0] + 9, p[1] - 1, 105, 13)) {
        c.font = "11px system-ui, sans-serif";
        text(`${number(this.store.ned[3 * k + 2], 1)} m  ${number(this.store.speed[k], 2)} m/s`, p[0] + 9, p[1] + 5, css("--soft"));
        c.font = "600 12px system-ui, sans-serif";
      }
    }
    c.font = "11px system-ui, sans-serif";
    this.instruments(text, free, perPixel);
    for (const r of this.sounds.rays.slice(-14)) {
      if (!r.text) continue;
      const p = this.projected.copy(this.heights.place(...r.to)).project(this.camera);
      if (p.z > 1) continue;
      text(r.text, ((p.x + 1) / 2) * this.canvas.clientWidth - 20, ((1 - p.y) / 2) * this.canvas.clientHeight + 22, r.heard ? css("--good") : css("--bad"));
    }
    this.scale(c, text, ink);
  }

  /** Names of the chosen body's instruments, where it is drawn large enough to tell them apart. */
  private instruments(text: (t: string, x: number, y: number, f: string) => void, free: (x: number, y: number, w: number, h: number) => boolean, perPixel: number): void {
    const moving = this.bodies.moving, size = this.store.kit ? this.bodies.model(this.store, this.store.bodies.get(this.store.kit.row)?.model ?? "").shape.size[0] : 0;
    if (!moving.group.visible || this.camera.position.distanceTo(moving.group.position) * perPixel * 220 > size * moving.group.scale.x) return;
    for (const mark of moving.marks.children) {
      const p = mark.getWorldPosition(this.projected).project(this.camera), x = ((p.x + 1) / 2) * this.canvas.clientWidth + 7, y = ((1 - p.y) / 2) * this.canvas.clientHeight;
      if (p.z < 1 && free(x, y - 6, 6.5 * mark.name.length, 12)) text(mark.name, x, y, css("--good"));
    }
  }

  /** A bar that tells lengths at the middle of the view. */
  private scale(c: CanvasRenderingContext2D, text: (t: string, x: number, y: number, f: string) => void, ink: string): void {
    const far = this.camera.position.distanceTo(this.controls.target);
    const perPixel = (2 * far * Math.tan(THREE.MathUtils.degToRad(this.camera.fov / 2))) / this.canvas.clientHeight;
    const raw = 110 * perPixel, ten = 10 ** Math.floor(Math.log10(raw)), length = [5, 2, 1].map((f) => f * ten).find((s) => s <= raw) ?? ten;
    const w = length / perPixel, x = this.canvas.clientWidth - w - 16, y = this.canvas.clientHeight - 18;
    c.strokeStyle = ink;
    c.lineWidth = 1.5;
    text(scaleBar(c, x, y, w, length), x + 4, y - 11, ink);
  }
}
