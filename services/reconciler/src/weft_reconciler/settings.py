"""The reconciler's settings."""

from typing import Annotated

from pydantic import Field
from weft_contracts.facts.sizing import ScalingPolicy
from weft_runtime.settings import ServiceSettings


class ReconcilerSettings(ServiceSettings):
    """Environment variables `WEFT_…`, besides those that every service has."""

    deploy_wait: Annotated[float, Field(gt=0, le=600)] = 10.0
    """Seconds that a deploy waits for a healthy node, and for what nodes find on their disks."""
    lost_grace: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """Seconds after the reconciler's start in which a node that was offline before may still return."""
    failure_memory: Annotated[float, Field(gt=0, le=86400)] = 3600.0
    """Seconds for which a failure on a node counts against a model there."""
    scale_up_after: Annotated[float, Field(ge=0, le=3600)] = 3.0
    """Seconds for which all replicas of a model are busy before it gets more."""
    scale_up_cooldown: Annotated[float, Field(ge=0, le=3600)] = 10.0
    """Seconds between a change of a model's size and more replicas."""
    scale_down_after: Annotated[float, Field(ge=1, le=86400)] = 300.0
    """Seconds for which a model is idle, or one replica fewer would do, before it gets one fewer."""
    scale_down_cooldown: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """Seconds between a change of a model's size and one replica fewer."""
    scale_spare: Annotated[float, Field(ge=0.05, le=0.95)] = 0.3
    """Part of the places that must stay free for one replica fewer to do."""
    scale_token_share: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Part of the tokens a second that a model's replicas make at most from which on they are busy."""
    demand_stale: Annotated[float, Field(ge=2, le=600)] = 5.0
    """Seconds after which what a gateway said of its requests is not known any more."""
    gateway_gone: Annotated[float, Field(ge=2, le=86400)] = 60.0
    """Seconds of silence after which a gateway is no more."""

    @property
    def scaling(self) -> ScalingPolicy:
        """The figures that models are sized by."""
        return ScalingPolicy(
            up_after_s=self.scale_up_after,
            up_cooldown_s=self.scale_up_cooldown,
            down_after_s=self.scale_down_after,
            down_cooldown_s=self.scale_down_cooldown,
            spare=self.scale_spare,
            token_share=self.scale_token_share,
            stale_s=self.demand_stale,
            gone_s=self.gateway_gone,
        )
