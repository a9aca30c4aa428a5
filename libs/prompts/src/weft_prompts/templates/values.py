"""Values that templates work on: plain data, weighed before anything looks at all of it.

Lists that hold one another twice are small in memory and endless as text; so what a value weighs is counted as if
each part were there as often as it is reached.
"""

from typing import Any, Final, NamedTuple, TypeGuard

from jinja2 import Undefined

from weft_prompts.templates.bounds import Meter
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused

MOST_DEPTH: Final = 64
MOST_INTEGER_BITS: Final = 4096
SCALARS: Final[frozenset[type]] = frozenset((str, int, float, bool, type(None)))
SEQUENCES: Final[frozenset[type]] = frozenset((list, tuple))
_EMPTY: Final[dict[Any, Any]] = {}
VIEWS: Final[frozenset[type]] = frozenset((type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items())))


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether it is a list of JSON's."""
    return type(value) is list


def is_object(value: Any) -> TypeGuard[dict[Any, Any]]:
    """Whether it is an object of JSON's."""
    return type(value) is dict


class Weight(NamedTuple):
    """How large a value is as a tree."""

    items: int
    characters: int


def weigh(meter: Meter, value: Any) -> Weight:
    """Items and characters of a value. Raises TemplateRefused for what is no plain data, too large or too deep."""
    items, characters = 0, 0
    waiting: list[tuple[Any, int]] = [(value, 0)]
    while waiting:
        found, depth = waiting.pop()
        items += 1
        kind: type[Any] = type(found)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            characters += len(found)
            meter.scan(len(found))
        elif kind in SCALARS or isinstance(found, Undefined):
            meter.step(1)
            if kind is int and found.bit_length() > MOST_INTEGER_BITS:
                raise TemplateRefused(f"the chat template makes a number of more than {MOST_INTEGER_BITS} bits")
        elif depth >= MOST_DEPTH:
            raise TemplateRefused(f"the chat template makes a value that is more than {MOST_DEPTH} levels deep")
        elif kind is dict:
            meter.step(1 + 2 * len(found))
            for key, part in found.items():
                waiting += ((key, depth + 1), (part, depth + 1))
        elif kind in SEQUENCES or kind in VIEWS or kind is range:
            meter.step(1 + len(found))
            waiting += ((part, depth + 1) for part in found)
        else:
            raise TemplateRefused(f"the chat template uses a {kind.__name__} as if it were data")
        if items > meter.bounds.items:
            raise TemplateRefused(f"the chat template uses a value of more than {meter.bounds.items} items")
    return Weight(items, characters)


def listed(meter: Meter, value: Any) -> list[Any]:
    """The items of whatever can be looped over; they are counted while they come."""
    if type(value) in SEQUENCES or type(value) in VIEWS or type(value) in (dict, str, range):
        meter.will_list(len(value))
        return list(value)
    items: list[Any] = []
    for item in value:
        items.append(item)
        meter.step(1)
        if len(items) > meter.bounds.items:
            meter.will_list(len(items))
    return items


def text_of(meter: Meter, value: Any) -> str:
    """A value as text, as `str` has it."""
    if type(value) is str:
        return value
    if value is None or value is True or value is False:
        return str(value)
    if isinstance(value, Undefined):
        return str(value)
    weight = weigh(meter, value)
    meter.will_make(weight.characters + 4 * weight.items)
    return meter.made(str(value))


def key_of(key: Any) -> Any:
    """A key of a dictionary: text, a number, or nothing. What is nested takes too long to hash."""
    if type(key) not in SCALARS and not isinstance(key, Undefined):
        raise TemplateFailed(
            f"the chat template looks for a {type(key).__name__} in a dictionary: want text or a number"
        )
    return key


def checked_integer(number: Any) -> Any:
    """The number, unless it is too long."""
    if type(number) is int and number.bit_length() > MOST_INTEGER_BITS:
        raise TemplateRefused(f"the chat template makes a number of more than {MOST_INTEGER_BITS} bits")
    return number


def plain(meter: Meter, name: str, value: Any) -> Any:
    """What a client sent: JSON's types and no others, which have methods that nobody looked at."""
    try:
        weigh(meter, value)
    except TemplateRefused as error:
        raise TemplateFailed(f"`{name}` can't be rendered: {error}") from None
    return value
