// One session without socket or clock: bytes and ``now`` (s) in, events and bytes out.

import { randomBytes } from "node:crypto";
import { decodeBody, decodeEvent, decodeHeader, encode, encodeRequest } from "./codec.js";
import { Dropped } from "./msgpack.js";
import { LIMITS, Refusal, Request, Role, Type } from "./protocol.js";
import { Outbox, Pace } from "./reliable.js";
import { Exchange, Handshake, Welcome, keyId, previousProof } from "./seal.js";
import { Assembly, Body, State } from "./state.js";

const RETRY = 0.25; // s between repeats of HELLO and JOIN
const ACK_DELAY = 0.02;
const LEAVES = 6; // repeats of LEAVE before the session closes without confirmation
const ROOM_TO_PROVE = 9; // nils that make an ACK as long as a PROVE: a server sends an unvalidated address no more bytes than it received
const SILENT_PERIODS = 1.5; // share of the keep-alive after which a silent client sends an ACK
const [TOKEN, OLD] = [new Dropped("token"), new Dropped("old")];
const JOIN = {
  name: "", role: Role.PILOT, model: "", position: [0, 0, 0], attitude: [0, 0, 0], lockstep_ns: 0, state_period_ns: 0, previous: 0n,
  sensors: null, acoustics: 1, effort: 0, others: 0, device: "",
};

/** Call ``receive`` with each datagram, and ``outgoing`` after every event and whenever ``nextTimer`` has passed. */
export class Session {
  phase = "hello"; // joining, joined, leaving, closed
  welcome = null;
  body = new Body();
  drops = {}; // by reason
  lastHeard = 0;

  constructor(join, key = null, random = randomBytes) {
    this.join = { ...JOIN, ...join };
    this.key = key;
    this.random = random;
    this.exchange = null; // key pair of the present handshake
    this.nonce = this.fresh();
    this.token = 0n;
    this.sequence = 0;
    this.received = 0; // events, in order
    this.pace = new Pace();
    this.outbox = new Outbox(this.pace);
    this.seal = null;
    this.cookie = null;
    this.retryAt = 0;
    this.askedAt = 0;
    this.sentAt = 0;
    this.ackAt = null;
    this.tries = 0; // repeats of HELLO, JOIN, LEAVE
    this.latest = {}; // sequence by type
    this.send = []; // [type, message]
    this.states = new Assembly(false);
    this.steps = new Assembly(true);
    this.step = null; // {head, parts}: complete, but waits for earlier events
    this.asked = null; // tick of the step returned to the program
    this.newest = -1; // tick of the last received step
    this.since = 0; // number of the last event TIME_CHANGED
    this.done = null; // the last answer
  }

  /** The nonce of a new handshake, 63 unpredictable bits; with a key also a new key pair. */
  fresh() {
    if (this.key !== null) this.exchange = new Exchange(this.random(32));
    return this.random(8).readBigUInt64LE(0) >> 1n;
  }

  // ------------------------------------------------------------------------------------- calls of the program

  /** Queue a request that is repeated until acknowledged; return its number. Throws a TypeError for an invalid value. */
  request(name, values) {
    if (!(name in Request)) throw new TypeError(`unknown request '${name}'; use ${Object.keys(Request).join(", ")}`);
    return this.outbox.push(encodeRequest(Request[name], values));
  }

  /** Send commands by name or position and the estimate: as the answer to a step, or immediately. */
  answer(values, estimate = null) {
    const command = this.body.command(values);
    if (this.asked !== null) {
      const done = { tick: this.asked, last_request: this.outbox.last, command, estimate };
      encode(Type.DONE, done); // throws for an invalid value while the step still waits
      this.done = done;
      this.asked = null;
      this.send.push([Type.DONE, done]);
      return;
    }
    for (const [type, message] of [[Type.ACTUATE, command && { command }], [Type.ESTIMATE, estimate && { values: estimate }]]) {
      if (message === null) continue;
      encode(type, message);
      this.send.push([type, message]);
    }
  }

  leave() {
    if (this.phase === "joined") this.turn("leaving", 0);
    else if (this.phase !== "leaving") this.phase = "closed";
  }

  turn(phase, now) {
    if (this.tries === 1 && (phase === "joining" || phase === "joined")) this.pace.add(now - this.askedAt);
    Object.assign(this, { phase, retryAt: now, tries: 0 });
  }

