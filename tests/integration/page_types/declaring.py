"""The types of the API's document as TypeScript declarations: `API.Node` in a script's JSDoc is the document's Node."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from weft_contracts.catalogue import CATALOGUE

Schema = Mapping[str, Any]
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def declarations(document: Schema) -> str:
    """All named types of a document, in the namespace `API`. Its `Fact` has every field that some fact has."""
    schemas: Mapping[str, Schema] = document["components"]["schemas"]
    bodies = {name: _type(schema, {}) for name, schema in schemas.items()}
    bodies["Fact"] = _any_fact()
    lines = (f"  type {name} = {body};" for name, body in bodies.items())
    return "\n".join(["declare namespace API {", *lines, "}", ""])


def _any_fact() -> str:
    """A fact whose type isn't known: beside `type` and `v` it may have what any fact of the catalogue has."""
    fields: dict[str, set[str]] = {}
    for entry in CATALOGUE:
        schema = entry.fact.model_json_schema(mode="serialization")
        for name, field in schema["properties"].items():
            fields.setdefault(name, set()).add(_type(field, schema.get("$defs", {})))
    del fields["type"], fields["v"]
    optional = " ".join(f"{json.dumps(name)}?: {_union(sorted(types))};" for name, types in fields.items())
    return f"{{ type: string; v: number; {optional} }}"


def _type(schema: Schema, inner: Mapping[str, Schema]) -> str:
    """`inner`: types that a schema brings along; others are named by the document."""
    if ref := schema.get("$ref"):
        name: str = ref.rsplit("/", 1)[-1]
        return _type(inner[name], inner) if name in inner else name
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return _union(_type(choice, inner) for choice in choices)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return _union(json.dumps(value) for value in schema["enum"])
    kind: str | list[str] | None = schema.get("type")
    if isinstance(kind, list):
        return _union(_SIMPLE[each] for each in kind)
    if kind == "array":
        return f"Array<{_type(schema.get('items', {}), inner)}>"
    if "properties" in schema:
        return _object(schema["properties"], schema.get("required", ()), inner)
    if kind == "object":
        more: Any = schema.get("additionalProperties")
        return f"Record<string, {_type(more, inner) if more and more is not True else 'unknown'}>"
    return _SIMPLE[kind] if kind is not None else "unknown"


def _object(fields: Mapping[str, Schema], required: Iterable[str], inner: Mapping[str, Schema]) -> str:
    own = set(required)
    said = (f"{json.dumps(name)}{'' if name in own else '?'}: {_type(field, inner)};" for name, field in fields.items())
    return f"{{ {' '.join(said)} }}"


def _union(types: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(types))
