"""`POST /v1/rerank`: the body that Jina, Cohere and vLLM take to a checked request, and scores to their answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from weft_gateway.domain.attribution import Attribution, attribution_of
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.refused import Refused

MAX_DOCUMENTS = 1000
"""As Cohere bounds a list."""


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """A document as an object."""

    text: str


class RerankBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body as Jina documents it."""

    model: str
    query: str
    documents: list[str | Document]
    top_n: int | None = None
    return_documents: bool = True
    user: str | None = None


@dataclass(frozen=True, slots=True)
class RerankRequest:
    """What is to be ranked, and how it is to be answered."""

    model: str
    query: str
    documents: list[str]
    top_n: int
    return_documents: bool
    attribution: Attribution


_decoder = msgspec.json.Decoder(RerankBody)
_encode = msgspec.json.Encoder().encode


def check_rerank(body: bytes) -> RerankRequest:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    if not found.query:
        raise Refused(400, "`query` is empty; give a text.", param="query", code="empty")
    if not found.documents:
        raise Refused(400, "`documents` is empty; give at least one text.", param="documents", code="empty")
    if len(found.documents) > MAX_DOCUMENTS:
        what = f"`documents` has {len(found.documents)} entries; at most {MAX_DOCUMENTS} are taken at once."
        raise Refused(400, what, param="documents", code="too_many")
    if found.top_n is not None and found.top_n < 1:
        what = f"`top_n` is {found.top_n}; it must be 1 or more."
        raise Refused(400, what, param="top_n", code="out_of_range")
    documents = [each if isinstance(each, str) else each.text for each in found.documents]
    if "" in documents:
        what = f"`documents[{documents.index('')}]` is empty; give a text."
        raise Refused(400, what, param="documents", code="empty")
    most = len(documents) if found.top_n is None else found.top_n
    return RerankRequest(
        found.model, found.query, documents, most, found.return_documents, attribution_of(user=found.user)
    )


def rerank_answer(request: RerankRequest, scores: Sequence[float], tokens: int) -> bytes:
    """The answer's body: the best first, in the order given where scores are equal."""
    order = sorted(range(len(request.documents)), key=lambda place: -scores[place])[: request.top_n]
    results = [
        {"index": place, "relevance_score": scores[place]}
        | ({"document": {"text": request.documents[place]}} if request.return_documents else {})
        for place in order
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _encode({"object": "list", "model": request.model, "results": results, "usage": usage})
