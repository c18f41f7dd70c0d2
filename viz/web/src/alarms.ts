// What an operator must see: alarms, and what the server told people. Each in a list of its own, where no signal drowns it.

import { formatTime, bodyColour, h, toggleClass, setText } from "./dom";
import { HELD, INVALID, type Alarm, type NoticeText } from "./websocket";
import type { SceneStore } from "./scene_store";

/** What a body's condition is called. */
export const CONDITION_TEXTS: Record<number, string> = { [HELD]: "held: its state was no longer finite", [INVALID]: "its state is no state" };

interface Row { tr: HTMLElement; state: HTMLElement; text: HTMLElement; ended: HTMLElement; button: HTMLButtonElement }

/** Alarms, the newest first: red as long as they last, and there until somebody has seen them. */
export class AlarmList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly rows = new Map<number, Row>();
  private readonly all: HTMLButtonElement;
  private readonly none = h("div", { class: "empty" }, "no alarms");

  constructor(private readonly store: SceneStore, private readonly choose: (row: number) => void, private readonly acknowledge: (id: number | null) => void) {
    this.all = h("button", { id: "seen-all", onclick: () => this.acknowledge(null) }, "all seen");
    const heads = ["since", "until", "what", "body", ""].map((t, k) => h("th", { class: k < 2 ? "n" : "" }, t));
    this.element = h("div", { class: "pane" }, h("div", { class: "events-head" }, h("span", { class: "soft" }, "an alarm stands while it lasts, and until it is acknowledged"), h("span", { class: "grow" }), this.all),
      h("div", { class: "list", id: "alarms" }, h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("th", {}))), this.body), this.none));
  }

  /** Alarms that want to be seen. */
  unseen(): Alarm[] { return this.store.alarms.filter((a) => !a.seen); }

  update(): void {
    const alarms = this.store.alarms, ids = new Set(alarms.map((a) => a.id));
    for (const [id, row] of this.rows) if (!ids.has(id)) { row.tr.remove(); this.rows.delete(id); }
    for (const a of alarms) {
      let row = this.rows.get(a.id);
      if (!row) {
        const dot = h("span", { class: "dot" });
        dot.style.background = a.row < 0 ? "transparent" : bodyColour(a.row);
        const state = h("td", {}, a.kind), text = h("td", { class: "wide-text" }), ended = h("td", { class: "n" }), button = h("button", { class: "small", onclick: (e: Event) => { e.stopPropagation(); this.acknowledge(a.id); } }, "seen");
        const tr = h("tr", { onclick: () => { if (a.row >= 0) this.choose(a.row); } }, h("td", { class: "n" }, formatTime(a.since)), ended, state, h("td", {}, dot, a.name), text, h("td", {}, button));
        tr.dataset["kind"] = a.kind;
        this.rows.set(a.id, (row = { tr, state, text, ended, button }));
        this.body.prepend(tr);
      }
      setText(row.ended, a.until === null ? "lasts" : a.until === a.since ? "" : formatTime(a.until));
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

/** What the server told people: a fence was crossed, a watchdog acted. */
export class NoticeList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly none = h("div", { class: "empty" }, "no notices");
  private told: NoticeText | undefined; // the newest in the list

  constructor(private readonly store: SceneStore) {
    this.element = h("div", { class: "pane" }, h("div", { class: "list", id: "notices" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { class: "n" }, "time"), h("th", {}, "body"), h("th", {}, "notice"))), this.body), this.none));
  }

  update(): void {
    const all = this.store.notices, newest = all[all.length - 1];
    if (newest === this.told) return;
    this.told = newest;
    this.body.replaceChildren(...all.slice().reverse().map((n) => h("tr", { class: "warm" }, h("td", { class: "n" }, formatTime(n.time)), h("td", {}, n.name), h("td", { class: "wide-text" }, n.text))));
    toggleClass(this.none, "hidden", all.length > 0);
  }
}
