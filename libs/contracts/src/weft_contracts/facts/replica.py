"""Facts about where a replica goes, by the scheduler."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from weft_contracts.facts.fact import Fact
from weft_contracts.facts.values import Member, Receipt
from weft_contracts.ids import ModelId
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


class Unplaceable(_Replica, frozen=True):
    """No node can take it now. It wakes when capacity changes, and once a minute."""

    type: Literal["unplaceable"] = "unplaceable"
    model: ModelId
    revision: int
    reason: str
    """A sentence for people, from the nearest miss."""
    receipt: Receipt


class Evicted(_Replica, frozen=True):
    """It made room for another."""

    type: Literal["evicted"] = "evicted"
    why: str


ReplicaFact = Annotated[Placed | Unplaceable | Evicted, Field(discriminator="type")]
