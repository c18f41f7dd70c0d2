// Events in time: those of a log, or what this page has seen of a running server; and bookmarks. Timeline and charts
// mark them.

import { Bookmarks } from "./bookmarks";
import { cssVariable } from "./dom";
import type { TimeMark } from "./page_protocol";
import { readableText } from "./readable_text";
import type { SceneStore } from "./scene_store";

const TINTS: Record<string, string> = {
  notice: "--warm",
  fault: "--bad",
  alarm: "--bad",
  command: "--accent",
  join: "--good",
  loss: "--soft",
  bookmark: "--range",
};
const SAME = 2e-3; // s: times that count as the same
const MOST = 500; // joins and leaves that are remembered

export const markColour = (kind: string): string => cssVariable(TINTS[kind] ?? "--soft");

export class EventMarks {
  readonly bookmarks: Bookmarks;
  private logged: TimeMark[] = [];
  private seen: TimeMark[] = []; // joins and leaves of a running server

  constructor(private readonly store: SceneStore) {
    this.bookmarks = new Bookmarks(store);
  }

  /** Take the events of a log. */
  take(marks: TimeMark[]): void {
    this.logged = marks;
  }

  /** Remember who joined or left a running server. */
  roster(joined: string[], left: string[]): void {
    const time = this.store.last?.time ?? 0;
    for (const [names, verb] of [
      [joined, "joined"],
      [left, "left"],
    ] as const)
      this.seen.push(...names.map((name) => ({ time, kind: "join", text: `${name} ${verb}` })));
    this.seen.splice(0, this.seen.length - MOST);
  }

  /** Forget what this page has seen after a time to which the simulation has returned. */
  discardAfter(time: number): void {
    this.seen = this.seen.filter((m) => m.time < time);
  }

  /** All events, in the order of time. */
  get all(): TimeMark[] {
    const kept = this.bookmarks.all.map((b) => ({ time: b.time, kind: "bookmark", text: b.note }));
    return [...this.happened, ...kept].sort((a, b) => a.time - b.time);
  }

  private get happened(): TimeMark[] {
    if (this.store.hello?.kind === "replay") return this.logged;
    const { notices, alarms } = this.store;
    return [
      ...notices.map((n) => ({ time: n.time, kind: "notice", text: `${n.name}: ${readableText(n.text)}` })),
      ...alarms.map((a) => ({ time: a.since, kind: "alarm", text: `${a.name}: ${a.text}` })),
      ...this.seen,
    ];
  }

  /** Events that are few and that somebody may look for: all but the losses of signals. */
  get notable(): TimeMark[] {
    return this.all.filter((m) => m.kind !== "loss");
  }
}

/** The event at a time, or the next one after it (`by` 1) or before it (-1); null if there is none. */
export function stepMark(marks: readonly TimeMark[], time: number, by: number): TimeMark | null {
  const later =
    by > 0 ? marks.find((m) => m.time > time + SAME) : [...marks].reverse().find((m) => m.time < time - SAME);
  return (by ? later : marks.find((m) => Math.abs(m.time - time) <= SAME)) ?? null;
}
