// The selected body: its data on the right of the page, and what happens when it leaves.

import type { BodyDetails } from "./body_details";
import type { BodyPanel, RosterEntry } from "./page_protocol";
import type { SceneStore } from "./scene_store";

export class Selection {
  private absent = ""; // name of the selected body after it left; selected again when it returns
  private shown: BodyPanel | null = null; // data shown last

  constructor(
    private readonly store: SceneStore,
    private readonly details: Pick<BodyDetails, "clear" | "update">,
    private readonly watch: (row: number | null) => void,
    private readonly changed: () => void,
  ) {}

  choose(row: number | null): void {
    if (row === this.store.chosen) return;
    this.absent = "";
    this.store.chosen = row;
    this.store.panel = this.store.kit = this.store.traffic = null;
    this.shown = null;
    this.watch(row);
    this.details.clear();
    this.changed();
  }

  /** Select the vehicle that follows in the list, or the one before it. */
  step(by: number): void {
    const rows = [...this.store.bodies.values()].filter((b) => b.type !== "buoy").map((b) => b.row);
    if (!rows.length) return;
    const k = this.store.chosen === null ? -1 : rows.indexOf(this.store.chosen);
    this.choose(rows[(k + by + rows.length) % rows.length]!);
  }

  /** Drop a selected body that left, and select it again when it returns. */
  roster(bodies: RosterEntry[]): void {
    const row = this.store.chosen;
    if (row !== null && !this.store.bodies.has(row)) {
      const name = this.store.name(row);
      this.choose(null);
      this.absent = name;
    } else if (this.absent) this.choose(bodies.find(([, name]) => name === this.absent)?.[0] ?? row);
  }

  /** Show the newest data of the selected body. */
  show(): void {
    const panel = this.store.panel;
    if (!panel || panel === this.shown) return;
    this.shown = panel;
    this.details.update(panel);
  }

  /** Show the same data again, because they have become current or stale. */
  refresh(): void {
    this.shown = null;
  }
}
