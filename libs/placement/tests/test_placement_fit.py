"""How a replica lies on a node's devices: which of them, how much of each, and what a node that can't says."""

from dataclasses import replace

import pytest
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import Scalar
from weft_contracts.facts.source import PathSource, SimulatedSource
from weft_contracts.facts.values import DeviceClaim, ModelSpec, Vendor, Weights
from weft_contracts.ids import ModelId
from weft_placement import BUILTIN_POLICIES, Policy
from weft_placement.claim import GIB, MIB, ClaimUnknown, Need, need_of
from weft_placement.demand import Demand, demand_of
from weft_placement.device_memory import DeviceMemory
from weft_placement.fit import one_device, several_devices
from weft_placement.fit.option import Miss, Option, gib, in_order, option_of


def demand(spec: ModelSpec, policy: str = "balanced") -> Demand:
    return demand_of(ModelId("m-toy"), 1, spec, BUILTIN_POLICIES[policy], BUILTIN)


def simulated(bytes: int, policy: str = "balanced", **more: object) -> Demand:
    given = {"source": SimulatedSource(), "engine": "simulated", "engine_args": {"memory_bytes": bytes}, **more}
    return demand(ModelSpec.model_validate(given), policy)


def vllm(weight_bytes: int, *, heads: int = 32, **args: Scalar) -> Demand:
    weights = Weights(
        format="safetensors", weight_bytes=weight_bytes, kv_bytes_per_token=1, heads=heads, kv_heads=heads
    )
    return demand(ModelSpec(source=PathSource(path="/m"), engine="vllm", engine_args={**args}, weights=weights))


def devices(
    *free: int, vendor: Vendor = "nvidia", budgeted: bool = False, total: int = 100 * GIB
) -> list[DeviceMemory]:
    return [DeviceMemory(index, vendor, total, size, budgeted) for index, size in enumerate(free)]


# what a replica needs


def test_a_processor_and_an_accelerator_have_overheads_of_their_own() -> None:
    need = Need(1000, 0, 0, overhead=70, cpu_overhead=5)
    assert (1005, 1070, 1070) == (need.on_each("cpu", 1), need.on_each("nvidia", 1), need.on_each("amd", 1))
    assert 570 == need.on_each("nvidia", 2)


def test_weights_are_shared_by_all_devices_and_the_cache_by_no_more_than_its_heads() -> None:
    need = Need(1000, 400, 2)
    assert [1400, 700, 450] == [need.on_each("nvidia", count) for count in (1, 2, 4)]
    assert 350 == Need(1000, 400, 0).on_each("nvidia", 4)
    # a share is never less than its part
    assert 3 + 1 == Need(5, 1, 2).on_each("nvidia", 2)


def test_a_replica_fits_where_its_share_is_free_to_the_last_byte() -> None:
    need = Need(10, 0, 0)
    assert (10, None) == (need.claim(100, 10, 10), need.claim(100, 9, 10))


def test_an_engine_that_takes_a_share_takes_all_of_it_and_needs_what_the_model_does() -> None:
    need = Need(10, 0, 0, fraction=0.5)
    assert 50 == need.claim(100, 50, 10)
    assert 50 == need.claim(100, 100, 50)
    assert need.claim(100, 49, 10) is None
    assert need.claim(100, 100, 51) is None


@pytest.mark.parametrize("share", [1, 0.5])
def test_a_share_is_above_nothing_and_up_to_the_whole(share: float) -> None:
    assert share == vllm(GIB, gpu_memory_utilization=share).need.fraction
    assert vllm(GIB).need.fraction is None


@pytest.mark.parametrize("share", [0, 1.01, -0.5, True, "half"])
def test_another_share_is_refused(share: float | str) -> None:
    with pytest.raises(ClaimUnknown, match="want a share above 0 and up to 1"):
        vllm(GIB, gpu_memory_utilization=share)


@pytest.mark.parametrize(("given", "expected"), [(1, 1), (4, 4)])
def test_a_replica_spans_as_many_devices_as_its_spec_says(given: int, expected: int) -> None:
    assert expected == vllm(GIB, tensor_parallel_size=given).devices
    assert vllm(GIB).devices is None


@pytest.mark.parametrize("given", [0, -1, 1.5, True])
def test_a_number_of_devices_is_a_whole_one_above_nothing(given: float) -> None:
    with pytest.raises(ClaimUnknown, match="want a whole number above 0"):
        vllm(GIB, tensor_parallel_size=given)


def test_weights_have_their_slack_and_the_smallest_header_will_do() -> None:
    weights = Weights(format="gguf", weight_bytes=1, kv_bytes_per_token=1)
    spec = ModelSpec(source=PathSource(path="/m"), engine="llama.cpp", context_tokens=1, concurrency=1, weights=weights)
    need = need_of(spec, BUILTIN["llama.cpp"])
    assert (1, 1, 768 * MIB, 160 * MIB) == (need.weights, need.kv, need.overhead, need.cpu_overhead)
    large = spec.model_copy(update={"weights": weights.model_copy(update={"weight_bytes": 1000})})
    assert 1050 == need_of(large, BUILTIN["llama.cpp"]).weights


