"""The one response of a request, whose choices each run by themselves."""

from typing import TYPE_CHECKING

from weft_gateway.domain.answers.broken import broken
from weft_gateway.domain.answers.form import Envelope, FinishReason, Usage
from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused
from weft_gateway.inbound.inference.sink import Sink

if TYPE_CHECKING:
    from weft_gateway.inbound.inference.running import Running


class Response:
    """Begins with the first choice's first byte, ends with the last one's end or with any one's refusal."""

    __slots__ = ("_envelope", "_left", "_n", "_parts", "_sink", "_started", "_streams", "choices", "write")

    def __init__(self, sink: Sink, envelope: Envelope, *, streams: bool, choices: int, n: int) -> None:
        """`n`: choices for each prompt."""
        self.write = sink.write
        self.choices: list[Running] = []
        self._sink = sink
        self._envelope = envelope
        self._streams = streams
        self._left = choices
        self._n = n
        self._parts: list[bytes] = [b""] * choices
        self._started = False

    def begin(self, running: "Running", data: bytes) -> None:
        """A choice's first bytes of a stream."""
        if self._started:
            self._sink.write(data)
        else:
            self._started = True
            self._sink.start_stream(running.headers(), data)

    def complete(self, running: "Running", finish: FinishReason) -> None:
        """A choice has come to its end. Those that waited for it wait for strangers from now on."""
        self._left -= 1
        if self._left:
            for other in self.choices:
                other.busy_since = 0.0
        if self._streams:
            data = running.choice.closing(finish)
            if self._left:
                self._sink.write(data)
            else:
                self._sink.end(data + self._envelope.ending(self._usage()))
                self._let_go()
            return
        self._parts[running.index] = running.choice.whole("".join(running.texts), running.scores, finish)
        if not self._left:
            body = self._envelope.body(self._parts, self._usage())
            self._sink.answer(200, "application/json", body, running.headers())
            self._let_go()

    def refuse(self, running: "Running", refused: Refused) -> None:
        """One choice can't be had: so none is, and the client is told why."""
        if self._started:
            self._sink.end(broken(refused))
        else:
            headers = {"x-request-id": running.correlation_id, **refused.headers}
            self._sink.answer(refused.status, "application/json", openai_error(refused), headers)
        self._give_up(running, f"{refused.status}")

    def abandon(self) -> None:
        """The client is gone: cancel what runs at the engines, within a step."""
        self._give_up(None, "client_gone")

    def others_run(self, running: "Running") -> bool:
        """Whether other choices of the same request hold a replica: then one waits for nobody but itself."""
        return len(self.choices) > 1 and any(other.lane is not None for other in self.choices if other is not running)

    def _give_up(self, but: "Running | None", outcome: str) -> None:
        for running in self.choices:
            if running is not but:
                running.give_up(outcome)
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
