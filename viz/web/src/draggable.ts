// Floating windows that are dragged by their title bars.

import { pageZoom } from "./canvas";

/** Make a window draggable within a stage; buttons in its title bar keep their own clicks. */
export function makeDraggable(head: HTMLElement, box: HTMLElement, stage: HTMLElement): void {
  let held: [number, number] | null = null;
  head.addEventListener("pointerdown", (e) => {
    // capturing the pointer would also capture the click
    if ((e.target as HTMLElement).closest("button, select") || box.classList.contains("docked")) return;
    held = [e.clientX / pageZoom() - box.offsetLeft, e.clientY / pageZoom() - box.offsetTop];
    head.setPointerCapture(e.pointerId);
  });
  head.addEventListener("pointermove", (e) => {
    if (!held) return;
    const clamp = (v: number, most: number): number => Math.max(0, Math.min(v, most));
    Object.assign(box.style, {
      left: `${clamp(e.clientX / pageZoom() - held[0], stage.clientWidth - box.offsetWidth)}px`,
      top: `${clamp(e.clientY / pageZoom() - held[1], stage.clientHeight - box.offsetHeight)}px`,
      bottom: "auto",
    });
  });
  for (const end of ["pointerup", "pointercancel"])
    head.addEventListener(end, () => {
      held = null;
    });
}
