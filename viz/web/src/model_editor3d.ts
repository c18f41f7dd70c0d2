// The model in 3D, with a handle for every part that has a position, and gizmos to move and rotate it.

import * as THREE from "three";
import { OrbitControls } from "three/addons/controls/OrbitControls.js";
import { TransformControls } from "three/addons/controls/TransformControls.js";
import { bodyMaterial, bodyGeometry } from "./body_shapes";
import { cssVariable } from "./dom";
import { fromThree, toThree } from "./coordinate_frames";
import { parseMetres, nameOf, parseVector, formatMetres, formatNumbers } from "./xml_tree";
import { context2d, deviceRatio } from "./canvas";
import { HullDrawing, type SurfacePoint } from "./hull_drawing";
import type { HullProperties, InstrumentInfo, ModelInfo, XmlTree } from "./page_protocol";

const KINDS: Record<
  string,
  { key: string; colour: string; label: (t: XmlTree) => string; aim?: "direction" | "attitude" }
> = {
  thruster: { key: "position", colour: "#ffd166", label: (t) => t.attributes["name"] ?? "thruster", aim: "direction" },
  fin: { key: "position", colour: "#d1495b", label: (t) => t.attributes["name"] ?? "fin" },
  ballast: { key: "position", colour: "#8d99a6", label: (t) => t.attributes["name"] ?? "ballast" },
  transducer: { key: "position", colour: "#b388ff", label: () => "transducer" },
  hydrophone: { key: "position", colour: "#b388ff", label: () => "hydrophone" },
  mass: { key: "centre", colour: "#111111", label: () => "centre of mass" },
  buoyancy: { key: "centre", colour: "#3fa7ff", label: () => "centre of buoyancy" },
  load: { key: "position", colour: "#8d99a6", label: () => "load" },
  origin: { key: "position", colour: "#f4f4f4", label: () => "origin" },
};
const INSTRUMENT = "#5bd68a",
  GIVEN = "#8d99a6";

export class ModelEditor3D {
  readonly canvas = document.createElement("canvas");
  readonly over = document.createElement("canvas");
  private readonly scene = new THREE.Scene();
  private readonly camera = new THREE.PerspectiveCamera(42, 1, 0.005, 200);
  private readonly renderer: THREE.WebGLRenderer;
  private readonly orbit: OrbitControls;
  private readonly gizmo: TransformControls;
  private readonly handles = new THREE.Group();
  private readonly rays = new THREE.Group();
  readonly hull = new HullDrawing();
  /** Takes clicks on the surface of the hull instead of choosing a part; null: clicks choose. */
  onSurface: ((point: SurfacePoint) => void) | null = null;
  /** Handle of the body's origin: dragging it moves the origin, not a part. */
  readonly origin: XmlTree = { tag: "origin", attributes: { position: "0 0 0 m" }, text: "", children: [] };
  private instruments: InstrumentInfo[] = [];
  private sensors: XmlTree | null = null;
  private body: THREE.Mesh | null = null;
  private size = 1;
  private chosen: XmlTree | null = null;
  private readonly places = new Map<XmlTree, THREE.Object3D>();
  private dirty = true;

