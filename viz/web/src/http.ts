// Requests to the viewer's server; errors are shown to the user.

import { toast } from "./dom";
import type { ErrorAnswer } from "./page_protocol";

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
