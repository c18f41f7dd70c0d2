// Hydrophone: spectrogram of the newest seconds of one channel, with time to the right, and playback.

import {
  drawLabel,
  rangeMarkStep,
  automaticLimits,
  type ImagePainter,
  type ImageStyle,
  type SonarImage,
} from "./sonar_image";
import { context2d } from "./canvas";
import { h } from "./dom";
import { Fourier } from "./fourier";

export const POINTS = 512; // of a spectrum, at first
const RESOLUTIONS = [256, 512, 1024, 2048, 4096]; // points of a spectrum
const SPANS = [5, 10, 20, 60]; // s
const MOST_COLUMNS = 2048; // more spectra are averaged
const OCTAVES = 5; // lowest frequency of a logarithmic axis, below the upper limit
const [LOWEST_RATE, HIGHEST_RATE] = [8000, 96000]; // sampling rates that every browser plays, Hz
const PLAYED_S = 5; // newest part of the sound that is played
const FULL_SCALE = 32768;
export const STEPS_PER_DB = 1.5; // steps of a spectrum level from 0 to 170 dB re 1 uPa^2/Hz

export class HydrophoneView implements ImagePainter {
  private rate = 0;
  private span: number = SPANS[0]!; // s
  private points = POINTS;
  private low = 0; // limits of the frequency axis, Hz
  private high = Infinity;
  private logarithmic = false;
  private sound = new Int16Array(0); // newest samples; 32768 is full scale
  private held = 0; // number of these samples that contain sound
  columns = new Uint8Array(0); // spectrum levels, one spectrum after the other, each from 0 Hz up
  count = 0; // number of columns
  private merged = 1; // number of spectra in a column
  private sum = new Float64Array(0); // of the powers of the spectra of the next column
  private summed = 0;
  private pending = 0; // number of newest samples that have no spectrum yet
  private next = NaN; // time at which the next block has to begin, s
  private reference = 0; // spectrum level of a full scale in one step of frequency, dB
  private player: AudioContext | null = null;
  private playing: AudioBufferSourceNode | null = null;
  private fourier = new Fourier(POINTS);
  private readonly layer = document.createElement("canvas");
  private size: [number, number] = [1, 1];

  /** Number of frequencies of a spectrum. */
  get rows(): number {
    return this.points / 2;
  }
  private get most(): number {
    return Math.max(1, Math.floor((this.span * this.rate) / this.rows / this.merged));
  }
  private get top(): number {
    return Math.min(this.high, this.rate / 2);
  }
  private get bottom(): number {
    const low = Math.min(this.low, 0.9 * this.top);
    return this.logarithmic ? Math.max(low, this.top / 2 ** OCTAVES) : low;
  }

  take(p: SonarImage): void {
    const { head, sound } = p,
      rate = head.frequency;
    if (rate !== this.rate) {
      this.rate = rate;
      this.resize();
    }
    const begin = head.time - sound.length / rate;
    if (Math.abs(begin - this.next) > 1.5 / rate) this.clear(); // blocks are missing
    this.next = head.time;
    this.reference = 20 * Math.log10(head.span) - head.floor - head.gain - 10 * Math.log10(rate);
    const n = Math.min(sound.length, this.sound.length);
    this.sound.copyWithin(0, n);
    this.sound.set(sound.subarray(sound.length - n), this.sound.length - n);
    this.held = Math.min(this.held + n, this.sound.length);
    this.pending = Math.min(this.pending + n, this.sound.length);
    this.analyse();
  }

  /** Fit the memory to the time span and the resolution, and analyse the sound that is kept again. */
  private resize(): void {
    const sound = new Int16Array(Math.ceil(this.span * this.rate)),
      held = Math.min(this.held, sound.length);
    sound.set(this.sound.subarray(this.sound.length - held), sound.length - held);
    [this.sound, this.held] = [sound, held];
    if (this.fourier.points !== this.points) this.fourier = new Fourier(this.points);
    this.merged = Math.max(1, Math.ceil((this.span * this.rate) / this.rows / MOST_COLUMNS));
    this.columns = new Uint8Array(this.most * this.rows);
    this.sum = new Float64Array(this.rows);
    this.count = this.summed = 0;
    this.pending = held;
    this.analyse();
  }