  constructor(
    private readonly onChoose: (t: XmlTree | null) => void,
    private readonly onMove: () => void,
    private readonly onPart: (part: number) => void,
  ) {
    this.renderer = new THREE.WebGLRenderer({ canvas: this.canvas, antialias: true });
    this.canvas.tabIndex = 0;
    this.over.className = "over";
    this.over.style.pointerEvents = "none";
    this.orbit = new OrbitControls(this.camera, this.canvas);
    this.orbit.addEventListener("change", () => {
      this.dirty = true;
    });
    this.gizmo = new TransformControls(this.camera, this.canvas);
    this.gizmo.setSize(0.8);
    // as the axes: x of three.js is starboard, y up, z astern
    this.gizmo.setColors("#5bd68a", "#5aa9ff", "#ff6b6b", "#ffe66d");
    this.gizmo.addEventListener("dragging-changed", (e) => {
      this.orbit.enabled = !e.value;
      if (!e.value) this.onMove();
    });
    this.gizmo.addEventListener("objectChange", () => this.moved());
    this.gizmo.addEventListener("change", () => {
      this.dirty = true;
    });
    const sun = new THREE.DirectionalLight("#fff6e0", 2.2);
    sun.position.set(1, 2, 0.6);
    const axes = new THREE.Group();
    for (const [d, c] of [
      [[1, 0, 0], 0xff6b6b],
      [[0, 1, 0], 0x5bd68a],
      [[0, 0, 1], 0x5aa9ff],
    ] as const)
      axes.add(
        new THREE.ArrowHelper(new THREE.Vector3(...toThree(d[0], d[1], d[2])), new THREE.Vector3(), 1, c, 0.12, 0.06),
      );
    axes.name = "axes";
    this.scene.add(
      new THREE.HemisphereLight("#ffffff", "#46617a", 2),
      sun,
      this.handles,
      this.rays,
      this.hull.group,
      axes,
      this.gizmo.getHelper(),
    );
    let down: [number, number] = [0, 0];
    this.canvas.addEventListener("pointerdown", (e) => {
      down = [e.clientX, e.clientY];
    });
    this.canvas.addEventListener("pointerup", (e) => {
      if (Math.hypot(e.clientX - down[0], e.clientY - down[1]) > 4 || this.gizmo.dragging) return;
      this.render(); // place handles that were created since the last picture
      const box = this.canvas.getBoundingClientRect(),
        ray = new THREE.Raycaster();
      ray.params.Line.threshold = 0.012 * this.size; // m: the default of three.js is 1 m, larger than most models
      ray.setFromCamera(
        new THREE.Vector2(((e.clientX - box.left) / box.width) * 2 - 1, 1 - ((e.clientY - box.top) / box.height) * 2),
        this.camera,
      );
      if (this.onSurface) {
        const point = this.hull.point(ray);
        if (point) this.onSurface(point);
        return;
      }
      const hits = ray.intersectObjects([...this.places.values()], true),
        hit = (hits.find((x) => x.object instanceof THREE.Mesh) ?? hits[0])?.object ?? null;
      for (let at: THREE.Object3D | null = hit; at; at = at.parent)
        for (const [tree, place] of this.places)
          if (place === at) {
            this.onChoose(tree);
            return;
          }
      const part = this.hull.pick(ray);
      if (part !== null) this.onPart(part);
    });
  }

  /** Length of the model in m. */
  get length(): number {
    return this.size;
  }

  /** True while a handle is dragged. */
  get held(): boolean {
    return this.gizmo.dragging;
  }

  /** Load another model: hide everything until it is checked. */
  forget(): void {
    if (this.body) {
      this.scene.remove(this.body);
      this.body.geometry.dispose();
    }
    this.body = null;
    this.instruments = [];
    this.dirty = true;
  }

  /** Draw a checked model with its instruments. */
  look(model: ModelInfo, instruments: InstrumentInfo[], hull = ""): void {
    this.instruments = instruments;
    const first = this.body === null;
    if (this.body) {
      this.scene.remove(this.body);
      this.body.geometry.dispose();
    }
    const material = bodyMaterial.clone();
    material.transparent = true;
    material.opacity = 0.72;
    this.body = new THREE.Mesh(bodyGeometry(model), material);
    this.body.visible = !this.hull.mesh(hull, material);
    this.scene.add(this.body);
    const size = Math.max(...model.shape.size);
    if (first || Math.abs(size - this.size) > 0.3 * this.size) {
      this.size = size;
      this.from("side");
    }
    this.scene.getObjectByName("axes")!.scale.setScalar(size * 0.42);
    this.dirty = true;
  }

  /** Move the camera so that a hull that was just opened fills the view. */
  frame(fit: HullProperties | null): void {
    if (!fit) return;
    this.size = Math.max(...fit.size);
    this.scene.getObjectByName("axes")!.scale.setScalar(this.size * 0.42);
    this.from("side");
  }

  from(side: string): void {
    const far = this.size * 1.9 * Math.max(1, 1 / this.camera.aspect), // a narrow view shows the whole length too
      at: Record<string, [number, number, number]> = {
        side: [0.25 * far, far * 0.86, -0.3 * far],
        above: [-0.001, 0, -far],
        ahead: [far, 0.001, 0],
        stern: [-far * 0.8, far * 0.45, -far * 0.4],
      };
    this.orbit.target.set(0, 0, 0);
    this.camera.position.set(...toThree(...at[side]!));
    this.orbit.update();
    this.dirty = true;
  }

