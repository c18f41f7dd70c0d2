// Feeds datagrams from stdin (two bytes of length, little-endian, then the bytes) to a client, as ../c/fuzz.c does: each to one
// that joins and to one that has joined, whose body is described by the first of them.

import { readFileSync } from "node:fs";
import { Session } from "../../../examples/js-broker/session.js";

const stream = readFileSync(0);
const token = 0x1122334455667788n;
const joining = new Session({ name: "lauv" });
const joined = new Session({ name: "lauv", lockstep_ns: 100_000_000 });
joined.token = token;
joined.welcome = { actuators: 3, sensors: 4, keepalive_period: 0.5 };

let [taken, count, events] = [0, 0, 0];
const drops = (session) => Object.values(session.drops).reduce((a, b) => a + b, 0);
const began = performance.now();
for (let at = 0; at < stream.length; count++) {
  const size = stream.readUInt16LE(at);
  const data = stream.subarray(at + 2, at + 2 + size);
  at += 2 + size;
  Object.assign(joining, { nonce: 7n, phase: count % 2 ? "joining" : "hello", token: 0n });
  Object.assign(joined, { phase: "joined", latest: {} });
  if (count > 0 && count % 4 === 0) joined.received = 0; // so that events are new again
  const before = [drops(joining), drops(joined)];
  const found = joined.receive(data, count * 1e-3);
  joining.receive(data, count * 1e-3);
  if (drops(joining) === before[0] || drops(joined) === before[1]) taken++;
  events += found.filter((e) => e.event !== "ACTUATOR" && e.event !== "SENSOR").length;
  if (joined.asked !== null) joined.answer(null);
  joined.outgoing(count * 1e-3);
}
const per = (1e3 * (performance.now() - began)) / count;
console.log(`${taken} of ${count} taken, ${events} events`);
console.error(`${per.toFixed(2)} us each, ${(process.memoryUsage().heapUsed / 1e6).toFixed(1)} MB`);
