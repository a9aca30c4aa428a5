"""Which methods of values a template may call, each with its price. There are no others."""

from collections.abc import Callable
from typing import Any, Final, cast

from weft_prompts.templates.bounds import Meter
from weft_prompts.templates.values import is_object, key_of, listed, text_of, weigh

Method = Callable[..., Any]


def called(meter: Meter, method: Any, words: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Call a method of a text, list or dictionary that METHODS has."""
    owner: Any = method.__self__
    name: str = method.__name__
    for word in (*words, *named.values()):
        weigh(meter, word)
    if type(owner) is str:
        return _text_method(meter, owner, name, words, named)
    if is_object(owner):
        if name == "get" and words:
            key_of(words[0])
        meter.step(1 + (len(owner) if name == "copy" else 0))
    elif name == "copy":
        meter.will_list(len(owner))
    else:
        weigh(meter, owner)
    return method(*words, **named)


def _text_method(meter: Meter, text: str, name: str, words: tuple[Any, ...], named: dict[str, Any]) -> Any:
    meter.scan(len(text))
    match name:
        case "replace" if len(words) >= 2:
            return replaced(meter, text, *words)
        case "join" if len(words) == 1:
            return joined(meter, text, words[0])
        case "center" | "ljust" | "rjust" | "zfill" if words and type(words[0]) is int:
            meter.will_make(words[0])
        case _:
            pass
    result: Any = getattr(text, name)(*words, **named)
    if type(result) is str:
        return meter.made(result)
    if isinstance(result, (list, tuple)):
        parts: list[str] = list(cast(Any, result))
        meter.will_list(len(parts))
        meter.copied(sum(map(len, parts)))
    return cast(Any, result)


def replaced(meter: Meter, text: str, old: Any, new: Any, count: Any = -1) -> str:
    """`text.replace(old, new, count)`."""
    if type(old) is str and type(new) is str and len(new) > len(old):
        meter.scan(len(text))
        meter.will_make(len(text) + text.count(old) * (len(new) - len(old)))
    return meter.made(text.replace(old, new, count))


def joined(meter: Meter, between: str, parts: Any, *, as_text: bool = False) -> str:
    """`between.join(parts)`; `as_text`: whatever the parts are."""
    found = [text_of(meter, part) if as_text else part for part in listed(meter, parts)]
    sizes = sum(len(part) for part in found if type(part) is str)
    meter.copied(sizes + len(between) * max(0, len(found) - 1))
    return between.join(found)


_TEXT: Final = """capitalize casefold center count endswith find format format_map index isalnum isalpha isascii
isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip partition
removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip
swapcase title upper zfill"""
METHODS: Final[dict[type, frozenset[str]]] = {
    str: frozenset(_TEXT.split()),
    dict: frozenset(("copy", "get", "items", "keys", "values")),
    list: frozenset(("copy", "count", "index")),
    tuple: frozenset(("count", "index")),
}
