// Menu that opens below its title, and closes by Esc, by a press elsewhere, or when its page turns to something else.

import { pageZoom } from "./canvas";
import { h } from "./dom";

const MARGIN = 4; // px, from the edge of the picture

export class Menu {
  readonly element: HTMLDetailsElement;

  constructor(id: string, title: string, ...items: HTMLElement[]) {
    const head = h("summary", {}, title);
    const list = h("div", {}, ...items);
    this.element = h("details", { class: "shown", id, ontoggle: () => this.place(list) }, head, list);
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

  /** Keep the whole list within the picture. */
  private place(list: HTMLElement): void {
    const around = this.element.closest("#stage");
    list.style.translate = "";
    if (!this.element.open || !around) return;
    const beyond = list.getBoundingClientRect().right - around.getBoundingClientRect().right + MARGIN;
    if (beyond > 0) list.style.translate = `${-beyond / pageZoom()}px`;
  }

  close(): void {
    this.element.open = false;
  }
}
