// Lines of the simulation (tethers, moorings, tow cables) on the chart, from node to node, without broken segments.

import type { CableInfo } from "./page_protocol";

const DARK = "#f0d48a",
  LIGHT = "#7a4f00";
/** Colour of lines. */
export function cableColour(dark: boolean): string {
  return dark ? DARK : LIGHT;
}

/** Segments of a line: positions of both ends in W. */
export function unbrokenSegments(c: CableInfo): [number[], number[]][] {
  const found: [number[], number[]][] = [];
  for (let k = 0; 3 * k + 5 < c.points.length; k++)
    if (k !== c.broken) found.push([c.points.slice(3 * k, 3 * k + 3), c.points.slice(3 * k + 3, 3 * k + 6)]);
  return found;
}

export function drawCables(
  c: CanvasRenderingContext2D,
  cables: CableInfo[],
  px: (n: number, e: number) => [number, number],
  dark: boolean,
): void {
  c.strokeStyle = cableColour(dark);
  c.lineWidth = 1.4;
  c.beginPath();
  for (const cable of cables)
    for (const [a, b] of unbrokenSegments(cable)) {
      c.moveTo(...px(a[0]!, a[1]!));
      c.lineTo(...px(b[0]!, b[1]!));
    }
  c.stroke();
}
