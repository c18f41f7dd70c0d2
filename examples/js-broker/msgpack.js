// msgpack for docs/PROTOCOL.md: values are read and written one after the other, by their declarations.
//
// Integers are Numbers where that is exact (up to 2^53), otherwise BigInts. Each field always has the same type.

/** A dropped datagram, with a reason from docs/PROTOCOL.md. Each reason is one object, so that a flood costs no stack traces. */
export class Dropped extends Error {
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

export const BODY = new Dropped("body");
export const FIELDS = new Dropped("fields");

const CONTROL = /[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const DEPTH = 500; // deep nesting invalidates only its own item; the other items count

/** Reads one payload. Every method throws only Dropped, when the bytes do not match its type. */
export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.end = bytes.byteLength;
  }

  /** Skip n bytes; return their start. */
  take(n) {
    const at = this.at;
    if (n > this.end - at) throw BODY;
    this.at = at + n;
    return at;
  }

  /** Skip a nil if it is next; return whether it was. */
  nil() {
    if (this.at >= this.end) throw BODY;
    if (this.bytes[this.at] !== 0xc0) return false;
    this.at++;
    return true;
  }

  /** An integer, in any of msgpack's forms. */
  whole() {
    const first = this.bytes[this.take(1)];
    if (first < 0x80) return first;
    if (first >= 0xe0) return first - 256;
    switch (first) {
      case 0xcc: return this.bytes[this.take(1)];
      case 0xcd: return this.view.getUint16(this.take(2));
      case 0xce: return this.view.getUint32(this.take(4));
      case 0xcf: return short(this.view.getBigUint64(this.take(8)));
      case 0xd0: return this.view.getInt8(this.take(1));
      case 0xd1: return this.view.getInt16(this.take(2));
      case 0xd2: return this.view.getInt32(this.take(4));
      case 0xd3: return short(this.view.getBigInt64(this.take(8)));
      default: throw first === 0xc1 ? BODY : FIELDS;
    }
  }

  int(low, high) {
    const value = this.whole();
    if (value < low || value > high) throw FIELDS;
    return value;
  }

  /** An integer whose bound exceeds Number, so that no Number can exceed it. */
  wide(low, high) {
    const value = this.whole();
    if (typeof value === "number" ? typeof low === "number" && value < low : value < low || value > high) throw FIELDS;
    return value;
  }

  /** A finite number; an integer is accepted. */
  number(low, high) {
    if (this.at >= this.end) throw BODY;
    const first = this.bytes[this.at];
    let value;
    if (first === 0xcb) value = this.view.getFloat64(this.take(9) + 1);
    else if (first === 0xca) value = this.view.getFloat32(this.take(5) + 1);
    else value = Number(this.whole());
    if (!(value >= low && value <= high)) throw FIELDS; // NaN fails this comparison
    return value;
  }

  /** A list of numbers. With gaps, NaN replaces missing numbers. */
  numbers(least, most, low, high, gaps) {
    const count = this.list(least, most);
    const out = new Array(count);
    for (let k = 0; k < count; k++) out[k] = gaps && this.nil() ? NaN : this.number(low, high);
    return out;
  }

  /** Number of elements that follow. */
  list(least, most) {
    const first = this.bytes[this.take(1)];
    let count;
    if (first >= 0x90 && first < 0xa0) count = first & 15;
    else if (first === 0xdc) count = this.view.getUint16(this.take(2));
    else if (first === 0xdd) count = this.view.getUint32(this.take(4));
    else throw first === 0xc1 ? BODY : FIELDS;
    if (count > this.end - this.at) throw BODY;
    if (count < least || count > most) throw FIELDS;
    return count;
  }

  text(most) {
    const first = this.bytes[this.take(1)];
    let size;
    if (first >= 0xa0 && first < 0xc0) size = first & 31;
    else if (first === 0xd9) size = this.bytes[this.take(1)];
    else if (first === 0xda) size = this.view.getUint16(this.take(2));
    else if (first === 0xdb) size = this.view.getUint32(this.take(4));
    else throw first === 0xc1 ? BODY : FIELDS;
    const at = this.take(size);
    if (size > most) throw FIELDS;
    let value;
    try {
      value = UTF8.decode(this.bytes.subarray(at, at + size));
    } catch {
      throw BODY;
    }
    if (CONTROL.test(value)) throw FIELDS;
    return value;
  }

  /** A copy of bytes. */
  bin(least, most) {
    const first = this.bytes[this.take(1)];
    let size;
    if (first === 0xc4) size = this.bytes[this.take(1)];
    else if (first === 0xc5) size = this.view.getUint16(this.take(2));
    else if (first === 0xc6) size = this.view.getUint32(this.take(4));
    else throw first === 0xc1 ? BODY : FIELDS;
    const at = this.take(size);
    if (size < least || size > most) throw FIELDS;
    return Buffer.from(this.bytes.subarray(at, at + size));
  }

