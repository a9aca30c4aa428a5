"""One streamed answer, in the pieces that come."""

import json
from collections.abc import Generator, Mapping
from contextlib import closing
from typing import Any, cast

from weft_client.failure import Failure
from weft_client.gateway import Gateway


class BrokeOff(Failure):
    """An answer that began, or was accepted, and has no proper end."""


def answer(gateway: Gateway, body: Mapping[str, Any]) -> Generator[str]:
    """The answer's text, piece by piece. Closing the iterator cancels the answer at the engine.

    Raises:
        Refused, Unreachable: it never began.
        BrokeOff: it has no proper end.
    """
    with closing(gateway.stream("POST", "/v1/chat/completions", body)) as events:
        for event, data in events:
            if data == "[DONE]":
                return
            chunk = _object(data)
            if event == "error" or "error" in chunk:
                error = cast("Mapping[str, Any]", chunk.get("error", chunk))
                raise BrokeOff(f"the answer broke off: {error.get('message') or data}")
            for choice in chunk.get("choices") or ():
                delta: dict[str, Any] = choice.get("delta") or {}
                if text := delta.get("content") or delta.get("refusal"):
                    yield text
    raise BrokeOff("the answer broke off: the gateway ended the connection")


def _object(data: str) -> dict[str, Any]:
    try:
        parsed: object = json.loads(data)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise BrokeOff(f"the answer broke off: {data[:200]!r} is no part of one")
    return cast("dict[str, Any]", parsed)
