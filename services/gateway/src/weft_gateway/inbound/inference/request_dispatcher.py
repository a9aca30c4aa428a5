"""Takes inference requests, finds each a replica, and sees to it that each one ends explicitly."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, Protocol

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_contracts.ids import ModelId
from weft_dataplane.session_client import SessionClient
from weft_fleet import AliasView, ModelView
from weft_runtime.logs import get_logger

from weft_gateway.domain.ability import check_generates
from weft_gateway.domain.answers.choice_encoder import CompletionEnvelope
from weft_gateway.domain.answers.encoders import encoder_for, envelope_for
from weft_gateway.domain.answers.response_envelope import ResponseEnvelope
from weft_gateway.domain.attribution import Attribution, log_attributes
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.choices import split_choices
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.openai.responses import check_response
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState, restricted_to
from weft_gateway.domain.routing.filters import Filter, has_room, reachable
from weft_gateway.domain.routing.routing_options import NO_OPTIONS, RoutingOptions, check_replica
from weft_gateway.domain.routing.selection import select
from weft_gateway.inbound.inference.alias_routing import AliasRouting, AliasWay
from weft_gateway.inbound.inference.faults import refusal_for
from weft_gateway.inbound.inference.in_flight_choice import InFlightChoice
from weft_gateway.inbound.inference.in_flight_response import InFlightResponse
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.prompt_step import PromptStep
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine
from weft_gateway.inbound.inference.request_log import log_ended
from weft_gateway.inbound.inference.response_writer import ResponseWriter, answer_refusal
from weft_gateway.inbound.inference.routing_task import RoutedRequest, RoutingTask
from weft_gateway.outbound.connection_pool import ConnectionPool
from weft_gateway.projections.directory import Directory

RequestKind = Literal["chat", "completion", "response"]
_CHECKS: dict[RequestKind, Callable[[bytes], InferenceRequest]] = {
    "chat": check_chat,
    "completion": check_completion,
    "response": check_response,
}
_FAST: tuple[Filter, ...] = (reachable, has_room)
_log: Any = get_logger("weft.gateway.inference")


class RequestMetrics(Protocol):
    """Where requests are counted; see inbound/metrics.py."""

    def request_ended(self, choice: InFlightChoice, outcome: str, now: float) -> None: ...
    def went_elsewhere(self, how: str) -> None: ...


class Waking(Protocol):
    """How a first replica of a model that sleeps is asked for; see outbound/activations.py."""

    def ask(self, model: ModelId, correlation_id: str) -> None: ...


class RequestDispatcher:
    """All of one gateway's inference requests in flight, but for embeddings."""

    def __init__(
        self,
        directory: Directory,
        pool: ConnectionPool,
        limits: Limits,
        metrics: RequestMetrics,
        instance: str,
        *,
        request_log: bool = True,
        attribution_key: bytes | None = None,
        prompts: PromptStep | None = None,
        activations: Waking | None = None,
    ) -> None:
        """`attribution_key`: what digests of persons are made with; None: what a client says of whom a request is
        for stands in no log."""
        self.directory = directory
        self.pool = pool
        self.limits = limits
        self.queue = BusyQueue(limits.busy_queue)
        self.loading = LoadingLine(limits.loading_line)
        self.aliases = AliasRouting(directory, pool, self.queue, self.loading)
        self.in_flight: set[InFlightChoice] = set()
        self.tokens: Counter[str] = Counter()
        """Output tokens of choices that have ended, by model."""
        self.used: dict[str, float] = {}
        """When something of a model ended last, by name."""
        self.stopping = False
        self._metrics = metrics
        self._instance = instance
        self._request_log = request_log
        self._activations = activations
        self._attribution_key = attribution_key
        self._prompts = prompts
        self._last_id = 0
        self._clock = asyncio.get_running_loop().time
        self._routing_tasks: dict[InFlightChoice, asyncio.Task[None]] = {}

    def now(self) -> float:
        return self._clock()

    def begin(
        self,
        kind: RequestKind,
        body: bytes,
        correlation_id: str | None,
        traceparent: str,
        writer: ResponseWriter,
        caller: Caller = NOBODY,
        options: RoutingOptions = NO_OPTIONS,
    ) -> InFlightResponse | None:
        """Take a request. Its answer goes to the writer, a refusal too; None when it was refused at once."""
        self._last_id += 1
        correlation_id = correlation_id or f"{self._instance}-{self._last_id:x}"
        try:
            request = _CHECKS[kind](body)
            model, way = self._model(request, caller, options)
            if options.replica is not None:
                check_replica(self.directory.fleet, model, options.replica)
            if way is not None:
                request = msgspec.structs.replace(request, model=model.name)
            each = split_choices(request, len(body), random.getrandbits(64))
        except Refused as refused:
            answer_refusal(writer, refused, correlation_id)
            return None
        number = f"{self._instance}-{self._last_id:x}"
        envelope = self._envelope(request, number, model)
        response = InFlightResponse(writer, envelope, streams=request.stream, choices=len(each), n=request.n)
        response.routing = options
        response.log_attributes = self.log_attributes(request.attribution)
        choices: list[InFlightChoice] = []
        for index, one in enumerate(each):
            encoder = encoder_for(one, envelope, index)
            choices.append(InFlightChoice(self, one, encoder, response, correlation_id, traceparent))
        if way is not None:
            way.number, way.bound = number, way.bound or len(each) > 1
            response.alias = way.alias
            for choice in choices:
                choice.way = way
        self.in_flight.update(choices)
        if self._prompts is not None:
            self._prompts.take(choices, model, caller, self._route)
        else:
            for choice in choices:
                self._route(choice, model)
        return response

    def log_attributes(self, attribution: Attribution) -> dict[str, str]:
        """What log and trace show of what a client says for its own books: nothing unless a setting says so."""
        return log_attributes(attribution, self._attribution_key) if self._attribution_key is not None else {}

    def left(self, choice: InFlightChoice, state: EndpointState) -> None:
        """See in_flight_choice.Owner."""
        self.queue.wake(state.endpoint.model)

    def ended(self, choice: InFlightChoice, outcome: str) -> None:
        """See in_flight_choice.Owner."""
        self.in_flight.discard(choice)
        self.tokens[choice.request.model] += max(choice.tokens, choice.usage.output)
        task = self._routing_tasks.pop(choice, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        now = self.used[choice.request.model] = self.now()
        self._metrics.request_ended(choice, outcome, now)
        if self._request_log:
            log_ended(choice, outcome, now)

    def failed(self, choice: InFlightChoice, output: pb.Output) -> None:
        """See in_flight_choice.Owner: go elsewhere if that can be right, else refuse."""
        choice.last_error = output.error or "the replica ended the request"
        refused = refusal_for(output, choice.request)
        if refused is not None:
            choice.refuse(refused)
            return
        if output.fault == pb.FAULT_RETIRING:
            self.pool.eject(choice.replica, "is retiring")
            choice.tries -= 1  # it took nothing new: that is no failure, and it is not chosen again
        model = self.directory.model(choice.request.model)
        if output.fault == pb.FAULT_BUSY and model is not None and not choice.started and not self.stopping:
            self._start_routing(choice, model, busy=True)
            return
        if choice.started and choice.way is not None:
            choice.way.bound = True  # what is out names its model
        elsewhere = choice.tries < self.limits.tries and not self.stopping
        if choice.started and not (choice.resumable and choice.ids):
            elsewhere = False
        if not elsewhere or model is None:
            other = self.aliases.next(choice.way, model.id, "refused") if model is not None else None
            if other is not None and not self.stopping:
                self.go_to(choice, other)
                self._metrics.went_elsewhere("to another model")
                self._start_routing(choice, other)
                return
            choice.refuse(Refused(503, f"The replica failed: {choice.last_error}.", code="replica_failed"))
            return
        if not choice.resumable:
            choice.start_anew()
        self._metrics.went_elsewhere("resumed" if choice.ids else "started anew")
        _log.info("goes elsewhere", correlation_id=choice.correlation_id, why=choice.last_error)
        self._start_routing(choice, model)

    def submit(self, request: InFlightChoice, state: EndpointState, session: SessionClient) -> None:
        """Send one choice of a request to a replica. Raises SessionError."""
        request.tries += 1
        request.tried.add(state.endpoint.replica)
        request.resumable = request.resumable and self._resumes(session.welcome.engine)
        request.digest = state.endpoint.digest
        request.replica = state.endpoint.replica
        ids = () if self._prompts is None else self._prompts.submitted(request, state, session)
        request.submit(state, session, ids)

    def wake(self, request: RoutedRequest, model: ModelView) -> None:
        """See routing_task.RoutingContext."""
        if self._activations is not None:
            self._activations.ask(model.id, request.correlation_id)

    def go_to(self, request: InFlightChoice, model: ModelView) -> None:
        """See routing_task.RoutingContext. The answer will name the model that gives it."""
        assert request.way is not None
        named = msgspec.structs.replace(request.request, model=model.name)
        envelope = self._envelope(named, request.way.number, model)
        request.go_to(named, envelope, encoder_for(named, envelope, request.index))

    async def watch(self) -> None:
        """Wake waiters when the fleet changes and give up requests that stall, for ever."""
        looked = self.now()
        while True:
            changed = await self.directory.changed.wait(timeout=5.0)
            if changed:
                self.queue.wake_all()
            if self.now() - looked >= self.limits.stall / 2:
                looked = self.now()
                self._give_up_stalled()

    async def finish_all(self, timeout: float) -> None:
        """Let requests finish for `timeout` seconds, then end the rest with an explicit error."""
        self.stopping = True
        deadline = self.now() + timeout
        while self.in_flight and self.now() < deadline:
            await asyncio.sleep(0.05)
        for choice in list(self.in_flight):
            choice.refuse(Refused(503, "The gateway is stopping; send the request again.", code="stopping"))

    def _resumes(self, engine: str) -> bool:
        """Whether another replica goes on with this engine's greedy text."""
        profile = self.directory.fleet.engines.get(engine)
        return profile is not None and profile.resumes_greedy

    def _model(
        self, request: InferenceRequest, caller: Caller, options: RoutingOptions
    ) -> tuple[ModelView, AliasWay | None]:
        if self.stopping:
            raise Refused(503, "The gateway is stopping; send the request again.", code="stopping")
        found = self.directory.model_or_alias_for(request.model, caller)
        if isinstance(found, AliasView):
            return self.aliases.begin(found, lambda model: check_generates(request, model), options.replica)
        check_generates(request, found)
        return found, None

    def _envelope(
        self, request: InferenceRequest, number: str, model: ModelView
    ) -> CompletionEnvelope | ResponseEnvelope:
        return envelope_for(request, number, int(time.time()), model.name, model.serving.digest)

    def _route(self, choice: InFlightChoice, model: ModelView) -> None:
        if not choice.done and not self._route_at_once(choice, model):
            self._start_routing(choice, model)

    def _route_at_once(self, choice: InFlightChoice, model: ModelView) -> bool:
        """The common case, without a task: a free replica with an open session."""
        if self.queue.waiting(model.id):
            return False
        states = self.pool.endpoint_states(model.id)
        state = select(states if choice.only is None else restricted_to(states, choice.only), _FAST).chosen
        if state is None:
            return False
        session = self.pool.session(state)
        if session is None or session.closed.done():
            return False
        try:
            self.submit(choice, state, session)
        except Exception as error:
            choice.last_error = str(error)
            return False
        return True

    def _start_routing(self, choice: InFlightChoice, model: ModelView, *, busy: bool = False) -> None:
        task = asyncio.create_task(RoutingTask(self, choice, model, busy=busy).run())
        self._routing_tasks[choice] = task
        task.add_done_callback(lambda done: self._routed(choice, done))

    def _routed(self, choice: InFlightChoice, done: "asyncio.Task[None]") -> None:
        if self._routing_tasks.get(choice) is done:
            del self._routing_tasks[choice]
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.error("placing failed", correlation_id=choice.correlation_id, exc_info=error)
            choice.refuse(Refused(500, "The gateway failed to place the request.", code="internal"))

    def _give_up_stalled(self) -> None:
        for choice in list(self.in_flight):
            if choice.endpoint_state is not None and choice.seen == choice.tokens:
                what = f"No output came for {self.limits.stall:g} s; the request was given up."
                choice.refuse(Refused(504, what, code="stalled"))
            choice.seen = choice.tokens
