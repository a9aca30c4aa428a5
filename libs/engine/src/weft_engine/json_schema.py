"""What JSON schemas say: keywords, types, references, constants."""

import math
from typing import Any, Final, cast

Schema = dict[str, Any]

ANNOTATIONS: Final = frozenset(
    [
        "title",
        "description",
        "default",
        "examples",
        "example",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
        "discriminator",
    ]
)
KNOWN: Final = frozenset(
    [
        "type",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "format",
        "pattern",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]
)
LITERAL: Final = ("enum", "const")
UNIONS: Final = ("anyOf", "oneOf", "allOf")
COMPOUND: Final = (*LITERAL, *UNIONS, "$ref")
TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
TELLING: Final = (
    ("object", ("properties", "required", "additionalProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems")),
    ("string", ("minLength", "maxLength", "format", "pattern")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
"""Keywords that tell a type where none is given."""
MAX_STEP: Final = 6
"""Digits of a place in a list that a reference names."""


class SchemaRefused(Exception):
    """A schema that can't be promised; the sentence names the place and the keyword."""


def object_of(value: Any) -> Schema | None:
    """The value if it is a JSON object."""
    return cast(Schema, value) if isinstance(value, dict) else None


def list_of(value: Any) -> list[Any] | None:
    """The value if it is a JSON list."""
    return cast(list[Any], value) if isinstance(value, list) else None


def types_of(schema: Schema, at: str) -> list[str] | None:
    type = schema.get("type")
    if type is None:
        return None
    types: list[Any] = [type] if (listed := list_of(type)) is None else listed
    for each in types:
        if each not in TYPES:
            raise SchemaRefused(f"the JSON schema's type {str(each)[:40]!r} at {at} is none of {', '.join(TYPES)}")
    if not types:
        raise SchemaRefused(f"the JSON schema's type at {at} is empty")
    return types


def kinds_of(schema: Schema, at: str) -> list[str] | None:
    """The types of a schema without references and branches, given or told by its keywords; None: any."""
    types = types_of(schema, at)
    if types is not None:
        return types
    told = [type for type, keywords in TELLING if any(k in schema for k in keywords)]
    if len(told) > 1:
        raise SchemaRefused(f"the JSON schema at {at} has keywords of several types; give its 'type'")
    return told or None


def resolved(whole: Any, pointer: Any, at: str) -> Any:
    """The schema that a reference in `whole` leads to. Raises SchemaRefused."""
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        raise SchemaRefused(f"the JSON schema's reference at {at} leads out of the schema; only '#/…' is followed")
    found = whole
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        fields, items = object_of(found), list_of(found)
        if fields is not None and step in fields:
            found = fields[step]
        elif items is not None and step.isdecimal() and len(step) <= MAX_STEP and int(step) < len(items):
            found = items[int(step)]
        else:
            raise SchemaRefused(f"the JSON schema's reference {pointer[:60]!r} at {at} leads nowhere")
    return found


def fits_type(value: Any, type: str) -> bool:
    match type:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            return not isinstance(value, bool) and isinstance(value, int | float) and is_whole(value)
        case _:
            return not isinstance(value, bool) and isinstance(value, int | float)


def is_whole(value: float) -> bool:
    return math.isfinite(value) and value == int(value)


def constants_of(schema: Any) -> list[Any]:
    """The only values that fit; empty where there are others."""
    known = object_of(schema) or {}
    return [known["const"]] if "const" in known else list_of(known.get("enum")) or []
