// Lights of the 3D view: the sky from above, the ground from below, and the sun.

import * as THREE from "three";
import { SUN } from "./sky";

const SKY = "#dff3ff",
  GROUND = "#30506a",
  SUNLIGHT = "#fff6e0",
  SKY_INTENSITY = 1.9,
  SUN_INTENSITY = 1.8;

export function sceneLights(): THREE.Light[] {
  const sun = new THREE.DirectionalLight(SUNLIGHT, SUN_INTENSITY);
  sun.position.copy(SUN);
  return [new THREE.HemisphereLight(SKY, GROUND, SKY_INTENSITY), sun];
}

/**
 * Make a Lambert material with these lights that computes light, haze and screen colours at the corners of the triangles
 * only. A software renderer draws it several times faster.
 */
export function vertexLitMaterial(colour: THREE.ColorRepresentation = "#ffffff"): THREE.ShaderMaterial {
  const light = (style: string, intensity: number): { value: THREE.Color } => ({
    value: new THREE.Color(style).multiplyScalar(intensity / Math.PI),
  });
  return new THREE.ShaderMaterial({
    vertexColors: true,
    side: THREE.DoubleSide,
    fog: true,
    uniforms: {
      ...THREE.UniformsUtils.clone(THREE.UniformsLib.fog),
      diffuse: { value: new THREE.Color(colour) },
      sky: light(SKY, SKY_INTENSITY),
      ground: light(GROUND, SKY_INTENSITY),
      sun: light(SUNLIGHT, SUN_INTENSITY),
      to: { value: SUN },
    },
    vertexShader: `#include <common>
      #include <color_pars_vertex>
      uniform vec3 diffuse, sky, ground, sun, to, fogColor; uniform float fogDensity; varying vec3 shade;
      void main() {
        #include <color_vertex>
        #include <beginnormal_vertex>
        #include <defaultnormal_vertex>
        #include <begin_vertex>
        #include <project_vertex>
        vec3 n = normalize(transformedNormal);
        if (dot(n, mvPosition.xyz) > 0.0) n = -n; // the side that is seen
        n = inverseTransformDirection(n, viewMatrix);
        vec3 lit = diffuse * vColor.rgb * (mix(ground, sky, 0.5 * n.y + 0.5) + sun * max(dot(n, to), 0.0));
        shade = mix(1.055 * pow(lit, vec3(1.0 / 2.4)) - 0.055, 12.92 * lit, vec3(lessThanEqual(lit, vec3(0.0031308))));
        float haze = fogDensity * mvPosition.z;
        shade = mix(min(shade, 1.0), fogColor, 1.0 - exp(-haze * haze));
      }`,
    fragmentShader: `varying vec3 shade;
      void main() {
        gl_FragColor = vec4(shade, 1.0);
      }`,
  });
}
