// 3D view: one renderer with a main camera, and an onboard view of a vehicle in a separate window.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { NavigationEstimates } from "./navigation_estimates";
import { Mosaic3D } from "./mosaic3d";
import { BodyMeshes } from "./body_meshes";
import { Cables } from "./cables3d";
import { Fences } from "./fences3d";
import { drawCompassCard, drawHud } from "./compass_hud";
import { Traffic3D } from "./traffic3d";
import { cssVariable } from "./dom";
import { makeEnvironment } from "./environment";
import { wrapDegrees, euler, quaternionToThree, toThree } from "./coordinate_frames";
import { VerticalExaggeration } from "./vertical_exaggeration";
import { isTypedIntoField } from "./keyboard";
import { Labels3D } from "./view3d_labels";
import { SOFTWARE_RENDERING, deviceRatio, pageZoom } from "./canvas";
import { AdaptiveResolution, type ResolutionSetting } from "./resolution";
import { sceneLights } from "./lights";
import { skyColours, Sky } from "./sky";
import { AcousticSignals } from "./acoustic_signals";
import type { SceneStore } from "./scene_store";
import type { Layers } from "./stage";
import { WaterSurface } from "./water_surface";
import { Terrain } from "./terrain";
import { Trails } from "./trails";
import { BodyAnimation } from "./animation";

export type CameraMode = "free" | "follow" | "top";

