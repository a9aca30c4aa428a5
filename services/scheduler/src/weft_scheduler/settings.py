"""Settings of the scheduler: how the scorers weigh, and how long a retired replica may take."""

from dataclasses import fields
from typing import Annotated, Literal

from pydantic import Field
from weft_placement import Policy
from weft_runtime.settings import ServiceSettings

from weft_scheduler.domain.rules import Rules

Weight = Annotated[float, Field(ge=0, le=1000)]


class SchedulerSettings(ServiceSettings):
    """What every service has, and the placement policy."""

    placement_apart: Literal["nodes", "no"] = "nodes"
    """Replicas of one model go to different nodes while there are any that fit; or the weights alone decide."""
    placement_idle: Weight = 0.5
    """Weight of nodes with fewer replicas, where a model's strategy is spread."""
    placement_pack: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Weight of the strategy itself: binpack or spread."""
    placement_files: Weight = 0.5
    """Weight of nodes that have the files."""
    placement_devices: Weight = 0.25
    """Weight of fewer devices."""
    placement_slots: Annotated[int, Field(ge=1, le=1000)] = 64
    """Replicas on one node at most."""
    retire_deadline_s: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """Seconds that a retired replica's running requests may take; a drain's own deadline comes first."""

    @property
    def rules(self) -> Rules:
        """The settings as the rules take them."""
        policy = Policy(**{entry.name: getattr(self, f"placement_{entry.name}") for entry in fields(Policy)})
        return Rules(policy=policy, retire_deadline_s=self.retire_deadline_s)
