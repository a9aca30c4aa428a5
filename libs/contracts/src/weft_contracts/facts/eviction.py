"""What an eviction is decided on, and the record of one such decision."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Value
from weft_contracts.facts.sizing import MOST_GATEWAYS, GatewayReading, Seconds
from weft_contracts.ids import ModelId

MOST_USES = 64
"""Models whose last use one receipt tells: those that an eviction was weighed among, the longest idle first."""


class EvictionPolicy(Value, frozen=True):
    """The figures that evictions are decided by."""

    idle_s: Annotated[float, Field(ge=0, le=86400)] = 30.0
    """Nothing of a model ran or waited for so long before a replica of it may be ended for another."""
    settled_s: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """A replica that became ready less than so long ago is not ended for another."""
    turn_s: Annotated[float, Field(ge=0, le=86400)] = 300.0
    """A model that gave way to another doesn't have that one give way to it for so long."""
    room_s: Annotated[float, Field(ge=1, le=86400)] = 120.0
    """For so long what becomes free is kept for the replica that it was made for."""


class ModelUse(Value, frozen=True):
    """What was known of a model's last use."""

    model: ModelId
    known: bool = False
    """There is a gateway, and each one's signal is known."""
    idle_s: Seconds = 0.0
    """Nothing of it ran or waited for so long at least; 0: something does, or it isn't known."""
    gateways: Annotated[
        tuple[GatewayReading, ...], Field(max_length=MOST_GATEWAYS, exclude_if=lambda readings: not readings)
    ] = ()
    """What each gateway said. Only of the model that the fact is about."""


class UsesRead(Value, frozen=True):
    """What a rule read of signals, and the figures that it went by."""

    rule: EvictionPolicy = EvictionPolicy()
    uses: Annotated[tuple[ModelUse, ...], Field(max_length=MOST_USES)] = ()


class EvictionReceipt(Value, frozen=True):
    """The record of one eviction: with the log up to `position`, enough to compute it again."""

    position: int
    """The log's last sequence that the decision had folded."""
    policy: str
    """By which the replica that waits is placed."""
    policy_digest: str
    seed: int
    trigger: str
    """The event id that asked for the replica that waits."""
    decided_at: float
    """Seconds since the epoch, as given to the decision."""
    read: UsesRead
