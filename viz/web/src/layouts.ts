// Menu of layouts: saved under a name in this browser, exported to a file and imported from one.

import type { Arrangement } from "./arrangement";
import { h, setChildren, toast } from "./dom";
import { checkLayout, type Layout } from "./layout";
import { Menu } from "./menu";
import { downloadBlob } from "./url_state";

const STORED = "wavesim-layouts";
const LONGEST_NAME = 40;

export class LayoutMenu {
  readonly menu: Menu;
  private readonly list = h("div", { class: "layout-list" });
  private readonly name = h("input", {
    id: "layout-name",
    placeholder: "name",
    "aria-label": "Name of the layout",
    maxLength: LONGEST_NAME,
    onkeydown: (e: KeyboardEvent) => {
      if (e.key === "Enter") this.save();
    },
  });
  private readonly file = h("input", {
    type: "file",
    id: "layout-file",
    class: "unseen",
    accept: ".json,application/json",
    tabIndex: -1,
    "aria-label": "Layout file",
    onchange: () => void this.read(),
  });
  private current = ""; // name of the layout that was applied last

  constructor(private readonly page: Arrangement) {
    const button = (id: string, text: string, title: string, act: () => void): HTMLElement =>
      h("button", { id, title, onclick: act }, text);
    this.menu = new Menu(
      "layouts",
      "layout",
      this.list,
      h(
        "div",
        { class: "row" },
        this.name,
        button("layout-save", "save", "Save the current arrangement", () => this.save()),
      ),
      h(
        "div",
        { class: "row" },
        button("layout-export", "export", "Save the current arrangement as a file", () => this.export()),
        button("layout-import", "import", "Open a layout from a file", () => this.file.click()),
        this.file,
      ),
    );
    this.menu.element.addEventListener("toggle", () => {
      if (this.menu.element.open) this.show();
    });
  }

  /** Layouts saved in this browser, as they are stored. */
  private get saved(): Record<string, unknown> {
    try {
      const found = JSON.parse(localStorage.getItem(STORED) ?? "{}") as unknown;
      if (typeof found === "object" && found !== null && !Array.isArray(found)) return found as Record<string, unknown>;
    } catch {
      /* told below */
    }
    localStorage.removeItem(STORED);
    toast("the layouts saved in this browser were damaged and have been removed", true);
    return {};
  }

  private show(): void {
    const row = (name: string): HTMLElement =>
      h(
        "div",
        { class: "row" },
        h("button", { class: `grow${name === this.current ? " on" : ""}`, onclick: () => this.open(name) }, name),
        h("button", { class: "small", title: `Delete the layout '${name}'`, onclick: () => this.remove(name) }, "×"),
      );
    const reset = (): void => this.take("", this.page.defaults);
    setChildren(
      this.list,
      h("button", { id: "layout-default", title: "Restore the default arrangement", onclick: reset }, "default"),
      ...Object.keys(this.saved).map(row),
    );
  }

  private take(name: string, layout: Layout): void {
    this.current = this.name.value = name;
    this.page.apply(layout);
    this.menu.close();
  }

  private open(name: string): void {
    const layout = this.saved[name],
      wrong = checkLayout(layout);
    if (!wrong) this.take(name, layout as Layout);
    else {
      this.take("", this.page.defaults);
      toast(`cannot open the layout '${name}': ${wrong}; showing the default layout instead`, true);
    }
  }

  private store(name: string, layout: Layout): void {
    localStorage.setItem(STORED, JSON.stringify({ ...this.saved, [name]: layout }));
    this.current = this.name.value = name;
    this.show();
  }

  private remove(name: string): void {
    const rest = this.saved;
    delete rest[name];
    localStorage.setItem(STORED, JSON.stringify(rest));
    this.show();
  }

  private save(): void {
    const name = this.name.value.trim();
    if (!name) {
      toast("enter a name for the layout", true);
      this.name.focus();
      return;
    }
    this.store(name, this.page.layout);
    toast(`layout '${name}' saved in this browser`);
  }

  private export(): void {
    const name = this.name.value.trim() || "layout",
      text = JSON.stringify({ name, ...this.page.layout }, null, 2);
    downloadBlob(
      new Blob([text], { type: "application/json" }),
      `${name.replace(/[^\p{L}\p{N} _-]/gu, "_")}.layout.json`,
    );
  }

  /** Open the layout of a file, and save it under its name. A file that is no layout changes nothing. */
  private async read(): Promise<void> {
    const file = this.file.files?.[0];
    if (!file) return;
    let found: unknown = null;
    try {
      found = JSON.parse(await file.text());
    } catch {
      /* told below */
    }
    this.file.value = "";
    const wrong = checkLayout(found);
    if (wrong) {
      toast(`cannot open the layout in ${file.name}: ${wrong}; nothing was changed`, true);
      return;
    }
    const { name, ...layout } = found as Layout & { name?: unknown },
      called = (typeof name === "string" && name.trim().slice(0, LONGEST_NAME)) || file.name.split(".")[0]!;
    this.store(called, layout);
    this.take(called, layout);
  }
}
