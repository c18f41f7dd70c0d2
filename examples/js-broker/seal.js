// Keys as in docs/PROTOCOL.md: ChaCha20-Poly1305 (RFC 8439) with keys from HKDF-SHA256 (RFC 5869) and X25519 (RFC 7748), all
// from Node. A key has 32 bytes; if it is valid for one server only, the 32 bytes of that server's public key follow.

import {
  createCipheriv, createDecipheriv, createHash, createPrivateKey, createPublicKey, diffieHellman, hkdfSync, randomBytes,
} from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { Dropped } from "./msgpack.js";

const LABEL = "wavesim/2 ";
const ALGORITHM = "chacha20-poly1305";
const [KEY, NONCE, TAG] = [32, 12, 16];
export const PUBLIC = 32;
const PRIVATE_KEY = Buffer.from("302e020100300506032b656e04220420", "hex"); // what precedes a private X25519 key in PKCS #8
const PUBLIC_KEY = Buffer.from("302a300506032b656e032100", "hex"); // and a public one in SPKI
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

/** The value of ``previous`` in a JOIN that resumes the session of a ticket. */
export const previousProof = (ticket, publicKey) => derive(whole(ticket), publicKey, `${LABEL}previous`).readBigUInt64LE(0);

/** The key pair of one handshake. */
export class Exchange {
  constructor(bytes = randomBytes(KEY)) {
    this.private = createPrivateKey({ key: Buffer.concat([PRIVATE_KEY, bytes]), format: "der", type: "pkcs8" });
    this.public = createPublicKey(this.private).export({ format: "der", type: "spki" }).subarray(PUBLIC_KEY.length);
  }

  /** The secret that the owner of a public key computes too; a key that gives everybody the same secret is dropped. */
  agree(bytes) {
    if (bytes.length !== PUBLIC) throw FORGED;
    try {
      const publicKey = createPublicKey({ key: Buffer.concat([PUBLIC_KEY, bytes]), format: "der", type: "spki" });
      return diffieHellman({ privateKey: this.private, publicKey });
    } catch {
      throw FORGED;
    }
  }
}

/** Seals JOIN and opens REFUSE: a random nonce precedes the sealed payload, and in a JOIN the public key of its exchange. */
export class Handshake {
  constructor(key, what, publicKey = Buffer.alloc(0), nonce = null) {
    this.key = derive(key, Buffer.alloc(0), LABEL + what);
    this.public = publicKey;
    this.nonce = nonce; // given by test vectors; random otherwise
  }

  close(header, plain) {
    const nonce = this.nonce ?? randomBytes(NONCE);
    return Buffer.concat([nonce, this.public, close(this.key, nonce, Buffer.concat([header, this.public]), plain)]);
  }

  open(header, sealed) {
    if (sealed.length < NONCE) throw FORGED;
    return open(this.key, sealed.subarray(0, NONCE), header, sealed.subarray(NONCE));
  }
}

/** Opens a WELCOME, which begins with the public key of the server, and then has the seal of its ``session``. */
export class Welcome {
  constructor(key, exchange, cookie, nonce, token) {
    Object.assign(this, { key, exchange, cookie, nonce, token, session: null });
  }

  open(header, sealed, sequence) {
    const publicKey = sealed.subarray(0, PUBLIC);
    const secrets = [this.key, this.exchange.agree(publicKey)];
    if (this.key.length > KEY) secrets.push(this.exchange.agree(this.key.subarray(KEY))); // only that server can do the same
    const salt = Buffer.concat([this.cookie, whole(this.nonce), this.exchange.public, publicKey]);
    const session = new Seal(Buffer.concat(secrets), salt, this.token);
    const plain = session.open(header, sealed.subarray(PUBLIC), sequence);
    this.session = session;
    return plain;
  }
}

/** Both directions of a session, for the client. ``ticket``: number with which a later join resumes the session. */
export class Seal {
  constructor(secret, salt, token) {
    const side = (name) => derive(secret, salt, Buffer.concat([Buffer.from(LABEL + name), whole(token)]));
    this.toServer = side("client");
    this.fromServer = side("server");
    this.ticket = side("resume").readBigUInt64LE(0);
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

/** Read the newest key of a name, or the newest key for all, from a file of lines ``NAME KEY [SERVER] [retired]`` that only
 * its owner may read. */
export function keyFor(path, name) {
  if (statSync(path).mode & 0o077) throw new Error(`other users may read ${path}; restrict it (chmod 600)`);
  const keys = new Map();
  for (const line of readFileSync(path, "utf8").split("\n")) {
    const words = line.split("#")[0].trim().split(/\s+/);
    const retired = words.length > 2 && words.at(-1) === "retired";
    const numbers = words.slice(1, retired ? -1 : undefined);
    if ((numbers.length === 1 || numbers.length === 2) && numbers.every((n) => /^[0-9a-fA-F]{64}$/.test(n))) {
      if (!retired) keys.set(words[0], Buffer.from(numbers.join(""), "hex"));
    } else if (words[0] !== "") {
      throw new Error(`${path}: invalid line, expected 'NAME KEY' with a key of 64 hexadecimal digits`);
    }
  }
  const key = keys.get(name) ?? keys.get("*");
  if (key === undefined) throw new Error(`${path} has no key for '${name}' and none for all (*)`);
  return key;
}
