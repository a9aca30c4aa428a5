"""What a model's files say of its templates: one, or several with names."""

from collections.abc import Mapping
from typing import Any, Final

from weft_prompts.templates.refusals import TemplateRefused
from weft_prompts.templates.values import is_list, is_object

MOST_TEMPLATES: Final = 16
DEFAULT: Final = "default"
FOR_TOOLS: Final = "tool_use"


def templates_of(found: Any) -> dict[str, str]:
    """Each template by its name, from `chat_template` of a tokenizer's configuration or of `chat_template.json`.

    It is a text, a list of `{"name": …, "template": …}`, or an object of texts. Raises TemplateRefused.
    """
    if type(found) is str:
        return {DEFAULT: found}
    pairs: list[tuple[Any, Any]] = []
    if is_list(found):
        pairs = [(e.get("name"), e.get("template")) if is_object(e) else (None, None) for e in found]
    elif is_object(found):
        pairs = list(found.items())
    if not pairs or len(pairs) > MOST_TEMPLATES:
        raise TemplateRefused(f"`chat_template` is none: want a text, or 1 to {MOST_TEMPLATES} named ones")
    if not all(type(name) is str and type(text) is str for name, text in pairs):
        raise TemplateRefused("`chat_template` is none: want a name and a text for each template")
    return dict(pairs)


def chosen(templates: Mapping[str, str], *, name: str = "", tools: bool = False) -> str:
    """The text of the template that a chat is for. Raises TemplateRefused, with the names that there are."""
    if not name:
        name = FOR_TOOLS if tools and FOR_TOOLS in templates else DEFAULT
    if (text := templates.get(name)) is None:
        there = ", ".join(sorted(templates))
        raise TemplateRefused(f"the model has no chat template {name[:50]!r}: it has {there}")
    return text