@pytest.mark.parametrize("given", [1, 5])
def test_an_argument_that_is_a_number_of_bytes_is_the_need(given: int) -> None:
    assert given == simulated(given).need.weights


def test_no_profile_of_an_engine_is_a_named_error() -> None:
    with pytest.raises(ClaimUnknown, match="no profile tells of the engine simulated"):
        demand_of(ModelId("m"), 1, ModelSpec(source=SimulatedSource(), engine="simulated"), Policy(), {})


# on one device


@pytest.mark.parametrize(("policy", "index"), [("binpack", 1), ("balanced", 1), ("spread", 2)])
def test_packing_takes_the_fullest_device_that_holds_it_and_spreading_the_emptiest(policy: str, index: int) -> None:
    wanted = simulated(4 * GIB, policy)
    found = one_device.fit(devices(3 * GIB, 4 * GIB, 9 * GIB, 5 * GIB), wanted)
    assert isinstance(found, Option)
    assert (DeviceClaim(index=index, bytes=4 * GIB),) == found.devices


@pytest.mark.parametrize("policy", ["binpack", "spread"])
def test_of_devices_with_as_much_free_the_first_is_taken(policy: str) -> None:
    wanted = simulated(GIB, policy)
    pairs = [(device, GIB) for device in reversed(devices(GIB, GIB, GIB))]
    assert [0, 1, 2] == [device.device_index for device, _ in in_order(wanted, pairs)]


def test_an_option_lists_its_devices_by_index_and_knows_its_part_of_what_was_free() -> None:
    one, other = devices(3 * GIB, 5 * GIB)
    found = option_of([(other, GIB), (one, GIB)])
    assert ([0, 1], 0.25) == ([device.index for device in found.devices], found.part)
    full = DeviceMemory(0, "nvidia", GIB, 0)
    assert 1.0 == option_of([(full, 0)]).part


def test_a_replica_for_one_device_may_say_so_and_one_for_several_is_none_for_this_rung() -> None:
    assert isinstance(one_device.fit(devices(80 * GIB), vllm(GIB, tensor_parallel_size=1)), Option)
    assert Miss("must span 2 devices", applies=False) == one_device.fit(
        devices(80 * GIB, 80 * GIB), vllm(GIB, tensor_parallel_size=2)
    )


def test_a_node_that_is_too_small_says_what_is_needed_and_how_near_it_came() -> None:
    assert Miss("has no device with 4.00 GiB free", 3 * GIB) == one_device.fit(
        devices(2 * GIB, 3 * GIB, GIB), simulated(4 * GIB)
    )
    nothing = one_device.fit([], simulated(4 * GIB))
    assert Miss("has no accelerator that its simulated backend can use", applies=False) == nothing


def test_a_budget_is_named_where_it_is_what_leaves_too_little_on_any_device() -> None:
    within = "has no device with 4.00 GiB free within its VRAM budget"
    mixed = [*devices(GIB), *devices(2 * GIB, budgeted=True), *devices(GIB)]
    assert Miss(within, 2 * GIB) == one_device.fit(mixed, simulated(4 * GIB))


def test_a_share_is_named_where_the_engine_takes_one() -> None:
    found = one_device.fit(devices(GIB), vllm(GIB, gpu_memory_utilization=0.9))
    assert isinstance(found, Miss)
    assert found.reason.endswith(" free within 90% of it")


