// Requests and events are numbered and delivered once and in order. The repeat interval follows the measured round trip.

import { LIMITS } from "./protocol.js";

const FIRST_WAIT = 0.2; // s, before a round trip was measured
const LEAST_WAIT = 0.02;
const MOST_WAIT = 1.0;
const MOST_PENDING = 4096;
const ROOM = LIMITS.datagram_bytes - LIMITS.header_bytes - LIMITS.seal_bytes - 10; // 10 bytes for the array around the items
const BURST = 8; // maximum datagrams at once

/** Time to wait for an answer, from mean and spread of round trips without repeats (RFC 6298, Karn's rule). */
export class Pace {
  mean = null;
  spread = 0;

  add(seconds) {
    if (this.mean === null) {
      this.mean = seconds;
      this.spread = seconds / 2;
      return;
    }
    this.spread += (Math.abs(seconds - this.mean) - this.spread) / 4;
    this.mean += (seconds - this.mean) / 8;
  }

  wait(repeats = 0) {
    const once = this.mean === null ? FIRST_WAIT : Math.max(this.mean + 4 * this.spread, LEAST_WAIT);
    return Math.min(once * 2 ** Math.min(repeats, 10), MOST_WAIT);
  }
}

/** Items that wait for acknowledgement. */
export class Outbox {
  constructor(pace) {
    this.pace = pace;
    this.last = 0;
    this.pending = []; // {number, bytes}
    this.next = 1; // number of the next item to send
    this.repeatAt = 0;
    this.repeats = 0;
    this.timed = null; // {number, at}: an item sent once so far
  }

  push(bytes) {
    if (this.pending.length >= MOST_PENDING) throw new RangeError(`the server acknowledged none of the last ${MOST_PENDING} requests`);
    if (bytes.length > ROOM) throw new RangeError(`the request has ${bytes.length} bytes; at most ${ROOM} fit into a datagram`);
    this.pending.push({ number: ++this.last, bytes });
    return this.last;
  }

  acknowledged(number, now) {
    const first = this.pending[0]?.number;
    if (first === undefined || number < first || number > this.last) return;
    this.pending.splice(0, number - first + 1);
    this.next = Math.max(this.next, number + 1);
    if (this.timed !== null && number >= this.timed.number) {
      this.pace.add(now - this.timed.at);
      this.timed = null;
    }
    this.repeats = 0;
    this.repeatAt = now + this.pace.wait();
  }

  /** {first, items} of each datagram to send now: new items, or all items whose repeat is due. */
  due(now) {
    const base = this.pending[0]?.number;
    if (base === undefined) return [];
    if (this.next > base && now >= this.repeatAt) {
      this.next = base;
      this.timed = null;
      this.repeats++;
    }
    const found = [];
    let room = 0;
    for (let k = this.next - base; k < this.pending.length; k++) {
      const { number, bytes } = this.pending[k];
      if (bytes.length > room || found.at(-1).items.length >= LIMITS.items) {
        if (found.length === BURST) break;
        found.push({ first: number, items: [] });
        room = ROOM;
      }
      found.at(-1).items.push(bytes);
      room -= bytes.length;
    }
    if (found.length === 0) return found;
    if (this.next === base) this.repeatAt = now + this.pace.wait(this.repeats);
    this.next = found.at(-1).first + found.at(-1).items.length;
    if (this.timed === null && this.repeats === 0) this.timed = { number: this.next - 1, at: now };
    return found;
  }

  nextTimer() {
    if (this.pending.length === 0) return null;
    return this.next <= this.last ? 0 : this.repeatAt;
  }
}
