// Alarms, and notices from the server. Each has its own list, so that acoustic signals cannot crowd them out.

import { formatTime, bodyColour, h, toggleClass, setText } from "./dom";
import type { SceneStore } from "./scene_store";
import { type Alarm, HELD, INVALID, type Notice } from "./page_protocol";

/** Name the condition of a body. */
export const CONDITION_TEXTS: Record<number, string> = {
  [HELD]: "frozen: its state diverged (NaN or infinity)",
  [INVALID]: "invalid state",
};

interface Row {
  tr: HTMLElement;
  state: HTMLElement;
  text: HTMLElement;
  ended: HTMLElement;
  button: HTMLButtonElement;
}

/** List of alarms, newest first: red while active, listed until acknowledged. */
export class AlarmList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly rows = new Map<number, Row>();
  private readonly all: HTMLButtonElement;
  private readonly none = h("div", { class: "empty" }, "no alarms");

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
    private readonly acknowledge: (id: number | null) => void,
  ) {
    this.all = h("button", { id: "seen-all", onclick: () => this.acknowledge(null) }, "Acknowledge all");
    const heads = ["since", "until", "what", "body", ""].map((t, k) => h("th", { class: k < 2 ? "n" : "" }, t));
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        h("span", { class: "soft" }, "alarms stay in the list until they are acknowledged"),
        h("span", { class: "grow" }),
        this.all,
      ),
      h(
        "div",
        { class: "list", id: "alarms" },
        h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("th", {}))), this.body),
        this.none,
      ),
    );
  }

  /** Alarms that are not acknowledged yet. */
  unseen(): Alarm[] {
    return this.store.alarms.filter((a) => !a.seen);
  }

  update(): void {
    const alarms = this.store.alarms,
      ids = new Set(alarms.map((a) => a.id));
    for (const [id, row] of this.rows)
      if (!ids.has(id)) {
        row.tr.remove();
        this.rows.delete(id);
      }
    for (const a of alarms) {
      let row = this.rows.get(a.id);
      if (!row) {
        const dot = h("span", { class: "dot" });
        dot.style.background = a.row < 0 ? "transparent" : bodyColour(a.row);
        const state = h("td", {}, a.kind),
          text = h("td", { class: "wide-text" }),
          ended = h("td", { class: "n" }),
          button = h(
            "button",
            {
              class: "small",
              onclick: (e: Event) => {
                e.stopPropagation();
                this.acknowledge(a.id);
              },
            },
            "acknowledge",
          );
        const tr = h(
          "tr",
          {
            onclick: () => {
              if (a.row >= 0) this.choose(a.row);
            },
          },
          h("td", { class: "n" }, formatTime(a.since)),
          ended,
          state,
          h("td", {}, dot, a.name),
          text,
          h("td", {}, button),
        );
        tr.dataset["kind"] = a.kind;
        this.rows.set(a.id, (row = { tr, state, text, ended, button }));
        this.body.prepend(tr);
      }
      setText(row.ended, a.until === null ? "active" : a.until === a.since ? "" : formatTime(a.until));
      setText(row.text, a.text);
      toggleClass(row.tr, "bad", a.until === null);
      toggleClass(row.tr, "soft", a.seen && a.until !== null);
      if (row.button.disabled !== a.seen) row.button.disabled = a.seen;
      toggleClass(row.button, "hidden", !this.store.hello?.control);
    }
    toggleClass(this.none, "hidden", alarms.length > 0);
    toggleClass(this.all, "hidden", !this.store.hello?.control || !this.unseen().length);
  }
}

/** Notices from the server, for example about a crossed fence or a watchdog action. */
export class NoticeList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly none = h("div", { class: "empty" }, "no notices");
  private told: Notice | undefined; // newest notice in the list

  constructor(private readonly store: SceneStore) {
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "list", id: "notices" },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, h("th", { class: "n" }, "time"), h("th", {}, "body"), h("th", {}, "notice"))),
          this.body,
        ),
        this.none,
      ),
    );
  }

  update(): void {
    const all = this.store.notices,
      newest = all[all.length - 1];
    if (newest === this.told) return;
    this.told = newest;
    this.body.replaceChildren(
      ...all
        .slice()
        .reverse()
        .map((n) =>
          h(
            "tr",
            { class: "warm" },
            h("td", { class: "n" }, formatTime(n.time)),
            h("td", {}, n.name),
            h("td", { class: "wide-text" }, n.text),
          ),
        ),
    );
    toggleClass(this.none, "hidden", all.length > 0);
  }
}
