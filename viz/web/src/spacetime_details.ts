// A signal of the space-time diagram in words: who sent it, who heard it, and why others did not.

import { bodyDot, formatNumber, formatTime, h, setChildren, toggleClass } from "./dom";
import {
  isForReceiver,
  isReception,
  kindName,
  lossReason,
  modemAddresses,
  notSentReason,
  outcomeName,
  outcomeVariable,
  type SignalEvent,
} from "./signal_outcomes";
import type { SceneStore } from "./scene_store";
import type { SentSignal, SignalReception } from "./page_protocol";

const MOST_ROWS = 200;

/** The sent signal and all known receptions of it. */
function whole(
  id: number,
  events: SignalEvent[],
  store: SceneStore,
): { sent: SentSignal | null; heard: SignalReception[] } {
  const of = events.filter((e) => e.id === id),
    heard = of.filter(isReception);
  return { sent: of.find((e): e is SentSignal => !isReception(e)) ?? store.sent.get(id) ?? null, heard };
}

/** To whom a signal is addressed: "" if it has no address. */
function addressee(to: number, store: SceneStore): string {
  const row = [...modemAddresses(store)].find(([, address]) => address === to)?.[0];
  return to ? `to ${row === undefined ? `address ${to}` : `${store.name(row)} (address ${to})`}` : "";
}

function sentText(s: SentSignal, store: SceneStore): string[] {
  return [
    `${kindName(s.kind)} ${s.id} of ${store.name(s.source)}`,
    s.kind ? addressee(s.to_address, store) || "to all" : "",
    s.payload ? `${s.payload} bytes` : "",
    `${+(s.duration * 1e3).toPrecision(4)} ms`,
    `${+(s.frequency / 1e3).toPrecision(4)} kHz`,
    `${formatNumber(s.source_level, 0)} dB`,
  ].filter(Boolean);
}

/** What the pointer shows about a signal or one reception of it. */
export function summary(e: SignalEvent, events: SignalEvent[], store: SceneStore): string {
  const name = (row: number): string => store.name(row);
  if (isReception(e)) {
    const delay = e.emission === null ? "" : `${((e.time - e.emission) * 1e3).toFixed(1)} ms`,
      numbers = [
        delay,
        e.range === null ? "" : `${e.range.toFixed(1)} m`,
        e.measured === null ? "" : `measured ${e.measured.toFixed(3)} m`,
        e.level === null || e.noise === null ? "" : `SNR ${(e.level - e.noise).toFixed(1)} dB`,
      ].filter(Boolean),
      reason = lossReason(e, events, name);
    return [
      `${name(e.source)} → ${name(e.receiver)}, ${kindName(e.kind)}`,
      numbers.join(", "),
      `${outcomeName(e.outcome)}${reason ? `: ${reason}` : ""}`,
    ].join("\n");
  }
  const { heard } = whole(e.id, events, store),
    received = new Set(heard.filter((r) => r.outcome === 0).map((r) => r.receiver)),
    nodes = new Set(heard.map((r) => r.receiver)),
    lost = notSentReason(e);
  return [
    sentText(e, store).slice(0, 4).join(", "),
    lost || (nodes.size ? `received by ${received.size} of ${nodes.size} nodes in reach` : "no receptions yet"),
  ].join("\n");
}

export class SignalDetails {
  readonly element = h("div", { class: "signal-details hidden", id: "signal-details" });
  shown: SignalEvent | null = null;
  private drawn = "";

  constructor(
    private readonly store: SceneStore,
    private readonly choose: (row: number) => void,
    private readonly seek: (time: number) => void,
    private readonly changed: () => void,
  ) {}

  show(event: SignalEvent | null): void {
    this.shown = event;
    this.drawn = "";
    this.changed();
  }

  /** Redraw if something new is known; `events` are those of the diagram. */
  update(events: SignalEvent[]): void {
    toggleClass(this.element, "hidden", !this.shown);
    if (!this.shown) return;
    const { id } = this.shown,
      { sent, heard } = whole(id, events.some((e) => e.id === id) ? events : this.store.events, this.store),
      key = `${id}:${sent ? 1 : 0}:${heard.map((r) => [r.receiver, r.time, r.outcome].join("/")).join()}`;
    if (this.drawn === key || (this.drawn && !heard.length && !sent)) return; // out of view: keep what is known
    this.drawn = key;
    const addresses = modemAddresses(this.store),
      name = (row: number): string => this.store.name(row),
      first = sent?.time ?? heard[0]?.emission ?? this.shown.time;
    heard.sort((a, b) => Number(isForReceiver(b, addresses)) - Number(isForReceiver(a, addresses)) || a.time - b.time);
    setChildren(
      this.element,
      h(
        "div",
        { class: "row" },
        bodyDot(this.shown.source),
        h("b", { class: "grow" }, `${kindName(this.shown.kind)} ${id} of ${name(this.shown.source)}`),
        this.store.hello?.kind === "replay" &&
          h(
            "button",
            { class: "small", title: "Show the scene at the time of the emission", onclick: () => this.seek(first) },
            "go to",
          ),
        h("button", { class: "small", title: "Close", "aria-label": "Close", onclick: () => this.show(null) }, "×"),
      ),
      h(
        "div",
        { class: "soft" },
        [`sent at ${formatTime(first, 3)}`, ...(sent ? sentText(sent, this.store).slice(1) : [])].join(", "),
      ),
      sent && sent.outcome !== 0 && h("div", { class: "bad" }, notSentReason(sent)),
      heard.length > 0 && this.table(heard.slice(0, MOST_ROWS), addresses, events),
      heard.length > MOST_ROWS && h("div", { class: "soft" }, `and ${heard.length - MOST_ROWS} more`),
      !heard.length && (!sent || sent.outcome === 0) && h("div", { class: "soft" }, "no reception is known yet"),
    );
  }

  private table(heard: SignalReception[], addresses: Map<number, number>, events: SignalEvent[]): HTMLElement {
    const name = (row: number): string => this.store.name(row);
    const number = (text: string): HTMLElement => h("td", { class: "n" }, text);
    return h(
      "table",
      {},
      h(
        "thead",
        {},
        h("tr", {}, ...["at", "ms", "m", "SNR", "outcome"].map((t, k) => h("th", { class: k % 4 ? "n" : "" }, t))),
      ),
      h(
        "tbody",
        {},
        ...heard.map((r) => {
          const outcome = h("td", {}, outcomeName(r.outcome), h("div", { class: "soft" }, lossReason(r, events, name)));
          outcome.style.color = `var(${outcomeVariable(r.outcome)})`;
          return h(
            "tr",
            {
              class: isForReceiver(r, addresses) ? "" : "overheard",
              title: isForReceiver(r, addresses) ? "Select this body" : "Not addressed to this node; select the body",
              onclick: () => this.choose(r.receiver),
            },
            h("td", {}, bodyDot(r.receiver), name(r.receiver)),
            number(r.emission === null ? "" : ((r.time - r.emission) * 1e3).toFixed(1)),
            number(formatNumber(r.range, 0)),
            number(r.level === null || r.noise === null ? "" : (r.level - r.noise).toFixed(0)),
            outcome,
          );
        }),
      ),
    );
  }
}
