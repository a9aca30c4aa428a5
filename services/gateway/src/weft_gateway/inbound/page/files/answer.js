// One streamed answer of /v1/chat/completions.

import { ask, eventsOf } from "./key.js";
import { problemOf } from "./link.js";

export const LOST = "The connection ended before the answer did.";

/** @typedef {{finish: string | null, usage: {completion_tokens: number} | null, replica: string | null}} Ending */

/**
 * Ask, and call `grow(text)` with each piece. Throws an Error with one sentence, or an AbortError after `signal`.
 * @param {string} model
 * @param {{role: string, content: string}[]} messages
 * @param {AbortSignal} signal
 * @param {(text: string) => void} grow
 * @returns {Promise<Ending>}
 */
export async function streamAnswer(model, messages, signal, grow) {
  const response = await ask("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", "x-weft-explain": "1" }, // who sees this page may read the status
    body: JSON.stringify({ model, messages, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw await problemOf(response);
  /** @type {Ending} */
  const ending = { finish: null, usage: null, replica: response.headers.get("x-weft-replica") };
  for await (const data of eventsOf(response.body)) {
    if (data === "[DONE]") return ending;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Error(chunk.error.message);
    ending.usage = chunk.usage ?? ending.usage;
    for (const choice of chunk.choices) {
      if (choice.delta.content) grow(choice.delta.content);
      ending.finish = choice.finish_reason ?? ending.finish;
    }
  }
  throw new Error(LOST);
}
