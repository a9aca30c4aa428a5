"""`POST /v1/embeddings`: OpenAI's body to a checked request, and vectors to OpenAI's answer."""

import base64
import sys
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from weft_gateway.domain.attribution import Attribution, attribution_of
from weft_gateway.domain.openai.decoding import decode
from weft_gateway.domain.openai.text_or_tokens import checked_ids, checked_text, empty
from weft_gateway.domain.refused import Refused

MAX_INPUTS = 2048
"""As OpenAI bounds a list."""
PIECE_BYTES = 64 * 1024
"""Of vectors that are written at once."""
Input = str | list[int]
Format = Literal["float", "base64"]


class EmbeddingBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body as OpenAI documents it."""

    model: str
    input: str | list[str | int | list[int]]
    encoding_format: str | None = None
    dimensions: int | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingRequest:
    """What is to be embedded, and how it is to be answered."""

    model: str
    inputs: tuple[Input, ...]
    format: Format
    dimensions: int | None
    attribution: Attribution


_decoder = msgspec.json.Decoder(EmbeddingBody)
_encode = msgspec.json.Encoder().encode


def check_embedding(body: bytes) -> EmbeddingRequest:
    """The request in a body. Raises Refused."""
    found = decode(_decoder, body)
    if found.dimensions is not None and found.dimensions < 1:
        what = f"`dimensions` is {found.dimensions}; it must be 1 or more."
        raise Refused(400, what, param="dimensions", code="out_of_range")
    inputs, format = _inputs(found.input), _format(found.encoding_format)
    return EmbeddingRequest(found.model, inputs, format, found.dimensions, attribution_of(user=found.user))


def check_length(request: EmbeddingRequest, context_tokens: int) -> None:
    """Refuse token ids that are more than the model takes. Raises Refused."""
    for place, each in enumerate(request.inputs):
        if not isinstance(each, str) and len(each) > context_tokens:
            raise Refused(
                400,
                f"`input[{place}]` has {len(each)} tokens; model {request.model!r} takes at most {context_tokens}.",
                param="input",
                code="context_length_exceeded",
            )


def embedding_answer(request: EmbeddingRequest, vectors: Sequence[bytes], tokens: int) -> Iterator[bytes]:
    """The answer's body in pieces, of some milliseconds of work each: it may be 100 MB.

    `vectors` hold 32-bit floats, little-endian. Raises Refused for other `dimensions`, before the first piece.
    """
    made = len(vectors[0]) // 4
    if request.dimensions not in (None, made):
        raise Refused(
            400,
            f"`dimensions` is {request.dimensions}; model {request.model!r} makes vectors of {made} numbers, "
            "and they can't be shortened.",
            param="dimensions",
            code="unsupported_parameter",
        )
    return _pieces(request, vectors, tokens)


def _pieces(request: EmbeddingRequest, vectors: Sequence[bytes], tokens: int) -> Iterator[bytes]:
    write = _base64 if request.format == "base64" else _floats
    at_once = max(1, PIECE_BYTES // len(vectors[0]))
    for start in range(0, len(vectors), at_once):
        rows = [
            {"object": "embedding", "index": index, "embedding": write(vector)}
            for index, vector in enumerate(vectors[start : start + at_once], start)
        ]
        yield (b"," if start else b'{"object":"list","data":[') + _encode(rows)[1:-1]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    yield b'],"model":%b,"usage":%b}' % (_encode(request.model), _encode(usage))


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
        return (checked_text("input", "input", given),)
    if not given:
        raise empty("input", "input")
    ids = [each for each in given if isinstance(each, int)]
    if len(ids) == len(given):
        return (checked_ids("input", "input", ids),)
    if len(given) > MAX_INPUTS:
        what = f"`input` has {len(given)} entries; at most {MAX_INPUTS} are taken at once."
        raise Refused(400, what, param="input", code="too_many")
    if ids or len({isinstance(each, str) for each in given}) > 1:
        what = "`input` mixes kinds; give texts, token ids, or lists of token ids."
        raise Refused(400, what, param="input", code="wrong_type")
    return tuple(
        [
            checked_text("input", at, each) if isinstance(each, str) else checked_ids("input", at, each)
            for place, each in enumerate(given)
            if not isinstance(each, int) and (at := f"input[{place}]")
        ]
    )
