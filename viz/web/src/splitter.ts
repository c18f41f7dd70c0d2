// Bar between two parts of a box: drag it, or move it with the arrow keys.

import { h } from "./dom";

const LEAST = 0.1; // share of the box that each part keeps
const STEP = 0.02; // per press of an arrow key

/** Create the bar. Its place is a share of the width of `box`; `place` returns it, and `set` takes a new one. */
export function splitter(box: HTMLElement, place: () => number, set: (share: number) => void): HTMLElement {
  const bar = h("div", {
    class: "splitter",
    role: "separator",
    tabIndex: 0,
    title: "Drag, or press the left or right arrow key, to change the widths",
    "aria-label": "Width of the left pane",
    "aria-orientation": "vertical",
  });
  const move = (share: number): void => {
    set(Math.min(Math.max(share, LEAST), 1 - LEAST));
    tell();
  };
  const tell = (): void => bar.setAttribute("aria-valuenow", String(Math.round(100 * place())));
  let held = false;
  bar.addEventListener("pointerdown", (e) => {
    held = true;
    bar.setPointerCapture(e.pointerId);
    e.preventDefault();
    bar.focus();
  });
  bar.addEventListener("pointermove", (e) => {
    const { left, width } = box.getBoundingClientRect();
    if (held) move((e.clientX - left) / width);
  });
  for (const end of ["pointerup", "pointercancel"])
    bar.addEventListener(end, () => {
      held = false;
    });
  bar.addEventListener("keydown", (e) => {
    if (e.key !== "ArrowLeft" && e.key !== "ArrowRight") return;
    e.preventDefault();
    e.stopPropagation(); // the arrow keys move the camera elsewhere
    move(place() + (e.key === "ArrowLeft" ? -STEP : STEP));
  });
  tell();
  return bar;
}
