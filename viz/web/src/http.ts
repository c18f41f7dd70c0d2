// Requests to the viewer's server; errors are shown to the user.

import { toast } from "./dom";
import type { ErrorAnswer, ReceivedFile } from "./page_protocol";

const NO_ANSWER = "no answer from the viewer's server";

/** The answer, or the reason why there is none. */
async function answerOf<T>(response: Response): Promise<T | ErrorAnswer> {
  if (!response.headers.get("Content-Type")?.startsWith("application/json"))
    return { error: (await response.text()).slice(0, 200) };
  return (await response.json()) as T | ErrorAnswer;
}

async function read<T>(response: Response): Promise<T | null> {
  const answer = await answerOf<T>(response);
  if (response.ok) return answer as T;
  toast((answer as ErrorAnswer).error, true);
  return null;
}

export async function getJson<T>(url: string): Promise<T | null> {
  try {
    return await read<T>(await fetch(url));
  } catch {
    toast(NO_ANSWER, true);
    return null;
  }
}

function post(url: string, body: unknown, signal?: AbortSignal): Promise<Response> {
  const headers = { "Content-Type": "application/json" };
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body), ...(signal ? { signal } : {}) });
}

/** Post a request; returns the answer, or the reason why there is none, which is not shown. */
export async function requestJson<T extends object>(
  url: string,
  body: unknown,
  signal: AbortSignal,
): Promise<T | ErrorAnswer> {
  try {
    return await answerOf<T>(await post(url, body, signal));
  } catch {
    return { error: NO_ANSWER };
  }
}

export async function postJson<T>(url: string, body: unknown): Promise<T | null> {
  try {
    return await read<T>(await post(url, body));
  } catch {
    toast(NO_ANSWER, true);
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
    toast(NO_ANSWER, true);
    return null;
  }
}

/** Bytes of a base64 text. */
export function decodeBase64(text: string): ArrayBuffer {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
}
