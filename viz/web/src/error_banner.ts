// What fails in this page or in the viewer's server: it is said for a while, and everything else goes on.

import { h, toggleClass, setText } from "./dom";

const SAID_MS = 8000;

export class ErrorBanner {
  readonly element = h("div", { class: "banner hidden", id: "mishap", role: "alert" });
  private missing: Record<string, string> = {}; // what the viewer's server fails at
  private total = 0; // how often it failed so far
  private readonly failed = new Map<string, { text: string; count: number; until: number }>(); // what this page failed at

  /** Do a part of a picture; if it fails, the others are drawn. */
  part(name: string, act: () => void): void {
    try { act(); } catch (error) { this.fail(name, error); }
  }

  /** Something in this page failed. */
  fail(part: string, error: unknown): void {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error), old = this.failed.get(part);
    if (old?.text !== text) console.error(part, error);
    this.failed.set(part, { text, count: (old?.count ?? 0) + 1, until: performance.now() + SAID_MS });
    this.tell();
  }

  /** What the viewer's server says of itself. */
  there(parts: Record<string, string>, total: number): void {
    this.missing = parts;
    this.total = total;
    this.tell();
  }

  /** Forget what failed long ago. */
  update(): void { if (this.failed.size) this.tell(); }

  private tell(): void {
    const now = performance.now();
    for (const [part, f] of this.failed) if (f.until < now) this.failed.delete(part);
    const here = [...this.failed].map(([part, f]) => `${part} (${f.text}, ${f.count} times)`), there = Object.entries(this.missing).map(([part, text]) => `${part} (${text})`);
    const text = [there.length ? `The viewer's server fails at ${there.join(", ")}; its console says more (${this.total} errors so far).` : "", here.length ? `This page fails at ${here.join(", ")}.` : ""].filter(Boolean).join(" ");
    setText(this.element, text);
    toggleClass(this.element, "hidden", !text);
  }
}
