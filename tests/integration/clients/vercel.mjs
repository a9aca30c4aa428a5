// Vercel's AI SDK with its default provider, which speaks the Responses API.
import { createOpenAI } from "@ai-sdk/openai";
import { Output, generateText, isStepCount, streamText, tool } from "ai";
import { z } from "zod";

const model = createOpenAI({ baseURL: process.argv[2], apiKey: "none" })("tiny");
const ask = (what) => ({ role: "user", content: `What is the capital of ${what}?` });
const generate = (more) => generateText({ model, maxRetries: 0, ...more });

const whole = await generate({ messages: [ask("France")] });
const stream = streamText({ model, maxRetries: 0, messages: [ask("France")] });
let streamed = "";
for await (const piece of stream.textStream) streamed += piece;
const Place = z.object({ island: z.boolean(), rank: z.number().int().min(1).max(99) });
const parsed = await generate({ messages: [ask("France")], output: Output.object({ schema: Place }) });

const weather = tool({
  description: "The weather of a city.",
  inputSchema: z.object({ city: z.enum(["Paris", "Tokyo"]) }),
  execute: async ({ city }) => `sunny in ${city}`,
});
const tools = { weather };
// Two steps: the call, whose result goes back by itself, and the answer to it.
const stepped = await generate({
  messages: [ask("France")],
  tools,
  stopWhen: isStepCount(2),
  prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? "required" : "none" }),
  providerOptions: { openai: { parallelToolCalls: false } },
});

// A second turn with the messages of the first: by default it refers to what OpenAI would have stored.
const turn = { messages: [ask("France"), ...whole.response.messages, ask("Peru")] };
let refused = null;
try {
  await generate(turn);
} catch (error) {
  refused = `${error.statusCode} ${error.message}`;
}
const unstored = await generate({ ...turn, providerOptions: { openai: { store: false } } });
console.log(
  JSON.stringify({
    whole: whole.text,
    usage: [whole.usage.inputTokens, whole.usage.outputTokens],
    finish: whole.finishReason,
    streamed,
    streamedFinish: await stream.finishReason,
    parsed: parsed.output,
    call: stepped.steps[0].toolCalls.map((call) => [call.toolName, call.input]),
    result: stepped.steps[0].toolResults.map((result) => result.output),
    steps: stepped.steps.map((step) => step.finishReason),
    refused,
    turn: unstored.text,
  }),
);
