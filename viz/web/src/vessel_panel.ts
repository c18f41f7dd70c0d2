// Vessels of other programs and results of panel codes, as uploaded files: opened as a model, or taken into the open one.

import { h, setChildren, toast } from "./dom";
import { postJson, uploadFile } from "./http";
import { findChild } from "./xml_tree";
import type { ModelHost } from "./hull_panel";
import type { ImportedVessel, XmlTree } from "./page_protocol";

const MOST_FILES = 200;
const PARTS: [string, string[]][] = [
  ["added mass", ["added-mass"]],
  ["damping", ["radiation", "linear-drag"]],
  ["restoring", ["restoring"]],
  ["waves", ["rao"]],
];

export class VesselPanel {
  readonly box = h("details", { class: "section", id: "vessel-panel" });
  private readonly body = h("div", {});
  private uploads: string[] = [];
  private settings: Record<string, string> = {};
  private angles = "";
  private partial = false;

  constructor(private readonly host: ModelHost) {
    const pick = (id: string, directory: boolean): HTMLInputElement => {
      const input: HTMLInputElement = h("input", {
        type: "file",
        multiple: true,
        class: "hidden",
        id,
        onchange: () => {
          const files = [...(input.files ?? [])];
          input.value = "";
          if (files.length) void this.upload(files);
        },
      });
      if (directory) input.setAttribute("webkitdirectory", "");
      return input;
    };
    const files = pick("vessel-file", false),
      folder = pick("vessel-directory", true);
    this.box.append(
      h("summary", {}, "Panisim vessel, HydRA or other panel code"),
      h(
        "div",
        { class: "row" },
        h("button", { id: "vessel-files", onclick: () => files.click() }, "files or ZIP…"),
        h("button", { id: "vessel-folder", onclick: () => folder.click() }, "folder…"),
        files,
        folder,
      ),
      this.body,
    );
    setChildren(
      this.body,
      h(
        "div",
        { class: "soft" },
        "Reads a Panisim folder or ZIP, a HydRA .json, a Capytaine .nc, WAMIT files and NEMOH folders, as wavesim vehicles import does.",
      ),
    );
  }

  private async upload(files: File[]): Promise<void> {
    if (files.length > MOST_FILES) {
      toast(`${files.length} files are too many: the maximum is ${MOST_FILES}`, true);
      return;
    }
    this.uploads = [];
    this.settings = {};
    this.angles = "";
    this.partial = false;
    for (const [k, file] of files.entries()) {
      this.say(`uploading ${k + 1} of ${files.length}…`);
      const found = file.size ? await uploadFile(file, file.webkitRelativePath || file.name) : null;
      if (found) this.uploads.push(found.upload);
      else if (file.size) {
        this.say("");
        return;
      }
    }
    await this.read();
  }

  private say(text: string): void {
    setChildren(this.body, h("div", { class: "soft", id: "vessel-state", role: "status" }, text));
  }

  private async read(): Promise<void> {
    this.say("reading…");
    const found = await postJson<ImportedVessel>("/api/vessel", {
      uploads: this.uploads,
      settings: this.settings,
      angles: this.angles,
      partial: this.partial,
      model: this.host.model(),
    });
    if (!found) this.say("");
    else if (found.models.length) this.result(found, found.models[0]!);
    else this.questions(found);
  }

  /** Ask for values that the files lack, and for permission to omit content. */
  private questions(found: ImportedVessel): void {
    const fields = found.missing.map((m) => {
      const input = h("input", {
        id: `vessel-set-${m.key}`,
        value: this.settings[m.key] ?? "",
        onchange: () => {
          this.settings[m.key] = input.value.trim();
        },
      });
      return h(
        "div",
        { class: "question" },
        h("label", { for: input.id }, h("b", {}, m.key), " ", h("span", { class: "soft" }, m.meaning)),
        input,
      );
    });
    const angles = h(
      "select",
      {
        id: "vessel-angles",
        onchange: () => {
          this.angles = angles.value;
        },
      },
      h("option", { value: "" }, "choose"),
      h("option", { value: "deg" }, "degrees"),
      h("option", { value: "rad" }, "radians"),
    );
    setChildren(
      this.body,
      h(
        "div",
        { id: "vessel-state", role: "status" },
        found.omitted.length
          ? `A model cannot represent this content of ${found.source}:`
          : `${found.source} lacks values that a model needs:`,
      ),
      found.omitted.length ? h("ul", { class: "notes" }, ...found.omitted.map((o) => h("li", {}, o))) : null,
      found.angles
        ? h("div", { class: "question" }, h("label", { for: "vessel-angles" }, "unit of its angles"), angles)
        : null,
      ...fields,
      h(
        "button",
        {
          id: "vessel-continue",
          class: "on",
          onclick: () => {
            if (found.omitted.length) this.partial = true;
            void this.read();
          },
        },
        found.omitted.length ? "omit it and continue" : "continue",
      ),
    );
    this.body.querySelector<HTMLElement>("input, select, button")?.focus();
  }

  private result(found: ImportedVessel, model: XmlTree): void {
    const present = PARTS.filter(([, tags]) => tags.some((t) => findChild(model, t))),
      boxes = present.map(([name]) =>
        h("input", { type: "checkbox", checked: true, id: `vessel-take-${name.replace(" ", "-")}` }),
      );
    const take = (): void => {
      const target = this.host.model();
      if (!target) return;
      const tags = present.flatMap(([, t], k) => (boxes[k]!.checked ? t : [])).filter((t) => findChild(model, t)),
        replaced = [
          ...tags,
          ...(tags.includes("restoring") ? ["buoyancy", "hull"] : []),
          ...(tags.includes("radiation") ? ["memory"] : []),
        ];
      target.children = target.children.filter((c) => !replaced.includes(c.tag));
      target.children.push(...tags.map((t) => findChild(model, t)!));
      this.host.changed();
      toast(`taken from ${found.source}: ${tags.join(", ") || "nothing"}`);
    };
    setChildren(
      this.body,
      h("div", { id: "vessel-state", role: "status" }, `${found.source}: model ${model.attributes["name"] ?? ""}`),
      found.notes.length
        ? h("ul", { class: "notes", id: "vessel-notes" }, ...found.notes.map((n) => h("li", {}, n)))
        : null,
      h(
        "div",
        { class: "row" },
        h("button", { id: "vessel-open", class: "on", onclick: () => this.host.open(model) }, "open as a model"),
      ),
      present.length
        ? h(
            "fieldset",
            {},
            h("legend", {}, "or copy into the open model"),
            ...present.map(([name], k) => h("label", { class: "row" }, boxes[k]!, name)),
            h("button", { id: "vessel-take", onclick: take }, "take"),
          )
        : null,
    );
  }
}
