// What a page may do, and the reason why not.

import type { HelloMessage } from "./page_protocol";

/** Reason why this page cannot command the simulation; "": it can. */
export function whyNoCommands(hello: HelloMessage): string {
  if (hello.kind === "replay") return "a replay accepts no commands: its bodies move as they were logged";
  return hello.kind === "live" && hello.control
    ? ""
    : "to send commands, you need a running server on this machine and `wavesim viz --control`";
}
