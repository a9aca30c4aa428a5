"""Operators of templates, each with its price. `syntax` puts calls of these in their place."""

import operator
from collections.abc import Callable
from typing import Any, Final

from jinja2 import Undefined, pass_context

from weft_prompts.templates.bounds import Meter
from weft_prompts.templates.context import MeteredContext
from weft_prompts.templates.formatting import percent_format
from weft_prompts.templates.refusals import TemplateRefused
from weft_prompts.templates.values import SCALARS, SEQUENCES, checked_integer, key_of, text_of, weigh

PLAIN: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
COMPARED: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "gteq": operator.ge,
    "lt": operator.lt,
    "lteq": operator.le,
}
MOST_EXPONENT: Final = 1024


def arithmetic(meter: Meter, sign: str, left: Any, right: Any) -> Any:
    """`left <sign> right`, where the result is not larger than it may be."""
    if type(left) is str:
        if sign == "+" and type(right) is str:
            meter.copied(len(left) + len(right))
            return left + right
        if sign == "%":
            return percent_format(meter, left, right)
    if sign == "*":
        _repeated(meter, left, right)
        _repeated(meter, right, left)
    elif sign == "+" and type(left) in SEQUENCES and type(right) in SEQUENCES:
        meter.will_list(len(left) + len(right))
    elif sign == "**" and type(right) is int and abs(right) > MOST_EXPONENT:
        raise TemplateRefused(f"the chat template raises a number to a power above {MOST_EXPONENT}")
    elif type(left) not in SCALARS or type(right) not in SCALARS:
        weigh(meter, left)
        weigh(meter, right)
    meter.step(1)
    return checked_integer(PLAIN[sign](left, right))


def _repeated(meter: Meter, what: Any, times: Any) -> None:
    if type(times) is not int and type(times) is not bool:
        return
    if type(what) is str:
        meter.copied(len(what) * max(0, times))
    elif type(what) in SEQUENCES:
        meter.will_list(len(what) * max(0, times))


@pass_context
def compare(context: MeteredContext, left: Any, *pairs: Any) -> bool:
    """`left op right op right …`; `pairs` holds each operator's name and then its right side."""
    for sign, right in zip(pairs[::2], pairs[1::2], strict=True):
        if sign in ("in", "notin"):
            holds = contains(context.meter, right, left) is (sign == "in")
        else:
            _look(context.meter, left, right)
            holds = bool(COMPARED[sign](left, right))
        if not holds:
            return False
        left = right
    return True


def contains(meter: Meter, whole: Any, part: Any) -> bool:
    """`part in whole`."""
    kind: type[Any] = type(whole)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        meter.scan(len(whole))
        return part in whole
    if kind is dict:
        meter.step(1)
        return key_of(part) in whole
    if kind in SEQUENCES and type(part) in SCALARS:
        meter.step(1 + len(whole) * (1 + (len(part) // 64 if type(part) is str else 0)))
        return part in whole
    if kind in SCALARS or isinstance(whole, Undefined):
        return part in whole
    weigh(meter, whole)
    weigh(meter, part)
    return part in whole


def _look(meter: Meter, left: Any, right: Any) -> None:
    if type(left) is str and type(right) is str:
        meter.scan(min(len(left), len(right)))
    elif type(left) not in SCALARS and type(right) not in SCALARS:
        weigh(meter, left)
        weigh(meter, right)


@pass_context
def concatenate(context: MeteredContext, first: Any, *others: Any) -> str:
    """`first ~ other ~ …`."""
    meter = context.meter
    texts = [text_of(meter, first), *(text_of(meter, other) for other in others)]
    meter.copied(sum(map(len, texts)))
    return "".join(texts)


@pass_context
def cut(context: MeteredContext, whole: Any, start: Any, stop: Any, step: Any) -> Any:
    """`whole[start:stop:step]`."""
    part = whole[start:stop:step]
    if type(part) is str:
        context.meter.made(part)
    else:
        context.meter.will_list(len(part))
    return part


@pass_context
def turn(context: MeteredContext, value: Any, steps: int, characters: int) -> Any:
    """The price of what stands in the body of a loop or macro; the value comes back."""
    context.meter.step(steps)
    if characters:
        context.meter.copied(characters)
    return value


@pass_context
def as_key(context: MeteredContext, key: Any) -> Any:
    """A key that a dictionary is written with."""
    return key_of(key)


# Names of filters that no template can write.
COMPARE: Final = "(compare)"
CONCATENATE: Final = "(concatenate)"
CUT: Final = "(cut)"
KEY: Final = "(key)"
TURN: Final = "(turn)"
