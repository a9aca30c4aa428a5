"""Embeddings and scores by vLLM's pooling models."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, RequestRefused, packed

from weft_engine.adapters.vllm_native import NativeEngine
from weft_engine.adapters.vllm_prompts import VllmPrompts

T = TypeVar("T")


class VllmEmbedder:
    """Answers `embed`; vLLM itself batches its inputs."""

    def __init__(self, engine: NativeEngine, prompts: VllmPrompts, context_tokens: int) -> None:
        self._engine = engine
        self._prompts = prompts
        self._context_tokens = context_tokens
        self._asked = 0

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """One vector of length 1 for each input, in order. Raises RequestRefused."""
        if "embed" not in await self._engine.tasks():
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model makes no embeddings")
        try:
            ids = [await self._ids(place, each) for place, each in enumerate(inputs)]
            made = await together([self._vector(each) for each in ids])
        except self._engine.faults.client as error:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"vLLM refused the inputs: {error}") from None
        return Embeddings(made, sum(len(each) for each in ids))

    async def _ids(self, place: int, given: EmbedInput) -> list[int]:
        if isinstance(given, str):
            ids = await self._prompts.of_text(given)
        else:
            ids = self._prompts.known(given, f"input {place}")
        if len(ids) > self._context_tokens:
            raise RequestRefused(
                pb.FAULT_CONTEXT_EXCEEDED,
                f"an input has {len(ids)} tokens, this model takes at most {self._context_tokens}",
            )
        return ids

    async def _vector(self, ids: list[int]) -> bytes:
        self._asked += 1
        output = await self._engine.pool(ids, "embed", f"e{self._asked}")
        numbers: list[float] = output.outputs.data.tolist()
        return packed(numbers)


async def together(calls: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all; where one fails, or the waiting is given up, the others are given up, too."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
