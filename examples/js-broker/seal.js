// Keys as in docs/PROTOCOL.md: ChaCha20-Poly1305 (RFC 8439) with keys from HKDF-SHA256 (RFC 5869), both from Node.

import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { Dropped } from "./msgpack.js";

const LABEL = "wavesim/1 ";
const ALGORITHM = "chacha20-poly1305";
const [KEY, NONCE, TAG] = [32, 12, 16];
const WINDOW = 64n;
const FORGED = new Dropped("seal");
const REPEATED = new Dropped("replay");

const derive = (key, salt, info) => Buffer.from(hkdfSync("sha256", key, salt, info, KEY));

const whole = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

function close(key, nonce, header, plain) {
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG });
  cipher.setAAD(header, { plaintextLength: plain.length });
  return Buffer.concat([cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function open(key, nonce, header, sealed) {
  if (sealed.length < TAG) throw FORGED;
  const plain = sealed.subarray(0, sealed.length - TAG);
  const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG });
  decipher.setAuthTag(sealed.subarray(plain.length));
  decipher.setAAD(header, { plaintextLength: plain.length });
  const body = decipher.update(plain);
  try {
    decipher.final();
  } catch {
    throw FORGED;
  }
  return body;
}

/** The key information of a JOIN. */
export const keyId = (key) => createHash("sha256").update(`${LABEL}key id`).update(key).digest().readBigUInt64LE(0);

/** Seals JOIN and opens REFUSE: a random nonce precedes the sealed payload. */
export class Handshake {
  constructor(key, what, nonce = null) {
    this.key = derive(key, Buffer.alloc(0), LABEL + what);
    this.nonce = nonce; // given by test vectors; random otherwise
  }

  close(header, plain) {
    const nonce = this.nonce ?? randomBytes(NONCE);
    return Buffer.concat([nonce, close(this.key, nonce, header, plain)]);
  }

  open(header, sealed) {
    if (sealed.length < NONCE) throw FORGED;
    return open(this.key, sealed.subarray(0, NONCE), header, sealed.subarray(NONCE));
  }
}

/** Both directions of a session, for the client. */
export class Seal {
  constructor(key, cookie, nonce, token) {
    const salt = Buffer.concat([cookie, whole(nonce)]);
    const side = (name) => derive(key, salt, Buffer.concat([Buffer.from(LABEL + name), whole(token)]));
    this.toServer = side("client");
    this.fromServer = side("server");
    this.highest = 0;
    this.seen = 0n; // bit k: highest - k was received
  }

  close(header, plain, sequence) {
    return close(this.toServer, this.nonce(sequence), header, plain);
  }

  open(header, sealed, sequence) {
    const ahead = BigInt(sequence - this.highest);
    if (ahead <= -WINDOW || (ahead <= 0n && (this.seen >> -ahead) & 1n)) throw REPEATED;
    const plain = open(this.fromServer, this.nonce(sequence), header, sealed);
    if (ahead > 0n) {
      this.seen = ahead < WINDOW ? BigInt.asUintN(64, (this.seen << ahead) | 1n) : 1n;
      this.highest = sequence;
    } else {
      this.seen |= 1n << -ahead;
    }
    return plain;
  }

  nonce(sequence) {
    const bytes = Buffer.alloc(NONCE);
    bytes.writeUInt32LE(sequence);
    return bytes;
  }
}

/** Read the key of a name, or the key for all, from a file of lines ``NAME KEY`` that only its owner may read. */
export function keyFor(path, name) {
  if (statSync(path).mode & 0o077) throw new Error(`other users may read ${path}; restrict it (chmod 600)`);
  const keys = new Map();
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const words = line.split("#")[0].trim().split(/\s+/);
    if (words.length === 2 && /^[0-9a-fA-F]{64}$/.test(words[1])) keys.set(words[0], Buffer.from(words[1], "hex"));
    else if (words[0] !== "") throw new Error(`${path}: invalid line, expected 'NAME KEY' with a key of 64 hexadecimal digits`);
  }
  const key = keys.get(name) ?? keys.get("*");
  if (key === undefined) throw new Error(`${path} has no key for '${name}' and none for all (*)`);
  return key;
}
