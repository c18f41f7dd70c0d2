// Generates protocol.js, the codec of every record of the protocol, from the machine-readable schema of the SDK:
//
//     node generate.js path/to/wavesim_sdk/wire/protocol.json > protocol.js

import { readFileSync } from "node:fs";

const text = readFileSync(process.argv[2], "utf8");
// integers that a Number cannot represent remain texts
const schema = JSON.parse(text.replace(/(": )(-?\d{16,})(?=[,\n}])/g, '$1"$2"'));
const records = new Map(); // name -> lines, innermost first

const bound = (value, none) => (value === undefined ? none : typeof value === "string" ? `${value}n` : String(value));
const low = (f) => bound(f.minimum, "-MOST");
const high = (f) => bound(f.maximum, "MOST");
const plainNumbers = (f) => f.type === "list" && f.of.type === "float";

function read(f) {
  const some = readSome(f);
  return f.nil ? `r.nil() ? null : ${some}` : some;
}

function readSome(f) {
  switch (f.type) {
    case "int": return `r.${typeof f.maximum === "string" ? "wide" : "int"}(${low(f)}, ${high(f)})`;
    case "float": return `r.number(${low(f)}, ${high(f)})`;
    case "str": return `r.text(${f.most_bytes})`;
    case "bin": return `r.bin(${f.least_bytes}, ${f.most_bytes})`;
    case "struct": return `read${declare(f.name, f.fields)}(r)`;
    case "numbered": return "r.item()";
    case "list":
      if (plainNumbers(f)) return `r.numbers(${f.least}, ${f.most}, ${low(f.of)}, ${high(f.of)}, ${f.of.nil === true})`;
      return `readList(r, ${f.least}, ${f.most}, (r) => ${read(f.of)})`;
    default: throw new Error(`the schema has an unknown type '${f.type}'`);
  }
}

function write(f, value, what) {
  const some = writeSome(f, value, what);
  return f.nil ? `${value} === null || ${value} === undefined ? w.nil() : ${some}` : some;
}

function writeSome(f, value, what) {
  switch (f.type) {
    case "int": return `w.int(${value}, ${low(f)}, ${high(f)}, ${what})`;
    case "float": return `w.number(${value}, ${low(f)}, ${high(f)}, ${what})`;
    case "str": return `w.text(${value}, ${f.most_bytes}, ${what})`;
    case "bin": return `w.bin(${value}, ${f.least_bytes}, ${f.most_bytes}, ${what})`;
    case "struct": return `write${declare(f.name, f.fields)}(w, ${value})`;
    case "numbered": return `w.raw(${value})`;
    case "list":
      if (plainNumbers(f)) return `w.numbers(${value}, ${f.least}, ${f.most}, ${low(f.of)}, ${high(f.of)}, ${f.of.nil === true}, ${what})`;
      return `writeList(w, ${value}, ${f.least}, ${f.most}, ${what}, (w, v) => ${write(f.of, "v", what)})`;
    default: throw new Error(`the schema has an unknown type '${f.type}'`);
  }
}

/** Generate the functions of a record and return its name. An item has a number before its elements. Only client messages get a writer. */
function declare(name, fields, { kind, written = false } = {}) {
  if (records.has(name)) return name;
  records.set(name, []); // reserve its place before nested records refer to it
  const more = kind === undefined ? 0 : 1;
  const required = fields.filter((f) => !f.optional).length + more;
  const reads = fields.map((f, k) => (f.optional ? `n > ${k + more} ? ${read(f)} : undefined` : read(f)));
  const lines = [`export function read${name}(r) {`, `  const n = r.list(${required}, 65535);`];
  if (more) lines.push(`  r.int(${kind}, ${kind});`);
  lines.push("  const m = {", ...fields.map((f, k) => `    ${f.name}: ${reads[k]},`), "  };");
  lines.push(`  for (let k = ${fields.length + more}; k < n; k++) r.skip(2);`, "  return m;", "}");
  if (written) lines.push("", `export function write${name}(w, m) {`, `  w.list(${fields.length + more}, 0, 65535, "${name}");`);
  if (written && more) lines.push(`  w.byte(${kind});`);
  if (written) lines.push(...fields.map((f) => `  ${write(f, `m.${f.name}`, `"${name}.${f.name}"`)};`), "}");
  records.delete(name); // after its nested records
  records.set(name, lines);
  return name;
}

const constants = (name, values) => `export const ${name} = Object.freeze(${JSON.stringify(values)});`;
const entry = (key, values) => `  ${key}: { ${Object.entries(values).map(([k, v]) => `${k}: ${v}`).join(", ")} },`;

const messages = schema.messages.map((m) => {
  const written = m.from === "client";
  const read = `read${declare(m.record, m.fields, { written })}`;
  const write = written ? { write: `write${m.record}` } : {};
  return entry(m.type, { name: `"${m.name}"`, fromClient: written, session: m.session, latestWins: m.latest_wins, read, ...write });
});
const events = schema.events.map((e) => entry(e.kind, { name: `"${e.name}"`, read: `read${declare(e.record, e.fields, e)}` }));
const requests = schema.requests.map((q) =>
  entry(q.kind, { name: `"${q.name}"`, read: `read${declare(q.record, q.fields, { kind: q.kind, written: true })}`, write: `write${q.record}` }));

process.stdout.write(`// Made by generate.js from the SDK's protocol.json; do not edit by hand.

const MOST = Number.MAX_VALUE;

export const VERSION = ${schema.version};
${constants("LIMITS", schema.limits)}
${constants("Type", Object.fromEntries(schema.messages.map((m) => [m.name, m.type])))}
${constants("Event", Object.fromEntries(schema.events.map((e) => [e.name, e.kind])))}
${constants("Request", Object.fromEntries(schema.requests.map((q) => [q.name, q.kind])))}
${constants("Role", schema.roles)}
${constants("Resumed", schema.resumed)}
${constants("Refusal", schema.refusals)}
${constants("Right", schema.rights)}
${constants("RunState", schema.run_states)}
${constants("Outcome", schema.outcomes)}
${constants("EFFORT", schema.effort.map((e) => e.name))}
${constants("FLEET", schema.fleet_record.map(({ name, type, count }) => ({ name, type, count })))}

function readList(r, least, most, one) {
  const count = r.list(least, most);
  const out = new Array(count);
  for (let k = 0; k < count; k++) out[k] = one(r);
  return out;
}

function writeList(w, values, least, most, what, one) {
  if (!Array.isArray(values)) throw new TypeError(\`\${what}: expected a list, got \${values}\`);
  w.list(values.length, least, most, what);
  for (const value of values) one(w, value);
}

${[...records.values()].map((lines) => lines.join("\n")).join("\n\n")}

export const MESSAGES = {
${messages.join("\n")}
};

export const EVENTS = {
${events.join("\n")}
};

export const REQUESTS = {
${requests.join("\n")}
};
`);
