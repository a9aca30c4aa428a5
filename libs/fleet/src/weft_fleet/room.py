"""Room that was made for a replica by ending others: kept for it until it has a place, or for a while."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from weft_contracts.facts.replica import Evicted
from weft_contracts.facts.values import Member
from weft_contracts.ids import ModelId, ReplicaId

from weft_fleet.model_view import ModelView, after_giving_way
from weft_fleet.replica_view import ReplicaView


@dataclass(frozen=True, slots=True)
class Room:
    """What one waiting replica waits for."""

    members: tuple[Member, ...]
    """Where it would go once the others are gone: nobody else is placed there."""
    until: float
    """Seconds since the epoch."""
    evicted: tuple[ReplicaId, ...]
    """What ends for it."""
    why: str
    """A sentence for people, of the last of these."""


class Tables(Protocol):
    """What of the fleet an eviction concerns."""

    @property
    def models(self) -> dict[ModelId, ModelView]: ...
    @property
    def replicas(self) -> Mapping[ReplicaId, ReplicaView]: ...
    @property
    def waiting(self) -> Mapping[ReplicaId, None]: ...
    @property
    def rooms(self) -> dict[ReplicaId, Room]: ...


def make_room(fleet: Tables, view: ReplicaView, fact: Evicted, at: float) -> None:
    """What an eviction means for the model that gives way, and for the replica that waits. `at`: when the log took it,
    in seconds since the epoch."""
    model = fleet.models.get(view.model)
    if model is not None and fact.waiting:
        others = (fleet.replicas.get(id) for id in model.replicas if id != view.id)
        left = sum(1 for each in others if each is not None and each.wanted and not each.evicted)
        at = at if fact.receipt is None else fact.receipt.decided_at
        fleet.models[model.id] = after_giving_way(model, fact, left, at)
    if fact.waiting in fleet.waiting:
        fleet.rooms[fact.waiting] = after_eviction(fleet.rooms.get(fact.waiting), view.id, fact)


def after_eviction(room: Room | None, id: ReplicaId, fact: Evicted) -> Room:
    """The room after one more replica was ended for it. A later decision's takes the place of an earlier one's."""
    if room is not None and (room.members, room.until) == (fact.members, fact.until):
        return replace(room, evicted=(*room.evicted, id), why=fact.why)
    return Room(fact.members, fact.until, (id,), fact.why)
