"""What the scheduler's rules are set to."""

from dataclasses import dataclass, field

from weft_contracts.facts.eviction import EvictionPolicy


@dataclass(frozen=True, slots=True)
class Rules:
    """Times are seconds."""

    retire_deadline_s: float = 30.0
    batch: int = 32
    """Replicas in one batch."""
    eviction: EvictionPolicy = field(default_factory=EvictionPolicy)
    evict_again_s: float = 1.0
    """Time alone may let a replica end for another: it is looked at again after so long."""
    weigh_again_s: float = 10.0
    """What would make room for a replica that was told why it has none is asked again after so long."""
    look_again_s: float = 60.0
    """A replica without a place is looked at again after so long, whatever the log says."""
