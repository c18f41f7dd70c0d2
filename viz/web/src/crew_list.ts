// Table of the clients of a body, with faults of the devices that they serve.

import { formatNumber, h, setText, toggleClass } from "./dom";
import { DEVICE_FAULTS, DEVICE_PREFIX, type FieldInfo, type SessionInfo } from "./page_protocol";

interface Row {
  tr: HTMLElement;
  cells: HTMLElement[];
  fault: HTMLElement;
  device: string;
}

export class CrewList {
  readonly element = h("div", { class: "section", id: "crew" });
  private readonly body = h("tbody");
  private readonly none = h("div", { class: "soft" }, "no client connected");
  private readonly form = h("div");
  private rows: Row[] = [];

  constructor(
    private readonly faultButton: (
      part: string,
      kinds: string[],
      fields: FieldInfo[],
      at: HTMLElement,
    ) => HTMLElement | null,
  ) {
    const head = h(
      "tr",
      {},
      h("th", {}, "role"),
      h("th", {}, "address"),
      h("th", { class: "n" }, "round trip"),
      h("th", { class: "n" }, "lockstep"),
    );
    this.element.append(h("h3", {}, "Crew"), h("table", {}, h("thead", {}, head), this.body), this.form, this.none);
  }

  /** Forget the rows: the buttons belong to another body. */
  clear(): void {
    this.rows = [];
    this.body.replaceChildren();
    this.form.replaceChildren();
  }

  /** Show the clients of the body; undefined if the source does not know them. */
  show(crew: SessionInfo[] | undefined): void {
    toggleClass(this.element, "hidden", !crew);
    const sessions = crew ?? [];
    toggleClass(this.none, "hidden", sessions.length > 0);
    while (this.rows.length > sessions.length) this.rows.pop()!.tr.remove();
    sessions.forEach((session, i) => this.fill(this.rowOf(i, session.device), session));
  }

  private rowOf(i: number, device: string): Row {
    const known = this.rows[i];
    if (known?.device === device) return known;
    const name = h("span"),
      cells = [name, ...["", "n", "n soft"].map((kind) => h("td", { class: kind }))],
      fault = h("div", { class: "warm" }),
      button = device ? this.faultButton(`${DEVICE_PREFIX}${device}`, DEVICE_FAULTS, [], this.form) : null,
      tr = h("tr", {}, h("td", {}, name, button, fault), ...cells.slice(1)),
      row = { tr, cells, fault, device };
    if (known) known.tr.replaceWith(tr);
    else this.body.append(tr);
    this.rows[i] = row;
    return row;
  }

  private fill(row: Row, session: SessionInfo): void {
    const ended = session.status !== "connected",
      late = session.silent !== null && session.silent > 2;
    row.tr.title = `${session.datagrams[0]} datagrams received from this client, ${session.datagrams[1]} sent to it`;
    [
      row.device || session.role,
      session.address,
      ended
        ? session.status
        : late
          ? `no datagram for ${session.silent!.toFixed(0)} s`
          : `${formatNumber(session.rtt_ms, 2)} ms`,
      session.lockstep_ms ? `every ${+session.lockstep_ms.toFixed(3)} ms` : "",
    ].forEach((text, k) => setText(row.cells[k]!, text));
    row.cells[0]!.className = ended ? "bad" : "good";
    row.cells[2]!.className = `n ${ended || late ? "bad" : ""}`;
    setText(row.fault, session.device_fault);
  }
}
