"""OpenAI's inference routes on the hot path: from an exchange's headers and body to a dispatched request."""

from typing import Any

from weft_runtime.logs import get_logger

from weft_gateway.domain.access import V1, starting
from weft_gateway.domain.caller import NOBODY
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.request_headers import check_json, checked_correlation_id
from weft_gateway.domain.routing.routing_options import routing_options_of
from weft_gateway.inbound.http.authenticator import Authenticator
from weft_gateway.inbound.http.exchange import Abandonable, Exchange
from weft_gateway.inbound.inference.prompting import Prompting
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher, RequestKind
from weft_gateway.inbound.inference.token_requests import token_checks
from weft_gateway.inbound.inference.unary_dispatcher import UnaryDispatcher
from weft_gateway.inbound.inference.unary_requests import CHECKS
from weft_gateway.inbound.metrics import Metrics

_log: Any = get_logger("weft.gateway.http")
_KINDS: dict[str, RequestKind] = {"chat": "chat", "completion": "completion", "response": "response"}

_READ = frozenset({b"x-request-id", b"traceparent", b"x-weft-explain", b"x-weft-replica"})


class HotRoutes:
    """Implements exchange.Handler: authenticates requests and hands them to the dispatchers."""

    def __init__(
        self,
        dispatcher: RequestDispatcher,
        unary: UnaryDispatcher,
        prompting: Prompting,
        metrics: Metrics,
        *,
        authenticator: Authenticator,
        max_body: int,
        slow_client_bytes: int,
        show_replicas: bool = False,
    ) -> None:
        """`show_replicas`: every answer names its replica, and every caller may choose one."""
        self.max_body = max_body
        self.slow_client_bytes = slow_client_bytes
        self._dispatcher = dispatcher
        self._unary = unary
        self._metrics = metrics
        self._authenticator = authenticator
        self._show_replicas = show_replicas
        self._checks = CHECKS | token_checks(prompting)

    def admit(self, exchange: Exchange) -> None:
        """Check who asks, before the body is read. Raises Refused."""
        headers = exchange.headers
        context = self._authenticator.read_context(headers, exchange.peer, V1, http10=exchange.http10)
        exchange.caller = self._authenticator.authenticate(context, headers, "inference")
        check_json(headers)
        if not self._authenticator.ready():
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
        self._authenticator.recheck(caller)
        given: dict[bytes, str] = {}
        for name, value in exchange.headers:
            if name in _READ:
                given.setdefault(name, value.decode("latin-1"))
        correlation_id = checked_correlation_id(given.get(b"x-request-id"))
        options = routing_options_of(
            given.get(b"x-weft-explain"), given.get(b"x-weft-replica"), caller, everybody=self._show_replicas
        )
        if (check := self._checks.get(exchange.route)) is not None:
            return self._unary.begin(check, body, correlation_id, exchange, caller, options)
        traceparent = given.get(b"traceparent", "")
        return self._dispatcher.begin(
            _KINDS[exchange.route], body, correlation_id, traceparent, exchange, caller, options
        )

    def refused(self, status: int, route: str) -> None:
        """See exchange.Handler."""
        self._metrics.refused(status, route)

    def shed(self) -> None:
        """See exchange.Handler."""
        self._metrics.shed()
