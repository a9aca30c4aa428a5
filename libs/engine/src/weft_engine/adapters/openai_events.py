"""What an OpenAI server says, read strictly: events of a stream, chunks, whole answers. Nothing grows without bound."""

from typing import Any, Final, TypeVar

import msgspec

from weft_engine.adapters.called_functions import Call, Unreadable

MAX_LINE_BYTES: Final = 512 * 1024
"""Of one event: a token with its log probabilities takes some kilobytes, a whole call of a tool more."""
_MAX_COUNT: Final = 2**31 - 1
ReadT = TypeVar("ReadT")


class Message(msgspec.Struct):
    """A whole message, or what a chunk adds to it."""

    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    """the same by another name"""
    tool_calls: list[Call] | None = None


class Alternative(msgspec.Struct):
    token: str
    logprob: float
    id: int | None = None
    bytes: list[int] | None = None


class Scored(Alternative):
    top_logprobs: list[Alternative] | None = None


class Logprobs(msgspec.Struct):
    """Of a chat, `content`; of a text completion mostly the others, in step."""

    content: list[Scored] | None = None
    tokens: list[str] | None = None
    token_logprobs: list[float | None] | None = None
    top_logprobs: list[dict[str, float] | None] | None = None


class Choice(msgspec.Struct):
    delta: Message | None = None
    message: Message | None = None
    text: str | None = None
    logprobs: Logprobs | None = None
    finish_reason: str | None = None


class PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None


class Chunk(msgspec.Struct):
    """One event of a stream, or a whole answer."""

    choices: list[Choice] | None = None
    usage: Usage | None = None
    error: Any = None


class Listed(msgspec.Struct):
    id: str
    owned_by: str | None = None
    aliases: list[str] | None = None


class ModelList(msgspec.Struct):
    data: list[Listed]


class Vector(msgspec.Struct):
    embedding: list[float] | str
    index: int


class Vectors(msgspec.Struct):
    data: list[Vector]
    usage: Usage | None = None


class Rank(msgspec.Struct):
    index: int
    relevance_score: float


class Ranks(msgspec.Struct):
    results: list[Rank]
    usage: Usage | None = None


_chunk = msgspec.json.Decoder(Chunk)
_list = msgspec.json.Decoder(ModelList)
_vectors = msgspec.json.Decoder(Vectors)
_ranks = msgspec.json.Decoder(Ranks)


def read_chunk(data: bytes | bytearray) -> Chunk:
    """One event's JSON, or a whole answer's. Raises Unreadable."""
    return _read(_chunk, data)


def read_models(data: bytes | bytearray) -> ModelList:
    """The answer to GET /models. Raises Unreadable."""
    return _read(_list, data)


def read_vectors(data: bytes | bytearray) -> Vectors:
    """The answer to POST /embeddings. Raises Unreadable."""
    return _read(_vectors, data)


def read_ranks(data: bytes | bytearray) -> Ranks:
    """The answer to POST /rerank. Raises Unreadable."""
    return _read(_ranks, data)


def counted(count: int | None) -> int:
    """A number of tokens as the protocol can tell it, whatever a server says."""
    return min(max(count or 0, 0), _MAX_COUNT)


def _read(decoder: "msgspec.json.Decoder[ReadT]", data: bytes | bytearray) -> ReadT:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"its answer can't be read: {str(error)[:200]}") from None


class Events:
    """A stream's bytes, taken apart into the data of its events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The data that is complete now, event by event. Raises Unreadable for a line beyond the bound."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise Unreadable(f"an event of its answer has more than {MAX_LINE_BYTES} bytes")
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]

    def rest(self) -> list[bytes]:
        """What has no end of line, at the end of the stream."""
        return self.feed(b"\n")
