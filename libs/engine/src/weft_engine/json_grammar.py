"""A JSON schema as a grammar in llama.cpp's form (GBNF), so that an answer can't be anything but JSON that fits.

The rule: every answer fits the schema; not every value that fits can be answered. So an object has its declared
properties in their order and no others, strings and numbers have a bounded length where the schema gives one, and
JSON is written compactly. What can't be promised is refused by its keyword, never passed over.

Source of the keywords: JSON Schema 2020-12. Source of the grammar's form: llama.cpp's grammars/README.md.
"""

import json
from functools import lru_cache
from typing import Any, Final

from weft_engine.json_literals import one_of, quoted
from weft_engine.json_numbers import integer_between, number_between
from weft_engine.json_parts import FORMATS, NEEDS, PARTS, TEXT
from weft_engine.json_readings import check_readings
from weft_engine.json_schema import (
    ANNOTATIONS,
    COMPOUND,
    KNOWN,
    LITERAL,
    Schema,
    SchemaRefused,
    fits_type,
    is_whole,
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
MAX_REPEATS: Final = 1000
"""of characters or items: each costs the grammar a rule"""
MAX_TOTAL_REPEATS: Final = 8000
MAX_RULES: Final = 4000


@lru_cache(maxsize=8)
def grammar_of(schema_text: str, *, or_text: bool) -> str:
    """The grammar of a schema given as JSON; `or_text`: or of text that begins with no brace or space.

    Raises SchemaRefused.
    """
    if len(schema_text) > MAX_SCHEMA_CHARS:
        raise SchemaRefused(f"the JSON schema has {len(schema_text)} characters, at most {MAX_SCHEMA_CHARS} are taken")
    try:
        schema: Any = json.loads(schema_text)
    except (ValueError, RecursionError):
        raise SchemaRefused("the JSON schema is no JSON") from None
    grammar = _Grammar(schema)
    start = grammar.rule_of(schema, "#", ())
    check_readings(schema)
    if or_text:
        grammar.add("text", TEXT)
        start = f'{start} | text | ""'
    grammar.add("root", start)
    return grammar.written()


class _Grammar:
    """Collects rules; each schema's place becomes at most one."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole
        self._rules: dict[str, str] = {}
        self._refs: dict[str, str] = {}
        self._repeats = 0
        self._count = 0
        self._depth = 0

    def written(self) -> str:
        return "".join(f"{name} ::= {body}\n" for name, body in self._rules.items())

    def add(self, name: str, body: str) -> str:
        self._rules[name] = body
        return name

    def part(self, name: str) -> str:
        """A piece of JSON itself, with what it needs."""
        if name not in self._rules:
            self.add(name, PARTS[name])
            for needed in NEEDS.get(name, ()):
                self.part(needed)
        return name

    def fresh(self, body: str) -> str:
        self._count += 1
        if self._count > MAX_RULES:
            raise SchemaRefused("the JSON schema is too large for a grammar")
        return self.add(f"r{self._count}", body)

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
            return self.part("value")
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
        return rules[0] if len(rules) == 1 else self.fresh(" | ".join(rules))

    def _reference(self, pointer: Any, at: str, aliases: tuple[str, ...]) -> str:
        target = resolved(self._whole, pointer, at)
        if pointer in aliases:
            raise SchemaRefused(f"the JSON schema's reference {pointer[:60]!r} at {at} leads back to itself")
        known = self._refs.get(pointer)
        if known is not None:
            return known
        self._count += 1
        name = self._refs[pointer] = f"ref{self._count}"
        self.add(name, self.rule_of(target, pointer, (*aliases, pointer)))
        return name

    def _literals(self, values: Any, schema: Schema, at: str) -> str:
        listed = list_of(values)
        if not listed:
            raise SchemaRefused(f"the JSON schema's 'enum' at {at} must be a list that is not empty")
        types = types_of(schema, at)
        fitting = [v for v in listed if types is None or any(fits_type(v, t) for t in types)]
        if not fitting:
            raise SchemaRefused(f"the JSON schema's 'enum' at {at} has no value of its type")
        return self.fresh(one_of([json.dumps(v, ensure_ascii=False) for v in fitting]))

    def _typed(self, schema: Schema, at: str) -> str:
        types = kinds_of(schema, at)
        if types is None:
            return self.part("value")
        rules = [self._of_type(type, schema, at) for type in types]
        return rules[0] if len(rules) == 1 else self.fresh(" | ".join(rules))

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
                return self.part(type)

    def _object(self, schema: Schema, at: str) -> str:
        declared, required = object_of(schema.get("properties", {})), list_of(schema.get("required", []))
        if declared is None or required is None:
            raise SchemaRefused(f"the JSON schema at {at} needs 'properties' as an object and 'required' as a list")
        for name in required:
            if not isinstance(name, str) or name not in declared:
                raise SchemaRefused(f"the JSON schema at {at} requires {str(name)[:40]!r}, which no property declares")
        if not declared:
            return self._map(schema.get("additionalProperties", True), at)
        self.part("comma")
        self.part("colon")
        always = set(required)
        after = first = '""'
        for i, (name, value) in reversed(list(enumerate(declared.items()))):
            rule = self.rule_of(value, f"{at}/properties/{name}", ())
            pair = f"{quoted(json.dumps(name, ensure_ascii=False))} colon {rule}"
            must = name in always
            first = f"{pair} {after}" if must else f"({pair} {after} | {first})"
            rest = f"comma {pair} {after}" if must else f"(comma {pair})? {after}"
            after = self.fresh(rest) if i else '""'
            first = self.fresh(first) if i else first
        return self.fresh(f'"{{" {first} "}}"')

    def _map(self, values: Any, at: str) -> str:
        """An object without declared properties: names as the model likes."""
        if values is True or values == {}:
            return self.part("object")
        if values is False:
            return self.fresh('"{" "}"')
        rule = self.rule_of(values, f"{at}/additionalProperties", ())
        for needed in ("string", "colon", "comma"):
            self.part(needed)
        pair = self.fresh(f"string colon {rule}")
        return self.fresh(f'"{{" ({pair} (comma {pair})*)? "}}"')

    def _array(self, schema: Schema, at: str) -> str:
        least, most = self._bounds(schema, "minItems", "maxItems", at)
        self.part("comma")
        if "prefixItems" in schema:
            places = list_of(schema["prefixItems"])
            if not places or least > len(places) or (most is not None and most < len(places)):
                raise SchemaRefused(f"the JSON schema's 'prefixItems' at {at} is supported with just so many items")
            rules = [self.rule_of(place, f"{at}/prefixItems/{i}", ()) for i, place in enumerate(places)]
            return self.fresh(f'"[" {" comma ".join(rules)} "]"')
        if most == 0:
            return self.fresh('"[" "]"')
        item = self.rule_of(schema.get("items", True), f"{at}/items", ())
        tail = f"{{{max(0, least - 1)},{'' if most is None else most - 1}}}"
        body = f"{item} (comma {item}){tail}"
        return self.fresh(f'"[" {body} "]"' if least else f'"[" ({body})? "]"')

    def _string(self, schema: Schema, at: str) -> str:
        least, most = self._bounds(schema, "minLength", "maxLength", at)
        form = schema.get("format")
        if form is not None:
            if not isinstance(form, str) or form not in FORMATS or least or most is not None:
                have = ", ".join(FORMATS)
                raise SchemaRefused(
                    f"the JSON schema's format {str(form)[:40]!r} at {at} is not supported; there is {have}, "
                    "without a length"
                )
            return self.fresh(f'"\\"" {FORMATS[form]} "\\""')
        if not least and most is None:
            return self.part("string")
        self.part("char")
        return self.fresh(f'"\\"" char{{{least},{"" if most is None else most}}} "\\""')

    def _numeric(self, type: str, schema: Schema, at: str) -> str:
        bounds: list[float | None] = []
        for keyword, exclusive, step in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
            value, beyond = schema.get(keyword), schema.get(exclusive)
            if beyond is not None and (value is not None or type == "number"):
                raise SchemaRefused(f"the JSON schema's {exclusive!r} at {at} is supported for integers, alone")
            bound = beyond if beyond is not None else value
            if bound is None:
                bounds.append(None)
                continue
            if (
                isinstance(bound, bool)
                or not isinstance(bound, int | float)
                or not is_whole(bound)
                or abs(bound) > 1e15
            ):
                raise SchemaRefused(f"the JSON schema's bound {str(bound)[:40]} at {at} must be a whole number")
            bounds.append(int(bound) + (step if beyond is not None else 0))
        low, high = bounds
        if low is None and high is None:
            return self.part(type)
        least, most = -(10**16 - 1) if low is None else int(low), 10**16 - 1 if high is None else int(high)
        if least > most:
            raise SchemaRefused(f"the JSON schema at {at} leaves no number")
        return self.fresh(integer_between(least, most) if type == "integer" else number_between(least, most))

    def _bounds(self, schema: Schema, low: str, high: str, at: str) -> tuple[int, int | None]:
        least, most = schema.get(low, 0), schema.get(high)
        for keyword in (low, high):
            if keyword not in schema:
                continue
            value = schema[keyword]
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_REPEATS:
                raise SchemaRefused(
                    f"the JSON schema's {keyword!r} at {at} is {str(value)[:40]}; it must be from 0 to {MAX_REPEATS}"
                )
            self._repeats += value
        if self._repeats > MAX_TOTAL_REPEATS:
            raise SchemaRefused(f"the JSON schema's lengths add up to more than {MAX_TOTAL_REPEATS}")
        if most is not None and least > most:
            raise SchemaRefused(f"the JSON schema's {low!r} at {at} is above its {high!r}")
        return least, most
