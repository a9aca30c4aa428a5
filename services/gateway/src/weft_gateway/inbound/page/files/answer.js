// One streamed answer of /v1/chat/completions.

import { problemOf } from "./link.js";

export const LOST = "The connection ended before the answer did.";

/**
 * Ask, and call `grow(text)` with each piece. Answers {finish, usage, replica}. Throws an Error with one sentence,
 * or an AbortError after `signal`.
 */
export async function streamAnswer(model, messages, signal, grow) {
  const response = await fetch("/v1/chat/completions", {
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

/** The data of each server-sent event in a stream of bytes. */
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const data = event.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) yield data.join("\n");
    }
  }
}
