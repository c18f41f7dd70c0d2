// How canvases are drawn where there is no graphics processor.

/** Whether there is none: then smooth edges cost more than they are worth, and canvases are drawn faster without it. */
export const SOFTWARE = typeof document !== "undefined" && drawnBySoftware();

function drawnBySoftware(): boolean {
  const gl = document.createElement("canvas").getContext("webgl2");
  const info = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = gl && info ? String(gl.getParameter(info.UNMASKED_RENDERER_WEBGL)) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

/** What draws on a canvas: by the processor itself where a graphics processor would only be played by it (many times slower). */
export function pen(canvas: HTMLCanvasElement): CanvasRenderingContext2D { return canvas.getContext("2d", { willReadFrequently: SOFTWARE })!; }
