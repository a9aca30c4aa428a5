"""`response_format`: text, any JSON object, or JSON that fits a schema."""

from typing import Any

import msgspec

from weft_gateway.domain.asked import Constraint
from weft_gateway.domain.refused import Refused


class JsonSchema(msgspec.Struct, forbid_unknown_fields=True):
    """A schema and its name. `strict` needs no heed: every complete answer fits."""

    name: str
    description: str | None = None
    schema: dict[str, Any] | None = None
    strict: bool | None = None


class ResponseFormat(msgspec.Struct, forbid_unknown_fields=True):
    type: str
    json_schema: JsonSchema | None = None


def constraint_of(format: ResponseFormat | None) -> Constraint | None:
    """None for text. Raises Refused."""
    if format is None or format.type == "text":
        return None
    if format.type == "json_object":
        return Constraint('{"type":"object"}')
    if format.type != "json_schema":
        raise Refused(
            400,
            f"`response_format.type` is {format.type[:40]!r}; it must be text, json_object or json_schema.",
            param="response_format.type",
        )
    if format.json_schema is None:
        at = "response_format.json_schema"
        raise Refused(400, f"`{at}` is missing.", param=at, code="missing_field")
    schema = format.json_schema.schema
    return Constraint(msgspec.json.encode({"type": "object"} if schema is None else schema).decode())
