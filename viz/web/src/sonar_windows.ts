// The open windows with images of sonars and cameras, one per instrument, for live servers and logs. Their code is
// loaded with the first window.

import type { Dock } from "./dock";
import type { ImageMessage } from "./page_protocol";
import type { SonarImage } from "./sonar_image";
import type { SonarWindow } from "./sonar_window";
import type { Stage } from "./stage";
import type { ViewerSocket } from "./websocket";

export const MAX_WINDOWS = 8;

export class SonarWindows {
  readonly windows = new Map<string, SonarWindow>();
  private link: ViewerSocket | null = null;

  constructor(
    private readonly stage: Pick<Stage, "element" | "points">,
    private readonly dock: Dock,
    private readonly changed: () => void,
  ) {}

  /** Request images; called again after each connection. */
  connect(link: ViewerSocket): void {
    this.link = link;
    this.ask();
  }

  private ask(): void {
    this.link?.pictures([...this.windows.values()].map((w) => [w.row, w.name, w.channel]));
  }

  /** Open or close the window of a sonar. */
  async toggle(row: number, body: string, name: string): Promise<void> {
    const { SonarWindow } = await import("./sonar_window"),
      key = `${row}/${name}`,
      there = this.windows.get(key);
    if (there) {
      there.close();
      this.windows.delete(key);
    } else {
      if (this.windows.size >= MAX_WINDOWS) {
        const [oldest, window] = this.windows.entries().next().value!;
        window.close();
        this.windows.delete(oldest);
      }
      this.windows.set(
        key,
        new SonarWindow(
          row,
          name,
          `${body} ${name}`,
          this.windows.size,
          this.stage,
          this.dock,
          () => void this.toggle(row, body, name),
          this.changed,
          () => this.ask(),
        ),
      );
    }
    this.ask();
    this.changed();
  }

  take(p: SonarImage): void {
    this.windows.get(`${p.head.row}/${p.head.name}`)?.take(p);
  }

  setStatus({ row, name, channel, trouble, epoch }: ImageMessage): void {
    const w = this.windows.get(`${row}/${name}`);
    if (!w || w.channel !== channel) return;
    w.trouble = trouble;
    w.begin(epoch);
  }

  draw(): void {
    for (const w of this.windows.values()) w.draw();
  }
}
