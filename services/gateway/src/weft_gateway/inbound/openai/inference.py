"""The inference routes in the API's document: the hot path answers them, see hot_routes.py.

OpenAI stores responses and lets them be fetched; here none is stored, and whoever looks for one is told so.
"""

from typing import Any

from fastapi import APIRouter

from weft_gateway.domain.openai.embeddings import MAX_INPUTS
from weft_gateway.domain.openai.reranking import MAX_DOCUMENTS
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.openapi_document import OPENAI_ERRORS, hot_route_document

_HOT = (
    ("/v1/chat/completions", "ChatBody", "The next message of a conversation"),
    ("/v1/completions", "CompletionBody", "How texts go on"),
    ("/v1/responses", "ResponseBody", "An answer as items; nothing is stored"),
)
_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}


def _several(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": MAX_INPUTS}


_EMBEDDING_EXAMPLE = {"model": "tiny-embed", "input": "What is the capital of France?"}
_EMBEDDING_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["model", "input"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string"},
        "input": {"oneOf": [_TEXT, _IDS, _several(_TEXT), _several(_IDS)]},
        "encoding_format": {"enum": ["float", "base64"], "default": "float"},
        "dimensions": {"type": "integer", "minimum": 1, "description": "Only the model's own number is taken."},
        "user": {"type": "string", "maxLength": 512, "description": "Changes no answer."},
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
_EMBEDDING_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "object": {"const": "list"},
        "model": {"type": "string"},
        "data": {"type": "array", "items": _VECTOR},
        "usage": {"type": "object", "properties": {"prompt_tokens": _COUNT, "total_tokens": _COUNT}},
    },
}

_RERANK_EXAMPLE = {"model": "my-reranker", "query": "capital of France", "documents": ["Paris", "Lyon"], "top_n": 1}
_DOCUMENT: dict[str, Any] = {
    "oneOf": [
        _TEXT,
        {"type": "object", "required": ["text"], "additionalProperties": False, "properties": {"text": _TEXT}},
    ]
}
_RERANK_BODY: dict[str, Any] = {
    "type": "object",
    "required": ["model", "query", "documents"],
    "additionalProperties": False,
    "properties": {
        "model": {"type": "string"},
        "query": _TEXT,
        "documents": {"type": "array", "items": _DOCUMENT, "minItems": 1, "maxItems": MAX_DOCUMENTS},
        "top_n": {"type": "integer", "minimum": 1, "description": "The best so many; all where it is absent."},
        "return_documents": {"type": "boolean", "default": True},
        "user": {"type": "string", "maxLength": 512, "description": "Changes no answer."},
    },
}
_RERANKED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "index": {"type": "integer", "description": "Of the document in the request, from 0."},
        "relevance_score": {"type": "number"},
        "document": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}
_RERANK_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "object": {"const": "list"},
        "model": {"type": "string"},
        "results": {"type": "array", "items": _RERANKED},
        "usage": {"type": "object", "properties": {"prompt_tokens": _COUNT, "total_tokens": _COUNT}},
    },
}

_TOKENIZE_EXAMPLE = {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]}
_TOKENIZE_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "count": _COUNT,
        "max_model_len": {"type": "integer", "description": "Tokens that the context holds with the answer."},
        "tokens": _IDS,
        "token_strs": {"type": ["array", "null"], "items": {"type": "string"}},
    },
}
_DETOKENIZE_EXAMPLE: dict[str, Any] = {"model": "tiny", "tokens": [1, 278, 201]}
_DETOKENIZE_ANSWER: dict[str, Any] = {"type": "object", "properties": {"prompt": {"type": "string"}}}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


async def _elsewhere() -> None:
    """Only a path that is spelled unusually, with escapes, comes here."""
    raise Refused(404, "Spell the path without escapes.", code="unknown_route")


async def _not_stored(rest: str) -> None:
    raise Refused(
        404,
        "Responses are not stored here, so there is none to fetch, cancel or delete; "
        "keep the answer of POST /v1/responses and send its items as `input`.",
        code="not_stored",
    )


def inference_router() -> APIRouter:
    """The routes with their schemas, and those of stored responses, which only refuse."""
    router = APIRouter(tags=["openai"], responses=OPENAI_ERRORS)
    for path, body, summary in _HOT:
        described = hot_route_document(body)
        router.add_api_route(
            path, _elsewhere, name="elsewhere", methods=["POST"], summary=summary, openapi_extra=described
        )
    router.add_api_route(
        "/v1/embeddings",
        _elsewhere,
        methods=["POST"],
        summary="Vectors of texts or token ids, by an embedding model",
        openapi_extra={
            "requestBody": {"required": True, **_json(_EMBEDDING_BODY | {"examples": [_EMBEDDING_EXAMPLE]})},
            "responses": {"200": {"description": "One vector for each input, in order", **_json(_EMBEDDING_ANSWER)}},
        },
    )
    router.add_api_route(
        "/v1/rerank",
        _elsewhere,
        methods=["POST"],
        summary="How well each text fits a query, by a reranker",
        openapi_extra={
            "requestBody": {"required": True, **_json(_RERANK_BODY | {"examples": [_RERANK_EXAMPLE]})},
            "responses": {"200": {"description": "The best first", **_json(_RERANK_ANSWER)}},
        },
    )
    for what, body, example, summary, answer in (
        ("tokenize", "TokenizeBody", _TOKENIZE_EXAMPLE, "A text or a chat as token ids", _TOKENIZE_ANSWER),
        ("detokenize", "DetokenizeBody", _DETOKENIZE_EXAMPLE, "Token ids as text", _DETOKENIZE_ANSWER),
    ):
        schema: dict[str, Any] = {"$ref": f"#/components/schemas/{body}", "examples": [example]}
        for path in (f"/v1/{what}", f"/{what}"):
            router.add_api_route(
                path,
                _elsewhere,
                name="elsewhere",
                methods=["POST"],
                summary=summary,
                openapi_extra={
                    "requestBody": {
                        "required": True,
                        **_json(schema),
                    },
                    "responses": {"200": {"description": "As vLLM's server answers", **_json(answer)}},
                },
            )
    router.add_api_route(
        "/v1/responses/{rest:path}", _not_stored, methods=["GET", "POST", "DELETE"], include_in_schema=False
    )
    return router
