// The test run of the configurator: a turning circle or a step ahead of the edited model, with plots of its motion.

import { context2d } from "./canvas";
import { cssVariable, h, setChildren, toast } from "./dom";
import { postJson } from "./http";
import type { SimulatedMotion, XmlTree } from "./page_protocol";
import { Plot } from "./plots";

export class ModelTest {
  readonly box = h("div", { class: "section", id: "tries" });
  private commands: Record<string, number> | null = null;
  private kind = "turn";
  private seconds = 60;
  private result: SimulatedMotion | undefined;

  /** `model` returns the model as it is checked and saved. */
  constructor(private readonly model: () => XmlTree | null) {}

  /** Forget the commands and the motion of an earlier model; hide the form if no model is edited. */
  reset(hidden: boolean): void {
    this.commands = null;
    this.result = undefined;
    setChildren(this.box);
    this.box.classList.toggle("hidden", hidden);
  }

  /** Show the form once the server has accepted a model. */
  show(): void {
    if (!this.box.childElementCount) this.form();
  }

  /** Redraw in the colours of the theme. */
  recolour(): void {
    if (this.result) this.form();
  }

  private form(): void {
    const { result } = this;
    const seconds = h("input", {
      type: "number",
      value: this.seconds,
      min: 5,
      max: 600,
      onchange: () => {
        this.seconds = Number(seconds.value);
      },
    });
    seconds.style.width = "64px";
    const run = (kind: string): void => {
      this.kind = kind;
      this.commands = null;
      void this.test();
    };
    setChildren(
      this.box,
      h("h3", {}, "Test run"),
      h(
        "div",
        { class: "row" },
        h("button", { id: "try-turn", onclick: () => run("turn") }, "turning circle"),
        h("button", { id: "try-step", onclick: () => run("step") }, "step ahead"),
        h("label", { class: "row" }, seconds, "s"),
      ),
    );
    if (!result) return;
    const inputs = Object.entries(result.commands).map(([name, value]) => {
      const input = h("input", {
        type: "number",
        value: +value.toFixed(4),
        step: "any",
        onchange: () => {
          (this.commands ??= { ...result.commands })[name] = Number(input.value);
        },
      });
      return h("div", { class: "key" }, h("label", { title: name }, name), input);
    });
    this.box.append(
      h("div", { class: "soft" }, "Commands, applied from t = 1 s, in SI units: N or 1/s, rad, kg"),
      ...inputs,
      h("div", { class: "row" }, h("button", { onclick: () => void this.test() }, "run again with these commands")),
      this.track(result),
    );
    const c = result.columns,
      width = Math.max(this.box.parentElement!.clientWidth - 26, 160),
      deg = 180 / Math.PI;
    const plot = (title: string, unit: string, ...y: number[][]): void => {
      const p = new Plot({
        title,
        unit,
        colours: [cssVariable("--accent")],
        labels: [title],
        width,
        down: title === "depth",
      });
      p.set(c["time"]!, y[0]!);
      this.box.append(p.element);
    };
    plot("speed ahead", "m/s", c["u"]!);
    plot(
      "heading rate",
      "deg/s",
      c["r"]!.map((v) => v * deg),
    );
    plot("depth", "m", c["down"]!);
    plot(
      "roll",
      "deg",
      c["roll"]!.map((v) => v * deg),
    );
  }

  /** Draw the track from above, north up, both axes to the same scale. */
  private track(result: SimulatedMotion): HTMLElement {
    const n = result.columns["north"]!,
      e = result.columns["east"]!,
      size = Math.max(this.box.parentElement!.clientWidth - 26, 160),
      canvas = h("canvas", { width: 2 * size, height: 2 * size, id: "way" });
    Object.assign(canvas.style, { width: `${size}px`, height: `${size}px` });
    const [n0, n1, e0, e1] = [Math.min(...n), Math.max(...n), Math.min(...e), Math.max(...e)],
      span = Math.max(n1 - n0, e1 - e0, 1) * 1.15;
    const x = (v: number): number => size + ((v - (e0 + e1) / 2) / span) * 2 * size,
      y = (v: number): number => size - ((v - (n0 + n1) / 2) / span) * 2 * size;
    const c = context2d(canvas);
    c.fillStyle = cssVariable("--field");
    c.fillRect(0, 0, 2 * size, 2 * size);
    c.strokeStyle = cssVariable("--accent");
    c.lineWidth = 3;
    c.beginPath();
    n.forEach((v, k) => (k ? c.lineTo(x(e[k]!), y(v)) : c.moveTo(x(e[k]!), y(v))));
    c.stroke();
    c.fillStyle = cssVariable("--warm");
    c.beginPath();
    c.arc(x(e[0]!), y(n[0]!), 7, 0, 7);
    c.fill();
    c.fillStyle = cssVariable("--soft");
    c.font = "22px system-ui, sans-serif";
    c.fillText(`${(e1 - e0).toFixed(1)} m wide, ${(n1 - n0).toFixed(1)} m high; north is up`, 14, 2 * size - 16);
    return canvas;
  }

  private async test(): Promise<void> {
    toast("trying…");
    const found = await postJson<SimulatedMotion>("/api/test", {
      model: this.model(),
      kind: this.kind,
      seconds: this.seconds,
      commands: this.commands,
    });
    if (found) {
      this.commands = found.commands;
      this.result = found;
      this.form();
    }
  }
}
