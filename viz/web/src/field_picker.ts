// Two lists: a body, and one of its fields.

import type { ChartDataReader } from "./chart_data";
import type { ChartField } from "./chart_fields";
import { h, setChildren } from "./dom";
import type { SceneStore } from "./scene_store";

export class FieldPicker {
  readonly body: HTMLSelectElement;
  readonly list: HTMLSelectElement;
  fields: ChartField[] = [];
  private bodies = "";

  /** `what` names the lists for screen readers. */
  constructor(
    private readonly store: SceneStore,
    private readonly data: ChartDataReader,
    what: string,
  ) {
    this.body = h("select", { "aria-label": `Body of the ${what}`, onchange: () => void this.offer() });
    this.list = h("select", { "aria-label": `Field of the ${what}` });
  }

  get field(): ChartField | undefined {
    return this.fields[Number(this.list.value)];
  }
  get bodyName(): string {
    return this.store.name(Number(this.body.value));
  }

  /** List the fields of the selected body. */
  private async offer(): Promise<void> {
    const row = Number(this.body.value),
      found = this.body.value ? await this.data.fieldsOf(row) : [];
    const before = this.field?.key;
    if (String(row) !== this.body.value) return; // another body was selected meanwhile
    this.fields = found;
    const groups = [...new Set(found.map((f) => f.group))];
    setChildren(
      this.list,
      ...groups.map((g) =>
        h(
          "optgroup",
          { label: g },
          ...found.flatMap((f, k) =>
            f.group === g ? [h("option", { value: k }, `${f.title}${f.unit ? `, ${f.unit}` : ""}`)] : [],
          ),
        ),
      ),
    );
    const same = found.findIndex((f) => f.key === before);
    if (same >= 0) this.list.value = String(same);
  }

  /** List the bodies that are present. */
  update(): void {
    const all = [...this.store.bodies.values()],
      bodies = all.map((b) => `${b.row} ${b.name}`).join();
    if (bodies === this.bodies) return;
    const chosen = this.body.value;
    this.bodies = bodies;
    setChildren(this.body, ...all.map((b) => h("option", { value: b.row }, b.name)));
    if (chosen && this.store.bodies.has(Number(chosen))) this.body.value = chosen;
    else void this.offer();
  }
}
