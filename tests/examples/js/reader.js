// The JavaScript client on a lead, for tests: the same commands and answers as those of ../c/reader.c, and
//
//     decode HEX     any datagram of the protocol, of either side: its message as an array
//     takes HEX      whether it is taken: null, or why it is dropped

import { createInterface } from "node:readline";
import { decodeBody, decodeEvent, decodeHeader } from "../../../examples/js-broker/codec.js";
import { Dropped, Reader } from "../../../examples/js-broker/msgpack.js";
import { REQUESTS } from "../../../examples/js-broker/protocol.js";
import { Exchange } from "../../../examples/js-broker/seal.js";
import { Session } from "../../../examples/js-broker/session.js";

const PHASES = ["hello", "joining", "joined", "leaving", "closed"];
let session, command, events, why;
let now = 100; // time goes on by the command flush only

const drops = () => Object.values(session.drops).reduce((a, b) => a + b, 0);
const json = (value) => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? { whole: String(v) } : v)).replace(/\{"whole":"(-?\d+)"\}/g, "$1");

/** An event as the other reader tells it. */
function plain(event) {
  const e = event;
  switch (e.event) {
    case "STATE": case "STEP": return { event: e.event, ...state(e.state) };
    case "RECEPTION": return {
      event: e.event, payload: e.payload && e.payload.toString("hex"),
      whole: [e.reception_ns, e.id, e.query, e.kind, e.code, e.from_address, e.to_address],
      measured: [e.frequency, e.level, e.snr, e.range, e.azimuth, e.elevation],
    };
    case "SENT": return { ...e, time_ns: e.emission_ns, of_signal: [e.frequency, e.level, e.duration] };
    case "ANSWER": return { ...e, value: e.ok };
    case "RUN_STATE": return { ...e, value: e.run_state };
    case "BODY": return { ...e, value: e.present };
    default: return e;
  }
}

function state(s) {
  const sensors = {};
  for (const [name, { time_ns, ...fields }] of Object.entries(s.sensors)) {
    sensors[name] = { time_ns };
    for (const [field, value] of Object.entries(fields)) sensors[name][field] = Array.isArray(value) ? value : [value];
  }
  return { ...s, sensors, complete: s.complete ? 1 : 0 };
}

function report(result) {
  const w = session.welcome;
  const reported = { RECEPTION: 1, SENT: 1, REQUEST_REFUSED: 1, ANSWER: 1, RUN_STATE: 1, NOTICE: 1, BODY: 1, BYE: 1, STATE: 1, STEP: 1 };
  const shown = events.filter((e) => e.event in reported).map(plain);
  events = [];
  return {
    result, phase: PHASES.indexOf(session.phase), ready: session.ready ? 1 : 0, dropped: drops(), events: shown, why,
    sent: session.outgoing(now).map((d) => d.toString("hex")),
    ticket: w && w.ticket,
    welcome: w && [w.id, w.role, w.resumed, w.step_ns, w.sound_speed, w.tick, w.lockstep_ns, w.rights],
  };
}

/** A message as the array of its elements. */
function array(value) {
  if (Buffer.isBuffer(value) || value instanceof Uint8Array) return { bin: Buffer.from(value).toString("hex") };
  if (Array.isArray(value)) return value.map(array);
  return value !== null && typeof value === "object" ? Object.values(value).map(array) : value;
}

const fromClient = (data) => data[5] < 24 && ![2, 4, 5].includes(data[5]);

function takes(data) {
  try {
    decodeBody(data, decodeHeader(data, fromClient(data)), null);
    return null;
  } catch (error) {
    if (!(error instanceof Dropped)) throw error;
    return error.reason;
  }
}

function decode(data) {
  const header = decodeHeader(data, fromClient(data));
  const message = decodeBody(data, header, null);
  if (message.items !== undefined)
    message.items = message.items.map((bytes) => {
      const kind = new Reader(bytes.subarray(1)).whole(); // of the vectors: behind one byte of an array
      return [kind, ...Object.values(header.message.fromClient ? REQUESTS[kind].read(new Reader(bytes)) : eventValues(bytes))];
    });
  return { type: header.type, token: header.token, sequence: header.sequence, ack: header.ack, body: array(message) };
}

function eventValues(bytes) {
  const { event, ...values } = decodeEvent(bytes);
  return values;
}

const verbs = {
  start(name, nonce, cookie, key, own, ticket = "0") {
    session = new Session({ name, lockstep_ns: 100_000_000, previous: BigInt(ticket) }, key === "-" ? null : Buffer.from(key, "hex"));
    if (own !== undefined) session.exchange = new Exchange(Buffer.from(own, "hex"));
    [command, events, why] = [{}, [], ""];
    session.nonce = BigInt(nonce);
    session.lastHeard = now;
    if (cookie !== "-") {
      session.cookie = Buffer.from(cookie, "hex");
      session.turn("joining", now + 1e9); // nothing of it is sent before it is asked for
    } else session.retryAt = now + 1e9;
    return 0;
  },
  data(hex) {
    const before = drops();
    const found = session.receive(Buffer.from(hex, "hex"), now);
    for (const e of found) if (e.event === "REFUSE" || e.event === "BYE") why = e.text;
    events.push(...found);
    return drops() > before ? -1 : 0;
  },
  flush(seconds) {
    now += Number(seconds);
    if (session.retryAt > 1e8) session.retryAt = 0;
    return 0;
  },
  set(name, value) {
    command[name] = value === "inf" ? Infinity : Number(value);
    return attempt(() => session.body.command(command), () => delete command[name]);
  },
  answer() {
    const given = command;
    command = {};
    return attempt(() => session.answer(Object.keys(given).length > 0 ? given : null));
  },
  ping: (frequency) => session.request("PING", { frequency: Number(frequency), level: null, at_ns: null, code: null }),
  leave() {
    session.leave();
    return 0;
  },
};

function attempt(what, otherwise = () => {}) {
  try {
    what();
    return 0;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    why = error.message;
    otherwise();
    return -5;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(" ");
  if (verb === "decode") console.log(json(decode(Buffer.from(words[0], "hex"))));
  else if (verb === "takes") console.log(json(takes(Buffer.from(words[0], "hex"))));
  else console.log(json(report(verbs[verb](...words))));
}
