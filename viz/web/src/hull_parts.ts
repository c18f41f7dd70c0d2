// Elements of a model that are made from parts of a hull file.

import { findChild, formatMetres, formatNumbers, nameOf, newElement, type Schema } from "./xml_tree";
import type { HullPartFrame, XmlTree } from "./page_protocol";

export interface PartUse {
  element: XmlTree;
  sensor: boolean;
  /** Move the element to the part after the axes or the unit of the file have changed. */
  follow(part: HullPartFrame, model: XmlTree | null): void;
}

export function newSensors(): XmlTree {
  return { tag: "sensors", attributes: {}, text: "", children: [] };
}

/** Add the elements that were made from parts to a model, unless it contains them. */
export function addUses(uses: (PartUse | null)[], model: XmlTree): void {
  for (const use of uses) {
    if (!use) continue;
    let owner = model;
    if (use.sensor) {
      owner = findChild(model, "sensors") ?? newSensors();
      if (!model.children.includes(owner)) model.children.push(owner);
    }
    if (owner.children.includes(use.element)) continue;
    if (use.element.tag === "transducer") owner.children = owner.children.filter((c) => c.tag !== "transducer");
    const taken = new Set(owner.children.map(nameOf));
    if (use.element.attributes["name"])
      use.element.attributes["name"] = freeName(use.element.attributes["name"], taken);
    owner.children.push(use.element);
  }
}

/** A name that no actuator or instrument has. */
function freeName(part: string, taken: Set<string>): string {
  const base =
    part
      .replace(/[^A-Za-z0-9_-]+/g, "-")
      .replace(/^-+|-+$/g, "")
      .slice(0, 26) || "part";
  let name = base;
  for (let k = 2; taken.has(name); k++) name = `${base}-${k}`;
  return name;
}

function place(t: XmlTree, what: string, part: HullPartFrame): void {
  t.attributes["position"] = formatMetres("0 0 0 m", part.centre);
  if (what === "thruster") t.attributes["direction"] = formatNumbers(part.axis);
  if (what === "fin") t.attributes["normal"] = formatNumbers(part.normal);
  // a rudder turns about a vertical shaft: its force is horizontal
  if (what === "rudder") {
    const [x, y] = part.normal as [number, number, number],
      size = Math.hypot(x, y);
    t.attributes["normal"] = Math.abs(y) > 0.5 * size ? formatNumbers([x / size, y / size, 0]) : "0 1 0";
  }
}

/** Make an element from a part and add it to the model. */
export function partElement(
  what: string,
  part: HullPartFrame,
  model: XmlTree,
  sensors: XmlTree,
  schema: Schema,
): PartUse {
  const actuators = model.children.filter((c) => ["thruster", "fin", "ballast", "actuator"].includes(c.tag)),
    sensor = !["thruster", "fin", "rudder", "transducer"].includes(what),
    taken = new Set((sensor ? sensors.children : actuators).map(nameOf)),
    tag = what === "rudder" ? "fin" : what,
    owner = sensor ? "Sensors" : "Model",
    of = schema[owner]!.children.find((c) => c.name === tag)!.of;
  const element = newElement(tag, of, schema);
  if (tag !== "transducer") element.attributes["name"] = freeName(part.name, taken);
  if (tag === "thruster") {
    const most = Math.max(
      ...actuators.map((a) => Number.parseFloat(a.attributes["maximum"] ?? "")).filter(Number.isFinite),
      10,
    );
    Object.assign(element.attributes, {
      law: "force",
      minimum: String(-most / 2),
      maximum: String(most),
      lag: "0.2 s",
    });
  } else if (tag === "fin")
    Object.assign(element.attributes, {
      area: `${+(part.area / 2).toPrecision(4)} m2`, // the surface has two sides
      lift_slope: "3.55",
      limit: "25 deg",
      rate: "90 deg/s",
      lag: "0.1 s",
    });
  place(element, what, part);
  if (sensor) sensors.children.push(element);
  else {
    if (tag === "transducer") model.children = model.children.filter((c) => c.tag !== "transducer");
    model.children.push(element);
  }
  return {
    element,
    sensor,
    follow: (moved, current) => {
      const inModel = [...(current?.children ?? []), ...(current?.children ?? []).flatMap((c) => c.children)],
        found = inModel.find((c) => c.tag === element.tag && nameOf(c) === nameOf(element));
      for (const t of new Set([element, found])) if (t) place(t, what, moved);
    },
  };
}
