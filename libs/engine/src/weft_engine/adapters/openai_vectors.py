"""Embeddings and scores by an OpenAI server."""

import base64
import binascii
import sys
from array import array
from typing import Any, Final

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import Embeddings, EmbedInput, RequestRefused

from weft_engine.adapters.called_functions import Unreadable
from weft_engine.adapters.openai_errors import error_of
from weft_engine.adapters.openai_events import counted, read_ranks, read_vectors
from weft_engine.adapters.openai_http import OpenAIHttp, ServerAway
from weft_engine.adapters.openai_settings import OpenAISettings

MAX_VECTOR_BYTES: Final = 512 * 1024
"""Of one, as JSON: some 20,000 numbers."""
MAX_SCORE_BYTES: Final = 64 * 1024
"""Of one text's rank, which many servers answer with the text."""


class ServerVectors:
    """Asks for embeddings and scores, each one call."""

    def __init__(self, http: OpenAIHttp, settings: OpenAISettings) -> None:
        self._http = http
        self._settings = settings

    async def embed(self, inputs: list[EmbedInput]) -> Embeddings:
        """One vector for each input, in order. Raises RequestRefused."""
        texts = sum(isinstance(each, str) for each in inputs)
        if 0 < texts < len(inputs):
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "give texts or token ids, not both in one request")
        body = await self._ask("/embeddings", {"input": inputs}, len(inputs) * MAX_VECTOR_BYTES)
        try:
            found = read_vectors(body)
            rows = sorted(found.data, key=lambda row: row.index)
            if [row.index for row in rows] != list(range(len(inputs))):
                raise Unreadable(f"it gave {len(rows)} vectors for {len(inputs)} inputs")
            vectors = [_packed(row.embedding) for row in rows]
        except Unreadable as error:
            raise self._unreadable(error) from None
        return Embeddings(vectors, counted(found.usage.prompt_tokens) if found.usage is not None else 0)

    async def rerank(self, query: str, texts: list[str]) -> pb.Scores:
        """One score for each text, in order. Raises RequestRefused."""
        if not query or not texts:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "reranking needs a query and at least one text")
        fields = {"query": query, "documents": texts, "top_n": len(texts)}
        room = sum(map(len, texts)) * 8 + len(texts) * MAX_SCORE_BYTES
        body = await self._ask("/rerank", fields, room)
        try:
            found = read_ranks(body)
        except Unreadable as error:
            raise self._unreadable(error) from None
        by_place = {rank.index: rank.relevance_score for rank in found.results}
        if by_place.keys() != set(range(len(texts))):
            raise self._unreadable(Unreadable(f"it ranked {len(by_place)} of {len(texts)} texts"))
        tokens = counted(found.usage.prompt_tokens) if found.usage is not None else 0
        return pb.Scores(scores=[by_place[place] for place in range(len(texts))], prompt_tokens=tokens)

    async def _ask(self, path: str, fields: dict[str, Any], most_bytes: int) -> bytearray:
        settings = self._settings
        body = msgspec.json.encode({"model": settings.model, **fields})
        try:
            whole = await self._http.ask("POST", path, body, settings.first_byte_s, most_bytes)
        except ServerAway as away:
            raise RequestRefused(pb.FAULT_ENGINE, f"the server at {self._http.name} {away}") from None
        if whole.status != 200:
            error = error_of(self._http.name, whole.status, whole.body)
            raise RequestRefused(error.fault, self._http.hidden(error.sentence), error.field)
        return whole.body

    def _unreadable(self, error: Unreadable) -> RequestRefused:
        return RequestRefused(pb.FAULT_ENGINE, f"the server at {self._http.name} can't be understood: {error}")


def _packed(vector: list[float] | str) -> bytes:
    """32-bit floats, little-endian. Raises Unreadable."""
    if isinstance(vector, str):
        try:
            packed = base64.b64decode(vector, validate=True)
        except binascii.Error:
            raise Unreadable("a vector is no base64") from None
        if not packed or len(packed) % 4:
            raise Unreadable("a vector has no whole numbers of 32 bits")
        return packed
    if not vector:
        raise Unreadable("a vector is empty")
    try:
        packed = array("f", vector)
    except OverflowError:
        raise Unreadable("a vector's number has more than 32 bits") from None
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
