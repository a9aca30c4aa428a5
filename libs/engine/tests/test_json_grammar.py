"""JSON schemas as grammars: what is made, and what is refused by its keyword."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_engine.json_grammar import grammar_of
from weft_engine.json_literals import one_of
from weft_engine.json_numbers import integer_between, number_between
from weft_engine.json_parts import CODE
from weft_engine.json_schema import SchemaRefused


def written(schema: Any, *, or_text: bool = False) -> str:
    return grammar_of(json.dumps(schema), or_text=or_text)


def as_pattern(grammar: str) -> "re.Pattern[str]":
    """A grammar of literals, classes and groups as a regular expression, which it is but for its quotes and spaces."""
    return re.compile(re.sub(r'"([^"]*)"', lambda m: re.escape(m[1]), grammar).replace(" ", ""))


@given(st.integers(-2000, 2000), st.integers(-2000, 2000), st.integers(-2100, 2100))
def test_a_bounded_integer_is_exactly_between_its_bounds(a: int, b: int, value: int) -> None:
    low, high = sorted((a, b))
    found = as_pattern(integer_between(low, high)).fullmatch(str(value))
    assert (low <= value <= high) == (found is not None)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-6000, 6000))
def test_a_bounded_number_stays_between_its_bounds(a: int, b: int, hundredths: int) -> None:
    low, high = sorted((a, b))
    found = as_pattern(number_between(low, high)).fullmatch(f"{hundredths / 100:.2f}")
    assert (low <= hundredths / 100 <= high) == (found is not None)


@given(st.integers(0, 0xFFFF) | st.integers(0xD700, 0xE0FF))
def test_an_escaped_letter_is_never_half_a_letter(code: int) -> None:
    found = as_pattern(CODE).fullmatch(f"{code:04x}")
    assert (not 0xD800 <= code <= 0xDFFF) == (found is not None)


def test_declared_properties_come_in_their_order_and_required_ones_always() -> None:
    grammar = written({"type": "object", "properties": {"a": {"type": "null"}, "b": {"const": 1}}, "required": ["b"]})
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    assert '"\\"b\\"" colon' in grammar
    assert rules["root"] in rules
    assert "text" not in rules
    assert 'text | ""' in written({"type": "object"}, or_text=True)


def test_values_may_be_several_each_on_a_line_or_one_of_another_schema() -> None:
    call = json.dumps({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}})
    other = json.dumps({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"b": {"const": 2}}}}})
    grammar = grammar_of(call, or_text=True, most=4, or_json=other)
    rules = dict(line.split(" ::= ", 1) for line in grammar.splitlines())
    first, *_, last = rules["root"].split(" | ")
    assert f'{first.split()[0]} ("\\n" {first.split()[0]}){{0,3}}' == first
    assert '"1"' in rules[rules[first.split()[0]]]
    assert '"2"' in grammar
    assert last in rules
    assert last != first.split()[0]
    assert len(rules) == len(grammar.splitlines())
    with pytest.raises(SchemaRefused, match="2000 values are wanted"):
        grammar_of(call, or_text=True, most=2000)


REFUSED: list[tuple[Any, str]] = [
    ([], "must be an object"),
    ({"type": "objekt"}, "'objekt' at # is none of object"),
    ({"type": "array", "uniqueItems": True}, "keyword 'uniqueItems' at # is not supported"),
    ({"type": "string", "pattern": "(a"}, "can't be kept: regex parse error"),
    ({"type": "string", "pattern": "(?=a)b"}, "look-ahead"),
    ({"type": "number", "multipleOf": 1e-300}, "too many digits"),
    ({"properties": {"a": {"pattern": "a", "type": "string"}, "b": {"not": {}}}}, "keyword 'not' at #/properties/b"),
    ({"type": "string", "pattern": "a", "x-guidance": {"lenient": True}, "uniqueItems": 1}, "'uniqueItems'"),
    ({"properties": {"a": {"not": {}}}}, "keyword 'not' at #/properties/a"),
    ({"type": "array", "minItems": 10**8}, "from 0 to 1000"),
    ({"type": "array", "minItems": 3, "maxItems": 2}, "above its 'maxItems'"),
    ({"type": "string", "format": "strange"}, "format 'strange'"),
    ({"$ref": "#"}, "leads back to itself"),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "leads back to itself"),
    ({"$ref": "#/$defs/none"}, "leads nowhere"),
    ({"$ref": "https://example.org/x"}, "leads out of the schema"),
    ({"oneOf": [{"const": i} for i in range(300)]}, "'oneOf' of 300 branches"),
    ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "one value could fit"),
    ({"allOf": [{}, {}]}, "one schema only"),
    ({"enum": []}, "not empty"),
    ({"type": "integer", "minimum": 0.5}, "whole number"),
    ({"type": "integer", "minimum": 5, "maximum": 4}, "leaves no number"),
    ({"type": "object", "required": ["a"]}, "which no property declares"),
    ({"anyOf": [{}], "properties": {}}, "'anyOf' beside 'properties'"),
    ({"type": "object", "properties": {"a": {}}, "required": [["a"]]}, "requires \"['a']\", which no property"),
    ({"type": "string", "format": ["date"]}, "format \"['date']\""),
    ({"anyOf": [{"$ref": f"#/anyOf/{'1' * 5000}"}, {"type": "null"}]}, "leads nowhere"),
]


@pytest.mark.parametrize(("schema", "words"), REFUSED)
def test_what_cannot_be_promised_is_refused_by_its_keyword(schema: Any, words: str) -> None:
    with pytest.raises(SchemaRefused, match=re.escape(words)):
        written(schema)


def test_a_schema_nested_without_end_is_refused() -> None:
    with pytest.raises(SchemaRefused):
        grammar_of('{"items":' * 500 + "{}" + "}" * 500, or_text=False)
    with pytest.raises(SchemaRefused, match="is no JSON"):
        grammar_of("{", or_text=False)
    links: dict[str, Any] = {f"d{i}": {"items": {"$ref": f"#/$defs/d{i + 1}"}} for i in range(300)}
    with pytest.raises(SchemaRefused, match="nested too deeply"):
        written({"$ref": "#/$defs/d0", "$defs": links | {"d300": {}}})


@given(st.lists(st.text("ab€", max_size=5), min_size=1), st.text("ab€", max_size=5))
def test_a_tree_of_literals_fits_exactly_its_texts(texts: list[str], other: str) -> None:
    pattern = as_pattern(one_of(texts))
    for text in (*texts, other):
        assert (text in texts) == (pattern.fullmatch(text) is not None)


def nested_unions(width: int, depth: int) -> Any:
    """Arrays in arrays, each with several ways to be read."""
    inner: dict[str, Any] = {f"s{depth}": {"type": "null"}}
    for level in range(depth):
        ways = [{"type": "array", "minItems": n, "items": {"$ref": f"#/$defs/s{level + 1}"}} for n in range(1, width)]
        inner[f"s{level}"] = {"anyOf": ways}
    return {"$ref": "#/$defs/s0", "$defs": inner}


def doubled(depth: int) -> Any:
    """Unions of unions: each way leads to the next by two ways."""
    inner: dict[str, Any] = {f"s{depth}": {"type": "null"}}
    for level in range(depth):
        again = {"$ref": f"#/$defs/s{level + 1}"}
        inner[f"s{level}"] = {"anyOf": [again, {"anyOf": [again, {"type": "boolean"}]}]}
    return {"$ref": "#/$defs/s0", "$defs": inner}


def tree(**inner: Any) -> Any:
    """Nodes of two kinds that lead to further nodes. `inner`: what each has before its kind."""
    kinds = [
        {
            "properties": inner | {"kind": {"const": kind}, "next": {"$ref": "#/$defs/node"}},
            "required": [*inner, "kind"],
        }
        for kind in ("a", "b")
    ]
    return {"$ref": "#/$defs/node", "$defs": {"node": {"anyOf": kinds}}}


BRANCHING: list[Any] = [
    nested_unions(11, 4),
    doubled(12),
    tree(first={"$ref": "#/$defs/node"}),
    {"items": {"anyOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}, "minItems": 3}]}},
    {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(600)}},
]


@pytest.mark.parametrize("schema", BRANCHING)
def test_a_schema_whose_readings_multiply_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaRefused, match="branches that begin alike"):
        written(schema)


TOLD_APART: list[Any] = [
    nested_unions(5, 4),
    tree(),
    tree(name={"type": "string"}),
    {"anyOf": [{"type": "null"}, {"items": {"$ref": "#"}}, {"properties": {"left": {"$ref": "#"}}}]},
    {"enum": [f"value {i}" for i in range(2000)]},
    {"properties": {f"p{i}": {"type": "null"} for i in range(900)}, "required": [f"p{i}" for i in range(900)]},
]


@pytest.mark.parametrize("schema", TOLD_APART)
def test_branches_that_can_be_told_apart_may_lead_to_themselves(schema: Any) -> None:
    assert "root ::= " in written(schema)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
keywords = st.sampled_from(
    ["type", "enum", "const", "anyOf", "oneOf", "$ref", "properties", "required", "items", "minItems", "maxLength"]
)


@given(st.dictionaries(keywords, values, max_size=3))
def test_no_schema_breaks_the_conversion(schema: Any) -> None:
    with suppress(SchemaRefused):
        assert "root ::= " in written(schema)
