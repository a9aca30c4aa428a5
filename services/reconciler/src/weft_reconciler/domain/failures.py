"""Where a model's newest revision failed, and when that is reason enough to give it up."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weft_contracts.commit import Cause
from weft_contracts.ids import ModelId, NodeId

from weft_reconciler.domain.moment import Moment

ENOUGH = 3
"""Failures on so many nodes, or on all that there are, are the model's fault."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The last failure of a model on one node."""

    at: float
    reason: str
    permanent: bool
    cause: Cause


@dataclass(slots=True)
class Failures:
    """By model and node, since its last revision or retry; the latest comes last."""

    by_model: dict[ModelId, dict[NodeId, Failure]] = field(default_factory=dict[ModelId, dict[NodeId, Failure]])

    def note(self, model: ModelId, node: NodeId, failure: Failure) -> None:
        """A replica of the model's newest revision failed."""
        failures = self.by_model.setdefault(model, {})
        failures.pop(node, None)
        failures[node] = failure

    def forgive(self, model: ModelId) -> None:
        """A new revision, a retry, the end of the model: what was before no longer counts."""
        self.by_model.pop(model, None)

    def recent(self, model: ModelId, moment: Moment) -> Mapping[NodeId, Failure]:
        """By node, those that still count."""
        found = self.by_model.get(model, {})
        oldest = moment.now - moment.limits.failure_memory
        return {node: failure for node, failure in found.items() if failure.at > oldest}


def verdict(failures: Mapping[NodeId, Failure], eligible: int) -> Failure | None:
    """The failure for which a model is unservable, or None while another try makes sense.

    `failures` has the latest last; `eligible` is how many nodes could run it, those where it failed included.
    """
    for failure in failures.values():
        if failure.permanent:
            return failure
    if failures and len(failures) >= min(ENOUGH, max(1, eligible)):
        return list(failures.values())[-1]
    return None
