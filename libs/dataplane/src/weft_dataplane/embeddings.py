"""Embeddings as they travel: texts and token ids one way, packed vectors the other."""

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError
from weft_contracts.gen import session_pb2 as pb

from weft_dataplane.engine import Embeddings, EmbedInput, RequestRefused
from weft_dataplane.limits import MAX_FRAME_BYTES
from weft_dataplane.values import ValueRefused, ValueStore

MAX_INPUTS: Final = 64
"""Inputs of one call; more are sent one call after another, so that none holds the engine for long."""

MAX_INLINE_BYTES: Final = 64 * 1024
"""Vectors up to this size come with the answer itself: a step's tokens share their frame."""

FRAME_ROOM: Final = MAX_FRAME_BYTES - 1024
INPUT_OVERHEAD: Final = 16


class Group(NamedTuple):
    """Inputs of one call."""

    inputs: Sequence[EmbedInput]
    frame: bool
    """whether they fit one; else they are put beside the stream"""


def groups(inputs: Iterable[EmbedInput]) -> Iterator[Group]:
    """Inputs in order, in groups that fit a frame; an input that is too large for one stands alone."""
    group: list[EmbedInput] = []
    room = FRAME_ROOM
    for each in inputs:
        size = INPUT_OVERHEAD + (4 * len(each) if isinstance(each, str) else 5 * len(each))
        if group and (size > room or len(group) == MAX_INPUTS):
            yield Group(group, frame=True)
            group, room = [], FRAME_ROOM
        if size > FRAME_ROOM:
            yield Group([each], frame=False)
        else:
            group.append(each)
            room -= size
    if group:
        yield Group(group, frame=True)


def embed_message(number: int, inputs: Sequence[EmbedInput]) -> pb.Embed:
    """The call with these inputs, which fit a frame."""
    if all(isinstance(each, str) for each in inputs):
        return pb.Embed(question=number, texts=[each for each in inputs if isinstance(each, str)])
    return pb.Embed(question=number, inputs=written(inputs))


def written(inputs: Iterable[EmbedInput]) -> list[pb.EmbedInput]:
    """Inputs as they travel."""
    return [
        pb.EmbedInput(text=each) if isinstance(each, str) else pb.EmbedInput(tokens=pb.TokenIds(ids=each))
        for each in inputs
    ]


def inputs_of(embed: pb.Embed, values: ValueStore) -> list[EmbedInput]:
    """A call's inputs, wherever they lie. Raises RequestRefused."""
    if embed.handle:
        try:
            sent: Iterable[pb.EmbedInput] = pb.EmbedInputs.FromString(values.take(embed.handle)).inputs
        except ValueRefused as refused:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"the inputs are not here: {refused}") from None
        except DecodeError:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, "the value put holds no inputs") from None
    else:
        sent = embed.inputs
    inputs: list[EmbedInput] = [*embed.texts]
    inputs += [list(each.tokens.ids) if each.WhichOneof("input") == "tokens" else each.text for each in sent]
    if not inputs:
        raise RequestRefused(pb.FAULT_BAD_REQUEST, "there is nothing to embed: give at least one text")
    for place, each in enumerate(inputs):
        if not each:
            raise RequestRefused(pb.FAULT_BAD_REQUEST, f"input {place} is empty: give a text or token ids")
    return inputs


def vectors_message(embeddings: Embeddings) -> pb.Vectors:
    """Vectors as they travel."""
    return pb.Vectors(
        vectors=[pb.Vector(packed=each) for each in embeddings.vectors], prompt_tokens=embeddings.prompt_tokens
    )


def embeddings_of(vectors: pb.Vectors) -> Embeddings:
    """Vectors that came, whichever way their numbers were written."""
    return Embeddings([each.packed or packed(each.values) for each in vectors.vectors], vectors.prompt_tokens)


def packed(values: Iterable[float]) -> bytes:
    """Numbers as 32-bit floats, little-endian."""
    numbers = array("f", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def unpacked(vector: bytes) -> "array[float]":
    """A packed vector's numbers."""
    numbers = array("f", vector)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
