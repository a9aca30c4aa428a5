"""Claims are computed; what can't be computed is a named error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import Scalar
from weft_contracts.facts.machine import PressureChanged
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import ModelSpec, Weights
from weft_contracts.subjects import machine
from weft_placement import ClaimUnknown
from weft_placement.claim import GIB, MIB, Need, need_of
from weft_placement.device_memory import RESERVED_BYTES, device_memory
from weft_placement.fit.several_devices import divides
from weft_testing.fleet_log import FleetLog

WEIGHTS = Weights(format="gguf", weight_bytes=1000 * MIB, kv_bytes_per_token=1024, kv_heads=2)


def llama(weights: Weights, context: int = 1024, concurrency: int = 8) -> ModelSpec:
    return ModelSpec(
        source=PathSource(path="/m"),
        engine="llama.cpp",
        context_tokens=context,
        concurrency=concurrency,
        weights=weights,
    )


def need(spec: ModelSpec) -> Need:
    return need_of(spec, BUILTIN[spec.engine])


def test_a_claim_is_weights_and_cache_and_overhead():
    expected = 1050 * MIB + 1024 * 1024 * 8 + 160 * MIB
    assert expected == need(llama(WEIGHTS)).on_each("cpu", 1)


def test_context_and_concurrency_make_the_cache():
    one = need(llama(WEIGHTS, 1024, 1)).on_each("cpu", 1)
    assert 1024 * 1024 == need(llama(WEIGHTS, 1024, 2)).on_each("cpu", 1) - one
    assert 1024 * 1024 == need(llama(WEIGHTS, 2048, 1)).on_each("cpu", 1) - one


@pytest.mark.parametrize(
    ("keys", "values", "block"),
    [
        (None, None, 64),
        ("f16", "bf16", 64),
        ("f32", "f32", 128),
        ("q8_0", "q8_0", 34),
        ("q5_1", "q5_1", 24),
        ("q5_0", "q5_0", 22),
        ("q4_1", "q4_1", 20),
        ("q4_0", "iq4_nl", 18),
        ("q4_0", "q8_0", 34),
        ("q8_0", None, 64),
    ],
)
def test_the_cache_counts_by_its_type_and_by_the_larger_of_two(
    keys: str | None, values: str | None, block: int
) -> None:
    """`block`: bytes of 32 cached values, as ggml lays them out; a value of 16 bits makes 64."""
    arguments = {"cache_type_k": keys, "cache_type_v": values}
    given = {name: type for name, type in arguments.items() if type is not None}
    spec = llama(WEIGHTS).model_copy(update={"engine_args": given})
    assert 1024 * block // 64 * 1024 * 8 == need(spec).kv


def test_every_cache_type_that_llama_cpp_takes_can_be_claimed_and_no_other() -> None:
    for name in ("cache_type_k", "cache_type_v"):
        for type in BUILTIN["llama.cpp"].arguments[name].choices:
            assert need(llama(WEIGHTS).model_copy(update={"engine_args": {name: type}})).kv > 0
        with pytest.raises(ClaimUnknown, match=f"{name} is 'f64': want one of f32, f16"):
            need(llama(WEIGHTS).model_copy(update={"engine_args": {name: "f64"}}))


@pytest.mark.parametrize(
    ("weights", "missing"),
    [
        (Weights(format="none"), "inspection"),
        (Weights(format="gguf", kv_bytes_per_token=1), "no weights"),
        (Weights(format="gguf", weight_bytes=1), "KV cache"),
    ],
)
def test_an_estimate_that_fails_is_an_error_and_never_a_small_number(weights: Weights, missing: str):
    with pytest.raises(ClaimUnknown, match=missing):
        need(llama(weights))


@pytest.mark.parametrize("given", [0, -1, True, "1GiB", 1.5])
def test_a_simulated_models_memory_is_a_whole_number_of_bytes(given: Scalar):
    spec = ModelSpec(source=SimulatedSource(), engine="simulated", engine_args={"memory_bytes": given})
    with pytest.raises(ClaimUnknown, match="memory_bytes"):
        need(spec)


def test_a_simulated_model_without_a_figure_takes_what_its_process_takes():
    spec = ModelSpec(source=SimulatedSource(), engine="simulated")
    assert 128 * MIB == need(spec).on_each("cpu", 1)


@given(
    weights=st.integers(1, 1 << 40),
    kv=st.integers(0, 1 << 40),
    kv_heads=st.integers(0, 64),
    devices=st.integers(1, 16),
)
def test_shares_add_up_to_at_least_the_whole(weights: int, kv: int, kv_heads: int, devices: int):
    needed = Need(weights, kv, kv_heads)
    assert weights + kv <= needed.on_each("cpu", devices) * devices
    assert needed.on_each("cpu", devices) <= needed.on_each("cpu", 1)


@pytest.mark.parametrize(
    ("heads", "kv_heads", "vision", "size", "expected"),
    [
        (32, 8, 0, 8, True),
        (32, 8, 0, 16, True),
        (32, 8, 0, 3, False),
        (96, 96, 16, 6, False),
        (96, 96, 16, 8, True),
        (28, 4, 0, 4, True),
        (28, 4, 0, 8, False),
        (24, 8, 0, 12, False),
    ],
)
def test_heads_divide_by_the_size(heads: int, kv_heads: int, vision: int, size: int, expected: bool):
    weights = Weights(format="safetensors", heads=heads, kv_heads=kv_heads, vision_heads=vision)
    assert expected is divides(weights, size)


def test_what_is_free_is_less_by_the_claims_and_by_what_others_use_or_is_reserved_for_them():
    log = FleetLog()
    cpu = log.node("cpu", 10 * GIB, vendor="cpu")
    small = log.node("small", GIB, vendor="cpu")
    gpu = log.node("gpu", 10 * GIB, 10 * GIB)
    crowded = log.node("crowded", 10 * GIB, vendor="cpu")
    log.add(machine(gpu), PressureChanged(device=1, bytes=3 * GIB))
    log.add(machine(cpu), PressureChanged(device=0, bytes=GIB // 2))
    log.add(machine(crowded), PressureChanged(device=0, bytes=4 * GIB))
    fleet = log.fleet

    def free(id: str) -> list[int]:
        view = next(view for view in fleet.nodes.values() if view.id == id)
        return [device.free for device in device_memory(view, fleet.assigned(view.id), BUILTIN["simulated"])]

    assert [9 * GIB] == free(cpu)
    assert [GIB - RESERVED_BYTES] == free(small)
    assert [6 * GIB] == free(crowded)
    assert [10 * GIB, 7 * GIB] == free(gpu)
