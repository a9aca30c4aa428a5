"""Every decision of a log computed again: by the position, the policy and the seed of its receipt it must come out the
same. Whoever changed a receipt, or a fact that it rests on, is told.

Cost: one fold of the log, and of each decision what changed since the revision's last one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft_contracts.commit import Recorded
from weft_contracts.facts.eviction import EvictionReceipt
from weft_contracts.facts.replica import Evicted, Placed, Unplaceable
from weft_contracts.facts.values import Receipt
from weft_contracts.ids import ModelId, ReplicaId
from weft_contracts.suspects import Suspects
from weft_fleet import Fleet

from weft_placement.candidate_ranking import CandidateRanking
from weft_placement.claim import ClaimUnknown
from weft_placement.decide import Circumstances, NoPlace, Placement, choose, demand_for, no_place
from weft_placement.eviction import give_room, hold_room, hold_rooms
from weft_placement.eviction.again import eviction_differs, kept_differs
from weft_placement.passed_over import NoCandidate
from weft_placement.planned_fleet import PlannedFleet
from weft_placement.policy import BadPolicy, Policy, parse_policy
from weft_placement.set_aside import set_aside


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A decision that doesn't come out again."""

    sequence: int
    """Of its commit."""
    replica: ReplicaId
    what: str
    """A sentence for people."""


@dataclass(slots=True)
class Verified:
    """How many decisions of each kind there were, and those that don't come out again."""

    decisions: Counter[str] = field(default_factory=Counter[str])
    """`placed`, `unplaceable`, `evicted`: of the last, one for each replica that ended for another."""
    mismatches: list[Mismatch] = field(default_factory=list[Mismatch])


@dataclass(frozen=True, slots=True)
class _Decision:
    commit: Recorded
    replica: ReplicaId
    fact: Placed | Unplaceable | Evicted
    receipt: Receipt | EvictionReceipt


def verify(log: Iterable[Recorded]) -> Verified:
    """Compute every placement of a whole log again, every word that there is none, and every eviction."""
    commits = list(log)
    waiting: defaultdict[int, list[_Decision]] = defaultdict(list)
    for commit in commits:
        if commit.aggregate.kind == "replica":
            for fact in commit.facts:
                if isinstance(fact, Placed | Unplaceable | Evicted) and fact.receipt is not None:
                    found = _Decision(commit, ReplicaId(commit.aggregate.key), fact, fact.receipt)
                    waiting[found.receipt.position].append(found)
    this = _Verifying()
    for commit in commits:
        this.fleet.apply(this.suspects.read(commit))
        if commit.sequence in waiting:
            this.round(waiting.pop(commit.sequence))
    for left in (each for decisions in waiting.values() for each in decisions):
        this.found.mismatches.append(
            Mismatch(left.commit.sequence, left.replica, "its receipt names a position that the log doesn't have")
        )
    return this.found


