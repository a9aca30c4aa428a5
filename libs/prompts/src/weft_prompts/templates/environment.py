"""Jinja2 as `transformers` sets it up, with nothing that a template could reach out by.

What a template may touch is listed (types, their methods, filters, tests, functions); all else is not there.
"""

import types
from collections.abc import Mapping
from typing import Any, Final

from jinja2 import Undefined, UndefinedError, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Cycler, Joiner, Namespace

from weft_prompts.templates import operators
from weft_prompts.templates.context import MeteredContext
from weft_prompts.templates.filters import FILTERS, TESTS
from weft_prompts.templates.formatting import format_text
from weft_prompts.templates.functions import FUNCTIONS, ChatNamespace
from weft_prompts.templates.methods import METHODS, called
from weft_prompts.templates.refusals import TemplateFailed, TemplateRefused
from weft_prompts.templates.syntax import GenerationBlocks
from weft_prompts.templates.values import is_object, key_of, text_of, weigh

LOOP: Final = frozenset(
    [
        "changed",
        "cycle",
        "depth",
        "depth0",
        "first",
        "index",
        "index0",
        "last",
        "length",
        "nextitem",
        "previtem",
        "revindex",
        "revindex0",
    ]
)
ATTRIBUTES: Final[Mapping[type, frozenset[str]]] = {
    **METHODS,
    LoopContext: LOOP,
    Cycler: frozenset(("current", "next", "reset")),
    Macro: frozenset(("name", "arguments", "catch_kwargs", "catch_varargs")),
}
OF_DICTIONARIES: Final = frozenset(dir(dict))
OUR_FUNCTIONS: Final = frozenset(each for each in FUNCTIONS.values() if isinstance(each, types.FunctionType))
OF_COMPILER: Final = ("_loop_vars", "_block_vars")
"""Arguments that jinja2's compiler adds to calls, for functions that want a loop's variables. None of ours does."""
MADE: Final = frozenset((ChatNamespace, Cycler, Joiner))


class _Format:
    """A text's `format` or `format_map`, ready to be called."""

    __slots__ = ("mapped", "text")

    def __init__(self, text: str, *, mapped: bool) -> None:
        self.text, self.mapped = text, mapped


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates and answers what they ask while they render. It holds no state of a rendering."""

    context_class = MeteredContext
    intercepted_binops = frozenset(operators.PLAIN)

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # it would compute what the template writes down, before anything is counted
            cache_size=0,
            finalize=written,
            extensions=["jinja2.ext.loopcontrols", GenerationBlocks],
        )
        self.filters = dict(FILTERS)
        self.tests = dict(TESTS)
        self.globals = dict(FUNCTIONS)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if is_object(obj) and attribute not in OF_DICTIONARIES:
            try:
                return obj[attribute]
            except KeyError:
                return self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(argument) is slice:
            raise TemplateRefused("the chat template cuts by a slice that it does not write itself")
        if isinstance(obj, ChatNamespace):
            return self.getattr(obj, str(argument))
        return super().getitem(obj, key_of(argument))

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr.startswith("_"):
            return False
        return isinstance(obj, Namespace) or attr in ATTRIBUTES.get(_kind(obj), ())

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        if attribute.startswith("_"):
            raise SecurityError(f"the chat template may not look at `{attribute[:50]}` of a {type(obj).__name__}")
        return super().unsafe_undefined(obj, attribute)

    def wrap_str_format(self, value: Any) -> Any:
        if type(value) is types.BuiltinMethodType and value.__name__ in ("format", "format_map"):
            owner = value.__self__
            if type(owner) is str:
                return _Format(owner, mapped=value.__name__ == "format_map")
        return None

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        assert isinstance(context, MeteredContext)
        return operators.arithmetic(context.meter, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        assert isinstance(__context, MeteredContext)
        meter, kind = __context.meter, _kind(__obj)
        meter.step(1 + len(args))
        for name in OF_COMPILER:
            kwargs.pop(name, None)
        if kind is types.BuiltinMethodType and type(__obj.__self__) in METHODS:
            return called(meter, __obj, args, kwargs)
        if kind is Macro or kind is LoopContext:
            meter.enter()
            try:
                return __context.call(__obj, *args, **kwargs)
            finally:
                meter.leave()
        if kind is _Format:
            return _formatted(__self, __context, __obj, args, kwargs)
        if kind is types.FunctionType and __obj in OUR_FUNCTIONS:
            return __context.call(__obj, *args, **kwargs)
        if kind is type and __obj in MADE:
            return __obj(*args, **kwargs)
        if kind is Joiner or (kind is types.MethodType and type(__obj.__self__) in (LoopContext, Cycler)):
            for word in args:
                weigh(meter, word)
            return __obj(*args, **kwargs)
        if isinstance(__obj, Undefined):
            return __obj(*args, **kwargs)
        raise UndefinedError(f"a {kind.__name__} can't be called")

    def call_filter(self, name: str, *words: Any, **named: Any) -> Any:
        _nameable(name, self.filters)
        return super().call_filter(name, *words, **named)

    def call_test(self, name: str, *words: Any, **named: Any) -> Any:
        _nameable(name, self.tests)
        return super().call_test(name, *words, **named)


def _kind(value: Any) -> type[Any]:
    return type(value)  # pyright: ignore[reportUnknownVariableType]


def _nameable(name: Any, known: Mapping[str, Any]) -> None:
    """Filters and tests that a template names as text are those that it could write."""
    if type(name) is not str or name.startswith("(") or name not in known:
        raise TemplateFailed(f"the chat template uses {str(name)[:50]!r}, which is no filter or test here")


def _formatted(
    environment: ChatEnvironment, context: MeteredContext, form: _Format, words: tuple[Any, ...], named: dict[str, Any]
) -> str:
    if not form.mapped:
        return format_text(environment, context.meter, form.text, words, named)
    if named or len(words) != 1 or not is_object(words[0]):
        raise TemplateFailed("`format_map` takes one dictionary")
    return format_text(environment, context.meter, form.text, (), words[0])


@pass_context
def written(context: Context, value: Any) -> str:
    """What `{{ value }}` writes."""
    assert isinstance(context, MeteredContext)
    if type(value) is str:
        return context.meter.made(value)
    if type(value) is ChatNamespace:
        return "<Namespace>"
    return context.meter.made(text_of(context.meter, value))
