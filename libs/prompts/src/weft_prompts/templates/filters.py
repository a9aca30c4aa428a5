"""Filters and tests that templates may use, each with its price: jinja2's, less those for pages or by chance."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from jinja2 import filters, pass_context, tests
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.tests import TESTS as JINJA_TESTS
from jinja2.utils import Namespace

from weft_prompts.templates import operators
from weft_prompts.templates.bounds import Meter
from weft_prompts.templates.context import MeteredContext
from weft_prompts.templates.formatting import percent_format
from weft_prompts.templates.functions import to_json
from weft_prompts.templates.methods import joined, replaced
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.templates.values import SCALARS, SEQUENCES, VIEWS, checked_integer, listed, text_of, weigh

PLAIN_KINDS: Final = SCALARS | SEQUENCES | VIEWS | {dict, range}
PLAIN_FILTERS: Final = [
    "abs",
    "attr",
    "capitalize",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "sum",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
    "wordcount",
]
SHALLOW: Final = frozenset(
    [
        "attr",
        "count",
        "d",
        "default",
        "first",
        "items",
        "last",
        "length",
        "list",
        "map",
        "reject",
        "rejectattr",
        "reverse",
        "select",
        "selectattr",
    ]
)
"""They look at each item once, or at none; what they ask of an item has its own price."""
SLOW: Final = frozenset(("title", "wordcount"))
"""They go by expressions or in Python: a character costs what an operation does."""
MOST_WIDTH: Final = 1000


def _bounded(name: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    wants = getattr(inner, "jinja_pass_arg", None)
    wanted = wants.name if wants is not None else ""

    @pass_context
    def priced(context: MeteredContext, value: Any, *words: Any, **named: Any) -> Any:
        meter = context.meter
        value = _looked_at(meter, name, value)
        for word in (*words, *named.values()):
            if type(word) is not str and not isinstance(word, Namespace):
                weigh(meter, word)
            elif type(word) is str:
                meter.scan(len(word))
        before = {"context": (context,), "environment": (context.environment,), "eval_context": (context.eval_ctx,)}
        return _result(meter, inner(*before.get(wanted, ()), value, *words, **named))

    return priced


def _looked_at(meter: Meter, name: str, value: Any) -> Any:
    """The value with its price paid; what comes one by one becomes a list."""
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is str:
        meter.scan(len(value))
        if name in SLOW:
            meter.step(len(value))
        return value
    if kind in PLAIN_KINDS:
        if kind in SCALARS:
            meter.step(1)
        elif name in SHALLOW:
            meter.step(1 + len(value))
        else:
            weight = weigh(meter, value)
            if name in ("sort", "dictsort", "groupby", "unique", "min", "max"):
                meter.step(weight.items.bit_length() * (weight.items + weight.characters // 64))
        return value
    if isinstance(value, Iterator):
        return listed(meter, value)
    meter.step(1)
    return value


def _result(meter: Meter, result: Any) -> Any:
    if type(result) is str:
        return meter.made(result)
    if type(result) is int:
        return checked_integer(result)
    if type(result) is list or isinstance(result, Iterator):
        return listed(meter, result)
    return result


@pass_context
def as_string(context: MeteredContext, value: Any) -> str:
    """`string`, and `safe`: nothing is escaped, so nothing has to be kept from it."""
    return text_of(context.meter, value)


@pass_context
def escape(context: MeteredContext, value: Any) -> str:
    """`escape`."""
    text = text_of(context.meter, value)
    for char, name in (("&", "&amp;"), (">", "&gt;"), ("<", "&lt;"), ("'", "&#39;"), ('"', "&#34;")):
        text = replaced(context.meter, text, char, name)
    return text


@pass_context
def join(context: MeteredContext, value: Any, d: Any = "", attribute: Any = None) -> str:
    """`join`."""
    meter = context.meter
    if attribute is not None:
        value = list(map(filters.make_attrgetter(context.environment, attribute), listed(meter, value)))
    return joined(meter, text_of(meter, d), value, as_text=True)


@pass_context
def replace(context: MeteredContext, s: Any, old: Any, new: Any, count: Any = None) -> str:
    """`replace`."""
    meter = context.meter
    return replaced(meter, text_of(meter, s), text_of(meter, old), text_of(meter, new), -1 if count is None else count)


@pass_context
def format_percent(context: MeteredContext, value: Any, *words: Any, **named: Any) -> str:
    """`format`: by `%`."""
    if words and named:
        raise TemplateFailed("the filter `format` takes values or names, not both")
    return percent_format(context.meter, text_of(context.meter, value), named or words)


@pass_context
def center(context: MeteredContext, value: Any, width: Any = 80) -> str:
    """`center`."""
    context.meter.will_make(width)
    return context.meter.made(text_of(context.meter, value).center(width))


@pass_context
def indent(context: MeteredContext, s: Any, width: Any = 4, first: bool = False, blank: bool = False) -> str:
    """`indent`."""
    meter, text = context.meter, text_of(context.meter, s)
    wide = len(width) if type(width) is str else width
    if type(wide) is not int or wide > MOST_WIDTH:
        raise TemplateRefused(f"the chat template indents by more than {MOST_WIDTH}")
    meter.scan(len(text))
    meter.will_make(len(text) + (len(text.splitlines()) + 1) * (wide + 1))
    return meter.made(filters.do_indent(text, width, first, blank))


@pass_context
def rounded(context: MeteredContext, value: Any, precision: Any = 0, method: Any = "common") -> Any:
    """`round`."""
    weigh(context.meter, value)
    if type(precision) is not int or abs(precision) > MOST_WIDTH:
        raise TemplateRefused(f"the chat template rounds to more than {MOST_WIDTH} digits")
    return filters.do_round(value, precision, method)


@pass_context
def total(context: MeteredContext, iterable: Any, attribute: Any = None, start: Any = 0) -> Any:
    """`sum`."""
    items: list[Any] = listed(context.meter, iterable)
    if attribute is not None:
        items = list(map(filters.make_attrgetter(context.environment, attribute), items))
    for item in items:
        start = operators.arithmetic(context.meter, "+", start, item)
    return start


def _priced_test(inner: Callable[..., Any]) -> Callable[..., Any]:
    @pass_context
    def priced(context: MeteredContext, value: Any, *words: Any) -> Any:
        if type(value) not in SCALARS or type(value) is str:
            for looked in (value, *words):
                if type(looked) in PLAIN_KINDS:
                    weigh(context.meter, looked)
        return inner(value, *words)

    return priced


@pass_context
def is_in(context: MeteredContext, value: Any, whole: Any) -> bool:
    """`in`, as a test."""
    return operators.contains(context.meter, whole, value)


FILTERS: Final[dict[str, Callable[..., Any]]] = {
    name: _bounded(name, JINJA_FILTERS[name]) for name in PLAIN_FILTERS
} | {
    "center": center,
    "e": escape,
    "escape": escape,
    "format": format_percent,
    "indent": indent,
    "join": join,
    "replace": replace,
    "round": rounded,
    "safe": as_string,
    "string": as_string,
    "sum": total,
    "tojson": to_json,
    operators.COMPARE: operators.compare,
    operators.CONCATENATE: operators.concatenate,
    operators.CUT: operators.cut,
    operators.KEY: operators.as_key,
    operators.TURN: operators.turn,
}
_FREE: Final = [
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "even",
    "false",
    "float",
    "integer",
    "iterable",
    "mapping",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "true",
    "undefined",
]
_PRICED: Final = [
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "eq",
    "equalto",
    "ge",
    "greaterthan",
    "gt",
    "le",
    "lessthan",
    "lower",
    "lt",
    "ne",
    "upper",
]
TESTS: Final[dict[str, Callable[..., Any]]] = (
    {name: JINJA_TESTS[name] for name in _FREE}
    | {name: _priced_test(JINJA_TESTS[name]) for name in _PRICED}
    | {"in": is_in, "filter": tests.test_filter, "test": tests.test_test}
)
