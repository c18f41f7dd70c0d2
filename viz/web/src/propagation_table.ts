// Table of the rays: travel time, loss, reflections, angle of launch, and the error of a straight line.

import { formatNumber, h, setChildren } from "./dom";
import type { SoundRay } from "./page_protocol";
import { arrivalColour, arrivalShares, firstRay } from "./propagation_section";

const HEAD: [text: string, title: string][] = [
  ["", "Colour of the ray: yellow is the strongest, violet the weakest"],
  ["time, ms", "Travel time"],
  ["loss, dB", "Transmission loss"],
  ["bounces", "Reflections by the surface (s) and by the sea bed (b)"],
  ["launch", "Angle of launch below the horizontal"],
  ["error, m", "Error of the range that the travel time gives with the nominal sound speed"],
];

/** Reflections as text, such as 2 s 1 b. */
export function bounces({ surface, bed, blocked }: SoundRay): string {
  const parts = [surface ? `${surface} s` : "", bed ? `${bed} b` : ""].filter(Boolean);
  return `${parts.join(" ") || "direct"}${blocked ? ", blocked" : ""}`;
}

export class PropagationTable {
  readonly element: HTMLElement;
  private readonly rows = h("tbody", {});
  private of: SoundRay[] = [];

  /** `choose` is called with the ray at the pointer or the focus; null: none. */
  constructor(private readonly choose: (ray: number | null) => void) {
    const head = h("tr", {}, ...HEAD.map(([text, title], k) => h("th", { title, class: k ? "n" : "" }, text)));
    this.element = h("div", { class: "list", id: "rays" }, h("table", {}, h("thead", {}, head), this.rows));
  }

  show(rays: SoundRay[]): void {
    if (rays === this.of) return;
    this.of = rays;
    const focused = [...this.rows.children].indexOf(document.activeElement!),
      shares = arrivalShares(rays),
      first = firstRay(rays);
    setChildren(this.rows, ...rays.map((ray, k) => this.row(ray, k, shares[k]!, k === first)));
    (this.rows.children[focused] as HTMLElement | undefined)?.focus(); // the arrow keys go on
  }

  private row(ray: SoundRay, k: number, share: number, first: boolean): HTMLElement {
    const swatch = h("span", { class: "ray-colour" }),
      choose = (): void => this.choose(k),
      leave = (): void => this.choose(null),
      cells = [
        (1e3 * ray.time).toFixed(3),
        formatNumber(ray.loss, 1),
        bounces(ray),
        `${formatNumber(ray.launch, 2)}°`,
        formatNumber(ray.error, 3),
      ];
    swatch.style.background = arrivalColour(share);
    return h(
      "tr",
      {
        tabIndex: 0,
        class: first ? "first-ray" : ray.blocked || !ray.followed ? "soft" : "",
        title: ray.blocked
          ? `blocked by ${ray.blocked}`
          : ray.followed
            ? ""
            : "the simulation does not follow this path",
        onpointerenter: choose,
        onpointerleave: leave,
        onfocus: choose,
        onblur: leave,
        onkeydown: (e: KeyboardEvent) => {
          const next = { ArrowDown: k + 1, ArrowUp: k - 1 }[e.key],
            row = next === undefined ? undefined : this.rows.children[next];
          if (!row) return;
          e.preventDefault();
          e.stopPropagation(); // the 3D view moves with these keys
          (row as HTMLElement).focus();
        },
      },
      h("td", {}, swatch),
      ...cells.map((text) => h("td", { class: "n" }, text)),
    );
  }
}
