// The link to the current view: it is created on request, and restored when a link opens the page.

import type { BottomPanel } from "./bottom_panel";
import { toast } from "./dom";
import type { SceneStore } from "./scene_store";
import type { Selection } from "./selection";
import type { SidePanels } from "./side_panels";
import type { Stage } from "./stage";
import { parseViewLink, viewLink, type ViewState } from "./url_state";

export interface SharedParts {
  stage: Pick<Stage, "state" | "look" | "showLayers">;
  bottom: Pick<BottomPanel, "open" | "show">;
  panels: Pick<SidePanels, "shown" | "set">;
  selection: Pick<Selection, "choose">;
  control(verb: string, value?: number): void;
}

export class SharedView {
  private pending: ViewState | null = parseViewLink(location.hash); // kept until the scene is loaded

  constructor(
    private readonly store: SceneStore,
    private readonly parts: SharedParts,
  ) {
    window.addEventListener("hashchange", () => {
      this.pending = parseViewLink(location.hash);
      this.restore();
    });
  }

  /** Put a link to the current view into the address bar and the clipboard. */
  share(): void {
    const { stage, bottom, panels } = this.parts,
      { chosen, hello, time } = this.store;
    const view: ViewState = {
      ...stage.state(),
      body: chosen === null ? "" : this.store.name(chosen),
      time: hello?.kind === "replay" ? time : null,
      pane: bottom.open,
      panels: [panels.shown("left"), panels.shown("right")],
    };
    history.replaceState(null, "", viewLink(view));
    const done =
      navigator.clipboard?.writeText(location.href).then(
        () => "link copied",
        () => "the link is in the address bar",
      ) ?? Promise.resolve("the link is in the address bar");
    void done.then((text) => toast(text));
  }

  /** Restore the view of the link that opened the page, as soon as its scene and bodies are loaded. */
  restore(): void {
    const v = this.pending,
      { stage, bottom, panels, selection, control } = this.parts;
    if (!v || !this.store.scene || !this.store.bodies.size) return;
    this.pending = null;
    stage.showLayers(v.show);
    panels.set("left", v.panels[0]);
    panels.set("right", v.panels[1]);
    bottom.show(v.pane);
    selection.choose([...this.store.bodies.values()].find((b) => b.name === v.body)?.row ?? null);
    stage.look(v);
    if (v.time === null || this.store.hello?.kind !== "replay") return;
    control("pause");
    control("seek", v.time);
  }
}
