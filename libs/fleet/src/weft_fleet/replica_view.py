"""A replica: what is wanted of it, where it went and what its runs say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from weft_contracts.commit import Cause
from weft_contracts.facts.replica import Placed, ReplicaFact, Unplaceable
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
    unplaceable: Unplaceable | None = None
    evicted: bool = False
    members: tuple[Member, ...] = ()
    epoch: int = 0
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
            placed = _without_candidates(fact)
            return changed(view, placed=placed, unplaceable=None, members=fact.members, epoch=fact.epoch, runs=runs)
        case "unplaceable":
            return changed(view, unplaceable=fact)
        case "evicted":
            return changed(view, evicted=True)
        case _:
            assert_never(fact)


def _without_candidates(fact: Placed) -> Placed:
    """Eight candidates are two fifths of what there is to say of a replica in a snapshot."""
    return fact.model_copy(update={"receipt": fact.receipt.model_copy(update={"candidates": ()})})
