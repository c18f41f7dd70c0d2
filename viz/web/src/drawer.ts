// Bottom panel with one open pane at a time and an adjustable height.

import { h, toggleClass, setText } from "./dom";

export interface Pane {
  key: string;
  title: string;
  element: HTMLElement;
  update: () => void;
  count?: () => number;
}

const LOW = 90,
  HIGH = 0.75; // px; share of the window height

export class Drawer {
  readonly element = h("div", { class: "drawer" });
  open = "";
  private readonly tabs = new Map<string, { button: HTMLButtonElement; count: HTMLElement; pane: Pane }>();
  private readonly place = h("div", { class: "panes" });
  private height = Number(localStorage.getItem("wavesim-drawer")) || Math.min(200, 0.27 * window.innerHeight);

  constructor(
    panes: Pane[],
    private readonly changed: () => void,
  ) {
    const grip = h("div", { class: "grip", title: "Drag to change the height" });
    let from: number | null = null;
    grip.addEventListener("pointerdown", (e) => {
      from = e.clientY + this.height;
      grip.setPointerCapture(e.pointerId);
    });
    grip.addEventListener("pointermove", (e) => {
      if (from !== null) this.resize(from - e.clientY);
    });
    grip.addEventListener("pointerup", () => {
      from = null;
      localStorage.setItem("wavesim-drawer", String(this.height));
    });
    const bar = h("div", { class: "tabs", role: "tablist" });
    for (const pane of panes) {
      const count = h("span", { class: "count" }),
        button = h(
          "button",
          { id: `tab-${pane.key}`, role: "tab", onclick: () => this.show(this.open === pane.key ? "" : pane.key) },
          pane.title,
          count,
        );
      this.tabs.set(pane.key, { button, count, pane });
      bar.append(button);
      this.place.append(pane.element);
    }
    this.element.append(grip, bar, this.place);
    this.resize(this.height);
    this.show(localStorage.getItem("wavesim-pane") ?? panes[0]!.key);
  }

  private resize(height: number): void {
    this.height = Math.round(Math.min(Math.max(height, LOW), HIGH * window.innerHeight));
    this.place.style.height = `${this.height}px`;
    this.changed();
  }

  /** Disable the tab of a pane that cannot act, with the reason; "": enable it. */
  disable(key: string, reason: string): void {
    const { button } = this.tabs.get(key)!;
    button.disabled = reason !== "";
    button.title = reason;
    if (reason && this.open === key) this.show([...this.tabs.keys()][0]!);
  }

  /** Open a pane; "" closes the panel. */
  show(key: string): void {
    this.open = this.tabs.has(key) && !this.tabs.get(key)!.button.disabled ? key : "";
    localStorage.setItem("wavesim-pane", this.open);
    for (const [name, { button, pane }] of this.tabs) {
      toggleClass(button, "on", name === this.open);
      button.setAttribute("aria-selected", String(name === this.open));
      toggleClass(pane.element, "hidden", name !== this.open);
    }
    toggleClass(this.place, "hidden", !this.open);
    this.changed();
  }

  update(): void {
    for (const { count, pane } of this.tabs.values()) {
      const n = pane.count?.() ?? 0;
      setText(count, n ? String(n) : "");
    }
    this.tabs.get(this.open)?.pane.update();
  }
}
