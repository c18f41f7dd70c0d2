// Colour scales. The depth scales are perceptually uniform and darken with depth. People with a red-green colour
// deficiency can distinguish the colours of every scale.

export type Colour = [red: number, green: number, blue: number]; // 0 to 1

/** Sea bed: `deep` of cmocean (Thyng et al. 2016, doi:10.5670/oceanog.2016.66). */
export const DEEP: Colour[] = [
  [0.993, 0.994, 0.8],
  [0.767, 0.913, 0.687],
  [0.53, 0.833, 0.64],
  [0.368, 0.732, 0.643],
  [0.305, 0.62, 0.632],
  [0.266, 0.506, 0.607],
  [0.242, 0.396, 0.584],
  [0.256, 0.278, 0.523],
  [0.228, 0.189, 0.347],
];

/** Soundings, which must stand out from the bed: `viridis` of Matplotlib, from yellow. */
export const VIRIDIS: Colour[] = [
  [0.993, 0.906, 0.144],
  [0.678, 0.864, 0.19],
  [0.369, 0.789, 0.383],
  [0.158, 0.684, 0.502],
  [0.128, 0.567, 0.551],
  [0.173, 0.449, 0.558],
  [0.23, 0.322, 0.546],
  [0.279, 0.175, 0.483],
  [0.267, 0.005, 0.329],
];

/** Sound speed, behind rays: muted, from slow (dark) to fast (pale). */
export const SOUND_SPEED: Colour[] = [
  [0.08, 0.15, 0.29],
  [0.11, 0.28, 0.43],
  [0.18, 0.42, 0.54],
  [0.34, 0.57, 0.64],
  [0.56, 0.72, 0.75],
  [0.76, 0.85, 0.85],
];

/** Levels of arrivals in front of losses, whose colours are strong. */
export const PALE_ARRIVALS: Colour[] = [
  [0.6, 0.64, 0.68],
  [1.0, 1.0, 1.0],
];

/** Levels of arrivals, in front of sound speeds: from weak to strong. */
export const ARRIVALS: Colour[] = [
  [0.62, 0.24, 0.66],
  [0.87, 0.31, 0.52],
  [0.98, 0.51, 0.34],
  [1.0, 0.74, 0.27],
  [1.0, 0.96, 0.45],
];

/** Colour of a scale at a fraction of it, 0 to 1. */
export function scaleColour(scale: Colour[], f: number): Colour {
  const x = Math.min(Math.max(f, 0), 1) * (scale.length - 1),
    k = Math.min(Math.floor(x), scale.length - 2),
    [a, b] = [scale[k]!, scale[k + 1]!];
  return [0, 1, 2].map((i) => a[i]! + (x - k) * (b[i]! - a[i]!)) as Colour;
}

/** The same colour for a style sheet or a canvas. */
export function scaleStyle(scale: Colour[], f: number): string {
  return `rgb(${scaleColour(scale, f)
    .map((v) => Math.round(255 * v))
    .join(", ")})`;
}

/** Colour of the sea bed, from the shallowest (0) to the deepest (1) place. */
export function depthColour(f: number): Colour {
  return scaleColour(DEEP, f);
}
