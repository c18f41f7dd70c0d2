// Power spectrum by the fast Fourier transform (radix 2), with a Hann window.

export class Fourier {
  private readonly window: Float64Array;
  private readonly order: Uint32Array; // bit-reversed places
  private readonly cosine: Float64Array;
  private readonly sine: Float64Array;
  private readonly re: Float64Array;
  private readonly im: Float64Array;

  /** ``points`` is a power of two. */
  constructor(readonly points: number) {
    const bits = Math.round(Math.log2(points));
    this.window = Float64Array.from({ length: points }, (_, k) => 0.5 - 0.5 * Math.cos((2 * Math.PI * k) / points));
    this.order = Uint32Array.from({ length: points }, (_, k) => {
      let r = 0;
      for (let b = 0; b < bits; b++) if (k & (1 << b)) r |= 1 << (bits - 1 - b);
      return r;
    });
    this.cosine = Float64Array.from({ length: points / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / points));
    this.sine = Float64Array.from({ length: points / 2 }, (_, k) => Math.sin((2 * Math.PI * k) / points));
    this.re = new Float64Array(points);
    this.im = new Float64Array(points);
  }

  /**
   * Power density of real samples, one-sided: its sum over all points / 2 steps, divided by the number of points, is
   * the mean square.
   */
  power(samples: Float32Array): Float64Array {
    const { points: n, re, im } = this;
    for (let k = 0; k < n; k++) {
      const from = this.order[k]!;
      re[k] = (samples[from] ?? 0) * this.window[from]!;
      im[k] = 0;
    }
    for (let half = 1; half < n; half *= 2) {
      const stride = n / (2 * half);
      for (let first = 0; first < n; first += 2 * half)
        for (let k = 0; k < half; k++) {
          const c = this.cosine[k * stride]!,
            s = -this.sine[k * stride]!,
            a = first + k,
            b = a + half,
            x = re[b]! * c - im[b]! * s,
            y = re[b]! * s + im[b]! * c;
          re[b] = re[a]! - x;
          im[b] = im[a]! - y;
          re[a] = re[a]! + x;
          im[a] = im[a]! + y;
        }
    }
    const scale = 2 / (0.375 * n); // 0.375: mean square of the window
    return Float64Array.from({ length: n / 2 }, (_, k) => scale * (re[k]! * re[k]! + im[k]! * im[k]!));
  }
}
