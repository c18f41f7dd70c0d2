// Requests to the viewer's server; errors are shown to the user.

import { toast } from "./dom";
import type { ErrorAnswer, ReceivedFile } from "./page_protocol";

async function read<T>(response: Response): Promise<T | null> {
  if (response.headers.get("Content-Type")?.startsWith("application/json")) {
    const body = (await response.json()) as T | ErrorAnswer;
    if (response.ok) return body as T;
    toast((body as ErrorAnswer).error, true);
  } else toast((await response.text()).slice(0, 200), true);
  return null;
}

export async function getJson<T>(url: string): Promise<T | null> {
  try {
    return await read<T>(await fetch(url));
  } catch {
    toast("no answer from the viewer's server", true);
    return null;
  }
}

export async function postJson<T>(url: string, body: unknown): Promise<T | null> {
  try {
    return await read<T>(
      await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }),
    );
  } catch {
    toast("no answer from the viewer's server", true);
    return null;
  }
}

const MOST_UPLOAD = 64; // MiB, as the server states it

/** Upload a file under a name; returns its key for later requests. */
export async function uploadFile(file: File, name = file.name): Promise<ReceivedFile | null> {
  if (file.size > MOST_UPLOAD * 2 ** 20) {
    toast(`${file.name} is larger than ${MOST_UPLOAD} MiB, which is the maximum`, true);
    return null;
  }
  try {
    return await read<ReceivedFile>(
      await fetch(`/api/upload?file=${encodeURIComponent(name)}`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream" },
        body: file,
      }),
    );
  } catch {
    toast("no answer from the viewer's server", true);
    return null;
  }
}

/** Bytes of a base64 text. */
export function decodeBase64(text: string): ArrayBuffer {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}
