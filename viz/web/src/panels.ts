// The list of bodies and the list of events.

import { clock, colour, h, number } from "./dom";
import { bearing, euler } from "./frames";
import type { Reception, Sent } from "./link";
import { KINDS, OUTCOMES, type Store } from "./store";

// ---------------------------------------------------------------------------------- fleet

export class Fleet {
  readonly element = h("div", { class: "scroll", id: "fleet" });
  private readonly rows = new Map<number, { tr: HTMLTableRowElement; cells: HTMLTableCellElement[] }>();
  private readonly body = h("tbody");
  private readonly search: HTMLInputElement;
  private key = "";

  constructor(private readonly store: Store, private readonly choose: (row: number) => void) {
    this.search = h("input", { placeholder: "find a body", class: "grow", "aria-label": "Find a body", oninput: () => { this.key = ""; } });
    this.element.append(
      h("div", { class: "side-head" }, this.search),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "name"), h("th", { class: "n" }, "depth"), h("th", { class: "n" }, "speed"), h("th", { class: "n" }, "hdg"))), this.body),
    );
  }

  update(): void {
    const wanted = this.search.value.trim().toLowerCase();
    const found = [...this.store.bodies.values()].filter((b) => !wanted || b.name.toLowerCase().includes(wanted) || b.model.toLowerCase().includes(wanted));
    found.sort((a, b) => Number(a.type === "buoy") - Number(b.type === "buoy") || a.row - b.row);
    const list = found.slice(0, 300), key = list.map((b) => `${b.row}${b.name}`).join() + found.length;
    if (key !== this.key) {
      this.key = key;
      this.rows.clear();
      this.body.replaceChildren();
      for (const b of list) {
        const dot = h("span", { class: "dot" });
        dot.style.background = colour(b.row);
        const cells = [h("td", { class: "n" }), h("td", { class: "n" }), h("td", { class: "n" })];
        const tr = h("tr", { tabIndex: 0, title: `${b.name}: ${b.model}, ${b.type}`, onclick: () => this.choose(b.row), onkeydown: (e: KeyboardEvent) => { if (e.key === "Enter") this.choose(b.row); } }, h("td", { class: "name" }, dot, b.name), ...cells);
        tr.dataset["row"] = String(b.row);
        this.rows.set(b.row, { tr, cells });
        this.body.append(tr);
      }
      if (found.length > list.length) this.body.append(h("tr", {}, h("td", { class: "soft", colSpan: 4 }, `and ${found.length - list.length} more: find them by name`)));
      if (!found.length) this.body.append(h("tr", {}, h("td", { class: "soft", colSpan: 4 }, this.store.bodies.size ? "no name like that" : "nobody is here yet")));
    }
    for (const [row, { tr, cells }] of this.rows) {
      const k = this.store.index.get(row);
      tr.classList.toggle("chosen", row === this.store.chosen);
      if (k === undefined) continue;
      const q = this.store.quaternion;
      const [, , heading] = euler(q[4 * k]!, q[4 * k + 1]!, q[4 * k + 2]!, q[4 * k + 3]!);
      cells[0]!.textContent = number(this.store.ned[3 * k + 2], 1);
      cells[1]!.textContent = number(this.store.speed[k], 2);
      cells[2]!.textContent = `${bearing(heading).toFixed(0)}°`;
    }
  }
}

// ---------------------------------------------------------------------------------- events

export class Events {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly list: HTMLElement;
  private readonly counts = h("span", { class: "soft" });
  private filter = "told";
  private missed = 0;
  private pending: (Sent | Reception | { notice: string; time: number; name: string })[] = [];

