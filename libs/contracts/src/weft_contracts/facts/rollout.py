"""How a new revision takes the place of the one before, and what a decision about replicas rests on."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Value

MaxSurge = Annotated[int, Field(ge=0, le=1_000)]
MaxUnavailable = Annotated[int, Field(ge=0, le=10_000)]
ProgressSeconds = Annotated[float, Field(ge=0, le=604_800, allow_inf_nan=False)]


class RolloutRules(Value, frozen=True):
    """What a rollout may do beyond what should serve, and below it. By default nothing goes before another serves."""

    max_surge: MaxSurge = 1
    """Replicas that there may be at one moment beyond those that should serve."""
    max_unavailable: MaxUnavailable = 0
    """Replicas that may be missing of those that should serve: where one more has no room, one goes first."""
    progress_s: ProgressSeconds = 14_400.0
    """Within so many seconds one more of the new revision must be ready, or it is taken back; 0: however long."""


class ReconcilingReceipt(Value, frozen=True):
    """With the log up to `position`, all that one decision about a model's replicas rests on."""

    position: int
    """The log's last sequence that the decision had folded."""
    decided_at: float
    """Seconds since the epoch, as given to the decision."""
    seed: int = 0
    looked_since: float = 0.0
    """From when on this decider had looked without a gap, in seconds since the epoch."""
    return_grace: float = 0.0
    """Its settings, in seconds: for a node that went offline before it looked."""
    failure_memory: float = 0.0
    """And for how long a failure on a node counts."""
