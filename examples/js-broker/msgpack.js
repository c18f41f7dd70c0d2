// msgpack as docs/PROTOCOL.md needs it: values are read and written by what their declaration says, one after the other.
//
// Whole numbers are Numbers where that is exact (to 2^53), else BigInts: a value always has the same form.

/** A datagram is dropped, for a reason named in docs/PROTOCOL.md. Each reason is one object: a flood costs no stack traces. */
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
const DEPTH = 500; // what is nested deeply is the fault of its own item: those beside it count

/** Reads one body. Every method throws a Dropped where the bytes are not what it is asked for, and nothing else. */
export class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
    this.end = bytes.byteLength;
  }

  /** The next n bytes: where they begin. */
  take(n) {
    const at = this.at;
    if (n > this.end - at) throw BODY;
    this.at = at + n;
    return at;
  }

  /** Whether nil comes next; it is passed over then. */
  nil() {
    if (this.at >= this.end) throw BODY;
    if (this.bytes[this.at] !== 0xc0) return false;
    this.at++;
    return true;
  }

  /** A whole number, in any of msgpack's forms. */
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

  /** A whole number with a bound that no Number can hold, and so none can pass. */
  wide(low, high) {
    const value = this.whole();
    if (typeof value === "number" ? typeof low === "number" && value < low : value < low || value > high) throw FIELDS;
    return value;
  }

  /** A finite number; a whole one is taken for it. */
  number(low, high) {
    if (this.at >= this.end) throw BODY;
    const first = this.bytes[this.at];
    let value;
    if (first === 0xcb) value = this.view.getFloat64(this.take(9) + 1);
    else if (first === 0xca) value = this.view.getFloat32(this.take(5) + 1);
    else value = Number(this.whole());
    if (!(value >= low && value <= high)) throw FIELDS; // NaN is within nothing
    return value;
  }

  /** A list of numbers. With gaps, NaN stands where there is none. */
  numbers(least, most, low, high, gaps) {
    const count = this.list(least, most);
    const out = new Array(count);
    for (let k = 0; k < count; k++) out[k] = gaps && this.nil() ? NaN : this.number(low, high);
    return out;
  }

  /** How many elements follow. */
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

  /** Bytes, a copy of their own. */
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

  /** Pass over a value of any type that stands so deep. */
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

  /** Bytes behind the first one of what has no children. */
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

  /** A numbered item as the bytes that it is, to be read by itself: a bad one does not spoil its neighbours. */
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

/** Writes one body. A value that the declaration does not allow is a TypeError that says which. */
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
    if (n > this.bytes.length - at) throw new RangeError("it does not fit a datagram");
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
    if (count < least || count > most) throw new TypeError(`${what}: ${count} elements where ${least} to ${most} may be`);
    if (count < 16) return this.byte(0x90 | count);
    this.byte(0xdc);
    this.view.setUint16(this.take(2), count);
  }

  int(value, low, high, what) {
    const whole = typeof value === "bigint" || Number.isSafeInteger(value);
    if (!whole || value < low || value > high) throw new TypeError(`${what}: ${value} is no whole number from ${low} to ${high}`);
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
    if (typeof value !== "number" || !(value >= low && value <= high)) throw new TypeError(`${what}: ${value} is no finite number${range(low, high)}`);
    this.byte(0xcb);
    this.view.setFloat64(this.take(8), value);
  }

  numbers(values, least, most, low, high, gaps, what) {
    if (!Array.isArray(values) && !ArrayBuffer.isView(values)) throw new TypeError(`${what}: ${values} is no list of numbers`);
    this.list(values.length, least, most, what);
    for (let k = 0; k < values.length; k++) {
      const value = values[k];
      if (gaps && (value === null || value === undefined || Number.isNaN(value))) this.nil();
      else this.number(value, low, high, `${what}[${k}]`);
    }
  }

  text(value, most, what) {
    if (typeof value !== "string") throw new TypeError(`${what}: ${value} is no text`);
    const bytes = Buffer.from(value, "utf8");
    if (bytes.length > most) throw new TypeError(`${what}: it has ${bytes.length} bytes; ${most} may be`);
    if (CONTROL.test(value)) throw new TypeError(`${what}: it has control characters`);
    if (bytes.length < 32) this.byte(0xa0 | bytes.length);
    else {
      this.byte(0xda);
      this.view.setUint16(this.take(2), bytes.length);
    }
    bytes.copy(this.bytes, this.take(bytes.length));
  }

  bin(value, least, most, what) {
    if (!(value instanceof Uint8Array) || value.length < least || value.length > most)
      throw new TypeError(`${what}: ${least} to ${most} bytes belong there`);
    this.byte(0xc5);
    this.view.setUint16(this.take(2), value.length);
    this.bytes.set(value, this.take(value.length));
  }

  /** What was written elsewhere. */
  raw(bytes) {
    this.bytes.set(bytes, this.take(bytes.length));
  }
}

const range = (low, high) => (low === -Number.MAX_VALUE && high === Number.MAX_VALUE ? "" : ` from ${low} to ${high}`);
