"""Tools as the Responses API names them, in the form of chats: there they are nested, here flat."""

from typing import Any, Literal

import msgspec

from weft_gateway.domain.openai.decoding import converted
from weft_gateway.domain.openai.fields import Neutral, refuse_unless_neutral, unsupported
from weft_gateway.domain.openai.tools import Allowed, Choice, Function, Named, Tool


class FlatTool(msgspec.Struct, forbid_unknown_fields=True):
    """A function. `output_schema` says what the caller's own function gives, and is taken without effect."""

    type: str
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    allowed_callers: list[str] | None = None
    defer_loading: bool | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class FlatChoice(msgspec.Struct, forbid_unknown_fields=True):
    """A `tool_choice` given as an object: a function, or those that are allowed."""

    type: str
    name: str | None = None
    mode: Literal["auto", "required"] | None = None
    tools: list[dict[str, Any]] | None = None


_REFUSED: tuple[Neutral, ...] = (
    ("allowed_callers", (["direct"],), "only the model calls"),
    ("defer_loading", (False,), "all tools are told to the model"),
    ("is_async", (False,), "a call waits for its output"),
)


def nested_tools(tools: list[dict[str, Any]] | None) -> list[Tool]:
    """The tools of a request. Raises Refused."""
    return [_tool(f"tools[{place}]", tool) for place, tool in enumerate(tools or ())]


def nested_choice(choice: str | dict[str, Any] | None) -> str | Choice | None:
    """The `tool_choice` of a request. Raises Refused."""
    if choice is None or isinstance(choice, str):
        return choice
    if choice.get("type") not in ("function", "allowed_tools"):
        raise unsupported("tool_choice", "an object names a function or allowed tools")
    match converted(choice, FlatChoice, "tool_choice"):
        case FlatChoice(type="function", name=str(name)):
            return Choice("function", function=Named(name))
        case FlatChoice(type="allowed_tools", mode=mode, tools=list(tools)) if mode is not None:
            named = [{"function": {"name": each["name"]}} if "name" in each else each for each in tools]
            return Choice("allowed_tools", allowed_tools=Allowed(mode, named))
        case _:
            raise unsupported("tool_choice", "a function needs its `name`, allowed tools `mode` and `tools`")


def _tool(at: str, tool: dict[str, Any]) -> Tool:
    if (kind := tool.get("type")) != "function":
        raise unsupported(at, f"it is of type {str(kind)[:40]!r}, and only functions are called")
    found = converted(tool, FlatTool, at)
    refuse_unless_neutral(found, _REFUSED, at)
    return Tool("function", Function(found.name, found.description, found.parameters, found.strict))
