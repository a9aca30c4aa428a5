"""Layers of a model, where a claim is computed from single ones."""

from typing import Annotated, NamedTuple

from pydantic import Field

from weft_contracts.facts.fact import Count

MOST_LAYER_RUNS = 256
"""Runs of like layers that are told of a model."""


class LayerRun(NamedTuple):
    """Layers of a model that follow one another and are alike; on the wire a list of three numbers."""

    layers: Annotated[int, Field(ge=1, le=65535)]
    bytes: Count
    """Weights of each."""
    kv_bytes_per_token: Count
    """Of each, with values of 16 bits."""
