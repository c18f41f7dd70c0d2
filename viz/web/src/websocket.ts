// Websocket: frames are binary (see wavesim_viz/frame.py), all other messages are JSON.

import { connect, takeEarlySocket } from "./early_socket";
import { decodeMosaicTile } from "./mosaic";
import { decodeSonarImage, type SonarImage } from "./sonar_image";
import {
  BODY_WIDTH,
  type DriveRequest,
  type FenceInfo,
  type PageRequest,
  type ServerMessage,
  SIGNAL_WIDTH,
  type VehicleCommandRequest,
} from "./page_protocol";

export interface Frame {
  state: number;
  time: number;
  tick: number;
  speed: number;
  factor: number;
  lateness: number;
  latenessMax: number;
  late: number;
  roster: number;
  level: number;
  jumps: number;
  bodies: Float32Array;
  signals: Float32Array;
}
const HEAD = 64,
  MAGIC = 0x31465657;

export function decodeFrame(data: ArrayBuffer): Frame | null {
  if (data.byteLength < HEAD) return null;
  const v = new DataView(data);
  if (v.getUint32(0, true) !== MAGIC) return null;
  const n = v.getUint32(48, true),
    m = v.getUint32(52, true);
  if (data.byteLength !== HEAD + 4 * (BODY_WIDTH * n + SIGNAL_WIDTH * m)) return null;
  return {
    state: v.getUint32(4, true),
    time: v.getFloat64(8, true),
    tick: v.getFloat64(16, true),
    speed: v.getFloat32(24, true),
    factor: v.getFloat32(28, true),
    lateness: v.getFloat32(32, true),
    latenessMax: v.getFloat32(36, true),
    late: v.getUint32(40, true),
    roster: v.getUint32(44, true),
    level: v.getFloat32(56, true),
    jumps: v.getUint32(60, true),
    bodies: new Float32Array(data, HEAD, BODY_WIDTH * n),
    signals: new Float32Array(data, HEAD + 4 * BODY_WIDTH * n, SIGNAL_WIDTH * m),
  };
}

/** A websocket that reconnects automatically. */
export class ViewerSocket {
  private socket: WebSocket | null = null;
  private tries = 0;
  frames = 0;

  constructor(
    private readonly onFrame: (frame: Frame) => void,
    private readonly onMessage: (message: ServerMessage) => void,
    private readonly onState: (connected: boolean) => void,
    private readonly onPicture: (picture: SonarImage) => void,
    private readonly onMosaic: (tile: NonNullable<ReturnType<typeof decodeMosaicTile>>) => void,
    private readonly onError: (part: string, error: unknown) => void,
  ) {
    this.open();
  }

  private open(): void {
    const early = takeEarlySocket(),
      socket = early?.socket ?? connect();
    const opened = (): void => {
      this.tries = 0;
      this.onState(true);
    };
    const received = (event: MessageEvent<ArrayBuffer | string>): void => {
      try {
        // one message that cannot be shown must not lose the next one
        if (typeof event.data === "string") this.onMessage(JSON.parse(event.data) as ServerMessage);
        else {
          const frame = decodeFrame(event.data),
            picture = frame ? null : decodeSonarImage(event.data);
          const tile = frame || picture ? null : decodeMosaicTile(event.data);
          if (tile) this.onMosaic(tile);
          if (frame) {
            this.frames++;
            this.onFrame(frame);
          } else if (picture) this.onPicture(picture);
        }
      } catch (error) {
        this.onError("a message from the viewer's server", error);
      }
    };
    socket.onopen = opened;
    socket.onmessage = received;
    if (early)
      // after the page is complete
      queueMicrotask(() => {
        if (socket.readyState === WebSocket.OPEN) opened();
        early.messages.forEach(received);
      });
    socket.onclose = () => {
      this.onState(false);
      window.setTimeout(() => this.open(), Math.min(500 * 2 ** this.tries++, 5000));
    };
    this.socket = socket;
  }

  send(message: PageRequest): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
  watch(row: number | null): void {
    this.send({ do: "watch", row });
  }
  /** Request the details of the scene and the history. */
  details(): void {
    this.send({ do: "details" });
  }
  pictures(sonars: [row: number, name: string, channel: number][]): void {
    this.send({ do: "pictures", sonars });
  }
  fault(row: number, part: string, kind: string, amount: string, field: string): void {
    this.send({ do: "fault", row, part, kind, amount, field });
  }
  order(verb: string, row: number | null, values: Record<string, number | number[]>): void {
    this.send({ do: "order", verb, row, values });
  }
  /** Add, replace or remove fences of the running server. */
  fences(changes: FenceInfo[]): void {
    this.send({ do: "fences", changes });
  }
  command(command: Omit<VehicleCommandRequest, "do">): void {
    this.send({ do: "command", ...command });
  }
  drive(body: string, axes: number[] | null, mapping: DriveRequest["mapping"]): void {
    this.send({ do: "drive", body, axes, mapping });
  }
  acknowledge(alarm: number | null): void {
    this.send({ do: "acknowledge", alarm });
  }
  /** Suppress an alarm for a simulation time; 0 returns it to service. */
  shelve(alarm: number, seconds: number): void {
    this.send({ do: "shelve", alarm, seconds });
  }
  /** Request the mosaics of all sonars, or no longer. */
  mosaic(on: boolean): void {
    this.send({ do: "mosaic", on });
  }
  control(verb: string, value?: number): void {
    this.send({ do: "control", verb, value: value ?? null });
  }
}
