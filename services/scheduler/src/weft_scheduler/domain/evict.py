"""Replicas that end so that one without a place gets theirs: the least of what is idle, in one batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from weft_contracts.commit import Commit, Decision
from weft_contracts.facts.eviction import ModelUse
from weft_contracts.facts.model import GaveWay
from weft_contracts.facts.replica import KeptForNow, Unplaceable
from weft_contracts.ids import ModelId, ReplicaId
from weft_contracts.subjects import Aggregate, model, replica
from weft_fleet import Fleet, ReplicaView
from weft_placement import CandidateRanking, Circumstances, PlannedFleet, chosen_policy
from weft_placement.decide import no_place
from weft_placement.eviction import (
    Eviction,
    RoomSearch,
    anything_soon,
    anything_spare,
    could_use,
    priority_in,
    room_search_of,
    uses_of,
)
from weft_placement.filters.avoid import avoided
from weft_placement.passed_over import NoCandidate, no_candidate

from weft_scheduler.domain.batch import guarded
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_scheduler.domain.waiting import Group, Revision

Use = Callable[[ModelId], ModelUse]
"""What is known of a model's last use."""

AT_ONCE = 4
"""Searches for what might end that one round makes before it decides, and to decide: of 8,000 replicas that all might
end one takes half a second. Where more wait, each has its turn less often."""


