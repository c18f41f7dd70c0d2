// Table of a mission's waypoints: numbers that can be edited, with the time until the vehicle reaches each of them.

import { formatNumber, formatTime, h, setText } from "./dom";
import type { distancesAndTimes, Waypoint } from "./survey_patterns";

/** Format a duration; a leg without speed never ends. */
export function lasting(seconds: number): string {
  return Number.isFinite(seconds) ? formatTime(seconds) : "–";
}

/** Round a coordinate to 0.1 m. */
export function round(metres: number): number {
  return Math.round(metres * 10) / 10;
}

const HEADS = ["", "north", "east", "depth", "m/s", "after", ""];

export class WaypointTable {
  readonly element: HTMLElement;
  private readonly legs: { number: HTMLElement; after: HTMLElement }[];

  /** `changed` is called after each change of the points. */
  constructor(
    private readonly points: Waypoint[],
    private readonly changed: () => void,
  ) {
    this.legs = points.map((_, k) => ({
      number: h("td", { class: "n soft" }, k + 1),
      after: h("td", { class: "n soft" }),
    }));
    const repeat = h(
      "button",
      {
        id: "again",
        class: "small",
        disabled: points.length < 2,
        title: "Append all waypoints of the route again",
        onclick: () => {
          points.push(...structuredClone(points));
          changed();
        },
      },
      "repeat route",
    );
    this.element = h(
      "div",
      { class: "list waypoints" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...HEADS.map((t) => h("th", {}, t)))),
        h("tbody", {}, ...points.map((p, k) => this.row(p, k))),
      ),
      repeat,
    );
  }

  private row(p: Waypoint, k: number): HTMLElement {
    const cell = (i: number): HTMLElement => {
      const input = h("input", {
        type: "number",
        step: "any",
        value: p[i],
        "aria-label": `${["north", "east", "depth", "speed"][i]} of waypoint ${k + 1}`,
        onchange: () => {
          if (Number.isFinite(input.valueAsNumber)) p[i] = input.valueAsNumber;
          this.changed();
        },
      });
      return h("td", {}, input);
    };
    const insert = (): void => {
      const b = this.points[k + 1] ?? p;
      this.points.splice(k + 1, 0, [round((p[0] + b[0]) / 2), round((p[1] + b[1]) / 2), p[2], p[3]]);
      this.changed();
    };
    const remove = (): void => {
      this.points.splice(k, 1);
      this.changed();
    };
    const title = "Remove this waypoint",
      label = `Remove waypoint ${k + 1}`;
    return h(
      "tr",
      {},
      this.legs[k]!.number,
      ...[0, 1, 2, 3].map(cell),
      this.legs[k]!.after,
      h(
        "td",
        {},
        h("button", { class: "small", title: "Insert a waypoint after this one", onclick: insert }, "+"),
        h("button", { class: "small", title, "aria-label": label, onclick: remove }, "×"),
      ),
    );
  }

  /** Show the distance and time from where the vehicle is. */
  update(trip: ReturnType<typeof distancesAndTimes>, vehicle: string): void {
    this.legs.forEach(({ number, after }, k) => {
      number.title = `${formatNumber(trip[k]?.distance, 0)} m from ${vehicle}`;
      setText(after, lasting(trip[k]?.time ?? NaN));
    });
  }
}
