"""A chat's turns: their roles, their text parts, and the calls of tools that were made before."""

from typing import Any

import msgspec

from weft_gateway.domain.asked import Message
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.refused import Refused

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "user"}
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
    """One message. `annotations` is what OpenAI's own answers carry as null or empty."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    refusal: str | None = None
    audio: Any = None
    annotations: Any = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: Any = None


def messages_of(turns: list[Turn]) -> list[Message]:
    """The turns as an engine takes them. Raises Refused."""
    if not turns:
        raise Refused(400, "`messages` is empty; give at least one message.", param="messages", code="empty")
    names: dict[str, str] = {}
    return [_message(f"messages[{place}]", turn, names) for place, turn in enumerate(turns)]


def _message(at: str, turn: Turn, names: dict[str, str]) -> Message:
    """`names`: what the calls so far called, by their ids."""
    role = _ROLES.get(turn.role)
    if role is None:
        hint = _FUNCTIONS if turn.role == "function" else "use system, developer, user, assistant or tool"
        raise Refused(400, f"`{at}.role` is {turn.role[:40]!r}: {hint}.", param=f"{at}.role")
    for field, why in (
        ("name", "templates here have no names"),
        ("refusal", "models here have no refusals of their own; say it as `content`"),
        ("audio", "only text is taken"),
        ("annotations", "only text is taken"),
        ("function_call", _FUNCTIONS),
    ):
        if getattr(turn, field):
            raise unsupported(f"{at}.{field}", why)
    if (turn.tool_call_id is not None) != (turn.role == "tool"):
        right = "missing" if turn.role == "tool" else "only for the role tool"
        raise Refused(400, f"`{at}.tool_call_id` is {right}.", param=f"{at}.tool_call_id")
    if turn.tool_calls:
        return Message(role, _called(at, turn, names))
    if turn.content is None:
        raise Refused(400, f"`{at}.content` is missing.", param=f"{at}.content", code="missing_field")
    text = turn.content if isinstance(turn.content, str) else _joined(at, turn.content)
    if turn.role == "tool":
        name = names.get(turn.tool_call_id or "")
        if name is None:
            raise Refused(
                400,
                f"`{at}.tool_call_id` answers no call of the messages before it.",
                param=f"{at}.tool_call_id",
            )
        text = f"{name} returned: {text}"
    return Message(role, text)


def _called(at: str, turn: Turn, names: dict[str, str]) -> str:
    """An assistant's calls in the form in which it is told to make them."""
    if turn.role != "assistant":
        raise Refused(400, f"`{at}.tool_calls` is only for the role assistant.", param=f"{at}.tool_calls")
    lines: list[str] = []
    if turn.content:
        lines.append(turn.content if isinstance(turn.content, str) else _joined(at, turn.content))
    for place, call in enumerate(turn.tool_calls or ()):
        if call.type != "function" or call.function is None or call.custom is not None:
            raise unsupported(f"{at}.tool_calls[{place}]", "only functions are called")
        names[call.id] = call.function.name
        name = msgspec.json.encode(call.function.name).decode()
        lines.append(f'{{"name": {name}, "arguments": {call.function.arguments or "{}"}}}')
    return "\n".join(lines)


def _joined(at: str, parts: list[dict[str, Any]]) -> str:
    """The text of a content given in parts. Pictures, sound and files are refused."""
    texts: list[str] = []
    for place, part in enumerate(parts):
        where = f"{at}.content[{place}]"
        kind, text = part.get("type"), part.get("text")
        if kind != "text":
            raise unsupported(where, f"it is of type {str(kind)[:40]!r}, and only text parts are taken")
        if not isinstance(text, str) or set(part) - {"type", "text"}:
            raise Refused(400, f"`{where}` must be an object of `type` and `text`.", param=where)
        texts.append(text)
    if not texts:
        raise Refused(400, f"`{at}.content` is empty; give a string or text parts.", param=f"{at}.content")
    return "\n".join(texts)
