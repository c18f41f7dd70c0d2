// Fences of a mission draft: drawn, edited and deleted on the chart and in a list, and applied to the running server.

import type { MissionDraft } from "./chart";
import { h, toast } from "./dom";
import { changeProblem, fenceChanges, fenceProblem, withChanges } from "./fence_rules";
import type { FenceInfo as Fence } from "./page_protocol";
import { whyNoCommands } from "./permissions";
import type { SceneStore } from "./scene_store";
import { circlePoints } from "./survey_patterns";
import { round } from "./waypoint_table";

type Corner = [north: number, east: number];

const CIRCLE_CORNERS = 24,
  KEEP = ["inside", "outside"];

export class FenceEditor {
  private drawn: Fence | null = null; // fence whose corners are being clicked
  private selected: Fence | null = null; // fence whose corners are listed
  private keep = KEEP[0]!; // of the next fence
  private radius = 50; // of the next circle
  private server: Fence[] = []; // fences of the running server, on which the draft is based

  /** `changed` is called after each change of the draft, `rebuild` when only the controls change. */
  constructor(
    private readonly store: SceneStore,
    private readonly draft: () => MissionDraft,
    private readonly on: { changed: () => void; rebuild: () => void; apply: (changes: Fence[]) => void },
  ) {}

  /** Begin with the fences of the server and return a copy for the draft. */
  begin(): Fence[] {
    this.close();
    this.selected = null;
    this.server = this.store.fences;
    return structuredClone(this.server);
  }

  /** Follow fences that changed on the server and keep the changes of the draft; return whether the draft changed. */
  follow(): boolean {
    if (this.server === this.store.fences) return false;
    const draft = this.draft(),
      shown = this.selected?.name;
    draft.fences = withChanges(this.store.fences, this.changes);
    this.server = this.store.fences;
    this.selected = draft.fences.find((f) => f.name === shown) ?? null;
    return true;
  }

  /** Changes that the running server does not have. */
  private get changes(): Fence[] {
    return fenceChanges(this.server, this.draft().fences);
  }

  /** Forget the fence being drawn; it stays in the draft. */
  close(): void {
    this.drawn = null;
  }

  /** Add a corner to the fence being drawn, or begin a fence. */
  click(corner: Corner): void {
    const { fences } = this.draft();
    if (!this.drawn || !fences.includes(this.drawn)) {
      const taken = new Set(fences.map((f) => f.name));
      let k = 1;
      while (taken.has(`fence${k}`)) k++;
      fences.push((this.drawn = this.selected = { name: `fence${k}`, keep: this.keep, corners: [] }));
    }
    this.drawn.corners.push(corner);
    this.on.changed();
  }

  /** Remove the last corner of the fence being drawn, or else the last fence. */
  undo(): void {
    const { fences } = this.draft();
    if (this.drawn && fences.includes(this.drawn) && this.drawn.corners.length > 1) this.drawn.corners.pop();
    else this.remove(this.drawn ?? fences.at(-1));
  }

  private remove(fence: Fence | undefined): void {
    const { fences } = this.draft(),
      k = fence ? fences.indexOf(fence) : -1;
    if (k >= 0) fences.splice(k, 1);
    if (this.drawn === fence) this.drawn = null;
    if (this.selected === fence) this.selected = null;
    this.on.changed();
  }

  /** Controls of the tool. */
  controls(): HTMLElement {
    const { fences } = this.draft(),
      keep = this.keepChoice("Side of the next fence", this.keep, (side) => {
        this.keep = side;
        if (this.drawn) this.drawn.keep = side;
        if (this.drawn) this.on.changed();
      });
    const radius = h("input", {
      type: "number",
      id: "fence-radius",
      value: this.radius,
      min: 1,
      onchange: () => {
        if (radius.valueAsNumber > 0) this.radius = radius.valueAsNumber;
        else toast("the radius of a circle must be positive", true);
      },
    });
    return h(
      "div",
      {},
      h(
        "div",
        { class: "row" },
        h("label", { class: "row" }, "keep", keep),
        h(
          "button",
          { id: "close-fence", disabled: (this.drawn?.corners.length ?? 0) < 3, onclick: () => this.end() },
          "close fence",
        ),
      ),
      h(
        "div",
        { class: "row" },
        h("label", { class: "row" }, "radius m", radius),
        h(
          "button",
          {
            id: "circle-fence",
            disabled: this.drawn?.corners.length !== 1,
            title: `Turn the clicked point into the centre of a circle (a polygon with ${CIRCLE_CORNERS} corners)`,
            onclick: () => this.circle(),
          },
          "circle",
        ),
      ),
      fences.length ? this.list(fences) : null,
      this.selected && fences.includes(this.selected) ? this.corners(this.selected) : null,
    );
  }

