"""Aliases: names that stand for several models, of which one answers each request."""

from typing import Annotated, Literal

from pydantic import Field

from weft_contracts.facts.fact import Value
from weft_contracts.ids import ModelId

AliasRule = Literal["weights", "order"]
"""How an alias chooses: a draw by its targets' weights, or the first of them that can take a request."""
MOST_TARGETS = 16
MOST_WEIGHT = 10_000
MOST_ALIASES = 256


class AliasTarget(Value, frozen=True):
    """A model that an alias stands for. It is a model and no alias: there are no chains."""

    model: ModelId
    weight: Annotated[int, Field(ge=1, le=MOST_WEIGHT)] = 1
    """Its share of the requests beside the others' weights. Where an alias goes by order, it says nothing."""


AliasTargets = Annotated[tuple[AliasTarget, ...], Field(min_length=1, max_length=MOST_TARGETS)]
"""Each model once; where an alias goes by order, the one to prefer first."""
