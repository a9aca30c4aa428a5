"""`POST /v1/embeddings`: OpenAI's body to a checked request, and vectors to OpenAI's answer."""

import base64
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.refused import Refused

MAX_INPUTS = 2048
"""As OpenAI bounds a list."""
HIGHEST_ID = 2**32 - 1
Input = str | list[int]
Format = Literal["float", "base64"]


class EmbeddingBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body as OpenAI documents it. `user` is taken without effect: it speaks of the caller's books."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: str | None = None
    dimensions: int | None = None
    user: Any = None


@dataclass(frozen=True, slots=True)
class AskedEmbedding:
    """What is to be embedded, and how it is to be answered."""

    model: str
    inputs: tuple[Input, ...]
    format: Format
    dimensions: int | None


_decoder = msgspec.json.Decoder(EmbeddingBody)
_encode = msgspec.json.Encoder().encode


def check_embedding(body: bytes) -> AskedEmbedding:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    if found.dimensions is not None and found.dimensions < 1:
        what = f"`dimensions` is {found.dimensions}; it must be 1 or more."
        raise Refused(400, what, param="dimensions", code="out_of_range")
    return AskedEmbedding(found.model, _inputs(found.input), _format(found.encoding_format), found.dimensions)


def check_length(asked: AskedEmbedding, context_tokens: int) -> None:
    """Refuse token ids that are more than the model takes. Raises Refused."""
    for place, each in enumerate(asked.inputs):
        if not isinstance(each, str) and len(each) > context_tokens:
            raise Refused(
                400,
                f"`input[{place}]` has {len(each)} tokens; model {asked.model!r} takes at most {context_tokens}.",
                param="input",
                code="context_length_exceeded",
            )


def embedding_answer(asked: AskedEmbedding, vectors: Sequence[bytes], tokens: int) -> bytes:
    """The answer's body. `vectors` hold 32-bit floats, little-endian. Raises Refused for other `dimensions`."""
    made = len(vectors[0]) // 4
    if asked.dimensions not in (None, made):
        raise Refused(
            400,
            f"`dimensions` is {asked.dimensions}; model {asked.model!r} makes vectors of {made} numbers, "
            "and they can't be shortened.",
            param="dimensions",
            code="unsupported_parameter",
        )
    write = _base64 if asked.format == "base64" else _floats
    data = [{"object": "embedding", "index": index, "embedding": write(vector)} for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return _encode({"object": "list", "data": data, "model": asked.model, "usage": usage})


def _base64(vector: bytes) -> str:
    return base64.b64encode(vector).decode()


def _floats(vector: bytes) -> list[float]:
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()


def _format(given: str | None) -> Format:
    match given:
        case None | "float":
            return "float"
        case "base64":
            return "base64"
        case _:
            what = f"`encoding_format` is {given[:64]!r}; it must be float or base64."
            raise Refused(400, what, param="encoding_format", code="unsupported_parameter")


def _inputs(given: str | list[str | int | list[int]]) -> tuple[Input, ...]:
    """A text or token ids, or a list of either."""
    if isinstance(given, str):
        return (_filled("input", given),)
    if not given:
        raise _empty("input")
    ids = [each for each in given if isinstance(each, int)]
    if len(ids) == len(given):
        return (_ids("input", ids),)
    if ids or len({isinstance(each, str) for each in given}) > 1:
        what = "`input` mixes kinds; give texts, token ids, or lists of token ids."
        raise Refused(400, what, param="input", code="wrong_type")
    if len(given) > MAX_INPUTS:
        what = f"`input` has {len(given)} entries; at most {MAX_INPUTS} are taken at once."
        raise Refused(400, what, param="input", code="too_many")
    return tuple(
        [
            _filled(f"input[{place}]", each) if isinstance(each, str) else _ids(f"input[{place}]", each)
            for place, each in enumerate(given)
            if not isinstance(each, int)
        ]
    )


def _filled(at: str, text: str) -> str:
    if not text:
        raise _empty(at)
    return text


def _ids(at: str, ids: list[int]) -> list[int]:
    if not ids:
        raise _empty(at)
    for place, id in enumerate(ids):
        if not 0 <= id <= HIGHEST_ID:
            raise Refused(400, f"`{at}[{place}]` is {id}; a token id is 0 or more.", param="input", code="out_of_range")
    return ids


def _empty(at: str) -> Refused:
    return Refused(400, f"`{at}` is empty; give a text or token ids.", param="input", code="empty")
