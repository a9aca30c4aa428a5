"""Given models as `bench/device_claims.py` made them, what a claim on an accelerator counts beside weights and cache.

The figures are what NVIDIA's driver said that a host held of an H100 (llama.cpp 2026.10.11549, driver 580.159.04).
"""

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.shape import Cache, ModelShape
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_placement.claim import Need, need_of

MIB = 1 << 20
LAYERS, HEADS, WIDTH = 6, 16, 1024


def made(bytes: int, keys: int, values: int, kv_heads: int, context: int, requests: int) -> ModelSpec:
    """A model of six layers that keep so many values of a token each."""
    cache = Cache(keys=2 * keys * LAYERS, values=2 * values * LAYERS)
    return ModelSpec(
        source=PathSource(path="/m"),
        engine="llama.cpp",
        context_tokens=context,
        concurrency=requests,
        weights=Weights(
            format="gguf",
            weight_bytes=bytes,
            kv_bytes_per_token=cache.bytes,
            layers=LAYERS,
            heads=HEADS,
            kv_heads=kv_heads,
            layer_runs=(LayerRun(LAYERS, bytes // LAYERS, 0),),
            shape=ModelShape(whole=cache, width=WIDTH, inner=2 * WIDTH),
        ),
    )


def needed(spec: ModelSpec, draft: Weights | None = None, /, **arguments: ArgumentValue) -> Need:
    return need_of(spec.model_copy(update={"engine_args": arguments, "draft": draft}), BUILTIN["llama.cpp"])


PLAIN = made(172 * MIB, 512, 512, 8, 4096, 8)
LONG = made(172 * MIB, 512, 512, 8, 8192, 8)
LATENT = made(155 * MIB, 160, 0, 1, 8192, 8)
UNEVEN = made(155 * MIB, 16 * 128, 16 * 64, 16, 8192, 2)
DRAFT = made(19 * MIB, 128, 128, 2, 4096, 8).weights


@pytest.mark.parametrize(
    ("spec", "draft", "arguments", "seen"),
    [
        (PLAIN, None, {}, 1251),
        (LONG, None, {"cache_type_k": "q8_0", "cache_type_v": "q4_0"}, 1303),
        (PLAIN, DRAFT, {"draft_model": "/d"}, 1423),
        (LATENT, None, {}, 1259),
        (UNEVEN, None, {}, 1629),
    ],
    ids=["plain", "a quantised cache", "a draft model", "latent attention", "keys and values of two sizes"],
)
def test_a_claim_holds_what_a_device_was_seen_to_hold_and_a_fifth_more_at_most(
    spec: ModelSpec, draft: Weights | None, arguments: dict[str, ArgumentValue], seen: int
) -> None:
    claim = needed(spec, draft, **arguments).on_each("nvidia", 1) / MIB
    assert seen <= claim <= 1.2 * seen


def test_one_layers_cache_of_another_type_counts_in_16_bits_too() -> None:
    plain = needed(PLAIN).overhead
    # 4,096 tokens of 8 requests, 512 values of 2 bytes
    one = 4096 * 8 * 512 * 2
    assert plain + one == needed(PLAIN, cache_type_k="q8_0").overhead
    assert plain + 2 * one == needed(PLAIN, cache_type_k="q4_0", cache_type_v="q4_0").overhead
    assert plain + one == needed(PLAIN, cache_type_k="bf16", cache_type_v="f16").overhead


def test_heads_without_a_kernel_cost_the_scores_of_all_heads_on_an_accelerator_alone() -> None:
    scores = 4 * HEADS * 512 * 8192
    even, uneven = needed(made(155 * MIB, 16 * 96, 16 * 96, 16, 8192, 2)), needed(UNEVEN)
    assert even.overhead + scores + 32 * MIB == uneven.overhead
    assert even.cpu_overhead == uneven.cpu_overhead


def test_a_type_without_a_kernel_costs_them_too() -> None:
    with_kernel, without = needed(LONG, cache_type_k="q4_0"), needed(LONG, cache_type_k="iq4_nl")
    assert with_kernel.overhead + 4 * HEADS * 512 * 8192 + 32 * MIB == without.overhead


@pytest.mark.parametrize(("keys", "has"), [(576, True), (320, True), (160, False)])
def test_latent_attention_of_the_usual_sizes_has_a_kernel(keys: int, has: bool) -> None:
    of = needed(made(155 * MIB, keys, 0, 1, 8192, 1)).overhead
    assert has == (of == needed(made(155 * MIB, 16 * 64, 16 * 64, 16, 8192, 1)).overhead)


def test_flash_attention_that_was_switched_off_counts_once() -> None:
    scores = 4 * HEADS * 512 * 8192
    assert needed(UNEVEN, flash_attention=False).overhead < needed(UNEVEN).overhead + scores


def test_an_engine_whose_overhead_counts_its_steps_counts_nothing_beside() -> None:
    claim = BUILTIN["vllm"].claim
    assert claim.formula == "header"
    spec = made(155 * MIB, 160, 64, 1, 8192, 1).model_copy(update={"engine": "vllm"})
    assert claim.overhead == need_of(spec, BUILTIN["vllm"]).overhead
