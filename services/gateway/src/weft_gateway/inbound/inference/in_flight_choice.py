"""One choice of an inference request, from its acceptance to its end: takes outputs, writes its part of the answer.

The hot path is `take`: one call per request and engine step, one write, no task, no queue, no object per token.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec
from weft_contracts.gen import session_pb2 as pb
from weft_dataplane.client_errors import SessionError
from weft_dataplane.session_client import SessionClient

from weft_gateway.domain.answers.choice_encoder import AnswerEnvelope, ChoiceEncoder, FinishReason, Usage
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.domain.prompts.comparison import PromptIds
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState, replica_headers
from weft_gateway.domain.submission import resumption, submission
from weft_gateway.inbound.inference.alias_routing import AliasWay
from weft_gateway.inbound.inference.choice_answer import ChoiceAnswer
from weft_gateway.inbound.inference.in_flight_response import InFlightResponse
from weft_gateway.inbound.inference.oldest_version import oldest_version

_encode = msgspec.json.Encoder().encode
_FINISH: dict[int, FinishReason] = {pb.FINISH_STOP: "stop", pb.FINISH_LENGTH: "length"}


class Owner(Protocol):
    """Who routes choices to endpoints and counts them; see RequestDispatcher."""

    def left(self, choice: "InFlightChoice", state: EndpointState) -> None:
        """The choice no longer runs at an endpoint."""
        ...

    def failed(self, choice: "InFlightChoice", output: pb.Output) -> None:
        """Its replica gave it up: route it again or refuse it."""
        ...

    def ended(self, choice: "InFlightChoice", outcome: str) -> None:
        """It is over, once."""
        ...

    def now(self) -> float:
        """Monotonic seconds."""
        ...


class InFlightChoice(ChoiceAnswer):
    """A choice, mostly the only one. It ends once: by its answer, a refusal, or its client's leaving."""

    __slots__ = (
        "_busy_since",
        "_number",
        "_owner",
        "_response",
        "_session",
        "correlation_id",
        "digest",
        "done",
        "endpoint_state",
        "index",
        "last_error",
        "prompt",
        "replica",
        "request",
        "resumed",
        "seen",
        "started_at",
        "tokens",
        "traceparent",
        "tried",
        "tries",
        "usage",
        "way",
    )

    def __init__(
        self,
        owner: Owner,
        request: InferenceRequest,
        encoder: ChoiceEncoder,
        response: InFlightResponse,
        correlation_id: str,
        traceparent: str,
    ) -> None:
        super().__init__(request, encoder, response, owner.now)
        self.way: AliasWay | None = None
        """Through the alias that the request named."""
        self._owner = owner
        self._response = response
        self._session: SessionClient | None = None
        self._number = 0
        self.request = request
        self.index = len(response.choices)
        response.choices.append(self)
        self.correlation_id = correlation_id
        self.traceparent = traceparent
        self.endpoint_state: EndpointState | None = None
        self.prompt: PromptIds | None = None
        """Its prompt as token ids; None: an engine makes them."""
        self.done = False
        self.tokens = 0
        """Output tokens that came for it so far; what comes of an engine that tells no ids counts as one."""
        self.seen = -1
        """Tokens at the last look of the dispatcher's watch for stalls; -1: it began since."""
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

    def submit(self, state: EndpointState, session: SessionClient, ids: Sequence[int] = ()) -> bool:
        """Send it to a replica; False when nothing was left to do. Raises SessionError.

        `ids`: of its prompt, where this replica is sent them instead of it.
        """
        if self.request.shaping and session.welcome.version < oldest_version(self.request):
            # it would pass over what it doesn't know, and the answer would be wrong without a word
            raise SessionError(
                f"replica {state.endpoint.replica} is of an older release, without {self.request.shaping}"
            )
        if self.ids:
            said = "".join(self.texts)
            submit = resumption(self.request, self.correlation_id, self.ids, said, self.traceparent, ids)
            if submit is None:
                self._finish("length")
                return False
        else:
            submit = submission(self.request, self.correlation_id, self.traceparent, ids)
        self._number = session.submit(submit, self.take_events if self.encoder.more_than_text else self.take)
        self._session = session
        self.resumed = len(self.ids)
        self.seen = -1
        self.endpoint_state = state
        state.in_flight += 1
        state.last_used = self._now()
        return True

    def take(self, output: pb.Output) -> None:
        """One step's output, from the session's frame reader."""
        if self.done:
            if output.finish:
                self._leave_endpoint()
            return
        if output.finish:
            self._end(output)
            return
        text = output.text
        self.tokens += len(output.token_ids) or 1
        if output.reasoning:
            self._think(output.reasoning)
        if not self._streams:
            if text:
                self.texts.append(text)
                if not self.first_at:
                    self.first_at = self._now()
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

    def take_events(self, output: pb.Output) -> None:
        """The same for a choice whose events are more than text."""
        if self.done or output.finish:
            self.take(output)
            return
        self.tokens += len(output.token_ids) or 1
        if output.reasoning:
            self._think(output.reasoning)
        if self.resumable:
            self.ids.extend(output.token_ids)
        if output.text or output.scores:
            self._say(output.text, output.scores)

    @property
    def log_attributes(self) -> dict[str, str]:
        """See InFlightResponse."""
        return self._response.log_attributes

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

    def go_to(self, request: InferenceRequest, envelope: AnswerEnvelope, encoder: ChoiceEncoder) -> None:
        """Begin anew with another model, as if nothing had been tried: it is the only choice, and nothing is out."""
        self.request, self.encoder, self.prompt = request, encoder, None
        self._before, self._after = encoder.before, encoder.after
        self._response.go_to(envelope)
        self.start_anew()
        self.ids.clear()
        self.resumable, self.resumed, self.digest, self.tries, self.first_at = request.resumable, 0, "", 0, 0.0

    def headers(self) -> dict[str, str]:
        """Which request this is, and who answers it where that was asked for."""
        headers = {"x-request-id": self.correlation_id}
        if self._response.routing.explain and self.endpoint_state is not None:
            headers |= replica_headers(self.endpoint_state, self._response.alias)
        return headers

    @property
    def only(self) -> str | None:
        """The replica that was chosen."""
        return self._response.routing.replica

    def _begin(self, data: bytes) -> None:
        self._response.begin(self, data)

    def _end(self, output: pb.Output) -> None:
        """The last output of this submit: the answer's end, or a reason to go elsewhere."""
        reason = _FINISH.get(output.finish)
        if reason is None:
            self._leave_endpoint()
            self._owner.failed(self, output)
            return
        text, usage = output.text, output.usage
        tokens = self.resumed + usage.output_tokens
        self.usage = Usage(usage.prompt_tokens, tokens, usage.cached_tokens)
        if output.reasoning:
            self._think(output.reasoning)
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
        if cancel and session is not None and self.endpoint_state is not None:
            session.cancel(self._number)  # the endpoint is left with the last output, which still comes
        else:
            self._leave_endpoint()
        self._owner.ended(self, outcome)

    def _leave_endpoint(self) -> None:
        state, self.endpoint_state, self._session = self.endpoint_state, None, None
        if state is not None:
            state.in_flight -= 1
            self._owner.left(self, state)
