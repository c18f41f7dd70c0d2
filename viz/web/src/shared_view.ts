// The link to the current view: it is created on request, and restored when a link opens the page.

import type { Arrangement } from "./arrangement";
import type { Bookmarks } from "./bookmarks";
import { toast } from "./dom";
import type { Propagation } from "./propagation";
import type { SceneStore } from "./scene_store";
import type { Selection } from "./selection";
import type { Stage } from "./stage";
import { parseViewLink, viewLink, type ViewState } from "./url_state";

export interface SharedParts {
  stage: Pick<Stage, "state" | "look">;
  arrangement: Arrangement;
  selection: Pick<Selection, "choose">;
  bookmarks: Bookmarks;
  propagation: Pick<Propagation, "view">;
  control(verb: string, value?: number): void;
}

export class SharedView {
  private pending = parseViewLink(location.hash); // kept until the scene is loaded

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
    const { stage, arrangement, bookmarks, propagation } = this.parts,
      { chosen, hello, time } = this.store;
    const { layout } = arrangement;
    const view: ViewState = {
      ...layout,
      ...stage.state(),
      body: chosen === null ? "" : this.store.name(chosen),
      time: hello?.kind === "replay" ? time : null,
      ...(bookmarks.all.length ? { bookmarks: [...bookmarks.all] } : {}),
      ...(layout.panes.includes("propagation") ? { propagation: propagation.view } : {}),
    };
    history.replaceState(null, "", viewLink(view));
    const done =
      navigator.clipboard?.writeText(location.href).then(
        () => "link copied",
        () => "the link is in the address bar",
      ) ?? Promise.resolve("the link is in the address bar");
    void done.then((text) => toast(text));
  }

  /** Restore the view of the link that opened the page, as soon as the page knows its source, its scene and its bodies. */
  restore(): void {
    const v = this.pending,
      { stage, arrangement, selection, bookmarks, propagation, control } = this.parts;
    if (!v || !this.store.hello || !this.store.scene || !this.store.bodies.size) return;
    this.pending = null;
    if (typeof v === "string") {
      arrangement.apply(arrangement.defaults);
      toast(`cannot show the view from this link: ${v}; showing the default layout instead`, true);
      return;
    }
    arrangement.apply(v);
    selection.choose([...this.store.bodies.values()].find((b) => b.name === v.body)?.row ?? null);
    stage.look(v);
    if (v.bookmarks) bookmarks.add(...v.bookmarks);
    if (v.propagation) propagation.view = v.propagation;
    if (v.time === null || this.store.hello.kind !== "replay") return;
    control("pause");
    control("seek", v.time);
  }
}