  /** Handles of all parts with a position. */
  set(model: XmlTree | null, sensors: XmlTree): void {
    this.handles.clear();
    this.places.clear();
    this.sensors = sensors;
    const visit = (t: XmlTree): void => {
      if (t === sensors) return; // name an instrument by its type, to tell it from a part of the hull
      const kind = KINDS[t.tag];
      if (kind) this.handle(t, kind.key, kind.colour, kind.aim);
      t.children.forEach(visit);
    };
    model?.children.forEach(visit);
    for (const e of sensors.children) this.handle(e, "position", INSTRUMENT, "attitude");
    if (model) this.handle(this.origin, "position", KINDS["origin"]!.colour);
    this.beams();
    this.choose(this.chosen && this.places.has(this.chosen) ? this.chosen : null);
    this.dirty = true;
  }

  /** Draw the beams of all instruments, and dots for instruments that cannot be edited here. */
  private beams(): void {
    this.rays.traverse((o) => {
      if (o instanceof THREE.Mesh || o instanceof THREE.LineSegments) {
        (o.geometry as THREE.BufferGeometry).dispose();
        (o.material as THREE.Material).dispose();
      }
    });
    this.rays.clear();
    const own = new Set(this.sensors?.children.map(nameOf)),
      chosen = this.chosen && this.sensors?.children.includes(this.chosen) ? nameOf(this.chosen) : null;
    if (this.hull.centre) this.dot("centre of buoyancy", this.hull.centre, KINDS["buoyancy"]!.colour);
    for (const s of this.instruments) {
      const mine = own.has(s.name),
        colour = mine ? INSTRUMENT : GIVEN;
      if (!mine && s.position) this.dot(s.name, s.position as [number, number, number], colour);
      if (!s.beams) continue;
      const points: number[] = [],
        r = s.beams.rays,
        length = Math.min(0.55 * this.size, s.beams.maximum || Infinity);
      for (let k = 0; k < r.length; k += 6)
        for (const far of [0, length])
          points.push(...toThree(r[k]! + far * r[k + 3]!, r[k + 1]! + far * r[k + 4]!, r[k + 2]! + far * r[k + 5]!));
      const g = new THREE.BufferGeometry().setAttribute("position", new THREE.Float32BufferAttribute(points, 3));
      this.rays.add(
        new THREE.LineSegments(
          g,
          new THREE.LineBasicMaterial({ color: colour, transparent: true, opacity: s.name === chosen ? 0.9 : 0.3 }),
        ),
      );
    }
  }

  /** Draw a named position that cannot be edited here. */
  private dot(name: string, at: [number, number, number], colour: string): void {
    const dot = new THREE.Mesh(
      new THREE.SphereGeometry(this.size * 0.014, 14, 10),
      new THREE.MeshBasicMaterial({ color: colour, depthTest: false, transparent: true, opacity: 0.9 }),
    );
    dot.position.set(...toThree(...at));
    dot.renderOrder = 9;
    dot.name = name;
    this.rays.add(dot);
  }

