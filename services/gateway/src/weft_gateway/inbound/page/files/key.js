// The key that this tab shows to the gateway, kept until the tab closes, and the reading of streamed answers.

const KEPT = "weft-key";

/** Keep a key for this tab. @param {string} text */
export function keepKey(text) {
  sessionStorage.setItem(KEPT, text);
}

/**
 * `fetch`, with the key where there is one.
 * @param {string} path @param {Omit<RequestInit, "headers"> & {headers?: Record<string, string>}} [options]
 */
export function ask(path, { headers = {}, ...rest } = {}) {
  const key = sessionStorage.getItem(KEPT);
  return fetch(path, { ...rest, headers: key ? { ...headers, authorization: `Bearer ${key}` } : headers });
}

/** Whether an error says that a key is needed, or another one. @param {any} error */
export const asksForKey = (error) => error.status === 401 || error.code === "scope_missing";

/** The data of each server-sent event in a stream of bytes. @param {any} body @returns {AsyncGenerator<string>} */
export async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join("\n");
    }
  }
}
