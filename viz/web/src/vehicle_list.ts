// List of bodies: vehicles with battery, mission and link, then buoys. Headings sort it; groups can be closed.

import { CONDITION_TEXTS } from "./alarms";
import { euler, formatHeading } from "./coordinate_frames";
import { bodyDot, formatNumber, h, setText, toggleClass } from "./dom";
import { INVALID } from "./page_protocol";
import type { BodyEntry, SceneStore } from "./scene_store";
import {
  type Alarmed,
  SEVERITIES,
  type Shown,
  alarmsByRow,
  battery,
  link,
  mission,
  timeToTarget,
} from "./vehicle_status";

const MOST = 300,
  SORT_S = 1000; // ms between two sorts by a value that changes
type Key = "order" | "name" | "depth" | "speed" | "hdg" | "battery" | "mission" | "link" | "alarm";
type Part = { text: (store: SceneStore, row: number) => Shown; cell: HTMLElement };

interface Row {
  tr: HTMLTableRowElement;
  under: HTMLTableRowElement | null;
  cells: HTMLTableCellElement[];
  badge: HTMLElement;
  parts: Part[];
}
const HEADS: [key: Key, text: string, title: string][] = [
  ["name", "name", "Sort by name"],
  ["depth", "depth", "Sort by depth (m)"],
  ["speed", "speed", "Sort by speed over ground (m/s)"],
  ["hdg", "hdg", "Sort by heading (degrees)"],
];
const ALARM: [key: Key, text: string, title: string] = ["alarm", "⚠", "Sort by alarm severity"];
const UNDER_HEADS: [key: Key, text: string, title: string][] = [
  ["battery", "battery", "Sort by battery charge"],
  ["mission", "mission", "Sort by time to the current target"],
  ["link", "link", "Sort by time since the last datagram"],
];
const SHOWN: [class_: string, text: Part["text"]][] = [
  ["battery", battery],
  ["mission", mission],
  ["link", link],
];

