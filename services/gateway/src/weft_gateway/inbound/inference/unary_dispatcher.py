"""Dispatches requests with one answer, embeddings and reranking: each finds an endpoint as all requests do."""

import asyncio
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import UnaryCallFailed
from weft_dataplane.session_client import SessionClient
from weft_fleet import AliasView, ModelView
from weft_runtime.logs import get_logger

from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState, replica_headers
from weft_gateway.domain.routing.filters import has_room, reachable
from weft_gateway.domain.routing.routing_options import NO_OPTIONS, RoutingOptions, check_replica
from weft_gateway.inbound.inference.alias_routing import AliasWay
from weft_gateway.inbound.inference.request_dispatcher import RequestDispatcher
from weft_gateway.inbound.inference.response_writer import ResponseWriter, answer_refusal
from weft_gateway.inbound.inference.routing_task import RoutedRequest, RoutingTask
from weft_gateway.inbound.inference.unary_requests import CheckUnary, Made, UnaryRequest
from weft_gateway.inbound.metrics import Metrics

_log: Any = get_logger("weft.gateway.unary")
_SERVER_FAULT = 500


class InFlightUnary:
    """One request. It ends once: by an answer, a refusal, or its client's leaving."""

    def __init__(self, request: UnaryRequest, writer: ResponseWriter, correlation_id: str, started_at: float) -> None:
        self.request = request
        self.correlation_id = correlation_id
        self.started_at = started_at
        self.endpoint_state: EndpointState | None = None
        self.session: SessionClient | None = None
        self.done = False
        self.outcome = ""
        self.tokens = 0
        self.task: asyncio.Task[None] | None = None
        self.log_attributes: dict[str, str] = {}
        self.routing = NO_OPTIONS
        # what the routing task looks at
        self.ids: list[int] = []
        self.digest = ""
        self.tried: set[str] = set()
        self.tries = 0
        self.busy_since = 0.0
        self.last_error = ""
        self.way: AliasWay | None = None
        self._writer = writer

    @property
    def only(self) -> str | None:
        """The replica that was chosen."""
        return self.routing.replica

    @property
    def replica(self) -> str:
        """The one that answers; empty: none yet."""
        return self.endpoint_state.endpoint.replica if self.endpoint_state is not None else ""

    @property
    def alias(self) -> str:
        """That it named; empty: it named a model."""
        return self.way.alias if self.way is not None else ""

    def answer(self, body: bytes) -> None:
        """The whole answer."""
        headers = {"x-request-id": self.correlation_id}
        if self.routing.explain and self.endpoint_state is not None:
            headers |= replica_headers(self.endpoint_state, self.alias)
        self._writer.answer(200, "application/json", body, headers)
        self.done, self.outcome = True, "ok"

    def refuse(self, refused: Refused) -> None:
        """End it with an error."""
        if self.done:
            return
        answer_refusal(self._writer, refused, self.correlation_id)
        self.done, self.outcome = True, f"{refused.status}"

    def abandon(self) -> None:
        """Its client is gone: the replica is told that nobody waits."""
        if not self.done:
            self.done, self.outcome = True, "client_gone"
            if self.task is not None:
                self.task.cancel()


