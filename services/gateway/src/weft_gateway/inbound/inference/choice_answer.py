"""What one choice has answered so far: kept for an answer in one piece, or written to its client as it comes."""

from collections.abc import Callable

from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.answers.choice_encoder import ChoiceEncoder, Scores
from weft_gateway.domain.inference_request import InferenceRequest
from weft_gateway.inbound.inference.in_flight_response import InFlightResponse


class ChoiceAnswer:
    """The part of an InFlightChoice that knows of text, and of no replica."""

    __slots__ = (
        "_after",
        "_before",
        "_now",
        "_streams",
        "_write",
        "encoder",
        "first_at",
        "ids",
        "resumable",
        "scores",
        "started",
        "texts",
        "thoughts",
    )

    def __init__(
        self,
        request: InferenceRequest,
        encoder: ChoiceEncoder,
        response: InFlightResponse,
        now: Callable[[], float],
    ) -> None:
        """`now`: monotonic seconds."""
        self._write = response.write
        self._streams = request.stream
        self._before, self._after = encoder.before, encoder.after
        self._now = now
        self.encoder = encoder
        self.started = False
        """Its first byte is out."""
        self.first_at = 0.0
        """When its first text came; 0: none came."""
        self.ids: list[int] = []
        self.texts: list[str] = []
        self.thoughts: list[str] = []
        """What the model thought, of an answer that is not streamed."""
        self.scores: list[pb.TokenScore] = []
        self.resumable = request.resumable
        """Whether another replica of the same revision would go on with the same text."""

    def start_anew(self) -> None:
        """Forget what was said: another replica begins from the prompt."""
        self.texts.clear()
        self.thoughts.clear()
        self.scores.clear()
        self.encoder.restart()

    def _begin(self, data: bytes) -> None:
        """Write the first bytes of a stream."""
        raise NotImplementedError

    def _start(self, first: bytes) -> None:
        self.started = True
        self.first_at = self._now()
        self._begin(self.encoder.opening() + first)

    def _say(self, text: str, scores: Scores) -> None:
        """Keep or write what a step brought."""
        if not self._streams or self.resumable:
            self.texts.append(text)
        if not self._streams:
            self.scores.extend(scores)
            self.first_at = self.first_at or self._now()
        else:
            self._send(self.encoder.event(text, scores))

    def _think(self, thought: str) -> None:
        """Keep or write what the model thought."""
        if not self._streams:
            self.thoughts.append(thought)
            self.first_at = self.first_at or self._now()
        else:
            self._send(self.encoder.thought(thought))

    def _send(self, event: bytes) -> None:
        if event and self.started:
            self._write(event)
        elif event:
            self._start(event)
