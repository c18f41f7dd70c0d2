// Outcomes of signals: their colours, and the reasons for losses with the signals that caused them.

import { cssVariable } from "./dom";
import { INAUDIBLE_OUTCOMES, OUTCOMES, RANGE_KINDS, SIGNAL_KINDS, type SceneStore } from "./scene_store";
import type { SentSignal, SignalReception } from "./page_protocol";

export type SignalEvent = SentSignal | SignalReception;
export const isReception = (e: SignalEvent): e is SignalReception => "receiver" in e;

const [HEARD, TRANSMITTING, NOT_SENT, COLLISION] = [0, 4, 7, 8];
const BUSY = new Set([TRANSMITTING, 5]), // transmitting, recharging
  WEAK = new Set([1, 2, 3, 11, 14]), // below threshold, faded, out of band, echo, foreign
  OBSTRUCTED = new Set([9, 10]); // blocked, shadow

/** Variable of the style sheet with the colour of an outcome. */
export function outcomeVariable(outcome: number): string {
  if (outcome === HEARD) return "--good";
  if (outcome === COLLISION) return "--warm";
  if (BUSY.has(outcome)) return "--busy";
  if (WEAK.has(outcome)) return "--weak";
  return OBSTRUCTED.has(outcome) ? "--obstructed" : "--bad";
}

/** Colour of a reception; a reception that completed a range measurement has its own. */
export function receptionColour(r: SignalReception): string {
  const ranged = r.outcome === HEARD && RANGE_KINDS.has(r.kind) && r.measured !== null;
  return cssVariable(ranged ? "--range" : outcomeVariable(r.outcome));
}

const REASONS: Record<number, string> = {
  1: "its level or its SNR was below the threshold of the receiver",
  2: "it was weaker than the noise",
  3: "its frequency is outside the band of the receiver",
  4: "the receiver was transmitting",
  5: "the receiver was recharging",
  6: "the receiver left the simulation",
  7: "the transmitter was recharging",
  8: "it overlapped another signal in time and frequency",
  9: "an obstacle or the sea bed blocked the path",
  10: "no ray reaches the receiver",
  11: "it is a later path of a signal that had already been detected",
  12: "the receiver lost it at random (drop_out)",
  13: "some of its bits were wrong",
  14: "the receiver does not know its modulation",
};

export const kindName = (kind: number): string => SIGNAL_KINDS[kind] ?? `kind ${kind}`;
export const outcomeName = (outcome: number): string => OUTCOMES[outcome] ?? `outcome ${outcome}`;

const overlap = (a: { time: number; duration: number }, b: { time: number; duration: number }): boolean =>
  a.time < b.time + b.duration && b.time < a.time + a.duration;

/** Signals that may have caused a loss: those that the receiver sent or heard at the same time. */
export function causes(r: SignalReception, events: SignalEvent[]): SignalEvent[] {
  if (r.outcome === TRANSMITTING)
    return events.filter((e) => !isReception(e) && e.source === r.receiver && e.outcome === HEARD && overlap(e, r));
  if (r.outcome !== COLLISION) return [];
  return events.filter(
    (e) =>
      isReception(e) &&
      e.receiver === r.receiver &&
      (e.id !== r.id || e.time !== r.time) &&
      !(INAUDIBLE_OUTCOMES.has(e.outcome) && e.id !== r.id) &&
      overlap(e, r),
  );
}

/** Why a receiver did not receive a signal; "" if it did. */
export function lossReason(r: SignalReception, events: SignalEvent[], name: (row: number) => string): string {
  if (r.outcome === HEARD) return "";
  const others = causes(r, events).map((e) => `${kindName(e.kind)} ${e.id} from ${name(e.source)}`),
    reason = REASONS[r.outcome] ?? outcomeName(r.outcome);
  return others.length ? `${reason}: ${[...new Set(others)].join(", ")}` : reason;
}

/** Why a signal was not sent; "" if it was. */
export const notSentReason = (s: SentSignal): string =>
  s.outcome === NOT_SENT ? `not sent: ${REASONS[NOT_SENT]}` : s.outcome ? outcomeName(s.outcome) : "";

/** Modem addresses of bodies by row, from the configuration and from the packets that they sent. */
export function modemAddresses(store: SceneStore): Map<number, number> {
  const found = new Map<number, number>(),
    configured = new Map((store.scene?.bodies ?? []).map((b) => [b.name, b.address ?? 0]));
  for (const b of store.bodies.values()) {
    const address = configured.get(b.name);
    if (address) found.set(b.row, address);
  }
  for (const s of store.sent.values()) if (s.from_address) found.set(s.source, s.from_address);
  return found;
}

/** True if a signal is for its receiver: it has no address, or the address of the receiver. */
export function isForReceiver(r: SignalReception, addresses: Map<number, number>): boolean {
  return !r.to_address || addresses.get(r.receiver) === r.to_address;
}