  private analyse(): void {
    const part = new Float32Array(this.points);
    while (this.pending >= this.points) {
      const first = this.sound.length - this.pending;
      for (let k = 0; k < this.points; k++) part[k] = this.sound[first + k]! / FULL_SCALE;
      this.addSpectrum(this.fourier.power(part));
      this.pending -= this.rows;
    }
  }

  private addSpectrum(power: Float64Array): void {
    const { rows, sum } = this;
    for (let k = 0; k < rows; k++) sum[k]! += power[k]!;
    if (++this.summed < this.merged) return;
    if (this.count === this.most) {
      this.columns.copyWithin(0, rows);
      this.count--;
    }
    const at = this.count++ * rows;
    for (let k = 0; k < rows; k++) {
      const level = this.reference + 10 * Math.log10(sum[k]! / this.merged + 1e-30);
      this.columns[at + k] = Math.min(Math.max(Math.round(STEPS_PER_DB * level), 0), 255);
    }
    sum.fill(0);
    this.summed = 0;
  }

  clear(): void {
    this.count = this.held = this.pending = this.summed = 0;
    this.sum.fill(0);
    this.next = NaN;
  }

  limits(): [number, number] | null {
    if (!this.count) return null;
    const [first, last] = [this.bottom, this.top].map((f) => Math.round((f * this.points) / this.rate)) as [
      number,
      number,
    ];
    if (first === 0 && last >= this.rows) return automaticLimits(this.columns.subarray(0, this.count * this.rows));
    const wide = Math.max(last - first, 1),
      shown = new Uint8Array(this.count * wide); // the contrast is that of the shown frequencies
    for (let x = 0; x < this.count; x++)
      shown.set(this.columns.subarray(x * this.rows + first, x * this.rows + first + wide), x * wide);
    return automaticLimits(shown);
  }

  /** Frequency at a height: 0 at the bottom, 1 at the top. */
  private frequency(f: number): number {
    const { bottom, top } = this;
    return this.logarithmic ? bottom * (top / bottom) ** f : bottom + f * (top - bottom);
  }
  private height(frequency: number): number {
    const { bottom, top } = this;
    return this.logarithmic
      ? Math.log(frequency / bottom) / Math.log(top / bottom)
      : (frequency - bottom) / (top - bottom);
  }

  paint(c: CanvasRenderingContext2D, w: number, hh: number, style: ImageStyle): void {
    c.fillStyle = "#04101a";
    c.fillRect(0, 0, w, hh);
    this.size = [w, hh];
    if (!this.count) return;
    const { count, columns, rows } = this;
    this.layer.width = count;
    this.layer.height = hh;
    const layer = context2d(this.layer),
      image = layer.createImageData(count, hh),
      pixels = new Uint32Array(image.data.buffer);
    for (let y = 0; y < hh; y++) {
      const k = Math.min(Math.floor((this.frequency(1 - (y + 0.5) / hh) * this.points) / this.rate + 0.5), rows - 1);
      for (let x = 0; x < count; x++) pixels[y * count + x] = style.colours[columns[x * rows + k]!]!;
    }
    layer.putImageData(image, 0, 0);
    const wide = (w * count) / this.most;
    c.imageSmoothingQuality = "high"; // short sounds do not vanish between two pixels
    c.drawImage(this.layer, w - wide, 0, wide, hh);
    this.axes(c, w, hh, style.ratio);
  }

  private axes(c: CanvasRenderingContext2D, w: number, hh: number, ratio: number): void {
    c.font = `${11 * ratio}px system-ui, sans-serif`;
    const { bottom, top } = this,
      step = rangeMarkStep((top - bottom) / 1e3),
      marks = this.logarithmic
        ? Array.from({ length: OCTAVES }, (_, k) => top / 2e3 / 2 ** k)
        : Array.from({ length: 12 }, (_, k) => (Math.floor(bottom / 1e3 / step) + k + 1) * step);
    for (const f of marks) {
      const y = hh - this.height(f * 1e3) * hh;
      if (y < 12 * ratio || y > hh - 14 * ratio) continue;
      c.fillStyle = "#9fdcff30";
      c.fillRect(0, y, w, ratio);
      drawLabel(c, `${+f.toPrecision(4)} kHz`, 4 * ratio, y - 3 * ratio, "#8fb7c9");
    }
    const every = this.span / 5;
    for (let s = every; s < this.span; s += every)
      drawLabel(c, `-${s} s`, w - (s / this.span) * w, hh - 4 * ratio, "#8fb7c9");
  }