  /** Skip a value of any type at this depth. */
  skip(depth) {
    const first = this.bytes[this.take(1)];
    let children;
    if (first < 0x80 || first >= 0xe0 || first === 0xc0 || first === 0xc2 || first === 0xc3) return;
    if (first < 0x90) children = 2 * (first & 15);
    else if (first < 0xa0) children = first & 15;
    else if (first < 0xc0) return void this.take(first & 31);
    else if (first === 0xdc) children = this.view.getUint16(this.take(2));
    else if (first === 0xdd) children = this.view.getUint32(this.take(4));
    else if (first === 0xde) children = 2 * this.view.getUint16(this.take(2));
    else if (first === 0xdf) children = 2 * this.view.getUint32(this.take(4));
    else return void this.take(this.bulk(first));
    if (depth > DEPTH) throw BODY;
    for (let k = 0; k < children; k++) this.skip(depth + 1);
  }

  /** Number of bytes after the first one of a value without children. */
  bulk(first) {
    switch (first) {
      case 0xc4: case 0xd9: return this.bytes[this.take(1)];
      case 0xc5: case 0xda: return this.view.getUint16(this.take(2));
      case 0xc6: case 0xdb: return this.view.getUint32(this.take(4));
      case 0xc7: return this.bytes[this.take(1)] + 1;
      case 0xc8: return this.view.getUint16(this.take(2)) + 1;
      case 0xc9: return this.view.getUint32(this.take(4)) + 1;
      case 0xca: case 0xce: case 0xd2: return 4;
      case 0xcb: case 0xcf: case 0xd3: return 8;
      case 0xcc: case 0xd0: return 1;
      case 0xcd: case 0xd1: return 2;
      case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return 1 + (1 << (first - 0xd4));
      default: throw BODY;
    }
  }

  /** The bytes of a numbered item, to be read separately: an invalid item does not affect the others. */
  item() {
    const at = this.at;
    this.skip(3);
    return this.bytes.subarray(at, this.at);
  }
}

const short = (big) => {
  const value = Number(big);
  return Number.isSafeInteger(value) ? value : big;
};

/** Writes one payload. Throws a TypeError that names any value outside its declaration. */
export class Writer {
  constructor(room) {
    this.bytes = Buffer.allocUnsafe(room);
    this.view = new DataView(this.bytes.buffer, this.bytes.byteOffset, room);
    this.at = 0;
  }

  done() {
    return this.bytes.subarray(0, this.at);
  }

  take(n) {
    const at = this.at;
    if (n > this.bytes.length - at) throw new RangeError("the payload does not fit into a datagram");
    this.at = at + n;
    return at;
  }

  byte(value) {
    this.bytes[this.take(1)] = value;
  }

  nil() {
    this.byte(0xc0);
  }

  list(count, least, most, what) {
    if (count < least || count > most) throw new TypeError(`${what}: expected ${least} to ${most} elements, got ${count}`);
    if (count < 16) return this.byte(0x90 | count);
    this.byte(0xdc);
    this.view.setUint16(this.take(2), count);
  }

  int(value, low, high, what) {
    const whole = typeof value === "bigint" || Number.isSafeInteger(value);
    if (!whole || value < low || value > high) throw new TypeError(`${what}: expected an integer from ${low} to ${high}, got ${value}`);
    if (value >= 0 && value < 0x80) return this.byte(Number(value));
    if (value < 0) {
      this.byte(0xd3);
      this.view.setBigInt64(this.take(8), BigInt(value));
    } else if (value < 2 ** 32) {
      this.byte(0xce);
      this.view.setUint32(this.take(4), Number(value));
    } else {
      this.byte(0xcf);
      this.view.setBigUint64(this.take(8), BigInt(value));
    }
  }

  number(value, low, high, what) {
    if (typeof value !== "number" || !(value >= low && value <= high)) throw new TypeError(`${what}: expected a finite number${range(low, high)}, got ${value}`);
    this.byte(0xcb);
    this.view.setFloat64(this.take(8), value);
  }

  numbers(values, least, most, low, high, gaps, what) {
    if (!Array.isArray(values) && !ArrayBuffer.isView(values)) throw new TypeError(`${what}: expected a list of numbers, got ${values}`);
    this.list(values.length, least, most, what);
    for (let k = 0; k < values.length; k++) {
      const value = values[k];
      if (gaps && (value === null || value === undefined || Number.isNaN(value))) this.nil();
      else this.number(value, low, high, `${what}[${k}]`);
    }
  }

  text(value, most, what) {
    if (typeof value !== "string") throw new TypeError(`${what}: expected text, got ${value}`);
    const bytes = Buffer.from(value, "utf8");
    if (bytes.length > most) throw new TypeError(`${what}: expected at most ${most} bytes, got ${bytes.length}`);
    if (CONTROL.test(value)) throw new TypeError(`${what}: control characters are not allowed`);
    if (bytes.length < 32) this.byte(0xa0 | bytes.length);
    else {
      this.byte(0xda);
      this.view.setUint16(this.take(2), bytes.length);
    }
    bytes.copy(this.bytes, this.take(bytes.length));
  }

  bin(value, least, most, what) {
    if (!(value instanceof Uint8Array) || value.length < least || value.length > most)
      throw new TypeError(`${what}: expected ${least} to ${most} bytes`);
    this.byte(0xc5);
    this.view.setUint16(this.take(2), value.length);
    this.bytes.set(value, this.take(value.length));
  }

  /** Insert bytes that were written elsewhere. */
  raw(bytes) {
    this.bytes.set(bytes, this.take(bytes.length));
  }
}

const range = (low, high) => (low === -Number.MAX_VALUE && high === Number.MAX_VALUE ? "" : ` from ${low} to ${high}`);
