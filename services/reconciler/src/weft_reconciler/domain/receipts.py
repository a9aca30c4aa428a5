"""What a decision about a model's replicas rests on, written down, and the time of that decision got back from it."""

from weft_contracts.facts.rollout import ReconcilingReceipt

from weft_reconciler.domain.decision_time import DecisionTime, Timeouts
from weft_reconciler.domain.state import State


def receipt_of(state: State, time: DecisionTime) -> ReconcilingReceipt:
    """The record of a decision that is made now."""
    return ReconcilingReceipt(
        position=state.fleet.position,
        decided_at=time.now,
        seed=time.seed,
        looked_since=time.since,
        return_grace=time.timeouts.return_grace,
        failure_memory=time.timeouts.failure_memory,
    )


def time_of(receipt: ReconcilingReceipt) -> DecisionTime:
    """The time that it was decided at; what bounds the waits of deploys is no part of such a decision."""
    timeouts = Timeouts(return_grace=receipt.return_grace, failure_memory=receipt.failure_memory)
    return DecisionTime(receipt.decided_at, receipt.looked_since, timeouts, receipt.seed)
