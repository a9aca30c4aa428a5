"""`'…'.format(…)` and `'…' % …`, with no width, precision or repetition that makes more than it may."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

from jinja2 import Undefined
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter

from weft_prompts.templates.bounds import Meter
from weft_prompts.templates.refusals import TemplateRefused
from weft_prompts.templates.values import SCALARS, text_of, weigh

MOST_WIDTH: Final = 999
WIDE: Final = re.compile(r"\d{4}")
PERCENT: Final = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(\*|\d*)(?:\.(\*|\d*))?")


class BoundedFormatter(SandboxedFormatter):
    """`str.format`, whose fields are read by the sandbox's rules and counted one by one."""

    def __init__(self, environment: SandboxedEnvironment, meter: Meter) -> None:
        super().__init__(environment)
        self._meter = meter

    def format_field(self, value: Any, format_spec: str) -> Any:
        if WIDE.search(format_spec):
            raise TemplateRefused(f"the chat template formats to a width or precision above {MOST_WIDTH}")
        if type(value) not in SCALARS:
            value = text_of(self._meter, value) if not isinstance(value, Undefined) else value
        return self._meter.made(super().format_field(value, format_spec))

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if conversion is not None:
            weigh(self._meter, value)
            return self._meter.made(super().convert_field(value, conversion))
        return value


def format_text(
    environment: SandboxedEnvironment, meter: Meter, text: str, words: tuple[Any, ...], named: Mapping[str, Any]
) -> str:
    """`text.format(*words, **named)`."""
    meter.made(text)
    formatter: Formatter = BoundedFormatter(environment, meter)
    return meter.made(formatter.vformat(text, words, named))


def percent_format(meter: Meter, text: str, given: Any) -> str:
    """`text % given`."""
    meter.scan(len(text))
    places = 0
    for found in PERCENT.finditer(text):
        places += 1
        for width in found.groups():
            if width == "*" or len(width or "") > 3:
                raise TemplateRefused(f"the chat template formats to a width or precision above {MOST_WIDTH}")
    weight = weigh(meter, given)
    meter.will_make(len(text) + places * (MOST_WIDTH + 2 * weight.characters + 4 * weight.items))
    return meter.made(text % given)
