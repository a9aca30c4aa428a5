"""What a model's number of replicas is decided on, and the record of one such decision."""

from typing import Annotated

from pydantic import Field

from weft_contracts.facts.fact import Value

Seconds = Annotated[float, Field(ge=0, le=1e9)]
TokensPerSecond = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
MOST_GATEWAYS = 128
"""Whose signals are read at once. Of more, it is not known what there is to do."""


class ScalingPolicy(Value, frozen=True):
    """The figures that sizes are decided by."""

    up_after_s: Annotated[float, Field(ge=0, le=3600)] = 3.0
    """All that serve are busy for so long before there are more."""
    up_cooldown_s: Annotated[float, Field(ge=0, le=3600)] = 10.0
    """Between the last change of the size and one more."""
    down_after_s: Annotated[float, Field(ge=1, le=86400)] = 300.0
    """It is idle for so long, or one fewer would do, before there is one fewer."""
    down_cooldown_s: Annotated[float, Field(ge=0, le=86400)] = 60.0
    """Between the last change of the size and one fewer."""
    spare: Annotated[float, Field(ge=0.05, le=0.95)] = 0.3
    """Part of the places that must stay free for one fewer to do."""
    stale_s: Annotated[float, Field(ge=2, le=600)] = 5.0
    """What a gateway said longer ago is not known any more."""
    gone_s: Annotated[float, Field(ge=2, le=86400)] = 60.0
    """A gateway that is silent for so long is no more."""
    tokens_per_s: TokensPerSecond = 0.0
    """Output tokens a second that one replica makes at most; 0: not told, and nothing goes by tokens."""
    token_share: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Part of what all replicas make at most from which on they are busy, however few requests they run."""


class OwnScaling(Value, frozen=True):
    """Figures of one model's own, in the place of the mesh's. What is None is the mesh's."""

    up_after_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    up_cooldown_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    down_after_s: Annotated[float, Field(ge=1, le=86400)] | None = None
    down_cooldown_s: Annotated[float, Field(ge=0, le=86400)] | None = None
    spare: Annotated[float, Field(ge=0.05, le=0.95)] | None = None
    tokens_per_s: TokensPerSecond | None = None

    @property
    def said(self) -> dict[str, float]:
        """Those that are the model's own."""
        return self.model_dump(exclude_none=True)

    def over(self, policy: ScalingPolicy) -> ScalingPolicy:
        """The figures that the model is sized by, where the mesh's are these."""
        return policy.model_copy(update=self.said) if self.said else policy


class GatewayReading(Value, frozen=True):
    """What one gateway's last signal said of a model."""

    gateway: Annotated[str, Field(max_length=80)]
    age_s: Seconds
    known: bool = True
    """False: it is too old, or it had no room for this model."""
    running: int = 0
    waiting: int = 0
    """In line for a busy replica."""
    loading: int = 0
    """For a replica that loads."""
    idle_s: Annotated[Seconds, Field(exclude_if=lambda idle: not idle)] = 0.0
    """Since something of it ran there; 0: something does, or it tells nothing of it."""


class DemandSeen(Value, frozen=True):
    """What there was to do for a model, and for how long it had been so."""

    gateways: Annotated[tuple[GatewayReading, ...], Field(max_length=MOST_GATEWAYS)] = ()
    known: bool = False
    """There is a gateway, and each one's signal is known."""
    busy_s: Seconds = 0.0
    """All that serve are busy, with none that got ready meanwhile; 0: they aren't."""
    ready: Annotated[int, Field(ge=0)] | None = None
    """Replicas that served at the last look; none: not told."""
    most_running: int = Field(default=0, ge=0)
    """Requests that ran at once since then, at the look at which most did. A look may fall between two requests."""
    idle_s: Seconds = 0.0
    """Nothing runs or waits, and that is known; 0: something does, or it isn't known."""
    spare_s: Seconds = 0.0
    """One fewer would do; 0: it wouldn't."""
    tokens_per_s: TokensPerSecond | None = None
    """Output tokens of all replicas, over the last seconds in which it was known and no replica got ready or went;
    none: not known, or nothing goes by it."""
    asked: Annotated[str, Field(max_length=80)] = ""
    """The request by which a gateway asked for a first replica; empty: none did."""

    @property
    def running(self) -> int:
        return sum(each.running for each in self.gateways if each.known)

    @property
    def waiting(self) -> int:
        return sum(each.waiting for each in self.gateways if each.known)

    @property
    def loading(self) -> int:
        return sum(each.loading for each in self.gateways if each.known)

    @property
    def wanted(self) -> int:
        """Requests that are known of, wherever they stand."""
        return self.running + self.waiting + self.loading


class SizingReceipt(Value, frozen=True):
    """The record of one size: with the log up to `position`, enough to compute it again."""

    position: int
    """The log's last sequence that the decision had folded."""
    decided_at: float
    """Seconds since the epoch, as given to the decision."""
    seed: int
    policy: ScalingPolicy
    seen: DemandSeen
