// Playback of a hydrophone: its speed for sampling rates that a browser does not play.

import assert from "node:assert/strict";
import { test } from "node:test";
import { HydrophoneView } from "../src/hydrophone_view";

class Player {
  static rates: number[] = [];
  static sources: { playbackRate: { value: number } }[] = [];
  readonly destination = {};
  createBuffer(_: number, length: number, rate: number): { getChannelData: () => Float32Array } {
    assert.ok(rate >= 8000 && rate <= 96000, "what every browser has to play");
    Player.rates.push(rate);
    return { getChannelData: () => new Float32Array(length) };
  }
  createBufferSource(): unknown {
    const source = { playbackRate: { value: 1 }, connect() {}, addEventListener() {}, start() {} };
    Player.sources.push(source);
    return source;
  }
}

test("sound is played at its speed or at an eighth of it", () => {
  Object.assign(globalThis, { document: { createElement: () => ({}) }, AudioContext: Player });
  for (const frequency of [8000, 48000, 250000])
    for (const slower of [1, 8]) {
      const view = new HydrophoneView();
      const head = { frequency, time: 0.1, span: 1, floor: -180, gain: 0 };
      view.take({ head, sound: new Int16Array(frequency / 10) } as never);
      view.play(slower);
      const speed = Player.rates.at(-1)! * Player.sources.at(-1)!.playbackRate.value;
      assert.ok(Math.abs(speed - frequency / slower) < 1e-6 * speed);
    }
  assert.equal(Player.rates.length, 6);
});
