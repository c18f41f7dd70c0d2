// What to draw of a field: itself, or a formula that is made from it or written by the user.

import type { ChartDataReader } from "./chart_data";
import { h, toggleClass } from "./dom";
import { fieldReference } from "./field_names";
import { FieldPicker } from "./field_picker";
import type { SceneStore } from "./scene_store";

const WINDOW_S = 10; // of the moving mean

/** Formula to draw; with `x`, against another formula instead of time. */
export interface WantedFormula {
  formula: string;
  x?: string;
}
type Made = (field: string, second: string, seconds: string) => WantedFormula;

/** Kind of line: key, text in the list, the inputs that it needs, and the formula that it makes. */
const KINDS: [kind: string, text: string, needs: string[], made: Made | null][] = [
  ["field", "over time", [], null],
  ["derivative", "derivative", [], (field) => ({ formula: `derivative(${field})` })],
  ["mean", "moving mean", ["seconds"], (field, _, seconds) => ({ formula: `mean(${field}, ${seconds})` })],
  ["minus", "minus", ["second"], (field, second) => ({ formula: `${field} - ${second}` })],
  ["against", "against (X-Y)", ["second", "equal"], (field, second) => ({ formula: field, x: second })],
  ["formula", "formula", ["formula", "equal"], null],
];

export class FormulaForm {
  readonly kind: HTMLSelectElement;
  /** Further inputs of the chosen kind. */
  readonly more: HTMLElement;
  private readonly second: FieldPicker;
  private readonly text: HTMLInputElement;
  private readonly x: HTMLInputElement;
  private readonly seconds = h("input", {
    type: "number",
    min: 0.1,
    step: "any",
    value: WINDOW_S,
    "aria-label": "Window of the moving mean in seconds",
  });
  private readonly equalBox = h("input", { type: "checkbox", id: "equal-axes", checked: true });
  private typed: HTMLInputElement; // input that takes the next field
  private readonly parts: Record<string, HTMLElement>;

  constructor(
    store: SceneStore,
    data: ChartDataReader,
    private readonly first: FieldPicker,
    private readonly compared: () => boolean,
    add: () => void,
  ) {
    const input = (id: string, label: string, placeholder: string): HTMLInputElement =>
      h("input", {
        id,
        "aria-label": label,
        placeholder,
        maxLength: 400,
        autocomplete: "off",
        spellcheck: false,
        onfocus: (e: FocusEvent) => {
          this.typed = e.target as HTMLInputElement;
        },
        onkeydown: (e: KeyboardEvent) => {
          if (e.key === "Enter") add();
        },
      });
    this.second = new FieldPicker(store, data, "second line");
    this.typed = this.text = input("formula", "Formula", "sqrt(north^2 + east^2)");
    this.x = input("formula-x", "Formula of the horizontal axis", "time");
    const insert = h(
      "button",
      { id: "insert-field", title: "Insert the selected field into the formula", onclick: () => this.insert() },
      "insert field",
    );
    this.kind = h(
      "select",
      { "aria-label": "Kind of line", onchange: () => this.show() },
      ...KINDS.map(([kind, text]) => h("option", { value: kind }, text)),
    );
    this.parts = {
      seconds: h("label", { class: "row" }, this.seconds, "s"),
      second: h("span", { class: "row" }, this.second.body, this.second.list),
      formula: h("span", { class: "row formula-row" }, this.text, "against", this.x, insert),
      equal: h("label", { class: "row", title: "Use the same scale on both axes" }, this.equalBox, "equal axes"),
    };
    this.more = h("div", { class: "events-head" }, ...Object.values(this.parts));
    this.show();
  }

  private get chosen(): (typeof KINDS)[number] {
    return KINDS.find(([kind]) => kind === this.kind.value) ?? KINDS[0]!;
  }

  private show(): void {
    const [, , needs] = this.chosen;
    for (const [part, element] of Object.entries(this.parts)) toggleClass(element, "hidden", !needs.includes(part));
    toggleClass(this.more, "hidden", !needs.length);
  }

  private reference(picker: FieldPicker): string {
    const { field, fields, bodyName } = picker;
    return field ? fieldReference(bodyName, field.key, fields, this.compared()) : "";
  }

  private insert(): void {
    const { typed } = this,
      at = typed.selectionStart ?? typed.value.length;
    typed.setRangeText(this.reference(this.first), at, typed.selectionEnd ?? at, "end");
    typed.focus();
  }

  get equal(): boolean {
    return this.equalBox.checked;
  }

  /** The formula to draw; null: the field itself. */
  get wanted(): WantedFormula | null {
    const [kind, , , made] = this.chosen,
      x = this.x.value.trim();
    if (kind === "formula") return { formula: this.text.value.trim(), ...(x ? { x } : {}) };
    return made ? made(this.reference(this.first), this.reference(this.second), this.seconds.value) : null;
  }

  update(): void {
    this.second.update();
  }
}
