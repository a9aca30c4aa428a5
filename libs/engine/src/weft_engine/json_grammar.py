"""A JSON schema as a grammar in llama.cpp's form (GBNF), so that an answer can't be anything but JSON that fits.

The rule: every answer fits the schema; not every value that fits can be answered. So an object has its declared
properties in their order and no others, strings and numbers have a bounded length where the schema gives one, and
JSON is written compactly. What can't be promised is refused by its keyword, never passed over.

Source of the keywords: JSON Schema 2020-12. Source of the grammar's form: llama.cpp's grammars/README.md.
"""

import json
from functools import lru_cache
from typing import Any, Final

from weft_engine.guided_grammar import guided_grammar_of
from weft_engine.json_ambiguity import check_ambiguity
from weft_engine.json_bounds import MAX_REPEATS, LengthBounds, number_bounds
from weft_engine.json_literals import one_of, quoted
from weft_engine.json_numbers import integer_between, number_between
from weft_engine.json_parts import FORMATS, GUIDED_FORMATS, TEXT
from weft_engine.json_rules import Rules
from weft_engine.json_schema import (
    ANNOTATIONS,
    COMPOUND,
    KNOWN,
    LITERAL,
    Schema,
    SchemaRefused,
    fits_type,
    kinds_of,
    list_of,
    object_of,
    resolved,
    types_of,
)
from weft_engine.json_unions import are_apart

MAX_SCHEMA_CHARS: Final = 64 * 1024
MAX_DEPTH: Final = 96
"""Schemas in schemas, references followed."""


@lru_cache(maxsize=8)
def grammar_of(schema_text: str, *, or_text: bool, most: int = 1, or_json: str = "") -> str:
    """The grammar of a schema given as JSON: of one value, or of up to `most`, each on a line of its own.

    `or_text`: or of text that begins with no brace or space. `or_json`: or of one value of this schema.
    Where a schema has keywords that such rules can't keep, it is one of llguidance: see `guided_grammar`.
    Raises SchemaRefused.
    """
    if most > MAX_REPEATS:
        raise SchemaRefused(f"{most} values are wanted; at most {MAX_REPEATS} can be bounded")
    grammar, start = _of_schema(schema_text, "")
    ways = [f'{start} ("\\n" {start}){{0,{most - 1}}}' if most > 1 else start]
    if or_text:
        ways += [grammar.rules.add("text", TEXT), '""']
    written = grammar.rules.written()
    guided = grammar.guided
    if or_json:
        other, way = _of_schema(or_json, "o")
        ways.append(way)
        written += other.rules.written(but=grammar.rules)
        guided = guided or other.guided
    if guided:
        return guided_grammar_of(schema_text, or_text=or_text, most=most, or_json=or_json)
    return f"{written}root ::= {' | '.join(ways)}\n"


def _of_schema(text: str, mark: str) -> "tuple[_Grammar, str]":
    """The rules of a schema, whose own names begin with the mark, and the one to begin with."""
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaRefused(f"the JSON schema has {len(text)} characters, at most {MAX_SCHEMA_CHARS} are taken")
    try:
        schema: Any = json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaRefused("the JSON schema is no JSON") from None
    grammar = _Grammar(schema, mark)
    start = grammar.rule_of(schema, "#", ())
    check_ambiguity(schema)
    return grammar, start


