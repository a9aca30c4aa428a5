"""Requests with one answer: what is asked of a replica for each, and what is made of its word."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import NamedTuple, Protocol

from weft_contracts.engines import EngineProfile
from weft_contracts.facts.values import ModelSpec
from weft_dataplane.session_client import SessionClient
from weft_fleet import ModelView

from weft_gateway.domain.ability import check_embeds, check_reranks
from weft_gateway.domain.attribution import Attribution
from weft_gateway.domain.openai import embeddings, reranking
from weft_gateway.domain.routing.endpoint import Endpoint


class Made(NamedTuple):
    """An answer, in pieces of some milliseconds of work each, and the tokens that were read for it."""

    pieces: Iterable[bytes]
    tokens: int


class UnaryRequest(Protocol):
    """A checked request."""

    @property
    def operation(self) -> str:
        """By the GenAI convention, for metrics and logs."""
        ...

    @property
    def field(self) -> str:
        """The body's, that an engine's refusal is about."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def attribution(self) -> Attribution: ...

    @property
    def inputs_count(self) -> int: ...

    def to(self, model: str) -> "UnaryRequest":
        """The same request to another model."""
        ...

    def check_model(self, name: str, spec: ModelSpec, profile: EngineProfile | None) -> None:
        """Raises Refused where the model can't serve it."""
        ...

    async def answered_here(self, model: ModelView) -> Made | None:
        """What needs no replica; None: one is asked. Raises Refused."""
        ...

    def answered_beside(
        self, session: SessionClient, endpoint: Endpoint, model: ModelView
    ) -> Awaitable[Made | None] | None:
        """What is awaited before the chosen replica is asked, and takes no place there; None: nothing is.

        It may give the answer. Raises Refused.
        """
        ...

    async def ask(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> Made:
        """Raises UnaryCallFailed, or Refused for what the answer shows to be impossible."""
        ...


class Embedding:
    """Texts or token ids to vectors."""

    operation = "embeddings"
    field = "input"

    def __init__(self, asked: embeddings.EmbeddingRequest) -> None:
        self._asked = asked
        self.model = asked.model
        self.attribution = asked.attribution
        self.inputs_count = len(asked.inputs)

    def to(self, model: str) -> "Embedding":
        return Embedding(replace(self._asked, model=model))

    def check_model(self, name: str, spec: ModelSpec, profile: EngineProfile | None) -> None:
        check_embeds(name, spec)
        embeddings.check_length(self._asked, spec.context_tokens)

    async def answered_here(self, model: ModelView) -> Made | None:
        return None

    def answered_beside(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> None:
        return None

    async def ask(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> Made:
        made = await session.unary.embed(self._asked.inputs)
        return Made(embeddings.embedding_answer(self._asked, made.vectors, made.prompt_tokens), made.prompt_tokens)


class Reranking:
    """How well each document fits a query."""

    operation = "rerank"
    field = "documents"

    def __init__(self, asked: reranking.RerankRequest) -> None:
        self._asked = asked
        self.model = asked.model
        self.attribution = asked.attribution
        self.inputs_count = len(asked.documents)

    def to(self, model: str) -> "Reranking":
        return Reranking(replace(self._asked, model=model))

    def check_model(self, name: str, spec: ModelSpec, profile: EngineProfile | None) -> None:
        check_reranks(name, spec, profile)

    async def answered_here(self, model: ModelView) -> Made | None:
        return None

    def answered_beside(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> None:
        return None

    async def ask(self, session: SessionClient, endpoint: Endpoint, model: ModelView) -> Made:
        made = await session.unary.rerank(self._asked.query, self._asked.documents)
        tokens = made.prompt_tokens
        return Made((reranking.rerank_answer(self._asked, made.scores, tokens),), tokens)


CheckUnary = Callable[[bytes], UnaryRequest]
"""The request in a body. Raises Refused."""


def check_embedding(body: bytes) -> Embedding:
    """See CheckUnary."""
    return Embedding(embeddings.check_embedding(body))


def check_rerank(body: bytes) -> Reranking:
    """See CheckUnary."""
    return Reranking(reranking.check_rerank(body))


CHECKS: dict[str, CheckUnary] = {"embedding": check_embedding, "rerank": check_rerank}
"""By the names of hot routes."""
