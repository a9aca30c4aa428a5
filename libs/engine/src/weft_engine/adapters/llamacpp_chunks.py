"""Reads llama.cpp's streamed chunks. The common one, a token, is read without parsing its JSON."""

import json
import json.decoder
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from weft_contracts.gen import session_pb2 as pb

HEAD: Final = '{"choices":[{"text":"'
GOES_ON: Final = ',"index":0,"logprobs":null,"finish_reason":null}]'
TAIL: Final = re.compile(
    r'"tokens":\[(\d+)\],"stop":false,"id_slot":-?\d+,"tokens_predicted":(\d+),"tokens_evaluated":(\d+)\}\}\Z'
)
TAIL_LENGTH: Final = 160

# the scanner that the json module is built on: from after a string's opening quote to its text and its end
scan_string: Final = cast(Callable[[str, int], tuple[str, int]], vars(json.decoder)["scanstring"])


class TokenChunk(NamedTuple):
    """Text and the last of the ids that make it; more than one id when `made` moved by more than one."""

    text: str
    token_id: int
    made: int
    """tokens made so far"""
    prompt_tokens: int
    score: pb.TokenScore | None = None
    """of that last id, where it was asked for"""


class ProgressChunk(NamedTuple):
    """How far the prompt is."""

    prompt_tokens: int
    cached_tokens: int


class FinalChunk(NamedTuple):
    """The end that llama.cpp came to by itself."""

    finish: pb.Finish.ValueType
    prompt_tokens: int
    made: int
    cached_tokens: int


class ErrorChunk(NamedTuple):
    """Why llama.cpp gave up."""

    fault: pb.Fault.ValueType
    sentence: str


Chunk = TokenChunk | ProgressChunk | FinalChunk | ErrorChunk


def read_chunk(chunk: str) -> Chunk:
    """What one chunk says. Raises ValueError for what llama.cpp was never seen to send."""
    if chunk.startswith(HEAD):
        text, end = scan_string(chunk, len(HEAD))
        if chunk.startswith(GOES_ON, end):
            tail = TAIL.search(chunk, max(end, len(chunk) - TAIL_LENGTH))
            if tail is not None:
                token_id, made, prompt_tokens = tail.groups()
                return TokenChunk(text, int(token_id), int(made), int(prompt_tokens))
    return read_rare_chunk(json.loads(chunk))


def read_rare_chunk(chunk: Any) -> Chunk:
    """The same for a parsed chunk."""
    if "error" in chunk:
        return read_error(chunk["error"])
    try:
        if "prompt_progress" in chunk:
            progress = chunk["prompt_progress"]
            return ProgressChunk(progress["total"], progress["cache"])
        choice = chunk["choices"][0]
        if choice["finish_reason"] is None:
            more = chunk["__verbose"]
            scored = choice["logprobs"]
            score = None if scored is None else read_score(scored["content"][-1])
            return TokenChunk(
                choice["text"], more["tokens"][-1], more["tokens_predicted"], more["tokens_evaluated"], score
            )
        usage = chunk["usage"]
        return FinalChunk(
            pb.FINISH_STOP if choice["finish_reason"] == "stop" else pb.FINISH_LENGTH,
            usage["prompt_tokens"],
            usage["completion_tokens"],
            usage["prompt_tokens_details"]["cached_tokens"],
        )
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"llama.cpp sent a chunk of an unknown shape: {error!r}") from None


def read_score(entry: Any) -> pb.TokenScore:
    """An entry of llama.cpp's log probabilities."""
    score = pb.TokenScore(id=entry["id"], token=bytes(entry["bytes"]), logprob=entry["logprob"])
    for other in entry.get("top_logprobs", ()):
        score.likeliest.add(id=other["id"], token=bytes(other["bytes"]), logprob=other["logprob"])
    return score


def read_error(error: Any) -> ErrorChunk:
    """llama.cpp's error object as a fault and a sentence."""
    message = str(error.get("message", error))
    match error.get("type"):
        case "exceed_context_size_error":
            return ErrorChunk(
                pb.FAULT_CONTEXT_EXCEEDED,
                f"the prompt has {error.get('n_prompt_tokens')} tokens, "
                f"the context holds {error.get('n_ctx')} with the answer",
            )
        case "invalid_request_error":
            return ErrorChunk(pb.FAULT_BAD_REQUEST, f"llama.cpp refused the request: {message}")
        case _:
            return ErrorChunk(pb.FAULT_ENGINE, f"llama.cpp failed: {message}")
