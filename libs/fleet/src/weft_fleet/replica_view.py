"""A replica: what is wanted of it, where it went and what its runs say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from weft_contracts.commit import Cause
from weft_contracts.facts.eviction import UsesRead
from weft_contracts.facts.replica import KeptForNow, Placed, ReplicaFact, Unplaceable
from weft_contracts.facts.values import Member
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_contracts.states import ReplicaState

from weft_fleet.changed import changed
from weft_fleet.run_view import RunView


@dataclass(frozen=True)
class ReplicaView:
    """One replica, from the `scaled` that added it."""

    id: ReplicaId
    model: ModelId
    revision: int
    number: int
    digest: str
    """The digest of its revision's spec."""
    cause: Cause
    """The cause of the `scaled` that added it."""
    avoid: tuple[str, ...] = ()
    added_at: float = 0.0
    wanted: bool = True
    """False once retired."""
    retire_cause: Cause | None = None
    """The cause of the `scaled` or `deleted` that retired it."""
    retire_why: str = ""
    sequence: int = 0
    """The sequence of the replica aggregate's last commit; 0: it has none."""
    placed: Placed | None = None
    """Without its candidates, which the log keeps: nothing that is decided asks for them."""
    score: float = 0.0
    """By which its place was chosen: of the candidate that became its leader."""
    unplaceable: Unplaceable | None = None
    evicted: bool = False
    evicted_why: str = ""
    members: tuple[Member, ...] = ()
    epoch: int = 0
    restarted: str = ""
    """Of a group: why all its ranks started anew the last time."""
    runs: Mapping[NodeId, RunView] = field(default_factory=dict[NodeId, RunView])
    """By node, under the present epoch; a member that has said nothing yet is absent."""
    gone: frozenset[NodeId] = frozenset()
    """Its members' nodes that are offline or removed."""
    holds_claim: bool = False
    """Whether it holds a claim on some node."""

    @property
    def leader(self) -> Member | None:
        """The member of rank 0; None before it is placed."""
        return next((member for member in self.members if member.rank == 0), None)

    @property
    def broken(self) -> Sequence[RunView]:
        """Of a group that should run: the ranks that have ended, so that all must start anew. Empty where one failed
        for good, since then the group goes."""
        if len(self.members) < 2 or not self.wanted or self.evicted:
            return ()
        if any(run.phase == "failed" for run in self.runs.values()):
            return ()
        return [run for run in self.runs.values() if run.phase == "stopped"]

    @property
    def state(self) -> ReplicaState:
        """The one word that people see."""
        if not self.wanted or self.evicted:
            return "stopping" if self.holds_claim else "stopped"
        if self.placed is None:
            return "unplaceable" if self.unplaceable is not None else "added"
        phases = {run.phase for run in self.runs.values()}
        if "failed" in phases:
            return "failed"
        if self.gone:
            return "lost"
        if "stopped" in phases:
            return "stopped"
        if "stopping" in phases:
            return "stopping"
        if not phases:
            return "placed"
        if len(self.runs) < len(self.members) or phases & {"installing", "fetching", "loading"}:
            return "loading"
        return "degraded" if "degraded" in phases else "ready"


def evolve_replica(view: ReplicaView, fact: ReplicaFact) -> ReplicaView:
    """The replica after one of its own facts."""
    match fact.type:
        case "placed":
            runs = {node: run for node, run in view.runs.items() if run.epoch == fact.epoch}
            return changed(
                view,
                placed=_without_candidates(fact),
                score=_score_of(fact),
                unplaceable=None,
                members=fact.members,
                epoch=fact.epoch,
                runs=runs,
            )
        case "unplaceable":
            return changed(view, unplaceable=_without_uses(fact))
        case "restarted":
            runs = {node: run for node, run in view.runs.items() if run.epoch == fact.epoch}
            return changed(view, epoch=fact.epoch, runs=runs, restarted=fact.why)
        case "evicted":
            return changed(view, evicted=True, evicted_why=fact.why)
        case _:
            assert_never(fact)


def _score_of(fact: Placed) -> float:
    leader = next((member.node for member in fact.members if member.rank == 0), None)
    return next((each.score for each in fact.receipt.candidates if each.node == leader), 0.0)


def _without_candidates(fact: Placed) -> Placed:
    """Eight candidates are two fifths of what there is to say of a replica in a snapshot."""
    return fact.model_copy(update={"receipt": fact.receipt.model_copy(update={"candidates": ()})})


def _without_uses(fact: Unplaceable) -> Unplaceable:
    """What was read of signals is asked of the log alone."""
    return fact if fact.kept is None else fact.model_copy(update={"kept": KeptForNow(why=fact.kept.why, read=_NOTHING)})


_NOTHING = UsesRead()
