// Connection to the viewer's server that is opened while the other scripts load. It keeps the messages.

type Message = MessageEvent<ArrayBuffer | string>;
interface EarlySocket {
  socket: WebSocket;
  messages: Message[];
}

/** Open a websocket to the viewer's server. ``first``: details and history are sent when the page requests them. */
export function connect(first = false): WebSocket {
  const scheme = location.protocol === "https:" ? "wss" : "ws",
    socket = new WebSocket(`${scheme}://${location.host}/ws${first ? "?first" : ""}`);
  socket.binaryType = "arraybuffer";
  return socket;
}

let early: EarlySocket | null = typeof document === "undefined" ? null : open();

function open(): EarlySocket {
  const socket = connect(true),
    messages: Message[] = [];
  socket.onmessage = (event: Message) => messages.push(event);
  performance.mark("socket");
  return { socket, messages };
}

/** Return the early socket with the messages so far, once; null: it was taken, or is closed. */
export function takeEarlySocket(): EarlySocket | null {
  const found = early;
  early = null;
  return found && found.socket.readyState <= WebSocket.OPEN ? found : null;
}
