// The resolution that a machine can draw in time.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AdaptiveResolution } from "../src/resolution";

/** Draw for some seconds; a picture takes ``fixed`` ms and ``pixels`` ms at full resolution. Return the shares. */
function run(resolution: AdaptiveResolution, start: number, seconds: number, fixed: number, pixels: number): number[] {
  const shares: number[] = [];
  for (let t = start; t < start + 1000 * seconds;) {
    t += Math.max(1000 / 60, fixed + pixels * resolution.share ** 2);
    if (resolution.count(t)) shares.push(resolution.share);
  }
  return shares;
}

test("the resolution settles on each machine", () => {
  for (const fixed of [1, 10, 20, 30, 60])
    for (const pixels of [1, 10, 30, 60, 200]) {
      const resolution = new AdaptiveResolution(0);
      run(resolution, 0, 30, fixed, pixels);
      assert.deepEqual(run(resolution, 30_000, 60, fixed, pixels), [], `${fixed} ms and ${pixels} ms`);
      const ms = fixed + pixels * resolution.share ** 2;
      assert.ok(
        ms <= 1000 / 30 || resolution.share === 0.4,
        `${fixed} ms and ${pixels} ms: slow at ${resolution.share}`,
      );
    }
});

test("a pause is not a slow machine", () => {
  const resolution = new AdaptiveResolution(0);
  run(resolution, 0, 3, 10, 1);
  resolution.restart(60_000);
  assert.equal(resolution.count(60_020), false);
  assert.equal(resolution.share, 1);
});