  describeSample(x: number, y: number): string {
    const [w, hh] = this.size,
      column = Math.floor((x / w) * this.most) - (this.most - this.count),
      at = this.frequency(1 - y / hh),
      k = Math.min(Math.floor((at * this.points) / this.rate + 0.5), this.rows - 1);
    if (column < 0 || column >= this.count || k < 0) return "";
    const level = this.columns[column * this.rows + k]! / STEPS_PER_DB,
      time = (1 - x / w) * -this.span;
    return `${(at / 1e3).toFixed(2)} kHz, ${time.toFixed(2)} s, ${level.toFixed(0)} dB re 1 uPa^2/Hz`;
  }

  /** Controls of the time span, the resolution and the frequency axis; `changed` redraws the window. */
  controls(changed: () => void): HTMLElement[] {
    const list = (
      name: string,
      title: string,
      values: number[],
      text: (v: number) => string,
      take: (v: number) => void,
    ): HTMLSelectElement => {
      const e = h(
        "select",
        {
          class: name,
          title,
          onchange: () => {
            take(Number(e.value));
            this.resize();
            changed();
          },
        },
        ...values.map((v) => h("option", { value: v }, text(v))),
      );
      return e;
    };
    const limit = (name: string, title: string, take: (kilohertz: string) => void): HTMLInputElement => {
      const e = h("input", {
        class: name,
        type: "number",
        min: 0,
        step: 1,
        placeholder: name === "low" ? "from kHz" : "to kHz",
        title,
        onchange: () => {
          take(e.value);
          changed();
        },
      });
      return e;
    };
    const span = list(
        "span",
        "Time span",
        SPANS,
        (s) => `${s} s`,
        (v) => (this.span = v),
      ),
      resolution = list(
        "points",
        "Points of a spectrum: more points separate frequencies better, fewer points times",
        RESOLUTIONS,
        (n) => `${n} points`,
        (v) => (this.points = v),
      ),
      scale: HTMLButtonElement = h(
        "button",
        {
          class: "log",
          title: "Logarithmic frequency axis",
          onclick: () => {
            this.logarithmic = !this.logarithmic;
            scale.classList.toggle("on", this.logarithmic);
            changed();
          },
        },
        "log",
      );
    span.value = String(this.span);
    resolution.value = String(this.points);
    return [
      span,
      resolution,
      limit("low", "Lower limit of the frequency axis, kHz", (v) => (this.low = Math.max(Number(v) * 1e3, 0))),
      limit(
        "high",
        "Upper limit of the frequency axis, kHz",
        (v) => (this.high = Number(v) > 0 ? Number(v) * 1e3 : Infinity),
      ),
      scale,
    ];
  }

  /** Play the newest sound, slower by a factor. A second call stops it. */
  play(slower: number): void {
    if (this.playing) {
      this.playing.stop();
      return;
    }
    const n = Math.min(this.held, Math.ceil(PLAYED_S * this.rate));
    if (!n) return;
    this.player ??= new AudioContext();
    const part = this.sound.slice(this.sound.length - n),
      loudest = part.reduce((m, v) => Math.max(m, Math.abs(v)), 1),
      wanted = this.rate / slower,
      possible = Math.min(Math.max(wanted, LOWEST_RATE), HIGHEST_RATE),
      buffer = this.player.createBuffer(1, n, possible),
      source = this.player.createBufferSource();
    buffer.getChannelData(0).set(Float32Array.from(part, (v) => (0.7 * v) / loudest));
    source.buffer = buffer;
    source.playbackRate.value = wanted / possible;
    source.connect(this.player.destination);
    source.addEventListener("ended", () => (this.playing = null));
    source.start();
    this.playing = source;
  }

  /** Stop the sound, because the window closes. */
  dispose(): void {
    this.playing?.stop();
    void this.player?.close();
    this.player = null;
  }
}
