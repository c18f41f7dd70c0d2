// Size of text and controls: follows the screen, or as the user sets it, remembered for the next visit.

import { h } from "./dom";

const KEY = "wavesim-size",
  SIZES = [0.8, 0.9, 1, 1.1, 1.25, 1.5, 1.75, 2, 2.5],
  PLAIN = [1920, 1080], // px, window up to which the size is 1
  MOST = 3;

/** Zoom that shows as much in a large window as in one of 1920 x 1080. */
export function zoomOf(width: number, height: number): number {
  const zoom = Math.min(width / PLAIN[0]!, height / PLAIN[1]!, MOST);
  return zoom < 1.15 ? 1 : Math.round(20 * zoom) / 20;
}

export class TextSize {
  readonly element: HTMLSelectElement;

  /** `changed` is called after each change. */
  constructor(private readonly changed: () => void) {
    const stored = localStorage.getItem(KEY) ?? "";
    this.element = h(
      "select",
      {
        id: "text-size",
        title: "Size of text and controls",
        "aria-label": "Size of text and controls",
        onchange: () => {
          localStorage.setItem(KEY, this.element.value);
          this.apply();
        },
      },
      h("option", { value: "" }, "size: auto"),
      ...SIZES.map((s) => h("option", { value: s, selected: stored === String(s) }, `size: ${Math.round(100 * s)} %`)),
    );
    window.addEventListener("resize", () => this.apply());
    this.apply();
  }

  private apply(): void {
    const zoom = Number(this.element.value) || zoomOf(window.innerWidth, window.innerHeight);
    document.body.style.zoom = zoom === 1 ? "" : String(zoom);
    this.changed();
  }
}