  constructor(private readonly store: Store, private readonly choose: (row: number) => void) {
    const pick = h("select", { "aria-label": "Which events", onchange: () => { this.filter = pick.value; this.body.replaceChildren(); this.add(this.store.events); } },
      h("option", { value: "told" }, "heard and lost"), h("option", { value: "heard" }, "heard"), h("option", { value: "lost" }, "lost"), h("option", { value: "sent" }, "sent"), h("option", { value: "all" }, "everything"));
    const toggle = h("button", { title: "Show or hide the list", onclick: () => this.list.classList.toggle("short") }, "▾");
    this.list = h("div", { id: "events" }, h("table", {}, h("thead", {}, h("tr", {}, ...["time", "what", "from", "to", "kHz", "level dB", "path m", "measured m", "true m", "error m", "outcome"].map((t, i) => h("th", { class: i > 3 && i < 10 || i === 0 ? "n" : "" }, t)))), this.body));
    this.element = h("div", {}, h("div", { class: "events-head" }, h("h3", {}, "Signals"), pick, this.counts, h("span", { class: "grow" }), toggle), this.list);
  }

  note(time: number, name: string, text: string): void { this.pending.push({ notice: text, time, name }); }
  lose(count: number): void { this.missed += count; }
  add(events: (Sent | Reception)[]): void { this.pending.push(...events); }
  clear(): void { this.body.replaceChildren(); this.pending = []; }

  update(): void {
    if (this.pending.length) {
      const rows = this.pending.slice(-200).map((e) => ("notice" in e ? this.noticeRow(e) : this.wants(e) ? this.row(e) : null));
      this.pending = [];
      for (const r of rows) if (r) this.body.prepend(r);
      while (this.body.children.length > 250) this.body.lastChild?.remove();
    }
    this.counts.textContent = this.missed ? `${this.missed} not shown: too many at once` : "";
  }

  private wants(e: Sent | Reception): boolean {
    if (!("receiver" in e)) return this.filter === "sent" || this.filter === "all" || e.outcome !== 0;
    if (this.filter === "all") return true;
    if (this.filter === "sent") return false;
    if (this.filter === "heard") return e.outcome === 0;
    if (this.filter === "lost") return e.outcome !== 0;
    return ![2, 3, 11].includes(e.outcome);
  }

  private noticeRow(e: { notice: string; time: number; name: string }): HTMLElement {
    return h("tr", { class: "warm" }, h("td", { class: "n" }, clock(e.time)), h("td", {}, "notice"), h("td", {}, e.name), h("td", { colSpan: 8 }, e.notice));
  }

  private row(e: Sent | Reception): HTMLElement {
    const heard = "receiver" in e ? e : null, sent = heard ? this.store.sent.get(e.id) : (e as Sent);
    // a two-way range is that of both ways: the question's and the answer's
    const asked = heard?.measured !== null && heard ? this.store.distances.get(`${heard.query}:${heard.source}`) : undefined;
    const truth = asked !== undefined && heard && heard.distance !== null ? 0.5 * (asked + heard.distance) : null;
    const error = truth !== null && heard ? heard.measured! - truth : null;
    const cells = [
      clock(e.time), heard ? KINDS[e.kind] ?? "" : `sent: ${KINDS[e.kind] ?? ""}`, this.store.name(e.source), heard ? this.store.name(heard.receiver) : "",
      sent ? (sent.frequency / 1000).toFixed(1) : "", number(heard ? heard.level : (e as Sent).source_level, 1), heard ? number(heard.range, 2) : "",
      heard?.measured !== null && heard ? number(heard.measured, 3) : "", heard ? number(truth ?? heard.distance, 3) : "", error === null ? "" : number(error, 3),
    ];
    const outcome = e.outcome === 0 ? (heard ? (heard.bounces ? `heard (${heard.bounces} bounces)` : "heard") : "sent") : OUTCOMES[e.outcome] ?? String(e.outcome);
    return h("tr", { onclick: () => this.choose(heard ? heard.receiver : e.source) }, ...cells.map((t, i) => h("td", { class: i > 3 || i === 0 ? "n" : "" }, t)), h("td", { class: e.outcome ? "bad" : "good" }, outcome));
  }
}
