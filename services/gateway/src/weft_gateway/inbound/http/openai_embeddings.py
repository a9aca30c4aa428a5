"""`/v1/embeddings` in the API's document; the front door answers it."""

from typing import Any

from fastapi import APIRouter

from weft_gateway.domain.openai.embeddings import MAX_INPUTS
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.described import OPENAI_ERRORS

_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}


def _several(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_INPUTS}


_EXAMPLE = {"model": "tiny-embed", "input": "What is the capital of France?"}
_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string"},
        "input": {"oneOf": [_TEXT, _IDS, _several(_TEXT), _several(_IDS)]},
        "encoding_format": {"enum": ["float", "base64"], "default": "float"},
        "dimensions": {"type": "integer", "minimum": 1, "description": "Only the model's own number is taken."},
        "user": {"type": "string", "description": "Taken without effect."},
    },
}
_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "number"}}
_VECTOR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "object": {"const": "embedding"},
        "index": {"type": "integer"},
        "embedding": {"oneOf": [_NUMBERS, {"type": "string", "description": "base64 of 32-bit floats"}]},
    },
}
_COUNT: dict[str, Any] = {"type": "integer"}
_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "object": {"const": "list"},
        "model": {"type": "string"},
        "data": {"type": "array", "items": _VECTOR},
        "usage": {"type": "object", "properties": {"prompt_tokens": _COUNT, "total_tokens": _COUNT}},
    },
}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


async def _elsewhere() -> None:
    """Only a path that is spelled unusually, with escapes, comes here."""
    raise Refused(404, "Spell the path without escapes.", code="unknown_route")


def embeddings_router() -> APIRouter:
    """The route with its schemas."""
    router = APIRouter(tags=["openai"], responses=OPENAI_ERRORS)
    router.add_api_route(
        "/v1/embeddings",
        _elsewhere,
        methods=["POST"],
        summary="Vectors of texts or token ids, by an embedding model",
        openapi_extra={
            "requestBody": {"required": True, **_json(_BODY | {"examples": [_EXAMPLE]})},
            "responses": {"200": {"description": "One vector for each input, in order", **_json(_ANSWER)}},
        },
    )
    return router
