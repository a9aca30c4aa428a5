"""Whether two render alike: a few chats that ask a template for what it knows, and one digest of all answers.

An engine that renders by itself is asked for the same chats; another digest is another template, found before a prompt.
"""

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from weft_prompts.templates.chat import Chat, Template
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused

_USER: Final = {"role": "user", "content": " Which <one> & why?\n"}
_SYSTEM: Final = {"role": "system", "content": "Answer in a word."}
_ANSWER: Final = {"role": "assistant", "content": "This — «one»."}
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "description": "Which"}},
            "required": ["word"],
        },
    },
}
_CALL: Final[dict[str, Any]] = {"id": "call00001", "type": "function"}
_CALLED: Final[dict[str, Any]] = {"name": "look_up", "arguments": {"word": "one"}}
_RESULT: Final = {"role": "tool", "tool_call_id": "call00001", "name": "look_up", "content": "found"}


def probes() -> tuple[Chat, ...]:
    """The chats, always the same: a question, with a system's message, after turns, without a prompt, with tools."""
    calling = {"role": "assistant", "content": "", "tool_calls": [{**_CALL, "function": _CALLED}]}
    return (
        Chat([_USER]),
        Chat([_SYSTEM, _USER]),
        Chat([_SYSTEM, _USER, _ANSWER, _USER]),
        Chat([_USER, _ANSWER], add_generation_prompt=False),
        Chat([_USER], tools=[_TOOL]),
        Chat([_USER, calling, _RESULT], tools=[_TOOL]),
    )


def renderings(template: Template, *, now: datetime | None = None) -> tuple[str | None, ...]:
    """Each probe's prompt; None for a chat that the template can't render. Raises nothing."""
    return tuple(_rendering(template, chat, now) for chat in probes())


def _rendering(template: Template, chat: Chat, now: datetime | None) -> str | None:
    try:
        return template.render(chat, now=now)
    except (TemplateFailed, TemplateRefused):
        return None


def digest_of(found: Sequence[str | None]) -> str:
    """16 hex digits over the prompts of all probes, in their order."""
    return hashlib.sha256(json.dumps(list(found)).encode()).hexdigest()[:16]


def renders_alike(one: Template, other: Template, *, now: datetime | None = None) -> bool:
    """Whether both make the same of every probe."""
    return digest_of(renderings(one, now=now)) == digest_of(renderings(other, now=now))
