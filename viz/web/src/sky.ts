// Sky: a dome around the camera with horizon, zenith and sun; below the horizon, the distant sea.

import * as THREE from "three";

/** Direction to the sun in three.js axes, the same as that of the scene's light. */
export const SUN = new THREE.Vector3(0.45, 0.62, 0.64).normalize();

export interface SkyColours {
  zenith: string;
  horizon: string;
  sun: string;
  sea: string;
}
const DARK: SkyColours = { zenith: "#050d18", horizon: "#2a4a62", sun: "#ffb877", sea: "#0b2030" };
const LIGHT: SkyColours = { zenith: "#5fa3d6", horizon: "#e3f0f7", sun: "#fff3cf", sea: "#bcd8e6" };
export function skyColours(dark: boolean): SkyColours {
  return dark ? DARK : LIGHT;
}

/**
 * Make a shader colour that is written to the screen unchanged: conversion to linear light and back costs time at each
 * pixel.
 */
export function setLinearColour(colour: THREE.Color, style: string): void {
  colour.setStyle(style, THREE.LinearSRGBColorSpace);
}

export class Sky {
  readonly mesh: THREE.Mesh<THREE.SphereGeometry, THREE.ShaderMaterial>;

  constructor() {
    this.mesh = new THREE.Mesh(new THREE.SphereGeometry(1, 24, 16), material());
    this.mesh.frustumCulled = false;
    this.mesh.renderOrder = -10;
  }

  theme(dark: boolean): void {
    const u = this.mesh.material.uniforms,
      h = skyColours(dark);
    for (const name of ["zenith", "horizon", "sun", "sea"] as const) setLinearColour(u[name]!.value, h[name]);
  }

  /** Centre the dome on a camera. */
  around(camera: THREE.PerspectiveCamera): void {
    this.mesh.position.copy(camera.position);
    this.mesh.scale.setScalar(camera.far * 0.9);
  }
}

function material(): THREE.ShaderMaterial {
  return new THREE.ShaderMaterial({
    side: THREE.BackSide,
    depthWrite: false,
    depthTest: false,
    uniforms: {
      zenith: { value: new THREE.Color() },
      horizon: { value: new THREE.Color() },
      sun: { value: new THREE.Color() },
      sea: { value: new THREE.Color() },
      to: { value: SUN },
    },
    vertexShader: `varying vec3 way;
      void main() {
        way = position;
        gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
      }`,
    fragmentShader: `uniform vec3 zenith, horizon, sun, sea, to; varying vec3 way;
      void main() {
        vec3 w = normalize(way);
        float near = max(dot(w, to), 0.0);
        near *= near;
        vec3 c = mix(horizon, zenith, sqrt(max(w.y, 0.0))) + sun * (0.22 * near * near + clamp((near - 0.9986) * 1200.0, 0.0, 1.0));
        gl_FragColor = vec4(w.y < 0.0 ? sea : c, 1.0);
      }`,
  });
}
