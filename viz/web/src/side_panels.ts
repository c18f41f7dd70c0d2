// The panels on the left and on the right of the page, shown or hidden as at the last visit.

export type Side = "left" | "right";
const SIDES: Side[] = ["left", "right"];

export class SidePanels {
  constructor(private readonly root: HTMLElement) {
    for (const side of SIDES) this.set(side, localStorage.getItem(`wavesim-no-${side}`) !== "1");
  }

  toggle(side: Side): void {
    this.set(side, !this.shown(side));
  }

  /** Show or hide a panel, and remember the choice for the next visit. */
  set(side: Side, shown: boolean): void {
    this.root.classList.toggle(`no-${side}`, !shown);
    localStorage.setItem(`wavesim-no-${side}`, shown ? "" : "1");
  }

  shown(side: Side): boolean {
    return !this.root.classList.contains(`no-${side}`);
  }
}
