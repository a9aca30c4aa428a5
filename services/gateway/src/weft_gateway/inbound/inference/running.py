"""One inference request from its acceptance to its end: takes the engine's outputs, writes the answer.

The hot path is `take`: one call per request and engine step, one write, no task, no queue, no object per token.
"""

from typing import Protocol

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.session_client import SessionClient

from weft_gateway.domain.answers.broken import broken
from weft_gateway.domain.answers.form import FinishReason, Form, Usage
from weft_gateway.domain.asked import Asked
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.submission import resumption, submission
from weft_gateway.inbound.inference.sink import Sink

_encode = msgspec.json.Encoder().encode
_FINISH: dict[int, FinishReason] = {pb.FINISH_STOP: "stop", pb.FINISH_LENGTH: "length"}


class Owner(Protocol):
    """Who places requests and counts them."""

    def left(self, running: "Running", lane: Lane) -> None:
        """The request no longer runs on a lane."""
        ...

    def failed(self, running: "Running", output: pb.Output) -> None:
        """Its replica gave it up: place it again or refuse it."""
        ...

    def ended(self, running: "Running", outcome: str) -> None:
        """It is over, once."""
        ...

    def now(self) -> float:
        """Monotonic seconds."""
        ...


class Running:
    """A request. It ends once: by an answer, a refusal, or its client's leaving."""

    __slots__ = (
        "_after",
        "_before",
        "_number",
        "_owner",
        "_session",
        "_sink",
        "_streams",
        "_write",
        "asked",
        "busy_since",
        "correlation_id",
        "digest",
        "done",
        "first_at",
        "form",
        "heard",
        "ids",
        "lane",
        "last_error",
        "replica",
        "resumable",
        "resumed",
        "started",
        "started_at",
        "texts",
        "traceparent",
        "tried",
        "tries",
        "usage",
    )

    def __init__(
        self, owner: Owner, asked: Asked, form: Form, sink: Sink, correlation_id: str, traceparent: str
    ) -> None:
        self._owner = owner
        self._sink = sink
        self._write = sink.write
        self._streams = asked.stream
        self._before, self._after = form.before, form.after
        self._session: SessionClient | None = None
        self._number = 0
        self.asked = asked
        self.form = form
        self.correlation_id = correlation_id
        self.traceparent = traceparent
        self.lane: Lane | None = None
        self.started = False
        """Its first byte is out."""
        self.done = False
        self.heard = True
        """Whether an output came since the last look; see the desk's watch for stalls."""
        self.ids: list[int] = []
        self.texts: list[str] = []
        self.resumable = asked.greedy
        """Whether another replica of the same revision would go on with the same text."""
        self.resumed = 0
        """Output tokens that earlier replicas made."""
        self.digest = ""
        """Of the revision that it ran on last: only an equal one can go on with it."""
        self.replica = ""
        """The one that it ran on last."""
        self.tried: set[str] = set()
        self.tries = 0
        self.busy_since = 0.0
        """When it first had to wait for busy replicas; 0: never."""
        self.last_error = ""
        self.usage = Usage(0, 0)
        self.started_at = owner.now()
        self.first_at = 0.0

    def submit(self, lane: Lane, session: SessionClient) -> bool:
        """Send it to a replica; False when nothing was left to do. Raises SessionError."""
        if self.ids:
            submit = resumption(self.asked, self.correlation_id, self.ids, "".join(self.texts), self.traceparent)
            if submit is None:
                self._finish("length", self.usage)
                return False
        else:
            submit = submission(self.asked, self.correlation_id, self.traceparent)
        self._number = session.submit(submit, self.take)
        self._session = session
        self.resumed = len(self.ids)
        self.heard = True
        self.lane = lane
        lane.in_flight += 1
        lane.last_used = self._owner.now()
        return True

    def take(self, output: pb.Output) -> None:
        """One step's output, from the session's frame reader."""
        if self.done:
            if output.finish:
                self._leave_lane()
            return
        if output.finish:
            self._end(output)
            return
        text = output.text
        self.heard = True
        if not self._streams:
            if text:
                self.texts.append(text)
                if not self.first_at:
                    self.first_at = self._owner.now()
            if self.resumable:
                self.ids.extend(output.token_ids)
            return
        if self.resumable:
            self.texts.append(text)
            self.ids.extend(output.token_ids)
        if not text:
            return
        if self.started:
            self._write(self._before + _encode(text) + self._after)
        else:
            self._start(self._before + _encode(text) + self._after)

    def refuse(self, refused: Refused) -> None:
        """End it with an error: as a response before the first byte, as an event after it."""
        if self.done:
            return
        if self.started:
            self._sink.end(broken(refused))
        else:
            headers = {"x-request-id": self.correlation_id, **refused.headers}
            self._sink.answer(refused.status, "application/json", openai_error(refused), headers)
        self._over(f"{refused.status}")

    def abandon(self) -> None:
        """Its client is gone: cancel it at the engine, within a step."""
        if self.done:
            return
        self._over("client_gone")

    def _start(self, first: bytes) -> None:
        self.started = True
        self.first_at = self._owner.now()
        self._sink.start_stream(self._headers(), self.form.opening() + first)

    def _headers(self) -> dict[str, str]:
        headers = {"x-request-id": self.correlation_id}
        if self.lane is not None:
            headers["x-weft-replica"] = self.lane.target.replica
            headers["x-weft-run-event"] = self.lane.target.event_id
        return headers

    def _end(self, output: pb.Output) -> None:
        """The last output of this submit: the answer's end, or a reason to go elsewhere."""
        reason = _FINISH.get(output.finish)
        if reason is None:
            self._leave_lane()
            self._owner.failed(self, output)
            return
        text, usage = output.text, output.usage
        if text and (not self._streams or self.resumable):
            self.texts.append(text)
        tokens = self.resumed + usage.output_tokens
        self.usage = Usage(usage.prompt_tokens, tokens, usage.cached_tokens)
        if text and self._streams:
            event = self._before + _encode(text) + self._after
            if self.started:
                self._write(event)
            else:
                self._start(event)
        self._finish(reason, self.usage)

    def _finish(self, reason: FinishReason, usage: Usage) -> None:
        if not self._streams:
            body = self.form.whole("".join(self.texts), reason, usage)
            self._sink.answer(200, "application/json", body, self._headers())
        else:
            if not self.started:
                self._start(b"")
            self._sink.end(self.form.closing(reason, usage))
        self._over("ok", cancel=False)

    def _over(self, outcome: str, *, cancel: bool = True) -> None:
        self.done = True
        session = self._session
        if cancel and session is not None and self.lane is not None:
            session.cancel(self._number)  # the lane is left with the last output, which still comes
        else:
            self._leave_lane()
        self._owner.ended(self, outcome)

    def _leave_lane(self) -> None:
        lane, self.lane, self._session = self.lane, None, None
        if lane is not None:
            lane.in_flight -= 1
            self._owner.left(self, lane)
