// Datagrams: the header, and the rules for dropping a datagram. protocol.js has the generated readers and writers.

import { BODY, Dropped, Reader, Writer } from "./msgpack.js";
import { EVENTS, LIMITS, MESSAGES, REQUESTS, VERSION } from "./protocol.js";

export const HEADER = LIMITS.header_bytes;
const MAGIC = 0x4d535657; // "WVSM", little-endian
const SEALED = 1;
const [SIZE, OF_MAGIC, OF_VERSION, FLAGS, TYPE] = ["size", "magic", "version", "flags", "type"].map((r) => new Dropped(r));

/** Decode the header of a datagram for one side of the protocol. */
export function decodeHeader(data, fromClient) {
  if (data.length < HEADER || data.length > LIMITS.datagram_bytes) throw SIZE;
  if (data.readUInt32LE(0) !== MAGIC) throw OF_MAGIC;
  if (data[4] !== VERSION) throw OF_VERSION;
  const flags = data.readUInt16LE(6);
  if (flags & ~SEALED) throw FLAGS;
  const message = MESSAGES[data[5]];
  if (message === undefined || message.fromClient !== fromClient) throw TYPE;
  return {
    type: data[5], message, sealed: flags === SEALED,
    token: data.readBigUInt64LE(8), sequence: data.readUInt32LE(16), ack: data.readUInt32LE(20),
  };
}

/** Decode the message of a datagram; ``seal`` opens a sealed payload. */
export function decodeBody(data, header, seal) {
  if (header.sealed !== (seal != null)) throw FLAGS;
  let plain = data.subarray(HEADER);
  if (seal != null) plain = seal.open(data.subarray(0, HEADER), plain, header.sequence);
  const reader = new Reader(plain);
  const message = header.message.read(reader);
  if (reader.at !== reader.end) throw BODY;
  return message;
}

/** Encode one datagram of a client; ``nils`` additional elements make its payload longer. */
export function encode(type, message, { token = 0n, sequence = 0, ack = 0, seal = null, nils = 0 } = {}) {
  const writer = new Writer(LIMITS.datagram_bytes);
  writer.take(HEADER);
  const header = writer.bytes.subarray(0, HEADER);
  header.writeUInt32LE(MAGIC, 0);
  header[4] = VERSION;
  header[5] = type;
  header.writeUInt16LE(seal === null ? 0 : SEALED, 6);
  header.writeBigUInt64LE(token, 8);
  header.writeUInt32LE(sequence >>> 0, 16);
  header.writeUInt32LE(ack >>> 0, 20);
  MESSAGES[type].write(writer, message);
  writer.bytes[HEADER] += nils; // fewer than 16 elements
  for (let k = 0; k < nils; k++) writer.nil();
  if (seal === null) return writer.done();
  return Buffer.concat([header, seal.close(header, writer.done().subarray(HEADER), sequence)]);
}

/** Encode and check a request. */
export function encodeRequest(kind, values) {
  const writer = new Writer(LIMITS.datagram_bytes);
  REQUESTS[kind].write(writer, values);
  return Buffer.from(writer.done());
}

/** Decode an event; null if its kind is unknown or it is malformed. It then counts as received. */
export function decodeEvent(bytes) {
  const peek = new Reader(bytes);
  try {
    peek.list(1, bytes.length);
    const kind = peek.whole();
    const event = EVENTS[kind];
    return event === undefined ? null : { event: event.name, ...event.read(new Reader(bytes)) };
  } catch (error) {
    if (error instanceof Dropped) return null;
    throw error;
  }
}
