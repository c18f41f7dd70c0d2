// A WaVeSim client for Node.js without external dependencies:
//
//     const broker = await Broker.connect({ name: "lauv", lockstep: 0.1 });
//     for await (const step of broker.steps()) {
//       if (step.sensors.ctd !== undefined) console.log(step.sensors.ctd.temperature);
//       broker.answer({ propeller: 8.0, "rudder-top": 0.1 });
//     }
//
// As pilot (the default) it drives the body, in lockstep if it sets a period. As instrument or listener it joins a body that
// another program drives. Protocol: docs/PROTOCOL.md.

import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";
import { Role, RunState } from "./protocol.js";
import { keyFor } from "./seal.js";
import { Session } from "./session.js";

export { EFFORT, FLEET, Refusal, Request, Resumed, Right, Role, RunState } from "./protocol.js";

/** The server refused the join; ``code`` is a member of Refusal. */
export class Refused extends Error {
  constructor({ code, text }) {
    super(`the server refused the join: ${text}`);
    this.code = code;
  }
}

/** No server answers, or it ended the session. */
export class SessionLost extends Error {}

/** Names of the event lists in a step. */
const LISTS = {
  RECEPTION: "receptions", SENT: "sent", REQUEST_REFUSED: "refused", ANSWER: "answers", RUN_STATE: "runStates",
  NOTICE: "notices", BODY: "bodies", SIGNAL: "signals", FATE: "fates", FLEET: "fleets",
};
const clock = () => performance.now() * 1e-3;
const nanoseconds = (seconds) => Math.round(seconds * 1e9);

export class Broker {
  #socket;
  #timer = null;
  #events = empty(); // since the last step returned to the program
  #next = null; // the newest state not yet returned
  #error = null;
  #wake = () => {};
  #closed;

  /** Join a server. Resolves when all names of actuators and sensors are known.
   *
   * ``role``: "pilot", "instrument", "listener" or "observer". ``lockstep``, ``statePeriod``: s. ``sensors``: names of sensors
   * to receive; default: all. ``key``: 32 or 64 bytes; without it, $WAVESIM_KEYS may name a file of keys.
   * ``previous``: ``welcome.ticket`` of a session that lost its socket. */
  static async connect({ name, host = "127.0.0.1", port = 9750, role = "pilot", lockstep = 0, statePeriod = 0, key, timeout = 10, ...join }) {
    if (!(role.toUpperCase() in Role)) throw new TypeError(`unknown role '${role}'; use ${Object.keys(Role).join(", ").toLowerCase()}`);
    const secret = key ?? (process.env.WAVESIM_KEYS ? keyFor(process.env.WAVESIM_KEYS, name) : null);
    const session = new Session(
      { ...join, name, role: Role[role.toUpperCase()], lockstep_ns: nanoseconds(lockstep), state_period_ns: nanoseconds(statePeriod) },
      secret,
    );
    const broker = new Broker(session, host, port);
    await broker.#join(timeout);
    return broker;
  }

  constructor(session, host, port) {
    this.session = session;
    this.server = `${host}:${port}`;
    this.ended = false; // whether the run has ended
    this.listeners = []; // functions that receive every reception immediately
    this.#socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    this.#socket.on("message", (data) => this.#receive(data));
    this.#socket.on("error", (error) => this.#socketError(error)); // no process has this port (yet), or it is unreachable
    this.#closed = new Promise((resolve) => this.#socket.on("close", resolve));
    this.#socket.connect(port, host, () => this.#flush());
  }

  /** Data of WELCOME: ``id``, ``token``, ``ticket`` (keep it secret if there is a key), ``step_ns``, ``sound_speed``, ``rights``, ... */
  get welcome() {
    return this.session.welcome;
  }

  /** {number, name, kind, unit, minimum, maximum} of each actuator, by position. */
  get actuators() {
    return this.session.body.actuators;
  }

  /** {number, name, type, period_ns, fields: [{name, unit, count}]} of each sensor. */
  get sensors() {
    return this.session.body.sensors;
  }

  /** Every state until the run has ended, each with the events since the previous one: ``receptions``, ``sent``,
   * ``refused``, ``answers``, ``runStates``, ``notices``. In lockstep the server waits for an answer to each. */
  async *steps() {
    for (;;) {
      const step = await this.#take();
      if (step === null) return;
      yield step;
      if (this.session.asked === step.tick) this.answer(); // the program did not answer
    }
  }

  /** Send commands by name or position, in the actuators' units; omitted commands keep their values. ``estimate``: the
   * navigator's estimate (position x3, sigma x3, dead reckoning x3, last range innovation). */
  answer(command = null, estimate = null) {
    this.session.answer(command, estimate);
    this.#flush();
  }

