"""Embeddings and scores by llama.cpp. All calls block."""

import json
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane import RequestRefused

from weft_engine.adapters.llamacpp_chunks import read_error
from weft_engine.adapters.llamacpp_native import NativeServer


def embed_texts(server: NativeServer, texts: list[str]) -> pb.Vectors:
    """One vector for each text, in order. Raises RequestRefused."""
    if not texts or not all(texts):
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "an embedding needs at least one text, and none empty")
    answer = parsed(server.embeddings(json.dumps({"input": texts, "encoding_format": "float"})))
    rows = sorted(answer["data"], key=lambda row: row["index"])
    return pb.Vectors(
        vectors=[pb.Vector(values=row["embedding"]) for row in rows],
        prompt_tokens=answer["usage"]["prompt_tokens"],
    )


def rerank_texts(server: NativeServer, query: str, texts: list[str]) -> pb.Scores:
    """One score for each text, in order. Raises RequestRefused."""
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
        error = read_error(answer["error"])
        raise RequestRefused(error.fault, error.sentence)
    return answer
