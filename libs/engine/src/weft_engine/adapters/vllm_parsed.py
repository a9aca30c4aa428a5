"""An answer that vLLM's parsers take apart, in Weft's form: thoughts, text, and calls of tools as lines of JSON."""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, cast

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.called_functions import Unreadable
from weft_engine.adapters.openai_tools import CallWriter, functions_of
from weft_engine.adapters.vllm_parsers import Found
from weft_engine.adapters.vllm_settings import RESERVED

HELD_CHARACTERS: Final = 1000
"""Text before a call of a tool is held back this far, and left out; what is longer is an answer in text."""
MOST_VARIABLES: Final = 64 * 1024
"""Bytes of JSON that a chat template may be given."""
_LINE_BEFORE: Final = 1


class Parser(Protocol):
    """What reads the answer: a StreamParser."""

    def feed(self, text: str, ids: list[int], prompt_ids: list[int], *, finished: bool = False) -> Found: ...


class StepText(NamedTuple):
    """What a step adds to an answer."""

    thought: str
    text: str
    written: str
    """calls, in Weft's form"""


class ParsedAnswer:
    """One answer, fed step by step."""

    def __init__(self, parser: Parser, prompt_ids: list[int], most_calls: int) -> None:
        """`most_calls`: further ones are passed over; 0: nothing may be called."""
        self._parser = parser
        self._prompt_ids = prompt_ids
        self._most_calls = most_calls
        self._writer = CallWriter()
        self._held: str | None = "" if most_calls else None
        """text that a call may follow; None: none is held any more"""

    def feed(self, text: str, ids: list[int], finish: str | None) -> StepText:
        """What a step's text and ids add; `finish`: how it ended, as vLLM says it. Raises Unreadable."""
        found = self._parser.feed(text, ids, self._prompt_ids, finished=finish is not None)
        said = self._text(found.text)
        calls = [call for call in found.calls if (call.index or 0) < self._most_calls]
        written = self._written(self._writer.feed(calls)) if calls else ""
        if finish is not None:
            if self._writer.begun:
                written += self._writer.end() if finish == "stop" else ""
            elif self._held:
                said, self._held = self._held, None
        return StepText(found.thought, said, written)

    def _text(self, text: str) -> str:
        if self._writer.begun:
            return ""  # what stands after a call is no part of the answer
        if self._held is None or not text:
            return text
        self._held += text
        if len(self._held) <= HELD_CHARACTERS and not self._held.lstrip().startswith("{"):
            return ""
        text, self._held = self._held, None
        return text

    def _written(self, calls: str) -> str:
        if self._held is None:
            raise Unreadable(
                f"it calls a tool after more than {HELD_CHARACTERS} characters of text, which were told already"
            )
        self._held = ""
        return calls


def callable_in(request: pb.Submit) -> list[dict[str, Any]]:
    """Functions that the family's own form may call in the answer; empty: none, or the answer is held to Weft's form.

    A call that must be made is held to Weft's form, where its arguments are sure to fit.
    """
    constraint = request.constraint
    if not constraint.or_text or constraint.or_json:
        return []
    return functions_of(constraint) or []


def told_apart(chat: pb.Chat, constraint: pb.Constraint) -> tuple[pb.Chat, list[dict[str, Any]]]:
    """The chat without what tells of tools in Weft's form, and the functions that this told of, with all about them.

    Empty functions: the chat is as it was, since what it tells can't be read.
    """
    if not constraint.told or not chat.messages:
        return chat, []
    first = chat.messages[0].content
    place = len(first) - constraint.told
    if place < 0:
        return chat, []
    functions: list[dict[str, Any]] = []
    for line in first[place:].split("\n")[_LINE_BEFORE:]:
        if not line.startswith("{"):
            break
        try:
            functions.append({"type": "function", "function": json.loads(line)})
        except (ValueError, RecursionError):
            return chat, []
    if not functions:
        return chat, []
    without = pb.Chat()
    without.CopyFrom(chat)
    without.messages[0].content = first[:place].rstrip("\n")
    if not without.messages[0].content:
        del without.messages[0]
    return without, functions


def variables_of(request: pb.Submit, by_default: Mapping[str, Any]) -> dict[str, Any]:
    """What the chat template is given. Raises RequestRefused."""
    if not request.template_kwargs:
        return dict(by_default)
    try:
        if len(request.template_kwargs) > MOST_VARIABLES:
            raise ValueError(f"it takes more than {MOST_VARIABLES} bytes")
        read: object = json.loads(request.template_kwargs)
        if not isinstance(read, dict):
            raise ValueError(f"it is a {type(read).__name__}")
        found = cast(dict[str, Any], read)
    except (ValueError, RecursionError) as error:
        raise RequestRefused(
            pb.FAULT_BAD_REQUEST, f"`chat_template_kwargs` is no JSON object: {error}", "template_kwargs"
        ) from None
    taken = found.keys() & RESERVED
    if taken:
        raise RequestRefused(
            pb.FAULT_BAD_REQUEST,
            f"`chat_template_kwargs` names {sorted(taken)[0]!r}, which the engine gives the template itself",
            "template_kwargs",
        )
    return {**by_default, **found}
