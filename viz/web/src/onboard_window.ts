// The window with the onboard view.

import { h, setText } from "./dom";
import { makeDraggable } from "./draggable";
import type { OnboardCanvases } from "./view3d";

export class OnboardWindow {
  private box: HTMLElement | null = null;
  private readonly title = h("b", { class: "grow" });

  constructor(
    private readonly stage: HTMLElement,
    private readonly set: (view: OnboardCanvases | null) => void,
  ) {}

  get open(): boolean {
    return this.box !== null;
  }

  /** Show the view from a body. */
  show(row: number, name: string): OnboardCanvases {
    setText(this.title, `onboard ${name}`);
    this.box?.remove();
    const picture = h("canvas", { class: "picture" }),
      overlay = h("canvas", { class: "hud" }),
      compass = h("canvas", { class: "small-compass", width: 124, height: 124 });
    const button = h("button", { id: "close-onboard", title: "Close (O)", onclick: () => this.close() }, "×"),
      head = h("div", { class: "head" }, this.title, button);
    const box = (this.box = h("div", { class: "window", id: "onboard" }, head, picture, overlay, compass));
    const width = Math.min(380, 0.42 * this.stage.clientWidth);
    Object.assign(box.style, { left: "14px", bottom: "34px", width: `${width}px`, height: `${0.7 * width}px` });
    makeDraggable(head, box, this.stage);
    this.stage.append(box);
    const view = { row, picture, overlay, compass };
    this.set(view);
    return view;
  }

  close(): void {
    this.box?.remove();
    this.box = null;
    this.set(null);
  }
}
