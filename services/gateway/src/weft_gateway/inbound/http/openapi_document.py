"""The API's own document: FastAPI's, with what FastAPI never sees: the bodies of the hot routes, problems, streams."""

from typing import Any

import msgspec
from fastapi import FastAPI
from pydantic import TypeAdapter
from weft_api import Problem

from weft_gateway.domain.access import OPEN_PATHS
from weft_gateway.domain.node_bodies import NODE_BODIES
from weft_gateway.domain.openai.chat import ChatBody
from weft_gateway.domain.openai.completions import CompletionBody
from weft_gateway.domain.openai.response_body import ResponseBody
from weft_gateway.domain.openai.tokenizing import DetokenizeBody, TokenizeBody
from weft_gateway.domain.problems import PROBLEM

_BODIES = (ChatBody, CompletionBody, ResponseBody, TokenizeBody, DetokenizeBody, *NODE_BODIES)
_SCHEMAS = "#/components/schemas/"
_EXAMPLES: dict[str, dict[str, Any]] = {
    "ChatBody": {"model": "tiny", "messages": [{"role": "user", "content": "What is the capital of France?"}]},
    "CompletionBody": {"model": "tiny", "prompt": "What is the capital of France?", "max_tokens": 16},
    "ResponseBody": {"model": "tiny", "input": "What is the capital of France?"},
}
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, `weft-…`; none where this machine itself asks a gateway that listens on loopback.",
}
_STREAM = {"type": "string", "description": "Server-sent events as OpenAI documents them."}
_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string", "description": "What, where, what would be right."},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


OPENAI_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "OpenAI's error object", **_content(_ERROR)},
    "5XX": {"description": "OpenAI's error object", **_content(_ERROR)},
}
"""For the routers of OpenAI's routes."""
_PROBLEM: dict[str, Any] = {
    "description": "A problem, in one sentence",
    "content": {PROBLEM: {"schema": {"$ref": f"{_SCHEMAS}Problem"}}},
}
PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}
"""For the routers of all other routes."""
EVENT_STREAM: dict[str, Any] = {
    "content": {"text/event-stream": {"schema": {"type": "string", "description": "Server-sent events, as they come."}}}
}
"""For the answer of a route that can be followed."""


def hot_route_document(name: str) -> dict[str, Any]:
    """What the document says of a hot route whose body is `name`, one of those below."""
    body = _content({"$ref": f"{_SCHEMAS}{name}"})
    body["content"]["application/json"]["example"] = _EXAMPLES[name]
    answer = _content({"type": "object", "description": "As OpenAI documents it."})
    answer["content"]["text/event-stream"] = {"schema": _STREAM}
    return {
        "requestBody": {"required": True, **body},
        "responses": {"200": {"description": "The answer; a stream with `stream: true`", **answer}},
    }


def node_route_document(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """What the document says of a node's route whose body is one of NODE_BODIES: FastAPI never sees it."""
    return {"requestBody": {"required": True, **_content({"$ref": f"{_SCHEMAS}{struct.__name__}"})}}


class DocumentedAPI(FastAPI):
    """An application whose document is whole."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            _, schemas = msgspec.json.schema_components(_BODIES, ref_template=_SCHEMAS + "{name}")
            components: dict[str, Any] = document.setdefault("components", {})
            schemas["Problem"] = TypeAdapter(Problem).json_schema()
            components["schemas"] = components.get("schemas", {}) | schemas
            components["securitySchemes"] = {"key": _KEY}
            document["security"] = [{"key": []}, {}]
            for path in OPEN_PATHS & document["paths"].keys():
                for operation in document["paths"][path].values():
                    operation["security"] = []
        return super().openapi()
