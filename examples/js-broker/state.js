// State of a body: values by name, assembled from all datagrams of a tick.

import { EFFORT } from "./protocol.js";

/** Actuators and sensors of a body, from the events ACTUATOR and SENSOR. */
export class Body {
  actuators = []; // {number, name, kind, unit, minimum, maximum}
  sensors = []; // {number, name, type, period_ns, fields: [{name, unit, count}], count}

  addActuator({ event, ...actuator }) {
    this.actuators[actuator.number] = actuator;
  }

  addSensor({ event, ...sensor }) {
    this.sensors[sensor.number] = { ...sensor, count: sensor.fields.reduce((sum, f) => sum + f.count, 0) };
  }

  /** Convert commands by name or position to commands by position. */
  command(values) {
    if (values === null || values === undefined) return null;
    if (Array.isArray(values) || ArrayBuffer.isView(values)) return values;
    if (typeof values !== "object") throw new TypeError(`expected commands by name or position, got ${values}`);
    const command = new Array(this.actuators.length).fill(null);
    for (const [name, value] of Object.entries(values)) {
      const actuator = this.actuators.find((a) => a.name === name);
      if (actuator === undefined) throw new TypeError(`unknown actuator '${name}'; use ${this.actuators.map((a) => a.name).join(", ") || "none"}`);
      if (value !== null && !(Math.abs(value) <= 1e9)) throw new TypeError(`invalid command for ${name}: ${value}`);
      command[actuator.number] = value;
    }
    return command;
  }

  /** Sensor values by name, assembled from their parts. */
  readings(pieces) {
    const found = new Map();
    for (const { number, time_ns, first, values } of pieces) {
      const sensor = this.sensors[number];
      if (sensor === undefined || first + values.length > sensor.count) continue;
      let one = found.get(number);
      if (one?.time_ns !== time_ns) found.set(number, (one = { sensor, time_ns, values: new Array(sensor.count).fill(NaN) }));
      for (let k = 0; k < values.length; k++) one.values[first + k] = values[k];
    }
    const readings = Object.create(null);
    for (const { sensor, time_ns, values } of found.values()) {
      const reading = (readings[sensor.name] = Object.create(null));
      reading.time_ns = time_ns;
      let at = 0;
      for (const { name, count } of sensor.fields) {
        reading[name] = count === 1 ? values[at] : values.slice(at, at + count);
        at += count;
      }
    }
    return readings;
  }
}

/** The state of a body at a tick: ``motion`` (null where the truth is hidden), ``actuation`` by position, ``sensors`` by
 * name, each with ``time_ns`` and its fields (NaN = no such value); a sensor without values is absent. */
export class State {
  #body;

  constructor(body, head, parts) {
    this.#body = body;
    const { tick, time_ns, run_state, motion, actuation, effort } = head;
    Object.assign(this, { tick, time_ns, run_state, motion, actuation, effort });
    this.sensors = body.readings([head.sensors, ...parts.values()].flat());
    this.complete = parts.size >= head.parts; // otherwise a datagram was lost and values are missing
    this.step = head.last_event !== undefined; // the server waits for an answer
  }

  /** Simulation time in s. */
  get time() {
    return Number(this.time_ns) * 1e-9;
  }

  /** Actual values of the actuators by name. */
  get actuators() {
    return Object.fromEntries(this.#body.actuators.map((a) => [a.name, this.actuation[a.number]]));
  }

  /** Accelerations and forces by name, six numbers each; null unless requested. */
  get efforts() {
    return this.effort && Object.fromEntries(EFFORT.map((name, k) => [name, this.effort.slice(6 * k, 6 * k + 6)]));
  }
}

const MOST_PARTS = 1024;

/** Assembles the datagrams of one tick in any order: a head (STATE or STEP) and its parts (SENSORS).
 * ``patient``: an incomplete head waits for its repetition; otherwise it is returned when a newer one begins. */
export class Assembly {
  tick = -1;
  head = null;
  parts = new Map();

  constructor(patient) {
    this.patient = patient;
  }

  /** Heads that are complete now, each with its parts. */
  begin(head) {
    const out = this.head !== null && !this.patient ? [this.finish()] : [];
    if (head.tick !== this.tick) this.parts = new Map();
    this.tick = head.tick;
    this.head = head;
    return out.concat(this.complete());
  }

  add({ tick, part, sensors }) {
    if (tick < this.tick || (tick > this.tick && this.patient && this.head !== null)) return [];
    const out = [];
    if (tick > this.tick) {
      if (this.head !== null) out.push(this.finish());
      this.tick = tick;
      this.parts = new Map();
    }
    if (this.parts.size < MOST_PARTS) this.parts.set(part, sensors);
    return out.concat(this.complete());
  }

  complete() {
    return this.head !== null && this.parts.size >= this.head.parts ? [this.finish()] : [];
  }

  finish() {
    const { head, parts } = this;
    this.head = null;
    this.parts = new Map();
    return { head, parts };
  }
}
