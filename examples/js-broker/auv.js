// An AUV in JavaScript: holds a depth and a course by its instruments, and prints its state.
//
//     node auv.js 127.0.0.1 9750 lauv [COURSE in degrees, DEPTH in m]
//
// If the server requires keys: WAVESIM_KEYS=FILE node auv.js ...

import { Broker, Refused, SessionLost } from "./broker.js";

const [host, port, name, course = "45", depth = "10"] = process.argv.slice(2);
if (name === undefined) {
  console.error("usage: node auv.js HOST PORT NAME [COURSE DEPTH]");
  process.exit(2);
}
const wanted = { course: (Number(course) * Math.PI) / 180, depth: Number(depth) };

const clamp = (value, limit) => Math.max(-limit, Math.min(limit, value));
const turn = (angle) => Math.atan2(Math.sin(angle), Math.cos(angle));

let sunk = 0; // integral of the depth error, m s

/** Commands by name: thrusters give speed, vertical fins control the course, horizontal fins the depth through the pitch. */
function steer(actuators, { pitch, heading, rates: [, q, r] }, { depth }, dt) {
  if (Math.abs(depth - wanted.depth) < 3) sunk += (depth - wanted.depth) * dt;
  const rudder = -clamp(1.0 * turn(wanted.course - heading) - 1.2 * r, 0.3);
  const up = clamp(0.12 * (depth - wanted.depth) + 0.008 * sunk, 0.4); // desired pitch
  const plane = clamp(1.2 * (up - pitch) - 1.0 * q, 0.26);
  const command = {};
  for (const { name, kind, maximum } of actuators) {
    if (kind === 0) command[name] = 0.6 * maximum;
    else if (kind === 1) command[name] = /rudder|top|bottom|upper|lower/.test(name) ? rudder : plane;
  }
  return command;
}

try {
  const broker = await Broker.connect({ name, host, port: Number(port), lockstep: 0.1 });
  for (const { name, unit, minimum, maximum } of broker.actuators) console.log(`${name}: ${+minimum.toPrecision(4)} to ${+maximum.toPrecision(4)} ${unit}`);
  for (const { name, type } of broker.sensors) console.log(`${name} (${type})`);
  let [steps, reported, before] = [0, -Infinity, 0];
  for await (const step of broker.steps()) {
    steps++;
    const { ahrs, pressure } = step.sensors;
    if (ahrs === undefined || pressure === undefined) continue; // the instruments have no values yet
    broker.answer(steer(broker.actuators, ahrs, pressure, step.time - before));
    before = step.time;
    if (step.time - reported >= 10) {
      reported = step.time;
      console.log(`${step.time.toFixed(1)} s: heading ${((ahrs.heading * 180) / Math.PI).toFixed(1)} deg, depth ${pressure.depth.toFixed(2)} m`);
    }
    for (const { text } of step.notices) console.error(`server: ${text}`);
  }
  const drops = Object.values(broker.session.drops).reduce((a, b) => a + b, 0);
  console.log(`${steps} steps, ${drops} datagrams dropped`);
  await broker.close();
} catch (error) {
  if (!(error instanceof Refused) && !(error instanceof SessionLost)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}
