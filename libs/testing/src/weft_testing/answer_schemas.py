"""The admin API's answers as JSON schemas that take no field more than there are: a field under another name fails."""

from typing import Any, cast

import weft_api
from pydantic import TypeAdapter

OPEN = frozenset({"Fact"})
"""Types whose answers have more fields than the type names."""


def close(schemas: dict[str, Any]) -> None:
    """Let the types of `weft_api` among some named schemas, in place, take their own fields alone."""
    for name in weft_api.__all__:
        if name in schemas and name not in OPEN and "properties" in schemas[name]:
            schemas[name]["additionalProperties"] = False


def schema_of(answer: Any) -> dict[str, Any]:
    """The closed schema of a type of `weft_api`, with the types that it names under `$defs`."""
    schema = TypeAdapter(answer).json_schema(mode="serialization")
    close(cast("dict[str, Any]", schema.get("$defs", {})))
    if "properties" in schema:
        schema["additionalProperties"] = False
    return schema
