"""`/v1/models`, from memory; the inference routes stand here only for the API's document."""

from typing import Any

from fastapi import APIRouter, Request

from weft_gateway.domain.model_state import standing
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.shapes import openai_model, openai_model_detail
from weft_gateway.inbound.http.described import OPENAI_ERRORS, described_body
from weft_gateway.inbound.http.gatekeeper import caller_of
from weft_gateway.projections.directory import Directory

_HOT = (
    ("/v1/chat/completions", "ChatBody", "The next message of a conversation"),
    ("/v1/completions", "CompletionBody", "How texts go on"),
)
"""The front door answers them."""


class OpenAIModels:
    """Which models can be asked."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.router = APIRouter(tags=["openai"], responses=OPENAI_ERRORS)
        self.router.add_api_route("/v1/models", self.list, methods=["GET"])
        self.router.add_api_route("/v1/models/{id:path}", self.get, methods=["GET"])
        for path, body, summary in _HOT:
            self.router.add_api_route(
                path, self.elsewhere, methods=["POST"], summary=summary, openapi_extra=described_body(body)
            )

    async def list(self, request: Request) -> dict[str, Any]:
        """Every model that is not deleted and that the caller may use, ready or not."""
        created = self._directory.created
        data = [openai_model(model, created.get(model.id, 0.0)) for model in self._directory.served(caller_of(request))]
        return {"object": "list", "data": data}

    async def get(self, request: Request, id: str) -> dict[str, Any]:
        """One model; under `weft`, how it stands and why."""
        model = self._directory.asked_for(id, caller_of(request))
        created = self._directory.created.get(model.id, 0.0)
        return openai_model_detail(model, created, standing(model, self._directory.replicas(model)))

    async def elsewhere(self) -> None:
        """Only a path that is spelled unusually, with escapes, comes here."""
        raise Refused(404, "Spell the path without escapes.", code="unknown_route")
