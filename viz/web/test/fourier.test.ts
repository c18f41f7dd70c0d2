// Power spectra against sums that are computed one by one.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Fourier } from "../src/fourier";

test("the spectrum is that of a sum over all samples", () => {
  const n = 64,
    samples = Float32Array.from({ length: n }, (_, k) => Math.sin(0.7 * k * k) + 0.3 * Math.cos(k)),
    found = new Fourier(n).power(samples);
  for (let f = 0; f < n / 2; f++) {
    let re = 0,
      im = 0;
    for (let k = 0; k < n; k++) {
      const w = 0.5 - 0.5 * Math.cos((2 * Math.PI * k) / n);
      re += samples[k]! * w * Math.cos((2 * Math.PI * f * k) / n);
      im -= samples[k]! * w * Math.sin((2 * Math.PI * f * k) / n);
    }
    assert.ok(Math.abs(found[f]! - (2 * (re * re + im * im)) / (0.375 * n)) < 1e-9);
  }
});

test("the sum of the spectrum is the mean square", () => {
  const n = 512,
    samples = Float32Array.from({ length: n }, (_, k) => Math.sin((2 * Math.PI * 40 * k) / n)),
    sum = new Fourier(n).power(samples).reduce((a, b) => a + b, 0) / n;
  assert.ok(Math.abs(sum - 0.5) < 1e-6);
});
