"""`response_format`: text, any JSON object, or JSON that fits a schema."""

from typing import Any

import msgspec

from weft_gateway.domain.inference_request import Constraint
from weft_gateway.domain.refused import Refused

MAX_SCHEMA_BYTES = 64 * 1024
"""As engines take it: a schema becomes a grammar of some times its size."""


class JsonSchema(msgspec.Struct, forbid_unknown_fields=True):
    """A schema. `strict` needs no heed: every complete answer fits. Name and description are taken without effect."""

    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    json_schema: JsonSchema | None = None


def constraint_of(format: ResponseFormat | None) -> Constraint | None:
    """None for text. Raises Refused."""
    if format is not None and format.json_schema is not None and format.type != "json_schema":
        raise Refused(
            400,
            "`response_format.json_schema` is only taken with the type json_schema.",
            param="response_format.json_schema",
        )
    if format is None or not asks_for_schema("response_format", format.type):
        return plain_constraint(format.type if format is not None else "text")
    if format.json_schema is None:
        at = "response_format.json_schema"
        raise Refused(400, f"`{at}` is missing.", param=at, code="missing_field")
    schema = format.json_schema.schema
    return Constraint(schema_text("response_format", {"type": "object"} if schema is None else schema))


def asks_for_schema(field: str, type: str) -> bool:
    """Whether a format's type is that of a schema. Raises Refused for one that is not known."""
    if type in ("text", "json_object", "json_schema"):
        return type == "json_schema"
    what = f"`{field}.type` is {type[:40]!r}; it must be text, json_object or json_schema."
    raise Refused(400, what, param=f"{field}.type")


def plain_constraint(type: str) -> Constraint | None:
    """Of a format without a schema: None for text."""
    return Constraint('{"type":"object"}') if type == "json_object" else None


def schema_text(field: str, schema: dict[str, Any]) -> str:
    """A field's schema as an engine takes it. Raises Refused."""
    text = msgspec.json.encode(schema)
    if len(text) > MAX_SCHEMA_BYTES:
        what = f"`{field}` has a JSON schema of {len(text)} bytes; at most {MAX_SCHEMA_BYTES} are taken."
        raise Refused(400, what, param=field, code="out_of_range")
    return text.decode()
