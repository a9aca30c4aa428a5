"""Tools: what the model is told of them, and the JSON schema that its calls fit.

The way is one for all models: a system message lists the tools, and an answer that begins as a call, with
`{"name": …, "arguments": {…}}`, is that call, and each further line another one. The engine constrains them.
"""

import re
from typing import Any, Literal, NamedTuple

import msgspec

from weft_gateway.domain.inference_request import Constraint, Message
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.openai.response_format import schema_text
from weft_gateway.domain.refused import Refused

MAX_TOOLS = 128
MAX_CALLS = 32
"""Of one answer. OpenAI names no bound; without one a model that repeats itself would call until its context ends."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_encode = msgspec.json.Encoder().encode


class Function(msgspec.Struct, forbid_unknown_fields=True):
    """A function that may be called. `strict` needs no heed: every call fits its schema."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    function: Function | None = None
    custom: Any = None


class Named(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class Allowed(msgspec.Struct, forbid_unknown_fields=True):
    mode: Literal["auto", "required"]
    tools: list[Any]


class Choice(msgspec.Struct, forbid_unknown_fields=True):
    """A `tool_choice` given as an object."""

    type: str
    function: Named | None = None
    allowed_tools: Allowed | None = None
    custom: Any = None


class Tools(NamedTuple):
    """What tools make of a request."""

    system: str
    constraint: Constraint
    names: tuple[str, ...]
    """Of the functions that may be called."""


def tools_of(
    tools: list[Tool] | None,
    choice: str | Choice | None,
    *,
    parallel: bool = True,
    instead: Constraint | None = None,
    name_field: str = "function.name",
) -> Tools | None:
    """None where nothing may be called. Raises Refused.

    `parallel`: one answer may make several calls. `instead`: what an answer that calls nothing must look like.
    `name_field`: where a tool has its name.
    """
    functions = _functions(tools or [], name_field)
    if not functions:
        if choice not in (None, "none", "auto"):
            raise Refused(400, "`tool_choice` is given without `tools`.", param="tool_choice")
        return None
    may_answer = True
    match choice:
        case "none":
            return None
        case None | "auto":
            pass
        case "required":
            may_answer = False
        case str():
            raise Refused(
                400, f"`tool_choice` is {choice[:40]!r}; it must be none, auto or required.", param="tool_choice"
            )
        case Choice(type="function", function=Named(name=name)):
            functions, may_answer = _only(functions, [name]), False
        case Choice(type="allowed_tools", allowed_tools=Allowed(mode=mode, tools=allowed)):
            functions, may_answer = _only(functions, [_allowed_name(each) for each in allowed]), mode == "auto"
        case _:
            raise unsupported("tool_choice", "an object names a function or allowed tools")
    constraint = Constraint(
        _schema(functions),
        or_text=may_answer and instead is None,
        most=MAX_CALLS if parallel else 1,
        or_json=instead.json_schema if may_answer and instead is not None else "",
    )
    system = _told(functions, constraint)
    return Tools(system, constraint._replace(told=len(system)), tuple(functions))


def checked_name(at: str, name: str) -> str:
    """A function's name as the API takes it. Raises Refused."""
    if _NAME.fullmatch(name) is None:
        what = f"`{at}` is {name[:72]!r}; a name is 1 to 64 of a-z, A-Z, 0-9, underscore and dash."
        raise Refused(400, what, param=at, code="invalid_value")
    return name


def with_tools(messages: list[Message], tools: Tools) -> list[Message]:
    """The messages with what the model is told of its tools, in one system message at the front."""
    if messages[0].role == "system":
        return [Message("system", f"{messages[0].content}\n\n{tools.system}"), *messages[1:]]
    return [Message("system", tools.system), *messages]


def _functions(tools: list[Tool], name_field: str) -> dict[str, Function]:
    if len(tools) > MAX_TOOLS:
        raise Refused(400, f"`tools` has {len(tools)} tools; at most {MAX_TOOLS} are taken.", param="tools")
    found: dict[str, Function] = {}
    for place, tool in enumerate(tools):
        at = f"tools[{place}]"
        if tool.type != "function" or tool.function is None or tool.custom is not None:
            raise unsupported(at, f"it is of type {tool.type[:40]!r}, and only functions are called")
        name = checked_name(f"{at}.{name_field}", tool.function.name)
        if name in found:
            what = f"`{at}.{name_field}` is {name!r}, as another tool's; give each a name of its own."
            raise Refused(400, what, param=f"{at}.{name_field}", code="invalid_value")
        found[name] = tool.function
    return found


def _only(functions: dict[str, Function], names: list[str]) -> dict[str, Function]:
    for name in names:
        if name not in functions:
            raise Refused(400, f"`tool_choice` names {name[:64]!r}, which `tools` has not.", param="tool_choice")
    if not names:
        raise Refused(400, "`tool_choice` allows no tool; use `none`.", param="tool_choice")
    return {name: functions[name] for name in names}


def _allowed_name(tool: Any) -> str:
    try:
        return str(tool["function"]["name"])
    except (KeyError, TypeError, IndexError):
        raise unsupported("tool_choice", "allowed tools are named as functions") from None


def _told(functions: dict[str, Function], constraint: Constraint) -> str:
    lines = ["You can call these tools:"]
    for function in functions.values():
        about = {"name": function.name, "description": function.description, "parameters": function.parameters}
        lines.append(_encode({key: value for key, value in about.items() if value}).decode())
    form = '{"name": <tool>, "arguments": <object>}'
    if constraint.most > 1:
        form += ", or with several such lines,"
    if constraint.or_text:
        lines.append(f"To call one, answer with {form} and nothing else.")
    elif constraint.or_json:
        lines.append(f"To call one, answer with {form} and nothing else. Otherwise answer with JSON that fits this:")
        lines.append(constraint.or_json)
    else:
        lines.append(f"Answer with {form} only.")
    return "\n".join(lines)


def _schema(functions: dict[str, Function]) -> str:
    """Fits one call of any of the functions. References inside a function's parameters are led to their new place."""
    calls: list[dict[str, Any]] = []
    for place, (name, function) in enumerate(functions.items()):
        at = "#/properties/arguments" if len(functions) == 1 else f"#/anyOf/{place}/properties/arguments"
        none: dict[str, Any] = {"type": "object", "additionalProperties": False}
        arguments = _moved(function.parameters, at) if function.parameters else none
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": name}, "arguments": arguments},
                "required": ["name", "arguments"],
            }
        )
    return schema_text("tools", calls[0] if len(calls) == 1 else {"anyOf": calls})


def _moved(schema: Any, at: str) -> Any:
    match schema:
        case {"$ref": str(pointer)} if pointer.startswith("#"):
            return {**schema, "$ref": at + pointer[1:]}
        case dict():
            return {key: _moved(value, at) for key, value in schema.items()}  # pyright: ignore
        case list():
            return [_moved(value, at) for value in schema]  # pyright: ignore
        case _:
            return schema
