// Animated details around the bodies: thrust arrows, beams and moving parts of the selected body, and arrows of the
// current.

import * as THREE from "three";
import { Arrows } from "./arrows";
import { Beams } from "./beams";
import type { BodyMeshes } from "./body_meshes";
import { quaternionToThree, toThree } from "./coordinate_frames";
import type { SceneStore } from "./scene_store";
import type { BodyEquipment, BodyPanel, ThrusterInfo } from "./page_protocol";

/**
 * Direction in B and signed share of the maximum thrust of a thruster, turned by its angle and scaled by its deflector.
 */
export function thrustVector(
  t: ThrusterInfo,
  number: number,
  kit: BodyEquipment,
  panel: BodyPanel,
): { direction: [number, number, number]; share: number } {
  const value = (kind: string, otherwise: number): number => {
    const k = kit.actuators.findIndex((a) => a.kind === kind && a.part === number);
    return k < 0 ? otherwise : (panel.actuation?.actual[k] ?? otherwise);
  };
  const a = kit.actuators.find((x) => x.kind === "thruster" && x.part === number),
    limit = Math.max(Math.abs(a?.minimum ?? 0), Math.abs(a?.maximum ?? 0), 1e-9);
  const share = value("thruster", 0) / limit,
    angle = value("angle", 0),
    lifted = value("deflector", 1);
  const [x, y, z] = t.direction as [number, number, number],
    size = Math.hypot(x, y, z) || 1,
    c = Math.cos(angle) * lifted,
    s = Math.sin(angle);
  return { direction: [(c * x - s * y) / size, (c * y + s * x) / size, (c * z) / size], share };
}

export class BodyAnimation {
  readonly group = new THREE.Group();
  // arrows keep their shape: only their positions follow the vertical exaggeration
  readonly pointers = new THREE.Group();
  readonly beams = new Beams();
  private readonly thrust = new Arrows("#ffd166", 64, 0.06);
  private readonly current = new Arrows("#7fd8ff", 25, 0.035);
  private readonly q = new THREE.Quaternion();
  private readonly p = new THREE.Vector3();

  constructor(
    private readonly store: SceneStore,
    private readonly bodies: BodyMeshes,
  ) {
    this.group.add(this.beams.group);
    this.pointers.add(this.thrust.mesh, this.current.mesh);
  }

  /** Arrows are annotations and not part of the sea: the onboard view does not show them. */
  arrows(visible: boolean): void {
    this.thrust.mesh.visible = this.current.mesh.visible = visible;
  }

  update(dt: number, show: { arrows: boolean; beams: boolean }): void {
    const { kit, panel } = this.store;
    if (kit) this.bodies.moving.update(kit, panel?.row === kit.row ? panel : null, dt, this.store.time);
    this.beams.update(this.store, show.beams);
  }

  /**
   * Draw arrows of the current around the middle of the view and arrows of the thrust; ``heights``: vertical
   * exaggeration; ``scale``: enlargement of a body of a given size at a position.
   */
  point(
    show: boolean,
    heights: number,
    middle: THREE.Vector3,
    far: number,
    scale: (size: number, at: THREE.Vector3) => number,
  ): void {
    this.thrust.clear();
    this.current.clear();
    if (!show) return;
    const w = this.store.weather?.weather?.current_W;
    if (w && Math.hypot(w[0]!, w[1]!, w[2]!) > 1e-3) {
      const strength = Math.hypot(w[0]!, w[1]!, w[2]!),
        d = new THREE.Vector3(...toThree(w[0]!, w[1]!, w[2]!)).normalize(),
        cell = far / 5;
      const x0 = Math.round(middle.x / cell),
        z0 = Math.round(middle.z / cell);
      for (let i = -2; i <= 2; i++)
        for (let k = -2; k <= 2; k++)
          this.current.add(
            new THREE.Vector3((x0 + i) * cell, -0.2, (z0 + k) * cell),
            d,
            cell * Math.min(0.25 + strength, 0.8),
          );
    }
    const { kit, panel } = this.store,
      k = kit ? this.store.index.get(kit.row) : undefined;
    if (k === undefined || !kit || !panel?.actuation || panel.row !== kit.row) return;
    const model = this.bodies.model(this.store, this.store.bodies.get(kit.row)?.model ?? ""),
      size = model.shape.size[0];
    this.p.set(...toThree(this.store.ned[3 * k]!, this.store.ned[3 * k + 1]!, this.store.ned[3 * k + 2]!));
    this.p.y *= heights;
    this.q.set(
      ...quaternionToThree(
        this.store.quaternion[4 * k]!,
        this.store.quaternion[4 * k + 1]!,
        this.store.quaternion[4 * k + 2]!,
        this.store.quaternion[4 * k + 3]!,
      ),
    );
    const larger = scale(size, this.p);
    model.thrusters.forEach((t, i) => {
      const { direction, share } = thrustVector(t, i, kit, panel),
        d = new THREE.Vector3(...toThree(...direction)),
        strength = Math.abs(share) * d.length();
      if (strength < 0.01) return;
      d.normalize().multiplyScalar(Math.sign(share)).applyQuaternion(this.q);
      const at = new THREE.Vector3(...toThree(t.position[0]!, t.position[1]!, t.position[2]!))
        .multiplyScalar(larger)
        .applyQuaternion(this.q)
        .add(this.p);
      this.thrust.add(at, d, strength * size * 0.9 * larger);
    });
  }
}
