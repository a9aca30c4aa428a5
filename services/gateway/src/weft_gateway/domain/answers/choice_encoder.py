"""What encodes the choices of an answer, in any of OpenAI's forms: only the text is encoded for each token."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec
from weft_contracts.gen import session_pb2 as pb

from weft_gateway.domain.problems import openai_error
from weft_gateway.domain.refused import Refused

FinishReason = Literal["stop", "length", "tool_calls"]
Scores = Sequence[pb.TokenScore]
DONE = b"data: [DONE]\n\n"
encode = msgspec.json.Encoder().encode


class Usage(NamedTuple):
    """Tokens of one request."""

    prompt: int
    output: int
    cached: int = 0

    def json(self) -> bytes:
        """OpenAI's usage object."""
        return (
            b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
            b'"prompt_tokens_details":{"cached_tokens":%d}}'
        ) % (self.prompt, self.output, self.prompt + self.output, self.cached)


class AnswerEnvelope(Protocol):
    """What stands around the choices of an answer, in any dialect."""

    def ending(self, usage: Usage) -> bytes:
        """What follows the last choice's end in a stream."""
        ...

    def body(self, choices: Sequence[bytes], usage: Usage) -> bytes:
        """An answer that is not streamed."""
        ...

    def broken(self, refused: Refused) -> bytes:
        """How a stream ends that can't go on: an explicit error, never a silent end."""
        ...


class CompletionEnvelope:
    """Around the choices of chat and text completions."""

    __slots__ = ("_head", "_object", "_whole_object", "_with_usage", "event_head", "event_tail", "id")

    def __init__(
        self,
        objects: tuple[bytes, bytes],
        id: str,
        created: int,
        model: str,
        digest: str,
        include_usage: bool,
        service_tier: str = "",
    ) -> None:
        """`objects`: what a stream's events call themselves, and what a whole answer does."""
        self.id = id
        self._object, self._whole_object = objects
        self._head = b'"id":"%b","created":%d,"model":%b,"system_fingerprint":"%b",' % (
            id.encode(),
            created,
            encode(model),
            digest.encode(),
        )
        if service_tier:
            self._head += b'"service_tier":%b,' % encode(service_tier)
        self._with_usage = include_usage
        self.event_head = b'data: {"object":"%b",%b"choices":[{"index":' % (self._object, self._head)
        self.event_tail = b"}],%b}\n\n" % b'"usage":null' if include_usage else b"}]}\n\n"

    def ending(self, usage: Usage) -> bytes:
        """What follows the last choice's end in a stream, `[DONE]` included."""
        if not self._with_usage:
            return DONE
        return b'data: {"object":"%b",%b"choices":[],"usage":%b}\n\n' % (self._object, self._head, usage.json()) + DONE

    def broken(self, refused: Refused) -> bytes:
        """OpenAI's error object as an event, then `[DONE]`."""
        return b"data: " + openai_error(refused) + b"\n\n" + DONE

    def body(self, choices: Sequence[bytes], usage: Usage) -> bytes:
        """An answer that is not streamed."""
        return b'{"object":"%b",%b"choices":[%b],"usage":%b}' % (
            self._whole_object,
            self._head,
            b",".join(choices),
            usage.json(),
        )


class ChoiceEncoder(Protocol):
    """Makes the bytes of one choice of an answer."""

    more_than_text: bool
    """Whether an event is more than `before`, the text as a JSON string, and `after`."""
    before: bytes
    """A token's event up to its text, which follows as a JSON string."""
    after: bytes
    """The rest of a token's event."""

    def opening(self) -> bytes:
        """What the choice's stream begins with; may be empty. Asked for after its first event was made."""
        ...

    def thought(self, text: str) -> bytes:
        """What the model thought, as an event; empty where this form of answers has no word for it.

        Of an answer that is not streamed it is told before `whole`, at once.
        """
        ...

    def event(self, text: str, scores: Scores) -> bytes:
        """A step's event; empty where nothing can be said yet."""
        ...

    def closing(self, finish: FinishReason) -> bytes:
        """How the choice's stream ends."""
        ...

    def whole(self, text: str, scores: Scores, finish: FinishReason) -> bytes:
        """The choice of an answer that is not streamed."""
        ...

    def restart(self) -> None:
        """Forget what was said: another replica begins anew."""
        ...
