// Form that injects a fault into a named part of the selected body.

import { h } from "./dom";
import type { FieldInfo } from "./page_protocol";

export type InjectFault = (part: string, kind: string, amount: string, field: string) => void;

/** A button that opens the form at a position; null if commands are not allowed. */
export function faultButton(
  part: string,
  kinds: string[],
  fields: FieldInfo[],
  at: HTMLElement,
  fail: InjectFault | null,
): HTMLElement | null {
  if (!fail || !kinds.length) return null;
  const open = (e: Event): void => {
    e.preventDefault();
    e.stopPropagation();
    const mine = at.firstElementChild instanceof HTMLElement && at.firstElementChild.dataset["part"] === part;
    at.replaceChildren(...(mine ? [] : [form()]));
  };
  const form = (): HTMLElement => {
    const amount = h("input", { placeholder: "amount", "aria-label": "Amount", size: 7 }),
      fit = (): void => {
        amount.disabled = kind.value === "none";
      },
      kind = h(
        "select",
        { "aria-label": "Fault", onchange: fit },
        ...kinds.map((k) => h("option", { value: k }, k === "none" ? "repair" : k)),
      );
    fit();
    const field = h(
      "select",
      { "aria-label": "Field" },
      h("option", { value: "" }, "all fields"),
      ...fields.map((f) => h("option", { value: f.name }, f.name)),
    );
    const close = (): void => at.replaceChildren();
    const box = h(
      "div",
      { class: "fault-form row" },
      h("b", {}, part),
      kind,
      amount,
      fields.length ? field : null,
      h(
        "button",
        {
          class: "on",
          onclick: () => {
            fail(part, kind.value, amount.disabled ? "" : amount.value.trim(), field.value);
            close();
          },
        },
        "set",
      ),
      h("button", { title: "Close", onclick: close }, "×"),
    );
    box.dataset["part"] = part;
    return box;
  };
  return h(
    "button",
    {
      class: "small",
      title: `Inject a fault into '${part}'`,
      "aria-label": `Inject a fault into ${part}`,
      onclick: open,
    },
    "⚡",
  );
}