  private handle(t: XmlTree, key: string, colour: string, aim?: "direction" | "attitude"): void {
    const r = this.size * 0.022,
      group = new THREE.Group();
    group.position.set(...toThree(...parseMetres(t.attributes[key])));
    group.add(
      new THREE.Mesh(
        new THREE.SphereGeometry(r, 20, 14),
        new THREE.MeshBasicMaterial({ color: colour, depthTest: false, transparent: true, opacity: 0.9 }),
      ),
    );
    if (aim === "direction") {
      const d = new THREE.Vector3(...toThree(...parseVector(t.attributes["direction"], [1, 0, 0]))).normalize();
      group.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, -1), d);
    } else if (aim === "attitude") {
      const deg = (t.attributes["attitude"] ?? "").includes("rad") ? 1 : Math.PI / 180,
        [roll, pitch, yaw] = parseVector(t.attributes["attitude"], [0, 0, 0]);
      // R = Rz(yaw) Ry(pitch) Rx(roll) about forward, starboard, down, in three.js axes
      group.quaternion.setFromEuler(new THREE.Euler(pitch * deg, -yaw * deg, -roll * deg, "YXZ"));
    }
    if (aim) {
      const arrow = new THREE.ArrowHelper(
        new THREE.Vector3(0, 0, -1),
        new THREE.Vector3(),
        this.size * 0.13,
        colour,
        this.size * 0.04,
        this.size * 0.025,
      );
      group.add(arrow);
    }
    group.children.forEach((c) => {
      c.renderOrder = 10;
    });
    group.userData = { key, aim };
    this.handles.add(group);
    this.places.set(t, group);
  }

  choose(t: XmlTree | null): void {
    this.chosen = t;
    const place = t && this.places.get(t);
    if (place) this.gizmo.attach(place);
    else this.gizmo.detach();
    if (place && !place.userData["aim"]) this.gizmo.setMode("translate");
    this.beams();
    this.dirty = true;
  }

  /** Hide the primitive shape while the parts of a hull file are shown. */
  showParts(): void {
    if (this.body && this.hull.shown) this.body.visible = false;
    this.dirty = true;
  }

  turn(on: boolean): void {
    const place = this.chosen && this.places.get(this.chosen);
    this.gizmo.setMode(on && place?.userData["aim"] ? "rotate" : "translate");
  }

  private moved(): void {
    const t = this.chosen,
      place = t && this.places.get(t);
    if (!t || !place) return;
    const key = place.userData["key"] as string;
    if (this.gizmo.mode === "translate")
      t.attributes[key] = formatMetres(
        t.attributes[key],
        fromThree(place.position.x, place.position.y, place.position.z),
      );
    else if (place.userData["aim"] === "direction") {
      const d = new THREE.Vector3(0, 0, -1).applyQuaternion(place.quaternion);
      t.attributes["direction"] = formatNumbers(fromThree(d.x, d.y, d.z).map((v) => v + 0));
    } else {
      const e = new THREE.Euler().setFromQuaternion(place.quaternion, "YXZ"),
        f = 180 / Math.PI;
      t.attributes["attitude"] = formatNumbers([-e.z * f + 0, e.x * f + 0, -e.y * f + 0], "deg");
    }
    this.onChoose(t);
    this.dirty = true;
  }

  /** Draw the picture again, in the present colours. */
  redraw(): void {
    this.dirty = true;
  }

  render(): void {
    const w = this.canvas.clientWidth,
      hh = this.canvas.clientHeight,
      ratio = deviceRatio();
    if (!w || !hh) return;
    if (this.over.width !== Math.round(w * ratio) || this.over.height !== Math.round(hh * ratio)) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(w, hh, false);
      this.over.width = Math.round(w * ratio);
      this.over.height = Math.round(hh * ratio);
      this.camera.aspect = w / hh;
      this.camera.updateProjectionMatrix();
      this.dirty = true;
    }
    if (!this.dirty) return;
    this.dirty = false;
    this.scene.background = new THREE.Color(cssVariable("--bg"));
    this.renderer.render(this.scene, this.camera);
    const c = context2d(this.over);
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, w, hh);
    c.font = "11px system-ui, sans-serif";
    c.lineWidth = 3;
    c.strokeStyle = cssVariable("--bg");
    const taken: [number, number, number][] = []; // x, y, width of each label: labels at one position are stacked
    const text = (t: string, at: THREE.Vector3, fill: string): void => {
      const p = at.clone().project(this.camera),
        wide = c.measureText(t).width,
        x = Math.min(((p.x + 1) / 2) * w + 9, w - wide - 4);
      let y = ((1 - p.y) / 2) * hh - 6;
      while (taken.some(([tx, ty, tw]) => Math.abs(ty - y) < 12 && x < tx + tw && tx < x + wide)) y += 12;
      taken.push([x, y, wide]);
      c.strokeText(t, x, y);
      c.fillStyle = fill;
      c.fillText(t, x, y);
    };
    const named = [...this.places].map(
      ([t, place]) =>
        [
          this.sensors?.children.includes(t) ? nameOf(t) : (KINDS[t.tag]?.label(t) ?? t.tag),
          place.position,
          t === this.chosen,
        ] as const,
    );
    for (const [name, at, chosen] of named.sort((a, b) => Number(b[2]) - Number(a[2])))
      text(name, at, chosen ? cssVariable("--accent") : cssVariable("--soft"));
    for (const dot of this.rays.children) if (dot.name) text(dot.name, dot.position, cssVariable("--soft"));
    const l = this.size * 0.44;
    text("x forward", new THREE.Vector3(...toThree(l, 0, 0)), cssVariable("--bad"));
    text("y starboard", new THREE.Vector3(...toThree(0, l, 0)), cssVariable("--good"));
    text("z down", new THREE.Vector3(...toThree(0, 0, l)), cssVariable("--range"));
  }
}
