"""A chat by a model's template, as `transformers` renders it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from weft_prompts.templates.bounds import Bounds, Meter
from weft_prompts.templates.compiled import compiled, rendered
from weft_prompts.templates.contents import contents_as_taken
from weft_prompts.templates.continuing import cut_at, marked
from weft_prompts.templates.functions import CLOCK, FUNCTIONS
from weft_prompts.templates.refusals import TemplateFailed
from weft_prompts.templates.values import plain

Message = Mapping[str, Any]
MOST_EXTRA: Final = 64
OURS: Final = frozenset(("messages", "tools", "documents", "add_generation_prompt", *FUNCTIONS))
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")
REASONING: Final = ("reasoning_content", "thinking", "reasoning")
"""What a message's thoughts are called; templates read the first, gpt-oss's the second."""


@dataclass(frozen=True, slots=True)
class Chat:
    """What is rendered: JSON's values, as a client sent them."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    """The prompt ends within the last message, for the model to go on with it."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """`chat_template_kwargs`, such as `enable_thinking`."""


@dataclass(frozen=True, slots=True)
class Template:
    """One template and the texts that its model gives it. Nothing is compiled until it is used."""

    text: str
    special: Mapping[str, str] = field(default_factory=dict[str, str])
    """`bos_token`, `eos_token` and others, of the tokenizer's configuration."""

    def render(self, chat: Chat, *, now: datetime | None = None, bounds: Bounds | None = None) -> str:
        """The prompt as text; a pure function, for any thread. Raises TemplateRefused, TemplateFailed."""
        return self.measured(chat, now=now, bounds=bounds)[0]

    def measured(self, chat: Chat, *, now: datetime | None = None, bounds: Bounds | None = None) -> tuple[str, int]:
        """The prompt, and the steps that it took."""
        bounds = bounds or Bounds()
        template = compiled(self.text)
        messages = contents_as_taken(self.text, _checked(chat, bounds))
        ending = marked(messages) if chat.continue_final_message else None
        variables: dict[str, Any] = {
            **self.special,
            **chat.extra,
            "messages": ending.messages if ending else messages,
            "tools": list(chat.tools) if chat.tools is not None else None,
            "documents": list(chat.documents) if chat.documents is not None else None,
            "add_generation_prompt": chat.add_generation_prompt,
            CLOCK: now,
        }
        text, meter = rendered(template, variables, bounds)
        return (cut_at(text, ending) if ending else text), meter.steps


def _checked(chat: Chat, bounds: Bounds) -> list[dict[str, Any]]:
    """The messages, once all that a client sent is known to be plain. Raises TemplateFailed."""
    if chat.continue_final_message and chat.add_generation_prompt:
        raise TemplateFailed("`continue_final_message` goes on with the last message: want no `add_generation_prompt`")
    meter = Meter(bounds)
    for name, value in (("messages", chat.messages), ("tools", chat.tools), ("documents", chat.documents)):
        plain(meter, name, list(value) if value is not None else None)
    if len(chat.extra) > MOST_EXTRA:
        raise TemplateFailed(f"`chat_template_kwargs` has {len(chat.extra)} names: want at most {MOST_EXTRA}")
    for name, value in chat.extra.items():
        if name in OURS or not NAME.fullmatch(name):
            raise TemplateFailed(f"`chat_template_kwargs` may not set {name[:50]!r}")
        plain(meter, f"chat_template_kwargs.{name}", value)
    return [_with_reasoning(dict(message)) for message in chat.messages]


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    thoughts = next((message[name] for name in REASONING if message.get(name) is not None), None)
    return message if thoughts is None else {"thinking": thoughts, **message, "reasoning_content": thoughts}
