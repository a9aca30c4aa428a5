"""The hot routes: from an exchange's headers and body to a running request."""

from typing import Any

from weft_runtime.logs import get_logger

from weft_gateway.domain.access import header, starting
from weft_gateway.domain.caller import NOBODY
from weft_gateway.domain.correlation import accepted
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.http.door import Door
from weft_gateway.inbound.http.exchange import Abandonable, Exchange
from weft_gateway.inbound.inference.desk import Desk, Kind
from weft_gateway.inbound.inference.embedding import EmbeddingDesk
from weft_gateway.inbound.metrics import Metrics

_log: Any = get_logger("weft.gateway.http")
_KINDS: dict[str, Kind] = {"chat": "chat", "completion": "completion"}


class HotRoutes:
    """Implements exchange.Handler for the desk."""

    def __init__(
        self,
        desk: Desk,
        embeddings: EmbeddingDesk,
        metrics: Metrics,
        *,
        door: Door,
        max_body: int,
        slow_client_bytes: int,
    ) -> None:
        self.max_body = max_body
        self.slow_client_bytes = slow_client_bytes
        self._desk = desk
        self._embeddings = embeddings
        self._metrics = metrics
        self._door = door

    def admit(self, exchange: Exchange) -> None:
        """Check who asks, before the body is read. Raises Refused."""
        exchange.caller = self._door.enter(exchange.headers, exchange.peer, "inference")
        encoding = header(exchange.headers, b"content-encoding")
        if encoding is not None and encoding.lower() != "identity":
            raise Refused(415, "A compressed body is not supported; send plain JSON.", param="content-encoding")
        if not self._door.ready():
            raise starting()

    def begin(self, exchange: Exchange, body: bytes) -> Abandonable | None:
        """See exchange.Handler."""
        try:
            return self._begun(exchange, body)
        except Refused as refused:
            failure = refused
        except Exception:
            _log.exception("route failed", path=exchange.route)
            failure = Refused(500, "The gateway failed; its log says why.", code="internal")
        exchange.answer(failure.status, "application/json", openai_error(failure), failure.headers)
        return None

    def _begun(self, exchange: Exchange, body: bytes) -> Abandonable | None:
        caller = exchange.caller or NOBODY
        self._door.still(caller)
        correlation_id = accepted(header(exchange.headers, b"x-request-id"))
        if exchange.route == "embedding":
            return self._embeddings.begin(body, correlation_id, exchange, caller)
        traceparent = header(exchange.headers, b"traceparent") or ""
        return self._desk.begin(_KINDS[exchange.route], body, correlation_id, traceparent, exchange, caller)

    def shed(self) -> None:
        """See exchange.Handler."""
        self._metrics.shed()