  // -------------------------------------------------------------------------------------- calls of the socket

  /** Decode the events of a datagram; invalid bytes are dropped and counted. */
  receive(data, now) {
    let header, message;
    try {
      header = decodeHeader(data, false);
      if (header.message.session && (this.token === 0n || header.token !== this.token || this.phase === "closed")) throw TOKEN;
      if (header.type === Type.WELCOME && header.sealed && this.token !== 0n) return []; // already joined; its public key is of no use
      const opener = this.opener(header);
      message = decodeBody(data, header, opener);
      if (header.type === Type.WELCOME && this.phase === "joining" && message.nonce == this.nonce) this.seal = opener?.session ?? null;
      if (header.message.latestWins) {
        if (header.sequence <= (this.latest[header.type] ?? 0)) throw OLD;
        this.latest[header.type] = header.sequence;
      }
    } catch (error) {
      if (!(error instanceof Dropped)) throw error;
      this.drops[error.reason] = (this.drops[error.reason] ?? 0) + 1;
      return [];
    }
    if (!header.message.session && this.token !== 0n) return []; // already joined; unauthenticated, so it does not count as activity
    this.lastHeard = now;
    this.outbox.acknowledged(header.ack, now);
    return this.handle(header, message, now);
  }

  opener(header) {
    if (this.key === null || header.type === Type.CHALLENGE) return null;
    if (header.type === Type.REFUSE) return new Handshake(this.key, "refuse");
    if (header.type === Type.WELCOME && this.phase === "joining") return new Welcome(this.key, this.exchange, this.cookie, this.nonce, header.token);
    return header.type === Type.WELCOME || this.seal === null ? new Handshake(this.key, "refuse") : this.seal; // a Handshake opens neither
  }

  handle(header, message, now) {
    switch (header.type) {
      case Type.CHALLENGE:
        if (this.phase === "hello" && message.nonce == this.nonce) {
          this.cookie = message.cookie;
          this.turn("joining", now);
        }
        return [];
      case Type.WELCOME:
        if (this.phase !== "joining" || message.nonce != this.nonce) return [];
        this.turn("joined", now);
        this.token = header.token;
        this.exchange = null; // its private key opens a recorded session
        this.welcome = { ...message, token: header.token, ticket: this.seal?.ticket ?? header.token };
        return [{ event: "WELCOME", ...this.welcome }];
      case Type.REFUSE:
        if ((this.phase !== "joining" && this.phase !== "hello") || message.nonce != this.nonce) return [];
        if (message.code === Refusal.COOKIE) this.nonce = this.fresh(); // too old, or from a session that has ended
        this.turn(message.code === Refusal.COOKIE ? "hello" : "closed", now);
        return this.phase === "closed" ? [{ event: "REFUSE", ...message }] : [];
      case Type.STATE: return this.given(this.states.begin(message));
      case Type.STEP: return this.onStep(message);
      case Type.SENSORS: return [...this.given(this.states.add(message)), ...this.asks(this.steps.add(message))];
      case Type.EVENTS: return this.onEvents(message, now);
      case Type.FLEET: return [{ event: "FLEET", ...message }];
      case Type.KEEPALIVE:
        this.send.push([Type.KEEPALIVE_REPLY, message]);
        return [];
      case Type.PROVE:
        this.send.push([Type.PROOF, message]);
        return [];
      case Type.BYE: {
        const asked = this.phase === "leaving";
        this.phase = "closed";
        return [{ event: "BYE", text: message.text, asked }];
      }
      default: return [];
    }
  }

  onEvents({ first, items }, now) {
    this.ackAt ??= now + ACK_DELAY;
    if (first > this.received + 1) return []; // a gap: the server repeats it
    const events = [];
    for (const bytes of items.slice(this.received + 1 - first)) {
      this.received++;
      const event = decodeEvent(bytes);
      if (event === null) continue;
      if (event.event === "ACTUATOR") this.body.addActuator(event);
      else if (event.event === "SENSOR") this.body.addSensor(event);
      else if (event.event === "TIME_CHANGED") this.onTimeChanged();
      events.push(event);
    }
    return [...events, ...this.release()];
  }