export interface OnboardCanvases {
  row: number;
  picture: HTMLCanvasElement;
  overlay: HTMLCanvasElement;
  compass: HTMLCanvasElement;
}

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
  readonly bodies: BodyMeshes;
  private environment: THREE.Texture | null = null;
  readonly sounds = new AcousticSignals();
  readonly heights = new VerticalExaggeration();
  readonly surface = new WaterSurface();
  readonly sky = new Sky();
  readonly trails: Trails;
  readonly names = new Labels3D(this);
  mode: CameraMode = "free";
  onboard: OnboardCanvases | null = null;
  frames = 0;
  readonly resolution = new AdaptiveResolution(performance.now());
  private refit = false; // sizes are set again with the next picture
  private readonly beliefs: NavigationEstimates;
  readonly working: BodyAnimation;
  dark = true;
  readonly cables = new Cables();
  readonly fences = new Fences();
  private readonly crossings: Traffic3D;
  readonly mosaic: Mosaic3D;
  private followed: THREE.Vector3 | null = null;
  private readonly keys = new Set<string>();
  private before = performance.now();

  constructor(
    readonly store: SceneStore,
    private readonly choose: (row: number | null) => void,
    private readonly open: (row: number) => void,
    private readonly changed: () => void,
    readonly show: Layers,
  ) {
    this.renderer = new THREE.WebGLRenderer({
      canvas: this.canvas,
      antialias: !SOFTWARE_RENDERING,
      powerPreference: "high-performance",
    });
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
    this.bodies = new BodyMeshes(
      () => (this.environment ??= makeEnvironment(this.renderer)),
      () => this.changed(),
    );
    this.trails = new Trails(store);
    this.crossings = new Traffic3D(store);
    this.mosaic = new Mosaic3D(store.mosaic);
    this.beliefs = new NavigationEstimates(store);
    this.working = new BodyAnimation(store, this.bodies);
    this.heights.sea.add(
      this.terrain.group,
      this.surface.mesh,
      this.sounds.group,
      this.trails.group,
      this.beliefs.group,
      this.working.group,
      this.crossings.lines,
      this.mosaic.group,
      this.cables.lines,
      this.fences.lines,
    );
    this.scene.add(
      ...sceneLights(),
      this.sky.mesh,
      this.heights.sea,
      this.working.pointers,
      this.bodies.group,
      this.bodies.moving.group,
    );
    this.theme(true);
    let down: [number, number] = [0, 0];
    this.canvas.addEventListener("pointerdown", (e) => {
      down = [e.clientX, e.clientY];
      this.canvas.focus();
    });
    this.canvas.addEventListener("pointerup", (e) => {
      if (Math.hypot(e.clientX - down[0], e.clientY - down[1]) < 4) this.clicked(e);
    });
    window.addEventListener("keydown", (e) => {
      if (!isTypedIntoField(e)) this.keys.add(e.code);
    });
    window.addEventListener("keyup", (e) => this.keys.delete(e.code));
    window.addEventListener("blur", () => this.keys.clear());
  }

  theme(dark: boolean): void {
    this.dark = this.sounds.dark = dark;
    this.scene.fog = new THREE.FogExp2("#000000", 0.0004); // colour and density are set with each view
    this.sky.theme(dark);
    this.fences.theme();
    this.trails.theme(dark);
    this.build();
  }

  /** Build the static scene. */
  build(): void {
    if (!this.store.scene) return;
    this.terrain.build(this.store.scene, this.dark);
    this.surface.theme(this.dark, this.terrain.extent);
  }

  /** Set how the resolution is chosen. */
  setResolution(setting: ResolutionSetting): void {
    this.resolution.set(setting, performance.now());
    this.refit = true;
    this.changed();
  }

  /**
   * Draw the final picture before a pause at screen resolution, however long it takes. ``anew``: also if the last one
   * was sharp.
   */
  still(anew = false): void {
    const { share } = this.resolution;
    if (share !== 1 || anew) {
      this.resolution.share = 1;
      this.refit = true;
      this.render();
      this.resolution.share = share;
      this.refit = share !== 1;
    }
    this.resolution.restart(performance.now());
  }

  rebuild(): void {
    if (!this.store.scene) return;
    this.build();
    this.bodies.reset();
    this.home();
  }

  /** Show the whole scene from the south-east and above. */
  home(): void {
    const [n, e, d] = this.terrain.middle,
      r = this.terrain.extent;
    this.mode = "free";
    this.controls.enableRotate = true;
    this.controls.target.copy(this.heights.place(n, e, d));
    this.camera.up.set(0, 1, 0);
    this.camera.position
      .set(...toThree(n - 1.0 * r, e + 0.58 * r, -0.66 * r))
      .setY(0.66 * r + this.controls.target.y + d);
    this.controls.update();
  }

  /** Look from one position to another, both in three.js axes. */
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
      const t = this.controls.target,
        far = Math.max(this.camera.position.distanceTo(t), this.terrain.extent * 1.15);
      this.camera.position.set(t.x, t.y + far, t.z + 0.001 * far); // slightly from the south, so that north is up
      this.controls.update();
    } else if (mode === "follow" && this.chosenAt() === null) this.mode = "free";
  }

  private chosenAt(): THREE.Vector3 | null {
    const k = this.store.chosen === null ? undefined : this.store.index.get(this.store.chosen);
    return k === undefined ? null : this.at(k);
  }

  /** Drawn position of body k. */
  at(k: number): THREE.Vector3 {
    return this.heights.place(this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!);
  }

  /** Set the vertical exaggeration and keep looking at the same point. */
  stretch(factor: number): void {
    const ratio = factor / this.heights.factor;
    this.heights.factor = factor;
    const lift = this.controls.target.y * (ratio - 1);
    this.camera.position.y += lift;
    this.controls.target.y += lift;
    this.followed = null;
    this.controls.update();
  }

  /** Move the camera close to a body. */
  goTo(row: number): void {
    const k = this.store.index.get(row);
    if (k === undefined) return;
    const p = this.at(k);
    const size = this.bodies.model(this.store, this.store.bodies.get(row)?.model ?? "").shape.size[0];
    const away = this.camera.position
      .clone()
      .sub(this.controls.target)
      .setLength(Math.max(4.5 * size, 3));
    this.controls.target.copy(p);
    this.camera.position.copy(p).add(away);
    this.controls.update();
  }

  private ray(e: MouseEvent): THREE.Raycaster {
    const box = this.canvas.getBoundingClientRect();
    const ray = new THREE.Raycaster();
    ray.setFromCamera(
      new THREE.Vector2(((e.clientX - box.left) / box.width) * 2 - 1, 1 - ((e.clientY - box.top) / box.height) * 2),
      this.camera,
    );
    return ray;
  }

  private clicked(e: MouseEvent): void {
    const box = this.canvas.getBoundingClientRect(),
      x = (e.clientX - box.left) / pageZoom(),
      y = (e.clientY - box.top) / pageZoom();
    let row = this.bodies.pick(this.ray(e), this.store.kit?.row ?? null);
    if (row === null) {
      // close enough to a label's point
      let near = 18;
      for (let k = 0; k < this.store.rows.length; k++) {
        const p = this.project(k);
        if (p && Math.hypot(p[0] - x, p[1] - y) < near) {
          near = Math.hypot(p[0] - x, p[1] - y);
          row = this.store.rows[k]!;
        }
      }
    }
    this.choose(row);
    if (row !== null) this.open(row);
  }

  private readonly projected = new THREE.Vector3();
  /** Canvas position of body k, null behind the camera. */
  project(k: number): [number, number] | null {
    const p = this.projected.copy(this.at(k)).project(this.camera);
    if (p.z > 1 || p.z < -1) return null;
    return [((p.x + 1) / 2) * this.canvas.clientWidth, ((1 - p.y) / 2) * this.canvas.clientHeight];
  }

  private resize(): boolean {
    const w = this.canvas.clientWidth,
      hh = this.canvas.clientHeight,
      ratio = deviceRatio();
    if (!w || !hh) return false;
    if (this.over.width !== Math.round(w * ratio) || this.over.height !== Math.round(hh * ratio) || this.refit) {
      this.refit = false;
      this.renderer.setPixelRatio(ratio * this.resolution.share);
      this.sounds.scale(ratio * this.resolution.share);
      this.renderer.setSize(w, hh, false);
      this.over.width = Math.round(w * ratio);
      this.over.height = Math.round(hh * ratio);
      this.camera.aspect = w / hh;
      this.camera.updateProjectionMatrix();
    }
    return true;
  }

  private move(dt: number): void {
    const speed = this.camera.position.distanceTo(this.controls.target) * dt * 0.9;
    const ahead = this.controls.target.clone().sub(this.camera.position).setY(0);
    if (ahead.lengthSq() < 1e-9) ahead.set(0, 0, -1);
    ahead.normalize();
    const side = new THREE.Vector3(-ahead.z, 0, ahead.x),
      step = new THREE.Vector3();
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

  /** Draw one picture; ``main`` false: only the onboard view (the chart is shown). */
  render(main = true): void {
    if (!this.resize()) return;
    const now = performance.now(),
      dt = Math.min((now - this.before) / 1000, 0.1),
      s = this.store;
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
    this.surface.mesh.visible = this.show.surface;
    this.mosaic.update(s.scene?.bed);
    this.sounds.update(s, this.show.spheres);
    this.trails.update(this.show.trails);
    this.cables.update(s.cables, this.dark);
    this.fences.update(s.fences, this.terrain.deepest);
    this.working.update(dt, this.show);
    if (this.onboard) this.renderOnboard(this.onboard);
    this.frames++;
    if (!main) return;
    this.crossings.update(this.show.traffic);
    this.beliefs.update(this.dark);
    this.working.point(
      this.show.arrows,
      this.heights.factor,
      this.controls.target,
      Math.min(this.camera.position.distanceTo(this.controls.target), this.terrain.extent * 1.5),
      (size, at) => this.larger(size, at.distanceTo(this.camera.position)),
    );
    this.view(this.camera, 0, 0, this.canvas.clientWidth, this.canvas.clientHeight, -1);
    this.names.draw();
    const heading =
      Math.atan2(this.controls.target.x - this.camera.position.x, -(this.controls.target.z - this.camera.position.z)) *
      (180 / Math.PI);
    drawCompassCard(this.compass, this.mode === "top" ? 0 : wrapDegrees(heading), 1);
    if (this.resolution.count(performance.now())) this.refit = true;
  }

  /** Enlargement of a body of a given size at a distance. */
  private larger(size: number, far: number): number {
    const limit = Math.tan(THREE.MathUtils.degToRad(this.camera.fov / 2)) / Math.max(this.canvas.clientHeight, 1);
    return this.show.magnify ? Math.max(1, (46 * limit * far) / size) : 1;
  }

  private view(camera: THREE.PerspectiveCamera, x: number, y: number, w: number, hh: number, hide: number): void {
    this.bodies.heights = this.heights.factor;
    this.bodies.place(
      this.store,
      camera,
      camera === this.camera ? (size, far) => this.larger(size, far) : () => 1,
      hide,
    );
    const under = camera.position.y < this.waterAt(camera.position) * this.heights.factor,
      back = new THREE.Color(under ? (this.dark ? "#06304a" : "#8cc4dd") : cssVariable("--bg"));
    this.scene.background = back;
    this.sky.mesh.visible = this.show.sky && !under;
    this.sky.around(camera);
    if (this.show.sky && !under) back.set(skyColours(this.dark).horizon);
    if (this.show.surface) this.lay(camera);
    const fog = this.scene.fog as THREE.FogExp2;
    fog.color = back;
    fog.density = under ? Math.max(0.9 / this.terrain.extent, 0.0012) : 0.22 / this.terrain.extent;
    this.renderer.setViewport(x, y, w, hh);
    this.renderer.setScissor(x, y, w, hh);
    this.renderer.render(this.scene, camera);
  }

  /** Height (m, up) of the drawn water surface at a position in three.js axes. */
  private waterAt(p: THREE.Vector3): number {
    return (
      (this.store.last?.level ?? 0) +
      (this.show.surface && this.show.waves ? (this.store.sea?.at(this.store.time, -p.z, p.x) ?? 0) : 0)
    );
  }

  /** Refine the water surface where a camera sees it best: at the point it looks at, or ahead of it if it is low. */
  private lay(camera: THREE.PerspectiveCamera): void {
    const eye = camera.position,
      t = camera === this.camera ? this.controls.target : eye,
      s = this.store;
    const away = Math.hypot(t.x - eye.x, t.z - eye.z),
      low = 3 * Math.abs(eye.y / this.heights.factor - (s.last?.level ?? 0)),
      f = away > low ? low / away : 1;
    const x = eye.x + f * (t.x - eye.x),
      z = eye.z + f * (t.z - eye.z);
    this.surface.fit(
      this.show.waves ? s.sea : null,
      s.time,
      s.last?.level ?? 0,
      [-z, x],
      Math.hypot(x - eye.x, eye.y, z - eye.z),
      this.terrain.extent,
      this.heights.factor,
    );
  }

  private renderOnboard(o: OnboardCanvases): void {
    const k = this.store.index.get(o.row);
    if (k === undefined) return;
    const q = this.store.quaternion.subarray(4 * k, 4 * k + 4),
      p = this.store.ned.subarray(3 * k, 3 * k + 3);
    const model = this.bodies.model(this.store, this.store.bodies.get(o.row)?.model ?? "");
    this.eye.quaternion.set(...quaternionToThree(q[0]!, q[1]!, q[2]!, q[3]!));
    // at the bow, 0.1 m ahead of it
    this.eye.position
      .set(...toThree(p[0]!, p[1]!, p[2]!))
      .add(new THREE.Vector3(0, 0, -(model.shape.size[0] / 2 + 0.1)).applyQuaternion(this.eye.quaternion));
    const w = Math.min(o.picture.clientWidth, this.canvas.clientWidth),
      hh = Math.min(o.picture.clientHeight, this.canvas.clientHeight);
    if (w < 8 || hh < 8) return;
    this.eye.aspect = w / hh;
    this.eye.updateProjectionMatrix();
    this.working.arrows(false);
    this.crossings.lines.visible = false;
    const factor = this.heights.factor;
    this.heights.factor = 1; // the onboard view is not exaggerated
    this.view(this.eye, 0, 0, w, hh, o.row);
    this.heights.factor = factor;
    this.working.arrows(true);
    // drawn into a corner of the shared canvas and copied before the main view covers it
    const ratio = this.renderer.getPixelRatio(),
      pw = Math.round(w * ratio),
      ph = Math.round(hh * ratio);
    if (o.picture.width !== pw || o.picture.height !== ph) {
      o.picture.width = pw;
      o.picture.height = ph;
    }
    o.picture.getContext("2d")!.drawImage(this.canvas, 0, this.canvas.height - ph, pw, ph, 0, 0, pw, ph);
    const [roll, pitch, heading] = euler(q[0]!, q[1]!, q[2]!, q[3]!);
    drawHud(o.overlay, {
      roll,
      pitch,
      heading: wrapDegrees(heading),
      depth: p[2]!,
      flies: this.store.bodies.get(o.row)?.type === "aircraft",
      speed: this.store.speed[k]!,
      altitude: this.altitude(),
    });
    drawCompassCard(o.compass, wrapDegrees(heading), 0.8);
  }

  private altitude(): number | null {
    const values = this.store.panel?.row === this.onboard?.row ? this.store.panel?.sensors : undefined,
      kit = this.store.kit;
    for (const [type, field] of [
      ["echosounder", "range"],
      ["dvl", "altitude"],
    ] as const)
      for (const s of kit?.row === this.onboard?.row ? (kit?.sensors ?? []) : []) {
        const v = s.type === type ? values?.[s.name] : undefined,
          value = v?.valid ? v.fields[field] : null;
        if (typeof value === "number") return value;
      }
    return null;
  }

  /** Add tracks from before this page was opened. */
  history(): void {
    this.trails.history(this.dark);
  }

  /** True if the picture changes without new data. */
  busy(): boolean {
    return this.keys.size > 0 || this.sounds.rays.length > 0 || this.store.moving();
  }
}
