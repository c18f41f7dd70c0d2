// Announces new alarms: to screen readers always; by sound and by a desktop notification on request.

import { h, setText, toast, toggleClass } from "./dom";
import type { Alarm } from "./page_protocol";

type Severity = Alarm["severity"];
const TONES: Record<Severity, number[]> = { high: [988, 784, 988], medium: [784, 784], low: [523] }; // Hz
const TONE_S = 0.16;
const PREFIX = "wavesim-alarm-"; // keys of the stored choices

function play(severity: Severity): void {
  const audio = new AudioContext();
  TONES[severity].forEach((frequency, k) => {
    const tone = audio.createOscillator(),
      volume = audio.createGain(),
      from = audio.currentTime + 1.5 * k * TONE_S;
    tone.frequency.value = frequency;
    volume.gain.value = 0.15;
    tone.connect(volume).connect(audio.destination);
    tone.start(from);
    tone.stop(from + TONE_S);
    if (k === TONES[severity].length - 1) tone.onended = () => void audio.close();
  });
}

export class AlarmAnnouncer {
  readonly element = h("div", { id: "alarm-said", class: "unseen", "aria-live": "assertive", role: "alert" });
  readonly buttons: HTMLElement[];
  private known: Set<string> | null = null; // null: the alarms that exist when the page opens make no sound
  private readonly on = new Set(["sound", "desktop"].filter((way) => localStorage.getItem(PREFIX + way) === "1"));

  constructor() {
    this.buttons = [
      this.button("sound", "sound", "Play a sound for each new alarm"),
      this.button("desktop", "desktop", "Show a desktop notification for each new alarm"),
    ];
  }

  private button(way: string, text: string, title: string): HTMLElement {
    const button = h(
      "button",
      {
        id: `alarm-${way}`,
        title,
        "aria-pressed": String(this.on.has(way)),
        onclick: () => void this.toggle(way, button),
      },
      text,
    );
    toggleClass(button, "on", this.on.has(way));
    return button;
  }

  private async toggle(way: string, button: HTMLElement): Promise<void> {
    if (this.on.has(way)) this.on.delete(way);
    else if (way === "desktop" && !(await desktopAllowed()))
      toast("this browser does not allow desktop notifications here", true);
    else this.on.add(way);
    localStorage.setItem(PREFIX + way, this.on.has(way) ? "1" : "");
    toggleClass(button, "on", this.on.has(way));
    button.setAttribute("aria-pressed", String(this.on.has(way)));
    if (way === "sound" && this.on.has(way)) play("low"); // lets the user check the volume
  }

  /** Announce none of the alarms that come next: they are those of an earlier time. */
  forget(): void {
    this.known = null;
  }

  /** Take all alarms; announce the occurrences that are new and not acknowledged. */
  take(alarms: Alarm[]): void {
    const key = (a: Alarm): string => `${a.id} ${a.count} ${a.shelved !== null}`,
      open = alarms.filter((a) => !a.seen),
      fresh = open.filter((a) => !this.known?.has(key(a))),
      silent = this.known === null;
    this.known = new Set(open.map(key));
    if (!fresh.length) return;
    const texts = fresh.map((a) => `${a.severity} alarm, ${a.name}: ${a.text}`);
    setText(this.element, texts.join(". "));
    if (silent) return;
    const worst = (["high", "medium", "low"] as Severity[]).find((s) => fresh.some((a) => a.severity === s))!;
    if (this.on.has("sound")) play(worst);
    if (this.on.has("desktop") && typeof Notification !== "undefined" && Notification.permission === "granted")
      new Notification(`WaVeSim: ${fresh.length > 1 ? `${fresh.length} alarms` : `${worst} alarm`}`, {
        body: texts.join("\n"),
        tag: "wavesim-alarm",
      });
  }
}

async function desktopAllowed(): Promise<boolean> {
  return typeof Notification !== "undefined" && (await Notification.requestPermission()) === "granted";
}
