"""What a snapshot says of itself, and which snapshots a fold may start from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from blake3 import blake3
from pydantic import BaseModel, Field, ValidationError
from weft_contracts.ids import EventId
from weft_contracts.subjects import Aggregate
from weft_contracts.topology import SNAPSHOT_CHUNK_BYTES

FORMAT = 1
"""Of the head and of how the body is packed."""
MAX_CHUNKS = 256
MAX_BYTES = MAX_CHUNKS * SNAPSHOT_CHUNK_BYTES
"""Of a packed snapshot. A fold that takes more has none."""
MAX_UNPACKED = 4 << 30
MAX_SUSPECTS = 500
"""Aggregates set aside that a head has room for."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a log: what a fold stands at between two batches."""

    identity: str
    """Of the stream."""
    sequence: int
    """Of the last folded commit."""
    event_id: EventId
    """Of the same."""
    suspects: tuple[tuple[Aggregate, int, str], ...] = ()
    """Commits that could not be read: aggregate, sequence, why."""


class Writing(BaseModel, frozen=True):
    """Stands at a slot's head while somebody writes there."""

    type: Literal["writing"] = "writing"
    instance: str


class Head(BaseModel, frozen=True):
    """Stands at a slot's head once its pieces do."""

    type: Literal["snapshot"] = "snapshot"
    format: int = FORMAT
    service: str
    fold: str
    version: str
    """Of the fold's code."""
    identity: str
    sequence: Annotated[int, Field(ge=1)]
    event_id: EventId
    suspects: Annotated[tuple[tuple[Aggregate, int, str], ...], Field(max_length=MAX_SUSPECTS)] = ()
    made_at: float
    """Seconds since the epoch, by its writer's clock: for people."""
    chunks: Annotated[int, Field(ge=1, le=MAX_CHUNKS)]
    packed: Annotated[int, Field(ge=1, le=MAX_BYTES)]
    """Bytes of all pieces together."""
    unpacked: Annotated[int, Field(ge=1, le=MAX_UNPACKED)]
    blake3: str
    """Of the pieces, and of this head without this field: 64 hex digits."""

    @property
    def mark(self) -> Mark:
        return Mark(self.identity, self.sequence, self.event_id, self.suspects)

    def sealed(self, pieces: Sequence[bytes]) -> "Head":
        """This head with the digest of itself and its pieces."""
        return self.model_copy(update={"blake3": self.digest(pieces)})

    def digest(self, pieces: Sequence[bytes]) -> str:
        """What `blake3` must be."""
        digest = blake3(self.model_dump_json(exclude={"blake3"}).encode())
        for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()


class Unusable(ValueError):
    """A snapshot that this fold must not start from, and why, as a sentence."""


def read_head(body: bytes) -> Head | Writing:
    """What stands at a slot's head. Raises Unusable."""
    try:
        if b'"writing"' in body[:64]:
            return Writing.model_validate_json(body)
        return Head.model_validate_json(body)
    except ValidationError as error:
        first = " ".join(str(error).splitlines()[:3])
        raise Unusable(f"its head can't be read: {first}") from error


def check(head: Head, service: str, fold: str, version: str, identity: str, end: int) -> None:
    """Refuse a snapshot of another fold, of other code, of another log or of more than the log holds.

    `identity` and `end` are the log's own. Raises Unusable.
    """
    if head.format != FORMAT:
        raise Unusable(f"its format is {head.format}, this service reads {FORMAT}")
    if (head.service, head.fold) != (service, fold):
        raise Unusable(f"it is of {head.service}'s fold {head.fold}")
    if head.version != version:
        raise Unusable("it was made by other code than this service's")
    if head.identity != identity:
        raise Unusable("it is of another stream: the log was made anew")
    if head.sequence > end:
        raise Unusable(f"it stands at {head.sequence}, and the log ends at {end}: the log was rewound")
