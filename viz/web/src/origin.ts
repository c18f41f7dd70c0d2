// Moving the origin of a body: every position in its model is relative to it.

import { formatMetres, parseMetres } from "./xml_tree";
import type { XmlTree } from "./page_protocol";

const KEYS: Record<string, string> = { mass: "centre", buoyancy: "centre" };
const SHAPES = new Set(["box", "cylinder", "sphere"]);

/**
 * Change all positions after the origin has moved by `d`. `placed` states that the mesh of <hull> has been moved
 * already.
 */
export function moveOrigin(tree: XmlTree, d: [number, number, number], placed: boolean): void {
  for (const t of tree.children) {
    const key = KEYS[t.tag] ?? "position";
    const own = t.attributes[key] !== undefined && /\d/.test(t.attributes[key]);
    const hull = t.tag === "hull" && !placed,
      implied = t.tag in KEYS || (t.tag === "hull" && hull);
    if ((own && (t.tag !== "hull" || hull)) || (!own && implied && t.attributes[key] !== "mast"))
      t.attributes[key] = formatMetres(
        t.attributes[key],
        parseMetres(t.attributes[key]).map((v, k) => v - d[k]!),
      );
    if (!SHAPES.has(t.tag)) moveOrigin(t, d, placed);
  }
}
