// List of bookmarks: add one at the present time, go to one, export and import them.

import { type Bookmark, BOOKMARKS_VERSION, type Bookmarks, checkBookmarks, LONGEST_NOTE } from "./bookmarks";
import { formatTime, h, setText, toast, toggleClass } from "./dom";
import type { SceneStore } from "./scene_store";
import { downloadBlob } from "./url_state";

interface BookmarkFile {
  version: number;
  log: string;
  bookmarks: Bookmark[];
}

export class BookmarkList {
  readonly element: HTMLElement;
  private readonly note: HTMLInputElement;
  private readonly addButton: HTMLButtonElement;
  private readonly body = h("tbody");
  private readonly none = h("div", { class: "empty" }, "no bookmarks");
  private readonly file: HTMLInputElement;
  private at: number | null = null; // time at which the user began to write the note
  private listed = -1;

  /** `go` shows the page at a time. */
  constructor(
    private readonly store: SceneStore,
    private readonly bookmarks: Bookmarks,
    private readonly go: (time: number) => void,
    private readonly changed: () => void,
  ) {
    this.note = h("input", {
      id: "bookmark-note",
      class: "grow",
      placeholder: "note",
      "aria-label": "Note for the bookmark",
      maxLength: LONGEST_NOTE,
      autocomplete: "off",
      onfocus: () => {
        this.at ??= this.store.time; // a running simulation goes on while the note is written
      },
      onblur: () => {
        if (!this.note.value) this.at = null;
      },
      onkeydown: (e: KeyboardEvent) => {
        if (e.key === "Enter") this.add();
      },
    });
    this.addButton = h("button", { id: "bookmark-add", class: "on", onclick: () => this.add() }, "add");
    this.file = h("input", {
      type: "file",
      id: "bookmark-file",
      class: "unseen",
      accept: ".json,application/json",
      tabIndex: -1,
      "aria-label": "Bookmark file",
      onchange: () => void this.import(),
    });
    const button = (id: string, text: string, title: string, act: () => void): HTMLElement =>
      h("button", { id, title, onclick: act }, text);
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        this.note,
        this.addButton,
        button("bookmark-export", "export", "Save the bookmarks as a file", () => this.export()),
        button("bookmark-import", "import", "Add the bookmarks from a file", () => this.file.click()),
        this.file,
      ),
      h(
        "div",
        { class: "list", id: "bookmarks", tabindex: 0 },
        h("table", {}, h("thead", {}, h("tr", {}, ...["time", "note", ""].map((t) => h("th", {}, t)))), this.body),
        this.none,
      ),
    );
  }

  /** Begin a bookmark at the present time. */
  begin(): void {
    this.at = this.store.time;
    this.note.focus();
  }

  private add(): void {
    this.bookmarks.add({ time: +(this.at ?? this.store.time).toFixed(3), note: this.note.value.trim() });
    this.note.value = "";
    this.at = null;
    this.note.blur();
    this.changed();
  }

  private row(bookmark: Bookmark): HTMLElement {
    const act = (f: () => void) => (): void => {
      f();
      this.changed();
    };
    const note = h("input", {
      value: bookmark.note,
      "aria-label": `Note at ${formatTime(bookmark.time)}`,
      maxLength: LONGEST_NOTE,
      onchange: act(() => this.bookmarks.rename(bookmark, note.value.trim())),
    });
    const time = formatTime(bookmark.time);
    return h(
      "tr",
      {},
      h("td", {}, h("button", { class: "num", title: `Go to ${time}`, onclick: () => this.go(bookmark.time) }, time)),
      h("td", { class: "bookmark-note" }, note),
      h(
        "td",
        {},
        h(
          "button",
          {
            class: "small",
            title: `Delete the bookmark at ${time}`,
            onclick: act(() => this.bookmarks.remove(bookmark)),
          },
          "×",
        ),
      ),
    );
  }

  private export(): void {
    const log = this.store.hello?.name ?? "",
      content: BookmarkFile = { version: BOOKMARKS_VERSION, log, bookmarks: [...this.bookmarks.all] };
    const name = `${log.replace(/\.mcap$/, "") || "wavesim"}.bookmarks.json`;
    downloadBlob(new Blob([JSON.stringify(content, null, 2)], { type: "application/json" }), name);
  }

  private async import(): Promise<void> {
    const file = this.file.files?.[0];
    if (!file) return;
    let found: Partial<BookmarkFile> | null = null;
    try {
      found = JSON.parse(await file.text()) as BookmarkFile;
    } catch {
      /* told below */
    }
    this.file.value = "";
    const wrong =
      found?.version === BOOKMARKS_VERSION
        ? checkBookmarks(found.bookmarks)
        : `it is not a version ${BOOKMARKS_VERSION} bookmark file`;
    if (wrong) {
      toast(`cannot add the bookmarks from ${file.name}: ${wrong}; nothing was changed`, true);
      return;
    }
    this.bookmarks.add(...found!.bookmarks!);
    this.changed();
  }

  update(): void {
    setText(this.addButton, `add at ${formatTime(this.at ?? this.store.time)}`);
    const all = this.bookmarks.all;
    if (this.bookmarks.damaged) {
      this.bookmarks.damaged = false;
      toast("the bookmarks kept in this browser were damaged and have been removed", true);
    }
    if (this.bookmarks.version === this.listed) return;
    this.listed = this.bookmarks.version;
    this.body.replaceChildren(...all.map((b) => this.row(b)));
    toggleClass(this.none, "hidden", all.length > 0);
  }
}
