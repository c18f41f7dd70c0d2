// List of acoustic signals.

import { formatTime, h, formatNumber, setText } from "./dom";
import { SIGNAL_KINDS, OUTCOMES, type SceneStore } from "./scene_store";
import type { SentSignal, SignalReception } from "./page_protocol";

const MOST_ROWS = 250,
  DEG = 180 / Math.PI;
const ABOUT: Record<string, string> = {
  "measured m": "Two-way range as measured by the querying node",
  "one-way m": "One-way range from the receiver's measured travel time, including the clock errors of both nodes",
  "error m": "Measured minus true range; the one-way range is used if the two-way range is missing",
  "bearing °":
    "Direction of arrival as measured by a USBL head, in the body frame: " +
    "azimuth from forward, positive to starboard; elevation from the horizontal, positive downwards",
};

export class SignalList {
  readonly element: HTMLElement;
  private readonly body = h("tbody");
  private readonly counts = h("span", { class: "soft" });
  private filter = "receptions";
  private missed = 0;
  private held = false; // rows must not move while a button is pressed on the list
  private pending: (SentSignal | SignalReception)[] = [];

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
  ) {
    const pick = h(
      "select",
      {
        "aria-label": "Event filter",
        onchange: () => {
          this.filter = pick.value;
          this.anew(this.store.events);
        },
      },
      h("option", { value: "receptions" }, "receptions and losses"),
      h("option", { value: "received" }, "received"),
      h("option", { value: "lost" }, "lost"),
      h("option", { value: "sent" }, "sent"),
      h("option", { value: "all" }, "everything"),
    );
    const list = h(
      "div",
      { class: "list", id: "events", tabindex: 0 },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...[
              "time",
              "what",
              "from",
              "to",
              "kHz",
              "level dB",
              "path m",
              "measured m",
              "one-way m",
              "true m",
              "error m",
              "bearing °",
              "outcome",
            ].map((t, i) => h("th", { class: (i > 3 && i < 12) || i === 0 ? "n" : "", title: ABOUT[t] }, t)),
          ),
        ),
        this.body,
      ),
    );
    let presses = 0;
    list.addEventListener("pointerdown", () => {
      this.held = true;
      presses++;
    });
    const release = (): void => {
      const of = presses;
      window.setTimeout(() => {
        if (of === presses) this.held = false;
      });
    }; // after its click event, before the next press
    for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, release);
    this.element = h("div", { class: "pane" }, h("div", { class: "events-head" }, pick, this.counts), list);
  }

  lose(count: number): void {
    this.missed += count;
  }
  add(events: (SentSignal | SignalReception)[]): void {
    this.pending.push(...events);
    // the page may be unattended for hours
    if (this.pending.length > MOST_ROWS) this.pending.splice(0, this.pending.length - MOST_ROWS);
  }
  /** Restart the list with these events. */
  anew(events: (SentSignal | SignalReception)[]): void {
    this.body.replaceChildren();
    this.pending = [];
    this.add(events.filter((e) => this.wants(e)));
  }

  update(): void {
    if (this.pending.length && !this.held) {
      const rows = this.pending
        .filter((e) => this.wants(e))
        .map((e) => this.row(e))
        .reverse();
      this.pending = [];
      this.body.prepend(...rows);
      while (this.body.children.length > MOST_ROWS) this.body.lastChild?.remove();
    }
    setText(this.counts, this.missed ? `${this.missed} events not shown, because too many arrived together` : "");
  }

  private wants(e: SentSignal | SignalReception): boolean {
    if (!("receiver" in e)) return this.filter === "sent" || this.filter === "all" || e.outcome !== 0;
    if (this.filter === "all") return true;
    if (this.filter === "sent") return false;
    if (this.filter === "received") return e.outcome === 0;
    if (this.filter === "lost") return e.outcome !== 0;
    return ![2, 3, 11].includes(e.outcome);
  }

  private row(e: SentSignal | SignalReception): HTMLElement {
    const reception = "receiver" in e ? e : null,
      sent = reception ? this.store.sent.get(e.id) : (e as SentSignal);
    // a two-way range covers both directions: query and reply
    const queryDistance =
      reception?.measured !== null && reception
        ? this.store.distances.get(`${reception.query}:${reception.source}`)
        : undefined;
    const truth =
      queryDistance !== undefined && reception && reception.distance !== null
        ? 0.5 * (queryDistance + reception.distance)
        : null;
    const oneWay = reception && reception.outcome === 0 ? reception.one_way : null;
    // a receiver may not know when a pulse was sent
    const error =
      truth !== null && reception
        ? reception.measured! - truth
        : oneWay !== null && reception?.measured === null && reception.kind !== 0 && reception.distance !== null
          ? oneWay - reception.distance
          : null;
    const azimuth = reception?.azimuth ?? null,
      elevation = reception?.elevation ?? null;
    const cells = [
      formatTime(e.time),
      reception ? (SIGNAL_KINDS[e.kind] ?? "") : `sent: ${SIGNAL_KINDS[e.kind] ?? ""}`,
      this.store.name(e.source),
      reception ? this.store.name(reception.receiver) : "",
      sent ? (sent.frequency / 1000).toFixed(1) : "",
      formatNumber(reception ? reception.level : (e as SentSignal).source_level, 1),
      reception ? formatNumber(reception.range, 2) : "",
      reception?.measured !== null && reception ? formatNumber(reception.measured, 3) : "",
      oneWay === null ? "" : formatNumber(oneWay, 3),
      reception ? formatNumber(truth ?? reception.distance, 3) : "",
      error === null ? "" : formatNumber(error, 3),
      azimuth === null
        ? ""
        : `${formatNumber(azimuth * DEG, 1)}${elevation === null ? "" : `, ${formatNumber(elevation * DEG, 1)}`}`,
    ];
    const outcome =
      e.outcome === 0
        ? reception
          ? reception.bounces
            ? `received (${reception.bounces} bounces)`
            : "received"
          : "sent"
        : (OUTCOMES[e.outcome] ?? String(e.outcome));
    return h(
      "tr",
      { onclick: () => this.choose(reception ? reception.receiver : e.source) },
      ...cells.map((t, i) => h("td", { class: i > 3 || i === 0 ? "n" : "" }, t)),
      h("td", { class: e.outcome ? "bad" : "good" }, outcome),
    );
  }
}
