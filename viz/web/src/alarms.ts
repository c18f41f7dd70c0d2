// Alarms, and notices from the server. Each has its own list, so that acoustic signals cannot crowd them out.

import { formatTime, bodyDot, h, toggleClass, setText } from "./dom";
import type { AlarmAnnouncer } from "./alarm_announcer";
import { readableText } from "./readable_text";
import type { SceneStore } from "./scene_store";
import { type Alarm, HELD, INVALID, type Notice } from "./page_protocol";
import type { ViewerSocket } from "./websocket";

/** Name the condition of a body. */
export const CONDITION_TEXTS: Record<number, string> = {
  [HELD]: "frozen: the body's state diverged (NaN or infinity)",
  [INVALID]: "invalid state",
};

interface Row {
  tr: HTMLElement;
  cells: Record<"since" | "until" | "severity" | "text" | "count", HTMLElement>;
  acknowledge: HTMLButtonElement;
  shelve: HTMLButtonElement;
}

const SEVERITIES: Alarm["severity"][] = ["high", "medium", "low"];
const SHELVING_MIN = [5, 10, 30, 60]; // of simulation time

/** Order of alarms: shelved alarms last, unacknowledged first, then active, then by severity, then the newest. */
export function byUrgency(a: Alarm, b: Alarm): number {
  const rank = (x: Alarm): number[] => [
    Number(x.shelved !== null),
    Number(x.seen),
    Number(x.until !== null),
    SEVERITIES.indexOf(x.severity),
    -x.since,
    -x.id,
  ];
  const [r, s] = [rank(a), rank(b)],
    k = r.findIndex((v, i) => v !== s[i]);
  return k < 0 ? 0 : r[k]! - s[k]!;
}

/** List of alarms, the most urgent first: coloured while active, listed until acknowledged. */
export class AlarmList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly rows = new Map<number, Row>();
  private order = "";
  private readonly all: HTMLButtonElement;
  private readonly period = h(
    "select",
    { "aria-label": "Time for which an alarm is shelved" },
    ...SHELVING_MIN.map((m) => h("option", { value: 60 * m, selected: m === 10 }, `shelve for ${m} min`)),
  );
  private readonly none = h("div", { class: "empty" }, "no alarms");

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
    private readonly requests: Pick<ViewerSocket, "acknowledge" | "shelve">,
    announcer: AlarmAnnouncer,
  ) {
    this.all = h("button", { id: "seen-all", onclick: () => requests.acknowledge(null) }, "acknowledge all");
    const heads = ["since", "until", "severity", "what", "body", "times", "", ""];
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "events-head" },
        h("span", { class: "soft grow" }, "alarms stay in the list until they are acknowledged"),
        ...announcer.buttons,
        this.period,
        this.all,
      ),
      h(
        "div",
        { class: "list", id: "alarms", tabindex: 0 },
        h(
          "table",
          {},
          h("thead", {}, h("tr", {}, ...heads.map((t, k) => h("th", { class: k < 2 || k === 5 ? "n" : "" }, t)))),
          this.body,
        ),
        this.none,
      ),
    );
  }

  /** Alarms that are not acknowledged yet. */
  unseen(): Alarm[] {
    return this.store.alarms.filter((a) => !a.seen);
  }

  private row(a: Alarm): Row {
    const dot = bodyDot(a.row);
    const cells = {
      since: h("td", { class: "n" }),
      until: h("td", { class: "n" }),
      severity: h("td", {}),
      count: h("td", { class: "n" }),
      text: h("td", { class: "wide-text" }),
    };
    const button = (act: () => void): HTMLButtonElement =>
      h("button", {
        class: "small",
        onclick: (e: Event) => {
          e.stopPropagation();
          act();
        },
      });
    const acknowledge = button(() => this.requests.acknowledge(a.id)),
      shelve = button(() => this.requests.shelve(a.id, shelve.dataset["off"] ? 0 : Number(this.period.value)));
    acknowledge.textContent = "acknowledge";
    const tr = h(
      "tr",
      {
        onclick: () => {
          if (a.row >= 0) this.choose(a.row);
        },
      },
      cells.since,
      cells.until,
      cells.severity,
      h("td", {}, a.kind),
      h("td", {}, dot, a.name),
      cells.count,
      cells.text,
      h("td", {}, acknowledge, shelve),
    );
    tr.dataset["kind"] = a.kind;
    return { tr, cells, acknowledge, shelve };
  }

  update(): void {
    const alarms = [...this.store.alarms].sort(byUrgency),
      ids = new Set(alarms.map((a) => a.id)),
      may = this.store.hello?.control === true;
    for (const [id, row] of this.rows)
      if (!ids.has(id)) {
        row.tr.remove();
        this.rows.delete(id);
      }
    for (const a of alarms) {
      let row = this.rows.get(a.id);
      if (!row) this.rows.set(a.id, (row = this.row(a)));
      const { tr, cells, acknowledge, shelve } = row,
        shelved = a.shelved !== null,
        ended = a.until === null ? "active" : a.until === a.since ? "" : formatTime(a.until);
      setText(cells.since, formatTime(a.since));
      setText(cells.until, shelved ? `shelved until ${formatTime(a.shelved!)}` : ended);
      setText(cells.severity, a.severity);
      setText(cells.count, a.count > 1 ? `${a.count} ×` : "");
      setText(cells.text, a.text);
      toggleClass(tr, "bad", a.until === null && !shelved && a.severity === "high");
      toggleClass(tr, "warm", a.until === null && !shelved && a.severity !== "high");
      toggleClass(tr, "soft", shelved || (a.seen && a.until !== null));
      if (acknowledge.disabled !== a.seen) acknowledge.disabled = a.seen;
      setText(shelve, shelved ? "unshelve" : "shelve");
      shelve.dataset["off"] = shelved ? "1" : "";
      for (const b of [acknowledge, shelve]) toggleClass(b, "hidden", !may);
    }
    const order = [...ids].join();
    if (order !== this.order && !this.body.matches(":active")) {
      // rows must not move while a button is pressed
      this.order = order;
      this.body.replaceChildren(...alarms.map((a) => this.rows.get(a.id)!.tr));
    }
    toggleClass(this.none, "hidden", alarms.length > 0);
    toggleClass(this.period, "hidden", !may || !alarms.length);
    toggleClass(this.all, "hidden", !may || !this.unseen().length);
  }
}

/** Notices from the server, for example about a crossed fence or a watchdog action. */
export class NoticeList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly none = h("div", { class: "empty" }, "no notices");
  private newestShown: Notice | undefined;

  constructor(private readonly store: SceneStore) {
    this.element = h(
      "div",
      { class: "pane" },
      h(
        "div",
        { class: "list", id: "notices", tabindex: 0 },
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
    if (newest === this.newestShown) return;
    this.newestShown = newest;
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
            h("td", { class: "wide-text" }, readableText(n.text)),
          ),
        ),
    );
    toggleClass(this.none, "hidden", all.length > 0);
  }
}
