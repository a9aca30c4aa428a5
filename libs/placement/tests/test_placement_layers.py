"""A model whose layers lie partly on an accelerator: what is claimed of it, and what of the machine's memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weft_contracts.engines import BUILTIN
from weft_contracts.facts.arguments import ArgumentValue, Scalar
from weft_contracts.facts.layers import LayerRun
from weft_contracts.facts.machine import FileFound, Reported
from weft_contracts.facts.source import PathSource
from weft_contracts.facts.values import Backend, Device, DeviceClaim, Hardware, ModelSpec, Weights
from weft_contracts.ids import InspectionId, NodeId, replica_id
from weft_contracts.subjects import machine
from weft_placement import NoPlace, Placement, Policy, decide_placement, dry_run, explain
from weft_placement.claim import GIB, MIB, ClaimUnknown, Need, need_of
from weft_placement.layers import kept_weights, parts_of
from weft_testing.fleet_log import FleetLog

LLAMA = BUILTIN["llama.cpp"]
RUNS = (LayerRun(2, 200 * MIB, 1024), LayerRun(1, 300 * MIB, 0), LayerRun(7, 100 * MIB, 2048))
WEIGHTS = Weights(
    format="gguf",
    weight_bytes=(400 + 300 + 700 + 50 + 60) * MIB,
    kv_bytes_per_token=2 * 1024 + 7 * 2048,
    layers=10,
    heads=8,
    kv_heads=8,
    layer_runs=RUNS,
    input_bytes=50 * MIB,
    output_bytes=60 * MIB,
)


def spec(gpu_layers: Scalar | None = None, weights: Weights = WEIGHTS, **more: Scalar) -> ModelSpec:
    arguments: dict[str, ArgumentValue] = {**more}
    if gpu_layers is not None:
        arguments["gpu_layers"] = gpu_layers
    return ModelSpec(
        source=PathSource(path="/m"), engine="llama.cpp", concurrency=1, engine_args=arguments, weights=weights
    )


def need(gpu_layers: Scalar | None = None, weights: Weights = WEIGHTS, **more: Scalar) -> Need:
    return need_of(spec(gpu_layers, weights, **more), LLAMA)


@st.composite
def any_weights(draw: st.DrawFn) -> Weights:
    runs = draw(
        st.lists(
            st.builds(LayerRun, st.integers(1, 9), st.integers(0, 1 << 34), st.integers(0, 1 << 20)),
            min_size=1,
            max_size=12,
        )
    )
    embeddings, output, tied = draw(st.integers(0, 1 << 32)), draw(st.integers(0, 1 << 32)), draw(st.booleans())
    layers = sum(run.layers for run in runs)
    return Weights(
        format="gguf",
        weight_bytes=max(sum(run.layers * run.bytes for run in runs) + embeddings + output, 1),
        kv_bytes_per_token=max(sum(run.layers * run.kv_bytes_per_token for run in runs), 1),
        layers=layers,
        layer_runs=tuple(runs),
        input_bytes=embeddings,
        output_bytes=output + (embeddings if tied else 0),
    )


def test_the_output_goes_first_and_then_the_last_layers() -> None:
    assert (60 * MIB, 1450 * MIB, 0, 16_384) == parts_of(WEIGHTS, 1)
    assert (160 * MIB, 1350 * MIB, 2048, 14_336) == parts_of(WEIGHTS, 2)
    assert ((60 + 700 + 300) * MIB, (400 + 50) * MIB, 7 * 2048, 2 * 1024) == parts_of(WEIGHTS, 9)


def test_an_output_that_is_made_of_the_embeddings_lies_in_both_places() -> None:
    tied = WEIGHTS.model_copy(update={"weight_bytes": 1450 * MIB, "output_bytes": 50 * MIB})

    parts = parts_of(tied, 2)

    assert ((50 + 100) * MIB, (1450 - 100) * MIB) == (parts.device_weights, parts.host_weights)


def test_the_claim_counts_each_layer_with_its_cache_where_it_lies() -> None:
    half = need(2)

    assert 168 * MIB + 2048 * 1024 + 768 * MIB == half.on_each("nvidia", 1)
    assert 1350 * MIB + 1350 * MIB // 20 + 14_336 * 1024 + 608 * MIB == half.beside(1)


def test_the_cache_counts_by_its_type_on_both_sides() -> None:
    half, quantised = need(5), need(5, cache_type_k="q8_0", cache_type_v="q8_0")

    assert half.kv * 34 // 64 == quantised.kv
    assert half.host - quantised.host == (16_384 - 4 * 2048) * 1024 * 30 // 64


@given(weights=any_weights(), data=st.data())
def test_device_and_machine_hold_the_whole_between_them(weights: Weights, data: st.DataObject) -> None:
    layers = data.draw(st.integers(1, weights.layers + 2))
    whole, parted = need(weights=weights), need(layers, weights)

    assert whole.on_each("nvidia", 1) <= parted.on_each("nvidia", 1) + parted.beside(1)


@given(weights=any_weights(), data=st.data())
def test_more_layers_there_never_take_less_there_nor_more_here(weights: Weights, data: st.DataObject) -> None:
    layers = data.draw(st.integers(1, weights.layers + 1))
    fewer, more = need(layers, weights), need(layers + 1, weights)

    assert fewer.on_each("nvidia", 1) <= more.on_each("nvidia", 1)
    assert fewer.beside(1) >= more.beside(1)


@pytest.mark.parametrize("layers", [10, 11, 1000])
def test_as_many_layers_as_it_has_are_all_of_it(layers: int) -> None:
    whole, all = need(), need(layers)

    assert (whole.on_each("amd", 1), whole.beside(1)) == (all.on_each("amd", 1), all.beside(1))
    assert (True, False) == (all.goes_to("amd"), all.goes_to("cpu"))


def test_no_layers_are_for_the_processor_and_minus_one_says_nothing() -> None:
    assert (False, True) == (need(0).goes_to("nvidia"), need(0).goes_to("cpu"))
    assert need() == need(-1)
    assert need().goes_to("cpu")
    assert need().goes_to("nvidia")


@pytest.mark.parametrize("given", [True, 1.5, "all"])
def test_a_number_of_layers_is_a_whole_one(given: Scalar) -> None:
    with pytest.raises(ClaimUnknown, match=r"engine_args.gpu_layers is .*: want a whole number of layers"):
        need(given)


def test_what_an_older_worker_read_does_for_all_layers_and_no_part_of_them() -> None:
    old = WEIGHTS.without_layers

    assert need().on_each("nvidia", 1) == need(10, old).on_each("nvidia", 1)
    with pytest.raises(ClaimUnknown, match="is 4 of 10 layers, and the worker that read the file told no sizes"):
        need(4, old)


def test_a_spec_keeps_sizes_of_layers_only_where_its_claim_needs_them() -> None:
    assert WEIGHTS == kept_weights(spec(4), WEIGHTS, LLAMA)
    for layers in (None, -1, 0, 10, "all"):
        kept = kept_weights(spec(layers), WEIGHTS, LLAMA)
        assert ((), 0, 0) == (kept.layer_runs, kept.output_bytes, kept.input_bytes)
        assert kept.same_as(WEIGHTS), "they are of one file"
        assert WEIGHTS.same_as(kept)
    other = WEIGHTS.model_copy(update={"output_bytes": 1})
    assert not other.same_as(WEIGHTS)


# where it goes


def node(log: FleetLog, name: str, machine_memory: int, *accelerators: int, unified: bool = False) -> NodeId:
    id = log.node(name, GIB)
    devices = [Device(index=0, vendor="cpu", name="-", memory=machine_memory)]
    vendor = "apple" if unified else "nvidia"
    for index, memory in enumerate(accelerators, 1):
        devices.append(Device(index=index, vendor=vendor, name="-", memory=memory, unified=unified))
    backends = (Backend(engine="llama.cpp", version="1", vendors=("nvidia", "apple", "cpu"), profile=LLAMA.digest),)
    hardware = Hardware(cpus=8, memory=machine_memory, devices=tuple(devices))
    log.add(machine(id), Reported(hardware=hardware, backends=backends, builtins=(), agent_version="1"))
    return id


def hold(log: FleetLog, wanted: ModelSpec, *holders: NodeId) -> None:
    for holder in holders:
        found = FileFound(inspection=InspectionId("i-1"), source="path:/m", size=1, weights=wanted.weights)
        log.add(machine(holder), found)


def decided(log: FleetLog, wanted: ModelSpec, *holders: NodeId) -> Placement | NoPlace:
    hold(log, wanted, *holders)
    model = log.model("big", wanted, replicas=1)
    return decide_placement(log.fleet, replica_id(model, 1), Policy(), 0.0, 1)


def test_a_node_takes_it_whose_accelerator_holds_its_part_and_whose_memory_the_rest() -> None:
    log = FleetLog()
    wanted = spec(5)
    needed = need_of(wanted, LLAMA)
    small = node(log, "small", 64 * GIB, GIB)
    plain = node(log, "plain", 64 * GIB)
    fits = node(log, "fits", 16 * GIB, 2 * GIB)

    found = decided(log, wanted, small, plain, fits)

    assert isinstance(found, Placement)
    (member,) = found.members
    assert fits == member.node
    assert (
        DeviceClaim(index=0, bytes=needed.beside(1)),
        DeviceClaim(index=1, bytes=needed.on_each("nvidia", 1)),
    ) == member.devices
    answers = {answer.node: answer for answer in explain(log.fleet, found.replica).answers}
    assert ((1,), (needed.on_each("nvidia", 1),), needed.beside(1)) == (
        answers[fits].devices,
        answers[fits].bytes,
        answers[fits].host,
    )
    assert "has no device with 1.23 GiB free" == answers[small].refusal
    assert "has no accelerator that its llama.cpp backend can use" == answers[plain].refusal


def test_what_it_takes_of_the_machines_memory_is_not_there_for_the_next() -> None:
    log = FleetLog()
    wanted = spec(5).model_copy(update={"min_replicas": 3, "max_replicas": 3})
    hold(log, wanted, node(log, "a", 4 * GIB, 80 * GIB))

    tried = dry_run(log.fleet, "big", wanted)

    assert (3, 2) == (tried.wanted, tried.placed)
    lacks = "has not 1.68 GiB of the machine's memory free beside its devices (at most 0.24 GiB)"
    assert tried.explanations[-1].outcome.endswith(lacks)


def test_a_device_that_shares_the_machines_memory_counts_both_parts_in_it() -> None:
    log = FleetLog()
    wanted = spec(5)
    needed = need_of(wanted, LLAMA)
    both = needed.beside(1) + needed.on_each("apple", 1)
    tight = node(log, "tight", int((both - MIB) / 0.9), int((both - MIB) / 0.9), unified=True)

    refused = decided(log, wanted, tight)

    assert isinstance(refused, NoPlace)
    assert "of the machine's memory free beside its devices" in refused.reason


def test_a_whole_replica_on_an_accelerator_takes_some_of_the_machines_memory() -> None:
    log = FleetLog()
    wanted = spec(10)
    a = node(log, "a", 16 * GIB, 8 * GIB)

    found = decided(log, wanted, a)

    assert isinstance(found, Placement)
    assert [(0, 608 * MIB), (1, need_of(wanted, LLAMA).on_each("nvidia", 1))] == [
        (claim.index, claim.bytes) for claim in found.members[0].devices
    ]
