// Keyboard: finds the intended key whatever the state of Caps Lock and the focus.

import { appendChildren, h } from "./dom";
import { symbolLegend } from "./chart_symbols";

export const KEY_BINDINGS: [string, string][] = [
  ["Space", "start, pause or resume"],
  ["N", "single step (hold for repeated steps)"],
  ["X", "stop"],
  ["+  −", "faster, slower"],
  ["1  2  3  4", "view: free camera, follow the selected body, top view, chart"],
  ["5", "3D view beside the chart"],
  ["W A S D  E Q", "move the camera (also with the arrow, Page Up and Page Down keys); mouse: rotate, pan, zoom"],
  ["H", "whole scene"],
  ["O", "onboard view of the selected body"],
  ["B  Shift+B", "select the next or previous vehicle"],
  ["Esc", "clear selection"],
  ["L  T  R  P", "show or hide names, tracks, sound, or beacon-to-beacon receptions"],
  ["G  I  C", "show or hide arrows, instrument beams or traffic"],
  ["U  V  K", "show or hide the sea surface, its waves or the sky"],
  ["Z", "enlarge bodies or draw them to scale"],
  ["F  Y", "chart: measure distances; copy the position of the pointer"],
  [
    "Tab",
    "move the focus to the chart: arrow keys move its pointer (in fine steps with Shift), Enter clicks, Page Up and Page Down zoom",
  ],
  ["M  J", "draw a mission; drive a vehicle"],
  [",  .", "previous or next event of a replay"],
  ["Shift+M", "bookmark at the current time"],
  ["[  ]", "show or hide the side panels"],
  ["Shift+L", "switch between light and dark"],
  ["?", "show or hide this help"],
];

/**
 * True if a key belongs to the focused element: text fields take all keys, lists and sliders only those that move them.
 */
export function isTypedIntoField(e: KeyboardEvent): boolean {
  const target = e.target as HTMLElement;
  if (e.ctrlKey || e.metaKey || e.altKey || target.isContentEditable || target.tagName === "TEXTAREA") return true;
  if (target.tagName === "SELECT") return e.key.startsWith("Arrow") || e.key === "Enter" || e.key === "Escape";
  if (!(target instanceof HTMLInputElement)) return false;
  if (target.type === "range") return /^(Arrow|Page|Home|End)/.test(e.key);
  return !["checkbox", "button", "radio"].includes(target.type);
}

/** The intended key: lower case, or upper case with Shift, regardless of Caps Lock. */
export function normalisedKey(e: KeyboardEvent): string {
  return /^[a-z]$/i.test(e.key) ? (e.shiftKey ? e.key.toUpperCase() : e.key.toLowerCase()) : e.key;
}

/** Selectable speeds, slowest first; 0 = as fast as possible, which counts as the fastest. */
export const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 0];

/** Next faster or slower selectable speed. */
export function nextSpeed(at: number, by: number, speeds: number[]): number {
  const rank = (v: number): number => (v === 0 ? Infinity : v),
    own = rank(at);
  const sorted = [...speeds].sort((a, b) => rank(a) - rank(b));
  const next =
    by > 0
      ? sorted.find((v) => rank(v) > own * (1 + 1e-6))
      : sorted.reverse().find((v) => rank(v) < own * (1 - 1e-6) || (own === Infinity && v !== 0));
  return next ?? at;
}

/** Show the help again if it is open: its symbols have the colours of the theme. */
export function recolourKeyHelp(): void {
  if (!document.querySelector(".help")) return;
  showKeyHelp();
  showKeyHelp();
}

/** Show or hide the help with keys and legend. */
export function showKeyHelp(): void {
  const old = document.querySelector(".help");
  if (old) {
    old.remove();
    return;
  }
  const line = ([keys, text]: [string, string]): HTMLElement => {
    const td = h("td", {});
    for (const key of keys.split("  ")) appendChildren(td, h("kbd", {}, key), " ");
    return h("tr", {}, td, h("td", {}, text));
  };
  const box = h(
    "div",
    { class: "box", tabindex: "0", role: "region", "aria-label": "Keys and legend" },
    h("div", {}, h("h2", {}, "Keys"), h("table", {}, h("tbody", {}, ...KEY_BINDINGS.map(line)))),
    h(
      "div",
      {},
      h("h2", {}, "Legend"),
      symbolLegend(),
      h(
        "p",
        { class: "soft" },
        "Positions are north, east and depth in metres; headings count clockwise from north. See the viewer's guide (docs/viewer.md).",
      ),
    ),
  );
  document.body.append(
    h(
      "div",
      {
        class: "help",
        onclick: (e: MouseEvent) => {
          if ((e.target as HTMLElement).classList.contains("help")) showKeyHelp();
        },
      },
      box,
    ),
  );
}
