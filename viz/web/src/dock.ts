// The dock: windows beside the picture, which makes room for them, instead of over it. In a narrow stage they are below
// the picture.

import { h, toggleClass } from "./dom";

const NARROW = 640; // px, width of a stage below which the dock is below the picture

export class Dock {
  private readonly element = h("div", { class: "dock hidden" });

  constructor(private readonly stage: HTMLElement) {
    stage.append(this.element);
    new ResizeObserver(() => this.arrange()).observe(stage);
  }

  /** Put a window into the dock, or take it out into the picture, where it floats. */
  place(box: HTMLElement, docked: boolean): void {
    if (docked) this.element.append(box);
    else this.stage.append(box);
    toggleClass(box, "docked", docked);
    this.arrange();
  }

  /** Remove a window. */
  remove(box: HTMLElement): void {
    box.remove();
    this.arrange();
  }

  private arrange(): void {
    const count = this.element.childElementCount,
      below = this.stage.clientWidth < NARROW;
    toggleClass(this.element, "hidden", count === 0);
    toggleClass(this.stage, "docks-right", count > 0 && !below);
    toggleClass(this.stage, "docks-below", count > 0 && below);
    toggleClass(this.stage, "docks-many", count > 3);
  }
}
