"""Embedding requests: each finds a replica the way that all requests do, and ends with one answer."""

import asyncio
from typing import Any

from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import QuestionFailed
from weft_dataplane.session_client import SessionClient
from weft_placement.fleet import ModelView
from weft_runtime.logs import get_logger

from weft_gateway.domain.ability import check_embeds
from weft_gateway.domain.caller import NOBODY, Caller
from weft_gateway.domain.openai.embeddings import AskedEmbedding, check_embedding, check_length, embedding_answer
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.inbound.inference.desk import Desk
from weft_gateway.inbound.inference.placing import Placing
from weft_gateway.inbound.inference.sink import Sink
from weft_gateway.inbound.metrics import Metrics

_log: Any = get_logger("weft.gateway.embedding")


class Embedding:
    """One request. It ends once: by an answer, a refusal, or its client's leaving."""

    def __init__(self, asked: AskedEmbedding, sink: Sink, correlation_id: str, started_at: float) -> None:
        self.asked = asked
        self.correlation_id = correlation_id
        self.started_at = started_at
        self.lane: Lane | None = None
        self.session: SessionClient | None = None
        self.done = False
        self.outcome = ""
        self.tokens = 0
        self.task: asyncio.Task[None] | None = None
        # what placing looks at
        self.ids: list[int] = []
        self.digest = ""
        self.tried: set[str] = set()
        self.tries = 0
        self.busy_since = 0.0
        self.last_error = ""
        self._sink = sink

    def answer(self, body: bytes) -> None:
        """The whole answer."""
        headers = {"x-request-id": self.correlation_id}
        if self.lane is not None:
            headers["x-weft-replica"] = self.lane.target.replica
            headers["x-weft-run-event"] = self.lane.target.event_id
        self._sink.answer(200, "application/json", body, headers)
        self.done, self.outcome = True, "ok"

    def refuse(self, refused: Refused) -> None:
        """End it with an error."""
        if self.done:
            return
        headers = {"x-request-id": self.correlation_id, **refused.headers}
        self._sink.answer(refused.status, "application/json", openai_error(refused), headers)
        self.done, self.outcome = True, f"{refused.status}"

    def abandon(self) -> None:
        """Its client is gone: the replica is told that nobody waits."""
        if not self.done:
            self.done, self.outcome = True, "client_gone"
            if self.task is not None:
                self.task.cancel()


