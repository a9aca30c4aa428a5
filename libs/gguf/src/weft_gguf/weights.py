"""A model's weights out of its GGUF header: what a claim is computed from."""

from itertools import groupby
from typing import Final

from weft_contracts.facts.layers import MOST_LAYER_RUNS, LayerRun
from weft_contracts.facts.values import Weights

from weft_gguf.gguf_header import GgufHeader

KV_VALUE_BYTES: Final = 2
"""Bytes of one cached value: half precision."""


def weights_of_header(header: GgufHeader) -> Weights:
    """The weights of a GGUF file, or of several that make one model."""
    runs = layer_runs(header)
    return Weights(
        format="gguf",
        architecture=header.architecture,
        # of several files all that they hold, as it has always been told: the others are little but tensors
        weight_bytes=header.tensor_bytes if header.splits == 1 else header.file_bytes,
        kv_bytes_per_token=round(header.kv_bytes_per_token(KV_VALUE_BYTES)),
        layers=header.layers,
        heads=header.heads,
        kv_heads=max(header.kv_heads, default=0),
        context_tokens=header.context_length,
        embeds=header.embeds,
        layer_runs=runs,
        output_bytes=header.output_bytes if runs else 0,
        input_bytes=header.input_bytes if runs else 0,
        shape=header.shape,
    )


def layer_runs(header: GgufHeader) -> tuple[LayerRun, ...]:
    """A header's layers from the first on; nothing where there are none, or too many sorts of them to be told."""
    cached = header.layer_kv_bytes(KV_VALUE_BYTES) or (0.0,) * header.layers
    if len(cached) != header.layers:
        return ()
    layers = zip(header.layer_bytes, (round(each) for each in cached), strict=True)
    runs = tuple(LayerRun(len(list(alike)), *each) for each, alike in groupby(layers))
    return runs if len(runs) <= MOST_LAYER_RUNS else ()
