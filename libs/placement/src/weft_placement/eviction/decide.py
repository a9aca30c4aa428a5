"""One eviction: who ends for a replica without a place, or why nobody does yet, with what was read for it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft_contracts.facts.eviction import EvictionReceipt, ModelUse, UsesRead
from weft_contracts.facts.replica import Evicted, KeptForNow
from weft_contracts.facts.values import Member
from weft_contracts.ids import ModelId, ReplicaId
from weft_fleet import Fleet, ReplicaView

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.decide import Circumstances
from weft_placement.demand import Demand
from weft_placement.eviction.endable import Endable, endable_for, models_with_spare
from weft_placement.eviction.search import LeastSet, least_set
from weft_placement.eviction.soon import soon_free
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import Policy


@dataclass(frozen=True, slots=True)
class Eviction:
    """Who ends for a replica, and the fact of each."""

    waiting: ReplicaId
    members: tuple[Member, ...]
    """Where there is room for it then."""
    facts: Mapping[ReplicaId, Evicted]
    """By what ends, the longest idle first."""


@dataclass(frozen=True, slots=True)
class AskedOf:
    """All that the answer to what might end depends on: while it is the same, so is that nothing helps."""

    demand: Demand
    touched: int
    """The log's last sequence that changed a node."""
    rooms: tuple[tuple[ReplicaId, float], ...]
    """That are kept for others, and until when."""
    avoid: frozenset[str]
    spare: Mapping[ModelId, int]
    ends: tuple[ReplicaId, ...]
    """What may end, the first to go first."""


@dataclass(frozen=True, slots=True)
class RoomSearch:
    """Who might end for a replica that waits."""

    planned_fleet: PlannedFleet
    waiting: ReplicaView
    demand: Demand
    policy: Policy
    read: UsesRead
    given: Circumstances
    avoid: Mapping[str, str]
    might: Sequence[Endable]
    """All that could end, the first to go first."""
    spare: Mapping[ModelId, int]
    ranking: CandidateRanking | None = None
    """For this demand, in step with the planned fleet, which spares a look at every node; None: there is none."""

    @property
    def free(self) -> list[Endable]:
        """What may end now."""
        return [each for each in self.might if not each.obstacle]

    @property
    def asked_of(self) -> AskedOf:
        """What an `eviction` depends on."""
        fleet = self.planned_fleet.fleet
        return AskedOf(
            demand=self.demand,
            touched=next(reversed(fleet.touched.values()), 0),
            rooms=tuple((id, room.until) for id, room in fleet.rooms.items() if self.given.now < room.until),
            avoid=frozenset(self.avoid),
            spare=self.spare,
            ends=tuple(each.replica.id for each in self.free),
        )

    def eviction(self) -> Eviction | None:
        """The least set whose end gives it a place; None: no end would help, or none may now."""
        found, fleet = self._least(self.free), self.planned_fleet.fleet
        if found is None:
            return None
        facts = {
            each.replica.id: Evicted(
                why=_why(fleet, self.waiting, each),
                waiting=self.waiting.id,
                model=self.waiting.model,
                members=found.members,
                until=round(self.given.now + self.read.rule.room_s, 3),
                receipt=_receipt(fleet, self.waiting, self.policy, self.given, _told_for(self.read, each)),
            )
            for each in found.ends
        }
        return Eviction(self.waiting.id, found.members, facts)

    def kept(self) -> KeptForNow | None:
        """Where nothing that may end now helps: what would, and what speaks against it yet. Among what is ready, else
        with what stops or has not served yet beside."""
        kept = self._least(self.might) if any(each.obstacle for each in self.might) else None
        if kept is None:
            soon, more = soon_free(self.planned_fleet.fleet, self.waiting)
            kept = self._least([*self.might, *soon], Counter(self.spare) + Counter(more)) if soon else None
        ends = () if kept is None else kept.ends
        for each in ends:
            if each.obstacle:
                others = f" and {len(ends) - 1} more" if len(ends) > 1 else ""
                named = _named(self.planned_fleet.fleet, each.replica)
                why = f"ending {named}{others} would make room, but {each.obstacle}"
                return KeptForNow(why=why, read=_told_for(self.read, None))
        return None

    def _least(self, endable: Sequence[Endable], spare: Mapping[ModelId, int] | None = None) -> LeastSet | None:
        spare = self.spare if spare is None else spare
        return least_set(self.planned_fleet, self.demand, self.policy, endable, spare, self.avoid, self.ranking)


def room_search_of(
    planned_fleet: PlannedFleet,
    waiting: ReplicaView,
    demand: Demand,
    policy: Policy,
    read: UsesRead,
    given: Circumstances,
    avoid: Mapping[str, str],
    ranking: CandidateRanking | None = None,
) -> RoomSearch | None:
    """Who might end for `waiting`; None: nothing may, since the brake holds or room that was made for it is kept."""
    fleet = planned_fleet.fleet
    room = fleet.rooms.get(waiting.id)
    if fleet.brake is not None or (room is not None and given.now < room.until):
        return None
    might = endable_for(fleet, waiting, read, given.now)
    spare = models_with_spare(fleet, waiting)
    return RoomSearch(planned_fleet, waiting, demand, policy, read, given, avoid, might, spare, ranking)


def decide_eviction(
    planned_fleet: PlannedFleet,
    waiting: ReplicaView,
    demand: Demand,
    policy: Policy,
    read: UsesRead,
    given: Circumstances,
    avoid: Mapping[str, str],
) -> Eviction | KeptForNow | None:
    """The least set of idle, unprotected replicas whose end gives `waiting` a place; why none ends yet, where time may
    change that, or bring the end of one by itself; None: no end would help, or none may.

    While the brake holds, or room that was made for it is kept, nothing ends.
    """
    search = room_search_of(planned_fleet, waiting, demand, policy, read, given, avoid)
    return None if search is None else search.eviction() or search.kept()


def _why(fleet: Fleet, waiting: ReplicaView, ends: Endable) -> str:
    name = fleet.models[waiting.model].name
    return f"it was idle for {ends.idle_s:.0f} s, and made room for {waiting.id} of {name}"


def _named(fleet: Fleet, replica: ReplicaView) -> str:
    """`m-x-1 of chat on w1`."""
    nodes = [fleet.nodes[member.node].name for member in replica.members if member.node in fleet.nodes]
    return f"{replica.id} of {fleet.models[replica.model].name} on {' and '.join(nodes)}"


def _told_for(read: UsesRead, ends: Endable | None) -> UsesRead:
    """The gateways' own figures stand beside the model that the fact is about: of all they would not fit."""
    model = None if ends is None else ends.replica.model
    return UsesRead(rule=read.rule, uses=tuple(each if each.model == model else _summed(each) for each in read.uses))


def _summed(use: ModelUse) -> ModelUse:
    return use.model_copy(update={"gateways": ()}) if use.gateways else use


def _receipt(
    fleet: Fleet, waiting: ReplicaView, policy: Policy, given: Circumstances, read: UsesRead
) -> EvictionReceipt:
    return EvictionReceipt(
        position=fleet.position,
        policy=policy.text,
        policy_digest=policy.digest,
        seed=given.seed,
        trigger=waiting.cause.causation_id or "",
        decided_at=given.now,
        read=read,
    )
