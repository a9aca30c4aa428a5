"""The simulated engine's embeddings: a direction for each token, added up. Texts that share words lie close."""

import asyncio
import hashlib
import math
import os
import signal
from functools import lru_cache

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, RequestRefused, packed

from weft_engine.adapters.simulated_settings import SimulatedSettings
from weft_engine.adapters.simulated_text import ids_of


class SimulatedEmbedder:
    """One step for each input, at the speed that the settings tell; the same words make trouble as in a prompt."""

    def __init__(self, settings: SimulatedSettings, context_tokens: int) -> None:
        self._settings = settings
        self._context_tokens = context_tokens
        self.running = 0
        self.steps = 0

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """One vector of length 1 for each input, in order. Raises RequestRefused."""
        if not self._settings.embeddings:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "this model writes, it makes no embeddings")
        prompts = [ids_of(each) if isinstance(each, str) else each for each in inputs]
        for each, prompt in zip(inputs, prompts, strict=True):
            if len(prompt) > self._context_tokens:
                raise RequestRefused(
                    pb.FAULT_CONTEXT_EXCEEDED,
                    f"an input has {len(prompt)} tokens, this model takes at most {self._context_tokens}",
                )
            if isinstance(each, str) and "[[refuse]]" in each:
                raise RequestRefused(pb.FAULT_BAD_REQUEST, "the input asked to be refused")
        self.running += 1
        try:
            vectors = [await self._vector(each, prompt) for each, prompt in zip(inputs, prompts, strict=True)]
        finally:
            self.running -= 1
        return Embeddings(vectors, sum(map(len, prompts)))

    async def _vector(self, given: EmbedInput, prompt: list[int]) -> bytes:
        words = given if isinstance(given, str) else ""
        if "[[die]]" in words:
            os.kill(os.getpid(), signal.SIGKILL)
        if "[[fail]]" in words:
            raise RequestRefused(pb.FAULT_ENGINE, "the input asked the engine to fail")
        if "[[stall]]" in words:
            await asyncio.Event().wait()
        rate = self._settings.prefill_tokens_per_s
        await asyncio.sleep(len(prompt) / rate if rate else 0)
        self.steps += 1
        return vector_of(prompt, self._settings.dimensions)


@lru_cache(maxsize=4096)
def direction(token: int, dimensions: int) -> tuple[int, ...]:
    """A token's direction: a function of its id and of nothing else."""
    drawn = hashlib.shake_256(token.to_bytes(4, "little")).digest(dimensions)
    return tuple(2 * byte - 255 for byte in drawn)


def vector_of(prompt: list[int], dimensions: int) -> bytes:
    """The sum of the tokens' directions, of length 1, packed."""
    total = [0] * dimensions
    for token in prompt:
        total = [a + b for a, b in zip(total, direction(token, dimensions), strict=True)]
    length = math.sqrt(sum(value * value for value in total)) or 1.0
    return packed(value / length for value in total)
