// Made by generate.js from the SDK's protocol.json; do not edit by hand.

const MOST = Number.MAX_VALUE;

export const VERSION = 2;
export const LIMITS = Object.freeze({"datagram_bytes":1200,"header_bytes":24,"seal_bytes":16,"least_hello_bytes":64,"depth":6,"items":256});
export const Type = Object.freeze({"HELLO":1,"CHALLENGE":2,"JOIN":3,"WELCOME":4,"REFUSE":5,"ACTUATE":16,"REQUESTS":17,"DONE":18,"KEEPALIVE_REPLY":19,"LEAVE":20,"ESTIMATE":21,"ACK":22,"PROOF":23,"STATE":32,"EVENTS":33,"STEP":34,"KEEPALIVE":35,"BYE":36,"FLEET":37,"SENSORS":38,"PROVE":39,"FRAME":40});
export const Event = Object.freeze({"RECEPTION":1,"SENT":2,"REQUEST_REFUSED":3,"RUN_STATE":4,"BODY":5,"SIGNAL":6,"FATE":7,"NOTICE":8,"ACTUATOR":9,"SENSOR":10,"ANSWER":11,"MISSION":12,"VEHICLE_COMMAND":13,"TABLE":14,"ROWS":15,"DUE":16,"DEVICE_FAULT":17,"TIME_CHANGED":18,"ARRIVALS":19,"ARRIVAL_PART":20,"CHANNEL_STATE":21});
export const Request = Object.freeze({"PING":1,"SEND":2,"RANGE":3,"OBSERVE":4,"SUBSCRIBE":5,"CONTROL":6,"FAULT":7,"PUSH":8,"POSE":9,"ALLOCATE":10,"WEATHER":11,"FRAMES":12,"MISSION":13,"MISSIONS":14,"VEHICLE_COMMAND":15,"COMMAND_ANSWER":16,"ATTACH":17,"SERVE":18,"VALUES":19,"WRITTEN":20,"FRAME_PART":21,"FENCE":22,"SNAPSHOT":23,"SOUND_PART":24,"TRANSMIT":25});
export const Role = Object.freeze({"PILOT":0,"INSTRUMENT":1,"LISTENER":2,"OBSERVER":3,"EMULATOR":4});
export const Resumed = Object.freeze({"NEW":0,"RESUMED":1,"TOOK_OVER":2});
export const Refusal = Object.freeze({"COOKIE":1,"NAME_IN_USE":2,"UNKNOWN_NAME":3,"UNKNOWN_MODEL":4,"FULL":5,"BAD_VALUE":6,"KEY":7,"EXPIRED":8,"ROLE":9,"INTERNAL":10});
export const Right = Object.freeze({"FAULT":1,"PUSH":2,"POSE":4,"ALLOCATE":8,"WEATHER":16,"CONTROL":32,"MISSION":64,"FENCE":128});
export const RunState = Object.freeze({"STOPPED":0,"RUNNING":1,"PAUSED":2,"ENDED":3});
export const Outcome = Object.freeze({"HEARD":0,"BELOW_THRESHOLD":1,"FADED":2,"OUT_OF_BAND":3,"TRANSMITTING":4,"RECHARGING":5,"RECEIVER_LEFT":6,"NOT_SENT":7,"COLLISION":8,"BLOCKED":9,"SHADOW":10,"ECHO":11,"DROPPED":12,"CORRUPT":13,"FOREIGN":14});
export const EFFORT = Object.freeze(["acceleration","total","restoring","drag","actuators","environment","external","contact"]);
export const FLEET = Object.freeze([{"name":"id","type":"u4","count":1},{"name":"p_WB_W","type":"f8","count":3},{"name":"q_WB","type":"f4","count":4},{"name":"v_WB_B","type":"f4","count":3},{"name":"w_WB_B","type":"f4","count":3}]);

function readList(r, least, most, one) {
  const count = r.list(least, most);
  const out = new Array(count);
  for (let k = 0; k < count; k++) out[k] = one(r);
  return out;
}

function writeList(w, values, least, most, what, one) {
  if (!Array.isArray(values)) throw new TypeError(`${what}: expected a list, got ${values}`);
  w.list(values.length, least, most, what);
  for (const value of values) one(w, value);
}

