"""One choice of an inference request, from its acceptance to its end: takes outputs, writes its part of the answer.

The hot path is `take`: one call per request and engine step, one write, no task, no queue, no object per token.
"""

from typing import Protocol

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import SessionError
from weft_dataplane.limits import SHAPING_VERSION
from weft_dataplane.session_client import SessionClient

from weft_gateway.domain.answers.form import Choice, FinishReason, Scores, Usage
from weft_gateway.domain.asked import Asked
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.lane import Lane
from weft_gateway.domain.submission import resumption, submission
from weft_gateway.inbound.inference.response import Response

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
    """A choice, mostly the only one. It ends once: by its answer, a refusal, or its client's leaving."""

    __slots__ = (
        "_after",
        "_before",
        "_busy_since",
        "_number",
        "_owner",
        "_response",
        "_session",
        "_streams",
        "_write",
        "asked",
        "choice",
        "correlation_id",
        "digest",
        "done",
        "first_at",
        "heard",
        "ids",
        "index",
        "lane",
        "last_error",
        "replica",
        "resumable",
        "resumed",
        "scores",
        "started",
        "started_at",
        "texts",
        "traceparent",
        "tried",
        "tries",
        "usage",
    )

    def __init__(
        self,
        owner: Owner,
        asked: Asked,
        choice: Choice,
        response: Response,
        correlation_id: str,
        traceparent: str,
    ) -> None:
        self._owner = owner
        self._response = response
        self._write = response.write
        self._streams = asked.stream
        self._before, self._after = choice.before, choice.after
        self._session: SessionClient | None = None
        self._number = 0
        self.asked = asked
        self.choice = choice
        self.index = len(response.choices)
        response.choices.append(self)
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
        self.scores: list[pb.TokenScore] = []
        self.resumable = asked.resumable
        """Whether another replica of the same revision would go on with the same text."""
        self.resumed = 0
        """Output tokens that earlier replicas made."""
        self.digest = ""
        """Of the revision that it ran on last: only an equal one can go on with it."""
        self.replica = ""
        """The one that it ran on last."""
        self.tried: set[str] = set()
        self.tries = 0
        self._busy_since = 0.0
        self.last_error = ""
        self.usage = Usage(0, 0)
        self.started_at = owner.now()
        self.first_at = 0.0

    def submit(self, lane: Lane, session: SessionClient) -> bool:
        """Send it to a replica; False when nothing was left to do. Raises SessionError."""
        if self.asked.shaping and session.welcome.version < SHAPING_VERSION:
            # it would pass over what it doesn't know, and the answer would be wrong without a word
            raise SessionError(f"replica {lane.target.replica} is of an older release, without {self.asked.shaping}")
        if self.ids:
            submit = resumption(self.asked, self.correlation_id, self.ids, "".join(self.texts), self.traceparent)
            if submit is None:
                self._finish("length")
                return False
        else:
            submit = submission(self.asked, self.correlation_id, self.traceparent)
        self._number = session.submit(submit, self.take_crafted if self.choice.crafted else self.take)
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

    def take_crafted(self, output: pb.Output) -> None:
        """The same for a choice whose events are more than text."""
        if self.done or output.finish:
            self.take(output)
            return
        self.heard = True
        if self.resumable:
            self.ids.extend(output.token_ids)
        if output.text or output.scores:
            self._say(output.text, output.scores)

    @property
    def busy_since(self) -> float:
        """When it first had to wait for busy replicas; 0: never, or for none but the request's own choices."""
        return 0.0 if self._response.others_run(self) else self._busy_since

    @busy_since.setter
    def busy_since(self, since: float) -> None:
        self._busy_since = since

    def refuse(self, refused: Refused) -> None:
        """End the request with an error: as a response before the first byte, as an event after it."""
        if self.done:
            return
        self.done = True
        self._response.refuse(self, refused)
        self._over(f"{refused.status}")

    def give_up(self, outcome: str) -> None:
        """Nobody wants it any more: cancel it at the engine, within a step."""
        if not self.done:
            self._over(outcome)

    def start_anew(self) -> None:
        """Forget what was said: another replica begins from the prompt."""
        self.texts.clear()
        self.scores.clear()
        self.choice.restart()

    def headers(self) -> dict[str, str]:
        """Which request this is, and who answers it."""
        headers = {"x-request-id": self.correlation_id}
        if self.lane is not None:
            headers["x-weft-replica"] = self.lane.target.replica
            headers["x-weft-run-event"] = self.lane.target.event_id
        return headers

    def _start(self, first: bytes) -> None:
        self.started = True
        self.first_at = self._owner.now()
        self._response.begin(self, self.choice.opening() + first)

    def _say(self, text: str, scores: Scores) -> None:
        """Keep or write what a step brought."""
        if not self._streams or self.resumable:
            self.texts.append(text)
        if not self._streams:
            self.scores.extend(scores)
            self.first_at = self.first_at or self._owner.now()
        elif event := self.choice.event(text, scores):
            if self.started:
                self._write(event)
            else:
                self._start(event)

    def _end(self, output: pb.Output) -> None:
        """The last output of this submit: the answer's end, or a reason to go elsewhere."""
        reason = _FINISH.get(output.finish)
        if reason is None:
            self._leave_lane()
            self._owner.failed(self, output)
            return
        text, usage = output.text, output.usage
        tokens = self.resumed + usage.output_tokens
        self.usage = Usage(usage.prompt_tokens, tokens, usage.cached_tokens)
        if text or output.scores:
            self._say(text, output.scores)
        self._finish(reason)

    def _finish(self, reason: FinishReason) -> None:
        if self._streams and not self.started:
            self._start(b"")
        self._response.complete(self, reason)
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
