// Texts of the server and of programs, in the page's formats. The command line shows them unchanged.

import { formatTime } from "./dom";
import { formatOffset } from "./geodesy";

const TIME = /\b(at|from|until) (\d+(?:\.\d+)?) s\b/g;
const RETURN = /^returned from (\d+(?:\.\d+)?) s to (\d+(?:\.\d+)?) s$/;
const OFFSET = /(-?\d+\.\d) m (north|east)\b/g;

/** Show times as h:mm:ss.s, and positions with N, S, E and W. */
export function readableText(text: string): string {
  return text
    .replace(/^mission: mission\b/, "mission")
    .replace(
      RETURN,
      (_, ...times: string[]) =>
        `returned from ${times
          .slice(0, 2)
          .map((t) => formatTime(+t))
          .join(" to ")}`,
    )
    .replace(TIME, (_, word: string, seconds: string) => `${word} ${formatTime(Number(seconds))}`)
    .replace(OFFSET, (_, metres: string, axis: string) =>
      formatOffset(Number(metres), axis === "north" ? "NS" : "EW", 1),
    );
}
