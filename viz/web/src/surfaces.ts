// Surfaces on which diagrams are drawn: a canvas of the page, or the text of an SVG file. Both draw the same picture.

export type Point = [x: number, y: number];

export interface StrokeStyle {
  alpha?: number;
  dash?: number[];
  width?: number; // px
}

export interface Surface {
  readonly w: number;
  readonly h: number;
  line(points: Point[], colour: string, style?: StrokeStyle): void;
  area(points: Point[], colour: string, alpha: number): void;
  box(x: number, y: number, w: number, h: number, colour: string, alpha?: number): void;
  /** Text that begins at x, centred vertically at y. */
  text(text: string, x: number, y: number, colour: string): void;
  /** Draw only inside of a rectangle until `unclip`. */
  clip(x: number, y: number, w: number, h: number): void;
  unclip(): void;
}

const FONT_PX = 11,
  FONT = "system-ui, sans-serif";

export class CanvasSurface implements Surface {
  constructor(
    private readonly c: CanvasRenderingContext2D,
    readonly w: number,
    readonly h: number,
  ) {
    c.clearRect(0, 0, w, h);
    c.font = `${FONT_PX}px ${FONT}`;
    c.textBaseline = "middle";
  }

  private path(points: Point[]): void {
    this.c.beginPath();
    points.forEach(([x, y], k) => (k ? this.c.lineTo(x, y) : this.c.moveTo(x, y)));
  }
  line(points: Point[], colour: string, { alpha = 1, dash = [], width = 1 }: StrokeStyle = {}): void {
    this.path(points);
    this.c.strokeStyle = colour;
    this.c.globalAlpha = alpha;
    this.c.lineWidth = width;
    this.c.setLineDash(dash);
    this.c.stroke();
    this.c.setLineDash([]);
    this.c.globalAlpha = 1;
  }
  area(points: Point[], colour: string, alpha: number): void {
    this.path(points);
    this.c.fillStyle = colour;
    this.c.globalAlpha = alpha;
    this.c.fill();
    this.c.globalAlpha = 1;
  }
  box(x: number, y: number, w: number, h: number, colour: string, alpha = 1): void {
    this.c.fillStyle = colour;
    this.c.globalAlpha = alpha;
    this.c.fillRect(x, y, w, h);
    this.c.globalAlpha = 1;
  }
  text(text: string, x: number, y: number, colour: string): void {
    this.c.fillStyle = colour;
    this.c.fillText(text, x, y);
  }
  clip(x: number, y: number, w: number, h: number): void {
    this.c.save();
    this.c.beginPath();
    this.c.rect(x, y, w, h);
    this.c.clip();
  }
  unclip(): void {
    this.c.restore();
  }
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (c) => ESCAPES[c]!);
const px = (v: number): string => String(+v.toFixed(2));

export class SvgSurface implements Surface {
  private readonly parts: string[] = [];
  private clips = 0;

  constructor(
    readonly w: number,
    readonly h: number,
    background: string,
  ) {
    this.box(0, 0, w, h, background);
  }

  private points(points: Point[]): string {
    return points.map(([x, y]) => `${px(x)},${px(y)}`).join(" ");
  }
  line(points: Point[], colour: string, { alpha = 1, dash = [], width = 1 }: StrokeStyle = {}): void {
    const dashes = dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "",
      opacity = alpha < 1 ? ` stroke-opacity="${px(alpha)}"` : "";
    this.parts.push(
      `<polyline points="${this.points(points)}" fill="none" stroke="${colour}" stroke-width="${width}"${dashes}${opacity}/>`,
    );
  }
  area(points: Point[], colour: string, alpha: number): void {
    this.parts.push(`<polygon points="${this.points(points)}" fill="${colour}" fill-opacity="${px(alpha)}"/>`);
  }
  box(x: number, y: number, w: number, h: number, colour: string, alpha = 1): void {
    const opacity = alpha < 1 ? ` fill-opacity="${px(alpha)}"` : "";
    this.parts.push(`<rect x="${px(x)}" y="${px(y)}" width="${px(w)}" height="${px(h)}" fill="${colour}"${opacity}/>`);
  }
  text(text: string, x: number, y: number, colour: string): void {
    this.parts.push(`<text x="${px(x)}" y="${px(y + 0.35 * FONT_PX)}" fill="${colour}">${escaped(text)}</text>`);
  }
  clip(x: number, y: number, w: number, h: number): void {
    const id = `clip${++this.clips}`,
      shape = `<rect x="${px(x)}" y="${px(y)}" width="${px(w)}" height="${px(h)}"/>`;
    this.parts.push(`<clipPath id="${id}">${shape}</clipPath><g clip-path="url(#${id})">`);
  }
  unclip(): void {
    this.parts.push("</g>");
  }
  /** The whole file. */
  toString(): string {
    const [w, h] = [px(this.w), px(this.h)];
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}" ` +
      `font-family="${FONT}" font-size="${FONT_PX}">\n${this.parts.join("\n")}\n</svg>\n`
    );
  }
}
