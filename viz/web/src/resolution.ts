// Resolution of the 3D view: a share of the screen's. Automatically, it falls on a slow machine and rises again.

export type ResolutionSetting = "auto" | "full" | "reduced";
export const RESOLUTIONS: ResolutionSetting[] = ["auto", "full", "reduced"];

const REDUCED = 0.5,
  COARSEST = 0.4,
  LESS = 0.75, // factor of a step down, which draws up to 1.8 times as fast
  MORE = 1.15, // factor of a step up, which draws down to 0.75 times as fast
  SLOW = 30, // pictures per second below which the resolution falls
  FAST = 54, // and above which it rises: over SLOW / LESS ** 2, so that a step never provokes the opposite one
  PERIOD_MS = 1000; // between two decisions

export class AdaptiveResolution {
  /** Share of the screen's resolution. */
  share = 1;
  private setting: ResolutionSetting = "auto";
  private pictures = 0;
  private since: number;

  /** ``now`` (ms) is the time of the browser's clock, as for all functions of this class. */
  constructor(now: number) {
    this.since = now;
  }

  set(setting: ResolutionSetting, now: number): void {
    this.setting = setting;
    this.share = setting === "reduced" ? REDUCED : 1;
    this.restart(now);
  }

  /** Begin to count anew, after a time without pictures. */
  restart(now: number): void {
    this.pictures = 0;
    this.since = now;
  }

  /** Count a picture. Return whether the resolution has changed. */
  count(now: number): boolean {
    this.pictures++;
    const span = now - this.since;
    if (span < PERIOD_MS || this.setting !== "auto") return false;
    const rate = (1000 * this.pictures) / span,
      before = this.share;
    this.restart(now);
    if (rate < SLOW) this.share = Math.max(COARSEST, this.share * LESS);
    else if (rate > FAST) this.share = Math.min(1, this.share * MORE);
    return this.share !== before;
  }
}
