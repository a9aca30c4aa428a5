"""An OpenAI server's errors as faults of the session protocol: whose fault it is, and in the server's own words."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

import msgspec
from weft_contracts.gen import session_pb2 as pb

MOST_WORDS: Final = 400
"""Characters of a server's sentence that are passed on."""
MOST_WAIT_S: Final = 60.0
"""For how long a server may ask to be left alone."""

_BUSY: Final = frozenset((408, 425, 429, 529))
_BAD_REQUEST: Final = frozenset((400, 405, 413, 415, 422))
_TOO_LONG: Final = frozenset(("context_length_exceeded", "exceed_context_size_error"))
_SAYS_TOO_LONG: Final = ("context length", "context window", "too large to process")
"""Of servers that have no code for it: vLLM, SGLang and Ollama; llama.cpp of a text to embed."""
_FIELDS: Final[Mapping[str, str]] = {
    "messages": "prompt",
    "prompt": "prompt",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "stop": "stop",
    "response_format": "constraint",
    "tools": "constraint",
    "tool_choice": "constraint",
    "logit_bias": "bias",
    "logprobs": "scores",
    "top_logprobs": "scores",
    "ignore_eos": "ignore_end",
} | {name: name for name in ("temperature", "top_p", "top_k", "min_p", "seed", "presence_penalty", "frequency_penalty")}


class ServerError(NamedTuple):
    """What a server's error means."""

    fault: pb.Fault.ValueType
    sentence: str
    field: str = ""
    doubt: bool = False
    """It may be the server's state, so its health is worth a look."""


class Words(NamedTuple):
    """What stands in an error's body."""

    message: str
    kind: str = ""
    param: str = ""
    status: int = 0
    prompt_tokens: int | None = None
    context: int | None = None


def error_of(server: str, status: int, body: bytes | bytearray) -> ServerError:
    """The error of an answer that is none of success."""
    if 300 <= status < 400:
        said = f"the server at {server} answers with a redirect ({status}), which is not followed"
        return ServerError(pb.FAULT_ENGINE, said, doubt=True)
    return meant(server, status, words_of(body))


def meant(server: str, status: int, words: Words) -> ServerError:
    """What status and words mean together."""
    if words.kind in _TOO_LONG:
        if words.prompt_tokens is not None and words.context is not None:
            sentence = f"the prompt has {words.prompt_tokens} tokens, the context holds {words.context} with the answer"
        else:
            sentence = f"the server at {server} says: {words.message}"
        return ServerError(pb.FAULT_CONTEXT_EXCEEDED, sentence, "prompt")
    said = f"the server at {server} says{f' ({status})' if status else ''}: {words.message or 'nothing'}"
    if status in _BUSY:
        return ServerError(pb.FAULT_BUSY, said)
    if any(phrase in words.message for phrase in _SAYS_TOO_LONG):
        return ServerError(pb.FAULT_CONTEXT_EXCEEDED, said, "prompt")
    if status in _BAD_REQUEST:
        return ServerError(pb.FAULT_BAD_REQUEST, said, _FIELDS.get(words.param.partition(".")[0].partition("[")[0], ""))
    return ServerError(pb.FAULT_ENGINE, said, "", doubt=True)


def words_of(body: bytes | bytearray) -> Words:
    """The words of an error's body, in any of the forms in which servers say it."""
    try:
        said: object = msgspec.json.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return Words(_plain(bytes(body[: 4 * MOST_WORDS]).decode("utf-8", "replace")))
    return words_in(said)


def words_in(said: object) -> Words:
    """The same of what was read already."""
    if not isinstance(said, dict):
        return Words(_plain(said if isinstance(said, str) else ""))
    whole = cast(dict[str, Any], said)
    inner: Any = whole.get("error", whole)
    if isinstance(inner, str):
        return Words(_plain(inner))
    if not isinstance(inner, dict):
        return Words("")
    error = cast(dict[str, Any], inner)
    code, kind = error.get("code"), error.get("type")
    context_kind = next((each for each in (code, kind) if isinstance(each, str) and each in _TOO_LONG), "")
    status = code if isinstance(code, int) and 100 <= code < 600 else 0
    return Words(
        _plain(_message(error)),
        context_kind,
        _text(error.get("param")),
        status,
        _count(error.get("n_prompt_tokens")),
        _count(error.get("n_ctx")),
    )


def wait_s(headers: Mapping[str, str]) -> float:
    """For how long a busy server asks to be left alone; within a bound."""
    try:
        return min(max(float(headers.get("retry-after", "")), 0.0), MOST_WAIT_S)
    except ValueError:
        return 0.0


def _message(error: Mapping[str, Any]) -> str:
    """Its sentence; of a list of faults the sentences alone, as the rest may repeat the request."""
    for name in ("message", "detail", "msg"):
        found: Any = error.get(name)
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            return "; ".join(map(_fault, cast(list[object], found)[:4]))
    return ""


def _fault(each: object) -> str:
    if not isinstance(each, dict):
        return ""
    fault = cast(dict[str, Any], each)
    at: Any = fault.get("loc")
    where = ".".join(str(part) for part in cast(list[Any], at)[:6]) if isinstance(at, list) else ""
    return f"{where}: {_text(fault.get('msg'))}" if where else _text(fault.get("msg"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain(text: str) -> str:
    """In one line of printable characters, cut to the bound."""
    words = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: 4 * MOST_WORDS]).split())
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 1]}…"
