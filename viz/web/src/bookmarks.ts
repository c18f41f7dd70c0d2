// Bookmarks: times with a note, kept in this browser for each log and each server.

import type { SceneStore } from "./scene_store";

export interface Bookmark {
  time: number; // s
  note: string;
}

export const BOOKMARKS_VERSION = 1;
export const LONGEST_NOTE = 200;
const MOST = 1000;

/** Return what is wrong with a list of bookmarks; "": nothing. */
export function checkBookmarks(value: unknown): string {
  if (!Array.isArray(value)) return "the list of bookmarks is missing";
  if (value.length > MOST) return `there are more than ${MOST} bookmarks`;
  const wrong = (value as Partial<Bookmark>[]).findIndex(
    (b) => !Number.isFinite(b?.time) || typeof b.note !== "string" || b.note.length > LONGEST_NOTE,
  );
  return wrong < 0 ? "" : `bookmark ${wrong + 1} has no time or no note`;
}

export class Bookmarks {
  /** Increases with each change. */
  version = 0;
  /** The stored bookmarks were damaged and have been removed. */
  damaged = false;
  private kept: Bookmark[] = [];
  private keptFor = "";

  constructor(private readonly store: SceneStore) {}

  /** Name of the storage; "" before the source is known. */
  private get key(): string {
    const { hello, weather } = this.store;
    if (!hello || (hello.kind === "replay" && !weather?.replay)) return "";
    const length = weather?.replay ? ` ${weather.replay.end.toFixed(2)}` : ""; // logs of the same name differ
    return `wavesim-bookmarks ${hello.kind} ${hello.name}${length}`;
  }

  /** All bookmarks, in the order of time. */
  get all(): readonly Bookmark[] {
    const { key } = this;
    if (key !== this.keptFor) {
      const early = this.keptFor ? [] : this.kept; // those of a link, which came before the name of the log
      this.keptFor = key;
      this.kept = this.read(key);
      this.version++;
      if (early.length) this.add(...early);
    }
    return this.kept;
  }

  private read(key: string): Bookmark[] {
    const stored = key ? localStorage.getItem(key) : null;
    if (stored === null) return [];
    try {
      const found = JSON.parse(stored) as Bookmark[];
      if (!checkBookmarks(found)) return found;
    } catch {
      /* told by the list */
    }
    localStorage.removeItem(key);
    this.damaged = true;
    return [];
  }

  private keep(all: Bookmark[]): void {
    this.kept = all.sort((a, b) => a.time - b.time).slice(0, MOST);
    this.version++;
    if (this.keptFor) localStorage.setItem(this.keptFor, JSON.stringify(this.kept));
  }

  /** Add bookmarks that are not there yet. */
  add(...bookmarks: Bookmark[]): void {
    const all = [...this.all];
    for (const { time, note } of bookmarks)
      if (!all.some((b) => Math.abs(b.time - time) < 1e-3 && b.note === note)) all.push({ time, note });
    this.keep(all);
  }

  remove(bookmark: Bookmark): void {
    this.keep(this.all.filter((b) => b !== bookmark));
  }

  rename(bookmark: Bookmark, note: string): void {
    this.keep(this.all.map((b) => (b === bookmark ? { ...b, note } : b)));
  }
}
