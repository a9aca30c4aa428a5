"""A claim's parts as a header tells them: weights by their types, the cache layer by layer, what a step takes."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.shape import Cache, LayerCounts, ModelShape
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_placement import ClaimUnknown
from weft_placement.claim import MIB, Need, need_of, offloads_of

KIB = 1 << 10


def spec_of(
    shape: ModelShape | None,
    engine: str = "llama.cpp",
    context: int = 8192,
    concurrency: int = 2,
    **args: ArgumentValue,
) -> ModelSpec:
    return ModelSpec(
        source=PathSource(path="/m"),
        engine=engine,
        context_tokens=context,
        concurrency=concurrency,
        engine_args=args,
        weights=Weights(
            format="gguf" if engine == "llama.cpp" else "safetensors",
            weight_bytes=1000 * MIB,
            kv_bytes_per_token=4 * KIB,
            layers=4,
            heads=8,
            kv_heads=4,
            layer_runs=(LayerRun(4, 200 * MIB, KIB),),
            output_bytes=100 * MIB,
            input_bytes=100 * MIB,
            shape=shape,
        ),
    )


def told(spec: ModelSpec, args: dict[str, ArgumentValue]) -> ModelSpec:
    """The same with these arguments."""
    return spec.model_copy(update={"engine_args": args})


def need(spec: ModelSpec) -> Need:
    return need_of(spec, BUILTIN[spec.engine])


def test_layers_with_a_window_keep_that_and_one_step_however_long_the_context_is() -> None:
    shape = ModelShape(whole=Cache(keys=KIB), windowed=Cache(keys=KIB, values=KIB), window_tokens=1000)
    # 1,000 and a step of 512, in pieces of 256 tokens
    assert 2 * (8192 * KIB + 1536 * 2 * KIB) == need(spec_of(shape)).kv
    assert 2 * (8192 * KIB + 1280 * 2 * KIB) == need(spec_of(shape, micro_batch_tokens=128)).kv
    assert 2 * 1024 * 3 * KIB == need(spec_of(shape, context=1024)).kv


def test_an_engine_that_is_not_known_to_drop_what_lies_before_a_window_keeps_every_token() -> None:
    shape = ModelShape(whole=Cache(keys=KIB), windowed=Cache(keys=KIB, values=KIB), window_tokens=1000)
    halved = shape.model_copy(update={"computed_in": "bfloat16"})
    assert 2 * 8192 * 3 * KIB == need(spec_of(halved, "vllm")).kv


def vllm(counts: LayerCounts, context: int = 8192, /, **args: ArgumentValue) -> ModelSpec:
    """With layers of KiB a token, windows of 1,000 tokens and states of 100 KiB."""
    shape = ModelShape(
        whole=Cache(keys=counts.whole * KIB),
        windowed=Cache(keys=counts.windowed * KIB),
        window_tokens=1000 if counts.windowed else 0,
        state_bytes=counts.state * 100 * KIB,
        counts=counts,
        computed_in="bfloat16",
    )
    return told(spec_of(shape, "vllm", context), args)


@pytest.mark.parametrize(
    ("counts", "args", "blocks", "layers"),
    [
        # 8,192 tokens are 64 blocks of 128; a window and two steps of 2,048 are 40, and one more
        (LayerCounts(whole=2, windowed=10), {}, 64 + 5 * 41, 2),
        (LayerCounts(whole=2, windowed=11), {}, 64 + 6 * 41, 2),
        (LayerCounts(whole=12, windowed=13), {}, 64 + 41, 13),
        (LayerCounts(whole=2, windowed=3), {}, 64 + 2 * 41, 2),
        (LayerCounts(windowed=4), {}, 41, 4),
        (LayerCounts(whole=2, windowed=10), {"max_num_batched_tokens": 256}, 64 + 5 * 13, 2),
        (LayerCounts(whole=2, windowed=10), {"async_scheduling": False}, 64 + 5 * 25, 2),
        (LayerCounts(whole=2, windowed=10), {"enable_chunked_prefill": False}, 64 + 5 * 65, 2),
        # a state of 100 KiB is a block, and two where prefixes are cached
        (LayerCounts(whole=1, state=3), {}, 64 + 3 * 2, 1),
        (LayerCounts(whole=1, state=3), {"enable_prefix_caching": False}, 64 + 3, 1),
        (LayerCounts(whole=2, windowed=2, state=4), {}, 64 + 41 + 2 * 2, 2),
    ],
)
def test_vllm_keeps_sorts_of_layers_in_groups_of_blocks(
    counts: LayerCounts, args: dict[str, ArgumentValue], blocks: int, layers: int
) -> None:
    assert (2 * blocks + 1) * 128 * KIB * layers == need(vllm(counts, **args)).kv


def test_blocks_are_as_long_as_a_state_takes_that_lies_in_one() -> None:
    # 100 KiB are 7 blocks of 16 tokens, 112 tokens in all, of which 8,192 tokens take 74
    counts = LayerCounts(whole=1, state=3)
    assert (2 * (74 + 3 * 2) + 1) * 112 * KIB == need(vllm(counts, block_size=16)).kv


def test_a_model_made_for_embeddings_keeps_all_of_its_prompt_at_once() -> None:
    spec = vllm(LayerCounts(whole=2, windowed=10))
    embeds = spec.model_copy(update={"weights": spec.weights.model_copy(update={"embeds": True})})
    assert (2 * (64 + 5 * 65) + 1) * 128 * KIB * 2 == need(embeds).kv


def test_layers_that_keep_different_amounts_of_a_token_count_as_if_each_kept_every_token() -> None:
    shape = ModelShape(
        whole=Cache(keys=2 * KIB),
        windowed=Cache(keys=10 * 2 * KIB),
        window_tokens=1000,
        counts=LayerCounts(whole=2, windowed=10),
        computed_in="bfloat16",
    )
    assert 2 * 8192 * 22 * KIB == need(spec_of(shape, "vllm")).kv


@given(
    whole=st.integers(0, 60),
    windowed=st.integers(0, 60),
    context=st.integers(1, 1 << 17),
    step=st.integers(1, 8192),
)
def test_a_window_is_never_counted_for_less_than_it_and_two_steps_take(
    whole: int, windowed: int, context: int, step: int
) -> None:
    counts = LayerCounts(whole=whole, windowed=windowed)
    assume(whole + windowed)
    least = whole * context + windowed * min(context, 999 + 2 * step)
    assert 2 * KIB * least <= need(vllm(counts, context, max_num_batched_tokens=step)).kv


def test_keys_and_values_count_each_by_its_own_type() -> None:
    shape = ModelShape(whole=Cache(keys=2 * KIB, values=2 * KIB))
    each = 2 * 8192
    assert (
        each * (2 * KIB * 34 // 64 + 2 * KIB * 18 // 64)
        == need(spec_of(shape, cache_type_k="q8_0", cache_type_v="q4_0")).kv
    )
    assert each * (2 * KIB * 34 // 64 + 2 * KIB) == need(spec_of(shape, cache_type_k="q8_0")).kv


@pytest.mark.parametrize(
    ("computed_in", "args", "sixteenths"),
    [
        ("bfloat16", {}, 16),
        ("float32", {}, 32),
        ("float32", {"dtype": "bfloat16"}, 16),
        ("bfloat16", {"dtype": "float32"}, 32),
        ("strange", {}, 32),
        ("", {}, 32),
        ("bfloat16", {"kv_cache_dtype": "nvfp4"}, 16),
        ("float32", {"kv_cache_dtype": "fp8"}, 8),
        ("bfloat16", {"kv_cache_dtype": "fp8_e4m3"}, 8),
        ("float32", {"kv_cache_dtype": "auto"}, 32),
    ],
)
def test_a_cache_has_the_type_that_the_model_is_computed_in_or_its_own(
    computed_in: str, args: dict[str, ArgumentValue], sixteenths: int
) -> None:
    shape = ModelShape(whole=Cache(keys=2 * KIB, values=2 * KIB), computed_in=computed_in)
    assert 2 * 8192 * 4 * KIB * sixteenths // 16 == need(told(spec_of(shape, "vllm"), args)).kv


def test_a_cache_type_that_is_not_known_is_an_error_and_never_a_small_number() -> None:
    shape = ModelShape(whole=Cache(keys=KIB))
    with pytest.raises(ClaimUnknown, match="kv_cache_dtype is 'int3': want one of auto, float32"):
        need(spec_of(shape, "vllm", kv_cache_dtype="int3"))
    with pytest.raises(ClaimUnknown, match="cache_type_k is 'fp8': want one of f32, f16"):
        need(spec_of(shape, cache_type_k="fp8"))


def test_latent_attention_is_kept_whole_on_each_device_of_several() -> None:
    needed = need(spec_of(ModelShape(whole=Cache(keys=KIB)), "vllm"))
    weights = 1050 * MIB // 4
    assert weights + needed.kv + needed.overhead == needed.on_each("nvidia", 4)
    shared = need(spec_of(ModelShape(whole=Cache(keys=KIB, values=KIB)), "vllm"))
    assert weights + shared.kv // 4 + shared.overhead == shared.on_each("nvidia", 4)


def test_a_state_counts_once_for_each_request_and_makes_up_for_a_cache() -> None:
    spec = spec_of(ModelShape(state_bytes=3 * MIB), concurrency=8)
    bare = spec.model_copy(update={"weights": spec.weights.model_copy(update={"kv_bytes_per_token": 0})})
    assert 8 * 3 * MIB == need(bare).kv == need(bare.model_copy(update={"context_tokens": 64})).kv


def test_what_a_header_lacks_is_why_nothing_is_claimed() -> None:
    fault = "config.json: num_hidden_layers is missing: how many layers there are"
    with pytest.raises(ClaimUnknown, match=f"its memory can't be computed: {fault}"):
        need(spec_of(ModelShape(fault=fault), "vllm"))


@pytest.mark.parametrize(
    ("types", "computed_in", "args", "expected"),
    [
        ({"BF16": 900}, "bfloat16", {}, 900),
        ({"BF16": 900}, "float32", {}, 1800),
        ({"BF16": 900, "F32": 100}, "bfloat16", {}, 950),
        ({"F32": 1000}, "float32", {"dtype": "float16"}, 500),
        ({"F32": 1000}, "", {}, 1000),
        ({"F16": 500}, "", {}, 1000),
        ({"F8_E4M3": 800, "BF16": 50, "F32": 8}, "bfloat16", {}, 854),
        ({"I32": 500, "F16": 100}, "float16", {}, 600),
        ({}, "float32", {}, 1000),
    ],
)
def test_weights_count_as_they_are_computed_in_and_quantised_ones_as_they_lie_there(
    types: dict[str, int], computed_in: str, args: dict[str, ArgumentValue], expected: int
) -> None:
    in_mib = {type: size * MIB for type, size in types.items()}
    shape = ModelShape(whole=Cache(keys=KIB), tensor_bytes=in_mib, computed_in=computed_in)
    assert expected * MIB + expected * MIB // 20 == need(told(spec_of(shape, "vllm"), args)).weights


def test_what_a_step_takes_beyond_the_overhead_is_claimed_beside() -> None:
    cache = Cache(keys=2 * KIB, values=2 * KIB)  # four layers of four heads of 64 values
    small = ModelShape(whole=cache, width=256, inner=1024)
    large = ModelShape(whole=cache, width=8192, inner=28_672)
    overhead = BUILTIN["llama.cpp"].claim
    assert overhead.formula == "header"
    assert overhead.cpu_overhead == need(spec_of(small)).cpu_overhead
    step = 512 * (4 * (5 * 8192 + 3 * 28_672) + 2 * 8192)
    assert overhead.cpu_overhead + step - overhead.step_bytes == need(spec_of(large)).cpu_overhead
    assert overhead.overhead + step - overhead.step_bytes == need(spec_of(large)).overhead
    half = need(spec_of(large, micro_batch_tokens=256)).cpu_overhead
    assert overhead.cpu_overhead + step // 2 - overhead.step_bytes == half


def test_long_contexts_cost_a_mask_and_without_flash_attention_the_scores_of_all_heads() -> None:
    shape = ModelShape(whole=Cache(keys=KIB), width=256, inner=1024)
    windowed = shape.model_copy(update={"windowed": Cache(keys=KIB), "window_tokens": 64})
    claim = BUILTIN["llama.cpp"].claim
    assert claim.formula == "header"
    values = 512 * 4 * (5 * 256 + 3 * 1024) - claim.step_bytes + claim.cpu_overhead
    long = 131_072
    assert values + 512 * 2 * long == need(spec_of(shape, context=long)).cpu_overhead
    assert values + 512 * 4 * long == need(spec_of(windowed, context=long)).cpu_overhead
    plain = need(spec_of(shape, context=long, flash_attention=False)).cpu_overhead
    assert values + 512 * (2 + 4 * 8) * long == plain


def test_a_part_of_the_layers_on_an_accelerator_counts_their_cache_whole() -> None:
    shape = ModelShape(whole=Cache(keys=KIB), windowed=Cache(keys=3 * KIB), window_tokens=64)
    kept = need(spec_of(shape, gpu_layers=2))
    assert 2 * 8192 * KIB == kept.kv
    assert kept == offloads_of(spec_of(shape), BUILTIN["llama.cpp"])[1]


def test_a_shape_that_only_a_newer_worker_tells_makes_no_other_file() -> None:
    told = spec_of(ModelShape(whole=Cache(keys=KIB))).weights
    other = spec_of(ModelShape(whole=Cache(keys=2 * KIB))).weights
    untold = spec_of(None).weights
    assert told.same_as(untold)
    assert untold.same_as(told)
    assert told.same_as(told)
    assert not told.same_as(other)

    counted = told.model_copy(update={"shape": ModelShape(whole=Cache(keys=KIB), counts=LayerCounts(whole=4))})
    otherwise = told.model_copy(update={"shape": ModelShape(whole=Cache(keys=KIB), counts=LayerCounts(whole=3))})
    assert told.same_as(counted)
    assert counted.same_as(told)
    assert not counted.same_as(other)
    assert not counted.same_as(otherwise)
