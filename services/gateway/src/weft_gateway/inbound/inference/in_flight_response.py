"""The one response of a request, whose choices each run by themselves."""

from typing import Protocol

from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.answers.choice_encoder import AnswerEnvelope, ChoiceEncoder, FinishReason, Usage
from weft_gateway.domain.refused import Refused
from weft_gateway.domain.routing.endpoint_state import EndpointState
from weft_gateway.domain.routing.routing_options import NO_OPTIONS
from weft_gateway.inbound.inference.response_writer import ResponseWriter, answer_refusal


class ResponseChoice(Protocol):
    """A choice as its response knows it: an InFlightChoice."""

    correlation_id: str
    encoder: ChoiceEncoder
    endpoint_state: EndpointState | None
    index: int
    replica: str
    scores: list[pb.TokenScore]
    texts: list[str]
    thoughts: list[str]
    usage: Usage

    @property
    def busy_since(self) -> float:
        """When it first had to wait for busy replicas; 0: never."""
        ...

    @busy_since.setter
    def busy_since(self, since: float) -> None: ...

    def headers(self) -> dict[str, str]:
        """Of a response that it begins."""
        ...

    def give_up(self, outcome: str) -> None:
        """Nobody wants it any more."""
        ...


class InFlightResponse:
    """Begins with the first choice's first byte, ends with the last one's end or with any one's refusal."""

    __slots__ = (
        "_envelope",
        "_left",
        "_n",
        "_parts",
        "_started",
        "_streams",
        "_writer",
        "choices",
        "log_attributes",
        "routing",
        "write",
    )

    def __init__(
        self, writer: ResponseWriter, envelope: AnswerEnvelope, *, streams: bool, choices: int, n: int
    ) -> None:
        """`n`: choices for each prompt."""
        self.write = writer.write
        self.choices: list[ResponseChoice] = []
        self.log_attributes: dict[str, str] = {}
        """What log and trace show of what the client says for its own books."""
        self.routing = NO_OPTIONS
        self._writer = writer
        self._envelope = envelope
        self._streams = streams
        self._left = choices
        self._n = n
        self._parts: list[bytes] = [b""] * choices
        self._started = False

    @property
    def replica(self) -> str:
        """The one that answers, of the first choice where there are several."""
        return self.choices[0].replica if self.choices else ""

    def begin(self, choice: ResponseChoice, data: bytes) -> None:
        """A choice's first bytes of a stream."""
        if self._started:
            self._writer.write(data)
        else:
            self._started = True
            self._writer.start_stream(choice.headers(), data)

    def complete(self, choice: ResponseChoice, finish: FinishReason) -> None:
        """A choice has come to its end. Those that waited for it wait for strangers from now on."""
        self._left -= 1
        if self._left:
            for other in self.choices:
                other.busy_since = 0.0
        if self._streams:
            data = choice.encoder.closing(finish)
            if self._left:
                self._writer.write(data)
            else:
                self._writer.end(data + self._envelope.ending(self._usage()))
                self._let_go()
            return
        if choice.thoughts:
            choice.encoder.thought("".join(choice.thoughts))
        self._parts[choice.index] = choice.encoder.whole("".join(choice.texts), choice.scores, finish)
        if not self._left:
            body = self._envelope.body(self._parts, self._usage())
            self._writer.answer(200, "application/json", body, choice.headers())
            self._let_go()

    def refuse(self, choice: ResponseChoice, refused: Refused) -> None:
        """One choice can't be had: so none is, and the client is told why."""
        if self._started:
            self._writer.end(self._envelope.broken(refused))
        else:
            answer_refusal(self._writer, refused, choice.correlation_id)
        self._give_up(choice, f"{refused.status}")

    def abandon(self) -> None:
        """The client is gone: cancel what runs at the engines, within a step."""
        self._give_up(None, "client_gone")

    def others_run(self, choice: ResponseChoice) -> bool:
        """Whether other choices of the same request hold a replica: then one waits for nobody but itself."""
        return len(self.choices) > 1 and any(
            other.endpoint_state is not None for other in self.choices if other is not choice
        )

    def _give_up(self, but: ResponseChoice | None, outcome: str) -> None:
        for choice in self.choices:
            if choice is not but:
                choice.give_up(outcome)
        self._let_go()

    def _let_go(self) -> None:
        """Choices and response know each other. Unless one forgets, a prompt of megabytes stays until the collector
        looks for such circles, and a gateway makes it look seldom."""
        self.choices = []

    def _usage(self) -> Usage:
        """A prompt counts once however many choices it has; all output counts."""
        if len(self.choices) == 1:
            return self.choices[0].usage
        firsts = [choice.usage for choice in self.choices[:: self._n]]
        output = sum(choice.usage.output for choice in self.choices)
        return Usage(sum(usage.prompt for usage in firsts), output, sum(usage.cached for usage in firsts))
