"""What JSON schemas say: keywords, types, and whether two schemas share a value."""

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
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    ]
)
COMPOUND: Final = ("enum", "const", "anyOf", "oneOf", "allOf", "$ref")
TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")
TELLING: Final = (
    ("object", ("properties", "required", "additionalProperties")),
    ("array", ("items", "prefixItems", "minItems", "maxItems")),
    ("string", ("minLength", "maxLength", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
)
"""Keywords that tell a type where none is given."""
LITERAL: Final = ("enum", "const")


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
            return not isinstance(value, bool) and isinstance(value, int | float) and value == int(value)
        case _:
            return not isinstance(value, bool) and isinstance(value, int | float)


def differ(a: Schema, b: Schema) -> bool:
    one, other = a.get("type"), b.get("type")
    if isinstance(one, str) and isinstance(other, str) and one != other:
        return {one, other} != {"integer", "number"}
    if one != "object" or other != "object":
        return False
    ours, theirs = object_of(a.get("properties")) or {}, object_of(b.get("properties")) or {}
    names = [name for name in ours if name in theirs]
    for name in names:
        if not all(name in (list_of(schema.get("required")) or []) for schema in (a, b)):
            continue
        left, right = _constants(ours.get(name)), _constants(theirs.get(name))
        if left and right and not any(value in right for value in left):
            return True
    return False


def _constants(schema: Any) -> list[Any]:
    known = object_of(schema) or {}
    return [known["const"]] if "const" in known else list_of(known.get("enum")) or []
