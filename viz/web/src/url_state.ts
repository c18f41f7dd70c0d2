// Exports from the page: files, pictures, videos, and the link to the current view.

import { cssVariable, h, toggleClass, toast } from "./dom";
import { context2d } from "./canvas";
import { type Bookmark, checkBookmarks } from "./bookmarks";
import { checkLayout, type Layout } from "./layout";
import { isPropagationView, type PropagationView } from "./propagation_view";

/** Save a file on the user's machine. */
export function downloadBlob(data: Blob, name: string): void {
  const link = h("a", { href: URL.createObjectURL(data), download: name });
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const FILM = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"],
  FILM_FPS = 25;

/** Pictures and videos of the stage: its visible canvases, composed. */
export class ViewRecorder {
  private readonly whole = document.createElement("canvas");
  private recorder: MediaRecorder | null = null;
  readonly buttons: HTMLElement[];
  private readonly film: HTMLButtonElement;

  constructor(
    private readonly stage: HTMLElement,
    private readonly canvases: () => HTMLCanvasElement[],
    private readonly draw: () => void,
    private readonly name: () => string,
  ) {
    this.film = h(
      "button",
      { id: "film", title: "Record the view as a video (WebM); press again to stop", onclick: () => this.roll() },
      "● video",
    );
    this.buttons = [
      h("button", { id: "png", title: "Save the view as an image (PNG)", onclick: () => this.shoot() }, "PNG"),
      this.film,
    ];
  }

  /** Compose the canvases right after drawing: WebGL does not keep its image. */
  private compose(): void {
    const [base] = this.canvases(),
      c = context2d(this.whole);
    const wide = Math.max(...this.canvases().map((o) => o.width), 1),
      high = Math.round((wide * this.stage.clientHeight) / Math.max(this.stage.clientWidth, 1));
    if (!base || !high) return;
    if (!this.recorder && (this.whole.width !== wide || this.whole.height !== high))
      [this.whole.width, this.whole.height] = [wide, high];
    const room = this.stage.getBoundingClientRect(),
      f = this.whole.width / room.width;
    c.fillStyle = cssVariable("--bg");
    c.fillRect(0, 0, this.whole.width, this.whole.height);
    for (const canvas of this.canvases()) {
      const box = canvas.getBoundingClientRect();
      if (canvas.width && canvas.height)
        c.drawImage(canvas, (box.left - room.left) * f, (box.top - room.top) * f, box.width * f, box.height * f);
    }
  }

  private shoot(): void {
    this.draw();
    this.compose();
    this.whole.toBlob((data) => {
      if (data) downloadBlob(data, `${this.name()}.png`);
      else toast("this browser cannot create the image", true);
    }, "image/png");
  }

  /** True while a video is recorded: every picture is then drawn, even if nothing moves. */
  get rolling(): boolean {
    return this.recorder !== null;
  }

  /** Record a drawn picture. */
  drawn(): void {
    if (this.recorder) this.compose();
  }

  private roll(): void {
    if (this.recorder) {
      this.recorder.stop();
      return;
    }
    const type = typeof MediaRecorder === "undefined" ? undefined : FILM.find((t) => MediaRecorder.isTypeSupported(t));
    if (!type) {
      toast("this browser cannot record videos", true);
      return;
    }
    this.draw();
    this.compose();
    const about = this.film.title,
      pieces: Blob[] = [],
      recorder = new MediaRecorder(this.whole.captureStream(FILM_FPS), { mimeType: type, videoBitsPerSecond: 6e6 });
    recorder.ondataavailable = (e) => {
      if (e.data.size) pieces.push(e.data);
      this.film.title = `recording: ${Math.round(pieces.reduce((sum, piece) => sum + piece.size, 0) / 1024)} kB`;
    };
    recorder.onstop = () => {
      this.recorder = null;
      this.film.title = about;
      toggleClass(this.film, "on", false);
      downloadBlob(new Blob(pieces, { type: "video/webm" }), `${this.name()}.webm`);
    };
    recorder.start(1000);
    this.recorder = recorder;
    toggleClass(this.film, "on", true);
    toast("recording; press ● video again to stop");
  }
}

/** View as encoded in a link: a layout, and the moment and place that it shows. Numbers are in m, s and NED. */
export interface ViewState extends Layout {
  body: string;
  time: number | null;
  eye: number[];
  target: number[];
  middle: number[];
  scale: number;
  heights?: number;
  bookmarks?: Bookmark[];
  /** What the propagation panel shows, if it is open. */
  propagation?: PropagationView;
}
const HEAD = "#view=";

export function viewLink(view: ViewState): string {
  return `${HEAD}${encodeURIComponent(JSON.stringify(view, (_k, v: unknown) => (typeof v === "number" ? +v.toPrecision(7) : v)))}`;
}

/** Return the view of a link; null if the address has none; otherwise the reason why it is invalid. */
export function parseViewLink(hash: string): ViewState | string | null {
  if (!hash.startsWith(HEAD)) return null;
  let v: ViewState;
  try {
    v = JSON.parse(decodeURIComponent(hash.slice(HEAD.length))) as ViewState;
  } catch {
    return "it is incomplete";
  }
  const wrong = checkLayout(v);
  if (wrong) return wrong;
  const bookmarks = v.bookmarks === undefined ? "" : checkBookmarks(v.bookmarks);
  if (bookmarks) return bookmarks;
  if (v.propagation !== undefined && !isPropagationView(v.propagation)) return "the 'propagation' part is invalid";
  const numbers = (a: unknown, n: number): boolean =>
    Array.isArray(a) && a.length === n && a.every((x) => Number.isFinite(x));
  const good =
    typeof v.body === "string" &&
    numbers(v.eye, 3) &&
    numbers(v.target, 3) &&
    numbers(v.middle, 2) &&
    v.scale > 0 &&
    (v.time === null || Number.isFinite(v.time));
  return good ? v : "a number in the view is missing or invalid";
}
