"""Replicas that wait for a place get one, or are told why not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import MAX_COMMIT_BYTES, Commit, Decision
from weft_contracts.facts.node import Assigned
from weft_contracts.facts.replica import Placed, Unplaceable
from weft_contracts.facts.values import Member
from weft_contracts.ids import NodeId
from weft_contracts.subjects import Aggregate, model, replica
from weft_fleet import ReplicaView
from weft_placement import CandidateRanking, Circumstances, NoPlace, Placement, PlannedFleet, choose
from weft_placement.candidate_ranking import NoCandidate
from weft_placement.decide import few, no_place
from weft_placement.filters.avoid import avoided
from weft_placement.installable import to_install
from weft_placement.kept_recipe import recipe_for

from weft_scheduler.domain.batch import Batch, guarded, size_of
from weft_scheduler.domain.rules import Rules
from weft_scheduler.domain.state import State
from weft_scheduler.domain.waiting import Group, Revision

_SUSPECT = "is set aside: one of its events can't be read"


@dataclass(slots=True)
class Round:
    """One round of placements: later ones see the claims of the earlier ones."""

    state: State
    rules: Rules
    given: Circumstances
    suspects: Mapping[Aggregate, str]
    batch: Batch
    planned_fleet: PlannedFleet
    unplaceable: list[Commit] = field(default_factory=list[Commit])
    set_aside: Mapping[str, str] = field(default_factory=dict[str, str])
    deferred: int = 0
    """Placements on a node that another cause writes in this round."""

    def run(self) -> None:
        """Look at every revision that waits and that something may have changed for."""
        self.set_aside = {a.key: _SUSPECT for a in self.suspects if a.kind in ("node", "machine")}
        for revision, group in self.state.waiting:
            if self.full:
                break
            if not self._held_back(revision):
                self._look(revision, group)

    @property
    def full(self) -> bool:
        """Whether the rest must wait for the next round."""
        return max(self.batch.replicas, len(self.unplaceable), self.deferred) >= self.rules.batch

    def placed_and_told(self) -> list[Decision]:
        """The round's decisions."""
        placed = self.batch.decision("placed")
        told = Decision(tuple(self.unplaceable), "unplaceable") if self.unplaceable else None
        return [decision for decision in (placed, told) if decision is not None]

    def _held_back(self, revision: Revision) -> bool:
        """A revision that was given up is not tried again until an admin says so."""
        id, number = revision
        return model(id) in self.suspects or number in self.state.fleet.models[id].given_up

    def _look(self, revision: Revision, group: Group) -> None:
        sample = next(iter(group.replicas))
        ranking = self.state.ranking(revision, sample, self.planned_fleet)
        changes = ranking.changes if isinstance(ranking, CandidateRanking) else 0
        if not group.due and changes == group.changes and self.given.now < group.look_at:
            return
        group.look_at = self.given.now + self.rules.look_again_s
        without: dict[tuple[str, ...], NoCandidate] = {}
        settled, deferred = True, self.deferred
        for id in tuple(group.replicas):
            if self.full or self.deferred > deferred:
                settled = False
                break
            if replica(id) not in self.suspects:
                settled = self._settle(self.state.fleet.replicas[id], ranking, without) and settled
        # What was decided is due until it is in the log: an append may lose.
        group.due = not settled
        group.changes = ranking.changes if isinstance(ranking, CandidateRanking) else 0

    def _settle(
        self, view: ReplicaView, ranking: CandidateRanking | str, without: dict[tuple[str, ...], NoCandidate]
    ) -> bool:
        """Place one replica or tell it why not. True if nothing had to be said."""
        if isinstance(ranking, str):
            return self._tell(view, NoCandidate(ranking, {}))
        known = without.get(view.avoid)
        if known is not None:
            return self._tell(view, known)
        ranking.sync(self.planned_fleet)
        avoid = {**self.set_aside, **avoided(view.avoid)}
        if next(ranking.candidates(avoid), None) is None:
            without[view.avoid] = ranking.no_candidate(avoid)
            return self._tell(view, without[view.avoid])
        match choose(self.state.fleet, view, ranking, self.given, self.set_aside):
            case Placement() as placement:
                return self._place(view, placement)
            case NoPlace(reason=reason, receipt=receipt):
                return self._tell(view, NoCandidate(reason, receipt.refusals))

    def _place(self, view: ReplicaView, placement: Placement) -> bool:
        cause = view.cause
        assigned = self._assigned(view, placement)
        largest = max(size_of(fact) for fact in assigned.values())
        if largest > MAX_COMMIT_BYTES - 2:
            problem = f"its assignment takes {largest} bytes, {MAX_COMMIT_BYTES} are allowed: shorten the spec"
            return self._tell(view, NoCandidate(problem, {}))
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

    def _assigned(self, view: ReplicaView, placement: Placement) -> dict[NodeId, Assigned]:
        digest, spec = self.state.fleet.spec_of(view)
        fact = Assigned(
            replica=view.id,
            model=view.model,
            model_name=self.state.fleet.models[view.model].name,
            revision=view.revision,
            digest=digest,
            epoch=view.epoch + 1,
            members=placement.members,
            spec=spec,
        )
        return {member.node: self._with_backend(fact, member) for member in placement.members}

    def _with_backend(self, fact: Assigned, member: Member) -> Assigned:
        """The fact with what this member's node must install before."""
        fleet, devices = self.state.fleet, {device.index for device in member.devices}
        recipe = recipe_for(fleet, fact.model, fact.revision)
        backend = to_install(fleet.nodes[member.node], fleet.engines[fact.spec.engine], recipe, devices)
        return fact if backend is None else fact.model_copy(update={"backend": backend})

    def _tell(self, view: ReplicaView, why: NoCandidate) -> bool:
        """Record why there is no place, unless the log says so already or said something lately."""
        last = view.unplaceable
        if last is not None:
            same = last.reason == why.reason and last.receipt.refusals == few(why.refusals)
            if same or self.given.now < last.receipt.decided_at + self.rules.look_again_s:
                return True
        told = no_place(self.state.fleet, view, self.given, why)
        fact = Unplaceable(model=view.model, revision=view.revision, reason=told.reason, receipt=told.receipt)
        self.unplaceable.append(guarded(replica(view.id), view.sequence, (fact,), view.cause))
        return False


def place(
    state: State,
    rules: Rules,
    given: Circumstances,
    suspects: Mapping[Aggregate, str],
    taken: tuple[NodeId, ...],
) -> list[Decision]:
    """One round: at most one batch of placements, and one of replicas that found no place.

    Nodes that are `taken` are written by another decision of this round and wait for the next.
    """
    fleet = state.fleet
    this = Round(state, rules, given, suspects, Batch(fleet, taken), PlannedFleet(fleet))
    this.run()
    return this.placed_and_told()
