"""`/v1/models`, from memory."""

from collections.abc import Callable

from fastapi import APIRouter, Request
from weft_api import OpenAIAliasDetail, OpenAIModelDetail, OpenAIModelList
from weft_fleet import AliasView, ModelView

from weft_gateway.domain.alias_shapes import openai_alias, openai_alias_detail
from weft_gateway.domain.model_state import standing
from weft_gateway.domain.shapes import openai_model, openai_model_detail
from weft_gateway.inbound.http.answer import Answer, answering
from weft_gateway.inbound.http.auth_middleware import caller_of
from weft_gateway.inbound.http.openapi_document import OPENAI_ERRORS
from weft_gateway.inbound.inference.prompting import PromptStanding
from weft_gateway.projections.directory import Directory


class OpenAIModels:
    """Which models can be asked."""

    def __init__(self, directory: Directory, prompts: Callable[[ModelView], PromptStanding] | None = None) -> None:
        """`prompts`: how a model stands with this gateway's own template and tokenizer; None: there are none."""
        self._directory = directory
        self._prompts = prompts
        self.router = APIRouter(tags=["openai"], responses=OPENAI_ERRORS)
        add = answering(self.router)
        add("/v1/models", self.list, "GET")
        add("/v1/models/{id:path}", self.get, "GET")

    async def list(self, request: Request) -> Answer[OpenAIModelList]:
        """Every model and alias that is not deleted and that the caller may use, ready or not."""
        caller, created = caller_of(request), self._directory.created
        data = [openai_model(model, created.get(model.id, 0.0)) for model in self._directory.served(caller)]
        data += [openai_alias(alias) for alias in self._directory.aliases(caller)]
        return Answer({"object": "list", "data": data})

    async def get(self, request: Request, id: str) -> Answer[OpenAIModelDetail | OpenAIAliasDetail]:
        """One model or alias; under `weft`, how it stands and why, or what it stands for."""
        model = self._directory.model_or_alias_for(id, caller_of(request))
        if isinstance(model, AliasView):
            return Answer(openai_alias_detail(model, self._directory.stands))
        created = self._directory.created.get(model.id, 0.0)
        made = None if self._prompts is None else self._prompts(model)
        why = "no template and tokenizer are kept here" if made is None else made.lacks
        stands = standing(model, self._directory.replicas(model))
        return Answer(openai_model_detail(model, created, stands, why))