  /** The simulation was reset, or has returned to a snapshot: earlier steps are void, and ticks begin again. */
  onTimeChanged() {
    this.since = this.received;
    this.newest = -1;
    this.step = this.asked = this.done = null;
    this.states = new Assembly(false);
    this.steps = new Assembly(true);
  }

  onStep(message) {
    if (message.last_event < this.since) return []; // a delayed copy from before the last change of time
    if (this.done !== null && this.done.tick === message.tick) {
      this.send.push([Type.DONE, this.done]); // the answer was lost
      return [];
    }
    if (message.tick < this.newest) return []; // a delayed copy
    this.newest = message.tick;
    if (this.asked === message.tick || this.step?.head.tick === message.tick) return [];
    return this.asks(this.steps.begin(message));
  }

  /** Whether all names are known. */
  get ready() {
    const [w, has] = [this.welcome, (list) => list.reduce((n) => n + 1, 0)];
    return w !== null && has(this.body.actuators) >= w.actuators && has(this.body.sensors) >= w.sensors;
  }

  given(finished) {
    if (!this.ready) return []; // names are not known yet; wait for the next state
    return finished.map(({ head, parts }) => ({ event: "STATE", state: new State(this.body, head, parts) }));
  }

  asks(finished) {
    if (finished.length > 0) this.step = finished.at(-1);
    return this.release();
  }

  /** Return a step once, when every event before it has arrived. */
  release() {
    if (this.step === null || !this.ready || this.received < this.step.head.last_event) return [];
    const { head, parts } = this.step;
    this.step = null;
    this.asked = head.tick;
    return [{ event: "STEP", state: new State(this.body, head, parts) }];
  }

  /** Datagrams to send now. */
  outgoing(now) {
    const out = [];
    if ((this.phase === "hello" || this.phase === "joining") && now >= this.retryAt) {
      this.retryAt = now + RETRY;
      this.askedAt = now;
      this.tries++;
      if (this.phase === "hello") out.push(this.encode(Type.HELLO, { nonce: this.nonce, padding: Buffer.alloc(LIMITS.least_hello_bytes) }));
      else out.push(this.encodeJoin());
    }
    if (this.phase === "joined") {
      // requests precede the DONE that counts them
      for (const { first, items } of this.outbox.due(now)) out.push(this.encode(Type.REQUESTS, { first, items }));
      for (const [type, message] of this.send) out.push(this.encode(type, message));
      if (out.length === 0 && now >= this.silentAt()) out.push(this.encode(Type.ACK, {}, ROOM_TO_PROVE));
      else if (out.length === 0 && now >= (this.ackAt ?? Infinity)) out.push(this.encode(Type.ACK, {}));
      if (out.length > 0) this.ackAt = null;
    }
    if (this.phase === "leaving" && now >= this.retryAt) {
      for (const [type, message] of this.send) out.push(this.encode(type, message));
      if (this.tries === LEAVES) this.phase = "closed";
      else out.push(this.encode(Type.LEAVE, {}));
      this.retryAt = now + this.pace.wait(this.tries++);
    }
    this.send.length = 0;
    if (out.length > 0) this.sentAt = now;
    return out;
  }

  /** Time to send an ACK although nothing arrives: the address of this client may have changed. */
  silentAt() {
    const period = Math.max(this.welcome.keepalive_period, ACK_DELAY);
    return Math.max(this.lastHeard + SILENT_PERIODS * period, this.sentAt + period);
  }

  encode(type, message, nils = 0) {
    const { token, seal, received: ack } = this;
    return encode(type, message, { token, sequence: ++this.sequence, ack, seal, nils });
  }

  encodeJoin() {
    const message = { ...this.join, cookie: this.cookie, nonce: this.nonce };
    if (this.key === null) return this.encode(Type.JOIN, message);
    const { public: publicKey } = this.exchange;
    if (message.previous) message.previous = previousProof(message.previous, publicKey);
    return encode(Type.JOIN, message, { token: keyId(this.key), sequence: ++this.sequence, seal: new Handshake(this.key, "join", publicKey) });
  }

  /** Time at which ``outgoing`` must be called again, or null. */
  nextTimer() {
    if (this.phase === "closed") return null;
    if (this.phase !== "joined") return this.retryAt;
    return this.send.length > 0 ? 0 : Math.min(this.ackAt ?? Infinity, this.outbox.nextTimer() ?? Infinity, this.silentAt());
  }
}
