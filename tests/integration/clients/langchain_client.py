# pyright: basic, reportMissingImports=false
"""LangChain for Python over the Responses API; it runs in an environment of its own."""

import json
import sys
from typing import Literal

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field


class Place(BaseModel):
    """A place."""

    island: bool
    rank: int = Field(ge=1, le=99)


@tool
def weather(city: Literal["Paris", "Tokyo"]) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


def ask(what: str) -> HumanMessage:
    return HumanMessage(f"What is the capital of {what}?")


def a_model(**more: object) -> ChatOpenAI:
    return ChatOpenAI(model="tiny", api_key="none", base_url=sys.argv[1], use_responses_api=True, max_retries=0, **more)


model = a_model()
whole = model.invoke([ask("France")])
streamed = [piece.text for piece in model.stream([ask("France")])]
turn = model.invoke([ask("France"), whole, ask("Peru")])
parsed = model.with_structured_output(Place).invoke([ask("France")])
called = model.bind_tools([weather], tool_choice="any", parallel_tool_calls=False).invoke([ask("France")])
[call] = called.tool_calls
result = ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"])
after = model.bind_tools([weather], tool_choice="none").invoke([ask("France"), called, result, ask("France")])
try:
    a_model(use_previous_response_id=True).invoke([ask("France"), whole, ask("Peru")])
    refused = None
except Exception as error:
    refused = str(error)
print(
    json.dumps(
        {
            "whole": whole.text,
            "usage": [whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]],
            "streamed": "".join(streamed),
            "turn": turn.text,
            "parsed": parsed.model_dump(),
            "call": [call["name"], call["args"]],
            "after": after.text,
            "refused": refused,
        }
    )
)
