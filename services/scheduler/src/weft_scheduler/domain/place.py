"""Replicas that wait for a place get one, or others end for them, or they are told why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import MAX_COMMIT_BYTES, Commit, Decision
from weft_contracts.facts.replica import KeptForNow, Placed, Unplaceable
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, model, replica
from weft_fleet import ReplicaView
from weft_placement import CandidateRanking, Circumstances, NoPlace, Placement, PlannedFleet, choose
from weft_placement.decide import few
from weft_placement.eviction import Eviction, give_room, hold_room, hold_rooms, priority_in
from weft_placement.filters.avoid import avoided
from weft_placement.passed_over import NoCandidate, no_candidate
from weft_placement.set_aside import set_aside

from weft_scheduler.domain.assignments import assigned as assigned_on
from weft_scheduler.domain.batch import Batch, guarded, size_of
from weft_scheduler.domain.evict import Evicting, Use, no_place_told
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_scheduler.domain.waiting import Group, Revision


@dataclass(slots=True)
class Look:
    """One look at the waiting replicas of a revision: what holds for all that avoid the same nodes."""

    why: dict[tuple[str, ...], NoCandidate] = field(default_factory=dict[tuple[str, ...], NoCandidate])
    """Why they have no place."""
    kept: dict[tuple[str, ...], Eviction | KeptForNow | None] = field(
        default_factory=dict[tuple[str, ...], Eviction | KeptForNow | None]
    )
    """What would make room for them but for a while, or makes it now; None: nothing."""
    unsearched: bool = False
    """That wasn't asked for all of them: the round had made its searches, or the revision hadn't its turn."""


@dataclass(slots=True)
class Round:
    """One round of placements: later ones see the claims of the earlier ones."""

    state: State
    rules: Rules
    given: Circumstances
    suspects: Mapping[Aggregate, str]
    batch: Batch
    planned_fleet: PlannedFleet
    evicting: Evicting
    unplaceable: list[Commit] = field(default_factory=list[Commit])
    set_aside: Mapping[str, str] = field(default_factory=dict[str, str])
    deferred: int = 0
    """Placements on a node that another cause writes in this round."""

    def run(self) -> None:
        """Look at every revision that waits and that something may have changed for."""
        self.set_aside = set_aside(self.suspects)
        hold_rooms(self.planned_fleet, self.given.now)
        for revision, group in self._in_order():
            if self.full:
                break
            self._look(revision, group)

    @property
    def full(self) -> bool:
        """Whether the rest must wait for the next round."""
        return max(self.batch.replicas, len(self.unplaceable), self.deferred) >= self.rules.batch

    def placed_and_told(self) -> list[Decision]:
        """The round's decisions. Others end, and that there is no place is told, when nothing else was placed: a plan
        that loses its append is in no log, and no receipt must rest on it."""
        placed = self.batch.decision("placed")
        if placed is not None:
            return [placed]
        evicted = self.evicting.decision(self._in_order(), self.set_aside)
        if evicted is not None:
            return [evicted]
        return [Decision(tuple(self.unplaceable), "unplaceable")] if self.unplaceable else []

    def _in_order(self) -> list[tuple[Revision, Group]]:
        """What may be looked at: of a higher priority first, then who has waited longest."""
        models = self.state.fleet.models
        found = [(revision, group) for revision, group in self.state.waiting if not self._held_back(revision)]
        return sorted(found, key=lambda each: -priority_in(models[each[0][0]], each[0][1]))

    def _held_back(self, revision: Revision) -> bool:
        """A revision that was given up is not tried again until an admin says so."""
        id, number = revision
        return model(id) in self.suspects or number in self.state.fleet.models[id].given_up

    def _look(self, revision: Revision, group: Group) -> None:
        sample = next(iter(group.replicas))
        ranking = self.state.ranking(revision, sample, self.planned_fleet)
        changes = ranking.changes if isinstance(ranking, CandidateRanking) else 0
        roomy = any(id in self.state.fleet.rooms for id in group.replicas)
        unsearched = group.unsearched and not self.evicting.enough
        due = group.due or unsearched or roomy
        if not due and changes == group.changes and self.given.now < group.look_at:
            return
        group.look_at = self.given.now + self.rules.look_again_s
        look = Look()
        settled, deferred = True, self.deferred
        for id in tuple(group.replicas):
            if self.full or self.deferred > deferred:
                settled = False
                break
            if replica(id) not in self.suspects:
                settled = self._settle(self.state.fleet.replicas[id], group, ranking, look) and settled
        # What was decided is due until it is in the log: an append may lose.
        group.due = not settled
        group.unsearched = look.unsearched
        if look.kept:
            group.weighed_at = self.given.now
        group.changes = ranking.changes if isinstance(ranking, CandidateRanking) else 0

    def _settle(self, view: ReplicaView, group: Group, ranking: CandidateRanking | str, look: Look) -> bool:
        """Place one replica or tell it why not. True if nothing had to be said."""
        if isinstance(ranking, str):
            return self._tell(view, NoCandidate(ranking, {}), None)
        avoid = {**self.set_aside, **avoided(view.avoid)}
        roomy = view.id in self.state.fleet.rooms
        known = None if roomy else look.why.get(view.avoid)
        if known is not None:
            return self._no_place(view, group, ranking, avoid, known, look)
        give_room(self.planned_fleet, view)
        ranking.sync(self.planned_fleet)
        if ranking.best(avoid) is None:
            why = no_candidate(ranking, avoid)
            if not roomy:
                look.why[view.avoid] = why
            settled = self._no_place(view, group, ranking, avoid, why, look)
            hold_room(self.planned_fleet, view, self.given.now)
            return settled
        match choose(self.state.fleet, view, ranking, self.given, self.set_aside):
            case Placement() as placement:
                settled = self._place(view, placement)
                if not self.planned_fleet.has(view.id, placement.members):
                    hold_room(self.planned_fleet, view, self.given.now)
                return settled
            case NoPlace(reason=reason, receipt=receipt):
                return self._tell(view, NoCandidate(reason, receipt.refusals), None)

    def _place(self, view: ReplicaView, placement: Placement) -> bool:
        cause = view.cause
        assigned = assigned_on(self.state.fleet, view, placement.members, view.epoch + 1)
        largest = max(size_of(fact) for fact in assigned.values())
        if largest > MAX_COMMIT_BYTES - 2:
            problem = f"its assignment takes {largest} bytes, {MAX_COMMIT_BYTES} are allowed: shorten the spec"
            return self._tell(view, NoCandidate(problem, {}), None)
        if not self.batch.takes(cause, assigned):
            self.deferred += 1
            return False
        placed = Placed(
            model=view.model,
            revision=view.revision,
            epoch=view.epoch + 1,
            members=placement.members,
            receipt=placement.receipt,
        )
        self.batch.add(cause, assigned, guarded(replica(view.id), view.sequence, (placed,), cause))
        self.planned_fleet.plan(view, placement.members, cause)
        return False

    def _no_place(
        self,
        view: ReplicaView,
        group: Group,
        ranking: CandidateRanking,
        avoid: Mapping[str, str],
        why: NoCandidate,
        look: Look,
    ) -> bool:
        """Tell a replica why it has no place, and what would make room for it but for a while."""
        now, last = self.given.now, view.unplaceable
        if last is not None and now < last.receipt.decided_at + self.rules.look_again_s:
            return True
        if self.evicting.has_room(view):
            return self._tell(view, why, None)
        if view.avoid not in look.kept:
            # By a search, and the reason may stand as it was told. Who isn't asked now is looked at again, and nobody
            # behind it waits for that.
            if last is not None and _same(last, why) and now < group.weighed_at + self.rules.weigh_again_s:
                return True
            if self.evicting.enough or (last is not None and now < group.weighed_at + self.evicting.turn_s):
                look.unsearched = True
                return True
            look.kept[view.avoid] = self.evicting.kept(view, ranking, avoid)
        kept = look.kept[view.avoid]
        if isinstance(kept, Eviction):
            # It is told with what ends for it, in this round or, where others come first, in one of the next: that it
            # has no place would have gateways refuse the requests that wait for it.
            look.unsearched = True
            return True
        return self._tell(view, why, kept)

    def _tell(self, view: ReplicaView, why: NoCandidate, kept: KeptForNow | None) -> bool:
        """Record why there is no place, unless the log says so already or said something lately."""
        last = view.unplaceable
        if last is not None:
            same = _same(last, why) and (last.kept.why if last.kept else "") == (kept.why if kept else "")
            if same or self.given.now < last.receipt.decided_at + self.rules.look_again_s:
                return True
        self.unplaceable.append(no_place_told(self.state.fleet, view, self.given, why, kept))
        return False


def _same(last: Unplaceable, why: NoCandidate) -> bool:
    return last.reason == why.reason and last.receipt.refusals == few(why.refusals)


def place(
    state: State,
    rules: Rules,
    given: Circumstances,
    suspects: Mapping[Aggregate, str],
    taken: tuple[NodeId, ...],
    use: Use,
) -> list[Decision]:
    """One round: a batch of placements; else one of replicas that end for another, or of those that found no place.

    Nodes that are `taken` are written by another decision of this round and wait for the next.
    """
    fleet = state.fleet
    planned_fleet = PlannedFleet(fleet, state.index)
    evicting = Evicting(state, rules, given, suspects, planned_fleet, use)
    this = Round(state, rules, given, suspects, Batch(fleet, taken), planned_fleet, evicting)
    this.run()
    return this.placed_and_told()