  /** Button that changes the fences of the running server, and what it would change. */
  applying(): HTMLElement {
    const why = this.store.hello ? whyNoCommands(this.store.hello) : "no connection",
      { length } = this.changes;
    return h(
      "div",
      { class: "row" },
      h(
        "button",
        { id: "apply-fences", disabled: why !== "" || !length, title: why, onclick: () => this.apply() },
        "apply to the server",
      ),
      h(
        "span",
        { class: "soft", id: "fence-note" },
        length
          ? `${length} ${length === 1 ? "fence differs" : "fences differ"} from the running server`
          : "the running server has these fences",
      ),
    );
  }

  private apply(): void {
    const { changes } = this,
      problem = fenceProblem(this.draft().fences) || changeProblem(changes);
    if (problem) {
      toast(problem, true);
      return;
    }
    this.drawn = null;
    this.on.apply(changes);
    this.on.rebuild();
  }

  private end(): void {
    this.drawn = null;
    this.on.rebuild();
  }

  private circle(): void {
    const fence = this.drawn!,
      ring = circlePoints(fence.corners[0]!, this.radius, CIRCLE_CORNERS).slice(0, -1);
    fence.corners = ring.map(([n, e]): Corner => [round(n), round(e)]);
    this.drawn = null;
    this.on.changed();
  }

  private keepChoice(label: string, value: string, set: (side: string) => void): HTMLSelectElement {
    const list = h(
      "select",
      { "aria-label": label, onchange: () => set(list.value) },
      ...KEEP.map((k) => h("option", { value: k, selected: k === value }, k)),
    );
    return list;
  }

  private list(fences: Fence[]): HTMLElement {
    const row = (fence: Fence): HTMLElement => {
      const name = h("input", {
        value: fence.name,
        "aria-label": `Name of fence ${fence.name}`,
        onchange: () => {
          fence.name = name.value.trim();
          this.on.changed();
        },
      });
      const keep = this.keepChoice(`Side of fence ${fence.name}`, fence.keep, (side) => {
        fence.keep = side;
        this.on.changed();
      });
      const select = (): void => {
        this.selected = this.selected === fence ? null : fence;
        this.on.rebuild();
      };
      const shown = this.selected === fence;
      return h(
        "tr",
        {},
        h("td", {}, name),
        h("td", {}, keep),
        h(
          "td",
          {},
          h(
            "button",
            { class: "small", "aria-expanded": String(shown), onclick: select },
            `${fence.corners.length} corners`,
          ),
        ),
        h(
          "td",
          {},
          h(
            "button",
            {
              class: "small",
              title: "Delete this fence",
              "aria-label": `Delete fence ${fence.name}`,
              onclick: () => this.remove(fence),
            },
            "×",
          ),
        ),
      );
    };
    return h("div", { class: "list fences" }, h("table", { id: "fences" }, h("tbody", {}, ...fences.map(row))));
  }

  private corners(fence: Fence): HTMLElement {
    const cell = (corner: Corner, k: number, axis: 0 | 1): HTMLElement => {
      const input = h("input", {
        type: "number",
        step: "any",
        value: corner[axis],
        "aria-label": `${axis ? "east" : "north"} of corner ${k + 1}`,
        onchange: () => {
          if (Number.isFinite(input.valueAsNumber)) corner[axis] = input.valueAsNumber;
          this.on.changed();
        },
      });
      return h("td", {}, input);
    };
    const insert = (k: number): void => {
      const [a, b] = [fence.corners[k]!, fence.corners[(k + 1) % fence.corners.length]!];
      fence.corners.splice(k + 1, 0, [round((a[0] + b[0]) / 2), round((a[1] + b[1]) / 2)]);
      this.on.changed();
    };
    const remove = (k: number): void => {
      fence.corners.splice(k, 1);
      this.on.changed();
    };
    const row = (corner: Corner, k: number): HTMLElement =>
      h(
        "tr",
        {},
        h("td", { class: "n soft" }, k + 1),
        cell(corner, k, 0),
        cell(corner, k, 1),
        h(
          "td",
          {},
          h(
            "button",
            {
              class: "small",
              title: "Insert a corner after this one",
              "aria-label": `Insert a corner after ${k + 1}`,
              onclick: () => insert(k),
            },
            "+",
          ),
          h(
            "button",
            {
              class: "small",
              title: "Remove this corner",
              "aria-label": `Remove corner ${k + 1}`,
              onclick: () => remove(k),
            },
            "×",
          ),
        ),
      );
    const heads = ["", "north", "east", ""].map((t) => h("th", {}, t));
    return h(
      "div",
      { class: "list waypoints" },
      h("table", { id: "corners" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...fence.corners.map(row))),
    );
  }
}
