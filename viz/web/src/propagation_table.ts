// Table of the rays: travel time, loss, reflections, launch angle, and the error of a straight line.

import { type Colour, scaleStyle } from "./colour_scales";
import { formatNumber, h, setText, toggleClass } from "./dom";
import type { SoundRay } from "./page_protocol";
import { arrivalShares, firstRay } from "./propagation_section";

const HEAD: [text: string, title: string][] = [
  ["", "Colour of the ray: the brightest is the strongest"],
  ["time, ms", "Travel time"],
  ["loss, dB", "Transmission loss"],
  ["bounces", "Reflections by the surface (s) and by the sea bed (b)"],
  ["launch", "Launch angle below the horizontal"],
  ["error, m", "Error of the range computed from the travel time and the nominal sound speed"],
];

/** Reflections as text, such as 2 s 1 b. */
export function bounces({ surface, bed, blocked }: SoundRay): string {
  const parts = [surface ? `${surface} s` : "", bed ? `${bed} b` : ""].filter(Boolean);
  return `${parts.join(" ") || "direct"}${blocked ? ", blocked" : ""}`;
}

interface Row {
  element: HTMLTableRowElement;
  swatch: HTMLElement;
  cells: HTMLElement[];
}

export class PropagationTable {
  readonly element: HTMLElement;
  private readonly body = h("tbody", {});
  private readonly rows: Row[] = [];
  private of: SoundRay[] = [];
  private scale: Colour[] = [];

  /** `choose` is called with the ray at the pointer or the focus; null: none. */
  constructor(private readonly choose: (ray: number | null) => void) {
    const head = h(
      "tr",
      {},
      ...HEAD.map(([text, title], k) => h(k ? "th" : "td", { title, class: k ? "n" : "" }, text)),
    );
    this.element = h("div", { class: "list", id: "rays" }, h("table", {}, h("thead", {}, head), this.body));
  }

  /** Show rays. Rows keep their place, so that the pointer and the focus stay on them. */
  show(rays: SoundRay[], scale: Colour[]): void {
    if (rays === this.of && scale === this.scale) return;
    this.of = rays;
    this.scale = scale;
    while (this.rows.length < rays.length) this.rows.push(this.row(this.rows.length));
    for (const { element } of this.rows.splice(rays.length)) element.remove();
    const shares = arrivalShares(rays),
      first = firstRay(rays);
    rays.forEach((ray, k) => this.fill(this.rows[k]!, ray, shares[k]!, k === first));
  }

  private fill({ element, swatch, cells }: Row, ray: SoundRay, share: number, first: boolean): void {
    const texts = [
      (1e3 * ray.time).toFixed(3),
      formatNumber(ray.loss, 1),
      bounces(ray),
      `${formatNumber(ray.launch, 2)}°`,
      formatNumber(ray.error, 3),
    ];
    texts.forEach((text, k) => setText(cells[k]!, text));
    swatch.style.background = scaleStyle(this.scale, share);
    toggleClass(element, "first-ray", first);
    toggleClass(element, "soft", ray.blocked !== "" || !ray.followed);
    element.title = ray.blocked
      ? `blocked by ${ray.blocked}`
      : ray.followed
        ? ""
        : "the simulation does not use this path";
  }

  private row(k: number): Row {
    const swatch = h("span", { class: "ray-colour" }),
      choose = (): void => this.choose(k),
      leave = (): void => this.choose(null),
      cells = HEAD.slice(1).map(() => h("td", { class: "n" }));
    const element = h(
      "tr",
      {
        tabIndex: 0,
        onpointerenter: choose,
        onpointerleave: leave,
        onfocus: choose,
        onblur: leave,
        onkeydown: (e: KeyboardEvent) => {
          const next = { ArrowDown: k + 1, ArrowUp: k - 1 }[e.key],
            row = next === undefined ? undefined : this.rows[next];
          if (!row) return;
          e.preventDefault();
          e.stopPropagation(); // the 3D view moves with these keys
          row.element.focus();
        },
      },
      h("td", {}, swatch),
      ...cells,
    );
    this.body.append(element);
    return { element, swatch, cells };
  }
}
