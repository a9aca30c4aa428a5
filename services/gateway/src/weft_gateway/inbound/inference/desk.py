"""Takes inference requests, finds each a replica, and sees to it that each one ends explicitly."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.session_client import SessionClient
from weft_placement.fleet import ModelView
from weft_runtime.logs import get_logger

from weft_gateway.domain.ability import check_writes
from weft_gateway.domain.answers.choosing import choice_of, envelope_of
from weft_gateway.domain.asked import Asked
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.choices import choices_of
from weft_gateway.domain.openai.chat import check_chat
from weft_gateway.domain.openai.completions import check_completion
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.filters import Filter, has_room, reachable
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.routing.pick import choose
from weft_gateway.inbound.inference.faults import refusal_for
from weft_gateway.inbound.inference.limits import Limits
from weft_gateway.inbound.inference.placing import Placing
from weft_gateway.inbound.inference.queue import BusyQueue, LoadingLine
from weft_gateway.inbound.inference.response import Response
from weft_gateway.inbound.inference.running import Running
from weft_gateway.inbound.inference.sink import Sink
from weft_gateway.outbound.sessions import Sessions
from weft_gateway.projections.directory import Directory

Kind = Literal["chat", "completion"]
_CHECKS: dict[Kind, Callable[[bytes], Asked]] = {"chat": check_chat, "completion": check_completion}
_RESUMING_ENGINES = frozenset({"llama.cpp", "simulated"})
"""Engines whose greedy text another replica continues word for word."""
_FAST: tuple[Filter, ...] = (reachable, has_room)
_log: Any = get_logger("weft.gateway.inference")


class Counts(Protocol):
    """Where requests are counted; see inbound/metrics.py."""

    def request_ended(self, running: Running, outcome: str, now: float) -> None: ...
    def refused_early(self, status: int) -> None: ...
    def went_elsewhere(self, how: str) -> None: ...


class Desk:
    """All of one gateway's running inference requests."""

    def __init__(
        self,
        directory: Directory,
        sessions: Sessions,
        limits: Limits,
        counts: Counts,
        instance: str,
        *,
        request_log: bool = True,
    ) -> None:
        self.directory = directory
        self.sessions = sessions
        self.limits = limits
        self.queue = BusyQueue(limits.busy_queue)
        self.loading = LoadingLine(limits.loading_line)
        self.running: set[Running] = set()
        self.stopping = False
        self._counts = counts
        self._instance = instance
        self._request_log = request_log
        self._last_id = 0
        self._clock = asyncio.get_running_loop().time
        self._placings: dict[Running, asyncio.Task[None]] = {}

    def now(self) -> float:
        return self._clock()

    def begin(
        self, kind: Kind, body: bytes, correlation_id: str | None, traceparent: str, sink: Sink, caller: Caller = NOBODY
    ) -> Response | None:
        """Take a request. Its answer goes to the sink, a refusal too; None when it was refused at once."""
        self._last_id += 1
        correlation_id = correlation_id or f"{self._instance}-{self._last_id:x}"
        try:
            asked = _CHECKS[kind](body)
            model = self._model(asked, caller)
            each = choices_of(asked, len(body), random.getrandbits(64))
        except Refused as refused:
            self._counts.refused_early(refused.status)
            headers = {"x-request-id": correlation_id, **refused.headers}
            sink.answer(refused.status, "application/json", openai_error(refused), headers)
            return None
        number = f"{self._instance}-{self._last_id:x}"
        envelope = envelope_of(asked, number, int(time.time()), model.name, model.digest)
        response = Response(sink, envelope, streams=asked.stream, choices=len(each), n=asked.n)
        for index, one in enumerate(each):
            choice = choice_of(one, envelope, index)
            self.running.add(Running(self, one, choice, response, correlation_id, traceparent))
        for running in response.choices:
            if not running.done and not self._place_at_once(running, model):
                self._place(running, model)
        return response

    def left(self, running: Running, lane: Lane) -> None:
        """See running.Owner."""
        self.queue.wake(lane.target.model)

    def ended(self, running: Running, outcome: str) -> None:
        """See running.Owner."""
        self.running.discard(running)
        placing = self._placings.pop(running, None)
        if placing is not None and placing is not asyncio.current_task():
            placing.cancel()
        now = self.now()
        self._counts.request_ended(running, outcome, now)
        if self._request_log:
            _log.info(
                "request",
                correlation_id=running.correlation_id,
                model=running.asked.model,
                replica=running.replica,
                outcome=outcome,
                prompt_tokens=running.usage.prompt,
                output_tokens=running.usage.output,
                seconds=round(now - running.started_at, 4),
                **({"error": running.last_error} if running.last_error else {}),
            )

    def failed(self, running: Running, output: pb.Output) -> None:
        """See running.Owner: go elsewhere if that can be right, else refuse."""
        running.last_error = output.error or "the replica ended the request"
        refused = refusal_for(output)
        if refused is not None:
            running.refuse(refused)
            return
        if output.fault == pb.FAULT_RETIRING:
            self.sessions.shun(running.replica, "is retiring")
            running.tries -= 1  # it took nothing new: that is no failure, and it is not chosen again
        model = self.directory.model(running.asked.model)
        if output.fault == pb.FAULT_BUSY and model is not None and not running.started and not self.stopping:
            self._place(running, model, busy=True)
            return
        elsewhere = running.tries < self.limits.tries and not self.stopping
        if running.started and not (running.resumable and running.ids):
            elsewhere = False
        if not elsewhere or model is None:
            running.refuse(Refused(503, f"The replica failed: {running.last_error}.", code="replica_failed"))
            return
        if not running.resumable:
            running.start_anew()
        self._counts.went_elsewhere("resumed" if running.ids else "started anew")
        _log.info("goes elsewhere", correlation_id=running.correlation_id, why=running.last_error)
        self._place(running, model)

    def submit(self, running: Running, lane: Lane, session: SessionClient) -> None:
        """Send a request to a replica. Raises SessionError."""
        running.tries += 1
        running.tried.add(lane.target.replica)
        running.resumable = running.resumable and session.welcome.engine in _RESUMING_ENGINES
        running.digest = lane.target.digest
        running.replica = lane.target.replica
        running.submit(lane, session)

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
        while self.running and self.now() < deadline:
            await asyncio.sleep(0.05)
        for running in list(self.running):
            running.refuse(Refused(503, "The gateway is stopping; send the request again.", code="stopping"))

    def _model(self, asked: Asked, caller: Caller) -> ModelView:
        if self.stopping:
            raise Refused(503, "The gateway is stopping; send the request again.", code="stopping")
        model = self.directory.asked_for(asked.model, caller)
        check_writes(model.name, model.spec)
        if asked.max_tokens > model.spec.context_tokens:
            raise Refused(
                400,
                f"`max_tokens` is {asked.max_tokens}; model {model.name!r} takes at most "
                f"{model.spec.context_tokens} tokens, prompt and answer together.",
                param="max_tokens",
                code="out_of_range",
            )
        return model

    def _place_at_once(self, running: Running, model: ModelView) -> bool:
        """The common case, without a task: a free replica with an open session."""
        if self.queue.waiting(model.id):
            return False
        lane = choose(self.sessions.lanes(model.id), _FAST).lane
        if lane is None:
            return False
        session = self.sessions.session(lane)
        if session is None or session.closed.done():
            return False
        try:
            self.submit(running, lane, session)
        except Exception as error:
            running.last_error = str(error)
            return False
        return True

    def _place(self, running: Running, model: ModelView, *, busy: bool = False) -> None:
        placing = asyncio.create_task(Placing(self, running, model, busy=busy).run())
        self._placings[running] = placing
        placing.add_done_callback(lambda done: self._placed(running, done))

    def _placed(self, running: Running, done: "asyncio.Task[None]") -> None:
        if self._placings.get(running) is done:
            del self._placings[running]
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.error("placing failed", correlation_id=running.correlation_id, exc_info=error)
            running.refuse(Refused(500, "The gateway failed to place the request.", code="internal"))

    def _give_up_stalled(self) -> None:
        for running in list(self.running):
            if running.lane is not None and not running.heard:
                what = f"No output came for {self.limits.stall:g} s; the request was given up."
                running.refuse(Refused(504, what, code="stalled"))
            running.heard = False
