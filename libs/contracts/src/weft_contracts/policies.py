"""A placement policy as an admin tells it: what comes first, and how scorers weigh against one another."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from weft_contracts.facts.fact import Value

NAME = r"^[a-z][a-z0-9-]{0,62}$"
PolicyName = Annotated[str, Field(pattern=NAME)]
Apart = Literal["zones", "nodes", "no"]
Slots = Annotated[int, Field(ge=1, le=1000)]
BUILTIN_NAMES = ("balanced", "binpack", "spread")
"""Those that Weft comes with; they can't be told anew."""
DEFAULT_NAME = "balanced"
MOST_POLICIES = 32
"""Beside those that Weft comes with."""
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]


class PolicyWeights(Value, frozen=True):
    """How much each scorer counts beside the others; 0: not at all."""

    idle: Weight = 0.0
    """Nodes with fewer replicas."""
    binpack: Weight = 0.0
    """What fills begun devices."""
    spread: Weight = 0.0
    """What leaves most free."""
    snug: Weight = 0.0
    """The smallest devices that hold it."""
    files: Weight = 0.0
    """Nodes that have the files."""
    devices: Weight = 0.0
    """Fewer devices."""

    @model_validator(mode="after")
    def _one_counts(self) -> Self:
        if not any(getattr(self, name) for name in type(self).model_fields):
            raise ValueError("all weights are 0: want one above 0")
        return self


class PlacementPolicy(Value, frozen=True):
    """A policy of an admin's own."""

    name: PolicyName
    apart: Apart = "zones"
    """Whether replicas of one model keep to different nodes, and among those to different zones, before weights."""
    slots: Slots = 64
    """Replicas on one node at most."""
    weights: PolicyWeights
