// One streamed answer of /v1/chat/completions.

import { ask, eventsOf } from "./key.js";
import { problemOf } from "./link.js";

export const LOST = "The connection ended before the answer did.";

/**
 * Ask, and call `grow(text)` with each piece. Answers {finish, usage, replica}. Throws an Error with one sentence,
 * or an AbortError after `signal`.
 */
export async function streamAnswer(model, messages, signal, grow) {
  const response = await ask("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model, messages, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw await problemOf(response);
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