def test_sizes_are_told_in_gib_with_two_digits() -> None:
    assert ["5.91 GiB", "0.00 GiB", "1.50 GiB"] == [gib(int(5.91 * GIB)), gib(0), gib(GIB * 3 // 2)]


# on several devices


def indices(found: Option | Miss) -> list[int]:
    assert isinstance(found, Option), found
    return [device.index for device in found.devices]


def test_the_fewest_devices_that_its_heads_divide_by_are_taken() -> None:
    free = devices(*[40 * GIB] * 6)
    assert [0, 1] == indices(several_devices.fit(free, vllm(60 * GIB, heads=12)))
    assert [0, 1, 2] == indices(several_devices.fit(free, vllm(90 * GIB, heads=12)))
    # five would hold it
    assert [0, 1, 2, 3, 4, 5] == indices(several_devices.fit(free, vllm(170 * GIB, heads=12)))


def test_the_number_of_devices_that_is_said_is_taken_where_fewer_would_do() -> None:
    assert [0, 1, 2, 3] == indices(
        several_devices.fit(devices(*[40 * GIB] * 6), vllm(60 * GIB, heads=12, tensor_parallel_size=4))
    )


def test_only_devices_that_hold_their_share_are_taken_and_all_of_one_vendor() -> None:
    free = [
        DeviceMemory(0, "amd", 80 * GIB, 60 * GIB),
        DeviceMemory(1, "nvidia", 80 * GIB, 60 * GIB),
        DeviceMemory(2, "nvidia", 80 * GIB, GIB),
        DeviceMemory(3, "nvidia", 80 * GIB, 50 * GIB),
    ]
    assert [1, 3] == indices(several_devices.fit(free, vllm(60 * GIB)))


def missed(found: Option | Miss) -> Miss:
    assert isinstance(found, Miss), found
    return found


def test_what_no_node_could_split_is_not_for_this_rung() -> None:
    free = devices(GIB, GIB)
    assert Miss("has no two accelerators", applies=False) == several_devices.fit(devices(GIB), simulated(4 * GIB))
    whole = replace(simulated(4 * GIB), profile=BUILTIN["llama.cpp"])
    assert Miss("can't split it: llama.cpp runs on one device", applies=False) == several_devices.fit(free, whole)
    assert Miss("can't split it: the header names no attention heads", applies=False) == several_devices.fit(
        free, vllm(4 * GIB, heads=0)
    )
    one = several_devices.fit(devices(9 * GIB, 9 * GIB), vllm(GIB, heads=1, tensor_parallel_size=1))
    assert Miss("must lie on one device", applies=False) == one


def test_devices_that_share_the_machines_memory_hold_together_what_is_free_of_it_once() -> None:
    pair = [DeviceMemory(index, "nvidia", 32 * GIB, 20 * GIB, shared=True) for index in (1, 2)]
    fitting, too_large = vllm(8 * GIB), vllm(30 * GIB)
    two, beside = replace(fitting, devices=2), DeviceMemory(0, "cpu", 32 * GIB, 20 * GIB, shared=True)
    assert isinstance(several_devices.fit(pair, two), Option)
    assert isinstance(several_devices.fit(pair, two, beside), Option)
    assert several_devices.fit(pair, replace(too_large, devices=2)).reason.endswith(  # pyright: ignore
        "of the machine's memory free beside its devices"
    )


def test_a_number_that_its_heads_do_not_divide_by_is_said_whatever_is_free() -> None:
    found = missed(several_devices.fit(devices(*[80 * GIB] * 8), vllm(GIB, heads=28, tensor_parallel_size=8)))
    assert "can't split it: 28 heads do not divide by 8" == found.reason
    assert found.applies


def test_a_node_whose_devices_are_too_full_says_how_much_of_one_vendor_it_lacks() -> None:
    free = [*devices(8 * GIB, 9 * GIB), DeviceMemory(2, "amd", 80 * GIB, 10 * GIB)]
    found = missed(several_devices.fit(free, vllm(100 * GIB)))
    assert "has not 105.00 GiB free on devices of one vendor that its heads divide by" == found.reason
    assert 17 * GIB == found.free


def test_a_node_without_so_many_devices_says_how_many_it_lacks_and_how_large() -> None:
    reason = missed(several_devices.fit(devices(GIB), vllm(10 * GIB, tensor_parallel_size=2))).reason
    assert "has not 2 devices with 7.55 GiB free each" == reason
    nothing = several_devices.fit([], vllm(10 * GIB, tensor_parallel_size=2))
    assert Miss("has not 2 devices with 7.55 GiB free each", free=0) == nothing
    processor = missed(several_devices.fit(devices(GIB, vendor="cpu"), vllm(10 * GIB, tensor_parallel_size=2)))
    assert "has not 2 devices with 7.55 GiB free each" == processor.reason


def test_enough_devices_of_mixed_vendors_make_no_replica_and_too_few_are_too_few() -> None:
    pair = [DeviceMemory(0, "amd", 80 * GIB, 60 * GIB), DeviceMemory(1, "nvidia", 80 * GIB, 60 * GIB)]
    two, three = vllm(GIB, tensor_parallel_size=2), vllm(GIB, heads=12, tensor_parallel_size=3)
    assert "has not 2 fitting devices of one vendor: mixed vendors make no replica" == (
        missed(several_devices.fit(pair, two)).reason
    )
    assert missed(several_devices.fit(pair, three)).reason.startswith("has not 3 devices with ")
    one_vendor = missed(several_devices.fit(devices(GIB, GIB, GIB), two)).reason
    assert one_vendor.startswith("has not 2 devices with ")


def test_a_budget_is_named_where_several_devices_were_wanted_too() -> None:
    mixed = [*devices(GIB), *devices(GIB, budgeted=True)]
    assert missed(several_devices.fit(mixed, vllm(100 * GIB))).reason.endswith(" within its VRAM budget")
    assert not missed(several_devices.fit(devices(GIB, GIB), vllm(100 * GIB))).reason.endswith("budget")


def test_heads_that_the_header_does_not_tell_apart_divide_like_the_others() -> None:
    weights = Weights(format="safetensors", heads=12, kv_heads=0, vision_heads=0)
    assert [True, False] == [several_devices.divides(weights, size) for size in (3, 5)]
