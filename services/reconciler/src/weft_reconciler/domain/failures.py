"""Where a model's revisions failed, who keeps away from there, and when that is reason enough to give one up."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.facts.model import Scaled
from weft_contracts.ids import ModelId, NodeId, ReplicaId
from weft_fleet import ModelView, Revision

from weft_reconciler.domain.decision_time import DecisionTime

ENOUGH = 3
"""Failures on so many nodes, or on all that there are, are the model's fault."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a model on one node."""

    at: float
    reason: str
    permanent: bool
    cause: Cause
    recipe: str = ""
    """Digest of what it was to run in; empty: what lay there."""


@dataclass(slots=True)
class Failures:
    """By model, revision and node; the latest comes last."""

    by_model: dict[ModelId, dict[int, dict[NodeId, Failure]]] = field(
        default_factory=dict[ModelId, dict[int, dict[NodeId, Failure]]]
    )
    avoided: dict[ModelId, dict[ReplicaId, frozenset[NodeId]]] = field(
        default_factory=dict[ModelId, dict[ReplicaId, frozenset[NodeId]]]
    )
    """By model and wanted replica: the nodes that it avoids since one had failed there when it was added."""

    def note(self, model: ModelId, revision: int, node: NodeId, failure: Failure) -> None:
        """A replica of a revision failed."""
        failures = self.by_model.setdefault(model, {}).setdefault(revision, {})
        failures.pop(node, None)
        failures[node] = failure

    def note_scaled(self, model: ModelView, fact: Scaled) -> None:
        """Replicas were added, which avoid nodes; others were retired."""
        receipt, avoided = fact.receipt, self.avoided.pop(model.id, {})
        if receipt is not None and fact.add and fact.avoid and fact.revision in model.specs:
            oldest = receipt.decided_at - receipt.failure_memory
            nodes = self._since(model, model.of(fact.revision), oldest).keys() & set(fact.avoid)
            avoided.update(dict.fromkeys(fact.add, frozenset(nodes)) if nodes else {})
        left = {replica: nodes for replica, nodes in avoided.items() if replica not in fact.retire}
        if left:
            self.avoided[model.id] = left

    def forget(self, model: ModelId) -> None:
        """A retry, the end of the model: what was before no longer counts."""
        self.by_model.pop(model, None)

    def begin_revision(self, model: ModelView) -> None:
        """A new revision: only what the one that is kept did still counts, unless the new one runs as that."""
        kept, newest = model.kept, model.newest
        there = self.by_model.pop(model.id, {})
        if kept is None or kept.runs_as(newest):
            return
        left = {number: failures for number, failures in there.items() if model.of(number).runs_as(kept)}
        if left:
            self.by_model[model.id] = left

    def last(self, model: ModelView, revision: Revision) -> Failure | None:
        """The last failure of a revision or of what runs as it, however long ago; None where none is known."""
        there = self.by_model.get(model.id, {})
        found = [
            each for number, by_node in there.items() if model.of(number).runs_as(revision) for each in by_node.values()
        ]
        return max(found, key=lambda failure: failure.at, default=None)

    def recent(self, model: ModelView, revision: Revision, time: DecisionTime) -> Mapping[NodeId, Failure]:
        """By node, those that still count for a revision and for what runs as it; the latest comes last.

        What failed in a recipe that is refused by now says nothing about what it goes on in.
        """
        return self._since(model, revision, time.now - time.timeouts.failure_memory)

    def _since(self, model: ModelView, revision: Revision, oldest: float) -> dict[NodeId, Failure]:
        there = self.by_model.get(model.id, {})
        refused = model.refused_for(revision)
        found = [
            (failure.at, node, failure)
            for number, failures in there.items()
            if model.of(number).runs_as(revision)
            for node, failure in failures.items()
            if failure.at > oldest and failure.recipe not in refused
        ]
        return {node: failure for _, node, failure in sorted(found, key=lambda each: each[0])}


def decisive_failure(failures: Mapping[NodeId, Failure], eligible: int) -> Failure | None:
    """The failure for which a revision is given up, or None while another try makes sense.

    `failures` has the latest last; `eligible` is how many nodes could run it, those where it failed included.
    """
    for failure in failures.values():
        if failure.permanent:
            return failure
    if failures and len(failures) >= min(ENOUGH, max(1, eligible)):
        return list(failures.values())[-1]
    return None
