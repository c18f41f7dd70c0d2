// Drawing loop: it runs while the picture changes, and rests afterwards. A scene at rest costs no processor time.

import { SOFTWARE_RENDERING } from "./canvas";

const AWAKE_MS = 700; // keep drawing for this long after anything that may change the picture
// interval between updates of numbers and lists; without a graphics processor, drawing them costs as much as a picture
const TABLES_MS = SOFTWARE_RENDERING ? 400 : 200;

export interface Drawable {
  /** True while the picture changes by itself. */
  busy(): boolean;
  picture(): void;
  /** Update numbers, lists and buttons. */
  tables(): void;
  /** Draw the last picture before the loop rests. */
  rest(): void;
}

export class DrawingLoop {
  turning = false;
  private awakeUntil = 0;
  private stale = false;
  private tablesAt = 0;
  private readonly times: number[] = [];

  constructor(private readonly drawn: Drawable) {}

  /** Number of pictures in the last second. */
  get rate(): number {
    return this.times.length;
  }

  /** Start drawing, and stop after a quiet period. */
  wake(): void {
    this.awakeUntil = performance.now() + AWAKE_MS;
    this.stale = true;
    if (this.turning) return;
    this.turning = true;
    requestAnimationFrame(() => this.turn());
  }

  private turn(): void {
    if (!this.stale && performance.now() > this.awakeUntil && !this.drawn.busy()) {
      this.turning = false;
      this.times.length = 0;
      this.drawn.rest();
      return;
    }
    this.stale = false; // draw at least once, even on a slow machine
    // request the next picture first, so that an error in this one does not end the loop
    requestAnimationFrame(() => this.turn());
    if (location.hash === "#configure") return;
    const now = performance.now();
    this.times.push(now);
    while (this.times.length && this.times[0]! < now - 1000) this.times.shift();
    this.drawn.picture();
    if (now < this.tablesAt) return;
    this.tablesAt = now + TABLES_MS;
    this.drawn.tables();
  }
}