export function readHello(r) {
  const n = r.list(2, 65535);
  const m = {
    nonce: r.wide(0, 18446744073709551615n),
    padding: r.bin(0, 1200),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function writeHello(w, m) {
  w.list(2, 0, 65535, "Hello");
  w.int(m.nonce, 0, 18446744073709551615n, "Hello.nonce");
  w.bin(m.padding, 0, 1200, "Hello.padding");
}

export function readChallenge(r) {
  const n = r.list(2, 65535);
  const m = {
    nonce: r.wide(0, 18446744073709551615n),
    cookie: r.bin(16, 16),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function readJoin(r) {
  const n = r.list(14, 65535);
  const m = {
    cookie: r.bin(16, 16),
    nonce: r.wide(0, 18446744073709551615n),
    name: r.text(31),
    role: r.int(0, 255),
    model: r.text(31),
    position: r.numbers(3, 3, -1000000, 1000000, false),
    attitude: r.numbers(3, 3, -1000000, 1000000, false),
    lockstep_ns: r.wide(0, 4611686018427387904n),
    state_period_ns: r.wide(0, 4611686018427387904n),
    previous: r.wide(0, 18446744073709551615n),
    sensors: r.nil() ? null : readList(r, 0, 64, (r) => r.text(31)),
    acoustics: r.int(0, 1),
    effort: r.int(0, 1),
    others: r.int(0, 1),
    device: n > 14 ? r.text(24) : undefined,
  };
  for (let k = 15; k < n; k++) r.skip(2);
  return m;
}

export function writeJoin(w, m) {
  w.list(15, 0, 65535, "Join");
  w.bin(m.cookie, 16, 16, "Join.cookie");
  w.int(m.nonce, 0, 18446744073709551615n, "Join.nonce");
  w.text(m.name, 31, "Join.name");
  w.int(m.role, 0, 255, "Join.role");
  w.text(m.model, 31, "Join.model");
  w.numbers(m.position, 3, 3, -1000000, 1000000, false, "Join.position");
  w.numbers(m.attitude, 3, 3, -1000000, 1000000, false, "Join.attitude");
  w.int(m.lockstep_ns, 0, 4611686018427387904n, "Join.lockstep_ns");
  w.int(m.state_period_ns, 0, 4611686018427387904n, "Join.state_period_ns");
  w.int(m.previous, 0, 18446744073709551615n, "Join.previous");
  m.sensors === null || m.sensors === undefined ? w.nil() : writeList(w, m.sensors, 0, 64, "Join.sensors", (w, v) => w.text(v, 31, "Join.sensors"));
  w.int(m.acoustics, 0, 1, "Join.acoustics");
  w.int(m.effort, 0, 1, "Join.effort");
  w.int(m.others, 0, 1, "Join.others");
  w.text(m.device, 24, "Join.device");
}

export function readWelcome(r) {
  const n = r.list(15, 65535);
  const m = {
    nonce: r.wide(0, 18446744073709551615n),
    id: r.int(-1, 2147483647),
    role: r.int(0, 255),
    resumed: r.int(0, 255),
    step_ns: r.wide(1, 4611686018427387904n),
    sound_speed: r.number(-MOST, MOST),
    tick: r.wide(0, 4611686018427387904n),
    run_state: r.int(0, 255),
    state_period_ns: r.wide(0, 4611686018427387904n),
    lockstep_ns: r.wide(0, 4611686018427387904n),
    keepalive_period: r.number(0, MOST),
    keepalive_timeout: r.number(0, MOST),
    actuators: r.int(0, 32),
    sensors: r.int(0, 4294967295),
    rights: r.int(0, 4294967295),
  };
  for (let k = 15; k < n; k++) r.skip(2);
  return m;
}

export function readRefuse(r) {
  const n = r.list(3, 65535);
  const m = {
    nonce: r.wide(0, 18446744073709551615n),
    code: r.int(0, 255),
    text: r.text(400),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readActuate(r) {
  const n = r.list(1, 65535);
  const m = {
    command: r.numbers(0, 32, -1000000000, 1000000000, true),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function writeActuate(w, m) {
  w.list(1, 0, 65535, "Actuate");
  w.numbers(m.command, 0, 32, -1000000000, 1000000000, true, "Actuate.command");
}

export function readRequests(r) {
  const n = r.list(2, 65535);
  const m = {
    first: r.int(1, 4294967295),
    items: readList(r, 0, 256, (r) => r.item()),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function writeRequests(w, m) {
  w.list(2, 0, 65535, "Requests");
  w.int(m.first, 1, 4294967295, "Requests.first");
  writeList(w, m.items, 0, 256, "Requests.items", (w, v) => w.raw(v));
}

export function readDone(r) {
  const n = r.list(4, 65535);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    last_request: r.int(0, 4294967295),
    command: r.nil() ? null : r.numbers(0, 32, -1000000000, 1000000000, true),
    estimate: r.nil() ? null : r.numbers(10, 10, -MOST, MOST, true),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function writeDone(w, m) {
  w.list(4, 0, 65535, "Done");
  w.int(m.tick, 0, 4611686018427387904n, "Done.tick");
  w.int(m.last_request, 0, 4294967295, "Done.last_request");
  m.command === null || m.command === undefined ? w.nil() : w.numbers(m.command, 0, 32, -1000000000, 1000000000, true, "Done.command");
  m.estimate === null || m.estimate === undefined ? w.nil() : w.numbers(m.estimate, 10, 10, -MOST, MOST, true, "Done.estimate");
}

export function readKeepaliveReply(r) {
  const n = r.list(1, 65535);
  const m = {
    number: r.int(0, 4294967295),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function writeKeepaliveReply(w, m) {
  w.list(1, 0, 65535, "KeepaliveReply");
  w.int(m.number, 0, 4294967295, "KeepaliveReply.number");
}

export function readLeave(r) {
  const n = r.list(0, 65535);
  const m = {
  };
  for (let k = 0; k < n; k++) r.skip(2);
  return m;
}

export function writeLeave(w, m) {
  w.list(0, 0, 65535, "Leave");
}

export function readEstimate(r) {
  const n = r.list(1, 65535);
  const m = {
    values: r.numbers(10, 10, -MOST, MOST, true),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function writeEstimate(w, m) {
  w.list(1, 0, 65535, "Estimate");
  w.numbers(m.values, 10, 10, -MOST, MOST, true, "Estimate.values");
}

export function readAck(r) {
  const n = r.list(0, 65535);
  const m = {
  };
  for (let k = 0; k < n; k++) r.skip(2);
  return m;
}

export function writeAck(w, m) {
  w.list(0, 0, 65535, "Ack");
}

export function readProof(r) {
  const n = r.list(1, 65535);
  const m = {
    number: r.wide(0, 18446744073709551615n),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function writeProof(w, m) {
  w.list(1, 0, 65535, "Proof");
  w.int(m.number, 0, 18446744073709551615n, "Proof.number");
}

export function readReading(r) {
  const n = r.list(4, 65535);
  const m = {
    number: r.int(0, 2147483647),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    first: r.int(0, 2147483647),
    values: r.numbers(0, 1200, -MOST, MOST, true),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function readStateMessage(r) {
  const n = r.list(8, 65535);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    run_state: r.int(0, 255),
    parts: r.int(0, 4294967295),
    motion: r.nil() ? null : r.numbers(16, 16, -MOST, MOST, false),
    actuation: r.numbers(0, 32, -MOST, MOST, false),
    effort: r.nil() ? null : r.numbers(48, 48, -MOST, MOST, false),
    sensors: readList(r, 0, 1200, (r) => readReading(r)),
  };
  for (let k = 8; k < n; k++) r.skip(2);
  return m;
}

export function readEvents(r) {
  const n = r.list(2, 65535);
  const m = {
    first: r.int(1, 4294967295),
    items: readList(r, 0, 256, (r) => r.item()),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function readStepMessage(r) {
  const n = r.list(9, 65535);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    run_state: r.int(0, 255),
    parts: r.int(0, 4294967295),
    motion: r.nil() ? null : r.numbers(16, 16, -MOST, MOST, false),
    actuation: r.numbers(0, 32, -MOST, MOST, false),
    effort: r.nil() ? null : r.numbers(48, 48, -MOST, MOST, false),
    sensors: readList(r, 0, 1200, (r) => readReading(r)),
    last_event: r.int(0, 4294967295),
  };
  for (let k = 9; k < n; k++) r.skip(2);
  return m;
}

export function readKeepalive(r) {
  const n = r.list(1, 65535);
  const m = {
    number: r.int(0, 4294967295),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function readBye(r) {
  const n = r.list(1, 65535);
  const m = {
    text: r.text(400),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function readFleet(r) {
  const n = r.list(6, 65535);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    run_state: r.int(0, 255),
    part: r.int(0, 4294967295),
    parts: r.int(1, 4294967295),
    bodies: r.bin(0, 1200),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function readSensorsMessage(r) {
  const n = r.list(3, 65535);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    part: r.int(0, 4294967295),
    sensors: readList(r, 0, 1200, (r) => readReading(r)),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readProve(r) {
  const n = r.list(1, 65535);
  const m = {
    number: r.wide(0, 18446744073709551615n),
  };
  for (let k = 1; k < n; k++) r.skip(2);
  return m;
}

export function readPiece(r) {
  const n = r.list(5, 65535);
  const m = {
    sensor: r.int(0, 2147483647),
    number: r.wide(1, 4611686018427387904n),
    part: r.int(0, 8191),
    parts: r.int(1, 8192),
    data: r.bin(1, 1200),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function readReception(r) {
  const n = r.list(15, 65535);
  r.int(1, 1);
  const m = {
    reception_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    id: r.wide(0, 9223372036854775807n),
    query: r.wide(0, 9223372036854775807n),
    kind: r.int(0, 255),
    code: r.wide(0, 9223372036854775807n),
    from_address: r.int(0, 2147483647),
    to_address: r.int(0, 2147483647),
    frequency: r.number(-MOST, MOST),
    level: r.number(-MOST, MOST),
    snr: r.number(-MOST, MOST),
    range: r.nil() ? null : r.number(-MOST, MOST),
    azimuth: r.nil() ? null : r.number(-MOST, MOST),
    elevation: r.nil() ? null : r.number(-MOST, MOST),
    payload: r.nil() ? null : r.bin(0, 256),
  };
  for (let k = 15; k < n; k++) r.skip(2);
  return m;
}

export function readSignalSent(r) {
  const n = r.list(7, 65535);
  r.int(2, 2);
  const m = {
    request: r.int(0, 4294967295),
    id: r.wide(0, 9223372036854775807n),
    emission_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    frequency: r.number(-MOST, MOST),
    level: r.number(-MOST, MOST),
    duration: r.number(-MOST, MOST),
  };
  for (let k = 7; k < n; k++) r.skip(2);
  return m;
}

export function readRequestRefused(r) {
  const n = r.list(3, 65535);
  r.int(3, 3);
  const m = {
    request: r.int(0, 4294967295),
    text: r.text(400),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readRunStateChanged(r) {
  const n = r.list(3, 65535);
  r.int(4, 4);
  const m = {
    run_state: r.int(0, 255),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readBodyChanged(r) {
  const n = r.list(6, 65535);
  r.int(5, 5);
  const m = {
    id: r.int(0, 2147483647),
    present: r.int(0, 1),
    type: r.int(0, 255),
    name: r.text(31),
    model: r.text(31),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function readSignalSeen(r) {
  const n = r.list(8, 65535);
  r.int(6, 6);
  const m = {
    id: r.wide(0, 9223372036854775807n),
    source: r.int(0, 2147483647),
    kind: r.int(0, 255),
    emission_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    frequency: r.number(-MOST, MOST),
    level: r.number(-MOST, MOST),
    origin: r.numbers(3, 3, -MOST, MOST, false),
  };
  for (let k = 8; k < n; k++) r.skip(2);
  return m;
}

export function readFateSeen(r) {
  const n = r.list(8, 65535);
  r.int(7, 7);
  const m = {
    id: r.wide(0, 9223372036854775807n),
    source: r.int(0, 2147483647),
    receiver: r.int(0, 2147483647),
    outcome: r.int(0, 255),
    arrival_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    level: r.nil() ? null : r.number(-MOST, MOST),
    range: r.nil() ? null : r.number(-MOST, MOST),
  };
  for (let k = 8; k < n; k++) r.skip(2);
  return m;
}

export function readNotice(r) {
  const n = r.list(3, 65535);
  r.int(8, 8);
  const m = {
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    text: r.text(400),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readActuatorDescription(r) {
  const n = r.list(7, 65535);
  r.int(9, 9);
  const m = {
    number: r.int(0, 31),
    name: r.text(31),
    kind: r.int(0, 255),
    unit: r.text(31),
    minimum: r.number(-MOST, MOST),
    maximum: r.number(-MOST, MOST),
  };
  for (let k = 7; k < n; k++) r.skip(2);
  return m;
}

export function readFieldDescription(r) {
  const n = r.list(3, 65535);
  const m = {
    name: r.text(31),
    unit: r.text(31),
    count: r.int(1, 4096),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readSensorDescription(r) {
  const n = r.list(6, 65535);
  r.int(10, 10);
  const m = {
    number: r.int(0, 2147483647),
    name: r.text(31),
    type: r.text(31),
    period_ns: r.wide(0, 4611686018427387904n),
    fields: readList(r, 0, 32, (r) => readFieldDescription(r)),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function readAnswer(r) {
  const n = r.list(4, 65535);
  r.int(11, 11);
  const m = {
    request: r.int(0, 4294967295),
    ok: r.int(0, 1),
    text: r.text(400),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function readMissionPart(r) {
  const n = r.list(5, 65535);
  r.int(12, 12);
  const m = {
    number: r.int(1, 2147483647),
    first: r.int(0, 4095),
    count: r.int(1, 4096),
    points: r.numbers(0, 96, -1000000000, 1000000000, false),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function readCommandReceived(r) {
  const n = r.list(4, 65535);
  r.int(13, 13);
  const m = {
    number: r.int(0, 4294967295),
    action: r.text(31),
    point: r.nil() ? null : r.numbers(4, 4, -1000000000, 1000000000, false),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function readTableDescription(r) {
  const n = r.list(6, 65535);
  r.int(14, 14);
  const m = {
    number: r.int(0, 31),
    name: r.text(31),
    rows: r.int(0, 4294967295),
    row_bytes: r.int(0, 4294967295),
    columns: r.text(31),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function readRows(r) {
  const n = r.list(4, 65535);
  r.int(15, 15);
  const m = {
    table: r.int(0, 31),
    offset: r.int(0, 1099511627776),
    data: r.bin(1, 1120),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function readDue(r) {
  const n = r.list(5, 65535);
  r.int(16, 16);
  const m = {
    due: r.wide(0, 4611686018427387904n),
    tick: r.wide(0, 4611686018427387904n),
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    version: r.int(0, 4294967295),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function readDeviceFault(r) {
  const n = r.list(3, 65535);
  r.int(17, 17);
  const m = {
    kind: r.text(31),
    amount: r.number(0, 1000000000),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readTimeChanged(r) {
  const n = r.list(3, 65535);
  r.int(18, 18);
  const m = {
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    before_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readArrivals(r) {
  const n = r.list(6, 65535);
  r.int(19, 19);
  const m = {
    restart: r.int(0, 1),
    lost: r.wide(0, 9007199254740992n),
    waveforms: r.int(0, 4294967295),
    fronts: r.int(0, 4294967295),
    sounds: r.int(0, 4294967295),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function readArrivalPart(r) {
  const n = r.list(2, 65535);
  r.int(20, 20);
  const m = {
    data: r.bin(1, 1120),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function readChannelState(r) {
  const n = r.list(3, 65535);
  r.int(21, 21);
  const m = {
    time_ns: r.wide(-4611686018427387904n, 4611686018427387904n),
    busy: r.int(0, 1),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function readPing(r) {
  const n = r.list(5, 65535);
  r.int(1, 1);
  const m = {
    frequency: r.number(0, 1000000000),
    level: r.nil() ? null : r.number(-10000, 10000),
    at_ns: r.nil() ? null : r.wide(-4611686018427387904n, 4611686018427387904n),
    code: r.nil() ? null : r.wide(0, 9223372036854775807n),
    duration: n > 5 ? r.nil() ? null : r.number(0, 60) : undefined,
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writePing(w, m) {
  w.list(6, 0, 65535, "Ping");
  w.byte(1);
  w.number(m.frequency, 0, 1000000000, "Ping.frequency");
  m.level === null || m.level === undefined ? w.nil() : w.number(m.level, -10000, 10000, "Ping.level");
  m.at_ns === null || m.at_ns === undefined ? w.nil() : w.int(m.at_ns, -4611686018427387904n, 4611686018427387904n, "Ping.at_ns");
  m.code === null || m.code === undefined ? w.nil() : w.int(m.code, 0, 9223372036854775807n, "Ping.code");
  m.duration === null || m.duration === undefined ? w.nil() : w.number(m.duration, 0, 60, "Ping.duration");
}

export function readSend(r) {
  const n = r.list(5, 65535);
  r.int(2, 2);
  const m = {
    to: r.int(0, 2147483647),
    payload: r.bin(0, 256),
    level: r.nil() ? null : r.number(-10000, 10000),
    at_ns: r.nil() ? null : r.wide(-4611686018427387904n, 4611686018427387904n),
    duration: n > 5 ? r.nil() ? null : r.number(0, 60) : undefined,
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeSend(w, m) {
  w.list(6, 0, 65535, "Send");
  w.byte(2);
  w.int(m.to, 0, 2147483647, "Send.to");
  w.bin(m.payload, 0, 256, "Send.payload");
  m.level === null || m.level === undefined ? w.nil() : w.number(m.level, -10000, 10000, "Send.level");
  m.at_ns === null || m.at_ns === undefined ? w.nil() : w.int(m.at_ns, -4611686018427387904n, 4611686018427387904n, "Send.at_ns");
  m.duration === null || m.duration === undefined ? w.nil() : w.number(m.duration, 0, 60, "Send.duration");
}

export function readRange(r) {
  const n = r.list(4, 65535);
  r.int(3, 3);
  const m = {
    to: r.int(0, 2147483647),
    level: r.nil() ? null : r.number(-10000, 10000),
    at_ns: r.nil() ? null : r.wide(-4611686018427387904n, 4611686018427387904n),
    payload: n > 4 ? r.bin(0, 256) : undefined,
    duration: n > 5 ? r.nil() ? null : r.number(0, 60) : undefined,
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeRange(w, m) {
  w.list(6, 0, 65535, "Range");
  w.byte(3);
  w.int(m.to, 0, 2147483647, "Range.to");
  m.level === null || m.level === undefined ? w.nil() : w.number(m.level, -10000, 10000, "Range.level");
  m.at_ns === null || m.at_ns === undefined ? w.nil() : w.int(m.at_ns, -4611686018427387904n, 4611686018427387904n, "Range.at_ns");
  w.bin(m.payload, 0, 256, "Range.payload");
  m.duration === null || m.duration === undefined ? w.nil() : w.number(m.duration, 0, 60, "Range.duration");
}

export function readObserve(r) {
  const n = r.list(6, 65535);
  r.int(4, 4);
  const m = {
    period_ns: r.wide(0, 4611686018427387904n),
    bodies: r.nil() ? null : readList(r, 0, 512, (r) => r.int(0, 2147483647)),
    center: r.nil() ? null : r.numbers(3, 3, -1000000000000, 1000000000000, false),
    radius: r.number(0, 1000000000000),
    sounds: r.int(0, 1),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeObserve(w, m) {
  w.list(6, 0, 65535, "Observe");
  w.byte(4);
  w.int(m.period_ns, 0, 4611686018427387904n, "Observe.period_ns");
  m.bodies === null || m.bodies === undefined ? w.nil() : writeList(w, m.bodies, 0, 512, "Observe.bodies", (w, v) => w.int(v, 0, 2147483647, "Observe.bodies"));
  m.center === null || m.center === undefined ? w.nil() : w.numbers(m.center, 3, 3, -1000000000000, 1000000000000, false, "Observe.center");
  w.number(m.radius, 0, 1000000000000, "Observe.radius");
  w.int(m.sounds, 0, 1, "Observe.sounds");
}

export function readSubscribe(r) {
  const n = r.list(6, 65535);
  r.int(5, 5);
  const m = {
    sensors: r.nil() ? null : readList(r, 0, 64, (r) => r.text(31)),
    acoustics: r.int(0, 1),
    effort: r.int(0, 1),
    others: r.int(0, 1),
    state_period_ns: r.wide(0, 4611686018427387904n),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeSubscribe(w, m) {
  w.list(6, 0, 65535, "Subscribe");
  w.byte(5);
  m.sensors === null || m.sensors === undefined ? w.nil() : writeList(w, m.sensors, 0, 64, "Subscribe.sensors", (w, v) => w.text(v, 31, "Subscribe.sensors"));
  w.int(m.acoustics, 0, 1, "Subscribe.acoustics");
  w.int(m.effort, 0, 1, "Subscribe.effort");
  w.int(m.others, 0, 1, "Subscribe.others");
  w.int(m.state_period_ns, 0, 4611686018427387904n, "Subscribe.state_period_ns");
}

export function readControl(r) {
  const n = r.list(3, 65535);
  r.int(6, 6);
  const m = {
    verb: r.text(31),
    value: r.nil() ? null : r.number(0, 1000000000),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeControl(w, m) {
  w.list(3, 0, 65535, "Control");
  w.byte(6);
  w.text(m.verb, 31, "Control.verb");
  m.value === null || m.value === undefined ? w.nil() : w.number(m.value, 0, 1000000000, "Control.value");
}

export function readFault(r) {
  const n = r.list(6, 65535);
  r.int(7, 7);
  const m = {
    body: r.text(31),
    part: r.text(31),
    kind: r.text(31),
    amount: r.number(-1000000000, 1000000000),
    field: r.text(31),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeFault(w, m) {
  w.list(6, 0, 65535, "Fault");
  w.byte(7);
  w.text(m.body, 31, "Fault.body");
  w.text(m.part, 31, "Fault.part");
  w.text(m.kind, 31, "Fault.kind");
  w.number(m.amount, -1000000000, 1000000000, "Fault.amount");
  w.text(m.field, 31, "Fault.field");
}

export function readPush(r) {
  const n = r.list(4, 65535);
  r.int(8, 8);
  const m = {
    body: r.text(31),
    force: r.numbers(3, 3, -1000000000, 1000000000, false),
    torque: r.numbers(3, 3, -1000000000, 1000000000, false),
    duration: n > 4 ? r.nil() ? null : r.number(0, 1000000000) : undefined,
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function writePush(w, m) {
  w.list(5, 0, 65535, "Push");
  w.byte(8);
  w.text(m.body, 31, "Push.body");
  w.numbers(m.force, 3, 3, -1000000000, 1000000000, false, "Push.force");
  w.numbers(m.torque, 3, 3, -1000000000, 1000000000, false, "Push.torque");
  m.duration === null || m.duration === undefined ? w.nil() : w.number(m.duration, 0, 1000000000, "Push.duration");
}

export function readPose(r) {
  const n = r.list(5, 65535);
  r.int(9, 9);
  const m = {
    body: r.text(31),
    position: r.nil() ? null : r.numbers(3, 3, -1000000, 1000000, false),
    attitude: r.nil() ? null : r.numbers(3, 3, -1000000, 1000000, false),
    velocity: r.nil() ? null : r.numbers(6, 6, -1000, 1000, false),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function writePose(w, m) {
  w.list(5, 0, 65535, "Pose");
  w.byte(9);
  w.text(m.body, 31, "Pose.body");
  m.position === null || m.position === undefined ? w.nil() : w.numbers(m.position, 3, 3, -1000000, 1000000, false, "Pose.position");
  m.attitude === null || m.attitude === undefined ? w.nil() : w.numbers(m.attitude, 3, 3, -1000000, 1000000, false, "Pose.attitude");
  m.velocity === null || m.velocity === undefined ? w.nil() : w.numbers(m.velocity, 6, 6, -1000, 1000, false, "Pose.velocity");
}

export function readAllocate(r) {
  const n = r.list(3, 65535);
  r.int(10, 10);
  const m = {
    body: r.text(31),
    matrix: r.numbers(0, 72, -1000000000, 1000000000, false),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeAllocate(w, m) {
  w.list(3, 0, 65535, "Allocate");
  w.byte(10);
  w.text(m.body, 31, "Allocate.body");
  w.numbers(m.matrix, 0, 72, -1000000000, 1000000000, false, "Allocate.matrix");
}

export function readWeather(r) {
  const n = r.list(9, 65535);
  r.int(11, 11);
  const m = {
    current_north: r.nil() ? null : r.number(-100, 100),
    current_east: r.nil() ? null : r.number(-100, 100),
    wind_speed: r.nil() ? null : r.number(0, 200),
    wind_direction: r.nil() ? null : r.number(-100, 100),
    wave_height: r.nil() ? null : r.number(0, 100),
    wave_peak: r.nil() ? null : r.number(0, 100),
    wave_direction: r.nil() ? null : r.number(-100, 100),
    current_down: r.nil() ? null : r.number(-100, 100),
  };
  for (let k = 9; k < n; k++) r.skip(2);
  return m;
}

export function writeWeather(w, m) {
  w.list(9, 0, 65535, "Weather");
  w.byte(11);
  m.current_north === null || m.current_north === undefined ? w.nil() : w.number(m.current_north, -100, 100, "Weather.current_north");
  m.current_east === null || m.current_east === undefined ? w.nil() : w.number(m.current_east, -100, 100, "Weather.current_east");
  m.wind_speed === null || m.wind_speed === undefined ? w.nil() : w.number(m.wind_speed, 0, 200, "Weather.wind_speed");
  m.wind_direction === null || m.wind_direction === undefined ? w.nil() : w.number(m.wind_direction, -100, 100, "Weather.wind_direction");
  m.wave_height === null || m.wave_height === undefined ? w.nil() : w.number(m.wave_height, 0, 100, "Weather.wave_height");
  m.wave_peak === null || m.wave_peak === undefined ? w.nil() : w.number(m.wave_peak, 0, 100, "Weather.wave_peak");
  m.wave_direction === null || m.wave_direction === undefined ? w.nil() : w.number(m.wave_direction, -100, 100, "Weather.wave_direction");
  m.current_down === null || m.current_down === undefined ? w.nil() : w.number(m.current_down, -100, 100, "Weather.current_down");
}

export function readFrames(r) {
  const n = r.list(3, 65535);
  r.int(12, 12);
  const m = {
    sensors: r.nil() ? null : readList(r, 0, 64, (r) => r.text(31)),
    period_ns: r.wide(0, 4611686018427387904n),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeFrames(w, m) {
  w.list(3, 0, 65535, "Frames");
  w.byte(12);
  m.sensors === null || m.sensors === undefined ? w.nil() : writeList(w, m.sensors, 0, 64, "Frames.sensors", (w, v) => w.text(v, 31, "Frames.sensors"));
  w.int(m.period_ns, 0, 4611686018427387904n, "Frames.period_ns");
}

export function readMission(r) {
  const n = r.list(6, 65535);
  r.int(13, 13);
  const m = {
    body: r.text(31),
    number: r.int(1, 2147483647),
    first: r.int(0, 4095),
    count: r.int(1, 4096),
    points: r.numbers(0, 96, -1000000000, 1000000000, false),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeMission(w, m) {
  w.list(6, 0, 65535, "Mission");
  w.byte(13);
  w.text(m.body, 31, "Mission.body");
  w.int(m.number, 1, 2147483647, "Mission.number");
  w.int(m.first, 0, 4095, "Mission.first");
  w.int(m.count, 1, 4096, "Mission.count");
  w.numbers(m.points, 0, 96, -1000000000, 1000000000, false, "Mission.points");
}

export function readMissions(r) {
  const n = r.list(3, 65535);
  r.int(14, 14);
  const m = {
    take: r.int(0, 1),
    text: r.text(400),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeMissions(w, m) {
  w.list(3, 0, 65535, "Missions");
  w.byte(14);
  w.int(m.take, 0, 1, "Missions.take");
  w.text(m.text, 400, "Missions.text");
}

export function readVehicleCommand(r) {
  const n = r.list(4, 65535);
  r.int(15, 15);
  const m = {
    body: r.text(31),
    action: r.text(31),
    point: r.nil() ? null : r.numbers(4, 4, -1000000000, 1000000000, false),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function writeVehicleCommand(w, m) {
  w.list(4, 0, 65535, "VehicleCommand");
  w.byte(15);
  w.text(m.body, 31, "VehicleCommand.body");
  w.text(m.action, 31, "VehicleCommand.action");
  m.point === null || m.point === undefined ? w.nil() : w.numbers(m.point, 4, 4, -1000000000, 1000000000, false, "VehicleCommand.point");
}

export function readCommandAnswer(r) {
  const n = r.list(4, 65535);
  r.int(16, 16);
  const m = {
    number: r.int(0, 4294967295),
    result: r.int(0, 2),
    text: r.text(400),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function writeCommandAnswer(w, m) {
  w.list(4, 0, 65535, "CommandAnswer");
  w.byte(16);
  w.int(m.number, 0, 4294967295, "CommandAnswer.number");
  w.int(m.result, 0, 2, "CommandAnswer.result");
  w.text(m.text, 400, "CommandAnswer.text");
}

export function readAttach(r) {
  const n = r.list(3, 65535);
  r.int(17, 17);
  const m = {
    tables: readList(r, 0, 32, (r) => r.text(31)),
    all_bodies: r.int(0, 1),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeAttach(w, m) {
  w.list(3, 0, 65535, "Attach");
  w.byte(17);
  writeList(w, m.tables, 0, 32, "Attach.tables", (w, v) => w.text(v, 31, "Attach.tables"));
  w.int(m.all_bodies, 0, 1, "Attach.all_bodies");
}

export function readServe(r) {
  const n = r.list(2, 65535);
  r.int(18, 18);
  const m = {
    lockstep: r.int(0, 1),
  };
  for (let k = 2; k < n; k++) r.skip(2);
  return m;
}

export function writeServe(w, m) {
  w.list(2, 0, 65535, "Serve");
  w.byte(18);
  w.int(m.lockstep, 0, 1, "Serve.lockstep");
}

export function readValues(r) {
  const n = r.list(3, 65535);
  r.int(19, 19);
  const m = {
    offset: r.int(0, 1099511627776),
    data: r.bin(1, 1120),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeValues(w, m) {
  w.list(3, 0, 65535, "Values");
  w.byte(19);
  w.int(m.offset, 0, 1099511627776, "Values.offset");
  w.bin(m.data, 1, 1120, "Values.data");
}

export function readWritten(r) {
  const n = r.list(3, 65535);
  r.int(20, 20);
  const m = {
    tick: r.wide(0, 4611686018427387904n),
    written: r.int(0, 1),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeWritten(w, m) {
  w.list(3, 0, 65535, "Written");
  w.byte(20);
  w.int(m.tick, 0, 4611686018427387904n, "Written.tick");
  w.int(m.written, 0, 1, "Written.written");
}

export function readFramePart(r) {
  const n = r.list(5, 65535);
  r.int(21, 21);
  const m = {
    row: r.int(0, 2147483647),
    offset: r.int(0, 1099511627776),
    size: r.int(0, 1099511627776),
    data: r.bin(1, 1120),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function writeFramePart(w, m) {
  w.list(5, 0, 65535, "FramePart");
  w.byte(21);
  w.int(m.row, 0, 2147483647, "FramePart.row");
  w.int(m.offset, 0, 1099511627776, "FramePart.offset");
  w.int(m.size, 0, 1099511627776, "FramePart.size");
  w.bin(m.data, 1, 1120, "FramePart.data");
}

export function readFence(r) {
  const n = r.list(4, 65535);
  r.int(22, 22);
  const m = {
    name: r.text(31),
    keep: r.text(31),
    corners: r.numbers(0, 96, -1000000, 1000000, false),
  };
  for (let k = 4; k < n; k++) r.skip(2);
  return m;
}

export function writeFence(w, m) {
  w.list(4, 0, 65535, "Fence");
  w.byte(22);
  w.text(m.name, 31, "Fence.name");
  w.text(m.keep, 31, "Fence.keep");
  w.numbers(m.corners, 0, 96, -1000000, 1000000, false, "Fence.corners");
}

export function readSnapshotAction(r) {
  const n = r.list(3, 65535);
  r.int(23, 23);
  const m = {
    action: r.text(31),
    name: r.text(1000),
  };
  for (let k = 3; k < n; k++) r.skip(2);
  return m;
}

export function writeSnapshotAction(w, m) {
  w.list(3, 0, 65535, "SnapshotAction");
  w.byte(23);
  w.text(m.action, 31, "SnapshotAction.action");
  w.text(m.name, 1000, "SnapshotAction.name");
}

export function readSoundPart(r) {
  const n = r.list(5, 65535);
  r.int(24, 24);
  const m = {
    sound: r.int(0, 4294967295),
    first: r.int(0, 8388607),
    count: r.int(1, 8388608),
    data: r.bin(4, 1120),
  };
  for (let k = 5; k < n; k++) r.skip(2);
  return m;
}

export function writeSoundPart(w, m) {
  w.list(5, 0, 65535, "SoundPart");
  w.byte(24);
  w.int(m.sound, 0, 4294967295, "SoundPart.sound");
  w.int(m.first, 0, 8388607, "SoundPart.first");
  w.int(m.count, 1, 8388608, "SoundPart.count");
  w.bin(m.data, 4, 1120, "SoundPart.data");
}

export function readTransmit(r) {
  const n = r.list(6, 65535);
  r.int(25, 25);
  const m = {
    sound: r.int(0, 4294967295),
    sampling_rate: r.number(0, 1000000000),
    level: r.nil() ? null : r.number(-10000, 10000),
    at_ns: r.nil() ? null : r.wide(-4611686018427387904n, 4611686018427387904n),
    is_peak: r.int(0, 1),
  };
  for (let k = 6; k < n; k++) r.skip(2);
  return m;
}

export function writeTransmit(w, m) {
  w.list(6, 0, 65535, "Transmit");
  w.byte(25);
  w.int(m.sound, 0, 4294967295, "Transmit.sound");
  w.number(m.sampling_rate, 0, 1000000000, "Transmit.sampling_rate");
  m.level === null || m.level === undefined ? w.nil() : w.number(m.level, -10000, 10000, "Transmit.level");
  m.at_ns === null || m.at_ns === undefined ? w.nil() : w.int(m.at_ns, -4611686018427387904n, 4611686018427387904n, "Transmit.at_ns");
  w.int(m.is_peak, 0, 1, "Transmit.is_peak");
}

export const MESSAGES = {
  1: { name: "HELLO", fromClient: true, session: false, latestWins: false, read: readHello, write: writeHello },
  2: { name: "CHALLENGE", fromClient: false, session: false, latestWins: false, read: readChallenge },
  3: { name: "JOIN", fromClient: true, session: false, latestWins: false, read: readJoin, write: writeJoin },
  4: { name: "WELCOME", fromClient: false, session: false, latestWins: false, read: readWelcome },
  5: { name: "REFUSE", fromClient: false, session: false, latestWins: false, read: readRefuse },
  16: { name: "ACTUATE", fromClient: true, session: true, latestWins: true, read: readActuate, write: writeActuate },
  17: { name: "REQUESTS", fromClient: true, session: true, latestWins: false, read: readRequests, write: writeRequests },
  18: { name: "DONE", fromClient: true, session: true, latestWins: false, read: readDone, write: writeDone },
  19: { name: "KEEPALIVE_REPLY", fromClient: true, session: true, latestWins: false, read: readKeepaliveReply, write: writeKeepaliveReply },
  20: { name: "LEAVE", fromClient: true, session: true, latestWins: false, read: readLeave, write: writeLeave },
  21: { name: "ESTIMATE", fromClient: true, session: true, latestWins: true, read: readEstimate, write: writeEstimate },
  22: { name: "ACK", fromClient: true, session: true, latestWins: false, read: readAck, write: writeAck },
  23: { name: "PROOF", fromClient: true, session: true, latestWins: false, read: readProof, write: writeProof },
  32: { name: "STATE", fromClient: false, session: true, latestWins: true, read: readStateMessage },
  33: { name: "EVENTS", fromClient: false, session: true, latestWins: false, read: readEvents },
  34: { name: "STEP", fromClient: false, session: true, latestWins: false, read: readStepMessage },
  35: { name: "KEEPALIVE", fromClient: false, session: true, latestWins: false, read: readKeepalive },
  36: { name: "BYE", fromClient: false, session: true, latestWins: false, read: readBye },
  37: { name: "FLEET", fromClient: false, session: true, latestWins: false, read: readFleet },
  38: { name: "SENSORS", fromClient: false, session: true, latestWins: false, read: readSensorsMessage },
  39: { name: "PROVE", fromClient: false, session: true, latestWins: false, read: readProve },
  40: { name: "FRAME", fromClient: false, session: true, latestWins: false, read: readPiece },
};

export const EVENTS = {
  1: { name: "RECEPTION", read: readReception },
  2: { name: "SENT", read: readSignalSent },
  3: { name: "REQUEST_REFUSED", read: readRequestRefused },
  4: { name: "RUN_STATE", read: readRunStateChanged },
  5: { name: "BODY", read: readBodyChanged },
  6: { name: "SIGNAL", read: readSignalSeen },
  7: { name: "FATE", read: readFateSeen },
  8: { name: "NOTICE", read: readNotice },
  9: { name: "ACTUATOR", read: readActuatorDescription },
  10: { name: "SENSOR", read: readSensorDescription },
  11: { name: "ANSWER", read: readAnswer },
  12: { name: "MISSION", read: readMissionPart },
  13: { name: "VEHICLE_COMMAND", read: readCommandReceived },
  14: { name: "TABLE", read: readTableDescription },
  15: { name: "ROWS", read: readRows },
  16: { name: "DUE", read: readDue },
  17: { name: "DEVICE_FAULT", read: readDeviceFault },
  18: { name: "TIME_CHANGED", read: readTimeChanged },
  19: { name: "ARRIVALS", read: readArrivals },
  20: { name: "ARRIVAL_PART", read: readArrivalPart },
  21: { name: "CHANNEL_STATE", read: readChannelState },
};

export const REQUESTS = {
  1: { name: "PING", read: readPing, write: writePing },
  2: { name: "SEND", read: readSend, write: writeSend },
  3: { name: "RANGE", read: readRange, write: writeRange },
  4: { name: "OBSERVE", read: readObserve, write: writeObserve },
  5: { name: "SUBSCRIBE", read: readSubscribe, write: writeSubscribe },
  6: { name: "CONTROL", read: readControl, write: writeControl },
  7: { name: "FAULT", read: readFault, write: writeFault },
  8: { name: "PUSH", read: readPush, write: writePush },
  9: { name: "POSE", read: readPose, write: writePose },
  10: { name: "ALLOCATE", read: readAllocate, write: writeAllocate },
  11: { name: "WEATHER", read: readWeather, write: writeWeather },
  12: { name: "FRAMES", read: readFrames, write: writeFrames },
  13: { name: "MISSION", read: readMission, write: writeMission },
  14: { name: "MISSIONS", read: readMissions, write: writeMissions },
  15: { name: "VEHICLE_COMMAND", read: readVehicleCommand, write: writeVehicleCommand },
  16: { name: "COMMAND_ANSWER", read: readCommandAnswer, write: writeCommandAnswer },
  17: { name: "ATTACH", read: readAttach, write: writeAttach },
  18: { name: "SERVE", read: readServe, write: writeServe },
  19: { name: "VALUES", read: readValues, write: writeValues },
  20: { name: "WRITTEN", read: readWritten, write: writeWritten },
  21: { name: "FRAME_PART", read: readFramePart, write: writeFramePart },
  22: { name: "FENCE", read: readFence, write: writeFence },
  23: { name: "SNAPSHOT", read: readSnapshotAction, write: writeSnapshotAction },
  24: { name: "SOUND_PART", read: readSoundPart, write: writeSoundPart },
  25: { name: "TRANSMIT", read: readTransmit, write: writeTransmit },
};
