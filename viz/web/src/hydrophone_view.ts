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
import { Fourier } from "./fourier";

export const POINTS = 512; // of a spectrum
const HOP = POINTS / 2;
const [LOWEST_RATE, HIGHEST_RATE] = [8000, 96000]; // sampling rates that every browser plays, Hz
const KEPT_S = 5; // time that the window shows and plays
export const STEPS_PER_DB = 1.5; // steps of a spectrum level from 0 to 170 dB re 1 uPa^2/Hz

export class HydrophoneView implements ImagePainter {
  private rate = 0;
  private sound = new Float32Array(0); // newest samples, in full scales
  private held = 0; // number of these samples that contain sound
  private columns = new Uint8Array(0); // spectra, one after the other, each from 0 Hz up
  private count = 0; // number of spectra
  private pending = 0; // number of newest samples that have no spectrum yet
  private next = NaN; // time at which the next block has to begin, s
  private reference = 0; // spectrum level of a full scale in one step of frequency, dB
  private player: AudioContext | null = null;
  private playing: AudioBufferSourceNode | null = null;
  private readonly fourier = new Fourier(POINTS);
  private readonly layer = document.createElement("canvas");
  private size: [number, number] = [1, 1];

  take(p: SonarImage): void {
    const { head, sound } = p,
      rate = head.frequency;
    if (rate !== this.rate) {
      this.rate = rate;
      this.sound = new Float32Array(Math.ceil(KEPT_S * rate));
      this.columns = new Uint8Array(Math.floor((KEPT_S * rate) / HOP) * HOP);
      this.clear();
    }
    const begin = head.time - sound.length / rate;
    if (Math.abs(begin - this.next) > 1.5 / rate) this.clear(); // blocks are missing
    this.next = head.time;
    this.reference = 20 * Math.log10(head.span) - head.floor - head.gain - 10 * Math.log10(rate);
    const n = Math.min(sound.length, this.sound.length);
    this.sound.copyWithin(0, n);
    for (let k = 0; k < n; k++) this.sound[this.sound.length - n + k] = sound[sound.length - n + k]! / 32768;
    this.held = Math.min(this.held + n, this.sound.length);
    this.pending += n;
    while (this.pending >= POINTS) {
      this.addSpectrum(this.sound.length - this.pending);
      this.pending -= HOP;
    }
  }

  private addSpectrum(first: number): void {
    const power = this.fourier.power(this.sound.subarray(Math.max(first, 0), Math.max(first, 0) + POINTS)),
      most = this.columns.length / HOP;
    if (this.count === most) {
      this.columns.copyWithin(0, HOP);
      this.count--;
    }
    const at = this.count++ * HOP;
    for (let k = 0; k < HOP; k++) {
      const level = this.reference + 10 * Math.log10(power[k]! + 1e-30);
      this.columns[at + k] = Math.min(Math.max(Math.round(STEPS_PER_DB * level), 0), 255);
    }
  }

  clear(): void {
    this.count = this.held = this.pending = 0;
    this.next = NaN;
  }

  limits(): [number, number] | null {
    return this.count ? automaticLimits(this.columns.subarray(0, this.count * HOP)) : null;
  }

  paint(c: CanvasRenderingContext2D, w: number, h: number, style: ImageStyle): void {
    c.fillStyle = "#04101a";
    c.fillRect(0, 0, w, h);
    this.size = [w, h];
    const most = this.columns.length / HOP;
    if (!this.count) return;
    this.layer.width = this.count;
    this.layer.height = HOP;
    const layer = context2d(this.layer),
      image = layer.createImageData(this.count, HOP),
      pixels = new Uint32Array(image.data.buffer);
    for (let x = 0; x < this.count; x++)
      for (let k = 0; k < HOP; k++) pixels[(HOP - 1 - k) * this.count + x] = style.colours[this.columns[x * HOP + k]!]!;
    layer.putImageData(image, 0, 0);
    const wide = (w * this.count) / most;
    c.drawImage(this.layer, w - wide, 0, wide, h);
    c.font = `${11 * style.ratio}px system-ui, sans-serif`;
    const top = this.rate / 2e3,
      step = rangeMarkStep(top);
    for (let f = step; f < top; f += step) {
      const y = h - (f / top) * h;
      c.fillStyle = "#9fdcff30";
      c.fillRect(0, y, w, style.ratio);
      drawLabel(c, `${+f.toPrecision(4)} kHz`, 4 * style.ratio, y - 3 * style.ratio, "#8fb7c9");
    }
    for (let s = 1; s < KEPT_S; s++) drawLabel(c, `-${s} s`, w - (s / KEPT_S) * w, h - 4 * style.ratio, "#8fb7c9");
  }

  describeSample(x: number, y: number): string {
    const [w, h] = this.size,
      most = this.columns.length / HOP,
      column = Math.floor((x / w) * most) - (most - this.count),
      k = Math.floor((1 - y / h) * HOP);
    if (column < 0 || column >= this.count || k < 0 || k >= HOP) return "";
    const level = this.columns[column * HOP + k]! / STEPS_PER_DB;
    const frequency = (k * this.rate) / POINTS / 1e3,
      time = (1 - x / w) * -KEPT_S;
    return `${frequency.toFixed(2)} kHz, ${time.toFixed(2)} s, ${level.toFixed(0)} dB re 1 uPa^2/Hz`;
  }

  /** Play the sound in the window, slower by a factor. A second call stops it. */
  play(slower: number): void {
    if (this.playing) {
      this.playing.stop();
      return;
    }
    if (!this.held) return;
    this.player ??= new AudioContext();
    const part = this.sound.slice(this.sound.length - this.held),
      loudest = part.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-9),
      wanted = this.rate / slower,
      possible = Math.min(Math.max(wanted, LOWEST_RATE), HIGHEST_RATE),
      buffer = this.player.createBuffer(1, part.length, possible),
      source = this.player.createBufferSource();
    buffer.getChannelData(0).set(part.map((v) => (0.7 * v) / loudest));
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
