// Surroundings that polished surfaces reflect: a bright sky above a dark sea, with the sun.

import * as THREE from "three";
import { SUN } from "./sky";

const SIZE = 64; // pixels of each side of the cube; a blurred sky needs no more

/** Draw the surroundings once for a renderer. */
export function makeEnvironment(renderer: THREE.WebGLRenderer): THREE.Texture {
  const dome = new THREE.Mesh(
      new THREE.SphereGeometry(10, 32, 24),
      new THREE.MeshBasicMaterial({ vertexColors: true, side: THREE.BackSide }),
    ),
    at = dome.geometry.getAttribute("position"),
    colours = new Float32Array(3 * at.count),
    v = new THREE.Vector3(),
    c = new THREE.Color(),
    [zenith, horizon, sea] = ["#6fa8d8", "#f2f6f8", "#16344a"].map((s) => new THREE.Color(s)) as [
      THREE.Color,
      THREE.Color,
      THREE.Color,
    ];
  for (let k = 0; k < at.count; k++) {
    v.fromBufferAttribute(at, k).normalize();
    c.copy(horizon).lerp(v.y > 0 ? zenith : sea, Math.min(1, v.y > 0 ? 1.6 * v.y : -6 * v.y));
    c.multiplyScalar(1 + 3 * Math.max(0, v.dot(SUN)) ** 40);
    c.toArray(colours, 3 * k);
  }
  dome.geometry.setAttribute("color", new THREE.BufferAttribute(colours, 3));
  const scene = new THREE.Scene(),
    maker = new THREE.PMREMGenerator(renderer);
  scene.add(dome);
  const { texture } = maker.fromScene(scene, 0.02, 0.1, 100, { size: SIZE });
  dome.geometry.dispose();
  dome.material.dispose();
  maker.dispose();
  return texture;
}
