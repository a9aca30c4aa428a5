"""The items of a Responses request: messages, calls of functions and what those gave, as turns of a chat.

Nothing is stored here, so an item that only refers to another is refused with the client's setting that stops it.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from weft_gateway.domain.inference_request import Message
from weft_gateway.domain.openai.decoding import converted
from weft_gateway.domain.openai.fields import unsupported
from weft_gateway.domain.openai.messages import call_text, content_text, result_text
from weft_gateway.domain.openai.tools import checked_name
from weft_gateway.domain.refused import Refused

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_TEXTS: Mapping[str, Collection[str]] = {
    "input_text": ("prompt_cache_breakpoint",),  # it speaks of caches
    "output_text": ("annotations", "logprobs"),  # what an earlier answer said of its text
}
_NO_REFERENCES = (
    "it refers to an item that was stored, and nothing is stored here; send the item itself"
    " (AI SDK: providerOptions.openai.store=false)"
)


class InputMessage(msgspec.Struct, forbid_unknown_fields=True):
    """A message, of a caller or of an earlier answer. All but role and content are taken without effect."""

    role: str
    content: str | list[dict[str, Any]]
    type: str = "message"
    id: str | None = None
    status: str | None = None
    phase: str | None = None


class FunctionCall(msgspec.Struct, forbid_unknown_fields=True):
    """A call that an earlier answer made."""

    type: str
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None
    is_async: bool | None = msgspec.field(default=None, name="async")


class FunctionCallOutput(msgspec.Struct, forbid_unknown_fields=True):
    """What a called function gave. `name` is the call's own."""

    type: str
    output: str | list[dict[str, Any]]
    call_id: str | None = None
    id: str | None = None
    status: str | None = None
    name: str | None = None
    namespace: str | None = None
    caller: dict[str, Any] | None = None


def messages_of_input(given: str | list[dict[str, Any]], instructions: str | None) -> list[Message]:
    """The turns that a request's input and instructions make. Raises Refused."""
    found = [Message("user", given)] if isinstance(given, str) else _Turns().of(given)
    if not found or (isinstance(given, str) and not given):
        raise Refused(400, "`input` is empty; give a text, or at least one message.", param="input", code="empty")
    if not instructions:
        return found
    if found[0].role == "system":  # many templates know one system message, at the front
        return [Message("system", f"{instructions}\n\n{found[0].content}"), *found[1:]]
    return [Message("system", instructions), *found]


class _Turns:
    """Items become turns one after another: an assistant's text and the calls that follow it are one turn."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._names: dict[str, str] = {}
        """What the calls so far called, by their ids."""

    def of(self, items: list[dict[str, Any]]) -> list[Message]:
        for place, item in enumerate(items):
            self._take(f"input[{place}]", item)
        return self._messages

    def _take(self, at: str, item: dict[str, Any]) -> None:
        kind = item.get("type") or ("message" if "role" in item else "item_reference")
        match kind:
            case "message":
                self._messages.append(_message(at, item))
            case "function_call":
                self._call(at, converted(item, FunctionCall, at))
            case "function_call_output":
                self._result(at, converted(item, FunctionCallOutput, at))
            case "reasoning":
                pass  # another model's thoughts, which templates leave out as well
            case "item_reference":
                raise unsupported(at, _NO_REFERENCES)
            case _:
                taken = "messages, function_call, function_call_output and reasoning are taken"
                raise unsupported(at, f"it is of type {str(kind)[:40]!r}; {taken}")

    def _call(self, at: str, call: FunctionCall) -> None:
        if call.namespace:
            raise unsupported(f"{at}.namespace", "tools here have none")
        name = self._names[call.call_id] = checked_name(f"{at}.name", call.name)
        text = call_text(name, call.arguments)
        if self._messages and self._messages[-1].role == "assistant":
            before = self._messages.pop().content
            text = f"{before}\n{text}" if before else text
        self._messages.append(Message("assistant", text))

    def _result(self, at: str, result: FunctionCallOutput) -> None:
        name = self._names.get(result.call_id or "")
        if name is None:
            what = f"`{at}.call_id` answers no call of the items before it; send the function_call too."
            raise Refused(400, what, param=f"{at}.call_id")
        text = content_text(f"{at}.output", result.output, _TEXTS)
        self._messages.append(Message("user", result_text(name, text)))


def _message(at: str, item: dict[str, Any]) -> Message:
    found = converted(item, InputMessage, at)
    role = _ROLES.get(found.role)
    if role is None:
        hint = "use system, developer, user or assistant"
        raise Refused(400, f"`{at}.role` is {found.role[:40]!r}: {hint}.", param=f"{at}.role")
    return Message(role, content_text(f"{at}.content", found.content, _TEXTS))
