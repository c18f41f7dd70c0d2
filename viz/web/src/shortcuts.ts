// Keyboard shortcuts of the page; `keyboard.ts` has the help about them.

import type { BottomPanel } from "./bottom_panel";
import type { ChartPointer } from "./chart_pointer";
import { isTypedIntoField, normalisedKey, showKeyHelp } from "./keyboard";
import type { ManualControl } from "./manual_control";
import type { MissionEditor } from "./mission_editor";
import type { Selection } from "./selection";
import type { SidePanels } from "./side_panels";
import { LAYERS, type Stage } from "./stage";
import type { Theme } from "./theme";
import type { Toolbar } from "./toolbar";

export interface ShortcutTargets {
  toolbar: Pick<Toolbar, "startOrPause" | "step" | "stop" | "faster">;
  stage: Pick<Stage, "setMode" | "showChart" | "toggleSplit" | "home" | "toggle" | "menu">;
  selection: Pick<Selection, "choose" | "step">;
  mission: Pick<MissionEditor, "request">;
  helm: Pick<ManualControl, "request">;
  panels: Pick<SidePanels, "toggle">;
  bottom: Pick<BottomPanel, "bookmark" | "timeline">;
  theme: Pick<Theme, "toggle">;
  pointer: Pick<ChartPointer, "endMeasurement" | "measuring" | "measure" | "copy">;
  /** Open the onboard view of the selected body, or close it. */
  toggleOnboard(): void;
}

function actions(p: ShortcutTargets): Record<string, () => void> {
  return {
    " ": () => p.toolbar.startOrPause(),
    n: () => p.toolbar.step(),
    x: () => p.toolbar.stop(),
    "+": () => p.toolbar.faster(1),
    "=": () => p.toolbar.faster(1),
    "-": () => p.toolbar.faster(-1),
    "1": () => p.stage.setMode("free"),
    "2": () => p.stage.setMode("follow"),
    "3": () => p.stage.setMode("top"),
    "4": () => p.stage.setMode("chart"),
    "5": () => p.stage.toggleSplit(),
    h: () => p.stage.home(),
    b: () => p.selection.step(1),
    B: () => p.selection.step(-1),
    Escape: () => {
      if (p.pointer.endMeasurement()) return;
      document.querySelector(".help")?.remove();
      p.selection.choose(null);
    },
    o: () => p.toggleOnboard(),
    ...Object.fromEntries(
      LAYERS.filter(([, , key]) => key).map(([layer, , key]) => [key.toLowerCase(), () => p.stage.toggle(layer)]),
    ),
    f: () => {
      p.stage.showChart();
      p.pointer.measure(!p.pointer.measuring);
      document.querySelector<HTMLElement>("canvas.chart")?.focus(); // for the arrow keys; a hidden chart has lost the focus
    },
    y: () => p.pointer.copy(),
    m: () => {
      p.stage.menu.close();
      p.mission.request();
    },
    j: () => {
      p.stage.menu.close();
      p.helm.request();
    },
    M: () => p.bottom.bookmark(),
    ",": () => p.bottom.timeline.step(-1),
    ".": () => p.bottom.timeline.step(1),
    "[": () => p.panels.toggle("left"),
    "]": () => p.panels.toggle("right"),
    L: () => p.theme.toggle(),
    "?": () => showKeyHelp(),
  };
}

/** React to keys, except in fields that take text; in the configurator, to that of the theme only. */
export function listenToKeys(targets: ShortcutTargets): void {
  const keys = actions(targets);
  window.addEventListener("keydown", (e) => {
    if (isTypedIntoField(e)) return;
    const key = normalisedKey(e),
      act = keys[key];
    if (!act || (location.hash === "#configure" && key !== "L")) return;
    e.preventDefault();
    act();
  });
}
