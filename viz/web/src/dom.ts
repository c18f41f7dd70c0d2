// Small DOM helpers used in place of a framework.

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

/** Create an element: properties that start with "on" are listeners, the others are attributes or properties. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value as EventListener);
    else if (key === "class") element.className = String(value);
    else if (key in element && key !== "list" && key !== "style") (element as unknown as Props)[key] = value;
    else element.setAttribute(key, String(value));
  }
  // screen readers do not read every title
  if ((tag === "select" || tag === "input") && props["title"] && !props["aria-label"])
    element.setAttribute("aria-label", String(props["title"]));
  appendChildren(element, ...children);
  return element;
}

export function appendChildren(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

export function setChildren(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  appendChildren(element, ...children);
}

/** Replace the text of an element in place: a pressed element must still exist when the pointer is released. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Set or clear a class of an element; an unchanged class does not touch the DOM. */
export function toggleClass(element: Element, name: string, on: boolean): void {
  if (element.classList.contains(name) !== on) element.classList.toggle(name, on);
}

const LONGEST = 1e7; // larger numbers would push columns off the page

/** Format a number for display; a missing value gives a dash. */
export function formatNumber(value: number | null | undefined, digits = 2): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) >= LONGEST) return value.toExponential(1);
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text; // no minus sign for a value that rounds to zero
}

/** Format seconds as h:mm:ss.s, with so many decimals. */
export function formatTime(seconds: number, digits = 1): string {
  const sign = seconds < 0 ? "-" : "";
  const s = Number(Math.abs(seconds).toFixed(digits));
  const hours = Math.floor(s / 3600),
    minutes = Math.floor((s % 3600) / 60);
  const rest = (s % 60).toFixed(digits).padStart(digits ? 3 + digits : 2, "0");
  return `${sign}${hours ? `${hours}:${String(minutes).padStart(2, "0")}` : minutes}:${rest}`;
}

/** Draw a scale bar from x to the right; returns its label. */
export function drawScaleBar(c: CanvasRenderingContext2D, x: number, y: number, width: number, metres: number): string {
  c.beginPath();
  c.moveTo(x, y - 5);
  c.lineTo(x, y);
  c.lineTo(x + width, y);
  c.lineTo(x + width, y - 5);
  c.stroke();
  return metres >= 1000 ? `${metres / 1000} km` : `${metres} m`;
}

let toastTimer = 0;
/** Show a message for a few seconds. */
export function toast(text: string, bad = false): void {
  document.querySelector(".toast")?.remove();
  // over the picture, so that it does not cover the input fields below
  const stage = window.innerWidth > 760 ? document.querySelector("#app:not(.hidden) #stage") : null;
  (stage ?? document.body).append(h("div", { class: `toast${bad ? " bad" : ""}`, role: "status" }, text));
  clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => document.querySelector(".toast")?.remove(), bad ? 6000 : 2500);
}

const styles = { theme: "", values: new Map<string, string>() };
/** Value of a variable of the style sheet in the theme of the page; kept, because the browser computes it slowly. */
export function cssVariable(name: string): string {
  const theme = document.documentElement.dataset["theme"] ?? "";
  if (theme !== styles.theme) {
    styles.theme = theme;
    styles.values.clear();
  }
  let value = styles.values.get(name);
  if (!value) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    styles.values.set(name, value);
  }
  return value;
}

const BODY_COLOURS = 8; // variables --body-0, --body-1, ... of the style sheet
/** Colour of a body in the theme of the page. */
export function bodyColour(row: number): string {
  return cssVariable(`--body-${row % BODY_COLOURS}`);
}
/** Colours of all bodies. */
export function bodyColours(): string[] {
  return Array.from({ length: BODY_COLOURS }, (_, k) => bodyColour(k));
}
/** A dot in the colour of a body, which follows the theme. */
export function bodyDot(row: number): HTMLElement {
  const dot = h("span", { class: "dot" });
  dot.style.background = row < 0 ? "transparent" : `var(--body-${row % BODY_COLOURS})`;
  return dot;
}
