// LangChain for JavaScript over the Responses API.
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { z } from "zod";

const model = new ChatOpenAI({
  model: "tiny",
  apiKey: "none",
  configuration: { baseURL: process.argv[2] },
  useResponsesApi: true,
  maxRetries: 0,
});
const ask = (what) => new HumanMessage(`What is the capital of ${what}?`);

const whole = await model.invoke([ask("France")]);
let streamed = "";
for await (const piece of await model.stream([ask("France")])) streamed += piece.text;
const turn = await model.invoke([ask("France"), whole, ask("Peru")]);
const Place = z.object({ island: z.boolean(), rank: z.number().int().min(1).max(99) });
const parsed = await model.withStructuredOutput(Place).invoke([ask("France")]);
const weather = tool(() => "sunny", {
  name: "weather",
  description: "The weather of a city.",
  schema: z.object({ city: z.enum(["Paris", "Tokyo"]) }),
});
// Of choices given as a word, this version sends none here; that of a name it sends.
const called = await model
  .bindTools([weather], { tool_choice: "weather", parallel_tool_calls: false })
  .invoke([ask("France")]);
const [call] = called.tool_calls;
const result = new ToolMessage({ content: "sunny", tool_call_id: call.id });
const after = await model.invoke([ask("France"), called, result, ask("France")]);
console.log(
  JSON.stringify({
    whole: whole.text,
    usage: [whole.usage_metadata.input_tokens, whole.usage_metadata.output_tokens],
    streamed,
    turn: turn.text,
    parsed,
    call: [call.name, call.args],
    after: after.text,
  }),
);