class _Verifying:
    def __init__(self) -> None:
        self.fleet = Fleet()
        self.suspects = Suspects()
        self.found = Verified()
        self._rankings: dict[tuple[ModelId, int, str], CandidateRanking] = {}

    def round(self, decisions: Sequence[_Decision]) -> None:
        """All decisions that rest on the fleet as it is now, in the log's order. Placements of one round see those
        before them; others end, and that there is no place is told, in a round in which nothing was placed."""
        by_round: defaultdict[tuple[int, float], list[_Decision]] = defaultdict(list)
        for each in decisions:
            by_round[each.receipt.seed, each.receipt.decided_at].append(each)
        for (_, now), one in by_round.items():
            planned = PlannedFleet(self.fleet)
            hold_rooms(planned, now)
            ends: dict[ReplicaId, dict[ReplicaId, Evicted]] = {}
            for each in one:
                if isinstance(each.fact, Evicted):
                    ends.setdefault(each.fact.waiting, {})[each.replica] = each.fact
                    continue
                view = self.fleet.replicas.get(each.replica)
                if view is None:
                    self._note(each, "its replica wasn't there at its receipt's position")
                    continue
                give_room(planned, view)
                self._note(each, self._differs(planned, each))
                if isinstance(each.fact, Placed):
                    planned.plan(view, each.fact.members, each.commit.cause)
                else:
                    hold_room(planned, view, now)
            for each in one:
                if isinstance(each.fact, Evicted):
                    self._note(each, self._eviction_differs(planned, each, ends[each.fact.waiting]))

    def _eviction_differs(
        self, planned: PlannedFleet, decision: _Decision, together: Mapping[ReplicaId, Evicted]
    ) -> str | None:
        """How an eviction comes out other than it was. `together`: all that ended in the same batch."""
        fact, receipt = decision.fact, decision.receipt
        assert isinstance(fact, Evicted)
        view = self.fleet.replicas.get(fact.waiting)
        if view is None:
            return "what it made room for wasn't there at its receipt's position"
        policy = _policy_of(receipt)
        if isinstance(policy, str):
            return policy
        try:
            demand = demand_for(self.fleet, view, policy)
            aside = set_aside(self.suspects.why)
            return eviction_differs(planned, view, demand, policy, together, decision.replica, aside)
        except ClaimUnknown as error:
            return str(error)

    def _note(self, decision: _Decision, what: str | None) -> None:
        self.found.decisions[decision.fact.type] += 1
        if what is not None:
            self.found.mismatches.append(Mismatch(decision.commit.sequence, decision.replica, what))

    def _differs(self, planned: PlannedFleet, decision: _Decision) -> str | None:
        """How the decision comes out other than it was; None: it is the same."""
        fact, view = decision.fact, self.fleet.replicas[decision.replica]
        assert not isinstance(fact, Evicted)
        policy = _policy_of(fact.receipt)
        if isinstance(policy, str):
            return policy
        given = Circumstances(fact.receipt.decided_at, fact.receipt.seed)
        aside = set_aside(self.suspects.why)
        try:
            ranking = self._ranking(planned, decision, policy)
        except ClaimUnknown as error:
            again: Placement | NoPlace = no_place(self.fleet, view, policy, given, NoCandidate(str(error), {}))
        else:
            again = choose(self.fleet, view, ranking, given, aside)
        if again.receipt != fact.receipt:
            return _difference(again.receipt.model_dump(), fact.receipt.model_dump())
        if isinstance(fact, Placed):
            there = again.members if isinstance(again, Placement) else ()
            return None if there == fact.members else f"it would go to {there}, and went to {fact.members}"
        reason = again.reason if isinstance(again, NoPlace) else "it has a place"
        if reason != fact.reason:
            return f"{reason!r}, and the log says {fact.reason!r}"
        return None if fact.kept is None else kept_differs(planned, view, policy, given, fact.kept, aside)

    def _ranking(self, planned: PlannedFleet, decision: _Decision, policy: Policy) -> CandidateRanking:
        view = self.fleet.replicas[decision.replica]
        key = (view.model, view.revision, policy.text)
        demand = demand_for(self.fleet, view, policy)
        ranking = self._rankings.get(key)
        if ranking is None or ranking.demand != demand:
            ranking = self._rankings[key] = CandidateRanking(demand, policy)
        ranking.sync(planned)
        return ranking


def _policy_of(receipt: Receipt | EvictionReceipt) -> Policy | str:
    """The policy that a receipt names, or what is wrong with it."""
    try:
        policy = parse_policy(receipt.policy)
    except BadPolicy as error:
        return str(error)
    if policy.digest != receipt.policy_digest:
        return f"its policy's digest is {policy.digest}, its receipt says {receipt.policy_digest}"
    return policy


def _difference(again: dict[str, object], was: dict[str, object]) -> str:
    names = [name for name in was if again.get(name) != was[name]]
    told = "; ".join(f"{name} is {again.get(name)!r}, and was {was[name]!r}" for name in names)
    return f"its receipt comes out otherwise: {told}"[:1000]
