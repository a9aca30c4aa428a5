"""Where an answer goes: the transport's side of a request."""

from collections.abc import Mapping
from typing import Protocol

from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused


class ResponseWriter(Protocol):
    """One response. Every method is quick and never raises for a client that is gone."""

    def answer(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str]) -> None:
        """The whole response at once."""
        ...

    def start_stream(self, headers: Mapping[str, str], first: bytes) -> None:
        """Begin a stream of server-sent events with its first bytes."""
        ...

    def write(self, data: bytes) -> None:
        """More of the stream."""
        ...

    def end(self, data: bytes) -> None:
        """The last bytes of the stream."""
        ...


def answer_refusal(writer: ResponseWriter, refused: Refused, correlation_id: str) -> None:
    """The whole response of a request that is refused before any of its answer was sent."""
    headers = {"x-request-id": correlation_id, **refused.headers}
    writer.answer(refused.status, "application/json", openai_error(refused), headers)
