"""Settings of the scheduler: how long a retired replica may take, and what may end for another."""

from typing import Annotated

from pydantic import Field
from weft_contracts.facts.eviction import EvictionPolicy
from weft_runtime.settings import ServiceSettings

from weft_scheduler.domain.rules import Rules


class SchedulerSettings(ServiceSettings):
    """What every service has, the retired' time, and the figures of evictions."""

    retire_deadline_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """Seconds that a retired replica's running requests may take; a drain's own deadline comes first."""
    evict_idle_s: Annotated[float, Field(ge=1, le=86_400)] = 30.0
    """Seconds for which a model was not used before a replica of it may end for another."""
    evict_settled_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """Seconds for which a replica was ready before it may end for another."""
    evict_turn_s: Annotated[float, Field(ge=0, le=86_400)] = 300.0
    """Seconds for which a model that made room for another gets none of that one's."""

    @property
    def rules(self) -> Rules:
        """The settings as the rules take them. Room is kept for as long as what ends may take, and a minute more."""
        eviction = EvictionPolicy(
            idle_s=self.evict_idle_s,
            settled_s=self.evict_settled_s,
            turn_s=self.evict_turn_s,
            room_s=min(self.retire_deadline_s + 60, 86_400),
        )
        return Rules(retire_deadline_s=self.retire_deadline_s, eviction=eviction)
