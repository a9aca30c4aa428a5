"""A prompt that ends within its last message: a mark is put at that message's end, and the prompt cut there."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from weft_prompts.templates.refusals import TemplateFailed
from weft_prompts.templates.values import is_list, is_object


@dataclass(frozen=True, slots=True)
class Marked:
    """Messages whose last one ends with a mark."""

    messages: list[dict[str, Any]]
    mark: str
    """Found nowhere else in the message; with one blank behind it, which a template that trims takes away."""


def marked(messages: list[dict[str, Any]]) -> Marked:
    """Raises TemplateFailed where the last message has no text to go on with."""
    last = dict(messages[-1]) if messages else {}
    content = last.get("content")
    mark = next(m for m in (f"<<the message goes on {n}>>" for n in count()) if m not in str(content))
    if type(content) is str:
        last["content"] = f"{content}{mark} "
    elif is_list(content):
        last["content"] = _marked_parts(content, mark)
    else:
        raise TemplateFailed("`continue_final_message` wants a last message with a content to go on with")
    return Marked([*messages[:-1], last], mark)


def _marked_parts(parts: list[Any], mark: str) -> list[Any]:
    for at in range(len(parts) - 1, -1, -1):
        part = parts[at]
        if is_object(part) and type(part.get("text")) is str:
            return [*parts[:at], {**part, "text": f"{part['text']}{mark} "}, *parts[at + 1 :]]
    raise TemplateFailed("`continue_final_message` wants a last message with a text to go on with")


def cut_at(text: str, ending: Marked) -> str:
    """The prompt up to the mark. Raises TemplateFailed where the template left the message out."""
    at = text.rfind(ending.mark)
    if at < 0:
        raise TemplateFailed("the chat template leaves out the end of the last message: it can't go on there")
    kept = text[at + len(ending.mark) :].startswith(" ")
    return text[:at] if kept else text[:at].rstrip()
