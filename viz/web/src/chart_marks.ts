// Events as vertical lines in a chart over time; the one near the pointer tells its text.

import type uPlot from "uplot";
import { formatTime, h, setText, toggleClass } from "./dom";
import { markColour } from "./event_marks";
import type { TimeMark } from "./page_protocol";

const NEAR = 5; // px

export function markPlugin(marks: () => TimeMark[]): uPlot.Plugin {
  const tip = h("div", { class: "tip mark-tip hidden" });
  const draw = (u: uPlot): void => {
    const { min, max } = u.scales["x"]!,
      { ctx, bbox } = u;
    if (typeof min !== "number" || typeof max !== "number") return;
    ctx.save();
    ctx.globalAlpha = 0.7;
    ctx.lineWidth = Math.max(1, devicePixelRatio);
    ctx.setLineDash([4, 3]);
    for (const m of marks()) {
      if (m.time < min || m.time > max) continue;
      const x = Math.round(u.valToPos(m.time, "x", true)) + 0.5;
      ctx.strokeStyle = markColour(m.kind);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  };
  const point = (u: uPlot): void => {
    const at = u.cursor.left ?? -1,
      far = (m: TimeMark): number => Math.abs(u.valToPos(m.time, "x") - at);
    let found: TimeMark | null = null;
    if (at >= 0 && u.over.matches(":hover"))
      for (const m of marks()) if (far(m) <= NEAR && (!found || far(m) < far(found))) found = m;
    toggleClass(tip, "hidden", !found);
    if (!found) return;
    setText(tip, `${formatTime(found.time)}  ${found.kind}: ${found.text}`);
    const right = at > u.over.clientWidth / 2;
    tip.style.left = right ? "auto" : `${at + 8}px`;
    tip.style.right = right ? `${u.over.clientWidth - at + 8}px` : "auto";
  };
  return { hooks: { ready: (u) => u.over.append(tip), draw, setCursor: point } };
}
