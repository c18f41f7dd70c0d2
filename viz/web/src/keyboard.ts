// The keys: which one was meant, whatever Caps Lock says and wherever the last click went.

import { appendChildren, h } from "./dom";
import { symbolLegend } from "./chart_symbols";

export const KEY_BINDINGS: [string, string][] = [
  ["Space", "start, pause or go on"], ["N", "one step (hold it: step after step)"], ["X", "stop"], ["+  −", "faster, slower"],
  ["1  2  3  4", "free camera, follow the chosen body, from above, chart"], ["W A S D  E Q", "move the camera (also arrow keys and page up, down); mouse: turn, shift, zoom"],
  ["H", "whole scene"], ["O", "view from on board the chosen body"], ["B  Shift+B", "next, previous body"], ["Esc", "choose nothing"],
  ["L  T  R  G  I  C", "labels, trails, sound spheres, arrows, beams of instruments, traffic on and off"], ["U  V  K", "sea surface, its waves, the sky on and off"], ["Z", "bodies drawn larger than they are, on and off"], ["M  J", "draw a mission, drive a body"],
  ["[  ]", "side panels on and off"], ["Shift+L", "light or dark"], ["?", "this page"],
];

/** Whether a key belongs to what has the focus: somebody writes there. Lists and sliders keep only the keys that move them. */
export function isTypedIntoField(e: KeyboardEvent): boolean {
  const target = e.target as HTMLElement;
  if (e.ctrlKey || e.metaKey || e.altKey || target.isContentEditable || target.tagName === "TEXTAREA") return true;
  if (target.tagName === "SELECT") return e.key.startsWith("Arrow") || e.key === "Enter" || e.key === "Escape";
  if (!(target instanceof HTMLInputElement)) return false;
  if (target.type === "range") return /^(Arrow|Page|Home|End)/.test(e.key);
  return !["checkbox", "button", "radio"].includes(target.type);
}

/** The key that was meant: letters small, or great with Shift; Caps Lock says nothing. */
export function normalisedKey(e: KeyboardEvent): string {
  return /^[a-z]$/i.test(e.key) ? (e.shiftKey ? e.key.toUpperCase() : e.key.toLowerCase()) : e.key;
}

/** The wanted speeds, slowest first; 0 = as fast as possible, which is the fastest. */
export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 0];

/** The next faster or slower one of those that may be had. */
export function nextSpeed(at: number, by: number, speeds: number[]): number {
  const rank = (v: number): number => (v === 0 ? Infinity : v), own = rank(at);
  const sorted = [...speeds].sort((a, b) => rank(a) - rank(b));
  const next = by > 0 ? sorted.find((v) => rank(v) > own * (1 + 1e-6)) : sorted.reverse().find((v) => rank(v) < own * (1 - 1e-6) || (own === Infinity && v !== 0));
  return next ?? at;
}

/** The page with the keys and the legend, on or off. */
export function showKeyHelp(): void {
  const old = document.querySelector(".help");
  if (old) { old.remove(); return; }
  const line = ([keys, text]: [string, string]): HTMLElement => { const td = h("td", {}); for (const key of keys.split("  ")) appendChildren(td, h("kbd", {}, key), " "); return h("tr", {}, td, h("td", {}, text)); };
  const box = h("div", { class: "box" }, h("div", {}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, ...KEY_BINDINGS.map(line)))), h("div", {}, h("h2", {}, "Legend"), symbolLegend(), h("p", { class: "soft" }, "Places are north, east and depth in metres; headings from north to the east. More in the viewer's guide (docs/viewer.md).")));
  document.body.append(h("div", { class: "help", onclick: (e: MouseEvent) => { if ((e.target as HTMLElement).classList.contains("help")) showKeyHelp(); } }, box));
}
