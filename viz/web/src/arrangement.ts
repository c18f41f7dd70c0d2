// Reads the arrangement of the page as a layout, and arranges the page as a layout says.

import type { BottomPanel } from "./bottom_panel";
import { LAYOUT_VERSION, type Layout } from "./layout";
import type { SidePanels } from "./side_panels";
import type { Stage } from "./stage";

export interface ArrangedParts {
  stage: Pick<Stage, "layout" | "showLayers" | "setLayout" | "defaultLayers">;
  bottom: Pick<BottomPanel, "layout" | "arrange">;
  panels: Pick<SidePanels, "shown" | "set">;
}

export class Arrangement {
  constructor(private readonly parts: ArrangedParts) {}

  get layout(): Layout {
    const { stage, bottom, panels } = this.parts;
    return {
      version: LAYOUT_VERSION,
      ...stage.layout,
      panels: [panels.shown("left"), panels.shown("right")],
      ...bottom.layout,
    };
  }

  /** Layout of a first visit. */
  get defaults(): Layout {
    return {
      version: LAYOUT_VERSION,
      mode: "free",
      split: null,
      show: this.parts.stage.defaultLayers,
      panels: [true, true],
      panes: ["signals"],
      bounds: [],
      height: 0.25,
      charts: [],
    };
  }

  apply(layout: Layout): void {
    const { stage, bottom, panels } = this.parts;
    stage.showLayers(layout.show);
    panels.set("left", layout.panels[0]);
    panels.set("right", layout.panels[1]);
    bottom.arrange(layout);
    stage.setLayout(layout);
  }
}