@dataclass(slots=True)
class Evicting:
    """One round's look at what might end for what waits."""

    state: State
    rules: Rules
    given: Circumstances
    suspects: Mapping[Aggregate, str]
    planned_fleet: PlannedFleet
    """With nothing planned but the room that is kept."""
    use: Use
    searches: int = 0
    """For what would make room but for a while."""

    @property
    def enough(self) -> bool:
        """Whether the rest must wait for the next round."""
        return self.searches >= AT_ONCE

    @property
    def turn_s(self) -> float:
        """Seconds after which each of those that wait was looked at once."""
        return self.rules.evict_again_s * ceil(self.state.waiting.groups / AT_ONCE)

    def kept(
        self, view: ReplicaView, ranking: CandidateRanking, avoid: Mapping[str, str]
    ) -> Eviction | KeptForNow | None:
        """What would make room for it but for a while; or what makes room for it now; None: nothing does. On a ranking
        that is in step."""
        if not anything_spare(self.state.fleet) and not anything_soon(self.state.fleet, view):
            return None
        self.searches += 1
        search = self._room_search(view, ranking, avoid)
        return None if search is None else search.eviction() or search.kept()

    def decision(self, waiting: Sequence[tuple[Revision, Group]], set_aside: Mapping[str, str]) -> Decision | None:
        """Others end for the first of those that wait for which that helps."""
        fleet, looked = self.state.fleet, 0
        if not waiting or fleet.brake is not None or not anything_spare(fleet):
            return None
        # of as high a priority who was looked at longest ago comes first, of equals who is first among those that wait
        in_line = sorted(waiting, key=lambda each: (-self._priority(each[0]), each[1].evict_at))
        for gone in self.state.in_vain.keys() - {revision for revision, _ in in_line}:
            del self.state.in_vain[gone]
        for revision, group in in_line:
            if self.given.now < group.evict_at:
                continue
            looked += 1
            if looked > AT_ONCE:
                return None
            group.evict_at = self.given.now + self.turn_s
            found = self._found(revision, group, set_aside)
            if found is None:
                continue
            before = self._before(in_line, revision, found, set_aside)
            if before is None:
                group.evict_at = 0.0
                return self._made(*found)
            before.evict_at = 0.0
        return None

    def _priority(self, revision: Revision) -> int:
        return priority_in(self.state.fleet.models[revision[0]], revision[1])

    def _found(self, revision: Revision, group: Group, set_aside: Mapping[str, str]) -> tuple[Commit, Eviction] | None:
        """What ends for the first replica of a group for which that helps, and the commit that tells that one."""
        before = self.state.in_vain.pop(revision, {})
        in_vain = self.state.in_vain[revision] = {}
        for view, ranking, avoid in self._without_place(revision, group, set_aside):
            search = self._room_search(view, ranking, avoid)
            if search is None or not search.read.uses:
                continue
            asked_of = search.asked_of
            found = None if before.get(view.avoid) == asked_of else search.eviction()
            if found is None:
                in_vain[view.avoid] = asked_of
            elif not self._suspect(found):
                # What waits is told in the same batch: of two that make room for it at once, one loses.
                return no_place_told(self.state.fleet, view, self.given, no_candidate(ranking, avoid), None), found
        return None

    def _without_place(
        self, revision: Revision, group: Group, set_aside: Mapping[str, str]
    ) -> Iterator[tuple[ReplicaView, CandidateRanking, Mapping[str, str]]]:
        """Of a group's replicas that have no room kept and no place now the first of each that avoid the same nodes."""
        tried: set[tuple[str, ...]] = set()
        for id in group.replicas:
            view = self.state.fleet.replicas[id]
            if view.avoid in tried or replica(id) in self.suspects or self.has_room(view):
                continue
            tried.add(view.avoid)
            ranking = self.state.ranking(revision, id, self.planned_fleet)
            avoid = {**set_aside, **avoided(view.avoid)}
            if not isinstance(ranking, str) and ranking.best(avoid) is None:
                yield view, ranking, avoid

    def _before(
        self,
        in_line: Sequence[tuple[Revision, Group]],
        revision: Revision,
        found: tuple[Commit, Eviction],
        set_aside: Mapping[str, str],
    ) -> Group | None:
        """Who comes before by priority, whether or not it is its turn to be looked at, and could use the same room now
        or soon: it must not find it taken. None: nobody."""
        _, eviction = found
        replicas, priority, searches = self.state.fleet.replicas, self._priority(revision), 0
        members = (*eviction.members, *(member for id in eviction.facts for member in replicas[id].members))
        nodes = {member.node for member in members}
        for other, group in in_line:
            if self._priority(other) <= priority:
                break
            for view, ranking, avoid in self._without_place(other, group, set_aside):
                searches += ranking.demand.groups
                if searches > AT_ONCE:
                    break
                rule, planned = self.rules.eviction, self.planned_fleet
                if could_use(planned, view, ranking, nodes, rule, self.use, self.given.now, avoid):
                    return group
        return None

    def _made(self, told: Commit, found: Eviction) -> Decision:
        """What waits is told last: who reads the batch commit by commit never sees it without a place and without a
        room, for which a gateway would refuse the requests that wait."""
        replicas = self.state.fleet.replicas
        ends = (guarded(replica(id), replicas[id].sequence, (fact,), told.cause) for id, fact in found.facts.items())
        return Decision(
            (*self._give_way(found), *ends, told), f"{', '.join(found.facts)} made room for {found.waiting}"
        )

    def _give_way(self, found: Eviction) -> Iterator[Commit]:
        """Each model that has one fewer moves: of two who take from the same one, or of one who raises its minimum
        meanwhile, only the first may."""
        fleet = self.state.fleet
        by_model: dict[ModelId, tuple[ReplicaId, ...]] = {}
        for id in found.facts:
            owner = fleet.replicas[id].model
            by_model[owner] = (*by_model.get(owner, ()), id)
        for owner, replicas in by_model.items():
            fact = GaveWay(replicas=replicas, waiting=found.waiting)
            yield guarded(model(owner), fleet.models[owner].sequence, (fact,), fleet.replicas[found.waiting].cause)

    def _suspect(self, found: Eviction) -> bool:
        views = [self.state.fleet.replicas[id] for id in found.facts]
        return any(replica(view.id) in self.suspects or model(view.model) in self.suspects for view in views)

    def _room_search(self, view: ReplicaView, ranking: CandidateRanking, avoid: Mapping[str, str]) -> RoomSearch | None:
        """Who might end for a replica, if only in a while; None: nothing ends now, or its room is kept already."""
        read = uses_of(self.state.fleet, view, self.rules.eviction, self.use)
        planned, demand, policy = self.planned_fleet, ranking.demand, ranking.policy
        return room_search_of(planned, view, demand, policy, read, self.given, avoid, ranking)

    def has_room(self, view: ReplicaView) -> bool:
        """Whether room that was made for it is kept."""
        room = self.state.fleet.rooms.get(view.id)
        return room is not None and self.given.now < room.until


def no_place_told(
    fleet: Fleet, view: ReplicaView, given: Circumstances, why: NoCandidate, kept: KeptForNow | None
) -> Commit:
    """The commit that says that a replica has no place."""
    told = no_place(fleet, view, chosen_policy(fleet, fleet.spec_of(view)[1]), given, why)
    fact = Unplaceable(model=view.model, revision=view.revision, reason=told.reason, receipt=told.receipt, kept=kept)
    return guarded(replica(view.id), view.sequence, (fact,), view.cause)
