"""The keyed engine's adapter."""

import hashlib
from typing import Self

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, Ending, EngineFacts, EngineLoad, RequestRefused, Ticket
from weft_engine import secrets
from weft_engine.launch import Launch


class Keyed:
    """Asks for the secret at each request, as an adapter should, and shows what can't be turned back into it."""

    def __init__(self, launch: Launch) -> None:
        self._key = str(launch.engine_args["api_key"])
        self._answered = 0
        self._facts = EngineFacts("keyed", "1.0", launch.context_tokens, launch.concurrency)
        secrets.resolved(self._key)

    @classmethod
    async def start(cls, launch: Launch) -> Self:
        """Nothing to load; without the secret there is nothing to serve."""
        return cls(launch)

    @property
    def facts(self) -> EngineFacts:
        return self._facts

    def submit(self, request: pb.Submit, prompt: pb.Prompt, ticket: Ticket) -> None:
        digest = hashlib.sha256(secrets.resolved(self._key).encode()).hexdigest()
        ticket.emit(digest, [0])
        self._answered += 1
        ticket.finish(Ending(pb.FINISH_STOP, 1, 1))

    def cancel(self, ticket: Ticket) -> None:
        """An ended request is no error."""

    def load(self) -> EngineLoad:
        return EngineLoad(0, 0, 0.0, self._answered)

    async def count(self, prompt: pb.Prompt) -> int:
        return 1

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "the keyed engine makes no embeddings")

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "the keyed engine does not rerank")

    async def close(self) -> None:
        """Nothing is held."""