export class FleetList {
  readonly element = h("div", { class: "scroll", id: "fleet" });
  private readonly rows = new Map<number, Row>();
  private readonly body = h("tbody");
  private readonly search: HTMLInputElement;
  private readonly heads = new Map<Key, HTMLButtonElement>();
  private readonly closed = new Set<string>(); // groups
  private key = "";
  private by: Key = "order";
  private falling = false;
  private order: BodyEntry[] = [];
  private sorted = 0;

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
  ) {
    this.search = h("input", {
      placeholder: "find a body",
      class: "grow",
      "aria-label": "Find a body by name",
      oninput: () => this.anew(),
    });
    const head = ([key, text, title]: [Key, string, string]): HTMLElement => {
      const button = h("button", { class: "sort", title, "aria-label": key, onclick: () => this.sortBy(key) }, text);
      this.heads.set(key, button);
      return button;
    };
    this.element.append(
      h("div", { class: "side-head" }, this.search),
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h("tr", {}, ...HEADS.map((x, k) => h("th", { class: k ? "n" : "" }, head(x), k ? null : head(ALARM)))),
          h("tr", { class: "under" }, h("td", { colSpan: 4 }, h("div", { class: "parts" }, ...UNDER_HEADS.map(head)))),
        ),
        this.body,
      ),
    );
  }

  private anew(): void {
    this.key = "";
    this.sorted = 0;
  }

  /** Sort by a column; the same column again sorts in the other direction, and then as the bodies joined. */
  private sortBy(key: Key): void {
    if (this.by !== key) [this.by, this.falling] = [key, key === "alarm" || key === "link"];
    else if (this.falling === (key === "alarm" || key === "link")) this.falling = !this.falling;
    else [this.by, this.falling] = ["order", false];
    for (const [k, button] of this.heads) {
      button.setAttribute("aria-pressed", String(k === this.by));
      toggleClass(button, "on", k === this.by);
      setText(button, button.textContent!.replace(/ [↑↓]$/, "") + (k === this.by ? (this.falling ? " ↓" : " ↑") : ""));
    }
    this.anew();
  }

  /** Value by which a body is sorted; without a value it comes last. */
  private value(b: BodyEntry, alarmed: Map<number, Alarmed>): number | string {
    const s = this.store,
      k = s.index.get(b.row),
      none = this.falling ? -Infinity : Infinity,
      q = k === undefined ? null : s.quaternion.subarray(4 * k, 4 * k + 4);
    switch (this.by) {
      case "name":
        return b.name;
      case "depth":
        return k === undefined ? none : s.ned[3 * k + 2]!;
      case "speed":
        return k === undefined ? none : s.speed[k]!;
      case "hdg":
        return q ? (euler(q[0]!, q[1]!, q[2]!, q[3]!)[2] + 360) % 360 : none;
      case "battery":
        return s.fleet.charges[b.row] ?? none;
      case "mission":
        return timeToTarget(s, b.row, s.fleet.missions[b.row]) ?? none;
      case "link":
        return s.weather?.clients.find((c) => c.row === b.row && c.role === "pilot")?.silent ?? none;
      case "alarm":
        return SEVERITIES.indexOf(alarmed.get(b.row)?.severity ?? ("" as "low"));
      default:
        return b.row;
    }
  }

  private arrange(alarmed: Map<number, Alarmed>): void {
    const text = this.search.value.trim().toLowerCase(),
      now = performance.now();
    if (this.key && this.by !== "order" && now - this.sorted < SORT_S) return;
    this.sorted = now;
    const found = [...this.store.bodies.values()].filter(
      (b) => !text || b.name.toLowerCase().includes(text) || b.model.toLowerCase().includes(text),
    );
    const values = new Map(found.map((b) => [b.row, this.value(b, alarmed)])),
      sign = this.falling ? -1 : 1;
    found.sort((a, b) => {
      const [x, y] = [values.get(a.row)!, values.get(b.row)!];
      return (
        Number(a.type === "buoy") - Number(b.type === "buoy") || (x < y ? -sign : x > y ? sign : 0) || a.row - b.row
      );
    });
    this.order = found;
  }

  update(): void {
    const alarmed = alarmsByRow(this.store);
    this.arrange(alarmed);
    const list = this.order.slice(0, MOST),
      key = list.map((b) => `${b.row}${b.name}`).join() + this.order.length + [...this.closed].join();
    if (key !== this.key) {
      this.key = key;
      this.build(list);
    }
    for (const [row, entry] of this.rows) this.fill(row, entry, alarmed.get(row));
  }

  private build(list: BodyEntry[]): void {
    this.rows.clear();
    this.body.replaceChildren();
    const groups: [name: string, bodies: BodyEntry[]][] = [
      ["vehicles", list.filter((b) => b.type !== "buoy")],
      ["buoys and beacons", list.filter((b) => b.type === "buoy")],
    ];
    const several = groups.every(([, bodies]) => bodies.length > 0);
    for (const [name, bodies] of groups) {
      if (several) this.body.append(this.groupHead(name, bodies.length));
      if (!several || !this.closed.has(name)) for (const b of bodies) this.addRow(b);
    }
    const note = (text: string): void => this.body.append(h("tr", {}, h("td", { class: "soft", colSpan: 4 }, text)));
    if (this.order.length > list.length) note(`and ${this.order.length - list.length} more: search by name`);
    if (!this.order.length) note(this.store.bodies.size ? "no matching name" : "no bodies yet");
  }

  private groupHead(name: string, count: number): HTMLElement {
    const open = !this.closed.has(name),
      toggle = (): void => {
        if (!this.closed.delete(name)) this.closed.add(name);
        this.anew();
        this.update();
      };
    const button = h(
      "button",
      { class: "sort", "aria-expanded": open, onclick: toggle },
      `${open ? "▾" : "▸"} ${name} (${count})`,
    );
    return h("tr", { class: "group" }, h("td", { colSpan: 4 }, button));
  }

  private addRow(b: BodyEntry): void {
    const dot = bodyDot(b.row);
    const badge = h("span", { class: "badge" }),
      cells = [h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n" })],
      choose = (): void => this.choose(b.row);
    const tr = h(
      "tr",
      {
        tabIndex: 0,
        title: `${b.name}: ${b.model}, ${b.type}`,
        onclick: choose,
        onkeydown: (e: KeyboardEvent) => {
          if (e.key === "Enter") choose();
        },
      },
      h("td", { class: "name" }, dot, badge, b.name),
      ...cells,
    );
    tr.dataset["row"] = String(b.row);
    const parts =
      b.type === "buoy"
        ? []
        : SHOWN.map(([kind, text]) => ({ text, cell: h("span", { class: "num", "data-part": kind }) }));
    const under = parts.length
      ? h(
          "tr",
          { class: "under", onclick: choose },
          h("td", { colSpan: 4 }, h("div", { class: "parts" }, ...parts.map((p) => p.cell))),
        )
      : null;
    if (under) under.dataset["of"] = String(b.row);
    this.rows.set(b.row, { tr, under, cells, badge, parts });
    this.body.append(tr);
    if (under) this.body.append(under);
  }

  private fill(row: number, { tr, under, cells, badge, parts }: Row, alarm: Alarmed | undefined): void {
    const k = this.store.index.get(row);
    for (const e of [tr, under]) if (e) toggleClass(e, "chosen", row === this.store.chosen);
    if (k === undefined) return;
    const q = this.store.quaternion,
      condition = this.store.condition[k]!,
      warning = alarm?.text ?? CONDITION_TEXTS[condition] ?? "";
    const [, , heading] = euler(q[4 * k]!, q[4 * k + 1]!, q[4 * k + 2]!, q[4 * k + 3]!);
    setText(cells[0]!, condition === INVALID ? "–" : formatNumber(this.store.ned[3 * k + 2], 1));
    setText(cells[1]!, formatNumber(this.store.speed[k], 2));
    setText(cells[2]!, condition === INVALID ? "–" : `${formatHeading(heading)}°`);
    toggleClass(tr, "faulted", condition !== 0);
    setText(badge, warning ? "⚠ " : "");
    for (const s of SEVERITIES) toggleClass(badge, s, alarm?.severity === s);
    if (badge.title !== warning) badge.title = warning;
    for (const p of parts) {
      const { text, title, bad } = p.text(this.store, row);
      setText(p.cell, text);
      if (p.cell.title !== title) p.cell.title = title;
      toggleClass(p.cell, "bad", bad === true);
    }
  }
}
