"""Bodies on the nodes' own routes, which anybody may send: read at little cost, and counted by address where they are
no good."""

from typing import Any, TypeVar

import msgspec
from fastapi import Request

from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.refused import Refused

B = TypeVar("B", bound=msgspec.Struct)


async def read_body(request: Request, decoder: "msgspec.json.Decoder[B]") -> B:
    """The body. Raises Refused: 400 for one that doesn't fit, 429 for too many of those."""
    try:
        return decode(decoder, await request.body())
    except Refused as refused:
        count_failure(request, refused.sentence)
        raise


def count_failure(request: Request, sentence: str = "") -> None:
    """Count a body, a token or a signature that is not good: ten at once from an address, then one in two seconds.

    Raises Refused, 429, where there are too many. What is good is never held up.
    """
    client: Any = request.client
    request.state.authenticator.count_attempt("proof", request.headers.raw, client.host if client else None, sentence)
