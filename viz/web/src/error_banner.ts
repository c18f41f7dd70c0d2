// Banner for errors in this page or in the viewer's server: it stays for a while, and everything else continues.

import { h, toggleClass, setText } from "./dom";

const SAID_MS = 8000;

export class ErrorBanner {
  readonly element = h("div", { class: "banner hidden", id: "mishap", role: "alert" });
  private missing: Record<string, string> = {}; // failing parts of the viewer's server
  private total = 0; // number of failures so far
  // failing parts of this page
  private readonly failed = new Map<string, { text: string; count: number; until: number }>();

  /** Run one part of the drawing; if it fails, the others are still drawn. */
  part(name: string, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.fail(name, error);
    }
  }

  /** Record an error in this page. */
  fail(part: string, error: unknown): void {
    const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error),
      old = this.failed.get(part);
    if (old?.text !== text) console.error(part, error);
    this.failed.set(part, { text, count: (old?.count ?? 0) + 1, until: performance.now() + SAID_MS });
    this.refresh();
  }

  /** Take the error report of the viewer's server. */
  there(parts: Record<string, string>, total: number): void {
    this.missing = parts;
    this.total = total;
    this.refresh();
  }

  /** Drop errors that are long past. */
  update(): void {
    if (this.failed.size) this.refresh();
  }

  private refresh(): void {
    const now = performance.now();
    for (const [part, f] of this.failed) if (f.until < now) this.failed.delete(part);
    const here = [...this.failed].map(([part, f]) => `${part} (${f.text}, ${f.count} times)`),
      there = Object.entries(this.missing).map(([part, text]) => `${part} (${text})`);
    const text = [
      there.length
        ? `Error in the viewer's server: ${there.join(", ")}; see its console for details (${this.total} errors so far).`
        : "",
      here.length ? `Error in this page: ${here.join(", ")}.` : "",
    ]
      .filter(Boolean)
      .join(" ");
    setText(this.element, text);
    toggleClass(this.element, "hidden", !text);
  }
}