  /** Send any request of docs/PROTOCOL.md by name and return its number. Its result arrives in ``refused``, ``sent`` or
   * ``answers`` of a later step. */
  request(name, values) {
    const number = this.session.request(name, values);
    if (this.session.asked === null) this.#flush(); // otherwise it is sent with the answer
    return number;
  }

  /** Make the transducer send a pulse (Hz, dB re 1 uPa at 1 m, duration in s). */
  ping(frequency, { level = null, at_ns = null, code = null, duration = null } = {}) {
    return this.request("PING", { frequency, level, at_ns, code, duration });
  }

  /** Send a packet by modem to an address, or to all (0). */
  send(payload, { to = 0, level = null, at_ns = null, duration = null } = {}) {
    return this.request("SEND", { to, payload: Buffer.from(payload), level, at_ns, duration });
  }

  /** Query the modem at an address; its range arrives in a reception of kind 3. The reply acknowledges the payload. */
  rangeTo(to, { level = null, at_ns = null, payload = "", duration = null } = {}) {
    return this.request("RANGE", { to, level, at_ns, payload: Buffer.from(payload), duration });
  }

  /** Leave the server. Resolves when the server has confirmed it, or after several unanswered repeats. */
  async close() {
    this.#flush();
    this.session.leave();
    this.#flush();
    await this.#closed;
  }

  // ----------------------------------------------------------------------------------------------------------------

  async #join(timeout) {
    const limit = clock() + timeout;
    while (!this.session.ready && this.#error === null) {
      if (clock() > limit) this.#fail(this.#silence());
      else await this.#woken(limit);
    }
    if (this.#error !== null) throw this.#error;
    this.ended ||= !this.welcome.resumed && this.welcome.run_state === RunState.ENDED; // a client that joins after the end gets no steps
  }

  /** Return the next step, or null at the end of the run. */
  async #take() {
    for (;;) {
      if (this.#next !== null) {
        const step = Object.assign(this.#next, this.#events);
        this.#next = null;
        this.#events = empty();
        return step;
      }
      if (this.ended) return null;
      if (this.#error !== null) throw this.#error;
      const limit = this.session.lastHeard + 2 * Math.max(this.welcome.keepalive_timeout, 1);
      if (clock() > limit) this.#fail(this.#silence());
      else await this.#woken(limit);
    }
  }

  #silence() {
    const { phase, key } = this.session;
    if (phase !== "joining") return new SessionLost(`no server answers at ${this.server}; is one running there? (wavesim serve CONFIG)`);
    return new SessionLost(`the server at ${this.server} does not accept this join; ${key ? "does it have this key?" : "it may require a key (WAVESIM_KEYS=FILE)"}`);
  }

  /** Wait until something arrives, or until a time. */
  async #woken(limit) {
    let timer;
    await new Promise((resolve) => {
      this.#wake = resolve;
      timer = setTimeout(resolve, Math.max(1e3 * (limit - clock()) + 1, 0));
    });
    clearTimeout(timer);
  }

  #receive(data) {
    for (const event of this.session.receive(data, clock())) this.#on(event);
    this.#flush();
    this.#wake();
  }

  #on(event) {
    if (event.event === "STATE" || event.event === "STEP") this.#next = event.state; // a slow program gets the newest state
    else if (event.event === "REFUSE") this.#fail(new Refused(event));
    else if (event.event === "BYE" && !event.asked) this.#fail(new SessionLost(`the server ended the session: ${event.text}`));
    else if (event.event in LISTS) this.#events[LISTS[event.event]].push(event);
    if (event.event === "RECEPTION") for (const call of this.listeners) call(event);
    if (event.event === "RUN_STATE" && event.run_state === RunState.ENDED) this.ended = true;
  }

  #fail(error) {
    this.#error ??= error;
    this.session.phase = "closed";
    this.#flush();
  }

  #flush() {
    const { session } = this;
    const now = clock();
    clearTimeout(this.#timer);
    if (this.#socket === null) return;
    for (const data of session.outgoing(now)) this.#socket.send(data, () => {}); // lost datagrams are repeated
    if (session.phase === "closed") {
      this.#socket.close();
      this.#socket = null;
      this.#wake();
      return;
    }
    const at = session.nextTimer();
    if (at !== null) this.#timer = setTimeout(() => this.#flush(), Math.max(1e3 * (at - now), 1));
  }

  #socketError(error) {
    if (error.code !== "ECONNREFUSED") this.#fail(new SessionLost(`cannot reach ${this.server}: ${error.message}`));
  }
}

const empty = () => Object.fromEntries(Object.values(LISTS).map((list) => [list, []]));
