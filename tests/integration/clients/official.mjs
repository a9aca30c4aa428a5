// OpenAI's own client: whole, streamed, parsed, a tool with a second turn, and what is refused.
import OpenAI from "openai";
import { zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });
const model = "tiny";
const ask = (what) => ({ role: "user", content: `What is the capital of ${what}?` });
const refusal = async (asking) => {
  try {
    await asking;
    return null;
  } catch (error) {
    return `${error.status} ${error.message}`;
  }
};

const whole = await client.responses.create({ model, input: [ask("France")] });
const stream = client.responses.stream({ model, input: [ask("France")] });
const events = [];
for await (const event of stream) events.push(event.type);
const turn = await client.responses.create({ model, input: [ask("France"), ...whole.output, ask("Peru")] });
const Place = z.object({ island: z.boolean(), rank: z.number().int().min(1).max(99) });
const parsed = await client.responses.parse({ model, input: "x", text: { format: zodTextFormat(Place, "place") } });
const parameters = {
  type: "object",
  properties: { city: { enum: ["Paris", "Tokyo"] } },
  required: ["city"],
  additionalProperties: false,
};
const tools = [{ type: "function", name: "weather", parameters, strict: true }];
const called = await client.responses.create({
  model,
  input: [ask("France")],
  tools,
  tool_choice: "required",
  parallel_tool_calls: false,
});
const [call] = called.output;
const result = { type: "function_call_output", call_id: call.call_id, output: "sunny" };
const after = await client.responses.create({
  model,
  input: [ask("France"), ...called.output, result, ask("France")],
  tools,
  tool_choice: "none",
});
console.log(
  JSON.stringify({
    whole: whole.output_text,
    usage: whole.usage,
    streamed: (await stream.finalResponse()).output_text,
    events: [...new Set(events)],
    turn: turn.output_text,
    parsed: parsed.output_parsed,
    call: [call.name, JSON.parse(call.arguments)],
    after: after.output_text,
    stored: await refusal(client.responses.create({ model, input: "x", store: true })),
    previous: await refusal(client.responses.create({ model, input: "x", previous_response_id: whole.id })),
    kept: await refusal(client.responses.retrieve(whole.id)),
  }),
);
