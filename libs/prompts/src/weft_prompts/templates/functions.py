"""Functions that templates find: those of `transformers`, and no clock but the one that the caller brings."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NoReturn

from jinja2 import pass_context
from jinja2.utils import Cycler, Joiner, Namespace

from weft_prompts.templates.context import MeteredContext
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.templates.values import is_object, key_of, text_of, weigh

MOST_INDENT: Final = 16
MOST_FORMAT: Final = 100
CLOCK: Final = "(now)"
"""The variable that holds the time; no template can name it."""
_WIDTH: Final = re.compile(r"\d")


@pass_context
def to_json(
    context: MeteredContext,
    value: Any,
    ensure_ascii: bool = False,
    indent: Any = None,
    separators: Any = None,
    sort_keys: bool = False,
) -> str:
    """JSON as `transformers` writes it: nothing is escaped for HTML, and text stays what it is."""
    meter = context.meter
    weight = weigh(meter, value)
    weigh(meter, separators)
    if (type(indent) is int and indent > MOST_INDENT) or (type(indent) is str and len(indent) > MOST_INDENT):
        raise TemplateRefused(f"the chat template indents JSON by more than {MOST_INDENT}")
    if separators is not None and (type(separators) not in (list, tuple) or any(len(str(s)) > 16 for s in separators)):
        raise TemplateRefused("the chat template writes JSON with separators that are none")
    meter.will_make(weight.characters)
    parts: list[str] = []
    for part in (
        json.JSONEncoder(
            ensure_ascii=bool(ensure_ascii), indent=indent, separators=separators, sort_keys=bool(sort_keys)
        ).iterencode(value)
        if indent is not None
        else (json.dumps(value, ensure_ascii=bool(ensure_ascii), separators=separators, sort_keys=bool(sort_keys)),)
    ):
        meter.copied(len(part))
        parts.append(part)
    return "".join(parts)


@pass_context
def bounded_range(context: MeteredContext, *words: Any) -> range:
    """`range`, as long as a list may be."""
    made = range(*words)
    try:
        length = len(made)
    except OverflowError:
        length = context.meter.bounds.items + 1
    if length > context.meter.bounds.items:
        context.meter.will_list(length)
    return made


@pass_context
def raise_exception(context: MeteredContext, message: Any = "") -> NoReturn:
    """The template's own words about a chat that it can't render."""
    raise TemplateFailed(text_of(context.meter, message), said=True)


@pass_context
def strftime_now(context: MeteredContext, form: Any) -> str:
    """The caller's time in that form. Raises TemplateFailed where the caller gave none."""
    now = context.get(CLOCK)
    if not isinstance(now, datetime):
        raise TemplateFailed("the chat template asks for the time, and none was given")
    if type(form) is not str or len(form) > MOST_FORMAT or _WIDTH.search(form):
        raise TemplateRefused(f"the chat template writes a time in a form of more than {MOST_FORMAT} characters")
    return context.meter.made(now.strftime(form))


class ChatNamespace(Namespace):
    """What a template may write to. Its names are plain."""

    def __init__(*words: Any, **named: Any) -> None:
        attributes = dict(*words[1:], **named)
        for name in attributes:
            _plain_name(name)
        Namespace.__init__(words[0], attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _plain_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"


def _plain_name(name: Any) -> None:
    if type(name) is not str or name.startswith("_"):
        raise TemplateRefused(f"the chat template names a variable {str(name)[:50]!r}: want one without `_` before it")


@pass_context
def make_dict(context: MeteredContext, *words: Any, **named: Any) -> dict[Any, Any]:
    """`dict(…)` of pairs, another dictionary, or names."""
    for word in words:
        weigh(context.meter, word)
        for entry in word:
            key_of(entry if is_object(word) else entry[0])
    return dict(*words, **named)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "range": bounded_range,
    "dict": make_dict,
    "namespace": ChatNamespace,
    "cycler": Cycler,
    "joiner": Joiner,
    "raise_exception": raise_exception,
    "strftime_now": strftime_now,
}
