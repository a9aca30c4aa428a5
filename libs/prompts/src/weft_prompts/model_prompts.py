"""A model's chat template and tokenizer, made of its small files: chats and texts to the ids that engines make."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft_prompts.templates.bounds import Bounds
from weft_prompts.templates.chat import Chat, Template
from weft_prompts.templates.compiled import compiled
from weft_prompts.templates.named import chosen, templates_of
from weft_prompts.templates.refusals import TemplateRefused
from weft_prompts.templates.values import is_object
from weft_prompts.tokens.refusal import NoTokenizer
from weft_prompts.tokens.tokenizer import Tokenizer
from weft_prompts.way import Way

IN_MEMORY: Final = 8
"""Bytes in memory for each of `tokenizer.json`, about."""
CLOCKS: Final = ("strftime_now", "date_string", "datetime")
"""What templates ask the time by."""

Encode = Callable[[str, bool], list[int]]
"""A text's ids; with true, what the model wants around it is there."""


class ModelPrompts:
    """Pure, for any thread."""

    def __init__(self, tokenizer: Tokenizer, template: Template | None, lacks: str, size: int) -> None:
        """`lacks`: why there is no template. `size`: bytes in memory, about."""
        self.tokenizer = tokenizer
        self.template = template
        self.lacks = lacks
        self.bytes = size
        plain, around = tokenizer.encode("x"), tokenizer.encode("x", ends=True)
        special: Mapping[str, str] = template.special if template is not None else {}
        self._first = special.get("bos_token", "") if around[: len(plain)] != plain else ""
        self._last = special.get("eos_token", "") if around[-len(plain) :] != plain else ""

    @classmethod
    def of(
        cls, tokenizer: bytes | None, configuration: bytes | None = None, chat_template: bytes | None = None
    ) -> "ModelPrompts":
        """From the contents of `tokenizer.json`, `tokenizer_config.json`, and a template's file (`.jinja`, or
        `chat_template.json`); seconds of CPU. Raises NoTokenizer.
        """
        if tokenizer is None:
            raise NoTokenizer("the model has no tokenizer.json")
        made, size = Tokenizer(tokenizer), len(tokenizer) * IN_MEMORY
        try:
            template = _template(configuration or b"{}", chat_template)
            compiled(template.text)
        except TemplateRefused as refused:
            return cls(made, None, str(refused), size)
        return cls(made, template, "", size)

    def rendered(self, chat: Chat, bounds: Bounds) -> str:
        """A chat as text. Raises TemplateRefused, TemplateFailed."""
        if self.template is None:
            raise TemplateRefused(self.lacks)
        return self.template.render(chat, bounds=bounds)

    def of_chat(self, chat: Chat, way: Way, encode: Encode, bounds: Bounds) -> list[int]:
        """A chat's ids. Raises TemplateRefused, TemplateFailed, and what `encode` raises."""
        text = self.rendered(chat, bounds)
        if way is Way.TEMPLATE:
            return encode(text, False)
        text = text.removeprefix(self._first) if self._first else text
        return encode(text.removesuffix(self._last) if self._last else text, True)


def _template(configuration: bytes, chat_template: bytes | None) -> Template:
    """Raises TemplateRefused."""
    told = _object(configuration, "tokenizer_config.json")
    special = {name: text for name, value in told.items() if (text := _token(name, value)) is not None}
    if chat_template is None:
        named = told.get("chat_template")
    elif chat_template.lstrip()[:1] == b"{" and _is_json(chat_template):
        named = _object(chat_template, "chat_template.json").get("chat_template")
    else:
        named = chat_template.decode(errors="replace")
    if named is None:
        raise TemplateRefused("the model has no chat template")
    template = Template(chosen(templates_of(named)), special)
    if any(clock in template.text for clock in CLOCKS):
        raise TemplateRefused("the chat template writes the time, which the engine's clock tells")
    return template


def _object(data: bytes, name: str) -> dict[str, Any]:
    try:
        found: Any = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TemplateRefused(f"{name} is not JSON: {error}") from None
    if not is_object(found):
        raise TemplateRefused(f"{name} is no JSON object")
    return found


def _is_json(data: bytes) -> bool:
    """A template may begin with a brace too."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _token(name: str, value: Any) -> str | None:
    """A special token: its text, or an object that has it."""
    if not name.endswith("_token"):
        return None
    text: Any = value.get("content") if is_object(value) else value
    return text if isinstance(text, str) else None
