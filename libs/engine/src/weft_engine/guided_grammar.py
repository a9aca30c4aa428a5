"""Constraints that llama.cpp's own grammars can't keep, such as patterns: as grammars of llguidance, which the binding
is built with.

llama.cpp says in its log alone that llguidance gave up, and goes on unconstrained. So a grammar is compiled here
first, and what comes is held against it: an answer that leaves it ends as a failure, never as an answer.
"""

import importlib
import json
from functools import lru_cache
from typing import Any, Final

from weft_engine.json_schema import SchemaRefused

_HEAD: Final = "%llguidance {}\n"
"""By this llama.cpp knows whose grammar it is."""
_WAY: Final = {
    "whitespace_flexible": False,
    "item_separator": ", ",
    "key_separator": ": ",
    "coerce_one_of": True,  # the branches were found to be apart before
}
_TEXT: Final = "/[^{ \\t\\r\\n](.|\\n)*/"


class GrammarMatcher:
    """Matches an answer against its grammar as it comes."""

    def __init__(self, grammar: str) -> None:
        self._matcher: Any = _llguidance().LLMatcher(_bytes(), grammar)

    def takes(self, piece: str) -> bool:
        """Whether the answer with this piece may still fit."""
        data = piece.encode()
        return self._matcher.try_consume_tokens(list(data)) == len(data)

    @property
    def whole(self) -> bool:
        """Whether the answer so far fits."""
        return bool(self._matcher.is_accepting())


def guided_grammar_of(schema_text: str, *, or_text: bool, most: int, or_json: str) -> str:
    """The grammar of what `json_grammar.grammar_of` was asked for. Raises SchemaRefused."""
    ways = [f'value ("\\n" value){{0,{most - 1}}}' if most > 1 else "value"]
    rules = [f"value: %json {_guided(schema_text)}"]
    if or_text:
        ways += ["TEXT", '""']
        rules.append(f"TEXT: {_TEXT}")
    if or_json:
        ways.append("other")
        rules.append(f"other: %json {_guided(or_json)}")
    grammar = f"{_HEAD}start: {' | '.join(ways)}\n" + "\n".join(rules)
    if wrong := _fault_of(grammar):
        raise SchemaRefused(f"the JSON schema can't be kept: {wrong}")
    return grammar


def is_guided(grammar: str) -> bool:
    """Whether a grammar is llguidance's."""
    return grammar.startswith(_HEAD)


@lru_cache(maxsize=8)
def _fault_of(grammar: str) -> str:
    """Why llguidance does not take a grammar, in one line; empty: it does."""
    said: str = _llguidance().LLMatcher.validate_grammar(grammar, _bytes()) or ""
    return " ".join(said.partition("failed to compile JSON schema: ")[2].partition("\n   1 |")[0].split())[:200] or said


def _guided(schema_text: str) -> str:
    """A schema with our way to write JSON, whatever it says of that itself."""
    return json.dumps({**json.loads(schema_text), "x-guidance": _WAY})


def _llguidance() -> Any:
    """Raises SchemaRefused where it is not installed."""
    try:
        return importlib.import_module("llguidance")
    except ImportError:
        raise SchemaRefused("the JSON schema needs llguidance, which is not installed beside the engine") from None


@lru_cache(maxsize=1)
def _bytes() -> Any:
    """A tokenizer whose tokens are bytes."""
    return _llguidance().LLTokenizer("byte")
