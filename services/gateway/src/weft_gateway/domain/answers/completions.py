"""OpenAI's text completion answers."""

from weft_gateway.domain.answers.choice_encoder import CompletionEnvelope, FinishReason, Scores, encode
from weft_gateway.domain.answers.logprobs import text_logprobs

COMPLETION = b"text_completion", b"text_completion"


class TextEncoder:
    """Templates of one choice. `echo`: what the answer begins with."""

    __slots__ = ("_choice", "_echo", "_index", "_tail", "after", "before")
    more_than_text = False

    def __init__(self, envelope: CompletionEnvelope, index: int, echo: str = "") -> None:
        self._index = index
        self._echo = echo
        self._choice = envelope.event_head + b'%d,"text":' % index
        self._tail = envelope.event_tail
        self.before = self._choice
        self.after = b',"logprobs":null,"finish_reason":null' + self._tail

    def opening(self) -> bytes:
        return self.before + encode(self._echo) + self.after if self._echo else b""

    def thought(self, text: str) -> bytes:
        return b""  # no request of this form asks for it

    def event(self, text: str, scores: Scores) -> bytes:
        return self.before + encode(text) + self.after

    def closing(self, finish: FinishReason) -> bytes:
        return self._choice + b'"","logprobs":null,"finish_reason":"%b"' % finish.encode() + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(self._echo + text, b"null", finish)

    def restart(self) -> None:
        pass

    def _whole(self, text: str, logprobs: bytes, finish: FinishReason) -> bytes:
        return b'{"index":%d,"text":%b,"logprobs":%b,"finish_reason":"%b"}' % (
            self._index,
            encode(text),
            logprobs,
            finish.encode(),
        )


class LogprobsTextEncoder(TextEncoder):
    """Text with log probabilities; `top`: of how many likeliest tokens."""

    __slots__ = ("_offset", "_top")
    more_than_text = True

    def __init__(self, envelope: CompletionEnvelope, index: int, top: int) -> None:
        super().__init__(envelope, index)
        self._top = top
        self._offset = 0

    def event(self, text: str, scores: Scores) -> bytes:
        made, self._offset = text_logprobs(scores, self._offset, self._top)
        return self.before + encode(text) + b',"logprobs":%b,"finish_reason":null' % made + self._tail

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        return self._whole(text, text_logprobs(scores, 0, self._top)[0], finish)

    def restart(self) -> None:
        self._offset = 0
