"""Facts about where a replica goes, by the scheduler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.eviction import EvictionReceipt, UsesRead
from weft_contracts.facts.fact import Fact, Value
from weft_contracts.facts.values import Member, Receipt
from weft_contracts.ids import ModelId, ReplicaId
from weft_contracts.subjects import Kind


class _Replica(Fact, frozen=True):
    kind: ClassVar[Kind] = "replica"


class Placed(_Replica, frozen=True):
    """It has its nodes. The same batch assigned it on each of them."""

    type: Literal["placed"] = "placed"
    model: ModelId
    revision: int
    epoch: int
    members: tuple[Member, ...]
    receipt: Receipt


class KeptForNow(Value, frozen=True):
    """Room could be made by ending others, and isn't yet: time may change that."""

    why: str
    """A sentence for people."""
    read: UsesRead


class Unplaceable(_Replica, frozen=True):
    """No node can take it now. It wakes when capacity changes, and once a minute."""

    type: Literal["unplaceable"] = "unplaceable"
    model: ModelId
    revision: int
    reason: str
    """A sentence for people, from the nearest miss."""
    receipt: Receipt
    kept: Annotated[KeptForNow | None, Field(exclude_if=lambda kept: kept is None)] = None


class Restarted(_Replica, frozen=True):
    """A rank of a group ended, so all of them start anew where they are, under the next epoch. The same batch assigned
    that on each of its nodes."""

    type: Literal["restarted"] = "restarted"
    epoch: int
    why: str
    """A sentence for people: which rank, and how it ended."""


class Evicted(_Replica, frozen=True):
    """It ends to make room for another, in one batch with all that end for the same."""

    type: Literal["evicted"] = "evicted"
    why: str
    waiting: ReplicaId = ReplicaId("")
    """The replica that the room is for; empty: it was written before this was told."""
    model: ModelId = ModelId("")
    """That one's model."""
    members: tuple[Member, ...] = ()
    """The room that there is then: nobody else is placed there until `until`."""
    until: float = 0.0
    """Seconds since the epoch."""
    receipt: EvictionReceipt | None = None


ReplicaFact = Annotated[Placed | Unplaceable | Restarted | Evicted, Field(discriminator="type")]