class UnaryDispatcher:
    """All of one gateway's requests with one answer in flight. They share the request dispatcher's queues."""

    def __init__(
        self, dispatcher: RequestDispatcher, metrics: Metrics, instance: str, *, request_log: bool = True
    ) -> None:
        self.directory = dispatcher.directory
        self.pool = dispatcher.pool
        self.queue = dispatcher.queue
        self.loading = dispatcher.loading
        self.limits = dispatcher.limits
        self.aliases = dispatcher.aliases
        self.in_flight: set[InFlightUnary] = set()
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._instance = instance
        self._request_log = request_log
        self._last_id = 0

    def now(self) -> float:
        """Monotonic seconds."""
        return self._dispatcher.now()

    def begin(
        self,
        check: CheckUnary,
        body: bytes,
        correlation_id: str | None,
        writer: ResponseWriter,
        caller: Caller = NOBODY,
        options: RoutingOptions = NO_OPTIONS,
    ) -> InFlightUnary | None:
        """Take a request. Its answer goes to the writer, a refusal too; None when it was refused at once."""
        self._last_id += 1
        correlation_id = correlation_id or f"{self._instance}-e{self._last_id:x}"
        try:
            request = check(body)
            model, way = self._model(request, caller, options)
            if options.replica is not None:
                check_replica(self.directory.fleet, model, options.replica)
        except Refused as refused:
            answer_refusal(writer, refused, correlation_id)
            return None
        unary = InFlightUnary(request if way is None else request.to(model.name), writer, correlation_id, self.now())
        unary.way = way
        unary.routing = options
        unary.log_attributes = self._dispatcher.log_attributes(request.attribution)
        self.in_flight.add(unary)
        unary.task = asyncio.create_task(self._serve(unary, model))
        return unary

    def submit(self, request: InFlightUnary, state: EndpointState, session: SessionClient) -> None:
        """See routing_task.RoutingContext: the endpoint is selected; it is asked when the routing task is over."""
        request.tries += 1
        request.tried.add(state.endpoint.replica)
        request.endpoint_state, request.session = state, session
        state.in_flight += 1
        state.last_used = self.now()

    def wake(self, request: RoutedRequest, model: ModelView) -> None:
        """See routing_task.RoutingContext."""
        self._dispatcher.wake(request, model)

    def go_to(self, request: InFlightUnary, model: ModelView) -> None:
        """See routing_task.RoutingContext."""
        request.request, request.tries = request.request.to(model.name), 0

    async def finish_all(self, timeout: float) -> None:
        """Let requests finish for `timeout` seconds, then end the rest with an explicit error."""
        deadline = self.now() + timeout
        while self.in_flight and self.now() < deadline:
            await asyncio.sleep(0.05)
        for unary in list(self.in_flight):
            unary.refuse(_stopping())
            if unary.task is not None:
                unary.task.cancel()

    def _model(
        self, request: UnaryRequest, caller: Caller, options: RoutingOptions
    ) -> tuple[ModelView, AliasWay | None]:
        if self._dispatcher.stopping:
            raise _stopping()
        found = self.directory.model_or_alias_for(request.model, caller)
        if isinstance(found, AliasView):
            return self.aliases.begin(found, lambda model: self._check(request.to(model.name), model), options.replica)
        self._check(request, found)
        return found, None

    def _check(self, request: UnaryRequest, model: ModelView) -> None:
        spec = model.serving.spec
        request.check_model(model.name, spec, self.directory.fleet.engines.get(spec.engine))

    async def _serve(self, unary: InFlightUnary, model: ModelView) -> None:
        try:
            busy = False
            if unary.only is None and (made := await unary.request.answered_here(model)) is not None:
                await self._answer(unary, made)
            while not unary.done:
                routing = RoutingTask(self, unary, model, busy=busy)
                await routing.run()
                if unary.done:
                    return
                model, busy = await self._asked(unary, routing.model)
        except Refused as refused:
            unary.refuse(refused)
        except Exception:
            _log.exception("unary request failed", correlation_id=unary.correlation_id)
            unary.refuse(Refused(500, "The gateway failed to answer; its log says why.", code="internal"))
        finally:
            self._ended(unary)

    async def _asked(self, unary: InFlightUnary, model: ModelView) -> tuple[ModelView, bool]:
        """Ask the chosen replica; which model is asked next, where it isn't answered, and whether this one was busy.

        Raises Refused.
        """
        try:
            return model, await self._ask(unary, model)
        except Refused as refused:
            other = self.aliases.next(unary.way, model.id, "refused") if refused.status >= _SERVER_FAULT else None
            if other is None:
                raise
            self.go_to(unary, other)
            self._metrics.went_elsewhere("to another model")
            return other, False

    async def _ask(self, unary: InFlightUnary, model: ModelView) -> bool:
        """Ask the chosen replica. Whether it was busy; any other failure that may pass leads elsewhere.

        Raises Refused.
        """
        state, session = unary.endpoint_state, unary.session
        assert state is not None
        assert session is not None
        beside = unary.request.answered_beside(session, state.endpoint, model)
        if beside is not None:
            self._leave(state)
            if (made := await beside) is not None:
                await self._answer(unary, made)
                return False
            if has_room(state) is not None or reachable(state) is not None:
                unary.tries -= 1  # its place is another's now: that is no failure
                unary.tried.discard(state.endpoint.replica)
                return False
            state.in_flight += 1
        try:
            made = await unary.request.ask(session, state.endpoint, model)
        except UnaryCallFailed as failed:
            return self._failed(unary, state, failed)
        finally:
            self._leave(state)
        await self._answer(unary, made)
        return False

    def _leave(self, state: EndpointState) -> None:
        state.in_flight -= 1
        self.queue.wake(state.endpoint.model)

    async def _answer(self, unary: InFlightUnary, made: Made) -> None:
        unary.tokens = made.tokens
        pieces: list[bytes] = []
        for piece in made.pieces:
            pieces.append(piece)
            await asyncio.sleep(0)  # others have their turn
        unary.answer(b"".join(pieces))

    def _failed(self, unary: InFlightUnary, state: EndpointState, failed: UnaryCallFailed) -> bool:
        unary.last_error = sentence = str(failed)
        match failed.fault:
            case pb.FAULT_BAD_REQUEST:
                raise Refused(
                    400, f"The engine refused the input: {sentence}.", param=unary.request.field, code="bad_request"
                )
            case pb.FAULT_CONTEXT_EXCEEDED:
                what = f"The input is too long: {sentence}."
                raise Refused(400, what, param=unary.request.field, code="context_length_exceeded")
            case pb.FAULT_BUSY:
                return True
            case pb.FAULT_RETIRING:
                self.pool.eject(state.endpoint.replica, "is retiring")
                unary.tries -= 1
            case _:
                if unary.tries >= self.limits.tries:
                    raise Refused(503, f"The replica failed: {sentence}.", code="replica_failed")
        self._metrics.went_elsewhere("started anew")
        return False

    def _ended(self, unary: InFlightUnary) -> None:
        self.in_flight.discard(unary)
        now, request = self.now(), unary.request
        seconds = now - unary.started_at
        self._dispatcher.used[request.model] = now
        if unary.way is not None:
            self._metrics.aliased(unary.alias, request.model, unary.outcome)
        self._metrics.unary_ended(request.operation, request.model, unary.outcome, seconds, unary.tokens)
        if self._request_log:
            _log.info(
                request.operation,
                correlation_id=unary.correlation_id,
                model=request.model,
                **({"alias": unary.alias} if unary.way is not None else {}),
                replica=unary.replica,
                outcome=unary.outcome,
                inputs=request.inputs_count,
                prompt_tokens=unary.tokens,
                seconds=round(seconds, 4),
                **({"error": unary.last_error} if unary.last_error else {}),
                **unary.log_attributes,
            )


def _stopping() -> Refused:
    return Refused(503, "The gateway is stopping; send the request again.", code="stopping")
