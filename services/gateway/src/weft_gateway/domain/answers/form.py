"""What every dialect gives: the pieces of an answer as bytes, with only the text encoded per token."""

from typing import Literal, NamedTuple, Protocol

FinishReason = Literal["stop", "length"]
DONE = b"data: [DONE]\n\n"


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


class Form(Protocol):
    """One request's templates."""

    before: bytes
    """A token's event up to its text, which follows as a JSON string."""
    after: bytes
    """The rest of a token's event."""

    def opening(self) -> bytes:
        """What a stream begins with; may be empty."""
        ...

    def closing(self, finish: FinishReason, usage: Usage) -> bytes:
        """How a stream ends, `[DONE]` included."""
        ...

    def whole(self, text: str, finish: FinishReason, usage: Usage) -> bytes:
        """The body of an answer that is not streamed."""
        ...
