"""Compiled templates, kept by their content, and one rendering of one of them."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Template, TemplateError
from jinja2.exceptions import SecurityError

from weft_prompts.templates.bounds import Bounds, Meter
from weft_prompts.templates.context import MeteredContext
from weft_prompts.templates.environment import ChatEnvironment
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.templates.syntax import parsed

MOST_KEPT: Final = 128
"""Compiled templates in a process; each is some 0.1 to 1 MB."""
_FAULTS: Final = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, TemplateError)
_environment: Final = ChatEnvironment()
_kept: Final[OrderedDict[str, Template]] = OrderedDict()
_lock: Final = threading.Lock()


def compiled(text: str) -> Template:
    """The template, compiled once for each content. Raises TemplateRefused."""
    with _lock:
        if (found := _kept.get(text)) is not None:
            _kept.move_to_end(text)
            return found
    made = _compile(text)
    with _lock:
        _kept[text] = made
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return made


def _compile(text: str) -> Template:
    tree = parsed(_environment, text)
    try:
        code = _environment.compile(tree, None, "<chat template>")
    except (TemplateError, SyntaxError, RecursionError, MemoryError, ValueError) as error:
        raise TemplateRefused(f"the chat template can't be compiled: {error}") from None
    return Template.from_code(_environment, code, _environment.make_globals(None))


def rendered(template: Template, variables: Mapping[str, Any], bounds: Bounds) -> tuple[str, Meter]:
    """The text, and what it took. Raises TemplateRefused, TemplateFailed."""
    context = template.new_context(dict(variables))
    assert isinstance(context, MeteredContext)
    meter = context.meter = Meter(bounds)
    parts: list[str] = []
    length = 0
    try:
        for part in template.root_render_func(context):
            parts.append(part)
            length += len(part)
            meter.will_make(length)
    except (TemplateRefused, TemplateFailed):
        raise
    except (SecurityError, RecursionError, MemoryError) as error:
        raise TemplateRefused(f"the chat template is refused: {error}") from None
    except _FAULTS as error:
        raise TemplateFailed(f"the chat template can't render this chat: {error}") from None
    return "".join(parts), meter
