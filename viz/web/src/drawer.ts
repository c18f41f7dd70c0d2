// Bottom panel with one pane, or up to four side by side, and an adjustable height.

import { h, toggleClass, setText } from "./dom";
import { splitter } from "./splitter";

export interface Pane {
  key: string;
  title: string;
  element: HTMLElement;
  update: () => void;
  count?: () => number;
}
interface Tab {
  button: HTMLButtonElement;
  count: HTMLElement;
  pane: Pane;
  column: HTMLElement;
  /** Selects the pane of this column. */
  select: HTMLSelectElement;
}

const LOW = 90,
  HIGH = 0.75; // px; share of the window height
export const MOST_PANES = 4;

export class Drawer {
  readonly element = h("div", { class: "drawer" });
  /** Keys of the open panes, from left to right. */
  panes: string[] = [];
  /** Where one pane ends and the next begins, as shares of the width. */
  bounds: number[] = [];
  private used = ""; // pane that was used last
  private readonly tabs = new Map<string, Tab>();
  private readonly place = h("div", { class: "panes" });
  private readonly beside = h(
    "button",
    {
      id: "split-panel",
      title: "Open another tab beside those that are open (or Shift+click a tab)",
      onclick: () => this.split(),
    },
    "◫ split",
  );
  private height = Number(localStorage.getItem("wavesim-drawer")) || Math.min(200, 0.27 * window.innerHeight);

  constructor(
    panes: Pane[],
    private readonly changed: () => void,
  ) {
    const bar = h("div", { class: "tabs", role: "tablist", "aria-multiselectable": "true" });
    for (const pane of panes) this.add(pane, panes, bar);
    this.element.append(this.grip(), h("div", { class: "tab-bar" }, bar, this.beside), this.place);
    this.resize(this.height);
    const bounds = (localStorage.getItem("wavesim-bounds") ?? "").split(",").filter(Boolean).map(Number);
    this.arrange((localStorage.getItem("wavesim-pane") ?? panes[0]!.key).split(","), bounds);
  }

  private add(pane: Pane, all: Pane[], bar: HTMLElement): void {
    const count = h("span", { class: "count" }),
      press = (e: MouseEvent): void => this.press(pane.key, e.shiftKey),
      button = h("button", { id: `tab-${pane.key}`, role: "tab", onclick: press }, pane.title, count),
      select = h(
        "select",
        { "aria-label": "Tab of this column", onchange: () => this.replace(pane.key, select.value) },
        ...all.map((p) => h("option", { value: p.key }, p.title)),
      ),
      close = h("button", { title: `Close ${pane.title}`, onclick: () => this.press(pane.key, false) }, "×"),
      head = h("div", { class: "column-head" }, select, h("span", { class: "grow" }), close),
      column = h("div", { class: "column hidden" }, head, pane.element);
    for (const use of ["pointerdown", "focusin"])
      column.addEventListener(use, () => {
        this.used = pane.key;
      });
    column.dataset["pane"] = pane.key;
    this.tabs.set(pane.key, { button, count, pane, column, select });
    bar.append(button);
    this.place.append(column);
  }

  private grip(): HTMLElement {
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
    });
    return grip;
  }

  private resize(height: number): void {
    this.height = Math.round(Math.min(Math.max(height, LOW), HIGH * window.innerHeight));
    this.place.style.setProperty("--height", `${this.height}px`);
    localStorage.setItem("wavesim-drawer", String(this.height));
    this.changed();
  }

  /** Height as a share of the window. */
  get share(): number {
    return this.height / window.innerHeight;
  }
  set share(share: number) {
    this.resize(share * window.innerHeight);
  }

  /** Key of the first open pane; "" if none is open. */
  get open(): string {
    return this.panes[0] ?? "";
  }

  /** Disable the tab of a pane that cannot act, with the reason; "": enable it. */
  disable(key: string, reason: string): void {
    const { button } = this.tabs.get(key)!;
    button.disabled = reason !== "";
    button.title = reason;
    if (reason && this.open === key && this.panes.length === 1) this.show([...this.tabs.keys()][0]!);
    else this.arrange(this.panes, this.bounds);
  }

  /** Open one pane; "" closes the panel. */
  show(key: string): void {
    this.arrange([key]);
  }

  private press(key: string, beside: boolean): void {
    const { panes, used } = this;
    if (panes.includes(key)) this.arrange(panes.filter((k) => k !== key));
    else if (beside) this.arrange([...panes, key]);
    else this.replace(panes.includes(used) ? used : (panes[panes.length - 1] ?? ""), key);
    this.used = key;
  }

  /** Show another pane in a column; if that pane is open already, the two change places. */
  private replace(old: string, key: string): void {
    if (this.tabs.get(key)!.button.disabled) this.arrange(this.panes, this.bounds);
    else if (!this.panes.length) this.arrange([key]);
    else
      this.arrange(
        this.panes.map((k) => (k === old ? key : k === key ? old : k)),
        this.bounds,
      );
  }

  private split(): void {
    const free = [...this.tabs].find(([key, { button }]) => !button.disabled && !this.panes.includes(key));
    if (free) this.press(free[0], true);
  }

  /** Open panes side by side; without bounds, all have the same width. */
  arrange(keys: string[], bounds: number[] = []): void {
    this.panes = [...new Set(keys)].filter((k) => this.tabs.get(k)?.button.disabled === false).slice(0, MOST_PANES);
    const n = this.panes.length,
      good = bounds.length === n - 1 && [0, ...bounds, 1].every((v, k, all) => !k || v > all[k - 1]!);
    this.bounds = good ? bounds : this.panes.slice(1).map((_, k) => (k + 1) / n);
    const shown: HTMLElement[] = [];
    this.panes.forEach((key, k) => {
      if (k) shown.push(this.divider(k - 1));
      shown.push(this.tabs.get(key)!.column);
    });
    for (const [key, { button, column, select }] of this.tabs) {
      const on = this.panes.includes(key);
      toggleClass(button, "on", on);
      button.setAttribute("aria-selected", String(on));
      toggleClass(column, "hidden", !on);
      if (!on) shown.push(column);
      select.value = key;
    }
    this.place.replaceChildren(...shown);
    toggleClass(this.place, "several", n > 1);
    toggleClass(this.place, "hidden", !n);
    this.beside.disabled = n >= MOST_PANES;
    this.widths();
  }

  private divider(k: number): HTMLElement {
    const set = (share: number): void => {
      const [low, high] = [this.bounds[k - 1] ?? 0, this.bounds[k + 1] ?? 1];
      this.bounds[k] = Math.min(Math.max(share, low + 0.1), Math.max(high - 0.1, low + 0.1));
      this.widths();
    };
    return splitter(this.place, () => this.bounds[k] ?? 0.5, set);
  }

  private widths(): void {
    this.panes.forEach((key, k) => {
      this.tabs.get(key)!.column.style.flexGrow = String((this.bounds[k] ?? 1) - (this.bounds[k - 1] ?? 0));
    });
    localStorage.setItem("wavesim-pane", this.panes.join());
    localStorage.setItem("wavesim-bounds", this.bounds.join());
    this.changed();
  }

  update(): void {
    for (const { count, pane } of this.tabs.values()) {
      const n = pane.count?.() ?? 0;
      setText(count, n ? String(n) : "");
    }
    for (const key of this.panes) this.tabs.get(key)!.pane.update();
  }
}
