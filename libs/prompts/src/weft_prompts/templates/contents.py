"""Which form of a message's content a template takes: text, or parts with a type. It is asked, once for each template.

A client may send either; a template that knows only one of them would write the other down as Python has it.
"""

from datetime import datetime
from functools import lru_cache
from typing import Any, Final, NamedTuple

from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.compiled import compiled, rendered
from weft_prompts.templates.functions import CLOCK
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.templates.values import is_list, is_object

NEEDLE: Final = "a-needle-in-a-chat"
BETWEEN: Final = "\n"
"""What stands between the parts of a content that are made one text, as llama.cpp does."""
ASKED: Final = Bounds(steps=200_000, text=1 << 20, made=4 << 20)


class Taken(NamedTuple):
    """Which forms of a user's content come out as what they say."""

    text: bool
    parts: bool


@lru_cache(maxsize=128)
def taken(template: str) -> Taken:
    """What the template takes; neither, where it can't render a chat that short. Raises TemplateRefused."""
    return Taken(_comes_out(template, NEEDLE), _comes_out(template, [{"type": "text", "text": NEEDLE}]))


def _comes_out(template: str, content: Any) -> bool:
    variables = {
        "messages": [{"role": "user", "content": content}],
        "tools": None,
        "documents": None,
        "add_generation_prompt": True,
        "bos_token": "",
        "eos_token": "",
        CLOCK: datetime(2000, 1, 1),
    }
    try:
        text, _ = rendered(compiled(template), variables, ASKED)
    except (TemplateFailed, TemplateRefused):
        return False
    at = text.find(NEEDLE)
    return at >= 0 and text[at + len(NEEDLE) : at + len(NEEDLE) + 1] not in ("'", '"')


def contents_as_taken(template: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with each content in a form that the template takes; parts other than text stay parts."""
    kinds: set[type[Any]] = {type(message.get("content")) for message in messages}
    if not kinds & {str, list}:
        return messages
    can = taken(template)
    if can.text and list in kinds and not can.parts:
        return [_as_text(message) for message in messages]
    if can.parts and not can.text and str in kinds:
        return [_as_parts(message) for message in messages]
    return messages


def _as_text(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    if not is_list(content):
        return message
    texts: list[str] = []
    for part in content:
        text = part.get("text") if is_object(part) else part
        if type(text) is not str:
            kind = part.get("type") if is_object(part) else type(part).__name__
            raise TemplateFailed(f"the model's chat template takes text alone: a message has a part {str(kind)[:50]!r}")
        texts.append(text)
    return {**message, "content": BETWEEN.join(texts)}


def _as_parts(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return message if type(content) is not str else {**message, "content": [{"type": "text", "text": content}]}