class EmbeddingDesk:
    """All of one gateway's running embedding requests. Lines, limits and sessions are the desk's."""

    def __init__(self, desk: Desk, metrics: Metrics, instance: str, *, request_log: bool = True) -> None:
        self.directory = desk.directory
        self.sessions = desk.sessions
        self.queue = desk.queue
        self.loading = desk.loading
        self.limits = desk.limits
        self.running: set[Embedding] = set()
        self._desk = desk
        self._metrics = metrics
        self._instance = instance
        self._request_log = request_log
        self._last_id = 0

    def now(self) -> float:
        """Monotonic seconds."""
        return self._desk.now()

    def begin(self, body: bytes, correlation_id: str | None, sink: Sink, caller: Caller = NOBODY) -> Embedding | None:
        """Take a request. Its answer goes to the sink, a refusal too; None when it was refused at once."""
        self._last_id += 1
        correlation_id = correlation_id or f"{self._instance}-e{self._last_id:x}"
        try:
            asked = check_embedding(body)
            model = self._model(asked, caller)
        except Refused as refused:
            self._metrics.refused_early(refused.status)
            headers = {"x-request-id": correlation_id, **refused.headers}
            sink.answer(refused.status, "application/json", openai_error(refused), headers)
            return None
        embedding = Embedding(asked, sink, correlation_id, self.now())
        self.running.add(embedding)
        embedding.task = asyncio.create_task(self._serve(embedding, model))
        return embedding

    def submit(self, running: Embedding, lane: Lane, session: SessionClient) -> None:
        """See placing.Place: the replica is chosen; it is asked when placing is over."""
        running.tries += 1
        running.tried.add(lane.target.replica)
        running.lane, running.session = lane, session
        lane.in_flight += 1
        lane.last_used = self.now()

    async def finish_all(self, timeout: float) -> None:
        """Let requests finish for `timeout` seconds, then end the rest with an explicit error."""
        deadline = self.now() + timeout
        while self.running and self.now() < deadline:
            await asyncio.sleep(0.05)
        for embedding in list(self.running):
            embedding.refuse(_stopping())
            if embedding.task is not None:
                embedding.task.cancel()

    def _model(self, asked: AskedEmbedding, caller: Caller) -> ModelView:
        if self._desk.stopping:
            raise _stopping()
        model = self.directory.asked_for(asked.model, caller)
        check_embeds(model.name, model.spec)
        check_length(asked, model.spec.context_tokens)
        return model

    async def _serve(self, embedding: Embedding, model: ModelView) -> None:
        try:
            busy = False
            while not embedding.done:
                await Placing(self, embedding, model, busy=busy).run()
                if embedding.done:
                    return
                busy = await self._ask(embedding)
        except Refused as refused:
            embedding.refuse(refused)
        except Exception:
            _log.exception("embedding failed", correlation_id=embedding.correlation_id)
            embedding.refuse(Refused(500, "The gateway failed to answer; its log says why.", code="internal"))
        finally:
            self._ended(embedding)

    async def _ask(self, embedding: Embedding) -> bool:
        """Ask the chosen replica. Whether it was busy; any other failure that may pass leads elsewhere.

        Raises Refused.
        """
        lane, session = embedding.lane, embedding.session
        assert lane is not None
        assert session is not None
        try:
            made = await session.questions.embed(embedding.asked.inputs)
        except QuestionFailed as failed:
            return self._failed(embedding, lane, failed)
        finally:
            lane.in_flight -= 1
            self.queue.wake(lane.target.model)
        embedding.tokens = made.prompt_tokens
        pieces: list[bytes] = []
        for piece in embedding_answer(embedding.asked, made.vectors, made.prompt_tokens):
            pieces.append(piece)
            await asyncio.sleep(0)  # others have their turn
        embedding.answer(b"".join(pieces))
        return False

    def _failed(self, embedding: Embedding, lane: Lane, failed: QuestionFailed) -> bool:
        embedding.last_error = sentence = str(failed)
        match failed.fault:
            case pb.FAULT_BAD_REQUEST:
                raise Refused(400, f"The engine refused the input: {sentence}.", param="input", code="bad_request")
            case pb.FAULT_CONTEXT_EXCEEDED:
                raise Refused(400, f"The input is too long: {sentence}.", param="input", code="context_length_exceeded")
            case pb.FAULT_BUSY:
                return True
            case pb.FAULT_RETIRING:
                self.sessions.shun(lane.target.replica, "is retiring")
                embedding.tries -= 1
            case _:
                if embedding.tries >= self.limits.tries:
                    raise Refused(503, f"The replica failed: {sentence}.", code="replica_failed")
        self._metrics.went_elsewhere("started anew")
        return False

    def _ended(self, embedding: Embedding) -> None:
        self.running.discard(embedding)
        seconds = self.now() - embedding.started_at
        asked, lane = embedding.asked, embedding.lane
        self._metrics.embedded(asked.model, embedding.outcome, seconds, embedding.tokens)
        if self._request_log:
            _log.info(
                "embedding",
                correlation_id=embedding.correlation_id,
                model=asked.model,
                replica=lane.target.replica if lane is not None else "",
                outcome=embedding.outcome,
                inputs=len(asked.inputs),
                prompt_tokens=embedding.tokens,
                seconds=round(seconds, 4),
                **({"error": embedding.last_error} if embedding.last_error else {}),
            )


def _stopping() -> Refused:
    return Refused(503, "The gateway is stopping; send the request again.", code="stopping")
