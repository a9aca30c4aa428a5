"""Embeddings and scores by llama.cpp."""

import base64
import json
import re
from typing import Any, Final

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, RequestRefused

from weft_engine.adapters.llamacpp_chunks import read_error
from weft_engine.adapters.llamacpp_native import NativeServer
from weft_engine.native_calls import on_own_thread

INPUTS_A_CALL: Final = 16
"""llama.cpp computes them side by side; an `embed` that is withdrawn ends with the call that runs."""

TOO_LARGE: Final = re.compile(r"input \((\d+) tokens\) is (?:too large|larger).*?(\d+)\)?\D*\Z", re.DOTALL)
"""What llama.cpp says of an input longer than its batch or context, with both numbers."""


class LlamaCppEmbedder:
    """Answers `embed`, as many at once as the engine's line lets through."""

    def __init__(self, server: NativeServer, vocabulary: int) -> None:
        self._server = server
        self._vocabulary = vocabulary
        self.steps = 0
        """calls of llama.cpp that ended: stands still in a stall"""

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """One vector for each input, in order. Raises RequestRefused."""
        for place, each in enumerate(inputs):
            if not isinstance(each, str) and max(each) >= self._vocabulary:
                sentence = (
                    f"input {place} has the token id {max(each)}; this model's ids go from 0 to {self._vocabulary - 1}"
                )
                raise RequestRefused(pb.FAULT_BAD_REQUEST, sentence)
        vectors: list[bytes] = []
        tokens = 0
        for start in range(0, len(inputs), INPUTS_A_CALL):
            made = await self._call(inputs[start : start + INPUTS_A_CALL])
            self.steps += 1
            vectors += made.vectors
            tokens += made.prompt_tokens
        return Embeddings(vectors, tokens)

    async def _call(self, inputs: list[EmbedInput]) -> Embeddings:
        return await on_own_thread(lambda: embed_inputs(self._server, inputs), "llamacpp-embed")


def embed_inputs(server: NativeServer, inputs: list[EmbedInput]) -> Embeddings:
    """One vector of length 1 for each input, in order; blocks. Raises RequestRefused."""
    answer = parsed(server.embeddings(json.dumps({"input": inputs, "encoding_format": "base64"})))
    rows = sorted(answer["data"], key=lambda row: row["index"])
    return Embeddings([base64.b64decode(row["embedding"]) for row in rows], answer["usage"]["prompt_tokens"])


def rerank_texts(server: NativeServer, query: str, texts: list[str]) -> pb.Scores:
    """One score for each text, in order; blocks. Raises RequestRefused."""
    if not query or not texts:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "reranking needs a query and at least one text")
    answer = parsed(server.rerank(json.dumps({"query": query, "documents": texts})))
    scores = [0.0] * len(texts)
    for result in answer["results"]:
        scores[result["index"]] = result["relevance_score"]
    return pb.Scores(scores=scores, prompt_tokens=answer["usage"]["prompt_tokens"])


def parsed(text: str) -> Any:
    """An answer, or its error raised."""
    answer: Any = json.loads(text)
    if "error" in answer:
        too_large = TOO_LARGE.search(str(answer["error"].get("message", "")))
        if too_large is not None:
            has, holds = too_large.groups()
            raise RequestRefused(
                pb.FAULT_CONTEXT_EXCEEDED, f"an input has {has} tokens, this model takes at most {holds}"
            )
        error = read_error(answer["error"])
        raise RequestRefused(error.fault, error.sentence)
    return answer