class _Grammar:
    """Makes rules of a schema; each of its places becomes at most one."""

    def __init__(self, whole: Any, mark: str) -> None:
        self.rules = Rules(mark)
        self.guided = False
        """A keyword was met that these rules can't keep, and llguidance can."""
        self._whole = whole
        self._lengths = LengthBounds()
        self._refs: dict[str, str] = {}
        self._depth = 0

    def rule_of(self, schema: Any, at: str, aliases: tuple[str, ...]) -> str:
        """The rule of one schema. `aliases`: the references that led here without a value between them."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaRefused(f"the JSON schema is nested too deeply at {at[:80]}")
        rule = self._rule(schema, at, aliases)
        self._depth -= 1
        return rule

    def _rule(self, schema: Any, at: str, aliases: tuple[str, ...]) -> str:
        if schema is True or schema == {}:
            return self.rules.part("value")
        known = object_of(schema)
        if known is None:
            raise SchemaRefused(f"the JSON schema has {json.dumps(schema)[:40]} at {at}; it must be an object")
        for keyword in known:
            if keyword not in KNOWN and keyword not in ANNOTATIONS and not keyword.startswith("x-"):
                raise SchemaRefused(f"the JSON schema's keyword {keyword[:40]!r} at {at} is not supported")
        compound = [keyword for keyword in COMPOUND if keyword in known]
        if not compound:
            return self._typed(known, at)
        beside = [k for k in known if k in KNOWN and k != compound[0] and not (k == "type" and compound[0] in LITERAL)]
        if beside:
            raise SchemaRefused(
                f"the JSON schema has {compound[0]!r} beside {beside[0]!r} at {at}; only one of them is supported"
            )
        return self._compound(compound[0], known, at, aliases)

    def _compound(self, keyword: str, schema: Schema, at: str, aliases: tuple[str, ...]) -> str:
        value = schema[keyword]
        if keyword == "$ref":
            return self._reference(value, at, aliases)
        if keyword in LITERAL:
            return self._literals([value] if keyword == "const" else value, schema, at)
        branches = list_of(value)
        if not branches:
            raise SchemaRefused(f"the JSON schema's {keyword!r} at {at} must be a list that is not empty")
        if keyword == "allOf" and len(branches) > 1:
            raise SchemaRefused(f"the JSON schema's 'allOf' at {at} is supported with one schema only")
        if keyword == "oneOf" and not are_apart(self._whole, branches):
            raise SchemaRefused(f"the JSON schema's 'oneOf' at {at} has branches that one value could fit; use 'anyOf'")
        rules = [self.rule_of(branch, f"{at}/{keyword}/{i}", aliases) for i, branch in enumerate(branches)]
        return rules[0] if len(rules) == 1 else self.rules.fresh(" | ".join(rules))

    def _reference(self, pointer: Any, at: str, aliases: tuple[str, ...]) -> str:
        target = resolved(self._whole, pointer, at)
        if pointer in aliases:
            raise SchemaRefused(f"the JSON schema's reference {pointer[:60]!r} at {at} leads back to itself")
        known = self._refs.get(pointer)
        if known is not None:
            return known
        name = self._refs[pointer] = self.rules.name("ref")
        self.rules.add(name, self.rule_of(target, pointer, (*aliases, pointer)))
        return name

    def _literals(self, values: Any, schema: Schema, at: str) -> str:
        listed = list_of(values)
        if not listed:
            raise SchemaRefused(f"the JSON schema's 'enum' at {at} must be a list that is not empty")
        types = types_of(schema, at)
        fitting = [v for v in listed if types is None or any(fits_type(v, t) for t in types)]
        if not fitting:
            raise SchemaRefused(f"the JSON schema's 'enum' at {at} has no value of its type")
        return self.rules.fresh(one_of([json.dumps(v, ensure_ascii=False) for v in fitting]))

    def _typed(self, schema: Schema, at: str) -> str:
        types = kinds_of(schema, at)
        if types is None:
            return self.rules.part("value")
        rules = [self._of_type(type, schema, at) for type in types]
        return rules[0] if len(rules) == 1 else self.rules.fresh(" | ".join(rules))

    def _of_type(self, type: str, schema: Schema, at: str) -> str:
        match type:
            case "object":
                return self._object(schema, at)
            case "array":
                return self._array(schema, at)
            case "string":
                return self._string(schema, at)
            case "integer" | "number":
                return self._numeric(type, schema, at)
            case _:
                return self.rules.part(type)

    def _object(self, schema: Schema, at: str) -> str:
        declared, required = object_of(schema.get("properties", {})), list_of(schema.get("required", []))
        if declared is None or required is None:
            raise SchemaRefused(f"the JSON schema at {at} needs 'properties' as an object and 'required' as a list")
        for name in required:
            if not isinstance(name, str) or name not in declared:
                raise SchemaRefused(f"the JSON schema at {at} requires {str(name)[:40]!r}, which no property declares")
        if not declared:
            return self._map(schema.get("additionalProperties", True), at)
        self.rules.part("comma")
        self.rules.part("colon")
        always = set(required)
        after = first = '""'
        for i, (name, value) in reversed(list(enumerate(declared.items()))):
            rule = self.rule_of(value, f"{at}/properties/{name}", ())
            pair = f"{quoted(json.dumps(name, ensure_ascii=False))} colon {rule}"
            must = name in always
            first = f"{pair} {after}" if must else f"({pair} {after} | {first})"
            rest = f"comma {pair} {after}" if must else f"(comma {pair})? {after}"
            after = self.rules.fresh(rest) if i else '""'
            first = self.rules.fresh(first) if i else first
        return self.rules.fresh(f'"{{" {first} "}}"')

    def _map(self, values: Any, at: str) -> str:
        """An object without declared properties: names as the model likes."""
        if values is True or values == {}:
            return self.rules.part("object")
        if values is False:
            return self.rules.fresh('"{" "}"')
        rule = self.rule_of(values, f"{at}/additionalProperties", ())
        for needed in ("string", "colon", "comma"):
            self.rules.part(needed)
        pair = self.rules.fresh(f"string colon {rule}")
        return self.rules.fresh(f'"{{" ({pair} (comma {pair})*)? "}}"')

    def _array(self, schema: Schema, at: str) -> str:
        least, most = self._lengths.of(schema, "minItems", "maxItems", at)
        self.rules.part("comma")
        if "prefixItems" in schema:
            places = list_of(schema["prefixItems"])
            if not places or least > len(places) or (most is not None and most < len(places)):
                raise SchemaRefused(f"the JSON schema's 'prefixItems' at {at} is supported with just so many items")
            rules = [self.rule_of(place, f"{at}/prefixItems/{i}", ()) for i, place in enumerate(places)]
            return self.rules.fresh(f'"[" {" comma ".join(rules)} "]"')
        if most == 0:
            return self.rules.fresh('"[" "]"')
        item = self.rule_of(schema.get("items", True), f"{at}/items", ())
        tail = f"{{{max(0, least - 1)},{'' if most is None else most - 1}}}"
        body = f"{item} (comma {item}){tail}"
        return self.rules.fresh(f'"[" {body} "]"' if least else f'"[" ({body})? "]"')

    def _string(self, schema: Schema, at: str) -> str:
        least, most = self._lengths.of(schema, "minLength", "maxLength", at)
        form = schema.get("format")
        if "pattern" in schema or form in GUIDED_FORMATS:
            self.guided = True
            return self.rules.part("string")
        if form is not None:
            if not isinstance(form, str) or form not in FORMATS or least or most is not None:
                have = ", ".join((*FORMATS, *GUIDED_FORMATS))
                raise SchemaRefused(
                    f"the JSON schema's format {str(form)[:40]!r} at {at} is not supported; there is {have}, "
                    "without a length"
                )
            return self.rules.fresh(f'"\\"" {FORMATS[form]} "\\""')
        if not least and most is None:
            return self.rules.part("string")
        self.rules.part("char")
        return self.rules.fresh(f'"\\"" char{{{least},{"" if most is None else most}}} "\\""')

    def _numeric(self, type: str, schema: Schema, at: str) -> str:
        self.guided = self.guided or "multipleOf" in schema
        low, high = number_bounds(type, schema, at)
        if low is None and high is None:
            return self.rules.part(type)
        least, most = -(10**16 - 1) if low is None else low, 10**16 - 1 if high is None else high
        if least > most:
            raise SchemaRefused(f"the JSON schema at {at} leaves no number")
        return self.rules.fresh(integer_between(least, most) if type == "integer" else number_between(least, most))
