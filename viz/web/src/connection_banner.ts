// Banners above the picture: why no data arrive, and a warning about the scene.

import { h, setText, toggleClass } from "./dom";

const NO_ANSWER = "no answer from the viewer's server (has `wavesim viz` stopped?); retrying";

export class ConnectionBanner {
  readonly element = h("div", { class: "banner hidden", role: "alert" });
  readonly warning = h("div", { class: "banner note hidden" });
  private connected = false;
  private trouble = ""; // reason why the viewer's server has no data to show

  /** `changed` receives the reason why no data arrive; "": they arrive. */
  constructor(private readonly changed: (lost: string) => void) {}

  connection(on: boolean): void {
    this.connected = on;
    if (on) this.trouble = "";
    this.refresh();
  }

  /** Take the state of the server's source. */
  source(trouble: string): void {
    this.trouble = trouble;
    this.refresh();
  }

  warn(text: string): void {
    toggleClass(this.warning, "hidden", !text);
    setText(this.warning, text);
  }

  private refresh(): void {
    const text = this.connected ? this.trouble : NO_ANSWER;
    setText(this.element, text);
    toggleClass(this.element, "hidden", !text);
    this.changed(text);
  }
}
