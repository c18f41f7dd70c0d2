// The chart without a mouse: while it has the focus, the arrow keys move its pointer and Enter clicks there.

import type { Chart } from "./chart";

const STEP = 16, // px
  FINE = 2, // px, with Shift
  EDGE = 30; // px: nearer to the edge, the chart moves instead
const DIRECTIONS: Record<string, [right: number, down: number]> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

export function listenToChartKeys(chart: Chart): void {
  const { canvas, pointer } = chart;
  canvas.setAttribute("aria-label", "Chart: arrow keys move the pointer, Enter clicks, Page Up and Page Down zoom");
  const move = ([right, down]: [number, number], step: number): void => {
    const { middle, scale } = chart.looks,
      at = pointer.at ?? middle,
      to: [number, number] = [at[0] - (down * step) / scale, at[1] + (right * step) / scale],
      [x, y] = chart.px(...to);
    const out =
      x < EDGE || y < EDGE || x > canvas.clientWidth - EDGE || y > canvas.clientHeight - EDGE ? step / scale : 0;
    if (out) chart.look([middle[0] - down * out, middle[1] + right * out], scale);
    pointer.cross = true;
    chart.point(...to);
  };
  canvas.addEventListener("keydown", (e) => {
    const direction = DIRECTIONS[e.key];
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (direction) move(direction, e.shiftKey ? FINE : STEP);
    else if (e.key === "Enter") chart.click(...(pointer.at ?? chart.looks.middle));
    else if (e.key === "PageUp") chart.zoom(1.25);
    else if (e.key === "PageDown") chart.zoom(0.8);
    else return;
    e.preventDefault();
    e.stopPropagation(); // the same keys move the camera of the 3D view
  });
  canvas.addEventListener("pointermove", () => {
    pointer.cross = false;
  });
}
