// Mass properties of a hull file as a table, with warnings about its surface.

import { formatNumber, h } from "./dom";
import type { HullProperties } from "./page_protocol";

const DENSITY = 1025;

function significant(v: number): string {
  return Number.isFinite(v) ? String(+v.toPrecision(4)) : "–";
}

function place(p: number[]): string {
  return p.map((v) => formatNumber(v, 3)).join("  ");
}

export function hullProperties(fit: HullProperties): HTMLElement {
  const rows: [string, string, string][] = [
    ["length × breadth × height", fit.size.map(significant).join(" × "), "m"],
    ["surface", fit.closed ? "closed" : "open: convex hull", ""],
    ["volume", significant(fit.volume), "m³"],
    ["displacement", significant(DENSITY * fit.volume), "kg"],
    ["surface area", significant(fit.area), "m²"],
    ["centre of buoyancy", place(fit.centre), "m"],
    ["radii of gyration", place(fit.gyration), "m"],
  ];
  if (fit.afloat)
    rows.push(
      ["draft afloat", significant(fit.afloat.draft), "m"],
      ["wetted area afloat", significant(fit.afloat.wetted), "m²"],
      ["buoyancy afloat", place(fit.afloat.centre), "m"],
      ["GM roll, pitch", `${significant(fit.afloat.gm_roll)}, ${significant(fit.afloat.gm_pitch)}`, "m"],
    );
  const notes = [...fit.notes];
  if (fit.afloat && fit.afloat.gm_roll <= 0)
    notes.push("with the mass and centre of mass of the open model, the hull capsizes: GM in roll is not positive");
  return h(
    "div",
    {},
    h(
      "table",
      { class: "properties", id: "hull-properties", "aria-label": "Properties of the hull" },
      h(
        "tbody",
        {},
        ...rows.map(([name, value, unit]) =>
          h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, value), h("td", { class: "soft" }, unit)),
        ),
      ),
    ),
    notes.length ? h("ul", { class: "notes", id: "hull-notes" }, ...notes.map((n) => h("li", {}, n))) : null,
  );
}
