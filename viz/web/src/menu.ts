// Menu that opens below its title, and closes by Esc, by a press elsewhere, or when its page turns to something else.

import { h } from "./dom";

export class Menu {
  readonly element: HTMLDetailsElement;

  constructor(id: string, title: string, ...items: HTMLElement[]) {
    const head = h("summary", {}, title);
    this.element = h("details", { class: "shown", id }, head, h("div", {}, ...items));
    window.addEventListener(
      "pointerdown",
      (e) => {
        if (!this.element.contains(e.target as Node)) this.close();
      },
      true,
    );
    // before the shortcuts of the page: Esc closes the menu only
    window.addEventListener(
      "keydown",
      (e) => {
        if (e.key !== "Escape" || !this.element.open) return;
        e.stopImmediatePropagation();
        this.close();
        head.focus();
      },
      true,
    );
  }

  close(): void {
    this.element.open = false;
  }
}
