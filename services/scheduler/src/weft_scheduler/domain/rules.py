"""What the scheduler's rules are set to."""

from dataclasses import dataclass, field

from weft_placement import Policy


@dataclass(frozen=True, slots=True)
class Rules:
    """Times are seconds."""

    policy: Policy = field(default_factory=Policy)
    retire_deadline_s: float = 30.0
    batch: int = 32
    """Replicas in one batch."""
    look_again_s: float = 60.0
    """A replica without a place is looked at again after so long, whatever the log says."""
