"""A chat's turns: their roles, their text parts, and the calls of tools that were made before."""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.openai.tools import checked_name
from weft_gateway.domain.refused import Refused

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}
MAX_NAME = 64
"""Characters of a speaker's name, as OpenAI bounds it."""
_PARTS: Mapping[str, Collection[str]] = {"text": ()}
_FUNCTIONS = "functions are deprecated; use `tools` and the role tool"


class CalledFunction(msgspec.Struct, forbid_unknown_fields=True):
    """A call's name, and its arguments as JSON text."""

    name: str
    arguments: str


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A call that an assistant made. `index` is what a client may have kept of a stream."""

    id: str
    type: str
    function: CalledFunction | None = None
    custom: Any = None
    index: int | None = None


class Turn(msgspec.Struct, forbid_unknown_fields=True):
    """One message. `annotations` is what OpenAI's own answers carry as null or empty.

    `reasoning_content` is what an answer here may have carried: templates tell a model nothing of earlier thoughts.
    """

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    refusal: str | None = None
    audio: Any = None
    annotations: Any = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: Any = None
    reasoning_content: str | None = None


def messages_of(turns: list[Turn]) -> list[Message]:
    """The turns as an engine takes them. Raises Refused."""
    if not turns:
        raise Refused(400, "`messages` is empty; give at least one message.", param="messages", code="empty")
    names: dict[str, str] = {}
    return [_message(f"messages[{place}]", turn, names) for place, turn in enumerate(turns)]


def call_text(name: str, arguments: str) -> str:
    """A call in the form in which the model is told to make it. `name`: checked; `arguments`: JSON as text."""
    return f'{{"name": "{name}", "arguments": {arguments or "{}"}}}'


def result_text(name: str, result: str) -> str:
    """What a tool gave, as the model is told it."""
    return f"{name} returned: {result}"


def _message(at: str, turn: Turn, names: dict[str, str]) -> Message:
    """`names`: what the calls so far called, by their ids."""
    role = _ROLES.get(turn.role)
    if role is None:
        hint = _FUNCTIONS if turn.role == "function" else "use system, developer, user, assistant or tool"
        raise Refused(400, f"`{at}.role` is {turn.role[:40]!r}: {hint}.", param=f"{at}.role")
    for field, why in (
        ("refusal", "models here have no refusals of their own; say it as `content`"),
        ("audio", "only text is taken"),
        ("annotations", "only text is taken"),
        ("function_call", _FUNCTIONS),
    ):
        if getattr(turn, field):
            raise unsupported(f"{at}.{field}", why)
    name = turn.name or ""
    if len(name) > MAX_NAME:
        what = f"`{at}.name` has {len(name)} characters; at most {MAX_NAME} are taken."
        raise Refused(400, what, param=f"{at}.name", code="out_of_range")
    if (turn.tool_call_id is not None) != (turn.role == "tool"):
        right = "missing" if turn.role == "tool" else "only for the role tool"
        raise Refused(400, f"`{at}.tool_call_id` is {right}.", param=f"{at}.tool_call_id")
    if turn.tool_calls:
        return Message(role, _called(at, turn, names), name)
    if turn.content is None:
        raise Refused(400, f"`{at}.content` is missing.", param=f"{at}.content", code="missing_field")
    text = content_text(f"{at}.content", turn.content, _PARTS)
    if turn.role == "tool":
        called = names.get(turn.tool_call_id or "")
        if called is None:
            raise Refused(
                400,
                f"`{at}.tool_call_id` answers no call of the messages before it.",
                param=f"{at}.tool_call_id",
            )
        return Message(role, result_text(called, text))
    return Message(role, text, name)


def _called(at: str, turn: Turn, names: dict[str, str]) -> str:
    """An assistant's calls in the form in which it is told to make them."""
    if turn.role != "assistant":
        raise Refused(400, f"`{at}.tool_calls` is only for the role assistant.", param=f"{at}.tool_calls")
    lines: list[str] = []
    if turn.content:
        lines.append(content_text(f"{at}.content", turn.content, _PARTS))
    for place, call in enumerate(turn.tool_calls or ()):
        if call.type != "function" or call.function is None or call.custom is not None:
            raise unsupported(f"{at}.tool_calls[{place}]", "only functions are called")
        name = checked_name(f"{at}.tool_calls[{place}].function.name", call.function.name)
        names[call.id] = name
        lines.append(call_text(name, call.function.arguments))
    return "\n".join(lines)


def content_text(at: str, given: str | list[dict[str, Any]], kinds: Mapping[str, Collection[str]]) -> str:
    """The text of what is given as one or in parts. Pictures, sound and files are refused. Raises Refused.

    `kinds`: the types that are text here, and what such a part may have beside `type` and `text`.
    """
    if isinstance(given, str):
        return given
    texts: list[str] = []
    for place, part in enumerate(given):
        where = f"{at}[{place}]"
        kind, text = part.get("type"), part.get("text")
        if not isinstance(kind, str) or kind not in kinds:
            raise unsupported(where, f"it is of type {str(kind)[:40]!r}, and only text parts are taken")
        if not isinstance(text, str) or set(part).difference(("type", "text"), kinds[kind]):
            raise Refused(400, f"`{where}` must be an object of `type` and `text`.", param=where)
        texts.append(text)
    if not texts:
        raise Refused(400, f"`{at}` is empty; give a string or text parts.", param=at)
    return "\n".join(texts)
